package interop

import (
	"cmp"
	"slices"
	"strconv"

	"perflab/internal/result"
)

// Stored returns the run of a run directory: its figures as they are in the
// summary, exact unless they were imported from where they were rounded.
func Stored(place Place, h result.Header, s result.Summary, calls []result.Call) Run {
	r := Run{Place: place, Header: h, Defs: s.Definitions, Calls: calls, Sim: s.Simulated}
	if h.Imported != nil {
		r.Lacks = h.Imported.Lacks
	}
	rank := map[string]int{}
	for i, m := range result.Metrics() {
		rank[m.Name] = i + 1
	}
	for name, v := range s.Figures {
		m, err := result.Lookup(name)
		if err != nil {
			r.Other = append(r.Other, Pair{Label: name, Text: strconv.FormatFloat(v, 'f', -1, 64)})
			continue
		}
		f := Figure{Name: name, Label: m.Label, Text: strconv.FormatFloat(v, 'f', m.Decimals, 64), Value: v}
		if h.Imported != nil {
			f.Half = h.Imported.Rounding[name]
		}
		r.Figures = append(r.Figures, f)
	}
	slices.SortFunc(r.Figures, func(a, b Figure) int {
		return cmp.Or(cmp.Compare(rank[a.Name], rank[b.Name]), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(r.Other, func(a, b Pair) int { return cmp.Compare(a.Label, b.Label) })
	return r
}

// Rounding is what Stored needs to know of the figures besides the summary:
// see result.Imported.
func (r *Run) Rounding() map[string]float64 {
	out := map[string]float64{}
	for _, f := range r.Figures {
		if f.Half > 0 {
			out[f.Name] = f.Half
		}
	}
	return out
}
