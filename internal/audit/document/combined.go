package document

import (
	"fmt"
	"slices"
	"strings"

	"perflab/internal/audit"
	"perflab/internal/interop"
)

// combinedOptions checks tables of options whose rows contain each other, "X && Y"
// beside "Y", all against one baseline.
func combinedOptions(d *document) []audit.Finding {
	var out []audit.Finding
	for i, p := range d.rows {
		if i > 0 && d.rows[i-1].table == p.table {
			continue
		}
		var table []comparedRow
		for _, q := range d.rows[i:] {
			if q.table != p.table {
				break
			}
			table = append(table, q)
		}
		out = append(out, combinedInTable(d, table)...)
	}
	return out
}

// optionParts splits the name of a combined option.
func optionParts(name string) []string {
	var out []string
	for p := range strings.SplitSeq(name, "&&") {
		for q := range strings.SplitSeq(p, " + ") {
			if q = strings.ToLower(strings.TrimSpace(q)); q != "" {
				out = append(out, q)
			}
		}
	}
	return out
}

// containedRow returns the row that holds most of the parts of another and no
// others.
func containedRow(rows []comparedRow, of comparedRow) (comparedRow, bool) {
	all := optionParts(of.label)
	var best comparedRow
	most := 0
	for _, r := range rows {
		some := optionParts(r.label)
		if len(some) >= len(all) || len(some) <= most || slices.ContainsFunc(some, func(p string) bool { return !slices.Contains(all, p) }) ||
			r.base[0].Text != of.base[0].Text || !r.changed[0].named.sameAs(of.changed[0].named) || r.line == of.line {
			continue
		}
		best, most = r, len(some)
	}
	return best, most > 0
}

// mostRows is the length from which a table's rows are not paired.
const mostRows = 100

// fasterFactor is the least that prints as more than 1.00x.
const fasterFactor = 1.005

// combinedInTable recomputes the gains of combined options against the option that
// they contain.
func combinedInTable(d *document, rows []comparedRow) []audit.Finding {
	if len(rows) > mostRows {
		return nil
	}
	var all, better []string
	var figures []audit.Cited
	line := 0
	for _, r := range rows {
		in, ok := containedRow(rows, r)
		if !ok || r.changed[0].Value <= 0 || in.changed[0].Value <= 0 {
			continue
		}
		speed := r.changed[0].total() / in.changed[0].total()
		if !r.changed[0].named.isRate() {
			speed = 1 / speed
		}
		text := fmt.Sprintf("%s %.2fx against %s", r.label, speed, in.label)
		text += variants(d, r, in)
		all = append(all, text)
		if speed >= fasterFactor {
			better = append(better, r.label)
		}
		for _, x := range []comparedRow{in, r} {
			if c := (audit.Cited{Label: x.label, Text: x.changed[0].Text, Line: x.line}); !slices.Contains(figures, c) {
				figures = append(figures, c)
			}
		}
		if line == 0 {
			line = r.line
		}
	}
	if len(all) == 0 {
		return nil
	}
	text := fmt.Sprintf("combined options are compared with %s, which has none of their parts: against the part that was measured alone, ", rows[0].base[0].Text)
	switch n := len(all) - len(better); {
	case len(better) == 0:
		text += fmt.Sprintf("none of the %d is faster", len(all))
	case n > 0:
		text += fmt.Sprintf("%d of %d are not faster, only %s", n, len(all), joinAnd(better))
	default:
		text += "their gains are smaller"
	}
	return []audit.Finding{{Type: "baseline-mixed", Severity: audit.Warning, Place: d.place(line), Figures: figures, Expected: strings.Join(all, "; "), Text: text}}
}

// variants are the factors of the other runs under the heading of a row, of
// which the table shows the best.
func variants(d *document, r, in comparedRow) string {
	name := r.changed[0].metric
	if r.to == nil || name == "" || len(d.runs) > manyRuns {
		return ""
	}
	var out []string
	for _, sub := range d.runs {
		section := sub.run.Place.Section
		if sub == r.to || sub.copies(r.to) || !sub.sameWork(r.to) || !(sub.value(name) > 0) || !slices.ContainsFunc(section, func(h string) bool { return strings.EqualFold(h, r.label) }) {
			continue
		}
		speed := sub.value(name) / r.to.value(name) * r.changed[0].total() / in.changed[0].total()
		if !r.changed[0].named.isRate() {
			speed = 1 / speed
		}
		out = append(out, fmt.Sprintf("%s %.2fx", section[len(section)-1], speed))
	}
	if len(out) == 0 {
		return ""
	}
	return " (" + strings.Join(out, ", ") + ")"
}

// rowsOf are the rows of a table.
func (d *document) rowsOf(t *interop.Table) []comparedRow {
	return slices.DeleteFunc(slices.Clone(d.rows), func(p comparedRow) bool { return p.table != t })
}
