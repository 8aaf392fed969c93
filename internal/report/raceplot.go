package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/result"
	"perflab/internal/tune"
)

// racePlots draws a race: the plots of its chapters, in their order.
func racePlots(r *race) []Plot {
	out := slices.Clone(r.Comparisons.Plots)
	for _, c := range r.Chapters {
		out = append(out, c.Plots...)
	}
	return out
}

// forestRow is a ratio with its interval.
type forestRow struct {
	name, under string // under stands below the name
	class       string
	ratio       result.Span
	mark        *float64 // what was foretold
}

// forest draws ratios with their intervals on a logarithmic axis that has 1.
func (x study) forest(name, title string, classes, names []string, rows []forestRow) []Plot {
	if len(rows) == 0 {
		return nil
	}
	const most, right = 46, 196.0
	lo, hi, line, left := 0.99, 1.01, 26.0, 120.0
	for _, r := range rows {
		for _, v := range []float64{r.ratio.Value, r.ratio.Low, r.ratio.High, *cmp.Or(r.mark, new(1.0))} {
			if v > 0 {
				lo, hi = min(lo, v), max(hi, v)
			}
		}
		if r.under != "" {
			line = 40
		}
		left = max(left, 36+textWidth(clip(r.name, most)), 36+textWidth(clip(r.under, most)))
	}
	lo, hi = max(lo, 0.01), min(hi, 100)
	pad := math.Pow(hi/lo, 0.04)
	c := &canvas{name: name, w: plotWidth}
	c.head(clip(title, 92), x.Simulated)
	top := 52 + c.legend(16, 48, classes, names)
	c.h = top + line*float64(len(rows)) + 52
	s := scale{math.Log(lo / pad), math.Log(hi * pad), left, c.w - right}
	at := func(v float64) float64 { return s.at(min(max(math.Log(v), s.lo), s.hi)) }
	bottom := c.h - 48
	marks := ratioMarks(lo/pad, hi*pad)
	for _, v := range marks {
		c.line("g", at(v), top-4, at(v), bottom)
		c.text("m", at(v), bottom+18, "middle", strconv.FormatFloat(v, 'f', -1, 64)+"x")
	}
	c.text("m", (s.from+s.to)/2, bottom+38, "middle", "ratio; right of the dashed line is better")
	c.line("ref", at(1), top-4, at(1), bottom)
	for i, r := range rows {
		c.forestRow(r, top+line*(float64(i)+0.5), left, most, at)
	}
	return []Plot{c.plot(title)}
}

// ratioMarks are round ratios from lo to hi, 1 among them.
func ratioMarks(lo, hi float64) []float64 {
	all := ticks(lo, hi, 6)
	if hi/lo > 6 {
		all = decades(lo, hi, 7)
	}
	var in []float64
	for _, v := range all {
		if v = math.Round(v*1e6) / 1e6; v >= lo && v <= hi {
			in = append(in, v)
		}
	}
	if !slices.Contains(in, 1) {
		in = append(in, 1)
	}
	return in
}

func (c *canvas) forestRow(r forestRow, y, left float64, most int, at func(float64) float64) {
	below := 4.0
	if r.under != "" {
		below = -3
		c.text("m", left-12, y+13, "end", clip(r.under, most))
	}
	c.text("", left-12, y+below, "end", clip(r.name, most))
	text := times(r.ratio.Value)
	if known(r.ratio) {
		text += " " + interval(r.ratio)
		class := r.class
		if class == "void" {
			class = "base"
		}
		c.rect(class, at(r.ratio.Low), y-3, at(r.ratio.High)-at(r.ratio.Low), 6, r.name+": "+text)
	} else {
		text += " (no interval)"
	}
	c.circle(r.class, at(r.ratio.Value), y, 5, r.name+": "+text)
	if r.mark != nil && *r.mark > 0 {
		c.diamond(at(*r.mark), y, r.name+": predicted "+times(*r.mark))
	}
	c.text("", c.w-16, y+4, "end", text)
}

// diamond marks what was foretold.
func (c *canvas) diamond(x, y float64, tip string) {
	c.path("ring", fmt.Sprintf("M%s %sl5 5 -5 5 -5 -5z", px(x), px(y-5)), tip)
}

// contestPlot draws comparisons.
func (x study) contestPlot(name, title string, all []result.Contest, label func(result.Contest) string) []Plot {
	var rows []forestRow
	for _, k := range all {
		class := map[string]string{"up": "best", "down": "bad", "": "void"}[verdictTone(k.Verdict)]
		r := forestRow{name: label(k), class: class, ratio: k.Ratio}
		if first, second, ok := strings.Cut(r.name, " against "); ok {
			r.name, r.under = first, "against "+second
		}
		if k.Ratio.Value > 0 {
			rows = append(rows, r)
		}
	}
	return x.forest(name, title, []string{"best", "bad", "void"}, []string{"better", "worse, or misses a constraint", "no difference shown, or budget too small"}, rows)
}

// armPlot draws the arms that were measured, with what was foretold of them.
func (x study) armPlot() []Plot {
	var rows []forestRow
	for i, a := range x.Race.Arms {
		if a.Measured == nil || !(a.Measured.Value > 0) {
			continue
		}
		class := map[string]string{tune.ArmCarried: "best", tune.ArmEliminated: "bad"}[a.State]
		rows = append(rows, forestRow{name: fmt.Sprintf("%d  %s", i+1, a.Label), class: cmp.Or(class, "void"), ratio: *a.Measured, mark: a.Predicted})
	}
	return x.forest("arms", "The race: ratios to the baseline", []string{"best", "bad", "void", "bg"}, []string{"carried on", "eliminated", "not carried on", "◇ predicted"}, rows)
}

