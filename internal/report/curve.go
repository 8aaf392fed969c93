package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"perflab/internal/report/doc"
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
	Started     time.Time // of the first run; zero: not known
	Invoked     string    // the command line that made it; "": not known
}

// CurvePoint is the run at one load.
type CurvePoint struct {
	X         float64 // +Inf: all at once, which no axis has
	Load      string  // "rate 4"
	Name      string  // of the run: its directory
	Offered   float64 // requests/s; 0: all at once
	Achieved  float64 // requests/s
	Saturated bool    // the server fell behind what was offered
	Capped    bool    // the concurrency limit kept the rate below what was offered
	Void      bool    // its figures are not to be believed, and in no conclusion
	Failed    bool    // more calls failed than may: it misses, void or not
	Partial   bool    // stopped before its end, and in no conclusion
	Missed    []string
	Summary   result.Summary
}

// usable reports whether a conclusion may rest on the figures of the point.
func (p *CurvePoint) usable() bool { return !p.Void && !p.Partial }

// judged reports whether it is known if the point meets the bounds.
func (p *CurvePoint) judged() bool { return !p.Partial && (!p.Void || p.Failed) }

// behind says in a word what kept the rate of the point below what was offered; "" for
// nothing, and where the figures are not to be believed.
func (p *CurvePoint) behind() string {
	switch {
	case !p.usable():
		return ""
	case p.Saturated:
		return "saturated"
	case p.Capped:
		return "capped"
	}
	return ""
}

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
	case !p.judged():
		return missing
	case len(p.Missed) > 0:
		return "missed"
	}
	return "met"
}

// compatNote says whose definitions the figures are by.
const compatNote = "Figures are by vllm bench serve's definitions (--compat vllm); verdicts are on perflab's own."

// summaries are those of all points.
func (c Curve) summaries() []*result.Summary {
	var out []*result.Summary
	for i := range c.Points {
		out = append(out, &c.Points[i].Summary)
	}
	return out
}

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

// Document shows the points in the order of their load.
func (c Curve) Document() doc.Document {
	c.Points = slices.Clone(c.Points)
	slices.SortStableFunc(c.Points, func(a, b CurvePoint) int { return cmp.Compare(a.X, b.X) })
	c.Axis, c.Title = cmp.Or(c.Axis, "Load"), cmp.Or(c.Title, "Latency and throughput over load")
	if c.Percentiles == nil {
		c.Percentiles = []float64{99}
	}
	sim, predicted, compat := false, false, false
	var remarks []string
	for i := range c.Points {
		p := &c.Points[i]
		sim, predicted = sim || p.Summary.Simulated, predicted || p.Summary.Predicted
		compat = compat || p.Summary.Compat != ""
		remarks = append(remarks, p.remarks()...)
	}
	notes := c.Notes
	if compat {
		notes = append(slices.Clone(notes), compatNote)
	}
	d := doc.New(c.Title, simulatedBanner(sim, predicted), c.Title)
	d.Body.StyledEach(doc.InDocument, "lead", c.findings()...)
	var bounds doc.List
	for _, slo := range c.SLOs {
		bounds.Items = append(bounds.Items, doc.Spans(doc.Code(slo.String())))
	}
	d.Body.Add(doc.InPage, bounds)
	d.Body.Section("plots", "Plots").Figures(doc.InPage, func() []plot.Plot { return CurvePlots(c) })
	figures := d.Body.Part(doc.Everywhere, doc.Section{ID: "figures", Page: "Figures", Listed: true})
	if when := Date(c.Started); when != "" {
		figures.Text("Started " + when)
	}
	figures.Add(doc.InText|doc.InMarkdown, c.table())
	figures.Add(doc.InPage, c.pageTable())
	figures.List(doc.InMarkdown, slices.Concat(remarks, notes)...)
	figures.List(doc.InPage, remarks...)
	figures.StyledEach(doc.InPage, "note", notes...)
	figures.Text(slices.Concat(remarks, notes, c.findings())...)
	if len(c.Facts) > 0 {
		t := factTable(c.Facts)
		t.Class = "few"
		d.Body.Section("ran", "What Ran").Add(doc.InDocument, t)
	}
	AddRepeat(&d, c.Invoked)
	return d
}

