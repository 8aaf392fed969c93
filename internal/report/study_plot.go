package report

import (
	"fmt"
	"slices"
	"strings"

	"perflab/internal/outcome"
	"perflab/internal/report/plot"
	"perflab/internal/result"
	"perflab/internal/tune"
)

// Plots draws a study: the objective of every trial, baseline against
// recommendation on every workload, and throughput against time per token. A
// plot without data is left out. Of a race they are its comparisons, candidates,
// predictions and front.
func Plots(s outcome.Study) []plot.Plot {
	x := index(s)
	if x.Race != nil {
		return race{x}.plots() // launches under a part of the load are no bars beside the others
	}
	var out []plot.Plot
	of := studyPlot{x}
	for _, draw := range []func() (plot.Plot, bool){of.objectiveByTrial, of.casesByWorkload, of.tradeOff} {
		if p, ok := draw(); ok {
			out = append(out, p)
		}
	}
	return out
}

// studyPlot draws a study.
type studyPlot struct{ study }

// stageColours gives each stage of the trials a series, in order.
func (x studyPlot) stageColours() (names []string, of map[string]int) {
	of = map[string]int{}
	for _, t := range x.Trials {
		if _, ok := of[t.Stage]; !ok {
			of[t.Stage] = len(names)
			names = append(names, t.Stage)
		}
	}
	return names, of
}

func (x studyPlot) stageLegend(c *plot.Canvas, y float64) (height float64) {
	names, _ := x.stageColours()
	classes := make([]string, len(names))
	for i := range names {
		classes[i], names[i] = plot.SeriesClass(i), stageTitle(names[i])
	}
	return c.Legend(16, y, classes, names)
}

// objectiveByTrial is a bar per trial, in the order of measuring. A trial
// without a figure to believe is a hatched field with its status.
func (x studyPlot) objectiveByTrial() (plot.Plot, bool) {
	if len(x.Trials) == 0 {
		return plot.Plot{}, false
	}
	return plot.Sized("objective-by-trial", x.objective.Label+" by trial", x.Simulated, x.drawTrials), true
}

// drawTrials draws the bars of trials.
func (x studyPlot) drawTrials(c *plot.Canvas) {
	const bar, gap = 18, 8
	row := c.Pick(bar+gap, bar+gap+18)
	top := 44 + x.stageLegend(c, 48)
	c.H = top + row*float64(len(x.Trials)) + 52

	var most float64
	var labels []string
	for i := range x.Trials {
		v, _ := value(x.summaryOf(&x.Trials[i]), x.objective)
		most = max(most, v)
		labels = append(labels, plot.Clip(x.name(x.Trials[i].ID), 44))
	}
	const bold = 1.12 // letters of the marked trials are wider
	left := c.Pick(28+bold*plot.TextWidth(slices.MaxFunc(labels, func(a, b string) int { return len(a) - len(b) })), 16)
	base, based := 0.0, false
	after := ""
	if x.Baseline != nil {
		if base, based = value(x.Baseline.Summary, x.objective); based {
			after = "; the dashed line is the baseline"
		}
	}
	bars := x.valueAxis(c, left, top, max(most, base), after)
	if based {
		c.Line("ref", bars.At(base), top-4, bars.At(base), c.H-44)
	}
	for i := range x.Trials {
		x.trialBar(c, &x.Trials[i], labels[i], bars, left, top+row*float64(i+1)-bar-gap/2, bar)
	}
}

// valueAxis draws the grid of horizontal bars from left on.
func (x studyPlot) valueAxis(c *plot.Canvas, left, top, most float64, after string) plot.Scale {
	t := plot.Ticks(0, most, c.Few(5))
	s := plot.Scale{Hi: t[len(t)-1], From: left, To: c.W - c.Pick(190, 108)}
	for _, v := range t {
		c.Line("g", s.At(v), top-4, s.At(v), c.H-44)
		c.Text("m", s.At(v), c.H-28, "middle", plot.TickLabel(v, t))
	}
	c.Under((s.From+s.To)/2, c.H-10, x.axis(x.objective)+after)
	return s
}

// axis titles an axis: the label with the direction that is better.
func (x studyPlot) axis(m result.Metric) string {
	switch {
	case m.Name == x.objective.Name && x.lower(), m.Better == result.Lower:
		return m.Label + ", lower is better"
	case m.Name == x.objective.Name, m.Better == result.Higher:
		return m.Label + ", higher is better"
	}
	return m.Label
}

func (x studyPlot) trialBar(c *plot.Canvas, t *outcome.Trial, label string, s plot.Scale, left, y, h float64) {
	_, colour := x.stageColours()
	role := x.role(t.ID)
	class := ""
	if role != "" {
		class = "b"
	}
	c.Named(class, left, y, h, label, 44)
	sum := x.summaryOf(t)
	v, ok := value(sum, x.objective)
	tip := fmt.Sprintf("%s: %s (%s)", x.name(t.ID), quantity(sum, x.objective), t.Stage)
	if !ok || t.Status != tune.Measured {
		word := statusWord(t.Status)
		if t.Status == tune.Measured {
			word = missing
		}
		c.Hatched(left, y, s.At(s.Hi)-left, h, x.name(t.ID)+": "+word+". "+t.Reason)
		c.Text("m", s.To+8, y+h-5, "start", word)
		return
	}
	c.Rect(plot.SeriesClass(colour[t.Stage]), left, y, s.At(v)-left, h, tip)
	text := number(sum, x.objective)
	switch {
	case role == "recommended" && c.Narrow():
		text += " ★"
	case role == "recommended":
		text += "  ★ recommended"
	case role != "" && !c.Narrow():
		text += "  " + role
	}
	c.Text(class, s.At(v)+8, y+h-5, "start", text)
}