// foretoldPlot is a point per arm that has both figures: on the line the
// prediction was right.
func (x study) foretoldPlot() []Plot {
	var engines []string
	var spans []result.Span
	for _, a := range x.Race.Arms {
		if a.Predicted == nil || a.Measured == nil {
			continue
		}
		spans = append(spans, *a.Measured, result.Span{Value: *a.Predicted})
		if !slices.Contains(engines, a.Engine) {
			engines = append(engines, a.Engine)
		}
	}
	if len(spans) < 4 {
		return nil
	}
	title := "Predicted against measured, as ratios to the baseline"
	c := &canvas{name: "foretold", w: plotWidth, h: 440}
	c.head(title, x.Simulated)
	var classes, names []string
	for i, e := range engines {
		classes, names = append(classes, seriesClass(i)), append(names, x.engine(e))
	}
	top := 68 + c.legend(16, 48, classes, names)
	t := around(spans, 6)
	f := c.field(84, top, c.w-40, c.h-56, t, t, "predicted ratio", "Measured ratio; on the dashed line a prediction was right; numbers as in the race's table")
	c.line("ref", f.left, f.bottom, f.right, f.top)
	var labels []label
	for i, a := range x.Race.Arms {
		if a.Predicted == nil || a.Measured == nil {
			continue
		}
		px, py := f.x.at(*a.Predicted), f.y.at(a.Measured.Value)
		if known(*a.Measured) {
			c.line("ax", px, f.y.at(a.Measured.Low), px, f.y.at(a.Measured.High))
		}
		c.circle(seriesClass(slices.Index(engines, a.Engine)), px, py, 5, fmt.Sprintf("%s: predicted %s, measured %s %s", a.Label, times(*a.Predicted), times(a.Measured.Value), interval(*a.Measured)))
		labels = append(labels, label{px, py, fmt.Sprint(i + 1), "m"})
	}
	c.label(labels)
	return []Plot{c.plot(title)}
}

// apart leaves one name to points that lie on each other, the first.
func apart(labels []label) []label {
	var out []label
	for _, l := range labels {
		if !slices.ContainsFunc(out, func(o label) bool { return math.Abs(o.x-l.x) < 6 && math.Abs(o.y-l.y) < 6 }) {
			out = append(out, l)
		}
	}
	return out
}

// around is an axis over values and their intervals, which need not show 0.
func around(spans []result.Span, n int) axis {
	lo, hi := math.Inf(1), 0.0
	for _, s := range spans {
		lo, hi = min(lo, s.Value), max(hi, s.Value)
		if s.Low < s.High {
			lo, hi = min(lo, s.Low), max(hi, s.High)
		}
	}
	pad := max(0.1*(hi-lo), 0.02*hi)
	t := ticks(max(0, lo-pad), hi+pad, n)
	return axis{scale{lo: t[0], hi: t[len(t)-1]}, false, t, func(v float64) string { return grouped(tickLabel(v, t)) }}
}

// frontPlot is a point with its error bars for each configuration, and a line
// through the front.
func (x study) frontPlot() []Plot {
	pts := x.Race.Frontier
	if len(pts) < 2 {
		return nil
	}
	var users, gpus []result.Span
	for _, p := range pts {
		users, gpus = append(users, p.PerUser), append(gpus, p.PerGPU)
	}
	title := "Tokens for a user against tokens " + x.perDevice()
	c := &canvas{name: "front", w: plotWidth, h: 440}
	c.head(title, x.Simulated)
	top := 68 + c.legend(16, 48, []string{"best", "base", "s0", "s9"}, []string{"recommended  ", "baseline", "on the front", "behind it"})
	f := c.field(84, top, c.w-40, c.h-56, around(users, 8), around(gpus, 6), "output tokens per second and user, right is better", "Output tokens per second "+x.perDevice()+", up is better")
	front := slices.DeleteFunc(slices.Clone(pts), func(p result.FrontPoint) bool { return !p.Front })
	slices.SortFunc(front, func(a, b result.FrontPoint) int { return cmp.Compare(a.PerUser.Value, b.PerUser.Value) })
	for i := 1; i < len(front); i++ {
		a, b := front[i-1], front[i]
		c.line("ref", f.x.at(a.PerUser.Value), f.y.at(a.PerGPU.Value), f.x.at(b.PerUser.Value), f.y.at(b.PerGPU.Value))
	}
	var labels []label
	for _, p := range pts {
		px, py := f.x.at(p.PerUser.Value), f.y.at(p.PerGPU.Value)
		if p.PerUser.Low < p.PerUser.High {
			c.line("ax", f.x.at(p.PerUser.Low), py, f.x.at(p.PerUser.High), py)
		}
		if p.PerGPU.Low < p.PerGPU.High {
			c.line("ax", px, f.y.at(p.PerGPU.Low), px, f.y.at(p.PerGPU.High))
		}
		class, r := "s9", 5.0
		if p.Front {
			class = "s0"
		}
		l := label{px, py - 12, clip(p.Label, 30), "m"} // above its error bar
		switch p.Pick {
		case "baseline":
			class, r, l.class = "base", 7, "b"
		case "recommended":
			class, r, l.class = "best", 7, "b"
		}
		if p.Front && p.Pick != "" {
			c.circle("ring", px, py, 10, "")
		}
		c.circle(class, px, py, r, p.Label+": "+speed(p.PerUser)+" per user, "+speed(p.PerGPU)+" "+x.perDevice())
		if p.Front || p.Pick != "" {
			labels = append(labels, l)
		}
	}
	slices.SortStableFunc(labels, func(a, b label) int { return strings.Compare(a.class, b.class) }) // those that matter choose first
	c.label(apart(labels))
	return []Plot{c.plot(title)}
}
