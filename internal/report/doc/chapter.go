package doc

import "perflab/internal/report/plot"

// Chapter is a part of a report under a heading: text, plots, a table, and tables
// that open on a click.
type Chapter struct {
	ID, Heading string
	Level       int // of the heading; 0: below the section's
	Text        []string
	Plots       []plot.Plot
	Grid        *Table
	After       []string // under the table
	Folded      []Table
}

// Add adds the chapter to a section. It is nothing without a heading.
func (c Chapter) Add(to *Section, listed bool) {
	if c.Heading == "" {
		return
	}
	s := to.Part(InDocument, Section{Level: c.Level, Element: "section", ID: c.ID, Title: c.Heading, Listed: listed})
	s.StyledEach(InDocument, "", c.Text...)
	if len(c.Plots) > 0 {
		s.Figures(InDocument, func() []plot.Plot { return c.Plots })
		s.Joined()
	}
	if c.Grid != nil {
		s.Add(InDocument, *c.Grid)
		s.Joined()
	}
	if len(c.After) > 0 {
		s.List(InDocument, c.After...)
	}
	for _, t := range c.Folded {
		s.Add(InDocument, t)
	}
}
