package document

import (
	"slices"
	"strings"

	"perflab/internal/interop"
)

// columnRole of a column.
type columnRole int

const (
	plainColumn columnRole = iota
	baselineColumn
	optimisedColumn
)

// columnRoleOf reads a column's head.
func columnRoleOf(head string) columnRole {
	for _, w := range wordsOf(head) {
		switch w.text {
		case "baseline", "before", "without", "original":
			return baselineColumn
		case "optimized", "optimised", "after", "with", "new", "tuned":
			return optimisedColumn
		}
	}
	return plainColumn
}

// cell is what a cell of a table says: figures, each with the ratio behind it,
// or a ratio alone.
type cell struct {
	citations []citation
	ratios    []*quantity // of each citation; nil for none
	per       []bool      // the ratio is per GPU
	words     []string    // behind each ratio
	alone     *quantity   // a cell that is a ratio and nothing more
	word      string      // behind it
}

// readCell reads a cell whose column and row may name its metric.
func (d *document) readCell(text string, line int, named []namedMetric) cell {
	var c cell
	for part := range strings.SplitSeq(text, "\n") {
		part, _ = unquote(part)
		all := quantities(part)
		own := namedMetrics(part)
		for i, q := range all {
			switch {
			case i == 0 && (q.Unit == inPercent || q.Unit == asFactor) && strings.Trim(part[:q.Start], " (*~≈↑↓") == "":
				c.alone, c.word = &all[i], wordBehind(part, q)
			case i == 1 && (q.Unit == inPercent || q.Unit == asFactor) && len(c.citations) > 0 && strings.Trim(part[all[0].End:q.Start], " *") == "(":
				last := len(c.citations) - 1
				c.ratios[last], c.per[last], c.words[last] = &all[i], perGPU(part[q.End:min(len(part), q.End+12)]), wordBehind(part, q)
			case i == 0 && !q.Signed && q.Unit != inPercent && q.Unit != asFactor && q.Unit != reqSec:
				t, ok := cellCitation(part, q, own, named)
				if !ok {
					return cell{}
				}
				t.line = line
				d.match(&t)
				c.citations, c.ratios, c.per, c.words = append(c.citations, t), append(c.ratios, nil), append(c.per, false), append(c.words, "")
			}
		}
	}
	return c
}

// wordBehind is the word that tells the direction of a ratio.
func wordBehind(text string, q quantity) string {
	if words := wordsOf(text[q.End:min(len(text), q.End+16)]); len(words) > 0 {
		return direction(words[0].text)
	}
	return ""
}

// cellCitation finds the metric of the first number of a part of a cell.
func cellCitation(part string, q quantity, own, named []namedMetric) (citation, bool) {
	m := namedMetric{}
	switch {
	case len(own) > 0 && own[len(own)-1].end <= q.Start:
		m = own[len(own)-1]
		if !assigns(part[m.end:q.Start]) {
			return citation{}, false
		}
	case strings.Trim(part[:q.Start], " *~≈") != "":
		return citation{}, false // the number is of words
	case len(named) > 0:
		m = named[len(named)-1]
	case q.Unit == msec:
		m = namedMetric{kind: "time"}
	case q.Unit == perSec:
		m = namedMetric{kind: "throughput"}
	default:
		return citation{}, false
	}
	if q.Unit == bare && m.unit != bare {
		q.Unit = m.unit
		if m.seconds {
			q.scale(1000)
			q.Scale = 1000
		}
	}
	if q.Unit == bare && m.isRate() {
		q.Unit = perSec
	}
	if m.isRate() && q.Unit == msec || !m.isRate() && q.Unit == perSec {
		return citation{}, false
	}
	return citation{quantity: q, named: m}, true
}

// readTable reads what a table claims.
func (d *document) readTable(t *interop.Table) {
	if d.readOptions(t) {
		return
	}
	roles := make([]columnRole, len(t.Head))
	base, name := -1, 0
	for i, h := range t.Head {
		roles[i] = columnRoleOf(h)
		if roles[i] == baselineColumn && base < 0 {
			base = i
		}
		if w := strings.ToLower(strings.TrimSpace(h)); i < nameColumns && (w == "group" || w == "option") {
			name = i
		}
	}
	rows := make([][]cell, len(t.Rows))
	for i, r := range t.Rows {
		rows[i] = make([]cell, len(r.Cells))
		for j, text := range r.Cells {
			if j == 0 || j == name {
				continue
			}
			var named []namedMetric
			if j < len(t.Head) {
				named = namedMetrics(t.Head[j])
			}
			if len(named) == 0 {
				named = namedMetrics(r.Cells[0])
				if n := len(named); n > 0 && j < len(t.Head) && named[n-1].stat == "" {
					named[n-1].stat = columnStat(t.Head[j])
				}
			}
			rows[i][j] = d.readCell(text, r.Line, named)
		}
	}
	reference := -1
	if base < 0 {
		reference = referenceRow(t, rows)
	}
	for i, r := range t.Rows {
		d.readRow(t, i, rows, roles, base, reference, labelOf(r, name))
	}
}

// columnStat is the statistic that the head of a column names and no more: "P90".
func columnStat(head string) string {
	words := wordsOf(head)
	if len(words) != 1 {
		return ""
	}
	switch w := words[0].text; w {
	case "std", "min", "max":
		return w
	default:
		return statOf(w)
	}
}

