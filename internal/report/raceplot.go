package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"perflab/internal/outcome"
	"perflab/internal/report/plot"
	"perflab/internal/tune"
)

// comparisonPlot draws comparisons.
func (x race) comparisonPlot(name, title string, all []tune.Comparison, label func(tune.Comparison) string) []plot.Plot {
	var rows []plot.Ratio
	for _, k := range all {
		class := map[string]string{"up": "best", "down": "bad", "": "void"}[verdictTone(k.Verdict)]
		r := plot.Ratio{Name: label(k), Class: class, Value: k.Ratio.Value, Low: k.Ratio.Low, High: k.Ratio.High}
		if first, second, ok := strings.Cut(r.Name, " against "); ok {
			r.Name, r.Under = first, "against "+second
		}
		if k.Ratio.Value > 0 {
			rows = append(rows, r)
		}
	}
	return plot.Forest(name, title, x.Simulated, []string{"best", "bad", "void"}, []string{"better", "worse, or misses a constraint", "no difference shown, or budget too small"}, rows)
}

// candidatePlot draws the candidates that were measured, with their predictions.
func (x race) candidatePlot() []plot.Plot {
	var rows []plot.Ratio
	for i, a := range x.Race.Candidates {
		if a.Measured == nil || !(a.Measured.Value > 0) {
			continue
		}
		class := map[string]string{tune.StateRefined: "best", tune.StateEliminated: "bad"}[a.State]
		rows = append(rows, plot.Ratio{Name: fmt.Sprintf("%d  %s", i+1, a.Label), Class: cmp.Or(class, "void"), Value: a.Measured.Value, Low: a.Measured.Low, High: a.Measured.High, Mark: a.Predicted})
	}
	return plot.Forest("candidates", "The race: ratios to the baseline", x.Simulated, []string{"best", "bad", "void", "bg"}, []string{"carried on", "eliminated", "not carried on", "◇ predicted"}, rows)
}

// predictionPlot is a point per candidate that has both figures: on the line the
// prediction was right.
func (x race) predictionPlot() []plot.Plot {
	var engines []string
	var spans []tune.Span
	for _, a := range x.Race.Candidates {
		if a.Predicted == nil || a.Measured == nil {
			continue
		}
		spans = append(spans, *a.Measured, tune.Span{Value: *a.Predicted})
		if !slices.Contains(engines, a.Engine) {
			engines = append(engines, a.Engine)
		}
	}
	if len(spans) < 4 {
		return nil
	}
	title := "Predicted against measured, as ratios to the baseline"
	return []plot.Plot{plot.Sized("predictions", title, x.Simulated, func(c *plot.Canvas) { x.drawPredictions(c, engines, spans) })}
}

// drawPredictions draws the points of candidates.
func (x race) drawPredictions(c *plot.Canvas, engines []string, spans []tune.Span) {
	c.H = 440
	var classes, names []string
	for i, e := range engines {
		classes, names = append(classes, plot.SeriesClass(i)), append(names, x.engine(e))
	}
	top := 68 + c.Legend(16, 48, classes, names)
	t := around(spans, c.Few(6))
	f := c.Field(c.Pick(84, 56), top, c.W-c.Pick(40, 24), c.H-56, t, t, "predicted ratio", "Measured ratio; on the dashed line a prediction was right; numbers as in the race's table")
	c.Line("ref", f.Left, f.Bottom, f.Right, f.Top)
	var labels []plot.Label
	for i, a := range x.Race.Candidates {
		if a.Predicted == nil || a.Measured == nil {
			continue
		}
		px, py := f.X.At(*a.Predicted), f.Y.At(a.Measured.Value)
		if known(*a.Measured) {
			c.Line("ax", px, f.Y.At(a.Measured.Low), px, f.Y.At(a.Measured.High))
		}
		c.Circle(plot.SeriesClass(slices.Index(engines, a.Engine)), px, py, 5, fmt.Sprintf("%s: predicted %s, measured %s %s", a.Label, plot.Times(*a.Predicted), plot.Times(a.Measured.Value), interval(*a.Measured)))
		labels = append(labels, plot.Label{X: px, Y: py, Text: fmt.Sprint(i + 1), Class: "m"})
	}
	c.NamePoints(labels)
}

