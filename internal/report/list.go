package report

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"perflab/internal/block"
	"perflab/internal/report/doc"
	"perflab/internal/result"
)

// List is runs that belong together and were not made to be compared, as those
// of an imported document: a row each.
type List struct {
	Title string // the document
	Sides []Side
}

// listFigures are the columns of a list.
var listFigures = []string{"completed", "request_throughput", "output_throughput", "total_token_throughput", "mean_e2el_ms", "mean_ttft_ms", "mean_tpot_ms", "mean_itl_ms"}

// Document shows the runs in a table, and each with its command and block.
// Figures of one name by different definitions have a column each.
func (l List) Document() doc.Document {
	sim, predicted := anySimulated(l.Sides)
	d := doc.New(l.Title, simulatedBanner(sim, predicted), l.Title)
	d.Body.Text(l.Title, "")
	d.Body.Part(doc.Everywhere, doc.Section{ID: "figures", Page: "Figures", Listed: true}).Add(doc.Everywhere, l.table())
	var defined []definition
	for i := range l.Sides {
		s := &l.Sides[i].Summary
		why := slices.IndexFunc(s.Verdict.Checks, func(c result.Check) bool { return c.Status == result.Voided })
		if s.Verdict.Status == result.Voided && why >= 0 {
			d.Body.Textf("warning: %s is void: %s", filepath.Base(l.Sides[i].Name), s.Verdict.Checks[why].Text)
		}
		for _, def := range definitions(s) {
			if !slices.Contains(defined, def) {
				defined = append(defined, def)
			}
		}
	}
	for _, x := range defined {
		d.Body.Textf("%s by %s: %s", x.Of, x.Tag, x.Formula)
	}
	if len(defined) > 0 {
		t := definitionTable(defined)
		t.Class = "few"
		d.Body.Section("definitions", "Definitions").Add(doc.InDocument, t)
	}
	runs := d.Body.Section("runs", "Runs")
	for i := range l.Sides {
		l.Sides[i].listed(runs, i)
	}
	runs.Add(doc.InPage, doc.Gap{})
	same := factTable(l.same())
	same.Class = "few"
	d.Body.Part(doc.InDocument, doc.Section{ID: "ran", Title: "What All Share", Page: "What ran", Listed: true}).Add(doc.InDocument, same)
	return d
}

// same are the facts that hold for all runs.
func (l List) same() []Fact {
	if len(l.Sides) == 0 {
		return nil
	}
	all := runFacts(l.Sides[0].Header, false)
	for _, s := range l.Sides[1:] {
		others := runFacts(s.Header, false)
		all = slices.DeleteFunc(all, func(f Fact) bool { return !slices.Contains(others, f) })
	}
	return all
}

// table has a row a run.
func (l List) table() doc.Table {
	var figures []figureRow
	for _, name := range listFigures {
		figures = append(figures, metricRows(l.Sides, metric(name))...)
	}
	t := doc.Table{Class: "list", Columns: []doc.Column{{Head: doc.Spans("Run"), Text: new("run")}}}
	for i, head := range heads(figures) {
		f := figures[i]
		t.Columns = append(t.Columns, doc.Column{Head: doc.Spans(head), Right: true, Tip: f.Label + ": " + f.Doc + " " + f.Formula})
	}
	t.Columns = append(t.Columns, doc.Column{Head: doc.Spans("Verdict"), Text: new("verdict")})
	for i, s := range l.Sides {
		name := filepath.Base(s.Name)
		r := doc.Cells(doc.Cell{Text: doc.Spans(name), Page: doc.Spans(doc.Link(fmt.Sprintf("#run-%d", i), name))})
		for _, f := range figures {
			r.Cells = append(r.Cells, doc.Cell{Text: f.Cells[i].Text})
		}
		r.Cells = append(r.Cells, doc.Cell{Text: doc.Spans(string(s.Summary.Verdict.Status))})
		t.Rows = append(t.Rows, r)
	}
	return t
}

// listed adds run i of a list with its command, block and doubts.
func (s *Side) listed(runs *doc.Section, i int) {
	st := block.Style{Percentiles: s.Summary.Percentiles()}
	if own, ok := ImportedStyle(s.Header, st.Percentiles); ok {
		st = own
	}
	place := ""
	if s.Header.Imported != nil {
		place = sourceOf(s.Header.Imported)
	}
	run := runs.Part(doc.InDocument, doc.Section{ID: fmt.Sprintf("run-%d", i), Title: filepath.Base(s.Name)})
	if s.Header.Command != "" {
		run.Add(doc.InDocument, doc.Pre{Commands: true, Text: s.Header.Command})
	}
	run.Add(doc.InDocument, doc.Pre{Summary: place, Text: printed(s.Summary, st), Bare: true})
	for _, c := range unsound(s.Summary.Verdict) {
		run.List(doc.InMarkdown, fmt.Sprintf("%s, %s: %s", c.Status, c.Name, c.Text))
		run.Styled(doc.InPage, "note", doubtful(c))
	}
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
		if strings.HasPrefix(tag, "per ") || slices.ContainsFunc(columns[:i], same) || slices.ContainsFunc(columns[i+1:], same) {
			label += " " + tag
		}
		out = append(out, strings.TrimSpace(short.Replace(label)))
	}
	return out
}
