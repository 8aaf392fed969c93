package audit

import (
	"cmp"
	"math"
	"slices"

	"perflab/internal/interop"
	"perflab/internal/result"
)

// figures are those of one run, as intervals by name.
type figures struct {
	run      *interop.Run
	by       map[string]interop.Figure
	families []*spread
	file     *interop.File // that the run is of
	options  Options
	stated   []statedLengths // by the text of the file
}

// figuresOf indexes the figures of a run. What is no number is left out: the
// reader has said so.
func figuresOf(r *interop.Run) figures {
	g := figures{run: r, by: map[string]interop.Figure{}}
	for _, f := range r.Figures {
		if !math.IsNaN(f.Value) && !math.IsInf(f.Value, 0) {
			g.by[f.Name] = f
		}
	}
	return g
}

// get returns the interval of a figure.
func (g figures) get(name string) (Interval, bool) {
	f, ok := g.by[name]
	return of(f), ok
}

// all returns the intervals of figures where the run has every one.
func (g figures) all(names ...string) ([]Interval, bool) {
	out := make([]Interval, len(names))
	for i, name := range names {
		v, ok := g.get(name)
		if !ok {
			return nil, false
		}
		out[i] = v
	}
	return out, true
}

// text is the number of a figure as the file has it.
func (g figures) text(name string) string { return g.by[name].Text }

// definition is how a figure was made.
func (g figures) definition(name string) result.Definition { return g.run.Definition(name) }

// finding is about the named figures, the first of which is its place.
func (g figures) finding(kind string, s Severity, expected, text string, names ...string) Finding {
	f := Finding{Type: kind, Severity: s, Place: g.run.Place, Expected: expected, Text: text, Run: g.run}
	for i, name := range names {
		fig, ok := g.by[name]
		if !ok {
			continue
		}
		if i == 0 && fig.Line > 0 {
			f.Place.Line, f.Place.End = fig.Line, 0
		}
		f.Figures = append(f.Figures, Cite(fig))
	}
	return f
}

// outputPerRequest is the mean number of output tokens of a request.
func (g figures) outputPerRequest() (Interval, bool) {
	v, ok := g.all("total_output_tokens", "completed")
	if !ok || v[1].Lo < 1 {
		return Interval{}, false
	}
	return v[0].Over(v[1]), true
}

// quantile is one statistic of a family and its place in the distribution.
type quantile struct {
	at   float64 // 0 the smallest, 0.5 the median, 1 the largest
	name string
	v    Interval
}

// spread is what a run says of the distribution of one family.
type spread struct {
	family    string
	quantiles []quantile // by place
	mean, std string     // names; "" where absent
}

// spreads groups the figures of families, in the order of the file.
func (g figures) spreads() []*spread {
	var out []*spread
	for _, f := range g.run.Figures {
		m, err := result.Lookup(f.Name)
		if err != nil || m.Family == "" {
			continue
		}
		v, ok := g.get(f.Name)
		if !ok {
			continue
		}
		i := slices.IndexFunc(out, func(s *spread) bool { return s.family == m.Family })
		if i < 0 {
			i = len(out)
			out = append(out, &spread{family: m.Family})
		}
		s := out[i]
		at := -1.0
		switch m.Stat {
		case "mean":
			s.mean = f.Name
		case "std":
			s.std = f.Name
		case "min":
			at = 0
		case "median":
			at = 0.5
		case "max":
			at = 1
		default:
			if p, ok := result.Percentile(f.Name); ok {
				at = p / 100
			}
		}
		if at >= 0 {
			s.quantiles = append(s.quantiles, quantile{at, f.Name, v})
		}
	}
	for _, s := range out {
		slices.SortStableFunc(s.quantiles, func(a, b quantile) int { return cmp.Compare(a.at, b.at) })
	}
	return out
}

// statedLengths are lengths of prompt and answer as a text has them.
type statedLengths struct{ in, out float64 }
