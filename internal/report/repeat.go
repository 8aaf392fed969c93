package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"perflab/internal/result"
)

// Repeat is one run made several times, with requests of the same kind.
type Repeat struct {
	Title    string
	Sides    []Side          // one a run, void and partial ones too
	Spread   []result.Spread // of the figures of those that can be believed
	Believed int             // so many
	SLOs     []string        // how often each was met, a sentence each
	Notes    []string
	SameSeed bool // the runs sent the same requests
}

// repeat is a Repeat prepared for a reader.
type repeat struct {
	beside
	Rows    []spreadRow
	Counted string // over how many runs the spread is
	SLOs    []string
	Notes   []string
}

type spreadRow struct{ Label, Mean, Interval, CV, Min, Max string }

func newRepeat(r Repeat, st result.Style) repeat {
	d := repeat{beside: layOut(r.Sides, !r.SameSeed), SLOs: r.SLOs, Notes: r.Notes}
	d.Title = r.Title
	if slices.ContainsFunc(r.Sides, func(s Side) bool { return s.Summary.Compat != "" }) {
		d.Notes = append(slices.Clone(d.Notes), compatNote)
	}
	d.Counted = fmt.Sprintf("%d of %d runs; an interval is Student's for the mean over runs, at 95 %%", r.Believed, len(r.Sides))
	for _, s := range r.Spread {
		m, err := result.Lookup(s.Metric)
		if err != nil || !spreads(m, st) {
			continue
		}
		n := func(v float64) string { return strconv.FormatFloat(v, 'f', m.Decimals, 64) }
		row := spreadRow{s.Label, n(s.Mean), "-", "-", n(s.Min), n(s.Max)}
		if s.Low != nil {
			row.Interval = n(*s.Low) + " to " + n(*s.High)
		}
		if s.CV != nil {
			row.CV = strconv.FormatFloat(100**s.CV, 'f', 2, 64) + " %"
		}
		d.Rows = append(d.Rows, row)
	}
	return d
}

// spreads reports whether a figure is in the table of a style: the scalars that
// have a better direction, and the sections' means, medians and percentiles.
func spreads(m result.Metric, st result.Style) bool {
	if m.Family == "" {
		return m.Better != result.Neither && m.Section == "" && m.Unit != "requests" || m.Name == "success_rate"
	}
	p, isPercentile := result.Percentile(m.Name)
	return slices.Contains(st.Sections, m.Family) &&
		(m.Stat == "mean" || m.Stat == "median" || isPercentile && slices.Contains(st.Percentiles, p))
}

var spreadHead = [...]string{"figure", "mean", "95 % interval", "CV", "min", "max"}

func (r spreadRow) cells() []string {
	return []string{r.Label, r.Mean, r.Interval, r.CV, r.Min, r.Max}
}

// RepeatText writes how the figures of repeated runs vary, for a terminal.
func RepeatText(w io.Writer, r Repeat, st result.Style) error {
	d, b := newRepeat(r, st), &strings.Builder{}
	if d.Banner != "" {
		fmt.Fprintf(b, "%s\n\n", d.Banner)
	}
	fmt.Fprintln(b, d.Counted)
	tw := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, strings.Join(spreadHead[:], "\t"))
	for _, row := range d.Rows {
		fmt.Fprintln(tw, strings.Join(row.cells(), "\t"))
	}
	tw.Flush() // into a Builder, which never fails
	for _, text := range slices.Concat(d.SLOs, d.Warnings, d.Notes) {
		fmt.Fprintln(b, text)
	}
	return writeAll(w, b.String())
}

// RepeatMarkdown writes how the figures of repeated runs vary, and the runs
// side by side, as a document without plots.
func RepeatMarkdown(w io.Writer, r Repeat, st result.Style) error {
	d, m := newRepeat(r, st), &mdWriter{}
	m.begin(d.beside, slices.Concat(d.SLOs, d.Notes)...)
	m.heading(2, "Spread")
	m.para("%s", mdText(d.Counted))
	m.row(spreadHead[:]...)
	m.row("---", "---:", "---:", "---:", "---:", "---:")
	for _, row := range d.Rows {
		cells := row.cells()
		cells[0] = mdText(cells[0])
		m.row(cells...)
	}
	m.b.WriteString("\n")
	m.heading(2, "Runs")
	m.beside(d.beside)
	return m.writeTo(w, d.Title)
}

// RepeatHTML writes how the figures of repeated runs vary, and the runs side by
// side, as one page that needs no other file.
func RepeatHTML(w io.Writer, r Repeat, st result.Style) error {
	d := newRepeat(r, st)
	return page(w, "repeat.html", d.Title, d)
}
