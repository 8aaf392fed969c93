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

	"perflab/internal/result"
)

// Curve is one deployment under growing load: a run at each.
type Curve struct {
	Title   string
	Axis    string // what X is, with its unit: "Request rate (req/s)"
	Offered bool   // X is the rate offered, against which the achieved one is drawn
	Points  []CurvePoint
	SLOs    []result.SLO
}

// CurvePoint is the run at one load.
type CurvePoint struct {
	X       float64 // +Inf: all at once; it stands in the table alone
	Name    string  // of the run: its directory
	Summary result.Summary
}

// curve is a Curve prepared for a reader, its points in the order of load.
type curve struct {
	Curve
	Banner   string
	Finding  string // up to which load every SLO holds; "" without SLOs
	Columns  []string
	Rows     []curveRow
	Warnings []string
	Plots    []Plot
}

type curveRow struct {
	Load, Name string
	Cells      []cell
	SLO        string // "met", "missed", "" without SLOs
	Verdict    result.Status
}

// curveMetrics are the columns of the table before those that SLOs name.
func curveMetrics(slos []result.SLO) []result.Metric {
	names := []string{"request_throughput", "output_throughput", "median_ttft_ms", "p99_ttft_ms", "median_tpot_ms", "p99_tpot_ms", "median_e2el_ms", "p99_e2el_ms", "failed"}
	for _, slo := range slos {
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
	d := curve{Curve: c}
	sim, predicted := false, false
	metrics := curveMetrics(c.SLOs)
	for _, m := range metrics {
		d.Columns = append(d.Columns, m.Label)
	}
	for i := range c.Points {
		p := &c.Points[i]
		sim, predicted = sim || p.Summary.Simulated, predicted || p.Summary.Predicted
		row := curveRow{Load: load(p.X), Name: p.Name, Verdict: p.Summary.Verdict.Status}
		for _, m := range metrics {
			row.Cells = append(row.Cells, newCell(&p.Summary, m))
		}
		if len(c.SLOs) > 0 {
			row.SLO = "met"
			if len(c.missed(p)) > 0 {
				row.SLO = "missed"
			}
		}
		d.Rows = append(d.Rows, row)
		if v := p.Summary.Verdict; v.Status == result.Voided || v.Status == result.Noted {
			d.Warnings = append(d.Warnings, fmt.Sprintf("At %s: %s (%s).", load(p.X), v.Why(), v.Status))
		}
	}
	d.Banner = simulatedBanner(sim, predicted)
	d.Finding = c.finding()
	d.Plots = CurvePlots(c)
	return d
}

// load writes a load.
func load(x float64) string {
	if math.IsInf(x, 1) {
		return "all at once"
	}
	return strconv.FormatFloat(x, 'g', 6, 64)
}

// missed are the sentences of the SLOs that a point misses.
func (c Curve) missed(p *CurvePoint) []string {
	var out []string
	for _, slo := range c.SLOs {
		if met, why := slo.Judge(p.Summary); !met {
			out = append(out, why)
		}
	}
	return out
}

// finding says up to which of the loads every SLO holds. A load above one that
// missed does not count, nor does a void run pass.
func (c Curve) finding() string {
	if len(c.SLOs) == 0 || len(c.Points) == 0 {
		return ""
	}
	for i := range c.Points {
		p := &c.Points[i]
		why := strings.Join(c.missed(p), "; ")
		if p.Summary.Verdict.Status == result.Voided {
			why = "the run is void"
		}
		switch {
		case why == "":
		case i == 0:
			return fmt.Sprintf("No load that was measured meets every SLO; at the lowest, %s: %s.", load(p.X), why)
		default:
			return fmt.Sprintf("Every SLO holds up to %s, of the loads that were measured; at %s: %s.", load(c.Points[i-1].X), load(p.X), why)
		}
	}
	return fmt.Sprintf("Every SLO holds at every load that was measured, up to %s.", load(c.Points[len(c.Points)-1].X))
}

// CurveText writes a curve as a table for a terminal.
func CurveText(w io.Writer, c Curve) error {
	d, b := newCurve(c), &strings.Builder{}
	if d.Banner != "" {
		fmt.Fprintf(b, "%s\n\n", d.Banner)
	}
	fmt.Fprintf(b, "%s (latencies in ms)\n", d.Title)
	for i := range d.Columns {
		d.Columns[i] = short(d.Columns[i])
	}
	tw := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	d.table(func(cells []string) { fmt.Fprintln(tw, strings.Join(cells, "\t")) })
	tw.Flush() // into a Builder, which never fails
	for _, text := range append(slices.Clone(d.Warnings), d.Finding) {
		if text != "" {
			fmt.Fprintln(b, text)
		}
	}
	return writeAll(w, b.String())
}

// short is the label of a column for a terminal.
func short(label string) string {
	label = strings.TrimSuffix(label, " (ms)")
	for _, p := range [][2]string{{"Request throughput (req/s)", "req/s"}, {"Output token throughput (tok/s)", "output tok/s"}, {"Failed requests", "failed"}} {
		label = strings.ReplaceAll(label, p[0], p[1])
	}
	return label
}

// table gives the rows of the curve's table as plain text, head first.
func (d curve) table(row func([]string)) {
	head := append([]string{d.Axis}, d.Columns...)
	if len(d.SLOs) > 0 {
		head = append(head, "SLOs")
	}
	row(append(head, "Verdict"))
	for _, r := range d.Rows {
		cells := []string{r.Load}
		for _, c := range r.Cells {
			cells = append(cells, c.Value)
		}
		if len(d.SLOs) > 0 {
			cells = append(cells, r.SLO)
		}
		row(append(cells, string(r.Verdict)))
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
	if d.Finding != "" {
		m.para("**%s**", mdText(d.Finding))
	}
	n := 0
	d.table(func(cells []string) {
		for i := range cells {
			cells[i] = mdText(cells[i])
		}
		m.row(cells...)
		if n++; n == 1 {
			m.row("---:" + strings.Repeat(" | ---:", len(cells)-2) + " | ---")
		}
	})
	m.b.WriteString("\n")
	m.list("-", d.Warnings...)
	return m.writeTo(w, d.Title)
}

// CurveHTML writes a curve as one page that needs no other file, with its
// plots.
func CurveHTML(w io.Writer, c Curve) error {
	d := newCurve(c)
	return page(w, "curve.html", d.Title, d)
}
