package document

import (
	"slices"
	"strings"

	"perflab/internal/audit"
	"perflab/internal/interop"
)

// pair is a row of a table that puts figures beside those of a baseline, and
// the runs that have them.
type pair struct {
	table       *interop.Table
	line        int
	label       string
	base, fresh []term
	ratio       bool     // a gain is printed
	from, to    *subject // nil: not found
}

// option is a row of a table that gives an option and its gain alone.
type option struct {
	line  int
	name  string
	ratio *quantity // nil: no gain is claimed
	per   bool      // per GPU
}

// role of a column.
type role int

const (
	plain role = iota
	baseline
	optimised
)

// roleOf reads a column's head.
func roleOf(head string) role {
	for _, w := range wordsOf(head) {
		switch w.text {
		case "baseline", "before", "without", "original":
			return baseline
		case "optimized", "optimised", "after", "with", "new", "tuned":
			return optimised
		}
	}
	return plain
}

// cell is what a cell of a table says: figures, each with the ratio behind it,
// or a ratio alone.
type cell struct {
	terms  []term
	ratios []*quantity // of each term; nil for none
	per    []bool      // the ratio is per GPU
	words  []string    // behind each ratio
	alone  *quantity   // a cell that is a ratio and nothing more
	word   string      // behind it
}

// readCell reads a cell whose column and row may name its metric.
func (s *study) readCell(text string, line int, named []measure) cell {
	var c cell
	for part := range strings.SplitSeq(text, "\n") {
		part, _ = unquote(part)
		all := quantities(part)
		own := measures(part)
		for i, q := range all {
			switch {
			case i == 0 && (q.Unit == inPercent || q.Unit == asFactor) && strings.Trim(part[:q.Start], " (*") == "":
				c.alone, c.word = &all[i], behind(part, q)
			case i == 1 && (q.Unit == inPercent || q.Unit == asFactor) && len(c.terms) > 0 && strings.Trim(part[all[0].End:q.Start], " *") == "(":
				last := len(c.terms) - 1
				c.ratios[last], c.per[last], c.words[last] = &all[i], perGPU(part[q.End:min(len(part), q.End+12)]), behind(part, q)
			case i == 0 && !q.Signed && q.Unit != inPercent && q.Unit != asFactor && q.Unit != reqSec:
				t, ok := cellTerm(part, q, own, named)
				if !ok {
					return cell{}
				}
				t.line, t.where = line, "table"
				s.match(&t)
				c.terms, c.ratios, c.per, c.words = append(c.terms, t), append(c.ratios, nil), append(c.per, false), append(c.words, "")
			}
		}
	}
	return c
}

// behind is the word that tells the direction of a ratio.
func behind(text string, q quantity) string {
	if words := wordsOf(text[q.End:min(len(text), q.End+16)]); len(words) > 0 {
		return direction(words[0].text)
	}
	return ""
}

// cellTerm finds the metric of the first number of a part of a cell.
func cellTerm(part string, q quantity, own, named []measure) (term, bool) {
	m := measure{}
	switch {
	case len(own) > 0 && own[len(own)-1].at <= q.Start:
		m = own[len(own)-1]
		if !assigns(part[m.at:q.Start]) {
			return term{}, false
		}
	case strings.Trim(part[:q.Start], " *~≈") != "":
		return term{}, false // the number is of words
	case len(named) > 0:
		m = named[len(named)-1]
	case q.Unit == msec:
		m = measure{kind: "time"}
	case q.Unit == perSec:
		m = measure{kind: "throughput"}
	default:
		return term{}, false
	}
	if q.Unit == bare && m.unit != bare {
		q.Unit = m.unit
		if m.seconds {
			q.scale(1000)
			q.Scale = 1000
		}
	}
	if q.Unit == bare && m.rate() {
		q.Unit = perSec
	}
	if m.rate() && q.Unit == msec || !m.rate() && q.Unit == perSec {
		return term{}, false
	}
	return term{quantity: q, measure: m}, true
}

