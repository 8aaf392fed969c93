package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"perflab/internal/result"
	"perflab/internal/stat"
)

// rowBuilder makes rows, each run's calls prepared once.
type rowBuilder struct {
	sides []Side
	runs  map[blockedKey]*blockedRun
}

// blockedKey is a run of a side, with the view whose definitions its samples follow.
type blockedKey struct {
	side, run int
	view      *View
}

// run is a run of a side as the figure of a definition has it.
func (b *rowBuilder) run(side, run int, m result.Metric, d result.Definition) *blockedRun {
	r := &b.sides[side].Runs[run]
	_, view := r.by(m, d)
	key := blockedKey{side, run, view}
	if b.runs[key] == nil {
		b.runs[key] = newBlockedRun(*r)
		b.runs[key].view = view
	}
	return b.runs[key]
}

// definitions are those by which a metric has rows: every one that a side has it by,
// but for that of a side which stands beside another one by a further one.
func (b *rowBuilder) definitions(m result.Metric) []result.Definition {
	var defs []result.Definition
	for _, s := range b.sides {
		for _, r := range s.Runs {
			if _, ok := r.Summary.Figures[m.Name]; ok && !slices.Contains(defs, r.Summary.Definition(m.Name)) {
				defs = append(defs, r.Summary.Definition(m.Name))
			}
		}
	}
	if len(defs) == 0 {
		return []result.Definition{result.Ours}
	}
	givers := map[result.Definition][]int{}
	beside := map[int]bool{} // another side, by some definition
	for _, d := range defs {
		for i, s := range b.sides {
			if x, _ := s.figures(m, d); x != nil {
				givers[d] = append(givers[d], i)
			}
		}
		if len(givers[d]) > 1 {
			for _, i := range givers[d] {
				beside[i] = true
			}
		}
	}
	return slices.DeleteFunc(defs, func(d result.Definition) bool {
		return len(givers[d]) == 1 && beside[givers[d][0]]
	})
}

// rows are those of one metric: one for each of its definitions, and an empty one when no
// side has it.
func (b *rowBuilder) rows(m result.Metric) []Row {
	defs := b.definitions(m)
	var out []Row
	for _, d := range defs {
		row := Row{Metric: m, Name: m.Name, Label: result.Label(m, b.definedAs(m, d)...), Unit: m.Unit, Better: m.Better.String(), Definition: d}
		for i := range b.sides {
			row.Cells = append(row.Cells, b.cell(m, d, i))
			if b.sides[i].anew(m, d) {
				row.Anew = append(row.Anew, b.sides[i].Name)
			}
		}
		out = append(out, row)
	}
	return out
}

// definedAs are the summaries that have a metric by a definition.
func (b *rowBuilder) definedAs(m result.Metric, d result.Definition) []*result.Summary {
	var out []*result.Summary
	for _, s := range b.sides {
		for i := range s.Runs {
			if x, _ := s.Runs[i].by(m, d); x != nil {
				out = append(out, x)
			} else if own := &s.Runs[i].Summary; own.Definition(m.Name) == d {
				out = append(out, own)
			}
		}
	}
	return out
}

// cell compares side i with the first one.
func (b *rowBuilder) cell(m result.Metric, d result.Definition, i int) Cell {
	x, why := b.sides[i].figures(m, d)
	if x == nil {
		return Cell{Why: b.sides[i].Name + " " + why}
	}
	out := Cell{Value: new(stat.Mean(x))}
	if i == 0 {
		if out.N = fmt.Sprintf("%d runs", len(x)); len(x) == 1 {
			out.N = "1 run"
		}
		return out
	}
	base, why := b.sides[0].figures(m, d)
	if base == nil {
		out.Why = b.sides[0].Name + " " + why
		return out
	}
	was, is := stat.Mean(base), *out.Value
	if was > 0 && is >= 0 {
		out.Ratio = new(is / was)
	}
	var r stat.Interval
	switch {
	case len(x) == 1 && len(base) == 1:
		r, why = b.withinRuns(m, d, i, was, is, &out)
	default:
		r, why = betweenRuns(base, x)
		if out.N = fmt.Sprintf("%d and %d runs", len(base), len(x)); why == "" {
			out.Ratio = new(r.Value)
		}
	}
	if is == was {
		out.Outcome = Equal
	}
	if why != "" {
		out.Outcome, out.Why = cmp.Or(out.Outcome, NoInterval), why
		return out
	}
	out.Low, out.High = new(r.Low), new(r.High)
	out.Outcome = cmp.Or(out.Outcome, outcome(m, r))
	return out
}

// betweenRuns has the runs for observations.
func betweenRuns(base, x []float64) (stat.Interval, string) {
	r, err := stat.RatioOfRuns(base, x, confidence)
	switch {
	case err != nil && slices.Max(base) == 0 && slices.Max(x) == 0:
		return r, "both are zero"
	case err != nil:
		return r, err.Error()
	}
	return r, ""
}

// withinRuns makes an interval of one run on each side, from their own blocks of
// time.
func (b *rowBuilder) withinRuns(m result.Metric, d result.Definition, i int, was, is float64, out *Cell) (stat.Interval, string) {
	if half := b.sides[0].Runs[0].Half[m.Name] + b.sides[i].Runs[0].Half[m.Name]; half > 0 && math.Abs(is-was) <= half*(1+1e-9) {
		out.Outcome, out.Why = Equal, "equal as printed"
		return stat.Interval{}, out.Why
	}
	first, other := b.run(0, 0, m, d), b.run(i, 0, m, d)
	n := commonBlocks(first.blocks, other.blocks)
	x, whyA := first.estimate(m, was, n)
	y, whyB := other.estimate(m, is, n)
	switch {
	case whyA != "" && whyA == whyB:
		return stat.Interval{}, whyA
	case whyA != "":
		return stat.Interval{}, b.sides[0].Name + ": " + whyA
	case whyB != "":
		return stat.Interval{}, b.sides[i].Name + ": " + whyB
	}
	r, blocks, err := stat.Ratio(x.Estimate, y.Estimate, confidence)
	if err != nil {
		return r, err.Error()
	}
	out.N = y.count(blocks, other.Summary.OneIn)
	// A schedule without chance would leave the ends of the runs as the only
	// difference, and that of any size.
	r.Low, r.High = r.Low/(1+tolerance), r.High*(1+tolerance)
	return r, ""
}

// outcome says what an interval shows.
func outcome(m result.Metric, r stat.Interval) Outcome {
	switch {
	case r.Low <= 1 && 1 <= r.High:
		return NoDifference
	case m.Better == result.Neither:
		return Differs
	case (r.Low > 1) == (m.Better == result.Higher):
		return Better
	}
	return Worse
}
