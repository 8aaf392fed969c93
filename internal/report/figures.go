package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"perflab/internal/result"
)

// oldFigures are all figures of a summary, as two tables: those that are one
// number, and the statistics of each distribution.
type oldFigures struct {
	Scalars  []figureRow
	Stats    []string // columns of Families: "Mean", "Median", "P99"
	Families []figureRow
}

// figureRow is a figure, or the statistics of a family, with what it means.
type figureRow struct {
	Label, Doc, Formula string
	Cells               []oldCell
}

// oldCell is one figure as printed.
type oldCell struct {
	Value    string
	Interval string // "81.20 to 84.91", where the summary has one
}

// row is the figure as a row of a table.
func (f figureRow) row(tip string) row {
	r := row{cells: []cell{{text: spans(f.Label), tip: tip}}}
	for _, c := range f.Cells {
		r.cells = append(r.cells, cell{text: spans(c.Value), beside: c.Interval})
	}
	return r
}

// oldNewCell prints a figure of a summary.
func oldNewCell(s *result.Summary, m result.Metric) oldCell {
	c := oldCell{Value: number(s, m)}
	if v, ok := s.Intervals[m.Name]; ok {
		c.Interval = fmt.Sprintf("%.*f to %.*f", m.Decimals, v[0], m.Decimals, v[1])
	}
	return c
}

// newFigures lays out every figure the summary has, in the order of the
// metric table.
func newFigures(s *result.Summary) oldFigures {
	var f oldFigures
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
				f.Scalars = append(f.Scalars, figureRow{label(cmp.Or(m.Label, m.Name), m), m.Doc, m.Formula, []oldCell{oldNewCell(s, m)}})
			}
			continue
		}
		if _, ok := value(s, m); !ok || families[m.Family] {
			continue
		}
		families[m.Family] = true
		row := figureRow{Label: label(familyLabel(m), m), Doc: strings.TrimPrefix(m.Doc, "Mean of: "), Formula: m.Formula}
		for _, stat := range stats {
			row.Cells = append(row.Cells, oldNewCell(s, metric(stat+"_"+m.Family+"_ms")))
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
	has, p := map[string]bool{}, map[string]bool{}
	for name := range s.Figures {
		m, err := result.Lookup(name)
		if err != nil || m.Family == "" {
			continue
		}
		has[m.Stat] = true
		if strings.HasPrefix(m.Stat, "p") && m.Stat != "p50" {
			p[m.Stat] = true
		}
	}
	percentiles := slices.SortedFunc(maps.Keys(p), func(a, b string) int {
		x, _ := result.Percentile(a + "_ttft_ms")
		y, _ := result.Percentile(b + "_ttft_ms")
		return cmp.Compare(x, y)
	})
	all := slices.Concat([]string{"mean", "median"}, percentiles, []string{"std", "min", "max"})
	return slices.DeleteFunc(all, func(stat string) bool { return !has[stat] }) // an imported run lacks some
}

// show adds both tables.
func (f oldFigures) show(s *section) {
	scalars := table{class: "few", columns: columns("Figure", ">Value")}
	families := table{columns: columns("Distribution")}
	scalars.columns[0].tipped, families.columns[0].tipped = true, true
	for _, r := range f.Scalars {
		scalars.rows = append(scalars.rows, r.row(r.Doc))
	}
	for _, name := range f.Stats {
		families.columns = append(families.columns, column{head: spans(name), right: true})
	}
	for _, r := range f.Families {
		families.rows = append(families.rows, r.row(r.Doc+" "+r.Formula))
	}
	s.add(inDocument, scalars)
	s.add(inDocument, families)
}
