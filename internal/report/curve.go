package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"perflab/internal/report/plot"
	"perflab/internal/result"
)

// Curve is one deployment under several loads: a run at each.
type Curve struct {
	Title       string
	Axis        string // what X is, with its unit: "Request rate (req/s)"
	Offered     bool   // X is the rate offered, against which the achieved one is drawn
	Points      []CurvePoint
	SLOs        []result.SLO
	Percentiles []float64 // shown beside the median; nil: 99
	Concluded   []string  // what whoever chose the loads concluded; nil: the curve says up to where every SLO holds
	Notes       []string
	Facts       []Fact
}

// Fact is one thing to know of what ran.
type Fact struct{ Label, Value string }

// CurvePoint is the run at one load.
type CurvePoint struct {
	X         float64 // +Inf: all at once, which no axis has
	Load      string  // "rate 4"
	Name      string  // of the run: its directory
	Offered   float64 // requests/s; 0: all at once
	Achieved  float64 // requests/s
	Saturated bool    // the server fell behind what was offered
	Void      bool    // not to be believed, and in no conclusion
	Partial   bool    // stopped before its end, and in no conclusion
	Missed    []string
	Summary   result.Summary
}

// usable reports whether a conclusion may rest on the point.
func (p *CurvePoint) usable() bool { return !p.Void && !p.Partial }

// verdict is the word for how far the point can be believed.
func (p *CurvePoint) verdict() string {
	if p.Partial {
		return "partial"
	}
	return string(p.Summary.Verdict.Status)
}

// met is the word for the SLOs of a point.
func (p *CurvePoint) met() string {
	switch {
	case !p.usable():
		return missing
	case len(p.Missed) > 0:
		return "missed"
	}
	return "met"
}

// curve is a Curve prepared for a reader, its points in the order of load.
type curve struct {
	Curve
	Banner   string
	Findings []string
	Columns  []string // of the page's table, beside load, verdict and rates
	Rows     []curveRow
	Remarks  []string // on single points
	Plots    []plot.Plot
}

type curveRow struct {
	Load, Name        string
	Offered, Achieved string
	Saturated, Void   bool
	Pairs             []string // "p50/p99" of each family
	Output, Failed    string
	Cells             []cell // of Columns
	SLO               string // "met", "missed", "" without SLOs
	Verdict           string
}

// compatNote says whose definitions the figures are by.
const compatNote = "Figures are by vllm bench serve's definitions (--compat vllm); verdicts are on perflab's own."

// families are the latencies of the table, as the points have them.
func (c Curve) families() []struct{ label, name string } {
	return slices.DeleteFunc([]struct{ label, name string }{{"TTFT", "ttft"}, {"TPOT", "tpot"}, {"ITL", "itl"}, {"E2E", "e2el"}},
		func(f struct{ label, name string }) bool {
			return !slices.ContainsFunc(c.Points, func(p CurvePoint) bool { _, ok := p.Summary.Figures["median_"+f.name+"_ms"]; return ok })
		})
}

