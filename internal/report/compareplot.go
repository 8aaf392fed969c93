package report

import (
	"fmt"
	"math"

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
	var rows []compare.Row
	reach := math.Log(1.02)
	for _, r := range pairRows(c, i) {
		x := r.Cells[i]
		if x.Ratio == nil || !(*x.Ratio > 0) || r.Metric.Better == result.Neither {
			continue
		}
		rows = append(rows, r)
		reach = max(reach, math.Abs(math.Log(*x.Ratio)))
		if x.Low != nil {
			reach = max(reach, math.Abs(math.Log(*x.Low)), math.Abs(math.Log(*x.High)))
		}
	}
	if len(rows) == 0 {
		return plot.Plot{}, false
	}
	const line, top, left, right = 22.0, 74.0, 270.0, 140.0
	reach = min(1.05*reach, math.Log(100))
	title := fmt.Sprintf("%s, ratio to %s", plot.Clip(c.Sides[i].Name, 40), plot.Clip(c.Sides[0].Name, 40))
	k := &plot.Canvas{Name: fmt.Sprintf("ratio-%d", i), W: 2 * plot.HalfWidth, H: top + line*float64(len(rows)) + 48}
	k.Head(title, c.Simulated || c.Predicted)
	k.Legend(16, 48, []string{"best", "bad", "base", "void"}, []string{"better", "worse", "no difference shown, or equal", "no interval"})
	x := plot.Scale{Lo: -reach, Hi: reach, From: left, To: k.W - right}
	at := func(v float64) float64 { return x.At(max(-reach, min(reach, math.Log(v)))) }
	bottom := k.H - 40
	for _, v := range ticksAround1(reach) {
		k.Line("g", at(v), top-8, at(v), bottom)
		k.Text("m", at(v), bottom+18, "middle", fmt.Sprintf("%gx", v))
	}
	k.Line("ref", at(1), top-8, at(1), bottom)
	for j, r := range rows {
		drawRatio(k, r, r.Cells[i], top+line*float64(j)+6, left, at)
	}
	return k.Plot(title), true
}

// drawRatio draws one figure: its name, the interval as a bar, the ratio as a
// dot, hollow where there is no interval.
func drawRatio(k *plot.Canvas, r compare.Row, x compare.Cell, y, left float64, at func(float64) float64) {
	class := map[compare.Outcome]string{compare.Better: "best", compare.Worse: "bad", compare.NoInterval: "void"}[x.Outcome]
	if class == "" {
		class = "base"
	}
	k.Text("m", left-12, y+4, "end", plot.Clip(r.Label, 38))
	tip := fmt.Sprintf("%s: %s", r.Label, plot.Times(*x.Ratio))
	text := plot.Times(*x.Ratio)
	if x.Low != nil {
		tip += fmt.Sprintf(", 95 %% interval %s to %s, %s", plot.Times(*x.Low), plot.Times(*x.High), x.N)
		k.Rect(class, at(*x.Low), y-3, at(*x.High)-at(*x.Low), 6, tip)
	} else {
		tip += ", no interval"
		text += " ?"
	}
	k.Circle(class, at(*x.Ratio), y, 5, tip)
	k.Text("", k.W-16, y+4, "end", text)
}

// ticksAround1 are round ratios within exp(±reach).
func ticksAround1(reach float64) []float64 {
	for _, steps := range [][]float64{{1.005, 1.01, 1.015, 1.02}, {1.01, 1.02, 1.03, 1.04}, {1.02, 1.05, 1.1}, {1.05, 1.1, 1.2}, {1.1, 1.25, 1.5}, {1.25, 1.5, 2}, {1.5, 2, 3, 5}, {2, 5, 10}, {3, 10, 30, 100}} {
		if math.Exp(reach) > steps[len(steps)-1]*1.15 && steps[0] < 3 {
			continue
		}
		out := []float64{1}
		for _, s := range steps {
			if math.Log(s) <= reach {
				out = append(out, s, math.Round(1e4/s)/1e4)
			}
		}
		return out
	}
	return []float64{1}
}