// labelOf is the cell that names a row.
func labelOf(r interop.Row, name int) string {
	if name < len(r.Cells) {
		return strings.TrimSpace(r.Cells[name])
	}
	return ""
}

// readRow makes a statement of a row, with its comparisons.
func (d *document) readRow(t *interop.Table, i int, rows [][]cell, roles []columnRole, base, reference int, label string) {
	row := rows[i]
	l := statement{line: t.Rows[i].Line, kind: inTable, table: t, label: label, text: strings.Join(t.Rows[i].Cells, " | ")}
	p := comparedRow{table: t, line: l.line, label: label}
	var baseCell cell
	if base >= 0 && base < len(row) {
		baseCell = row[base]
	}
	for j, c := range row {
		l.citations = append(l.citations, c.citations...)
		for k, f := range c.citations {
			against, ok := sameMetric(baseCell, f)
			if reference >= 0 && reference != i && j < len(rows[reference]) {
				against, ok = sameMetric(rows[reference][j], f)
			}
			if !ok || j == base {
				continue
			}
			cmp := comparison{changed: f, base: against, ratio: c.ratios[k], perGPU: c.per[k], word: c.words[k], line: l.line, label: label}
			l.comparisons = append(l.comparisons, cmp)
			p.base, p.changed, p.ratio = append(p.base, against), append(p.changed, f), p.ratio || cmp.ratio != nil
		}
	}
	if c, ok := aloneRatio(row, roles); ok {
		c.better = slices.ContainsFunc(t.Head, func(h string) bool {
			h = strings.ToLower(h)
			return strings.Contains(h, "improve") || strings.Contains(h, "gain") || strings.Contains(h, "reduction")
		})
		c.line, c.label = l.line, label
		l.comparisons = append(l.comparisons[:0:0], c)
		p.ratio = true
		p.base, p.changed = []citation{c.base}, []citation{c.changed}
	}
	if len(p.changed) > 0 {
		p.from, p.to = d.runOf(label, p.line, p.base), d.runOf(label, p.line, p.changed)
		d.rows = append(d.rows, p)
	}
	if len(l.citations) > 0 {
		d.statements = append(d.statements, l)
	}
}

// sameMetric finds the figure of a cell that is of the metric.
func sameMetric(c cell, f citation) (citation, bool) {
	for _, t := range c.citations {
		if t.named.sameAs(f.named) && (t.Unit == f.Unit) {
			return t, true
		}
	}
	return citation{}, false
}

// aloneRatio makes a comparison of a row with two figures of one metric in two
// cells and a ratio in a third.
func aloneRatio(row []cell, roles []columnRole) (comparison, bool) {
	var c comparison
	var two []citation
	var at []int
	for j, x := range row {
		switch {
		case x.alone != nil && c.ratio != nil:
			return c, false
		case x.alone != nil:
			c.ratio, c.word = x.alone, x.word
		case len(x.citations) > 0:
			two, at = append(two, x.citations[0]), append(at, j)
		}
	}
	if c.ratio == nil || len(two) != 2 || !two[0].named.sameAs(two[1].named) || two[0].Unit != two[1].Unit {
		return c, false
	}
	c.base, c.changed = two[0], two[1]
	a, b := roleAt(roles, at[0]), roleAt(roles, at[1])
	switch {
	case b == baselineColumn || a == optimisedColumn:
		c.base, c.changed = two[1], two[0]
	case a != baselineColumn && b != optimisedColumn:
		c.unordered = true
	}
	return c, true
}

// roleAt is the role of a column, plain where the row is longer than the head.
func roleAt(roles []columnRole, i int) columnRole {
	if i < len(roles) {
		return roles[i]
	}
	return plainColumn
}

// fewestFits is how many ratios must follow from a row to make it the reference
// of a table of more than two.
const fewestFits = 2

// nameColumns is among how many columns the one that names a row is looked for.
const nameColumns = 3

// referenceRow finds the row that the ratios behind the figures of other rows
// are against: the one that most of them fit. Less than two fits, or a row for
// each, is a guess: -1.
func referenceRow(t *interop.Table, rows [][]cell) int {
	if len(rows) > mostRows {
		return -1
	}
	best, fits, tied := -1, 0, false
	for r := range rows {
		n := 0
		for i := range rows {
			for j, c := range rows[i] {
				if i == r || j >= len(rows[r]) {
					continue
				}
				n += ratioFits(c, rows[r][j])
			}
		}
		switch {
		case n > fits:
			best, fits, tied = r, n, false
		case n == fits:
			tied = true
		}
	}
	if tied || fits < fewestFits && len(rows) != 2 {
		return -1
	}
	return best
}

// ratioFits counts the ratios of a cell that follow from the figures of
// another.
func ratioFits(c, base cell) int {
	n := 0
	for k, f := range c.citations {
		b, ok := sameMetric(base, f)
		if !ok || c.ratios[k] == nil || b.Value <= 0 || f.Value <= 0 {
			continue
		}
		q := comparison{changed: f, base: b, ratio: c.ratios[k], word: c.words[k]}
		printed := q.ratio.interval()
		if slices.ContainsFunc(q.readings(f.span(), b.span()), printed.Meets) {
			n++
		}
	}
	return n
}
