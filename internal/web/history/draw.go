package history

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"time"

	"perflab/internal/drift"
	"perflab/internal/lineage"
	"perflab/internal/report/plot"
	"perflab/internal/result"
	"perflab/internal/trend"
	"perflab/internal/web/figure"
	"perflab/internal/web/page"
)

// Sizes of plots.
const (
	sparkWidth, sparkHeight = 120, 30
	smallHeight             = 220
)

// spark draws the newest points of a history as a line, without axes.
func spark(h trend.History) template.HTML {
	points := slices.DeleteFunc(slices.Clone(h.Points), func(p trend.Point) bool { return p.Void })
	points = points[max(0, len(points)-mostSpark):]
	if len(points) < 2 {
		return ""
	}
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, p := range points {
		lo, hi = min(lo, p.Value), max(hi, p.Value)
	}
	if lo == hi {
		lo, hi = lo-1, hi+1
	}
	c := &plot.Canvas{Name: "spark", W: sparkWidth, H: sparkHeight}
	f := plot.Field{Canvas: c, X: plot.Axis{Scale: plot.Scale{Lo: 0, Hi: float64(len(points) - 1), From: 4, To: sparkWidth - 4}},
		Y: plot.Axis{Scale: plot.Scale{Lo: lo, Hi: hi, From: sparkHeight - 5, To: 5}}}
	var all []plot.Point
	for i, p := range points {
		all = append(all, plot.Point{X: float64(i), Y: p.Value})
	}
	f.Polyline("l0", all)
	last := all[len(all)-1]
	c.Circle("s0", f.X.At(last.X), f.Y.At(last.Y), 2.5, "")
	figures := func(p trend.Point) string { return page.Figure(map[string]float64{h.Metric: p.Value}, h.Metric) }
	title := fmt.Sprintf("%s over %d points: from %s to %s", h.Label, len(points), figures(points[0]), figures(points[len(points)-1]))
	return template.HTML(c.Plot(title).Inline()) // whose text is escaped where it is drawn
}

// mostSpark is how many points a line in a table shows.
const mostSpark = 40

// still draws a history with one place for each point: what is read without a script, and where
// builds are the axis. On a phone it is drawn narrower.
func still(h trend.History, name string, s lineage.Source) template.HTML {
	title := nameOf(h.Metric) + " by " + axisName(h)
	p := plot.Sized(name, title, made(s) != "", func(c *plot.Canvas) {
		c.H = c.Pick(340, 260)
		courseOf(c, h)
	})
	return template.HTML(`<div class="plotbox">` + p.Inline() + `</div><div class="phone">` + p.Phone + `</div>`) // whose text is escaped where it is drawn
}

// inSmall draws a history as one of several.
func inSmall(h trend.History, name string, s lineage.Source) template.HTML {
	c := &plot.Canvas{Name: name, W: plot.HalfWidth, H: smallHeight}
	c.Head("", made(s) != "")
	courseOf(c, h)
	return template.HTML(c.Plot(nameOf(h.Metric) + " by " + axisName(h)).Inline()) // whose text is escaped where it is drawn
}

// courseOf draws bands, changes and points between axes.
func courseOf(c *plot.Canvas, h trend.History) {
	lo, hi := extent(h)
	n := len(h.Points)
	y := plot.Padded(lo, hi, c.Few(6))
	if lo < 0 {
		y = plot.Axis{Scale: plot.Scale{Lo: lo, Hi: hi}, Ticks: []float64{lo, hi}, Label: func(v float64) string { return fmt.Sprintf("%.4g", v) }}
	}
	f := c.Field(62, 56, c.W-16, c.H-34, plot.Axis{Scale: plot.Scale{Lo: -0.6, Hi: float64(n) - 0.4}}, y, "", h.Unit)
	for _, g := range h.Segments {
		from, to := f.X.At(float64(g.From)-0.5), f.X.At(float64(g.To)+0.5)
		if b := g.Band; b != nil {
			top, bottom := max(f.Top, f.Y.At(b.High)), min(f.Bottom, f.Y.At(b.Low))
			c.Rect("steady", from, top, to-from, max(1, bottom-top), "what a next point may be by noise")
		}
		c.Line("ref", from, f.Y.At(g.Median), to, f.Y.At(g.Median))
	}
	for _, d := range h.Changes {
		at := f.X.At(float64(d.Index) - 0.5)
		c.Line("slo", at, f.Top, at, f.Bottom)
	}
	dots(f, h)
	for _, i := range marked(n, c.W) {
		anchor := "middle"
		if i == 0 && n > 1 {
			anchor = "start"
		} else if i == n-1 && n > 1 {
			anchor = "end"
		}
		c.Text("m", f.X.At(float64(i)), f.Bottom+18, anchor, plot.Clip(pointName(h.Points[i]), 16))
	}
}

func axisName(h trend.History) string {
	if slices.ContainsFunc(h.Points, func(p trend.Point) bool { return p.Build != "" }) {
		return "build"
	}
	return "launch"
}

// marked are the points whose names stand under the axis.
func marked(n int, w float64) []int {
	switch {
	case n == 0:
		return nil
	case n == 1:
		return []int{0}
	case w < 500 || n == 2:
		return []int{0, n - 1}
	}
	return []int{0, (n - 1) / 2, n - 1}
}

