package doc

import (
	"slices"
	"strings"
)

// Table is a table of any form: columns, and rows of as many cells.
type Table struct {
	Class    string // on a page
	Columns  []Column
	Rows     []Row
	Empty    bool   // shown without rows too
	NoHead   Form   // forms without a row of heads
	HeadCell int    // the column that names its row; -1: none
	Caption  string // what to click on to see it; "": it is in view
	most     int    // rows in Markdown; 0: all
	source   string // the file that has them all
	Values   bool   // Markdown has values alone, not what is beside them
	Right    bool   // text is aligned right
	Trimmed  bool   // text has no spaces at the ends of lines
	Beneath  bool   // text has what is beside values in a line of its own
	Width    int    // text has the narrow table if this one is wider
	Narrow   *Table
}

// Column is the head of a column and how its cells stand.
type Column struct {
	Head   []Span
	Text   *string // head in text, where it is another
	Page   []Span  // head on a page, where it is another
	Right  bool    // numbers
	Wrap   bool    // the head of a page may break
	Class  string  // of the cells on a page
	Tip    string  // of the head on a page
	Toned  bool    // every cell of a page has a class, if an empty one
	Tipped bool    // every cell of a page has a tip, if an empty one
}

// Row is a row of a table.
type Row struct {
	Class string // on a page
	Bold  bool   // its first cell, in Markdown
	Above string // a line in text
	Cells []Cell
}

func (r Row) hasBeside() bool {
	return slices.ContainsFunc(r.Cells, func(c Cell) bool { return c.Beside != "" })
}

// Cell is a cell of a table.
type Cell struct {
	Text     []Span
	Beside   string  // small and under it on a page, in brackets in Markdown: an interval
	Markdown []Span  // in place of text, where it is another
	Page     []Span  // the same
	inText   *string // the same
	class    string  // on a page
	Tip      string  // on a page
	Tone     string  // up, down: good or bad news
	Strong   bool    // bold in Markdown
	Rows     int     // on a page; 0: 1
	Covered  bool    // on a page, by a cell above it
}

func (c Column) textHead() string {
	if c.Text != nil {
		return *c.Text
	}
	return plainText(c.Head)
}

// Columns makes columns of heads; one that begins with ">" is of numbers, with
// "=" of sentences.
func Columns(heads ...string) []Column {
	var c []Column
	for _, h := range heads {
		k := Column{Head: Spans(strings.TrimLeft(h, ">=")), Right: strings.HasPrefix(h, ">")}
		if strings.HasPrefix(h, "=") {
			k.Class = "wide"
		}
		c = append(c, k)
	}
	return c
}

// Cells makes a row of cells; see spans for each.
func Cells(parts ...any) Row {
	var r Row
	for _, p := range parts {
		if c, ok := p.(Cell); ok {
			r.Cells = append(r.Cells, c)
		} else {
			r.Cells = append(r.Cells, Cell{Text: Spans(p)})
		}
	}
	return r
}

// Texts makes a row of plain texts.
func Texts(all ...string) Row {
	var r Row
	for _, t := range all {
		r.Cells = append(r.Cells, Cell{Text: Spans(t)})
	}
	return r
}

// Shorten leaves Markdown the first rows, and says which file has all.
func (t *Table) Shorten(rows int, source string) { t.most, t.source = rows, source }

// None stands in a table where there is nothing to say.
const None = "-"

// NewGrid is a table none of whose columns names the rows.
func NewGrid(columns []Column) *Table {
	return &Table{Class: "grid", HeadCell: -1, Columns: columns}
}

// Dashed makes a row of plain texts; what is empty shows as "-".
func Dashed(all ...string) Row {
	for i, t := range all {
		if t == "" {
			all[i] = None
		}
	}
	return Texts(all...)
}

// Toned marks a cell as good or bad news; bad news is bold in Markdown.
func (r Row) Toned(i int, tone string) Row {
	r.Cells[i].Tone, r.Cells[i].Strong = tone, tone == "down"
	return r
}

// Coded makes a cell code.
func (r Row) Coded(i int) Row {
	r.Cells[i].Text, r.Cells[i].class = Spans(Code(r.Cells[i].Text[0].Text)), "code"
	return r
}

// Emphasised makes a row bold, in Markdown its first cell.
func (r Row) Emphasised() Row {
	r.Class, r.Bold = "bold", true
	return r
}

// Unbroken is a value of which a narrow page breaks no part: "mean 2.13 requests, peak 7 requests" has
// two lines there, and not three.
func Unbroken(value string) []Span {
	const space = "\u00a0"
	return Spans(strings.ReplaceAll(strings.ReplaceAll(value, " ", space), ","+space, ", "))
}
