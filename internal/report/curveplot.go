package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"perflab/internal/report/plot"
	"perflab/internal/result"
)

// curveLine is a figure that a plot draws over load.
type curveLine struct {
	metric result.Metric
	name   string
	of     func(*CurvePoint) (float64, bool) // nil: the metric's
}

// value is the line's figure at a point, and whether it is there.
func (l curveLine) value(p *CurvePoint) (float64, bool) {
	if l.of != nil {
		return l.of(p)
	}
	return value(&p.Summary, l.metric)
}

// tip says what a mark stands for.
func (l curveLine) tip(p *CurvePoint, v float64) string {
	text := fmt.Sprintf("%s: %s %.*f", p.Load, l.metric.Label, l.metric.Decimals, v)
	if l.of != nil {
		text = fmt.Sprintf("%s: %s %s %s", p.Load, l.name, rate(v), l.metric.Unit)
	}
	switch {
	case p.Void:
		text += " (void)"
	case p.Partial:
		text += " (stopped before its end)"
	case p.behind() != "":
		text += " (" + p.behind() + ")"
	}
	return text
}

// CurvePlots draws throughput and latencies over load with the limits of SLOs,
// and latency against throughput. A plot without data is left out.
func CurvePlots(c Curve) []plot.Plot {
	c.Points = slices.Clone(c.Points)
	slices.SortStableFunc(c.Points, func(a, b CurvePoint) int { return cmp.Compare(a.X, b.X) })
	loads := func(p *CurvePoint) (float64, bool) { return p.X, !math.IsInf(p.X, 0) && !math.IsNaN(p.X) }
	output := metric("output_throughput")
	flow := func(p *CurvePoint) (float64, bool) { return value(&p.Summary, output) }
	axisName := cmp.Or(c.Axis, "Load")
	percentiles := func(family string) []curveLine {
		return []curveLine{{metric("median_" + family + "_ms"), "median", nil}, {metric("p99_" + family + "_ms"), "p99", nil}}
	}
	var out []plot.Plot
	add := func(p plot.Plot, ok bool) {
		if ok {
			out = append(out, p)
		}
	}
	achieved := func(p *CurvePoint) (float64, bool) { return p.Achieved, p.Achieved > 0 }
	add(c.plot("request-rate", "Requests per second", axisName, loads, []curveLine{{metric("request_throughput"), "achieved", achieved}}, c.Offered))
	add(c.plot("output-rate", "Output tokens per second", axisName, loads, []curveLine{{output, "mean over the run", nil}, {metric("steady_output_throughput"), "steady window", nil}}, false))
	add(c.plot("ttft", "TTFT", axisName, loads, percentiles("ttft"), false))
	add(c.plot("tpot", "TPOT", axisName, loads, percentiles("tpot"), false))
	add(c.plot("e2e", "E2E latency", axisName, loads, percentiles("e2el"), false))
	add(c.plot("trade", "TTFT against throughput", output.Label, flow, percentiles("ttft"), false))
	return out
}

// plot draws lines over x, which some points may not have, with the limits
// that SLOs set on what is drawn; ideal adds the line y = x.
func (c Curve) plot(name, title, xtitle string, x func(*CurvePoint) (float64, bool), lines []curveLine, ideal bool) (plot.Plot, bool) {
	lo, hi := [2]float64{math.Inf(1), math.Inf(1)}, [2]float64{}
	drawn, sim := 0, false
	stretch := func(k int, v float64) { lo[k], hi[k] = min(lo[k], v), max(hi[k], v) }
	for i := range c.Points {
		p := &c.Points[i]
		sim = sim || p.Summary.Simulated
		a, ok := x(p)
		some := false
		for _, l := range lines {
			if b, is := l.value(p); ok && is {
				stretch(0, a)
				stretch(1, b)
				some = p.usable()
			}
		}
		if some {
			drawn++
		}
	}
	if drawn < 2 {
		return plot.Plot{}, false
	}
	limits := c.limits(lines)
	for _, slo := range limits {
		stretch(1, slo.Limit)
	}
	ax, ay := plot.Fit(lo[0], hi[0], 7), plot.Fit(lo[1], hi[1], 7)
	if ideal { // one range, so that y = x is straight
		ax = plot.Fit(min(lo[0], lo[1]), max(hi[0], hi[1]), 7)
		ay = ax
	}
	if lines[0].metric.Unit == "ms" {
		ay = ay.Milliseconds()
	}
	classes, names := c.keys(lines, ideal)
	chart := plot.Curves{Name: "curve-" + name, Title: title, Simulated: sim, X: ax, Y: ay, XTitle: xtitle, Diagonal: ideal, Classes: classes, Names: names}
	for i, l := range lines {
		chart.Lines = append(chart.Lines, l.line(c.Points, []string{"0", "2"}[i], x))
	}
	for _, slo := range limits {
		chart.Limits = append(chart.Limits, plot.Limit{At: slo.Limit, Text: slo.String()})
	}
	return chart.Draw(), true
}

// keys are the swatches and names of a legend: of the lines that have a point,
// and of what else the plot shows.
func (c Curve) keys(lines []curveLine, ideal bool) (classes, names []string) {
	for i, l := range lines {
		if slices.ContainsFunc(c.Points, func(p CurvePoint) bool { _, ok := l.value(&p); return ok }) {
			classes, names = append(classes, []string{"s0", "s2"}[i]), append(names, l.name)
		}
	}
	if ideal {
		classes, names = append(classes, "bg"), append(names, "dashed: as offered")
	}
	var behind []string
	for _, word := range []string{"saturated", "capped"} {
		if slices.ContainsFunc(c.Points, func(p CurvePoint) bool { return p.behind() == word }) {
			behind = append(behind, word)
		}
	}
	if len(behind) > 0 {
		classes, names = append(classes, "ring"), append(names, "ringed: "+strings.Join(behind, " or "))
	}
	if slices.ContainsFunc(c.Points, func(p CurvePoint) bool { return !p.usable() }) {
		classes, names = append(classes, "void"), append(names, "hollow: void or partial")
	}
	return classes, names
}

// limits are the SLOs on the metrics of a plot or on their family.
func (c Curve) limits(lines []curveLine) []result.SLO {
	var out []result.SLO
	for _, slo := range c.SLOs {
		m := metric(slo.Metric)
		if slices.ContainsFunc(lines, func(l curveLine) bool {
			return l.metric.Name == m.Name || m.Family != "" && l.metric.Family == m.Family
		}) {
			out = append(out, slo)
		}
	}
	return out
}

// line is the figure over the points, a mark each: ringed where the rate
// fell behind what was offered, hollow and off the line where the run is not to be concluded from. A
// point without the figure is a gap.
func (l curveLine) line(points []CurvePoint, colour string, x func(*CurvePoint) (float64, bool)) plot.CurveLine {
	out := plot.CurveLine{Colour: colour}
	apart := false
	for i := range points {
		p := &points[i]
		a, ok := x(p)
		b, is := l.value(p)
		switch {
		case ok && is:
			m := plot.Mark{Point: plot.Point{X: a, Y: b, Apart: apart}, Ringed: p.behind() != "", Hollow: !p.usable(), Tip: l.tip(p, b)}
			out.Marks = append(out.Marks, m)
			apart = apart && !p.usable()
		case p.usable():
			apart = true
		}
	}
	return out
}