// casesByWorkload is a pair of bars per workload: baseline and recommendation.
func (x studyPlot) casesByWorkload() (plot.Plot, bool) {
	var most float64
	left := 0.0
	for _, k := range x.Cases {
		a, _ := value(k.Baseline, x.objective)
		b, _ := value(k.Recommended, x.objective)
		most = max(most, a, b)
		left = max(left, 28+plot.TextWidth(plot.Clip(x.workload(k.Workload), 40)))
	}
	if most == 0 {
		return plot.Plot{}, false
	}
	title := x.objective.Label + ": baseline and recommendation by workload"
	return plot.Sized("baseline-and-recommended", title, x.Simulated, func(c *plot.Canvas) { x.drawCases(c, c.Pick(left, 16), most) }), true
}

// drawCases draws the pairs of bars.
func (x studyPlot) drawCases(c *plot.Canvas, left, most float64) {
	const bar = 18
	row := c.Pick(56, 70)
	top := 44 + c.Legend(16, 48, []string{"base", "best"}, x.sides())
	c.H = top + row*float64(len(x.Cases)) + 48
	s := x.valueAxis(c, left, top, most, "")
	for i, k := range x.Cases {
		y := top + row*float64(i) + c.Pick(6, 20)
		if c.Narrow() {
			c.Named("b", left, y, bar, x.workload(k.Workload), 40)
		} else {
			c.Text("b", left-8, y+bar+4, "end", plot.Clip(x.workload(k.Workload), 40))
		}
		x.caseBar(c, "base", "", k.Baseline, s, y, bar, "")
		x.caseBar(c, "best", "b", k.Recommended, s, y+bar+2, bar, strings.Repeat(" ", int(c.Pick(2, 1)))+x.gain(k.Gain))
	}
}

// sides names both sides of the comparison.
func (x studyPlot) sides() []string {
	n := []string{"Baseline", x.standing().word}
	for i, p := range []*outcome.Pick{x.Baseline, x.Recommended} {
		if p != nil {
			n[i] += ": " + p.Label
		}
	}
	return n
}

func (x studyPlot) caseBar(c *plot.Canvas, class, weight string, sum *result.Summary, s plot.Scale, y, h float64, after string) {
	v, ok := value(sum, x.objective)
	if !ok {
		c.Hatched(s.From, y, s.To-s.From, h, missing)
		c.Text("m", s.To+8, y+h-5, "start", missing)
		return
	}
	c.Rect(class, s.From, y, s.At(v)-s.From, h, quantity(sum, x.objective))
	c.Text(weight, s.At(v)+8, y+h-5, "start", number(sum, x.objective)+after)
}

// tradeOff is a point per measured trial: what a throughput costs in time per
// token.
func (x studyPlot) tradeOff() (plot.Plot, bool) {
	mx, my := metric("mean_tpot_ms"), x.objective
	if my.Unit == "ms" || my.Unit == "s" {
		my = metric("total_token_throughput")
	}
	var pts []trialPoint
	var xm, ym float64
	for i := range x.Trials {
		t := &x.Trials[i]
		a, ok := value(x.summaryOf(t), mx)
		b, ok2 := value(x.summaryOf(t), my)
		if ok && ok2 && t.Status == tune.Measured {
			pts, xm, ym = append(pts, trialPoint{t, a, b}), max(xm, a), max(ym, b)
		}
	}
	if len(pts) < 2 {
		return plot.Plot{}, false
	}
	return plot.Sized("throughput-and-tpot", my.Label+" against "+mx.Label, x.Simulated, func(c *plot.Canvas) { x.drawTradeOff(c, pts, mx, my, xm, ym) }), true
}

// trialPoint is a trial with its two figures.
type trialPoint struct {
	t    *outcome.Trial
	x, y float64
}

// drawTradeOff draws the points of trials.
func (x studyPlot) drawTradeOff(c *plot.Canvas, pts []trialPoint, mx, my result.Metric, xm, ym float64) {
	c.H = 460
	top := 44 + x.stageLegend(c, 48)
	_, colour := x.stageColours()
	f := plot.Axes(c, 84, top, c.Pick(40, 26), 60, plot.Ticks(0, xm*1.05, c.Few(8)), plot.Ticks(0, ym*1.05, 6), x.axis(mx), x.axis(my))
	var labels []plot.Label
	for _, p := range pts {
		l := plot.Label{X: f.X.At(p.x), Y: f.Y.At(p.y), Text: fmt.Sprintf("#%d", p.t.ID), Class: "m"}
		sum := x.summaryOf(p.t)
		c.Circle(plot.SeriesClass(colour[p.t.Stage]), l.X, l.Y, 6, fmt.Sprintf("%s: %s, mean TPOT %s", x.name(p.t.ID), quantity(sum, my), quantity(sum, mx)))
		if role := x.role(p.t.ID); role != "" {
			c.Circle("ring", l.X, l.Y, 9, "")
			l.Text, l.Class = l.Text+" "+role, "b"
		}
		labels = append(labels, l)
	}
	slices.SortStableFunc(labels, func(a, b plot.Label) int { return strings.Compare(a.Class, b.Class) }) // b before m: those that matter choose first
	c.NamePoints(labels)
}
