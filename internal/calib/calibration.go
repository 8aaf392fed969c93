package calib

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"perflab/internal/stat"
)

// Schema is that of a calibration file.
const Schema = "perflab.calibration/1"

// Ambiguous reports whether the run's configuration is in doubt, so that no
// constant should be fitted to it.
func (o *Observation) Ambiguous() bool { return strings.HasPrefix(o.Apart, "ambiguous") }

// Calibration is what a fit of observations found, with the errors of
// predictions that were held out of fits of the others.
func (f *Fitted) Calibration(source string, obs []Observation, held []Residual) Calibration {
	seen := slices.DeleteFunc(slices.Clone(obs), func(b Observation) bool { return !b.fitted() })
	return Calibration{
		Schema: Schema, Source: source, Sets: f.Sets, Errors: Errors(obs, held), Seen: Envelopes(seen), Runs: len(seen),
	}
}

// kind is what errors and envelopes are grouped by.
type kind struct{ accelerator, engine string }

func (o *Observation) kind() kind { return kind{o.Config.GPU.Name, o.Config.Engine} }

// quantileRuns is how many errors it takes to read nine in ten off them; of fewer
// it follows from their standard deviation.
const quantileRuns = 20

// Errors are bias and spread of held-out predictions, for each accelerator,
// engine and figure. Runs that are scored apart count only where there are no
// others, ambiguous ones never.
func Errors(obs []Observation, held []Residual) []Error {
	byID := map[string]*Observation{}
	plain := map[kind]bool{}
	for i := range obs {
		byID[obs[i].ID] = &obs[i]
		plain[obs[i].kind()] = plain[obs[i].kind()] || obs[i].Apart == ""
	}
	type row struct {
		kind
		metric string
	}
	logs := map[row][]float64{}
	var rows []row
	for _, r := range held {
		o := byID[r.ID]
		if o == nil || o.Ambiguous() || o.Apart != "" && plain[o.kind()] || !(r.Value > 0) || !(r.Measured > 0) {
			continue
		}
		k := row{o.kind(), r.Metric}
		if logs[k] == nil {
			rows = append(rows, k)
		}
		logs[k] = append(logs[k], math.Log(r.Value/r.Measured))
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.accelerator, b.accelerator), cmp.Compare(a.engine, b.engine),
			cmp.Compare(slices.Index(Scored, a.metric), slices.Index(Scored, b.metric)), cmp.Compare(a.metric, b.metric))
	})
	var out []Error
	for _, k := range rows {
		bias, spread := biasAndSpread(logs[k])
		out = append(out, Error{k.accelerator, k.engine, k.metric, len(logs[k]), round(bias), round(spread)})
	}
	return out
}

// biasAndSpread are the median of x and what nine in ten lie within of it.
func biasAndSpread(x []float64) (bias, spread float64) {
	slices.Sort(x)
	bias = stat.Quantile(x, 0.5)
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
	return bias, stat.Quantile(off, 0.9)
}

// Envelopes are what observations cover, for each accelerator and engine.
func Envelopes(obs []Observation) []Envelope {
	groups := map[kind]*Envelope{}
	for i := range obs {
		o := &obs[i]
		e := groups[o.kind()]
		if e == nil {
			e = &Envelope{Accelerator: o.Config.GPU.Name, Engine: o.Config.Engine}
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
		return cmp.Or(cmp.Compare(a.Accelerator, b.Accelerator), cmp.Compare(a.Engine, b.Engine))
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
		n := l.Requests
		if l.Concurrency > 0 {
			n = min(n, l.Concurrency)
		}
		e.Burst = widened(e.Burst, (n+replicas-1)/replicas)
	}
	e.Speculation = e.Speculation || c.SpecTokens > 0
	e.Disaggregated = e.Disaggregated || c.Prefills > 0
}

// widened is the span with v in it; a span from 0 to 0 is none.
func widened[T int | float64](span [2]T, v T) [2]T {
	if span == [2]T{} {
		return [2]T{v, v}
	}
	return [2]T{min(span[0], v), max(span[1], v)}
}
