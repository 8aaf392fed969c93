package document

import (
	"fmt"
	"math"
	"perflab/internal/audit"
	"slices"
	"strings"
)

// usualNoise is the spread of single runs that a document gives no reason to
// put lower.
const usualNoise = 0.02

// floor returns the relative spread of a metric between runs of one
// configuration and the same prompts in the document; false where it has no
// such runs.
func (s *study) floor(name string) (float64, bool) {
	most, found := 0.0, false
	if len(s.subjects) > manyRuns {
		return 0, false
	}
	for i, a := range s.subjects {
		if !a.command.Known() {
			continue
		}
		for _, b := range s.subjects[i+1:] {
			x, y := a.value(name), b.value(name)
			if !(x > 0) || !(y > 0) || a.copies(b) || !a.sameWork(b) || a.command.Engine != b.command.Engine || len(a.command.DifferingFlags(b.command)) > 0 ||
				a.command.Model == "" && !a.words["baseline"] || !sameCase(a, b) {
				continue
			}
			most, found = max(most, math.Abs(x/y-1)), true
		}
	}
	return most, found
}

// sameCase reports whether two runs stand under the same words: a caption
// within a fence may name the flag that differs.
func sameCase(a, b *subject) bool {
	return strings.EqualFold(a.run.Header.Label("case"), b.run.Header.Label("case")) && slices.Equal(a.run.Place.Section, b.run.Place.Section)
}

// noise reports a statement that one run is faster by next to nothing.
func (c comparison) noise(s *study, l statement) []audit.Finding {
	chosen := l.kind == "summary" && c.delta != nil && c.verb == "faster"
	if !chosen || c.base.Value <= 0 || c.fresh.Value <= 0 {
		return nil
	}
	least := usualNoise
	if len(c.fresh.runs) > 0 {
		if f, ok := s.floor(c.fresh.metric); ok {
			least = max(least, f)
		}
	}
	by := math.Abs(c.fresh.total()/c.base.total() - 1)
	if by >= least {
		return nil
	}
	text := fmt.Sprintf("%s of %s and %s differ by %.2g %%, which is within the noise of single runs", c.fresh.measure, c.fresh.Text, c.base.Text, 100*by)
	if by == 0 {
		text = fmt.Sprintf("%s is %s in both: neither is faster", c.fresh.measure, c.fresh.Text)
	}
	return []audit.Finding{{Type: "within-noise", Severity: audit.Warning, Place: s.place(c.line), Figures: []audit.Cited{c.fresh.cited(), c.base.cited()},
		Expected: fmt.Sprintf("more than %.2g %%, the noise of single runs", 100*least), Text: text}}
}

// broken reports comparisons and rows that use a time per token which the
// block's own latency contradicts.
func (l statement) broken(s *study) []audit.Finding {
	var fresh, base []term
	for _, c := range l.comparisons {
		fresh, base = append(fresh, c.fresh), append(base, c.base)
	}
	if len(fresh) == 0 {
		return nil
	}
	a, b := s.find(fresh[0].name+" "+l.label, l.line, fresh), s.find(base[0].name+" "+l.label, l.line, base)
	if a == nil || b == nil || a == b || a.sound == 0 && b.sound == 0 {
		return nil
	}
	var out []audit.Finding
	for _, c := range l.comparisons {
		if c.fresh.measure.kind != "tpot" && c.fresh.measure.kind != "itl" || !slices.Contains(c.fresh.runs, a) || !slices.Contains(c.base.runs, b) {
			continue
		}
		x, y := a.decode(), b.decode()
		if !(x > 0) || !(y > 0) {
			continue
		}
		said, right := c.base.Value/c.fresh.Value, y/x
		if math.Abs(said/right-1) < 0.1 {
			continue
		}
		printed := fmt.Sprintf("%.2fx", said)
		if c.ratio != nil {
			printed = c.ratio.Text
		}
		text := fmt.Sprintf("%s of %s against %s contradicts the latencies: (latency - TTFT) / (tokens - 1) is %.2f against %.2f ms, %.2fx and not %s",
			c.fresh.measure, c.fresh.Text, c.base.Text, x, y, right, printed)
		out = append(out, audit.Finding{Type: "claim-on-broken-figure", Severity: audit.Warning, Place: s.place(c.line), Figures: []audit.Cited{c.fresh.cited(), c.base.cited()},
			Expected: fmt.Sprintf("%.2fx", right), Text: text})
	}
	return out
}
