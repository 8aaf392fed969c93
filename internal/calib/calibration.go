package calib

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"perflab/internal/stat"
)

// Schema is that of a calibration file; files of the first one are read too.
const (
	Schema      = "perflab.calibration/2"
	firstSchema = "perflab.calibration/1"
)

// Ambiguous reports whether the run's configuration is in doubt, so that no
// constant should be fitted to it.
func (o *Observation) Ambiguous() bool { return strings.HasPrefix(o.Apart, "ambiguous") }

// Calibration is what a fit of observations found, with the errors of
// predictions that were held out of fits of the others.
func (f *Fitted) Calibration(source string, obs []Observation, held []Residual) Calibration {
	seen := slices.DeleteFunc(slices.Clone(obs), func(b Observation) bool { return !b.fitted() })
	return Calibration{
		Schema: Schema, Source: source, Sets: f.Sets, Errors: Errors(obs, held), Common: commonShare(obs, held), Seen: Envelopes(seen), Runs: len(seen),
	}
}

// kind is what errors and envelopes are grouped by.
type kind struct{ accelerator, engine, generation string }

func (o *Observation) kind() kind {
	return kind{o.Config.GPU.Name, o.Config.Engine, o.Config.Generation}
}

// quantileRuns is how many errors it takes to read nine in ten off them; of fewer
// it follows from their standard deviation.
const quantileRuns = 20

// Errors are bias and spread of held-out predictions, for each figure by how much was new
// in what was predicted: of each engine, and of all. Runs that are scored apart count only
// where there are no others of their engine, ambiguous ones never.
func Errors(obs []Observation, held []Residual) []Error {
	plain := map[string]bool{}
	for i := range obs {
		plain[obs[i].Config.Engine] = plain[obs[i].Config.Engine] || obs[i].Apart == ""
	}
	var all []heldOut
	groups := map[Error][]heldOut{} // by Error without figures
	for _, r := range telling(obs, held) {
		if r.of.Apart != "" && plain[r.of.Config.Engine] {
			continue
		}
		all = append(all, r)
		for _, e := range []string{"", r.of.Config.Engine} {
			k := Error{New: r.New, Engine: e, Metric: r.Metric}
			groups[k] = append(groups[k], r)
		}
	}
	rows := slices.SortedFunc(maps.Keys(groups), func(a, b Error) int {
		return cmp.Or(cmp.Compare(slices.Index(Novelties, a.New), slices.Index(Novelties, b.New)), cmp.Compare(a.Engine, b.Engine),
			cmp.Compare(slices.Index(Scored, a.Metric), slices.Index(Scored, b.Metric)), cmp.Compare(a.Metric, b.Metric))
	})
	several := studiesOf(all) > 1
	for i, k := range rows {
		bias, spread := biasAndSpread(logsOf(groups[k]), !several)
		rows[i].Runs, rows[i].Bias, rows[i].Spread = len(groups[k]), round(bias), round(spread)
		if several {
			rows[i].Studies = studiesOf(groups[k])
		}
	}
	return rows
}

// heldOut is a held-out prediction with its run and its error, the logarithm of predicted over
// measured.
type heldOut struct {
	Residual
	of  *Observation
	off float64
}

// logsOf are the errors of held-out predictions.
func logsOf(rs []heldOut) []float64 {
	out := make([]float64, len(rs))
	for i, r := range rs {
		out[i] = r.off
	}
	return out
}

// studiesOf is how many studies held-out predictions are of.
func studiesOf(rs []heldOut) int {
	studies := map[string]bool{}
	for _, r := range rs {
		studies[r.of.Study] = true
	}
	return len(studies)
}

// telling are the held-out predictions that tell of errors: not of runs whose configuration is
// in doubt, and no latency of a prediction that more was offered than could be served.
func telling(obs []Observation, held []Residual) []heldOut {
	byID := map[string]*Observation{}
	for i := range obs {
		byID[obs[i].ID] = &obs[i]
	}
	var out []heldOut
	for _, r := range held {
		if o := byID[r.ID]; o != nil && !o.Ambiguous() && !r.Flooded && r.Value > 0 && r.Measured > 0 {
			out = append(out, heldOut{r, o, math.Log(r.Value / r.Measured)})
		}
	}
	return out
}

