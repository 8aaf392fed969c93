package listing

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"perflab/internal/drift"
	"perflab/internal/lineage"
	"perflab/internal/report/doc"
	"perflab/internal/report/plot"
	"perflab/internal/trend"
)

// Histories is a table of configurations over time, a row for each line.
func Histories(lines []trend.Line, now time.Time) doc.Document {
	t := doc.Table{Columns: doc.Columns("key", "configuration", "load", "runs", "builds", "newest", "standing", "changed most", "source"), Trimmed: true}
	for _, l := range lines {
		newest := ""
		if !l.Newest.IsZero() {
			newest = Age(now, l.Newest)
			if l.Stale() {
				newest += " (stale)"
			}
		}
		t.Rows = append(t.Rows, doc.Dashed(ShortID(l.Key), clip(called(l)), clip(doc.OneLine(l.Load)), fmt.Sprint(l.Runs), present(l.Builds), newest, string(l.Standing()), mostChanged(l), sourceText(l.Source)))
	}
	d := doc.New("Histories", "", "the histories")
	d.Body.Add(doc.Everywhere, t)
	return d
}

func present(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// called is what a configuration is called in a line.
func called(l trend.Line) string {
	var parts []string
	for _, s := range []string{l.Model, strings.TrimSpace(l.Engine + " " + l.Version), l.Label, l.Hardware} {
		if s = doc.OneLine(s); s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, ", ")
}

func sourceText(s lineage.Source) string {
	switch {
	case s.Predicted:
		return "SIMULATED (predicted)"
	case s.Simulated:
		return "SIMULATED"
	}
	return s.Client
}

// mostChanged is the newest change of the history that needs somebody most.
func mostChanged(l trend.Line) string {
	for _, h := range l.Histories {
		if c := h.Last(); c != nil && h.Standing() == l.Standing() {
			return strings.TrimSpace(h.Metric + " " + sizeOf(*c))
		}
	}
	return ""
}

// sizeOf is how large a change is, with its interval.
func sizeOf(c drift.Change) string {
	if c.Relative == nil {
		return ""
	}
	s := fmt.Sprintf("%+.1f %%", 100**c.Relative)
	if c.Interval != nil {
		s += fmt.Sprintf(" (%+.1f to %+.1f)", 100*c.Interval.Low, 100*c.Interval.High)
	}
	return s
}

// History is a configuration over time: each metric as a plot of text, and its changes in words.
func History(l trend.Line, now time.Time) doc.Document {
	banner := ""
	if l.Source.Simulated || l.Source.Predicted {
		banner = sourceText(l.Source) + ": these are figures of a model of engine and device, not of hardware"
	}
	d := doc.New("History", banner, "the history")
	d.Body.Textf("%s: %s", ShortID(l.Key), called(l))
	of := plot.Count(l.Runs, "run")
	if l.Builds > 0 {
		of += " of " + plot.Count(l.Builds, "build")
	}
	if l.Voided > 0 {
		of += fmt.Sprintf(", %d of them void, which count for nothing", l.Voided)
	}
	for _, s := range []string{doc.OneLine(l.Load), doc.OneLine(l.Command), of} {
		if s != "" {
			d.Body.Text(s)
		}
	}
	for _, h := range l.Histories {
		d.Body.Text("")
		d.Body.Textf("%s: %s", h.Label, standingText(h, now))
		d.Body.Text(plotOf(h)...)
		for _, c := range h.Changes {
			d.Body.Text("  " + Change(h, c))
		}
	}
	return d
}

// standingText says where a figure stands, and how old it is.
func standingText(h trend.History, now time.Time) string {
	s := string(h.Standing())
	if h.Standing() == trend.TooFew {
		s += fmt.Sprintf(" (%d; a change can be found among %d)", h.Counted, drift.MinPoints)
	}
	if p := h.Newest(); p != nil {
		s += fmt.Sprintf("; newest %s, %s", Figure(h.Metric, p.Value), agoOf(now, p.At))
	}
	if h.Age.Stale {
		s += ", which is unusually old"
	}
	return s
}

func agoOf(now, t time.Time) string {
	if t.IsZero() {
		return "without a date"
	}
	return t.UTC().Format(time.DateOnly) + " (" + Age(now, t) + ")"
}

// Change says a change in words.
func Change(h trend.History, c drift.Change) string {
	at := h.Points[c.Index]
	how := "another value"
	switch c.Outcome {
	case drift.Worsened:
		how = "worse"
	case drift.Improved:
		how = "better"
	}
	s := fmt.Sprintf("since %s: %s, %s to %s", pointName(at), how, Figure(h.Metric, c.Before), Figure(h.Metric, c.After))
	if size := sizeOf(c); size != "" {
		s += ", " + size
	}
	s += "; " + string(c.Standing) + fmt.Sprintf(", it has lasted over %d", c.Builds)
	if prev := h.Points[c.Previous]; c.Previous != c.Index {
		s += "; the last before it: " + pointName(prev)
	}
	if c.Gradual {
		s += "; a slow drift fits better than this step"
	}
	return s
}

// pointName tells a point from others.
func pointName(p trend.Point) string {
	day := p.At.UTC().Format("2006-01-02 15:04")
	if p.Build != "" {
		return p.Build + " (" + day + ")"
	}
	return day
}

// Bounds of a plot of text.
const (
	plotWidth  = 72
	plotHeight = 6
)

// plotOf draws the newest points, each in a column: o counts, x is void, | is where it changed.
func plotOf(h trend.History) []string {
	points, from := h.Points, 0
	if len(points) > plotWidth {
		from = len(points) - plotWidth
		points = points[from:]
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, p := range points {
		if !p.Void && !math.IsNaN(p.Value) {
			low, high = min(low, p.Value), max(high, p.Value)
		}
	}
	if !(low < high) { // none, one, or all the same: there is nothing to see
		return nil
	}
	rows := make([][]rune, plotHeight)
	for i := range rows {
		rows[i] = []rune(strings.Repeat(" ", len(points)))
	}
	for _, c := range h.Changes {
		if x := c.Index - from; x >= 0 {
			for _, row := range rows {
				row[x] = '|'
			}
		}
	}
	for x, p := range points {
		switch {
		case math.IsNaN(p.Value):
		case p.Void:
			rows[plotHeight-1][x] = 'x'
		default:
			rows[rowOf(p.Value, low, high)][x] = 'o'
		}
	}
	return labelled(rows, Figure(h.Metric, high), Figure(h.Metric, low), from)
}

// rowOf is the row of a value, the first one being of the highest.
func rowOf(v, low, high float64) int {
	return int(math.Round((high - v) / (high - low) * (plotHeight - 1)))
}

// labelled puts the ends of the scale beside a plot.
func labelled(rows [][]rune, high, low string, before int) []string {
	wide := max(len(high), len(low))
	var out []string
	for i, row := range rows {
		label := ""
		switch i {
		case 0:
			label = high
		case len(rows) - 1:
			label = low
		}
		out = append(out, strings.TrimRight(fmt.Sprintf("  %*s  %s", wide, label, string(row)), " "))
	}
	if before > 0 {
		out = append(out, fmt.Sprintf("  the newest %d points; %d lie before them", len(rows[0]), before))
	}
	return slices.Clip(out)
}
