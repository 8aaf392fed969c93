package compare

import (
	"fmt"
	"math"
	"slices"

	"perflab/internal/result"
)

// Run is a run as a comparison takes it.
type Run struct {
	Name    string
	Header  result.Header
	Summary result.Summary
	Calls   []result.Call      // nil: there are figures only
	Options result.Options     // that the figures were made with, as far as calls give them
	Half    map[string]float64 // half a unit of the last printed digit, of figures that are known as printed
	Launch  string             // names the start of the server that it was measured on; "": not recorded
	Views   []View             // the same calls by the definitions of other sides
}

// View is what a run's calls give by the definitions of another client.
type View struct {
	Summary result.Summary    // the figures of other definitions, with these
	Missing map[string]string // why the calls do not give a family or scalar by them
	// Sampler returns what appends the samples that a call gives to a family; nil: not known.
	Sampler func(family string) func(*result.Call, []float64) []float64
}

// has reports whether a summary has a figure by a definition.
func has(s *result.Summary, m result.Metric, d result.Definition) bool {
	v, ok := s.Figures[m.Name]
	return ok && !math.IsNaN(v) && !math.IsInf(v, 0) && s.Definition(m.Name) == d
}

// by returns the summary that has a figure by a definition: the run's own, or that of
// a view of its calls; nil for none.
func (r *Run) by(m result.Metric, d result.Definition) (*result.Summary, *View) {
	if has(&r.Summary, m, d) {
		return &r.Summary, nil
	}
	for i := range r.Views {
		if v := &r.Views[i]; d != result.Ours && has(&v.Summary, m, d) {
			return &v.Summary, v
		}
	}
	return nil, nil
}

// anew reports whether a side has a figure by a definition only because its calls give it.
func (s Side) anew(m result.Metric, d result.Definition) bool {
	return slices.ContainsFunc(s.Runs, func(r Run) bool {
		_, view := r.by(m, d)
		return view != nil
	})
}

// unmade is why the calls do not give a figure by another definition; "" where
// nobody asked them.
func (r *Run) unmade(m result.Metric) string {
	for _, v := range r.Views {
		for _, name := range []string{m.Name, m.Family} {
			if why := v.Missing[name]; why != "" {
				return why
			}
		}
	}
	return ""
}

// Side is one of the things compared: a run, or several of which each counts
// as one observation.
type Side struct {
	Name   string
	Runs   []Run
	Series bool // one command made them one after another: one launch, unless somebody restarted the server
}

// usableRuns drops the void and the partial runs of a side of several, if any
// remain, and says so.
func (s Side) usableRuns() (Side, []string) {
	var warnings []string
	keep := s
	keep.Runs = nil
	for _, m := range s.Runs {
		switch v := m.Summary.Verdict; {
		case v.Status == result.Voided:
			warnings = append(warnings, fmt.Sprintf("%s is void, do not compare its figures: %s.", m.Name, v.Why()))
			continue
		case m.Summary.Partial:
			warnings = append(warnings, m.Name+" is partial: it was stopped before its end.")
			continue
		case v.Status == result.Noted:
			warnings = append(warnings, fmt.Sprintf("%s is noted: %s.", m.Name, v.Why()))
		}
		keep.Runs = append(keep.Runs, m)
	}
	if len(keep.Runs) == 0 {
		return s, warnings
	}
	if left := len(s.Runs) - len(keep.Runs); left > 0 {
		warnings = append(warnings, fmt.Sprintf("%d of the %d runs of %s are left out of it.", left, len(s.Runs), s.Name))
	}
	return keep, warnings
}

// basis says how many independent observations a side is.
func (s Side) basis() string {
	if len(s.Runs) == 1 {
		return "1 run, one launch: no restart noise seen"
	}
	runs := fmt.Sprintf("%d runs", len(s.Runs))
	launches := map[string]bool{}
	for _, m := range s.Runs {
		launches[m.Launch] = true
	}
	switch {
	case s.Series:
		return runs + " of one series, taken for one launch: no restart noise seen"
	case launches[""]:
		return runs + "; whether the server was restarted between them is not recorded"
	case len(launches) == 1:
		return runs + " on one launch: no restart noise seen"
	}
	return fmt.Sprintf("%s on %d launches", runs, len(launches))
}

// figures are a side's, one a run, or why it has none of the definition.
func (s Side) figures(m result.Metric, d result.Definition) ([]float64, string) {
	var x []float64
	other, why := false, ""
	for i := range s.Runs {
		r := &s.Runs[i]
		if by, _ := r.by(m, d); by != nil {
			x = append(x, by.Figures[m.Name])
			continue
		}
		if _, ok := r.Summary.Figures[m.Name]; ok && r.Summary.Definition(m.Name) != d {
			other, why = true, r.unmade(m)
		}
	}
	switch {
	case len(x) == len(s.Runs):
		return x, ""
	case other && why != "":
		return nil, byAnother + ", and its calls do not give this one: " + why
	case other:
		return nil, byAnother
	case len(x) > 0:
		return nil, fmt.Sprintf("%d of %d runs have the figure", len(x), len(s.Runs))
	}
	return nil, "has no such figure"
}

// byAnother is why a figure is not compared, with a reason behind it where there is one.
const byAnother = "has the figure by another definition"

// Options choose what is compared.
type Options struct {
	Metrics []string // by name; nil: those of the block, with mean, median, p90, p95 and p99 of its latencies
	Also    []string // compared besides these
	All     bool     // every figure that a side has
	By      string   // key of the covariate in which the sides differ on purpose; "": found, if it is one
}
