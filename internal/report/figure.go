package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"perflab/internal/report/doc"
	"perflab/internal/report/plot"
	"perflab/internal/result"
)

// missing stands where a figure is absent.
const missing = "n/a"

// Fact is one thing to know, with its name.
type Fact struct{ Label, Value string }

// Date writes when something began, "" where that is not known.
func Date(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04 UTC")
}

// LoadGenerator is the fact of the machine that sent a load.
const LoadGenerator = "Load generator"

// Host is the machine in one line; "" where it is not known.
func Host(h result.Host) string {
	if h.OS == "" {
		return ""
	}
	return fmt.Sprintf("%s/%s, %s, GOMAXPROCS %d, %s", h.OS, h.Arch, count(h.CPUs, "CPU"), h.GOMAXPROCS, h.Go)
}

// AddRepeat adds the command that makes what a document shows once more, and facts
// of it; nothing where it is not known.
func AddRepeat(d *doc.Document, command string, facts ...Fact) {
	if command == "" {
		return
	}
	s := d.Body.Section("repeat", "How to Repeat")
	s.Add(doc.InDocument, doc.Pre{Commands: true, Text: doc.WrapCommand(command)})
	s.Add(doc.InDocument, factTable(facts))
}

// span writes from when to when something ran, "" where that is not known.
func span(from, to time.Time) string {
	a, b := Date(from), Date(to)
	if a == b || a == "" || b == "" {
		return a
	}
	return a + " to " + b
}

// factTable is a table of facts.
func factTable(facts []Fact) doc.Table {
	t := doc.Table{Columns: doc.Columns("Item", "Value")}
	for _, f := range facts {
		t.Rows = append(t.Rows, doc.Cells(f.Label, doc.Code(f.Value)))
	}
	return t
}

// value is a figure of a summary, and whether it is there.
func value(s *result.Summary, m result.Metric) (float64, bool) {
	if s == nil {
		return 0, false
	}
	v, ok := s.Figures[m.Name]
	return v, ok && !math.IsNaN(v)
}

// number prints a figure without its unit, as the block does.
func number(s *result.Summary, m result.Metric) string {
	v, ok := value(s, m)
	if !ok {
		return missing
	}
	return strconv.FormatFloat(v, 'f', m.Decimals, 64)
}

// quantity prints a figure with its unit.
func quantity(s *result.Summary, m result.Metric) string {
	n := number(s, m)
	if n == missing || m.Unit == "" || m.Unit == "ratio" {
		return n
	}
	return n + " " + m.Unit
}

// ranked is one configuration with its objective.
type ranked struct {
	Label string
	Value float64
	Text  string
}

// ranking orders configurations best first, "A (4635.31 tok/s) > B (...)".
func ranking(r []ranked, lower bool) string {
	sign := " > "
	if lower {
		sign = " < "
	}
	slices.SortStableFunc(r, func(a, b ranked) int {
		switch {
		case a.Value == b.Value:
			return 0
		case (a.Value < b.Value) == lower:
			return -1
		}
		return 1
	})
	var b strings.Builder
	for i, x := range r {
		if i > 0 && r[i-1].Text == x.Text {
			b.WriteString(" = ")
		} else if i > 0 {
			b.WriteString(sign)
		}
		fmt.Fprintf(&b, "%s (%s)", x.Label, x.Text)
	}
	return b.String()
}

// count writes "1 replica", "2 replicas".
func count(n int, noun string) string { return plot.Count(n, noun) }
