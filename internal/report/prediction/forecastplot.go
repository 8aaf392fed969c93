package prediction

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"perflab/internal/forecast"
	"perflab/internal/report/plot"
	"perflab/internal/result"
)

// ForecastPlots draws throughput per GPU against latency, with ranges, and
// where the time of steps goes. A plot without data is left out.
func ForecastPlots(t forecast.Table) []plot.Plot {
	var out []plot.Plot
	for _, draw := range []func(*forecastTable) (plot.Plot, bool){frontPlot, stepPlot} {
		if p, ok := draw(&forecastTable{t}); ok {
			out = append(out, p)
		}
	}
	return out
}

// frontPoint is a row of the front's plot.
type frontPoint struct {
	row  *forecast.Row
	x, y forecast.Estimate
	at   [2]float64 // pixels
}

// frontPlot has a point with whiskers for each row, a line through the loads
// of each configuration, and one through the front.
func frontPlot(f *forecastTable) (plot.Plot, bool) {
	mx, my := metric(f.Latency), metric("total_token_throughput")
	var pts []frontPoint
	lo, hi := [2]float64{math.Inf(1), math.Inf(1)}, [2]float64{}
	stretch := func(k int, e forecast.Estimate) {
		for _, v := range []*float64{&e.Value, e.Low, e.High} {
			if v != nil {
				lo[k], hi[k] = min(lo[k], *v), max(hi[k], *v)
			}
		}
	}
	for i := range f.Rows {
		r := &f.Rows[i]
		x, ok := r.Figures[f.Latency]
		y, too := r.PerGPU[my.Name]
		if ok && too {
			pts = append(pts, frontPoint{row: r, x: x, y: y})
			stretch(0, x)
			stretch(1, y)
		}
	}
	if len(pts) < 2 {
		return plot.Plot{}, false
	}
	title := "Throughput per GPU against " + strings.TrimSuffix(mx.Label, " (ms)")
	return plot.Sized("front", title, true, func(c *plot.Canvas) { f.drawFront(c, pts, lo, hi, mx, my) }), true
}

// drawFront draws the points, their lines and the front; lo and hi are the ends of the axes.
func (f *forecastTable) drawFront(c *plot.Canvas, pts []frontPoint, lo, hi [2]float64, mx, my result.Metric) {
	c.H = 460
	classes, names := f.frontKeys(pts)
	top := 60 + c.Legend(16, 48, classes, names)
	ax := plot.Fit(lo[0], hi[0], c.Few(8))
	if mx.Unit == "ms" {
		ax = ax.Milliseconds()
	}
	c.H += top - 80
	field := c.Field(c.Pick(84, 56), top, c.W-c.Pick(40, 24), c.H-56, ax, plot.Fit(lo[1], hi[1], 7), strings.TrimSuffix(mx.Label, " (ms)")+", lower is better", "Total tokens per second and GPU, higher is better")
	for i := range pts {
		pts[i].at = [2]float64{field.X.At(pts[i].x.Value), field.Y.At(pts[i].y.Value)}
	}
	frontLines(c, pts)
	var labels []plot.Label
	for _, p := range pts {
		p.whiskers(field)
		if p.row.Front {
			c.Circle("ring", p.at[0], p.at[1], 8, "")
		}
		xv, xr := estimate(p.x, mx)
		yv, yr := estimate(p.y, my)
		c.Circle(plot.SeriesClass(p.row.Configuration-1), p.at[0], p.at[1], 5, fmt.Sprintf("%s: %s tok/s per GPU%s at %s%s", f.name(p.row), yv, bracketed(yr), xv, bracketed(xr)))
		labels = append(labels, plot.Label{X: p.at[0], Y: p.at[1], Text: f.pointName(p.row), Class: map[bool]string{true: "b", false: "m"}[p.row.Front]})
	}
	slices.SortStableFunc(labels, func(a, b plot.Label) int { return strings.Compare(a.Class, b.Class) }) // those of the front choose first
	c.NamePoints(labels)
}

// pointName is short: the number of the configuration, and its load where they
// differ.
func (f *forecastTable) pointName(r *forecast.Row) string {
	n := fmt.Sprintf("#%d", r.Configuration)
	if f.loads() {
		n += " " + r.Load
	}
	return n
}

