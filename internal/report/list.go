package report

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

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
func (l List) Document() Document {
	sim, predicted := anySimulated(l.Sides)
	d := newDocument(l.Title, simulatedBanner(sim, predicted), l.Title)
	d.body.text(l.Title, "")
	d.body.part(everywhere, section{id: "figures", page: "Figures", listed: true}).add(everywhere, l.table())
	var defined []definition
	for i := range l.Sides {
		s := &l.Sides[i].Summary
		if s.Verdict.Status == result.Voided {
			void := s.Verdict.Checks[slices.IndexFunc(s.Verdict.Checks, func(c result.Check) bool { return c.Status == result.Voided })]
			d.body.textf("warning: %s is void: %s", filepath.Base(l.Sides[i].Name), void.Text)
		}
		for _, def := range definitions(s) {
			if !slices.Contains(defined, def) {
				defined = append(defined, def)
			}
		}
	}
	for _, x := range defined {
		d.body.textf("%s by %s: %s", x.Of, x.Tag, x.Formula)
	}
	if len(defined) > 0 {
		t := definitionTable(defined)
		t.class = "few"
		d.body.section("definitions", "Definitions").add(inDocument, t)
	}
	runs := d.body.section("runs", "Runs")
	for i := range l.Sides {
		l.Sides[i].listed(runs, i)
	}
	runs.add(inPage, gap{})
	same := factTable(l.same())
	same.class = "few"
	d.body.part(inDocument, section{id: "ran", title: "What All Share", page: "What ran", listed: true}).add(inDocument, same)
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
func (l List) table() table {
	var figures []figureRow
	for _, name := range listFigures {
		figures = append(figures, metricRows(l.Sides, metric(name))...)
	}
	t := table{class: "list", columns: []column{{head: spans("Run"), text: new("run")}}}
	for i, head := range heads(figures) {
		f := figures[i]
		t.columns = append(t.columns, column{head: spans(head), right: true, tip: f.Label + ": " + f.Doc + " " + f.Formula})
	}
	t.columns = append(t.columns, column{head: spans("Verdict"), text: new("verdict")})
	for i, s := range l.Sides {
		name := filepath.Base(s.Name)
		r := cells(cell{text: spans(name), page: spans(link(fmt.Sprintf("#run-%d", i), name))})
		for _, f := range figures {
			r.cells = append(r.cells, cell{text: f.Cells[i].text})
		}
		r.cells = append(r.cells, cell{text: spans(string(s.Summary.Verdict.Status))})
		t.rows = append(t.rows, r)
	}
	return t
}

// listed adds run i of a list with its command, block and doubts.
func (s *Side) listed(runs *section, i int) {
	st := result.Style{Percentiles: s.Summary.Percentiles()}
	if own, ok := ImportedStyle(s.Header, st.Percentiles); ok {
		st = own
	}
	place := ""
	if s.Header.Imported != nil {
		place = sourceOf(s.Header.Imported)
	}
	run := runs.part(inDocument, section{id: fmt.Sprintf("run-%d", i), title: filepath.Base(s.Name)})
	if s.Header.Command != "" {
		run.add(inDocument, pre{commands: true, text: s.Header.Command})
	}
	run.add(inDocument, pre{summary: place, text: printed(s.Summary, st), bare: true})
	for _, c := range unsound(s.Summary.Verdict) {
		run.list(inMarkdown, fmt.Sprintf("%s, %s: %s", c.Status, c.Name, c.Text))
		run.styled(inPage, "note", doubtful(c))
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
		if slices.ContainsFunc(columns[:i], same) || slices.ContainsFunc(columns[i+1:], same) {
			label += " " + tag
		}
		out = append(out, strings.TrimSpace(short.Replace(label)))
	}
	return out
}
