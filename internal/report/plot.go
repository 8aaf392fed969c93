package report

import (
	"fmt"
	"slices"
	"strings"

	"perflab/internal/result"
	"perflab/internal/tune"
)

const plotWidth = 880

// Plots draws a study: the objective of every trial, baseline against
// recommendation on every workload, and throughput against time per token. A
// plot without data is left out. Of a race they are its comparisons, arms,
// predictions and front.
func Plots(s result.Study) []Plot {
	x := index(s)
	if r := x.raced(); r != nil {
		return racePlots(r) // launches under a part of the load are no bars beside the others
	}
	var out []Plot
	for _, draw := range []func(study) (Plot, bool){objectiveByTrial, casesByWorkload, tradeOff} {
		if p, ok := draw(x); ok {
			out = append(out, p)
		}
	}
	return out
}

// stageColours gives each stage of the trials a series, in order.
func (x study) stageColours() (names []string, of map[string]int) {
	of = map[string]int{}
	for _, t := range x.Trials {
		if _, ok := of[t.Stage]; !ok {
			of[t.Stage] = len(names)
			names = append(names, t.Stage)
		}
	}
	return names, of
}

func seriesClass(i int) string { return fmt.Sprintf("s%d", i%series) }

func (x study) stageLegend(c *canvas, y float64) (height float64) {
	names, _ := x.stageColours()
	classes := make([]string, len(names))
	for i := range names {
		classes[i], names[i] = seriesClass(i), stageTitle(names[i])
	}
	return c.legend(16, y, classes, names)
}

// objectiveByTrial is a bar per trial, in the order of measuring. A trial
// without a figure to believe is a hatched field with its status.
func objectiveByTrial(x study) (Plot, bool) {
	if len(x.Trials) == 0 {
		return Plot{}, false
	}
	const row, gap = 26, 8
	title := x.objective.Label + " by trial"
	c := &canvas{name: "objective-by-trial", w: plotWidth}
	c.head(title, x.Simulated)
	top := 44 + x.stageLegend(c, 48)
	c.h = top + row*float64(len(x.Trials)) + 52

	var most float64
	var labels []string
	for i := range x.Trials {
		v, _ := value(x.summary(&x.Trials[i]), x.objective)
		most = max(most, v)
		labels = append(labels, clip(x.name(x.Trials[i].ID), 44))
	}
	const bold = 1.12 // letters of the marked trials are wider
	left := 28 + bold*textWidth(slices.MaxFunc(labels, func(a, b string) int { return len(a) - len(b) }))
	base, based := 0.0, false
	after := ""
	if x.Baseline != nil {
		if base, based = value(x.Baseline.Summary, x.objective); based {
			after = "; the dashed line is the baseline"
		}
	}
	bars := x.valueAxis(c, left, top, max(most, base), after)
	if based {
		c.line("ref", bars.at(base), top-4, bars.at(base), c.h-44)
	}
	for i := range x.Trials {
		x.trialBar(c, &x.Trials[i], labels[i], bars, left, top+row*float64(i)+gap/2, row-gap)
	}
	return c.plot(title), true
}

// valueAxis draws the grid of horizontal bars from left on.
func (x study) valueAxis(c *canvas, left, top, most float64, after string) scale {
	t := ticks(0, most, 5)
	s := scale{0, t[len(t)-1], left, c.w - 190}
	for _, v := range t {
		c.line("g", s.at(v), top-4, s.at(v), c.h-44)
		c.text("m", s.at(v), c.h-28, "middle", tickLabel(v, t))
	}
	c.text("m", (s.from+s.to)/2, c.h-10, "middle", x.axis(x.objective)+after)
	return s
}

// axis titles an axis: the label with the direction that is better.
func (x study) axis(m result.Metric) string {
	switch {
	case m.Name == x.objective.Name && x.lower(), m.Better == result.Lower:
		return m.Label + ", lower is better"
	case m.Name == x.objective.Name, m.Better == result.Higher:
		return m.Label + ", higher is better"
	}
	return m.Label
}

func (x study) trialBar(c *canvas, t *result.Trial, label string, s scale, left, y, h float64) {
	_, colour := x.stageColours()
	role := x.role(t.ID)
	class := ""
	if role != "" {
		class = "b"
	}
	c.text(class, left-8, y+h-5, "end", label)
	sum := x.summary(t)
	v, ok := value(sum, x.objective)
	tip := fmt.Sprintf("%s: %s (%s)", x.name(t.ID), quantity(sum, x.objective), t.Stage)
	if !ok || t.Status != tune.Measured {
		word := statusWord(t.Status)
		if t.Status == tune.Measured {
			word = missing
		}
		c.hatched(left, y, s.at(s.hi)-left, h, x.name(t.ID)+": "+word+". "+t.Reason)
		c.text("m", s.to+8, y+h-5, "start", word)
		return
	}
	c.rect(seriesClass(colour[t.Stage]), left, y, s.at(v)-left, h, tip)
	text := number(sum, x.objective)
	if role == "recommended" {
		text += "  ★ recommended"
	} else if role != "" {
		text += "  " + role
	}
	c.text(class, s.at(v)+8, y+h-5, "start", text)
}