func bracketed(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

// frontKeys are the configurations that have a point, as many as there are
// colours, and what rings and whiskers mean.
func (f *forecastTable) frontKeys(pts []frontPoint) (classes, names []string) {
	seen := map[int]bool{}
	for _, p := range pts {
		if n := p.row.Configuration; !seen[n] && len(seen) < plot.Series {
			seen[n] = true
			classes, names = append(classes, plot.SeriesClass(n-1)), append(names, plot.Clip(fmt.Sprintf("#%d %s", n, f.Configurations[n-1].Label), 36)+"   ") // room for wide letters
		}
	}
	classes, names = append(classes, "ring"), append(names, "ringed: on the front")
	if slices.ContainsFunc(pts, func(p frontPoint) bool { return p.x.Low != nil || p.y.Low != nil }) {
		classes, names = append(classes, "bg"), append(names, "whiskers: nine of ten cases")
	}
	return classes, names
}

// frontLines joins the points of each configuration in the order of load, and
// those of the front in the order of latency.
func frontLines(c *plot.Canvas, pts []frontPoint) {
	byConfig := map[int][]frontPoint{}
	var front []frontPoint
	for _, p := range pts {
		byConfig[p.row.Configuration] = append(byConfig[p.row.Configuration], p)
		if p.row.Front {
			front = append(front, p)
		}
	}
	for n := 1; len(byConfig) > 0; n++ {
		if line, ok := byConfig[n]; ok {
			slices.SortFunc(line, func(a, b frontPoint) int { return cmp.Compare(a.y.Value, b.y.Value) })
			through(c, "gap", line)
			delete(byConfig, n)
		}
	}
	slices.SortFunc(front, func(a, b frontPoint) int { return cmp.Compare(a.x.Value, b.x.Value) })
	through(c, "ref", front)
}

func through(c *plot.Canvas, class string, pts []frontPoint) {
	for i := 1; i < len(pts); i++ {
		a, b := pts[i-1].at, pts[i].at
		c.Line(class, a[0], a[1], b[0], b[1])
	}
}

// whiskers draws a point's ranges.
func (p frontPoint) whiskers(f plot.Field) {
	if p.x.Low != nil && p.x.High != nil {
		f.Canvas.Line("ax", f.X.At(*p.x.Low), p.at[1], f.X.At(*p.x.High), p.at[1])
	}
	if p.y.Low != nil && p.y.High != nil {
		f.Canvas.Line("ax", p.at[0], f.Y.At(*p.y.Low), p.at[0], f.Y.At(*p.y.High))
	}
}

// stepTerm is a term of a step with its name in the plot.
type stepTerm struct{ key, name string }

// stepTerms are the terms in the order of the plot.
var stepTerms = []stepTerm{
	{"weights", "dense weights, reading"}, {"arithmetic", "dense weights, multiplying"},
	{"expert_reads", "experts, reading"}, {"experts", "experts, multiplying"},
	{"kv_reads", "KV cache"}, {"attention", "prompt attention"}, {"collectives", "exchange between GPUs"},
	{"elementwise", "elementwise"}, {"host", "host"}, {"drafting", "drafting"}, {"fetching", "host cache"}, {"launches", "launches"},
}

// stepPlot is a bar for each row: the share of the steps that each term takes.
func stepPlot(f *forecastTable) (plot.Plot, bool) {
	var rows []*forecast.Row
	used := map[string]bool{}
	for i := range f.Rows {
		r := &f.Rows[i]
		if total(r.Times) <= 0 {
			continue
		}
		rows = append(rows, r)
		for key, v := range r.Times {
			used[key] = used[key] || v > 0.005*total(r.Times)
		}
	}
	if len(rows) == 0 {
		return plot.Plot{}, false
	}
	colours := stepColours(used)
	var classes, names []string
	for i, t := range stepTerms {
		if used[t.key] {
			classes, names = append(classes, colours[i]), append(names, t.name)
		}
	}
	var bars []plot.Bar
	for _, r := range rows {
		b := plot.Bar{Name: plot.Clip(fmt.Sprintf("#%d %s", r.Configuration, f.name(r)), 40)}
		for k, t := range stepTerms {
			if share := r.Times[t.key] / total(r.Times); share > 0 {
				b.Parts = append(b.Parts, plot.Part{Class: colours[k], Share: share, Tip: fmt.Sprintf("%s: %s %.1f %%", f.name(r), t.name, 100*share)})
			}
		}
		bars = append(bars, b)
	}
	return plot.Shares("steps", "Where the time of steps goes", true, classes, names, bars), true
}

// stepColours are the classes of the terms. There are more terms than colours, and those for
// which none is left get those of terms that are not there.
func stepColours(used map[string]bool) []string {
	var free []int
	for i, t := range stepTerms[:plot.Series] {
		if !used[t.key] {
			free = append(free, i)
		}
	}
	out := make([]string, len(stepTerms))
	for i, t := range stepTerms {
		out[i] = plot.SeriesClass(i)
		if i >= plot.Series && used[t.key] && len(free) > 0 {
			out[i], free = plot.SeriesClass(free[0]), free[1:]
		}
	}
	return out
}

func total(m map[string]float64) float64 {
	s := 0.0
	for _, v := range m {
		s += v
	}
	return s
}
