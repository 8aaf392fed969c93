package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"perflab/internal/result"
)

// figures are all figures of a summary, as two tables: those that are one
// number, and the statistics of each distribution.
type figures struct {
	Scalars  []figureRow
	Stats    []string // columns of Families: "Mean", "Median", "P99"
	Families []figureRow
}

// figureRow is a figure, or the statistics of a family, with what it means.
type figureRow struct {
	Label, Doc, Formula string
	Cells               []cell
}

// cell is one figure as printed.
type cell struct {
	Value    string
	Interval string // "81.20 to 84.91", where the summary has one
}

// text is the cell in one line.
func (c cell) text() string {
	if c.Interval == "" {
		return c.Value
	}
	return c.Value + " (" + c.Interval + ")"
}

// newCell prints a figure of a summary.
func newCell(s *result.Summary, m result.Metric) cell {
	c := cell{Value: number(s, m)}
	if v, ok := s.Intervals[m.Name]; ok {
		c.Interval = fmt.Sprintf("%.*f to %.*f", m.Decimals, v[0], m.Decimals, v[1])
	}
	return c
}

// newFigures lays out every figure the summary has, in the order of the
// metric table.
func newFigures(s *result.Summary) figures {
	var f figures
	stats := statistics(s)
	families := map[string]bool{}
	label := func(text string, m result.Metric) string {
		if s.Compat != "" { // the page says it once
			return text
		}
		return tagged(text, s.Definition(m.Name))
	}
	for _, m := range result.Metrics() {
		if m.Family == "" {
			if _, ok := value(s, m); ok {
				f.Scalars = append(f.Scalars, figureRow{label(cmp.Or(m.Label, m.Name), m), m.Doc, m.Formula, []cell{newCell(s, m)}})
			}
			continue
		}
		if _, ok := value(s, m); !ok || families[m.Family] {
			continue
		}
		families[m.Family] = true
		row := figureRow{Label: label(familyLabel(m), m), Doc: strings.TrimPrefix(m.Doc, "Mean of: "), Formula: m.Formula}
		for _, stat := range stats {
			row.Cells = append(row.Cells, newCell(s, metric(stat+"_"+m.Family+"_ms")))
		}
		f.Families = append(f.Families, row)
	}
	if len(f.Families) == 0 {
		return f
	}
	for _, stat := range stats {
		f.Stats = append(f.Stats, strings.ToUpper(stat[:1])+stat[1:])
	}
	return f
}

// familyLabel is the name of a family with its unit, from one of its metrics:
// "TTFT (ms)" of "Mean TTFT (ms)".
func familyLabel(m result.Metric) string {
	_, label, _ := strings.Cut(m.Label, " ")
	return label
}

// statistics are the columns of a summary's distributions. The median stands
// for p50.
func statistics(s *result.Summary) []string {
	p := map[string]bool{}
	for name := range s.Figures {
		if m, err := result.Lookup(name); err == nil && m.Family != "" && strings.HasPrefix(m.Stat, "p") && m.Stat != "p50" {
			p[m.Stat] = true
		}
	}
	percentiles := slices.SortedFunc(maps.Keys(p), func(a, b string) int {
		x, _ := result.Percentile(a + "_ttft_ms")
		y, _ := result.Percentile(b + "_ttft_ms")
		return cmp.Compare(x, y)
	})
	return slices.Concat([]string{"mean", "median"}, percentiles, []string{"std", "min", "max"})
}

// writeTo writes both tables as Markdown.
func (f figures) writeTo(m *mdWriter) {
	table := func(head string, columns []string, rows []figureRow) {
		if len(rows) == 0 {
			return
		}
		var rule strings.Builder
		rule.WriteString("---")
		for range columns {
			rule.WriteString(" | ---:")
		}
		m.row(append([]string{head}, columns...)...)
		m.row(rule.String())
		for _, r := range rows {
			cells := []string{mdText(r.Label)}
			for _, c := range r.Cells {
				cells = append(cells, c.text())
			}
			m.row(cells...)
		}
		m.b.WriteString("\n")
	}
	table("Figure", []string{"Value"}, f.Scalars)
	table("Distribution", f.Stats, f.Families)
}
