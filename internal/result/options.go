package result

import (
	"fmt"
	"slices"

	"perflab/internal/gauge"
	"perflab/internal/price"
	"perflab/internal/reuse"
)

// Options choose what Summarize computes beyond the fixed figures.
type Options struct {
	Percentiles []float64 // in percent, "99.9" style names; nil: 50 90 95 99
	Goodput     []SLO     // all must hold for a request to count; see ParseGoodput
	Compat      string    // VLLM: figures that vllm bench serve has by its definitions; "": ours

	Readings []gauge.Reading // sampled beside the calls; nil: none were
	Prompts  []reuse.Prompt  // what the prompts share; nil: nothing, or it is not known
	Price    price.Hourly    // of the deployment, where known
	GPUs     int             // allocated to it; 0: none, or not known
}

// Validate reports what Summarize would refuse.
func (o Options) Validate() error {
	for _, p := range o.Percentiles {
		if !(p >= 0 && p <= 100) {
			return fmt.Errorf("percentile %v is not between 0 and 100", p)
		}
	}
	if o.Compat != "" && o.Compat != VLLM {
		return fmt.Errorf("definitions of %q are unknown: use %s, or none for our own", o.Compat, VLLM)
	}
	return nil
}

// AskedPercentiles are those asked for, else those that every summary has, ascending
// and each once.
func (o Options) AskedPercentiles() []float64 {
	if len(o.Percentiles) == 0 {
		return defaultPercentiles
	}
	return slices.Compact(slices.Sorted(slices.Values(o.Percentiles)))
}

// GoodputTest returns the test of one call by the goodput bounds, of a run with
// this concurrency limit; nil where there are none.
func (o Options) GoodputTest(limit int) (func(*Call) bool, error) {
	bounds := make([]func(*Call) bool, len(o.Goodput))
	for i, slo := range o.Goodput {
		var err error
		if bounds[i], err = slo.perCall(limit); err != nil {
			return nil, err
		}
	}
	if len(bounds) == 0 {
		return nil, nil
	}
	return func(c *Call) bool {
		return !slices.ContainsFunc(bounds, func(met func(*Call) bool) bool { return !met(c) })
	}, nil
}
