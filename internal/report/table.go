package report

import (
	"slices"
	"strings"
)

// table is a table of any form: columns, and rows of as many cells.
type table struct {
	class    string // on a page
	columns  []column
	rows     []row
	empty    bool   // shown without rows too
	noHead   form   // forms without a row of heads
	headCell int    // the column that names its row; -1: none
	caption  string // what to click on to see it; "": it is in view
	most     int    // rows in Markdown; 0: all
	values   bool   // Markdown has values alone, not what is beside them
	right    bool   // text is aligned right
	trimmed  bool   // text has no spaces at the ends of lines
	beneath  bool   // text has what is beside values in a line of its own
	width    int    // text has the narrow table if this one is wider
	narrow   *table
}

// column is the head of a column and how its cells stand.
type column struct {
	head   []span
	text   *string // head in text, where it is another
	page   []span  // head on a page, where it is another
	right  bool    // numbers
	wrap   bool    // the head of a page may break
	class  string  // of the cells on a page
	tip    string  // of the head on a page
	toned  bool    // every cell of a page has a class, if an empty one
	tipped bool    // every cell of a page has a tip, if an empty one
}

// row is a row of a table.
type row struct {
	class string // on a page
	bold  bool   // its first cell, in Markdown
	above string // a line in text
	cells []cell
}

func (r row) hasBeside() bool {
	return slices.ContainsFunc(r.cells, func(c cell) bool { return c.beside != "" })
}

// cell is a cell of a table.
type cell struct {
	text     []span
	beside   string  // small and under it on a page, in brackets in Markdown: an interval
	markdown []span  // in place of text, where it is another
	page     []span  // the same
	inText   *string // the same
	class    string  // on a page
	tip      string  // on a page
	tone     string  // up, down: good or bad news
	strong   bool    // bold in Markdown
	rows     int     // on a page; 0: 1
	covered  bool    // on a page, by a cell above it
}

func (c column) textHead() string {
	if c.text != nil {
		return *c.text
	}
	return plainText(c.head)
}

// columns makes columns of heads; one that begins with ">" is of numbers, with
// "=" of sentences.
func columns(heads ...string) []column {
	var c []column
	for _, h := range heads {
		k := column{head: spans(strings.TrimLeft(h, ">=")), right: strings.HasPrefix(h, ">")}
		if strings.HasPrefix(h, "=") {
			k.class = "wide"
		}
		c = append(c, k)
	}
	return c
}

// cells makes a row of cells; see spans for each.
func cells(parts ...any) row {
	var r row
	for _, p := range parts {
		if c, ok := p.(cell); ok {
			r.cells = append(r.cells, c)
		} else {
			r.cells = append(r.cells, cell{text: spans(p)})
		}
	}
	return r
}

// texts makes a row of plain texts.
func texts(all ...string) row {
	var r row
	for _, t := range all {
		r.cells = append(r.cells, cell{text: spans(t)})
	}
	return r
}
