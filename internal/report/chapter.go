package report

import "perflab/internal/report/plot"

// chapter is a part of a report under a heading: text, plots, a table, and tables
// that open on a click.
type chapter struct {
	ID, Heading string
	Level       int // of the heading; 0: below the section's
	Text        []string
	Plots       []plot.Plot
	Grid        *table
	After       []string // under the table
	Folded      []table
}

// add adds the chapter to a section. It is nothing without a heading.
func (c chapter) add(to *section, listed bool) {
	if c.Heading == "" {
		return
	}
	s := to.part(inDocument, section{level: c.Level, element: "section", id: c.ID, title: c.Heading, listed: listed})
	s.styledEach(inDocument, "", c.Text...)
	if len(c.Plots) > 0 {
		s.figures(inDocument, func() []plot.Plot { return c.Plots })
		s.joined()
	}
	if c.Grid != nil {
		s.add(inDocument, *c.Grid)
		s.joined()
	}
	if len(c.After) > 0 {
		s.list(inDocument, c.After...)
	}
	for _, t := range c.Folded {
		s.add(inDocument, t)
	}
}

// shortRows bounds a table in Markdown that a page folds.
const shortRows = 12

// newGrid is a table none of whose columns names the rows.
func newGrid(columns []column) *table {
	return &table{class: "grid", headCell: -1, columns: columns}
}

// dashed makes a row of plain texts; what is empty shows as "-".
func dashed(all ...string) row {
	for i, t := range all {
		if t == "" {
			all[i] = none
		}
	}
	return texts(all...)
}

// toned marks a cell as good or bad news; bad news is bold in Markdown.
func (r row) toned(i int, tone string) row {
	r.cells[i].tone, r.cells[i].strong = tone, tone == "down"
	return r
}

// coded makes a cell code.
func (r row) coded(i int) row {
	r.cells[i].text, r.cells[i].class = spans(code(r.cells[i].text[0].text)), "code"
	return r
}

// emphasised makes a row bold, in Markdown its first cell.
func (r row) emphasised() row {
	r.class, r.bold = "bold", true
	return r
}
