package document

import (
	"strings"

	"perflab/internal/audit"
	"perflab/internal/interop"
	"perflab/internal/result"
)

// citation is a figure that a text cites.
type citation struct {
	quantity
	named  namedMetric
	owner  string // whose it is, where the text says so
	line   int
	runs   []*citedRun // the runs that have such a figure
	metric string      // of ours, where runs is not empty
}

// cited is the citation as a finding shows it.
func (t citation) cited() audit.Cited {
	label := t.named.String()
	if row, err := result.Lookup(t.metric); err == nil && (t.named.kind == "time" || t.named.kind == "throughput") {
		label, _, _ = strings.Cut(row.Label, " (") // the block tells which
	}
	return audit.Cited{Label: label, Text: t.Text, Line: t.line}
}

// fits reports whether a run's figure and the text's can be the same number.
func (t citation) fits(f interop.Figure) bool {
	slack := f.Half + t.half() + 1e-9*f.Value
	return f.Value-slack <= t.Value && t.Value <= f.Value+slack
}

// span is the interval of the values that the citation, with its multiplication,
// stands for.
func (t citation) span() audit.Interval {
	n := float64(t.Times)
	return audit.Between(t.lo()*n, t.hi()*n)
}

// total is the value with its multiplication.
func (t citation) total() float64 { return t.Value * float64(t.Times) }
