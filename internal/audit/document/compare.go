package document

import (
	"fmt"
	"math"
	"perflab/internal/audit"
	"strings"
)

// comparison is a statement that one figure is so much better or worse than
// another.
type comparison struct {
	fresh, base term
	ratio       *quantity // a percentage or factor; nil: none given
	delta       *quantity // "by 0.12s"
	verb        string    // before the difference: "reduced", "increased", "faster"; "" for none
	word        string    // behind the ratio: "faster", "slower", "higher"; "" for none
	perGPU      bool
	better      bool // the ratio is called an improvement, so that more of it is less time
	unordered   bool // the text does not say which of the two is the base
	line        int
	label       string // the row or name that it is of
}

// interval of the values that the term, with its multiplication, stands for.
func (t term) span() audit.Interval {
	n := float64(t.Times)
	return audit.Between(t.lo()*n, t.hi()*n)
}

// total is the value with its multiplication.
func (t term) total() float64 { return t.Value * float64(t.Times) }

// readings are the values that a percentage or factor may stand for, by the
// words around it, the likeliest first: as spans of what would be printed.
func (c comparison) readings(a, b audit.Interval) []audit.Interval {
	up, down := a.Over(b), b.Over(a)
	change := func(s audit.Interval) audit.Interval { return audit.Between(100*(s.Lo-1), 100*(s.Hi-1)) }
	negate := func(s audit.Interval) audit.Interval { return audit.Between(-s.Hi, -s.Lo) }
	if c.ratio.Unit == asFactor {
		speed, slow := up, down
		if !c.fresh.measure.rate() {
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
	if !c.fresh.measure.rate() {
		out = append(out, change(down)) // a speedup: a third less time is half faster
		if c.better {
			out = append(out, negate(out[0]))
		}
	}
	if !c.ratio.Signed {
		switch {
		case c.verb == "reduced" || c.word == "lower" || c.word == "less" || c.word == "reduction":
			out[0] = negate(out[0])
		case c.word == "slower" && c.fresh.measure.rate():
			out[0] = negate(out[0])
		case c.verb == "" && c.word == "":
			out = append(out, negate(out[0]))
		}
	}
	return out
}

// check recomputes the ratio of a comparison from its two figures.
func (c comparison) check(s *study) []audit.Finding {
	if c.base.Value <= 0 || c.fresh.Value <= 0 {
		return nil
	}
	var out []audit.Finding
	a, b := c.fresh.span(), c.base.span()
	if c.perGPU {
		n, ok := s.gpuRatio(c)
		if !ok {
			return nil
		}
		a = audit.Between(a.Lo/n, a.Hi/n)
	}
	if c.ratio != nil {
		out = append(out, c.checkRatio(s, a, b)...)
	}
	return append(out, c.checkDelta(s)...)
}

// checkRatio holds the printed ratio against all its readings.
func (c comparison) checkRatio(s *study, a, b audit.Interval) []audit.Finding {
	said := audit.Between(c.ratio.lo(), c.ratio.hi())
	readings := c.readings(a, b)
	if c.unordered {
		swapped := c
		swapped.fresh, swapped.base = c.base, c.fresh
		readings = append(readings, swapped.readings(b, a)...)
	}
	for _, r := range readings {
		if r.Meets(said) {
			return nil
		}
	}
	kind, right := "percentage-wrong", fmt.Sprintf("%+.*f %%", decimals(c.ratio), (readings[0].Lo+readings[0].Hi)/2)
	if !c.ratio.Signed {
		right = strings.TrimPrefix(right, "+")
	}
	if c.ratio.Unit == asFactor {
		kind, right = "factor-wrong", fmt.Sprintf("%.*fx", decimals(c.ratio), (readings[0].Lo+readings[0].Hi)/2)
	}
	hint, severity := "", audit.Error
	for _, r := range readings {
		if r.Meets(audit.Between(said.Lo-c.ratio.Half, said.Hi+c.ratio.Half)) {
			severity, hint = audit.Note, ", off by rounding alone" // up or down instead of to the nearest
		}
	}
	back := b.Over(a)
	if r := (audit.Between(100*(1-back.Hi), 100*(1-back.Lo))); c.ratio.Unit == inPercent && severity == audit.Error && r.Meets(said) {
		hint = "; it is the change counted against the new figure"
	}
	return []audit.Finding{{
		Type: kind, Severity: severity, Place: s.place(c.line), Expected: right,
		Figures: []audit.Cited{c.base.cited(), c.fresh.cited(), {Label: "printed", Text: c.ratio.Text, Line: c.line}},
		Text: fmt.Sprintf("%s from %s to %s is %s, not %s%s%s", c.fresh.measure, c.base.Text, c.fresh.Text, right, c.ratio.Text,
			map[bool]string{true: " per GPU"}[c.perGPU], hint),
	}}
}

// decimals of a printed number.
func decimals(q *quantity) int {
	return max(0, int(math.Round(-math.Log10(2*q.Half/q.Scale))))
}

// checkDelta holds a printed difference, and the word for its direction,
// against the two figures.
func (c comparison) checkDelta(s *study) []audit.Finding {
	if c.delta == nil || c.delta.Unit != c.fresh.Unit && c.delta.Unit != bare && c.fresh.Unit != bare {
		return nil
	}
	a, b := c.fresh.span(), c.base.span()
	diff := audit.Between(a.Lo-b.Hi, a.Hi-b.Lo)
	said := audit.Between(c.delta.lo(), c.delta.hi())
	worse := c.verb == "reduced" && diff.Lo > 0 || c.verb == "increased" && diff.Hi < 0 ||
		c.verb == "faster" && (c.fresh.measure.rate() && diff.Hi < 0 || !c.fresh.measure.rate() && diff.Lo > 0)
	if !worse && (diff.Meets(said) || audit.Between(-diff.Hi, -diff.Lo).Meets(said)) {
		return nil
	}
	unit := " " + string(c.delta.Unit)
	if c.delta.Unit == msec && c.delta.Scale > 1 {
		unit = " s"
	}
	right := fmt.Sprintf("%+.*f%s", decimals(c.delta), (c.fresh.total()-c.base.total())/c.delta.Scale, unit)
	text := fmt.Sprintf("%s from %s to %s is a difference of %s, not %s", c.fresh.measure, c.base.Text, c.fresh.Text, right, c.delta.Text)
	if worse {
		text = fmt.Sprintf("%s went from %s to %s, so %q has the direction reversed", c.fresh.measure, c.base.Text, c.fresh.Text, c.verb)
	}
	return []audit.Finding{{Type: "difference-wrong", Severity: audit.Error, Place: s.place(c.line), Expected: right,
		Figures: []audit.Cited{c.base.cited(), c.fresh.cited(), {Label: "printed", Text: c.delta.Text, Line: c.line}}, Text: text}}
}

// gpuRatio is how many times the GPUs of the base the fresh figure used;
// false where the commands of their runs do not tell.
func (s *study) gpuRatio(c comparison) (float64, bool) {
	count := func(t term) int {
		n := 0
		for _, r := range t.runs {
			g := r.command.GPUs()
			if r.run.Header.Command == "" || g == 0 || n != 0 && n != g {
				return 0
			}
			n = g
		}
		return n
	}
	a, b := count(c.fresh), count(c.base)
	if a == 0 || b == 0 {
		return 0, false
	}
	return float64(a) / float64(b), true
}
