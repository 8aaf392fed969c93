package report

import (
	"fmt"
	"perflab/internal/report/plot"
	"strings"
)

// grid is a table that every form renders alike.
type grid struct {
	Columns []oldColumn
	Rows    []gridRow
}

type oldColumn struct {
	Head   string
	Number bool // right-aligned
	Wide   bool // sentences
}

// gridRow is one row; its first entry is its head.
type gridRow struct {
	Cells []entry
	Bold  bool
}

// entry is a cell, in plain text.
type entry struct {
	Text  string
	Short string // in place of Text where nothing can be folded; "": Text
	Tone  string // up, down: good or bad news
	Code  bool
}

// oldColumns makes columns of heads; one that begins with ">" is of numbers, with
// "=" of sentences.
func oldColumns(heads ...string) []oldColumn {
	var c []oldColumn
	for _, h := range heads {
		c = append(c, oldColumn{strings.TrimLeft(h, ">="), strings.HasPrefix(h, ">"), strings.HasPrefix(h, "=")})
	}
	return c
}

// oldRow makes a row of plain texts; what is empty shows as "-".
func oldRow(texts ...string) gridRow {
	var r gridRow
	for _, t := range texts {
		if t == "" {
			t = none
		}
		r.Cells = append(r.Cells, entry{Text: t})
	}
	return r
}

// toned marks one cell of a row.
func (r gridRow) toned(i int, tone string) gridRow {
	r.Cells[i].Tone = tone
	return r
}

// Class is that of an entry on a page.
func (g grid) Class(i int, e entry) string {
	class := e.Tone
	if e.Code {
		class = strings.TrimSpace("code " + class)
	}
	switch {
	case i >= len(g.Columns):
	case g.Columns[i].Number:
		class = "n " + class
	case g.Columns[i].Wide:
		class = "wide " + class
	}
	return strings.TrimSpace(class)
}

// chapter is a part of a report: text, plots and tables under a heading.
type chapter struct {
	ID, Heading string
	Text        []string
	Plots       []plot.Plot
	Grid        *grid
	After       []string // under the table
	Folded      []folded
}

// folded is a table behind a click, shortened where a form has none.
type folded struct {
	Summary string
	Grid    grid
	Whole   bool // never shortened
}

// shortRows bounds a folded table in Markdown.
const shortRows = 12

// chapter writes a chapter under a heading of a level.
func (m *mdWriter) chapter(level int, c chapter) {
	m.heading(level, c.Heading)
	for _, t := range c.Text {
		m.para("%s", mdText(t))
	}
	m.plots(c.Plots)
	if c.Grid != nil {
		m.grid(*c.Grid, 0)
	}
	m.list("-", c.After...)
	for _, f := range c.Folded {
		m.para("%s:", mdText(f.Summary))
		most := shortRows
		if f.Whole {
			most = 0
		}
		m.grid(f.Grid, most)
	}
}

// grid writes a table, of its rows at most so many unless that is 0.
func (m *mdWriter) grid(g grid, most int) {
	if len(g.Rows) == 0 {
		return
	}
	var heads, rules []string
	for _, c := range g.Columns {
		rule := "---"
		if c.Number {
			rule = "---:"
		}
		heads, rules = append(heads, mdText(c.Head)), append(rules, rule)
	}
	m.row(heads...)
	m.row(rules...)
	rows := g.Rows
	if most > 0 && len(rows) > most {
		rows = rows[:most]
	}
	for _, r := range rows {
		var cells []string
		for i, e := range r.Cells {
			text := e.Text
			if e.Short != "" {
				text = e.Short
			}
			if e.Code {
				text = mdCode(text)
			} else {
				text = mdText(text)
			}
			if i == 0 && r.Bold || e.Tone == "down" {
				text = "**" + text + "**"
			}
			cells = append(cells, text)
		}
		m.row(cells...)
	}
	m.b.WriteString("\n")
	if n := len(g.Rows) - len(rows); n > 0 {
		m.para("%s", fmt.Sprintf("and %s in `study.json`.", count(n, "more row")))
	}
}