// commonShare is the share of the variance of held-out errors of throughput (at a rate: of
// E2E latency) that is common to the configurations of one study under one load: in the
// ratio of two of them it does not count.
func commonShare(obs []Observation, held []Residual) float64 {
	groups := map[string][]float64{}
	for _, r := range telling(obs, held) {
		if metric := r.of.scored()[0]; r.Metric == metric || r.of.Load.Rate > 0 && r.Metric == MeanE2E {
			k := r.of.Study + "\x00" + r.of.Workload + "\x00" + r.Metric
			groups[k] = append(groups[k], r.off)
		}
	}
	var total, within, n, free float64
	for _, k := range slices.Sorted(maps.Keys(groups)) {
		g := groups[k]
		mean := 0.0
		for _, x := range g {
			mean += x / float64(len(g))
		}
		for _, x := range g {
			total, within = total+x*x, within+(x-mean)*(x-mean)
		}
		n, free = n+float64(len(g)), free+float64(len(g)-1)
	}
	if free < leastRuns || total == 0 {
		return 0
	}
	return round(min(0.95, max(0, 1-(within/free)/(total/n))))
}

// otherStudies is the quantile of errors of several studies that holds nine in ten of
// another one's: studies differ more from each other than their blocks do. Found by leaving
// out each study in turn.
const otherStudies = 0.91

// biasAndSpread are the median of x and what nine in ten lie within of it. Errors of several
// studies have no bias that another one would have: what they lean to counts as spread.
func biasAndSpread(x []float64, oneStudy bool) (bias, spread float64) {
	slices.Sort(x)
	nine := otherStudies
	if oneStudy {
		bias, nine = stat.Quantile(x, 0.5), 0.9
	}
	off, square := make([]float64, len(x)), 0.0
	for i, v := range x {
		off[i] = math.Abs(v - bias)
		square += off[i] * off[i]
	}
	switch n := float64(len(x)); {
	case n == 1: // one error is its own bias: nothing is known of their spread
		return 0, math.Abs(x[0])
	case n < quantileRuns:
		const normalNine = 1.6449 // standard deviations that hold nine in ten
		return bias, normalNine * math.Sqrt(square/(n-1))
	}
	slices.Sort(off)
	return bias, stat.Quantile(off, nine)
}

// Envelopes are what observations cover, for each accelerator and engine.
func Envelopes(obs []Observation) []Envelope {
	groups := map[kind]*Envelope{}
	for i := range obs {
		o := &obs[i]
		e := groups[o.kind()]
		if e == nil {
			e = &Envelope{Accelerator: o.Config.GPU.Name, Engine: o.Config.Engine, Generation: o.Config.Generation}
			groups[o.kind()] = e
		}
		e.add(o)
	}
	var out []Envelope
	for _, e := range groups {
		slices.Sort(e.Models)
		slices.Sort(e.Formats)
		slices.Sort(e.GPUs)
		e.Models, e.Formats, e.GPUs = slices.Compact(e.Models), slices.Compact(e.Formats), slices.Compact(e.GPUs)
		out = append(out, *e)
	}
	slices.SortFunc(out, func(a, b Envelope) int {
		return cmp.Or(cmp.Compare(a.Accelerator, b.Accelerator), cmp.Compare(a.Engine, b.Engine), cmp.Compare(a.Generation, b.Generation))
	})
	return out
}

// add widens the envelope by a run. Rates and bursts are those of one replica.
func (e *Envelope) add(o *Observation) {
	c, l, replicas := &o.Config, &o.Load, max(1, o.Replicas)
	e.Models = append(e.Models, c.Model.Name)
	e.Formats = append(e.Formats, string(c.Model.Format))
	e.GPUs = append(e.GPUs, engineGPUs(*c)...)
	e.Input, e.Output = widened(e.Input, l.Input.Mean), widened(e.Output, l.Output.Mean)
	if l.Rate > 0 {
		e.Rate = widened(e.Rate, l.Rate/float64(replicas))
	} else {
		e.Burst = widened(e.Burst, l.atOnce(replicas))
	}
	e.Speculation = e.Speculation || c.SpecTokens > 0
	e.Disaggregated = e.Disaggregated || c.Prefills > 0
	e.Tiered = e.Tiered || len(c.Tiers) > 0
}

// widened is the span with v in it; a span from 0 to 0 is none.
func widened[T int | float64](span [2]T, v T) [2]T {
	if span == [2]T{} {
		return [2]T{v, v}
	}
	return [2]T{min(span[0], v), max(span[1], v)}
}
