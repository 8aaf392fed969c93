package document

import (
	"slices"
	"strings"

	"perflab/internal/interop"
)

// readOptions reads a table that gives options and nothing but their gains, one
// or more columns of them.
func (d *document) readOptions(t *interop.Table) bool {
	if len(t.Head) < 2 || len(t.Rows) == 0 {
		return false
	}
	var columns []int
	for j := 1; j < len(t.Head); j++ {
		switch gains, others := d.gainsIn(t, j); {
		case others && (gains > 0 || hasFigures(t, j)):
			return false
		case !others && (gains == 0 && len(namedMetrics(t.Head[j])) > 0 || gains > 0 && speaksOfGain(t, j)):
			columns = append(columns, j)
		case !others && gains > 0 && len(t.Head) > 2:
			return false // ratios of something else
		}
	}
	if len(columns) == 0 || len(t.Head) == 2 && slices.ContainsFunc(t.Rows, func(r interop.Row) bool { return len(r.Cells) != 2 }) {
		return false
	}
	for _, r := range t.Rows {
		for _, j := range columns {
			if j < len(r.Cells) {
				d.optionRows = append(d.optionRows, d.optionRow(t, r, j))
			}
		}
	}
	return true
}

// gainsIn counts the gains of a column; others is whether it has what is neither
// a gain nor a dash.
func (d *document) gainsIn(t *interop.Table, j int) (gains int, others bool) {
	for _, r := range t.Rows {
		text := cellText(r, j)
		switch {
		case strings.Trim(text, "-–— ") == "":
		case d.readCell(text, r.Line, nil).alone != nil:
			gains++
		default:
			others = true
		}
	}
	return gains, others
}

// hasFigures reports whether a column has figures and no words alone: numbers
// with a unit or decimals, and cells that begin with a number.
func hasFigures(t *interop.Table, j int) bool {
	return slices.ContainsFunc(t.Rows, func(r interop.Row) bool {
		text, _ := unquote(cellText(r, j))
		return slices.ContainsFunc(quantities(text), func(q quantity) bool {
			return q.Unit != bare || q.Half < 0.5*q.Scale || strings.Trim(text[:q.Start], " *~≈([\\#") == ""
		})
	})
}

// cellText is a cell of a row; "" where the row is shorter.
func cellText(r interop.Row, j int) string {
	if j < len(r.Cells) {
		return strings.TrimSpace(r.Cells[j])
	}
	return ""
}

// optionRow reads the gain of a row in a column.
func (d *document) optionRow(t *interop.Table, r interop.Row, j int) optionRow {
	text := cellText(r, j)
	o := optionRow{line: r.Line, name: cellText(r, 0)}
	if c := d.readCell(text, r.Line, nil); c.alone != nil {
		o.ratio, o.word, o.perGPU = c.alone, c.word, perGPU(text)
	}
	for _, m := range append(namedMetrics(t.Head[j]), namedMetrics(text)...) {
		o.named = m
	}
	return o
}

// speaksOfGain reports whether the ratios of a column are gains, by its head, or
// of a table of two columns by a sign, and not shares such as an accuracy.
func speaksOfGain(t *interop.Table, j int) bool {
	head := strings.ToLower(t.Head[j])
	for _, w := range []string{"gain", "improve", "increase", "speed", "uplift", "benefit", "change", "delta", "effect", "impact", "boost", "reduction", "提升"} {
		if strings.Contains(head, w) {
			return true
		}
	}
	return len(namedMetrics(head)) > 0 || len(t.Head) == 2 && slices.ContainsFunc(t.Rows, func(r interop.Row) bool {
		return slices.ContainsFunc(quantities(cellText(r, j)), func(q quantity) bool { return q.Signed || q.Unit == asFactor })
	})
}
