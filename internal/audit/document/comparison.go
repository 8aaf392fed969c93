package document

import (
	"math"
	"slices"
	"strings"

	"perflab/internal/audit"
	"perflab/internal/interop"
)

// comparison is a statement that one figure is so much better or worse than
// another.
type comparison struct {
	changed, base citation
	ratio         *quantity // a percentage or factor; nil: none given
	delta         *quantity // "by 0.12s"
	verb          string    // before the difference: "reduced", "increased", "faster"; "" for none
	word          string    // behind the ratio: "faster", "slower", "higher"; "" for none
	perGPU        bool
	better        bool // the ratio is called an improvement, so that more of it is less time
	unordered     bool // the text does not say which of the two is the base
	line          int
	label         string // the row or name that it is of
}

// readings are the values that a percentage or factor may stand for, by the
// words around it, the likeliest first: as spans of what would be printed.
func (c comparison) readings(a, b audit.Interval) []audit.Interval {
	up, down := a.Over(b), b.Over(a)
	negate := func(s audit.Interval) audit.Interval { return audit.Between(-s.Hi, -s.Lo) }
	if c.ratio.Unit == asFactor {
		speed, slow := up, down
		if !c.changed.named.isRate() {
			speed, slow = down, up
		}
		switch c.word {
		case "faster", "higher", "better", "more":
			return []audit.Interval{speed}
		case "slower", "lower", "worse", "less":
			return []audit.Interval{slow}
		}
		return []audit.Interval{speed, slow}
	}
	out := []audit.Interval{change(up)}
	if !c.changed.named.isRate() {
		out = append(out, change(down)) // a speedup: a third less time is half faster
		if c.better {
			out = append(out, negate(out[0]))
		}
	}
	if !c.ratio.Signed {
		switch {
		case c.verb == "reduced" || c.word == "lower" || c.word == "less" || c.word == "reduction":
			out[0] = negate(out[0])
		case c.word == "slower" && c.changed.named.isRate():
			out[0] = negate(out[0])
		case c.verb == "" && c.word == "":
			out = append(out, negate(out[0]))
		}
	}
	return out
}

// change is a ratio as a change in percent.
func change(ratio audit.Interval) audit.Interval {
	return audit.Between(100*(ratio.Lo-1), 100*(ratio.Hi-1))
}

// decimals of a printed number.
func decimals(q *quantity) int {
	return max(0, int(math.Round(-math.Log10(2*q.Half/q.Scale))))
}

// comparedRow is a row of a table that puts figures beside those of a baseline, and
// the runs that have them.
type comparedRow struct {
	table         *interop.Table
	line          int
	label         string
	base, changed []citation
	ratio         bool      // a gain is printed
	from, to      *citedRun // nil: not found
}

// optionRow is a row of a table that gives an option and its gain alone.
type optionRow struct {
	line   int
	name   string
	ratio  *quantity   // nil: no gain is claimed
	word   string      // behind the ratio: "faster", "lower"; "" for none
	perGPU bool        // per GPU
	named  namedMetric // of what; without a kind where the table does not say
}

// improves reports whether the row claims a gain: what it shows first is
// better than its baseline.
func (p comparedRow) improves() bool {
	a, b := p.changed[0].total(), p.base[0].total()
	return p.ratio && (p.changed[0].named.isRate() && a > b || !p.changed[0].named.isRate() && a < b)
}

// shows reports whether the row has a figure of the family of a metric.
func (p comparedRow) shows(name string) bool {
	return slices.ContainsFunc(p.changed, func(t citation) bool {
		return t.metric == name || strings.HasSuffix(name, "_"+t.named.kind+"_ms") && t.metric != "" && !t.named.isRate() && t.named.kind != "time"
	})
}

// has reports whether the row has this figure.
func (p comparedRow) has(name string) bool {
	return slices.ContainsFunc(p.changed, func(t citation) bool { return t.metric == name })
}

// discloses reports whether the row itself says that requests failed.
func (p comparedRow) discloses() bool {
	for _, r := range p.table.Rows {
		if r.Line == p.line {
			return strings.Contains(strings.ToLower(strings.Join(r.Cells, " ")), "success rate")
		}
	}
	return false
}

// ranking is "A (12 tok/s) > B (10 tok/s) > C (not supported)".
type ranking struct {
	citations []citation // those with a figure
	signs     []byte     // between each and the next
	line      int
}

// kind is the part of a document that a statement stands in.
type kind int

const (
	inProse kind = iota
	inSummary
	inTable
)

// statement is a line or row with its figures and comparisons.
type statement struct {
	line        int
	kind        kind
	label       string // of a row
	text        string
	citations   []citation
	comparisons []comparison
	table       *interop.Table // nil: no row
}
