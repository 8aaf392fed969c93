package report

import (
	"fmt"
	"slices"

	"perflab/internal/compare"
	"perflab/internal/report/doc"
	"perflab/internal/report/plot"
	"perflab/internal/report/runplot"
	"perflab/internal/result"
)

// Side is one of several runs that are shown beside each other.
type Side struct {
	Name    string // its directory
	Header  result.Header
	Summary result.Summary
	Calls   []result.Call // for the plots; may be nil
}

// sideBySide is several runs prepared for a reader.
type sideBySide struct {
	Title    string
	Banner   string
	Names    []string
	Warnings []string
	Figures  []figureRow // a cell for each run
	Facts    []compare.Fact
	draw     func() []plot.Plot
}

// newRuns lays the runs out, one column each.
func newRuns(sides []Side) sideBySide { return layOut(sides, false) }

// layOut is newRuns for runs that send other requests of the same kind on
// purpose, where seeded says so.
func layOut(sides []Side, seeded bool) sideBySide {
	r := sideBySide{Title: fmt.Sprintf("%d runs side by side", len(sides))}
	for _, s := range sides {
		r.Names = append(r.Names, s.Name)
	}
	sim, predicted := anySimulated(sides)
	r.Banner = simulatedBanner(sim, predicted)
	r.compareHeaders(sides, seeded)
	if slices.ContainsFunc(sides, func(s Side) bool { return s.Summary.Compat != sides[0].Summary.Compat }) {
		r.Warnings = append(r.Warnings, "The figures are by different definitions: some of the runs were made with --compat.")
	}
	for _, s := range sides {
		switch {
		case s.Summary.Verdict.Status == result.Voided:
			r.Warnings = append(r.Warnings, fmt.Sprintf("%s is void, do not compare its figures: %s.", s.Name, s.Summary.Verdict.Why()))
		case s.Summary.Partial:
			r.Warnings = append(r.Warnings, s.Name+" is partial: it was stopped before its end.")
		case s.Summary.Verdict.Status == result.Noted:
			r.Warnings = append(r.Warnings, fmt.Sprintf("%s is noted: %s.", s.Name, s.Summary.Verdict.Why()))
		}
	}
	r.Figures = sideFigures(sides)
	r.draw = func() []plot.Plot { return runsPlots(sides, sim || predicted) }
	return r
}

// anySimulated reports whether any of the runs is, and whether any was predicted.
func anySimulated(sides []Side) (sim, predicted bool) {
	for i := range sides {
		s := &sides[i]
		sim, predicted = sim || s.Header.Simulated || s.Summary.Simulated, predicted || s.Header.Predicted || s.Summary.Predicted
	}
	return sim, predicted
}

// keyStarted is the fact that runs are expected to differ in.
const keyStarted = "started"

// compareHeaders fills the facts and warns of those that must agree; the
// fingerprints need not where seeded says so.
func (r *sideBySide) compareHeaders(sides []Side, seeded bool) {
	var single []compare.Side
	for _, s := range sides {
		single = append(single, compare.Side{Name: s.Name, Runs: []compare.Run{{Name: s.Name, Header: s.Header, Summary: s.Summary}}})
	}
	started := compare.Fact{Key: keyStarted, Label: "Started"}
	for _, s := range sides {
		started.Values = append(started.Values, Date(s.Header.Started))
	}
	host := compare.Fact{Label: LoadGenerator}
	for _, s := range sides {
		host.Values = append(host.Values, Host(s.Header.Host))
	}
	for _, f := range slices.Concat([]compare.Fact{started}, compare.Facts(single), []compare.Fact{host}) {
		if len(f.Known()) > 0 {
			r.Facts = append(r.Facts, f)
		}
		if text := f.Warning(); text != "" && !(seeded && f.Key == compare.KeyFingerprint) {
			r.Warnings = append(r.Warnings, text)
		}
	}
}

// figureRow is a figure with what it means and a cell for each run.
type figureRow struct {
	Label, Doc, Formula string
	Cells               []doc.Cell
}

// sideFigures are the rows that any of the runs has a figure for: the scalars
// and of each distribution the mean and the common percentiles.
func sideFigures(sides []Side) []figureRow {
	var rows []figureRow
	for _, m := range result.Metrics() {
		if m.Family != "" && !slices.Contains([]string{"mean", "median", "p90", "p99"}, m.Stat) {
			continue
		}
		rows = append(rows, metricRows(sides, m)...)
	}
	return rows
}

