package report

import (
	"fmt"
	"math"

	"perflab/internal/result"
)

// ratioPlot draws the ratio of each figure of side i to the first side, with
// its interval, on a logarithmic axis around 1.
func ratioPlot(c result.Comparison, i int) (Plot, bool) {
	var rows []result.Row
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
		return Plot{}, false
	}
	const line, top, left, right = 22.0, 74.0, 270.0, 140.0
	reach = min(1.05*reach, math.Log(100))
	title := fmt.Sprintf("%s, ratio to %s", clip(c.Sides[i].Name, 40), clip(c.Sides[0].Name, 40))
	k := &canvas{name: fmt.Sprintf("ratio-%d", i), w: 2 * halfWidth, h: top + line*float64(len(rows)) + 48}
	k.head(title, c.Simulated || c.Predicted)
	k.legend(16, 48, []string{"best", "bad", "base", "void"}, []string{"better", "worse", "no difference shown, or equal", "no interval"})
	x := scale{-reach, reach, left, k.w - right}
	at := func(v float64) float64 { return x.at(max(-reach, min(reach, math.Log(v)))) }
	bottom := k.h - 40
	for _, v := range ratioTicks(reach) {
		k.line("g", at(v), top-8, at(v), bottom)
		k.text("m", at(v), bottom+18, "middle", fmt.Sprintf("%gx", v))
	}
	k.line("ref", at(1), top-8, at(1), bottom)
	for j, r := range rows {
		ratioRow(k, r, r.Cells[i], top+line*float64(j)+6, left, at)
	}
	return k.plot(title), true
}

// ratioRow draws one figure: its name, the interval as a bar, the ratio as a
// dot, hollow where there is no interval.
func ratioRow(k *canvas, r result.Row, x result.Cell, y, left float64, at func(float64) float64) {
	class := map[result.Outcome]string{result.OutcomeBetter: "best", result.OutcomeWorse: "bad", result.OutcomeNo: "void"}[x.Outcome]
	if class == "" {
		class = "base"
	}
	k.text("m", left-12, y+4, "end", clip(r.Label, 38))
	tip := fmt.Sprintf("%s: %s", r.Label, times(*x.Ratio))
	text := times(*x.Ratio)
	if x.Low != nil {
		tip += fmt.Sprintf(", 95 %% interval %s to %s, %s", times(*x.Low), times(*x.High), x.N)
		k.rect(class, at(*x.Low), y-3, at(*x.High)-at(*x.Low), 6, tip)
	} else {
		tip += ", no interval"
		text += " ?"
	}
	k.circle(class, at(*x.Ratio), y, 5, tip)
	k.text("", k.w-16, y+4, "end", text)
}

// ratioTicks are round ratios within exp(±reach).
func ratioTicks(reach float64) []float64 {
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
