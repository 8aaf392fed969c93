package report

import (
	"fmt"

	"perflab/internal/compare"
	"perflab/internal/report/plot"
	"perflab/internal/result"
)

// ratioPlots draws each later side beside the first.
func ratioPlots(c compare.Comparison) []plot.Plot {
	var out []plot.Plot
	for i := 1; i < len(c.Sides); i++ {
		if p, ok := ratioPlot(c, i); ok {
			out = append(out, p)
		}
	}
	return out
}

// ratioPlot draws the ratio of each figure of side i to the first side, with
// its interval, on a logarithmic axis around 1.
func ratioPlot(c compare.Comparison, i int) (plot.Plot, bool) {
	var rows []plot.Ratio
	for _, r := range pairRows(c, i) {
		x := r.Cells[i]
		if x.Ratio == nil || !(*x.Ratio > 0) || r.Metric.Better == result.Neither {
			continue
		}
		k := plot.Ratio{Name: r.Label, Class: "base", Value: *x.Ratio, Basis: x.N}
		if class, ok := map[compare.Outcome]string{compare.Better: "best", compare.Worse: "bad", compare.NoInterval: "void"}[x.Outcome]; ok {
			k.Class = class
		}
		if x.Low != nil {
			k.Low, k.High = *x.Low, *x.High
		}
		rows = append(rows, k)
	}
	if len(rows) == 0 {
		return plot.Plot{}, false
	}
	title := fmt.Sprintf("%s, ratio to %s", plot.Clip(c.Sides[i].Name, 40), plot.Clip(c.Sides[0].Name, 40))
	return plot.RatiosAround1(fmt.Sprintf("ratio-%d", i), title, c.Simulated || c.Predicted, []string{"best", "bad", "base", "void"}, []string{"better", "worse", "no difference shown, or equal", "no interval"}, rows), true
}
