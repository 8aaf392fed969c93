package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"perflab/internal/result"
)

// figureCell prints a figure of a summary, with its interval where it has one.
func figureCell(s *result.Summary, m result.Metric) cell {
	c := cell{text: spans(number(s, m))}
	if v, ok := s.Intervals[m.Name]; ok {
		c.beside = fmt.Sprintf("%.*f to %.*f", m.Decimals, v[0], m.Decimals, v[1])
	}
	return c
}

// addFigures adds every figure that a summary has, in the order of the metric
// table: those that are one number, and the statistics of each distribution.
func addFigures(to *section, s *result.Summary) {
	scalars := table{class: "few", columns: columns("Figure", ">Value")}
	families := table{columns: columns("Distribution")}
	scalars.columns[0].tipped, families.columns[0].tipped = true, true
	stats := statistics(s)
	for _, stat := range stats {
		families.columns = append(families.columns, column{head: spans(strings.ToUpper(stat[:1]) + stat[1:]), right: true})
	}
	label := func(text string, m result.Metric) string {
		if s.Compat != "" { // the page says it once
			return text
		}
		return tagged(text, s.Definition(m.Name))
	}
	shown := map[string]bool{}
	for _, m := range result.Metrics() {
		_, ok := value(s, m)
		switch {
		case !ok || shown[m.Family]:
		case m.Family == "":
			scalars.rows = append(scalars.rows, cells(cell{text: spans(label(cmp.Or(m.Label, m.Name), m)), tip: m.Doc}, figureCell(s, m)))
		default:
			shown[m.Family] = true
			r := cells(cell{text: spans(label(familyLabel(m), m)), tip: strings.TrimPrefix(m.Doc, "Mean of: ") + " " + m.Formula})
			for _, stat := range stats {
				r.cells = append(r.cells, figureCell(s, metric(stat+"_"+m.Family+"_ms")))
			}
			families.rows = append(families.rows, r)
		}
	}
	to.add(inDocument, scalars)
	to.add(inDocument, families)
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