// readTable reads what a table claims.
func (s *study) readTable(t *interop.Table) {
	if s.readOptions(t) {
		return
	}
	roles := make([]role, len(t.Head))
	base, name := -1, 0
	for i, h := range t.Head {
		roles[i] = roleOf(h)
		if roles[i] == baseline && base < 0 {
			base = i
		}
		if w := strings.ToLower(strings.TrimSpace(h)); i < 3 && (w == "group" || w == "option") {
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
			var named []measure
			if j < len(t.Head) {
				named = measures(t.Head[j])
			}
			if len(named) == 0 {
				named = measures(r.Cells[0])
			}
			rows[i][j] = s.readCell(text, r.Line, named)
		}
	}
	reference := -1
	if base < 0 {
		reference = referenceRow(t, rows)
	}
	for i, r := range t.Rows {
		s.readRow(t, i, rows, roles, base, reference, labelOf(r, name))
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
func (s *study) readRow(t *interop.Table, i int, rows [][]cell, roles []role, base, reference int, label string) {
	row := rows[i]
	l := statement{line: t.Rows[i].Line, kind: "table", table: t, label: label, text: strings.Join(t.Rows[i].Cells, " | ")}
	p := pair{table: t, line: l.line, label: label}
	var baseCell cell
	if base >= 0 && base < len(row) {
		baseCell = row[base]
	}
	for j, c := range row {
		l.terms = append(l.terms, c.terms...)
		for k, f := range c.terms {
			against, ok := sameMeasure(baseCell, f)
			if reference >= 0 && reference != i && j < len(rows[reference]) {
				against, ok = sameMeasure(rows[reference][j], f)
			}
			if !ok || j == base {
				continue
			}
			cmp := comparison{fresh: f, base: against, ratio: c.ratios[k], perGPU: c.per[k], word: c.words[k], line: l.line, label: label}
			l.comparisons = append(l.comparisons, cmp)
			p.base, p.fresh, p.ratio = append(p.base, against), append(p.fresh, f), p.ratio || cmp.ratio != nil
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
		p.base, p.fresh = []term{c.base}, []term{c.fresh}
	}
	if len(p.fresh) > 0 {
		p.from, p.to = s.find(label, p.line, p.base), s.find(label, p.line, p.fresh)
		s.rows = append(s.rows, p)
	}
	if len(l.terms) > 0 {
		s.lines = append(s.lines, l)
	}
}

// sameMeasure finds the figure of a cell that is of the metric.
func sameMeasure(c cell, f term) (term, bool) {
	for _, t := range c.terms {
		if t.measure.same(f.measure) && (t.Unit == f.Unit) {
			return t, true
		}
	}
	return term{}, false
}

// aloneRatio makes a comparison of a row with two figures of one metric in two
// cells and a ratio in a third.
func aloneRatio(row []cell, roles []role) (comparison, bool) {
	var c comparison
	var two []term
	var at []int
	for j, x := range row {
		switch {
		case x.alone != nil && c.ratio != nil:
			return c, false
		case x.alone != nil:
			c.ratio, c.word = x.alone, x.word
		case len(x.terms) > 0:
			two, at = append(two, x.terms[0]), append(at, j)
		}
	}
	if c.ratio == nil || len(two) != 2 || !two[0].measure.same(two[1].measure) || two[0].Unit != two[1].Unit {
		return c, false
	}
	c.base, c.fresh = two[0], two[1]
	a, b := roleAt(roles, at[0]), roleAt(roles, at[1])
	switch {
	case b == baseline || a == optimised:
		c.base, c.fresh = two[1], two[0]
	case a != baseline && b != optimised:
		c.unordered = true
	}
	return c, true
}

// roleAt is the role of a column, plain where the row is longer than the head.
func roleAt(roles []role, i int) role {
	if i < len(roles) {
		return roles[i]
	}
	return plain
}

// referenceRow finds the row that the ratios behind the figures of other rows
// are against: the one that most of them fit. Less than two fits, or a row for
// each, is a guess: -1.
func referenceRow(t *interop.Table, rows [][]cell) int {
	if len(rows) > 100 {
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
	if tied || fits < 2 && len(rows) != 2 {
		return -1
	}
	return best
}

// ratioFits counts the ratios of a cell that follow from the figures of
// another.
func ratioFits(c, base cell) int {
	n := 0
	for k, f := range c.terms {
		b, ok := sameMeasure(base, f)
		if !ok || c.ratios[k] == nil || b.Value <= 0 || f.Value <= 0 {
			continue
		}
		q := comparison{fresh: f, base: b, ratio: c.ratios[k], word: c.words[k]}
		said := audit.Between(q.ratio.lo(), q.ratio.hi())
		if slices.ContainsFunc(q.readings(f.span(), b.span()), said.Meets) {
			n++
		}
	}
	return n
}

// find picks the run that has all these figures, or the first of them; among
// several the one whose headings share most words with the label, and then one
// under the headings of the line.
func (s *study) find(label string, line int, terms []term) *subject {
	if len(terms) == 0 {
		return nil
	}
	words, section := wordsOf(label), s.place(line).Section
	var best *subject
	score := -1
	for _, sub := range s.subjects {
		n := 0
		for _, t := range terms {
			if slices.Contains(t.runs, sub) {
				n += 1000
			}
		}
		if n == 0 || !slices.Contains(terms[0].runs, sub) {
			continue
		}
		for _, w := range words {
			if sub.words[w.text] {
				n += 10
			}
		}
		for i, h := range section {
			if i < len(sub.run.Place.Section) && sub.run.Place.Section[i] == h {
				n++
			}
		}
		if n > score {
			best, score = sub, n
		}
	}
	return best
}

// speaksOfGain reports whether the ratios of a table of two columns are gains,
// by the head or a sign, and not shares such as an accuracy.
func speaksOfGain(t *interop.Table) bool {
	head := strings.ToLower(t.Head[1])
	for _, w := range []string{"gain", "improve", "increase", "speed", "uplift", "benefit", "change", "delta", "effect", "impact", "boost", "reduction", "提升"} {
		if strings.Contains(head, w) {
			return true
		}
	}
	return len(measures(head)) > 0 || slices.ContainsFunc(t.Rows, func(r interop.Row) bool {
		return slices.ContainsFunc(quantities(r.Cells[1]), func(q quantity) bool { return q.Signed || q.Unit == asFactor })
	})
}

// readOptions reads a table of two columns of which the second holds nothing
// but gains and dashes.
func (s *study) readOptions(t *interop.Table) bool {
	if len(t.Head) != 2 || len(t.Rows) == 0 {
		return false
	}
	var all []option
	gains := 0
	for _, r := range t.Rows {
		if len(r.Cells) != 2 {
			return false
		}
		o := option{line: r.Line, name: strings.TrimSpace(r.Cells[0])}
		text := strings.TrimSpace(r.Cells[1])
		if strings.Trim(text, "-–— ") != "" {
			c := s.readCell(text, r.Line, nil)
			if c.alone == nil {
				return false
			}
			o.ratio, o.per = c.alone, perGPU(text)
			gains++
		}
		all = append(all, o)
	}
	if gains == 0 && len(measures(t.Head[1])) == 0 || gains > 0 && !speaksOfGain(t) {
		return false
	}
	s.gains = append(s.gains, all...)
	return true
}
