package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"perflab/internal/report/doc"
	"perflab/internal/result"
)

// figureCell prints a figure of a summary, with its interval where it has one, with
// what late reads leave open, and with how far it may be off where it is not exact.
func figureCell(s *result.Summary, m result.Metric) doc.Cell {
	c := doc.Cell{Text: doc.Spans(number(s, m))}
	if v, ok := s.Intervals[m.Name]; ok {
		c.Beside = fmt.Sprintf("%.*f to %.*f", m.Decimals, v[0], m.Decimals, v[1])
	}
	if text := openFrom(s, m); text != "" {
		c.Beside = strings.TrimPrefix(c.Beside+"; "+text, "; ")
	}
	if within := s.Within(m.Name); within != "" {
		c.Beside = strings.TrimPrefix(c.Beside+", "+within, ", ")
	}
	return c
}

// openFrom says what late reads leave open of a figure; "" where that is nothing
// worth saying.
func openFrom(s *result.Summary, m result.Metric) string {
	low, high, share, ok := s.Doubt(m.Name)
	if !ok || share <= result.Doubtful {
		return ""
	}
	return fmt.Sprintf("may be %.*f to %.*f", m.Decimals, low, m.Decimals, high)
}

// addFigures adds every figure that a summary has, in the order of the metric
// table: those that are one number, and the statistics of each distribution.
func addFigures(to *doc.Section, s *result.Summary) {
	scalars := doc.Table{Class: "few", Columns: doc.Columns("Figure", ">Value")}
	families := doc.Table{Columns: doc.Columns("Distribution")}
	scalars.Columns[0].Tipped, families.Columns[0].Tipped = true, true
	stats := statistics(s)
	for _, stat := range stats {
		families.Columns = append(families.Columns, doc.Column{Head: doc.Spans(strings.ToUpper(stat[:1]) + stat[1:]), Right: true})
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
			scalars.Rows = append(scalars.Rows, doc.Cells(doc.Cell{Text: doc.Spans(label(cmp.Or(m.Label, m.Name), m)), Tip: m.Doc}, figureCell(s, m)))
		default:
			shown[m.Family] = true
			m.Label = result.Label(m, s)
			r := doc.Cells(doc.Cell{Text: doc.Spans(label(familyLabel(m), m)), Tip: strings.TrimPrefix(m.Doc, "Mean of: ") + " " + m.Formula})
			for _, stat := range stats {
				r.Cells = append(r.Cells, figureCell(s, metric(stat+"_"+m.Family+"_ms")))
			}
			families.Rows = append(families.Rows, r)
		}
	}
	to.Add(doc.InDocument, scalars)
	to.Add(doc.InDocument, families)
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
