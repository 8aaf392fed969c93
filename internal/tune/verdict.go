package tune

import (
	"fmt"
	"math"
	"strings"
)

// note says what is wrong with a trial: why it has no figure, or which SLOs
// it misses.
func (w *walk) note(t *trial) string {
	return w.objective.note(t, w.space.Primary)
}

func (o Objective) note(t *trial, primary string) string {
	switch {
	case t.end.Status != Measured:
		return strings.TrimRight(t.end.Status+": "+t.end.Reason, ": .") // the sentence goes on
	case !t.measured():
		return "without " + o.Metric + " on " + primary
	}
	return strings.Join(o.Misses(t.figures(primary)), "; ")
}

// compare says in one clause how trial a stands against b by the objective;
// both have figures.
func (o Objective) compare(a, b *trial) string { return a.name + " " + o.against(a, b) }

// against is compare without its subject.
func (o Objective) against(a, b *trial) string {
	va, vb := a.score.value, b.score.value
	values := fmt.Sprintf("%s against %s", number(va), number(vb))
	gain := o.Gain(map[string]float64{o.Metric: vb}, map[string]float64{o.Metric: va})
	switch {
	case va == vb:
		return fmt.Sprintf("equals %s on %s (%s)", b.name, o.Metric, number(va))
	case gain == nil:
		return fmt.Sprintf("stands at %s of %s for %s", values, o.Metric, b.name)
	case o.Higher:
		return fmt.Sprintf("is %s on %s over %s (%s)", percent(*gain), o.Metric, b.name, values)
	case *gain > 0:
		return fmt.Sprintf("is %sx better on %s than %s (%s)", factor(vb/va), o.Metric, b.name, values)
	}
	return fmt.Sprintf("is %sx worse on %s than %s (%s)", factor(va/vb), o.Metric, b.name, values)
}

// percent prints a gain, with more digits where one would show none.
func percent(gain float64) string {
	switch p := 100 * gain; {
	case math.Abs(p) >= 0.05:
		return fmt.Sprintf("%+.1f %%", p)
	default:
		return fmt.Sprintf("%+.2g %%", p)
	}
}

// factor prints a ratio above 1, with more digits where two would show 1.
func factor(ratio float64) string {
	if ratio < 1.005 {
		return number(ratio)
	}
	return fmt.Sprintf("%.2f", ratio)
}

// reason says what a stage concluded; best is its best candidate apart from
// the incumbent, if any was tried.
func (w *walk) reason(before, best *trial) string {
	o := w.objective
	switch {
	case !best.measured():
		return w.unchallenged(before, best)
	case before == nil:
		return fmt.Sprintf("%s goes on as the best that could be measured: %s %s, and nothing to compare it with", best.name, o.Metric, number(best.score.value))
	case w.lead == before && o.prefer(best.score, before.score):
		return fmt.Sprintf("no difference shown: %s, not more than the %s asked for, so %s stays", o.compare(best, before), percent(o.MinGain), before.name)
	case w.lead == before:
		return fmt.Sprintf("%s stays: %s%s", before.name, o.compare(best, before), w.slos(before, best))
	}
	s := fmt.Sprintf("%s goes on: it %s%s", best.name, o.against(best, before), w.slos(best, before))
	if total := w.gain(w.base, best); before != w.base && total != nil {
		s += ", and " + o.against(best, w.base)
	}
	return s
}

// unchallenged is the reason of a stage none of whose candidates has figures.
func (w *walk) unchallenged(before, best *trial) string {
	why := "no other candidate was measured"
	if best != nil {
		why = fmt.Sprintf("no other candidate could be measured (%s %s)", best.name, w.note(best))
	}
	if before == nil {
		return "still no configuration could be measured: " + why
	}
	return before.name + " stays: " + why
}

