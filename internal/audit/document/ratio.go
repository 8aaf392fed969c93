package document

import (
	"fmt"
	"strings"

	"perflab/internal/audit"
)

// ratios recomputes the percentages, factors and differences that stand with
// two figures.
func ratios(d *document) []audit.Finding {
	var out []audit.Finding
	for _, l := range d.statements {
		for _, c := range l.comparisons {
			if c.base.Value > 0 && c.changed.Value > 0 {
				out = append(out, checkComparison(d, c)...)
			}
		}
	}
	return out
}

// checkComparison recomputes the ratio and the difference of two figures.
func checkComparison(d *document, c comparison) []audit.Finding {
	var out []audit.Finding
	a, b := c.changed.span(), c.base.span()
	if c.perGPU {
		n, ok := gpuRatio(c)
		if !ok {
			return nil
		}
		a = audit.Between(a.Lo/n, a.Hi/n)
	}
	if c.ratio != nil {
		out = append(out, checkRatio(d, c, a, b)...)
	}
	return append(out, checkDelta(d, c)...)
}

// checkRatio holds the printed ratio against all its readings.
func checkRatio(d *document, c comparison, a, b audit.Interval) []audit.Finding {
	printed := c.ratio.interval()
	readings := c.readings(a, b)
	if c.unordered {
		swapped := c
		swapped.changed, swapped.base = c.base, c.changed
		readings = append(readings, swapped.readings(b, a)...)
	}
	for _, r := range readings {
		if r.Meets(printed) {
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
		if r.Meets(audit.Between(printed.Lo-c.ratio.Half, printed.Hi+c.ratio.Half)) {
			severity, hint = audit.Note, ", off by rounding alone" // up or down instead of to the nearest
		}
	}
	back := b.Over(a)
	if r := (audit.Between(100*(1-back.Hi), 100*(1-back.Lo))); c.ratio.Unit == inPercent && severity == audit.Error && r.Meets(printed) {
		hint = "; it is the change counted against the new figure"
	}
	return []audit.Finding{{
		Type: kind, Severity: severity, Place: d.place(c.line), Expected: right,
		Figures: []audit.Cited{c.base.cited(), c.changed.cited(), {Label: "printed", Text: c.ratio.Text, Line: c.line}},
		Text: fmt.Sprintf("%s from %s to %s is %s, not %s%s%s", c.changed.named, c.base.Text, c.changed.Text, right, c.ratio.Text,
			map[bool]string{true: " per GPU"}[c.perGPU], hint),
	}}
}

// checkDelta holds a printed difference, and the word for its direction,
// against the two figures.
func checkDelta(d *document, c comparison) []audit.Finding {
	if c.delta == nil || c.delta.Unit != c.changed.Unit && c.delta.Unit != bare && c.changed.Unit != bare {
		return nil
	}
	a, b := c.changed.span(), c.base.span()
	diff := audit.Between(a.Lo-b.Hi, a.Hi-b.Lo)
	printed := c.delta.interval()
	worse := c.verb == "reduced" && diff.Lo > 0 || c.verb == "increased" && diff.Hi < 0 ||
		c.verb == "faster" && (c.changed.named.isRate() && diff.Hi < 0 || !c.changed.named.isRate() && diff.Lo > 0)
	if !worse && (diff.Meets(printed) || audit.Between(-diff.Hi, -diff.Lo).Meets(printed)) {
		return nil
	}
	unit := " " + string(c.delta.Unit)
	if c.delta.Unit == msec && c.delta.Scale > 1 {
		unit = " s"
	}
	right := fmt.Sprintf("%+.*f%s", decimals(c.delta), (c.changed.total()-c.base.total())/c.delta.Scale, unit)
	text := fmt.Sprintf("%s from %s to %s is a difference of %s, not %s", c.changed.named, c.base.Text, c.changed.Text, right, c.delta.Text)
	if worse {
		text = fmt.Sprintf("%s went from %s to %s, so %q has the direction reversed", c.changed.named, c.base.Text, c.changed.Text, c.verb)
	}
	return []audit.Finding{{Type: "difference-wrong", Severity: audit.Error, Place: d.place(c.line), Expected: right,
		Figures: []audit.Cited{c.base.cited(), c.changed.cited(), {Label: "printed", Text: c.delta.Text, Line: c.line}}, Text: text}}
}

// gpuRatio is how many times the GPUs of the base the fresh figure used;
// false where the commands of their runs do not tell.
func gpuRatio(c comparison) (float64, bool) {
	count := func(t citation) int {
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
	a, b := count(c.changed), count(c.base)
	if a == 0 || b == 0 {
		return 0, false
	}
	return float64(a) / float64(b), true
}