// casesByWorkload is a pair of bars per workload: baseline and recommendation.
func casesByWorkload(x study) (Plot, bool) {
	var most float64
	left := 0.0
	for _, k := range x.Cases {
		a, _ := value(k.Baseline, x.objective)
		b, _ := value(k.Recommended, x.objective)
		most = max(most, a, b)
		left = max(left, 28+textWidth(clip(x.workload(k.Workload), 40)))
	}
	if most == 0 {
		return Plot{}, false
	}
	const row, bar = 56, 18
	title := x.objective.Label + ": baseline and recommendation by workload"
	c := &canvas{name: "baseline-and-recommended", w: plotWidth}
	c.head(title, x.Simulated)
	top := 44 + c.legend(16, 48, []string{"base", "best"}, x.sides())
	c.h = top + row*float64(len(x.Cases)) + 48
	s := x.valueAxis(c, left, top, most, "")
	for i, k := range x.Cases {
		y := top + row*float64(i) + 6
		c.text("b", left-8, y+bar+4, "end", clip(x.workload(k.Workload), 40))
		x.caseBar(c, "base", "", k.Baseline, s, y, bar, "")
		x.caseBar(c, "best", "b", k.Recommended, s, y+bar+2, bar, "  "+x.gain(k.Gain))
	}
	return c.plot(title), true
}

// sides names both sides of the comparison.
func (x study) sides() []string {
	n := []string{"Baseline", "Recommended"}
	for i, p := range []*result.Pick{x.Baseline, x.Recommended} {
		if p != nil {
			n[i] += ": " + p.Label
		}
	}
	return n
}

func (x study) caseBar(c *canvas, class, weight string, sum *result.Summary, s scale, y, h float64, after string) {
	v, ok := value(sum, x.objective)
	if !ok {
		c.hatched(s.from, y, s.to-s.from, h, missing)
		c.text("m", s.to+8, y+h-5, "start", missing)
		return
	}
	c.rect(class, s.from, y, s.at(v)-s.from, h, quantity(sum, x.objective))
	c.text(weight, s.at(v)+8, y+h-5, "start", number(sum, x.objective)+after)
}

// tradeOff is a point per measured trial: what a throughput costs in time per
// token.
func tradeOff(x study) (Plot, bool) {
	mx, my := metric("mean_tpot_ms"), x.objective
	if my.Unit == "ms" || my.Unit == "s" {
		my = metric("total_token_throughput")
	}
	type point struct {
		t    *result.Trial
		x, y float64
	}
	var pts []point
	var xm, ym float64
	for i := range x.Trials {
		t := &x.Trials[i]
		a, ok := value(x.summary(t), mx)
		b, ok2 := value(x.summary(t), my)
		if ok && ok2 && t.Status == tune.Measured {
			pts, xm, ym = append(pts, point{t, a, b}), max(xm, a), max(ym, b)
		}
	}
	if len(pts) < 2 {
		return Plot{}, false
	}
	title := my.Label + " against " + mx.Label
	c := &canvas{name: "throughput-and-tpot", w: plotWidth, h: 460}
	c.head(title, x.Simulated)
	top := 44 + x.stageLegend(c, 48)
	_, colour := x.stageColours()
	f := axes(c, 84, top, 40, 60, ticks(0, xm*1.05, 8), ticks(0, ym*1.05, 6), x.axis(mx), x.axis(my))
	var labels []label
	for _, p := range pts {
		l := label{x: f.x.at(p.x), y: f.y.at(p.y), text: fmt.Sprintf("#%d", p.t.ID), class: "m"}
		sum := x.summary(p.t)
		c.circle(seriesClass(colour[p.t.Stage]), l.x, l.y, 6, fmt.Sprintf("%s: %s, mean TPOT %s", x.name(p.t.ID), quantity(sum, my), quantity(sum, mx)))
		if role := x.role(p.t.ID); role != "" {
			c.circle("ring", l.x, l.y, 9, "")
			l.text, l.class = l.text+" "+role, "b"
		}
		labels = append(labels, l)
	}
	slices.SortStableFunc(labels, func(a, b label) int { return strings.Compare(a.class, b.class) }) // b before m: those that matter choose first
	c.label(labels)
	return c.plot(title), true
}