// stats are the statistics of the table, by their names in the metric table:
// the median and the percentiles that were asked for.
func (c Curve) stats() []string {
	out := []string{"median"}
	for _, p := range c.Percentiles {
		if name := "p" + strconv.FormatFloat(p, 'f', -1, 64); p != 50 && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// metrics are the columns of the page's table.
func (c Curve) metrics() []result.Metric {
	names := []string{"output_throughput"}
	for _, f := range c.families() {
		for _, s := range c.stats() {
			names = append(names, s+"_"+f.name+"_ms")
		}
	}
	names = append(names, "failed")
	for _, slo := range c.SLOs {
		if !slices.Contains(names, slo.Metric) {
			names = append(names, slo.Metric)
		}
	}
	var out []result.Metric
	for _, n := range names {
		out = append(out, metric(n))
	}
	return out
}

func newCurve(c Curve) curve {
	c.Points = slices.Clone(c.Points)
	slices.SortStableFunc(c.Points, func(a, b CurvePoint) int { return cmp.Compare(a.X, b.X) })
	c.Axis, c.Title = cmp.Or(c.Axis, "Load"), cmp.Or(c.Title, "Latency and throughput over load")
	if c.Percentiles == nil {
		c.Percentiles = []float64{99}
	}
	d := curve{Curve: c, Findings: c.findings()}
	sim, predicted, compat := false, false, false
	metrics := c.metrics()
	for _, m := range metrics {
		d.Columns = append(d.Columns, m.Label)
	}
	for i := range c.Points {
		p := &c.Points[i]
		sim, predicted = sim || p.Summary.Simulated, predicted || p.Summary.Predicted
		compat = compat || p.Summary.Compat != ""
		d.Rows = append(d.Rows, c.row(p, metrics))
		d.Remarks = append(d.Remarks, p.remarks()...)
	}
	if compat {
		d.Notes = append(slices.Clone(d.Notes), compatNote)
	}
	d.Banner = simulatedBanner(sim, predicted)
	d.Plots = CurvePlots(c)
	return d
}

// row lays a point out. The figures of a void one are shown on the page, marked
// as such; a table of plain text, which cannot mark them, has none.
func (c Curve) row(p *CurvePoint, metrics []result.Metric) curveRow {
	figure := func(name string, format func(float64) string) string {
		if v, ok := p.Summary.Figures[name]; ok && !p.Void {
			return format(v)
		}
		return "-"
	}
	r := curveRow{
		Load: p.Load, Name: p.Name, Offered: "-", Achieved: "-", Saturated: p.Saturated, Void: p.Void, Verdict: p.verdict(),
		Output: figure("output_throughput", rate), Failed: number(&p.Summary, metric("failed")),
	}
	if p.Offered > 0 {
		r.Offered = rate(p.Offered)
	}
	if !p.Void {
		r.Achieved = rate(p.Achieved)
	}
	for _, f := range c.families() {
		var parts []string
		for _, s := range c.stats() {
			parts = append(parts, figure(s+"_"+f.name+"_ms", millis))
		}
		r.Pairs = append(r.Pairs, strings.Join(parts, "/"))
	}
	for _, m := range metrics {
		r.Cells = append(r.Cells, newCell(&p.Summary, m))
	}
	if len(c.SLOs) > 0 {
		r.SLO = p.met()
	}
	return r
}

// remarks say what a point missed and why its figures are doubtful.
func (p *CurvePoint) remarks() []string {
	v := p.Summary.Verdict
	switch {
	case p.Void:
		return []string{fmt.Sprintf("%s is void and in no conclusion: %s", p.Load, v.Why())}
	case p.Partial:
		return []string{p.Load + " was stopped before its end and is in no conclusion"}
	}
	var out []string
	if len(p.Missed) > 0 {
		out = append(out, fmt.Sprintf("%s missed %s", p.Load, strings.Join(p.Missed, ", ")))
	}
	if v.Status == result.Noted {
		out = append(out, fmt.Sprintf("%s is noted: %s", p.Load, v.Why()))
	}
	return out
}

// rate writes requests or tokens per second.
func rate(v float64) string {
	if v >= 1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// millis writes ms with three digits and no more than two decimals.
func millis(v float64) string {
	d := 2
	switch {
	case v >= 99.95:
		d = 0
	case v >= 9.995:
		d = 1
	}
	return strconv.FormatFloat(v, 'f', d, 64)
}

// findings are the sentences that a curve ends in: what was concluded, or up to
// which of the loads every SLO holds (a load above one that missed does not
// count), and where the server begins to fall behind.
func (c Curve) findings() []string {
	out := slices.Clone(c.Concluded)
	if out == nil {
		if text := c.holds(); text != "" {
			out = append(out, text)
		}
	}
	for i := range c.Points {
		if p := &c.Points[i]; p.Saturated && p.usable() && !math.IsInf(p.X, 1) {
			return append(out, fmt.Sprintf("The server falls behind what is offered from %s on.", p.Load))
		}
	}
	return out
}

// holds says up to which load every SLO holds, of those that can be believed.
func (c Curve) holds() string {
	if len(c.SLOs) == 0 {
		return ""
	}
	last, doubtful := "", false
	for i := range c.Points {
		p := &c.Points[i]
		where := p.Load
		if math.IsInf(p.X, 1) {
			where = "all at once"
		}
		why := strings.Join(p.Missed, ", ")
		switch {
		case !p.usable():
			doubtful = true
		case why == "":
			last = where
		case last == "":
			return fmt.Sprintf("No load that was measured meets every SLO; at the lowest, %s: %s.", where, why)
		default:
			return fmt.Sprintf("Every SLO holds up to %s, of the loads that were measured; at %s: %s.", last, where, why)
		}
	}
	switch {
	case last == "":
		return ""
	case doubtful:
		return fmt.Sprintf("Every SLO holds at every load whose run can be believed, up to %s.", last)
	}
	return fmt.Sprintf("Every SLO holds at every load that was measured, up to %s.", last)
}

// CurveText writes a curve as a table for a terminal.
func CurveText(w io.Writer, c Curve) error {
	d, b := newCurve(c), &strings.Builder{}
	if d.Banner != "" {
		fmt.Fprintf(b, "%s\n\n", d.Banner)
	}
	tw := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	d.table(func(cells []string) { fmt.Fprintln(tw, strings.Join(cells, "\t")+"\t") })
	tw.Flush() // into a Builder, which never fails
	for _, text := range slices.Concat(d.Remarks, d.Notes, d.Findings) {
		fmt.Fprintln(b, text)
	}
	return writeAll(w, b.String())
}

// table gives the rows of the curve's table as plain text, head first.
func (d curve) table(row func([]string)) {
	head := []string{"load", "offered req/s", "achieved req/s", "output tok/s"}
	for _, f := range d.families() {
		head = append(head, fmt.Sprintf("%s %s ms", f.label, strings.Replace(strings.Join(d.stats(), "/"), "median", "p50", 1)))
	}
	head = append(head, "failed", "verdict")
	if len(d.SLOs) > 0 {
		head = append(head, "SLO")
	}
	row(head)
	for _, r := range d.Rows {
		achieved := r.Achieved
		if r.Saturated && !r.Void {
			achieved += " (saturated)"
		}
		cells := append([]string{r.Load, r.Offered, achieved, r.Output}, r.Pairs...)
		cells = append(cells, r.Failed, r.Verdict)
		if len(d.SLOs) > 0 {
			cells = append(cells, r.SLO)
		}
		row(cells)
	}
}

// CurveMarkdown writes a curve as a document without plots, which would be
// files: CurvePlots has them.
func CurveMarkdown(w io.Writer, c Curve) error {
	d, m := newCurve(c), &mdWriter{}
	if d.Banner != "" {
		m.para("> **%s**", mdText(d.Banner))
	}
	m.heading(1, d.Title)
	for _, text := range d.Findings {
		m.para("**%s**", mdText(text))
	}
	n := 0
	d.table(func(cells []string) {
		for i := range cells {
			cells[i] = mdText(cells[i])
		}
		m.row(cells...)
		if n++; n == 1 {
			m.row("---" + strings.Repeat(" | ---:", len(cells)-1))
		}
	})
	m.b.WriteString("\n")
	m.list("-", slices.Concat(d.Remarks, d.Notes)...)
	m.facts(d.Facts)
	return m.writeTo(w, d.Title)
}

// facts writes what ran as a table.
func (m *mdWriter) facts(facts []Fact) {
	if len(facts) == 0 {
		return
	}
	m.heading(2, "What Ran")
	m.row("Item", "Value")
	m.row("---", "---")
	for _, f := range facts {
		m.row(mdText(f.Label), mdCode(f.Value))
	}
}

// CurveHTML writes a curve as one page that needs no other file, with its
// plots.
func CurveHTML(w io.Writer, c Curve) error {
	d := newCurve(c)
	return page(w, "curve.html", d.Title, d)
}
