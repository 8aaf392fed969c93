package report

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"perflab/internal/result"
)

// List is runs that belong together and were not made to be compared, as those
// of an imported document: a row each.
type List struct {
	Title string // the document
	Sides []Side
}

// list is a List prepared for a reader.
type list struct {
	Title       string
	Banner      string
	Heads       []string    // of the columns
	Columns     []figureRow // a cell a run
	Rows        []listed
	Same        []figure     // facts that hold for all runs
	Definitions []definition // of the figures that are not ours
}

// listed is one run of a list.
type listed struct {
	Name    string
	Place   string // in the file
	Command string
	Cells   []string
	Status  result.Status
	Checks  []result.Check
	Block   string
}

// listFigures are the columns of a list.
var listFigures = []string{"completed", "request_throughput", "output_throughput", "total_token_throughput", "mean_e2el_ms", "mean_ttft_ms", "mean_tpot_ms", "mean_itl_ms"}

// newList lays out the runs. Figures of one name by different definitions have
// a column each.
func newList(l List) list {
	d := list{Title: l.Title}
	for i := range l.Sides {
		for _, def := range definitions(&l.Sides[i].Summary) {
			if !slices.Contains(d.Definitions, def) {
				d.Definitions = append(d.Definitions, def)
			}
		}
	}
	d.Banner = simulatedBanner(anySimulated(l.Sides))
	for _, name := range listFigures {
		d.Columns = append(d.Columns, metricRows(l.Sides, metric(name))...)
	}
	d.Heads = heads(d.Columns)
	for i := range l.Sides {
		d.Rows = append(d.Rows, d.listed(&l.Sides[i], i))
	}
	if len(l.Sides) > 0 {
		d.Same = runFacts(l.Sides[0].Header, false)
		for _, s := range l.Sides[1:] {
			others := runFacts(s.Header, false)
			d.Same = slices.DeleteFunc(d.Same, func(f figure) bool { return !slices.Contains(others, f) })
		}
	}
	return d
}

// listed is the row of run i.
func (d *list) listed(s *Side, i int) listed {
	row := listed{
		Name: filepath.Base(s.Name), Command: s.Header.Command,
		Status: s.Summary.Verdict.Status, Checks: unsound(s.Summary.Verdict),
	}
	if s.Header.Imported != nil {
		row.Place = sourceOf(s.Header.Imported)
	}
	st := result.Style{Percentiles: s.Summary.Percentiles()}
	if own, ok := ImportedStyle(s.Header, st.Percentiles); ok {
		st = own
	}
	row.Block = printed(s.Summary, st)
	for _, c := range d.Columns {
		row.Cells = append(row.Cells, c.Cells[i].Value)
	}
	return row
}

// ListText writes a list of runs for a terminal.
func ListText(w io.Writer, l List) error {
	d, b := newList(l), &strings.Builder{}
	if d.Banner != "" {
		fmt.Fprintf(b, "%s\n\n", d.Banner)
	}
	fmt.Fprintf(b, "%s\n\n", d.Title)
	tw := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "run\t%s\tverdict\n", strings.Join(d.Heads, "\t"))
	for _, r := range d.Rows {
		fmt.Fprintf(tw, "%s\t%s\t%s\n", r.Name, strings.Join(r.Cells, "\t"), r.Status)
	}
	tw.Flush() // into a Builder, which never fails
	for _, r := range d.Rows {
		if r.Status == result.Voided {
			fmt.Fprintf(b, "warning: %s is void: %s\n", r.Name, r.Checks[slices.IndexFunc(r.Checks, func(c result.Check) bool { return c.Status == result.Voided })].Text)
		}
	}
	for _, x := range d.Definitions {
		fmt.Fprintf(b, "%s by %s: %s\n", x.Of, x.Tag, x.Formula)
	}
	return writeAll(w, b.String())
}

// heads are the heads of the columns: short, and with the definition where two
// columns are of one figure.
func heads(columns []figureRow) []string {
	short := strings.NewReplacer("Successful requests", "requests", "Request throughput (req/s)", "req/s", "Output token throughput", "output",
		"Total token throughput", "total", "Mean ", "", "(", "", ")", "")
	var out []string
	for i, c := range columns {
		label, tag, _ := strings.Cut(c.Label, ", ")
		same := func(o figureRow) bool { return o.Label == label || strings.HasPrefix(o.Label, label+", ") }
		if slices.ContainsFunc(columns[:i], same) || slices.ContainsFunc(columns[i+1:], same) {
			label += " " + tag
		}
		out = append(out, strings.TrimSpace(short.Replace(label)))
	}
	return out
}

// ListMarkdown writes a list of runs as a document: the table, and each run
// with its command and block.
func ListMarkdown(w io.Writer, l List) error {
	d, m := newList(l), &mdWriter{}
	if d.Banner != "" {
		m.para("> **%s**", mdText(d.Banner))
	}
	m.heading(1, d.Title)
	head := []string{"Run"}
	for _, h := range d.Heads {
		head = append(head, mdText(h))
	}
	m.row(append(head, "Verdict")...)
	m.row("---" + strings.Repeat(" | ---:", len(d.Columns)) + " | ---")
	for _, r := range d.Rows {
		m.row(slices.Concat([]string{mdText(r.Name)}, r.Cells, []string{string(r.Status)})...)
	}
	m.b.WriteString("\n")
	if len(d.Definitions) > 0 {
		m.heading(2, "Definitions")
		m.definitionRows(d.Definitions)
	}
	m.heading(2, "Runs")
	for _, r := range d.Rows {
		m.heading(3, r.Name)
		if r.Command != "" {
			m.code("bash", r.Command)
		}
		m.folded(r.Place, "text", r.Block)
		for _, c := range r.Checks {
			m.list("-", fmt.Sprintf("%s, %s: %s", c.Status, c.Name, c.Text))
		}
	}
	m.heading(2, "What All Share")
	m.row("Item", "Value")
	m.row("---", "---")
	for _, f := range d.Same {
		m.row(mdText(f.Label), mdCode(f.Value))
	}
	return m.writeTo(w, d.Title)
}

// ListHTML writes a list of runs as one page that needs no other file.
func ListHTML(w io.Writer, l List) error {
	d := newList(l)
	return page(w, "list.html", d.Title, d)
}
