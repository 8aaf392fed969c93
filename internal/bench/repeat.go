package bench

import (
	"math"
	"slices"

	"perflab/internal/result"
	"perflab/internal/stat"
)

// Repeat is a plan of n equal runs.
func Repeat(n int) LoadPlan {
	p := &fixedPlan{}
	for i := range n {
		p.steps = append(p.steps, Step{Load: Load{Same, float64(i + 1)}})
	}
	return p
}

// Spreads returns the spread of every figure that all usable points have, in
// the order of the metric table. Percentiles are not pooled: theirs is the
// mean of the runs' percentiles, which is no percentile of all calls.
func Spreads(points []Point) []result.Spread {
	points = slices.DeleteFunc(slices.Clone(points), func(p Point) bool { return !p.Usable() })
	var out []result.Spread
	for _, m := range metrics(points) {
		var x []float64
		for _, p := range points {
			if v, ok := p.Summary.Figures[m.Name]; ok {
				x = append(x, v)
			}
		}
		if len(x) == 0 || len(x) < len(points) {
			continue
		}
		s := result.Spread{Metric: m.Name, Label: m.Label, Runs: len(x), Mean: stat.Mean(x), Min: slices.Min(x), Max: slices.Max(x)}
		if m.Stat != "" && m.Stat != "mean" {
			s.Label = "mean of the runs' " + m.Label
		}
		if lo, hi, ok := stat.MeanCI(s.Mean, stat.StdDev(x), len(x), 0.95); ok {
			s.Low, s.High = &lo, &hi
			if n := float64(len(x)); s.Mean > 0 {
				cv := stat.StdDev(x) * math.Sqrt(n/(n-1)) / s.Mean
				s.CV = &cv
			}
		}
		out = append(out, s)
	}
	return out
}

// metrics is the metric table with the further percentiles that points have.
func metrics(points []Point) []result.Metric {
	table := result.Metrics()
	known := map[string]bool{}
	for _, m := range table {
		known[m.Name] = true
	}
	var more []string
	for _, p := range points {
		for name := range p.Summary.Figures {
			if !known[name] {
				known[name] = true
				more = append(more, name)
			}
		}
	}
	slices.Sort(more)
	for _, name := range more {
		if m, err := result.Lookup(name); err == nil {
			table = append(table, m)
		}
	}
	return table
}