// metricRows are the rows of one figure: one for each definition it is by.
func metricRows(sides []Side, m result.Metric) []figureRow {
	var rows []figureRow
	for _, d := range sideDefinitions(sides, m) {
		row := figureRow{Label: tagged(result.Label(m, definedAs(sides, m, d)...), d), Doc: m.Doc, Formula: m.Formula}
		if doc, ok := d.Doc(); ok {
			row.Formula = doc.Formula
		}
		for i := range sides {
			c := doc.Cell{Text: doc.Spans(missing)}
			if sides[i].Summary.Definition(m.Name) == d {
				c = figureCell(&sides[i].Summary, m)
			}
			row.Cells = append(row.Cells, c)
		}
		rows = append(rows, row)
	}
	return rows
}

// definedAs are the summaries that have a figure by a definition.
func definedAs(sides []Side, m result.Metric, d result.Definition) []*result.Summary {
	var out []*result.Summary
	for i := range sides {
		if s := &sides[i].Summary; s.Definition(m.Name) == d {
			out = append(out, s)
		}
	}
	return out
}

// sideDefinitions are the definitions by which the runs have a figure, in the
// order of the runs: each has a row of its own.
func sideDefinitions(sides []Side, m result.Metric) []result.Definition {
	var out []result.Definition
	for i := range sides {
		s := &sides[i].Summary
		if _, ok := value(s, m); ok && !slices.Contains(out, s.Definition(m.Name)) {
			out = append(out, s.Definition(m.Name))
		}
	}
	return out
}

// runsPlots draws the latencies of the runs into one picture each.
func runsPlots(sides []Side, sim bool) []plot.Plot {
	compat := slices.ContainsFunc(sides, func(s Side) bool { return s.Summary.Compat != "" || s.Header.Imported != nil })
	var runs []runplot.Run
	for _, s := range sides {
		runs = append(runs, runplot.Run{Name: s.Name, Header: s.Header, Calls: s.Calls, Every: s.Summary.OneIn})
	}
	return runplot.Overlaid(runs, compat, sim)
}

// Runs shows several runs side by side.
func Runs(sides []Side) doc.Document {
	r := newRuns(sides)
	d := doc.New(r.Title, r.Banner, r.Title)
	d.Body.List(doc.InMarkdown, r.Warnings...)
	d.Body.StyledEach(doc.InPage, "note", r.Warnings...)
	r.show(&d, d.Body.Part(doc.Everywhere, doc.Section{ID: "figures", Page: "Figures", Listed: true}))
	for _, f := range r.Facts {
		if f.Differ || f.Key == keyStarted {
			d.Body.Textf("%s: %s", f.Label, f.Each(r.Names))
		}
	}
	for _, text := range r.Warnings {
		d.Body.Text("warning: " + text)
	}
	return d
}

// show adds the figures of the runs to a section, a column each, and after it
// their plots and what ran.
func (r sideBySide) show(d *doc.Document, figures *doc.Section) {
	t := doc.Table{Empty: true, Values: true, Columns: doc.Columns("Figure")}
	t.Columns[0].Text, t.Columns[0].Tipped = new(""), true
	ran := doc.Table{Empty: true, Columns: doc.Columns("Item")}
	for _, n := range r.Names {
		t.Columns = append(t.Columns, doc.Column{Head: doc.Spans(n), Right: true})
		ran.Columns = append(ran.Columns, doc.Column{Head: doc.Spans(n)})
	}
	for _, f := range r.Figures {
		t.Rows = append(t.Rows, doc.Row{Cells: append([]doc.Cell{{Text: doc.Spans(f.Label), Tip: f.Doc + " " + f.Formula}}, f.Cells...)})
	}
	figures.Add(doc.Everywhere, t)
	d.Body.Section("plots", "Plots").Figures(doc.InPage, r.draw)
	for _, f := range r.Facts {
		ran.Rows = append(ran.Rows, factRow(f))
	}
	d.Body.Section("ran", "What Ran").Add(doc.InDocument, ran)
}

// factRow has what each side tells of a fact.
func factRow(f compare.Fact) doc.Row {
	r := doc.Cells(f.Label)
	if f.Differ {
		r.Class = "differ"
	}
	for _, v := range f.Values {
		c := doc.Cell{Text: doc.Spans(doc.Code(v))}
		if v == "" {
			c.Page = doc.Spans(notRecorded)
		}
		r.Cells = append(r.Cells, c)
	}
	return r
}