// around is an axis over values and their intervals, which need not show 0.
func around(spans []tune.Span, n int) plot.Axis {
	lo, hi := math.Inf(1), 0.0
	for _, s := range spans {
		lo, hi = min(lo, s.Value), max(hi, s.Value)
		if s.Low < s.High {
			lo, hi = min(lo, s.Low), max(hi, s.High)
		}
	}
	return plot.Padded(lo, hi, n)
}

// frontPlot is a point with its error bars for each configuration, and a line
// through the front.
func (x race) frontPlot() []plot.Plot {
	pts := x.Race.Frontier
	if len(pts) < 2 {
		return nil
	}
	var users, gpus []tune.Span
	for _, p := range pts {
		users, gpus = append(users, p.PerUser), append(gpus, p.PerGPU)
	}
	title := "Tokens for a user against tokens " + x.perDevice()
	return []plot.Plot{plot.Sized("front", title, x.Simulated, func(c *plot.Canvas) { x.drawFront(c, pts, users, gpus) })}
}

// drawFront draws the points and the front.
func (x race) drawFront(c *plot.Canvas, pts []outcome.FrontPoint, users, gpus []tune.Span) {
	c.H = 440
	top := 68 + c.Legend(16, 48, []string{"best", "base", "s0", "s9"}, []string{"recommended  ", "baseline", "on the front", "behind it"})
	f := c.Field(c.Pick(84, 56), top, c.W-c.Pick(40, 24), c.H-56, around(users, c.Few(8)), around(gpus, 6), "output tokens per second and user, right is better", "Output tokens per second "+x.perDevice()+", up is better")
	front := slices.DeleteFunc(slices.Clone(pts), func(p outcome.FrontPoint) bool { return !p.Front })
	slices.SortFunc(front, func(a, b outcome.FrontPoint) int { return cmp.Compare(a.PerUser.Value, b.PerUser.Value) })
	for i := 1; i < len(front); i++ {
		a, b := front[i-1], front[i]
		c.Line("ref", f.X.At(a.PerUser.Value), f.Y.At(a.PerGPU.Value), f.X.At(b.PerUser.Value), f.Y.At(b.PerGPU.Value))
	}
	var labels []plot.Label
	for _, p := range pts {
		px, py := f.X.At(p.PerUser.Value), f.Y.At(p.PerGPU.Value)
		if p.PerUser.Low < p.PerUser.High {
			c.Line("ax", f.X.At(p.PerUser.Low), py, f.X.At(p.PerUser.High), py)
		}
		if p.PerGPU.Low < p.PerGPU.High {
			c.Line("ax", px, f.Y.At(p.PerGPU.Low), px, f.Y.At(p.PerGPU.High))
		}
		class, r := "s9", 5.0
		if p.Front {
			class = "s0"
		}
		l := plot.Label{X: px, Y: py - 12, Text: plot.Clip(p.Label, int(c.Pick(30, 18))), Class: "m"} // above its error bar
		switch p.Pick {
		case "baseline":
			class, r, l.Class = "base", 7, "b"
		case "recommended":
			class, r, l.Class = "best", 7, "b"
		}
		if p.Front && p.Pick != "" {
			c.Circle("ring", px, py, 10, "")
		}
		c.Circle(class, px, py, r, p.Label+": "+speed(p.PerUser)+" per user, "+speed(p.PerGPU)+" "+x.perDevice())
		if p.Front || p.Pick != "" {
			labels = append(labels, l)
		}
	}
	slices.SortStableFunc(labels, func(a, b plot.Label) int { return strings.Compare(a.Class, b.Class) }) // those that matter choose first
	c.NamePoints(plot.Apart(labels))
}
