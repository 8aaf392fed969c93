// Package redefine computes the figures of a run from its calls by the definitions of
// another client, so that they compare with a file of that client, which keeps no more
// than figures.
//
//	f, err := redefine.By(theirs.Definitions, header, percentiles, calls)
//	f.Summary.Figures["p99_ttft_ms"] // as theirs is made; why it is missing is in f.Missing["ttft"]
//
// Invariants: a figure is given only where the calls determine it; what they leave open
// is named with the reason. Definitions are those of result.Definition.
//
// Deliberately absent: which figures stand beside each other (package compare).
package redefine

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"perflab/internal/interop"
	"perflab/internal/result"
	"perflab/internal/stat"
)

// Figures are what calls give by other definitions.
type Figures struct {
	Summary result.Summary    // the figures that were asked for and can be computed, with their definitions
	Missing map[string]string // why not, by family or scalar, for those that cannot

	defs map[string]result.Definition
}

// defaultPercentiles are computed besides those asked for.
var defaultPercentiles = []float64{90, 95, 99}

// By computes the figures that defs names, families or scalars, from the calls of a run.
// What a definition leaves open, as which message the first is or when an answer
// ends, follows from the definitions of the same client's TTFT and E2EL. What is
// guidellm's own (requests weighted by their tokens, rates over its window,
// percentiles that are values) comes from the report that guidellm would have written of
// these calls.
func By(defs map[string]result.Definition, h result.Header, percentiles []float64, calls []result.Call) (Figures, error) {
	f := Figures{
		Summary: result.Summary{Figures: map[string]float64{}, Definitions: map[string]result.Definition{}},
		Missing: map[string]string{}, defs: defs,
	}
	b := builder{Figures: &f, calls: result.NewCallSet(calls).Succeeded, percentiles: slices.Concat(defaultPercentiles, percentiles)}
	b.own = sync.OnceValues(func() (map[string]float64, error) {
		s, err := result.Summarize(h, &result.Client{}, result.Options{}, slices.Values(calls))
		return s.Figures, err
	})
	for name, d := range defs {
		if d == result.Ours {
			continue
		}
		if why := b.compute(name, d); why != "" {
			f.Missing[name] = why
			continue
		}
		f.Summary.Definitions[name] = d
	}
	if ofGuideLLM(defs) {
		return f, b.fromReport(h, calls)
	}
	return f, nil
}

// builder computes figures one after another.
type builder struct {
	*Figures
	own         func() (map[string]float64, error) // perflab's figures, which few definitions need
	calls       []*result.Call
	percentiles []float64
}

// compute sets one family or scalar, or says why it cannot.
func (b *builder) compute(name string, d result.Definition) string {
	if !slices.Contains(result.Families(), name) {
		return b.scalar(name, d)
	}
	sample, why := samplerOf(b.defs, name)
	if why != "" {
		return why
	}
	var x []float64
	for _, c := range b.calls {
		if x, why = sample(c, x); why != "" {
			return why
		}
	}
	if len(x) == 0 {
		return "no call has a sample of it"
	}
	b.distribution(name, x)
	return ""
}

// distribution sets the statistics of samples.
func (b *builder) distribution(name string, x []float64) {
	stat.Sort(x)
	set := func(what string, v float64) { b.Summary.Figures[what+"_"+name+"_ms"] = v }
	set("mean", stat.Mean(x))
	set("std", stat.StdDev(x))
	set("min", x[0])
	set("max", x[len(x)-1])
	set("median", stat.Quantile(x, 0.5))
	set("p50", stat.Quantile(x, 0.5))
	for _, p := range b.percentiles {
		set(result.PercentileName(p), stat.Quantile(x, p/100))
	}
}

// Sampler returns what appends the samples that a call gives to a family by these
// definitions; nil where they do not say how.
func (f *Figures) Sampler(name string) func(*result.Call, []float64) []float64 {
	sample, why := samplerOf(f.defs, name)
	if why != "" {
		return nil
	}
	return func(c *result.Call, x []float64) []float64 {
		more, _ := sample(c, x)
		return more
	}
}

// ofGuideLLM reports whether definitions are those of guidellm.
func ofGuideLLM(defs map[string]result.Definition) bool {
	weighted := []result.Definition{result.E2EPerTokenWeighted, result.DecodePerTokenWeighted, result.RateWeighted, result.InverseGapPeak}
	return slices.ContainsFunc(slices.Collect(maps.Values(defs)), func(d result.Definition) bool { return slices.Contains(weighted, d) })
}

// fromReport puts guidellm's own figures in the place of those that are there.
func (b *builder) fromReport(h result.Header, calls []result.Call) error {
	report, err := interop.GuideFigures(h, calls)
	if err != nil {
		return fmt.Errorf("compute the figures of guidellm: %w", err)
	}
	s := &b.Summary
	for name, d := range b.defs {
		same := report.Definition(name) == d
		if d == result.FirstIteration { // by a report of today it is the first text, which is the same where compute says so
			_, same = s.Definitions[name]
		}
		if !same || d == result.Ours {
			continue
		}
		theirs := map[string]float64{}
		for _, x := range report.Figures {
			if isOf(x.Name, name) {
				theirs[x.Name] = x.Value
			}
		}
		if len(theirs) == 0 {
			continue
		}
		// Other percentiles would be of another kind: none of them stays.
		maps.DeleteFunc(s.Figures, func(x string, _ float64) bool { return isOf(x, name) })
		maps.Copy(s.Figures, theirs)
		s.Definitions[name] = d
		delete(b.Missing, name)
	}
	return nil
}

// isOf reports whether a figure is the scalar, or of the family, that has a name.
func isOf(figure, name string) bool {
	m, err := result.Lookup(figure)
	return err == nil && (m.Name == name || m.Family == name)
}