// table has the median and the percentiles of each latency in one column. It has
// no figures of a void point, since plain text cannot mark them.
func (c Curve) table() doc.Table {
	t := doc.Table{Empty: true, Right: true, Columns: doc.Columns("load", ">offered req/s", ">achieved req/s", ">output tok/s")}
	add := func(head string) { t.Columns = append(t.Columns, doc.Column{Head: doc.Spans(head), Right: true}) }
	for _, f := range c.families() {
		stats := result.Metric{Name: "median_" + f.name + "_ms", Family: f.name, Label: fmt.Sprintf("%s %s ms", f.label, strings.Replace(strings.Join(c.stats(), "/"), "median", "p50", 1))}
		add(result.Label(stats, c.summaries()...))
	}
	add("failed")
	add("verdict")
	if len(c.SLOs) > 0 {
		add("SLO")
	}
	for i := range c.Points {
		p := &c.Points[i]
		figure := func(name string, format func(float64) string) string {
			if v, ok := p.Summary.Figures[name]; ok && !p.Void {
				return format(v)
			}
			return doc.None
		}
		offered, achieved := p.rates()
		if word := p.behind(); word != "" {
			achieved += " (" + word + ")"
		}
		r := doc.Texts(p.Load, offered, achieved, figure("output_throughput", rate))
		for _, f := range c.families() {
			var parts []string
			for _, s := range c.stats() {
				parts = append(parts, figure(s+"_"+f.name+"_ms", millis))
			}
			r.Cells = append(r.Cells, doc.Cell{Text: doc.Spans(strings.Join(parts, "/"))})
		}
		r.Cells = append(r.Cells, doc.Texts(number(&p.Summary, metric("failed")), p.verdict()).Cells...)
		if len(c.SLOs) > 0 {
			r.Cells = append(r.Cells, doc.Cell{Text: doc.Spans(p.met())})
		}
		t.Rows = append(t.Rows, r)
	}
	return t
}

// pageTable has a column a figure. The figures of a void point are marked.
func (c Curve) pageTable() doc.Table {
	t := doc.Table{Empty: true, Columns: []doc.Column{{Head: doc.Spans("Load"), Class: "load"}}}
	if len(c.SLOs) > 0 {
		t.Columns = append(t.Columns, doc.Columns("SLOs")...)
	}
	t.Columns = append(t.Columns, doc.Columns("Verdict", ">Offered (req/s)", ">Achieved (req/s)")...)
	metrics := c.metrics()
	for _, m := range metrics {
		t.Columns = append(t.Columns, doc.Column{Head: doc.Spans(result.Label(m, c.summaries()...)), Right: true})
	}
	for i := range t.Columns {
		t.Columns[i].Wrap = t.Columns[i].Right
	}
	t.Columns = append(t.Columns, doc.Column{Head: doc.Spans("Run"), Class: "run"})
	for i := range c.Points {
		p := &c.Points[i]
		r := doc.Cells(p.Load)
		if p.Void {
			r.Class = "void"
		}
		if len(c.SLOs) > 0 {
			met := p.met()
			r.Cells = append(r.Cells, doc.Cell{Text: doc.Spans(doc.Toned(map[string]string{"met": "up", "missed": "down"}[met], met))})
		}
		offered, achieved := p.rates()
		rate := doc.Cell{Text: doc.Spans(achieved), Beside: p.behind()}
		verdict := doc.Cell{}
		if text := p.verdict(); text != "" {
			verdict.Text = doc.Spans(doc.Tag(text, text))
		}
		r.Cells = append(r.Cells, verdict, doc.Cell{Text: doc.Spans(offered)}, rate)
		for _, m := range metrics {
			r.Cells = append(r.Cells, figureCell(&p.Summary, m))
		}
		r.Cells = append(r.Cells, doc.Cell{Text: doc.Spans(doc.Code(p.Name))})
		t.Rows = append(t.Rows, r)
	}
	return t
}

// rates are the requests per second offered and achieved.
func (p *CurvePoint) rates() (offered, achieved string) {
	offered, achieved = doc.None, doc.None
	if p.Offered > 0 {
		offered = rate(p.Offered)
	}
	if !p.Void {
		achieved = rate(p.Achieved)
	}
	return offered, achieved
}

// remarks say what a point missed and why its figures are doubtful.
func (p *CurvePoint) remarks() []string {
	v := p.Summary.Verdict
	switch {
	case p.Void && p.Failed:
		return []string{fmt.Sprintf("%s missed %s, and its figures are void: %s", p.Load, strings.Join(p.Missed, ", "), v.Why())}
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
// count), and where the server begins to fall behind, or the concurrency limit to
// hold the rate back.
func (c Curve) findings() []string {
	out := slices.Clone(c.Concluded)
	if out == nil {
		if text := c.holds(); text != "" {
			out = append(out, text)
		}
	}
	for _, cause := range []struct{ word, text string }{
		{"saturated", "The server falls behind what is offered from %s on."},
		{"capped", "The concurrency limit keeps the rate below what is offered from %s on; what the server could do without it was not measured."},
	} {
		i := slices.IndexFunc(c.Points, func(p CurvePoint) bool { return p.behind() == cause.word && !math.IsInf(p.X, 1) })
		if i >= 0 {
			out = append(out, fmt.Sprintf(cause.text, c.Points[i].Load))
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
		case !p.judged():
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