// dots draws the points, with their intervals, void ones hollow.
func dots(f plot.Field, h trend.History) {
	var line []plot.Point
	for i, p := range h.Points {
		if !p.Void {
			line = append(line, plot.Point{X: float64(i), Y: p.Value})
		}
	}
	f.Polyline("l0", line)
	for i, p := range h.Points {
		x := f.X.At(float64(i))
		tip := pointName(p) + ", " + page.Date(p.At) + ": " + page.Figure(map[string]float64{h.Metric: p.Value}, h.Metric)
		switch {
		case p.Void:
			y := min(max(f.Y.At(p.Value), f.Top), f.Bottom)
			f.Canvas.Circle("void", x, y, 3, tip+", void")
			continue
		case p.Low != nil && p.High != nil:
			f.Canvas.Line("ax", x, f.Y.At(*p.Low), x, f.Y.At(*p.High))
		}
		f.Canvas.Circle("s0", x, f.Y.At(p.Value), 3, tip)
	}
}

// extent is the range of what is drawn; void points do not widen it.
func extent(h trend.History) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	take := func(v float64) {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	for _, p := range h.Points {
		if p.Void {
			continue
		}
		take(p.Value)
		if p.Low != nil && p.High != nil {
			take(*p.Low)
			take(*p.High)
		}
	}
	if lo > hi {
		return 0, 1
	}
	if lo == hi {
		return lo - math.Abs(lo)/10 - 1e-9, hi + math.Abs(hi)/10 + 1e-9
	}
	return lo, hi
}

// pointName is what a point is called: its build, else its date.
func pointName(p trend.Point) string {
	if p.Build != "" {
		return p.Build
	}
	return page.Date(p.At)
}

// made says who made figures, where no server was measured by perflab; "": it was.
func made(s lineage.Source) string {
	switch {
	case s.Predicted:
		return "PREDICTED"
	case s.Simulated:
		return "SIMULATED"
	}
	return ""
}

// chart is the history as the browser draws it.
func chart(l trend.Line, h trend.History) ([]byte, error) {
	f := figure.History{Y: figure.Axis{Label: nameOf(h.Metric), Unit: h.Unit}}
	switch h.Better {
	case result.Higher:
		f.Better = "higher"
	case result.Lower:
		f.Better = "lower"
	}
	for _, p := range h.Points {
		b := figure.Build{At: p.At, Value: figure.Number(p.Value), Low: figure.Known(p.Low), High: figure.Known(p.High), Label: pointName(p), Href: "/run/" + p.Runs[len(p.Runs)-1], Verdict: figure.Sound}
		if p.Low != nil && p.High != nil && (*p.Low > p.Value || *p.High < p.Value) { // medians of several runs need not agree
			b.Low, b.High = figure.Missing, figure.Missing
		}
		if p.Void {
			b.Verdict = figure.Void
		}
		f.Points = append(f.Points, b)
	}
	for _, g := range h.Segments {
		if g.Band != nil {
			f.Noise = append(f.Noise, figure.Band{From: h.Points[g.From].At, To: h.Points[g.To].At, Low: figure.Number(g.Band.Low), Middle: figure.Number(g.Median), High: figure.Number(g.Band.High)})
		}
	}
	for _, c := range h.Changes {
		kind := figure.Shift
		switch c.Outcome {
		case drift.Improved:
			kind = figure.Gain
		case drift.Worsened:
			kind = figure.Loss
		}
		f.Changes = append(f.Changes, figure.Change{At: h.Points[c.Index].At, Kind: kind, Label: sizeOf(c) + ", " + string(c.Standing), Href: compareLink(h, c)})
	}
	for _, n := range notesOf(l) {
		f.Notes = append(f.Notes, figure.Note{At: n.At, Text: n.Text})
	}
	title := nameOf(h.Metric) + " of " + titleOf(l)
	return figure.Figure{Name: "history", Title: title, Simulated: made(l.Source) != "", History: &f}.JSON()
}

// nameOf is the label of a metric without its unit, which axes have apart.
func nameOf(metric string) string {
	m, err := result.Lookup(metric)
	if err != nil {
		return metric
	}
	return trimUnit(m.Label, m.Unit)
}

func trimUnit(label, unit string) string {
	if n := len(label) - len(unit) - 3; unit != "" && n > 0 && label[n:] == " ("+unit+")" {
		return label[:n]
	}
	return label
}

// note is what somebody wrote of a run, at its date.
type note struct {
	At    time.Time
	Text  string
	By    string
	Run   string // ID
	Name  string // of the run
	Issue bool
}

func notesOf(l trend.Line) (all []note) {
	for _, e := range l.Entries {
		if e.Started.IsZero() {
			continue
		}
		if e.Marks.Note != "" {
			all = append(all, note{e.Started, e.Marks.Note, e.Marks.By, e.ID, e.Called(), false})
		}
		for _, k := range e.Marks.Issues {
			text := "known issue " + k.ID
			if k.Text != "" {
				text += ": " + k.Text
			}
			all = append(all, note{e.Started, text, k.By, e.ID, e.Called(), true})
		}
	}
	return all
}
