package tune

import (
	"fmt"
	"math"
	"strings"
)

// note says what is wrong with a trial: why it has no figure, or which SLOs
// it misses.
func (s *stagedState) note(t *trial) string {
	return s.objective.note(t, s.space.Primary)
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
func (s *stagedState) reason(before, best *trial) string {
	o := s.objective
	switch {
	case !best.measured():
		return s.unchallenged(before, best)
	case before == nil:
		return fmt.Sprintf("%s goes on as the best that could be measured: %s %s, and nothing to compare it with", best.name, o.Metric, number(best.score.value))
	case s.lead == before && o.prefer(best.score, before.score):
		return fmt.Sprintf("no difference shown: %s, not more than the %s asked for, so %s stays", o.compare(best, before), percent(o.MinGain), before.name)
	case s.lead == before:
		return fmt.Sprintf("%s stays: %s%s", before.name, o.compare(best, before), s.slos(before, best))
	}
	text := fmt.Sprintf("%s goes on: it %s%s", best.name, o.against(best, before), s.slos(best, before))
	if total := s.gain(s.base, best); before != s.base && total != nil {
		text += ", and " + o.against(best, s.base)
	}
	return text
}

// unchallenged is the reason of a stage none of whose candidates has figures.
func (s *stagedState) unchallenged(before, best *trial) string {
	why := "no other candidate was measured"
	if best != nil {
		why = fmt.Sprintf("no other candidate could be measured (%s %s)", best.name, s.note(best))
	}
	if before == nil {
		return "still no configuration could be measured: " + why
	}
	return before.name + " stays: " + why
}

// slos says why the SLOs, and not the objective, set a above b; nothing if
// they did not.
func (s *stagedState) slos(a, b *trial) string {
	missed := strings.Join(s.objective.Misses(b.figures(s.space.Primary)), "; ")
	switch {
	case a.score.class > b.score.class:
		return fmt.Sprintf(", and %s meets every SLO, which %s does not (%s)", a.name, b.name, missed)
	case a.score.miss < b.score.miss:
		return fmt.Sprintf(", and %s is nearer to the SLOs, which neither meets (%s: %s)", a.name, b.name, missed)
	}
	return ""
}

// verdict is the study's conclusion.
func (s *stagedState) verdict(r Result) string {
	o := s.objective
	switch {
	case !s.finished:
		return s.soFar()
	case s.lead == nil:
		return fmt.Sprintf("nothing could be measured: the baseline ended %s", s.note(s.base))
	case !s.base.measured():
		return s.alone(r)
	case s.lead == s.base:
		return s.unbeaten(r)
	case !s.confirmed():
		lost := s.leadAgain
		if !s.baseAgain.measured() {
			lost = s.baseAgain
		}
		return fmt.Sprintf("not confirmed: in the search %s, but the second measurement of %s has no figure (%s), so the baseline stays", o.compare(s.lead, s.base), lost.name, s.note(lost))
	case s.shown():
		return fmt.Sprintf("%s%s, confirmed on fresh seeds, the best of %s%s",
			o.compare(s.leadAgain, s.baseAgain), s.slos(s.leadAgain, s.baseAgain), count(s.tried(), "other configuration"), missed(r))
	}
	return fmt.Sprintf("no difference shown: in the search %s, but measured again %s%s, so the baseline stays%s",
		o.compare(s.lead, s.base), o.compare(s.leadAgain, s.baseAgain), s.slos(s.baseAgain, s.leadAgain), missed(r))
}

func (s *stagedState) soFar() string {
	after := "not finished after " + count(len(s.trials), "trial")
	switch {
	case s.lead == nil:
		return after + ": nothing is measured yet"
	case s.lead == s.base:
		return after + ": nothing beats the baseline yet"
	case !s.base.measured():
		return fmt.Sprintf("%s: %s leads, measured once, and the baseline ended %s", after, s.lead.name, s.note(s.base))
	}
	return fmt.Sprintf("%s: %s, measured once", after, s.objective.compare(s.lead, s.base))
}

// alone is the verdict without a measured baseline.
func (s *stagedState) alone(r Result) string {
	no := fmt.Sprintf("the baseline ended %s, so no gain can be given", s.note(s.base))
	if !s.leadAgain.measured() {
		return fmt.Sprintf("nothing is recommended: %s, and the second measurement of %s has no figure (%s)", no, s.lead.name, s.note(s.leadAgain))
	}
	return fmt.Sprintf("%s is the best of %s that could be measured, with %s of %s (confirmed on fresh seeds); %s%s",
		s.lead.name, count(s.tried(), "configuration"), number(s.leadAgain.score.value), s.objective.Metric, no, missed(r))
}

func (s *stagedState) unbeaten(r Result) string {
	twice := ", confirmed on fresh seeds"
	if !s.baseAgain.measured() {
		twice = fmt.Sprintf(", whose second measurement has no figure (%s)", s.note(s.baseAgain))
	}
	if s.tried() == 0 {
		return "no difference shown: no other configuration has figures beside the baseline" + twice + missed(r)
	}
	return fmt.Sprintf("no difference shown: of %s none beats the baseline%s%s", count(s.tried(), "other configuration"), twice, missed(r))
}

// tried counts the configurations of the search that have figures, the
// baseline apart: the winner was picked from so many.
func (s *stagedState) tried() int {
	n := 0
	for _, t := range s.trials {
		if t.Pass == 0 && t != s.base && t.measured() {
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