// slos says why the SLOs, and not the objective, set a above b; nothing if
// they did not.
func (w *walk) slos(a, b *trial) string {
	missed := strings.Join(w.objective.Misses(b.figures(w.space.Primary)), "; ")
	switch {
	case a.score.class > b.score.class:
		return fmt.Sprintf(", and %s meets every SLO, which %s does not (%s)", a.name, b.name, missed)
	case a.score.miss < b.score.miss:
		return fmt.Sprintf(", and %s is nearer to the SLOs, which neither meets (%s: %s)", a.name, b.name, missed)
	}
	return ""
}

// verdict is the study's conclusion.
func (w *walk) verdict() string {
	o := w.objective
	switch {
	case w.open != nil:
		return w.soFar()
	case w.lead == nil:
		return fmt.Sprintf("nothing could be measured: the baseline ended %s", w.note(w.base))
	case !w.base.measured():
		return w.alone()
	case w.lead == w.base:
		return w.unbeaten()
	case !w.confirmed():
		lost := w.leadAgain
		if !w.baseAgain.measured() {
			lost = w.baseAgain
		}
		return fmt.Sprintf("not confirmed: in the search %s, but the second measurement of %s has no figure (%s), so the baseline stays", o.compare(w.lead, w.base), lost.name, w.note(lost))
	case w.shown():
		return fmt.Sprintf("%s%s, confirmed on fresh seeds, the best of %s%s",
			o.compare(w.leadAgain, w.baseAgain), w.slos(w.leadAgain, w.baseAgain), count(w.tried(), "other configuration"), w.missed())
	}
	return fmt.Sprintf("no difference shown: in the search %s, but measured again %s%s, so the baseline stays%s",
		o.compare(w.lead, w.base), o.compare(w.leadAgain, w.baseAgain), w.slos(w.baseAgain, w.leadAgain), w.missed())
}

func (w *walk) soFar() string {
	after := "not finished after " + count(len(w.trials), "trial")
	switch {
	case w.lead == nil:
		return after + ": nothing is measured yet"
	case w.lead == w.base:
		return after + ": nothing beats the baseline yet"
	case !w.base.measured():
		return fmt.Sprintf("%s: %s leads, measured once, and the baseline ended %s", after, w.lead.name, w.note(w.base))
	}
	return fmt.Sprintf("%s: %s, measured once", after, w.objective.compare(w.lead, w.base))
}

// alone is the verdict without a measured baseline.
func (w *walk) alone() string {
	no := fmt.Sprintf("the baseline ended %s, so no gain can be given", w.note(w.base))
	if !w.leadAgain.measured() {
		return fmt.Sprintf("nothing is recommended: %s, and the second measurement of %s has no figure (%s)", no, w.lead.name, w.note(w.leadAgain))
	}
	return fmt.Sprintf("%s is the best of %s that could be measured, with %s of %s (confirmed on fresh seeds); %s%s",
		w.lead.name, count(w.tried(), "configuration"), number(w.leadAgain.score.value), w.objective.Metric, no, w.missed())
}

func (w *walk) unbeaten() string {
	twice := ", confirmed on fresh seeds"
	if !w.baseAgain.measured() {
		twice = fmt.Sprintf(", whose second measurement has no figure (%s)", w.note(w.baseAgain))
	}
	if w.tried() == 0 {
		return "no difference shown: no other configuration has figures beside the baseline" + twice + w.missed()
	}
	return fmt.Sprintf("no difference shown: of %s none beats the baseline%s%s", count(w.tried(), "other configuration"), twice, w.missed())
}

// missed ends a verdict whose winner misses an SLO.
func (w *walk) missed() string {
	if len(w.result.Misses) == 0 {
		return ""
	}
	return "; not every SLO is met: " + strings.Join(w.result.Misses, ", ")
}

// tried counts the configurations of the search that have figures, the
// baseline apart: the winner was picked from so many.
func (w *walk) tried() int {
	n := 0
	for _, t := range w.trials {
		if t.Pass == 0 && t != w.base && t.measured() {
			n++
		}
	}
	return n
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %s", n, plural(what))
}

func plural(what string) string {
	if strings.HasSuffix(what, "ch") {
		return what + "es"
	}
	return what + "s"
}
