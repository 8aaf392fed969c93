package tune

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// conclusion is what a race found as far as it came.
type conclusion struct{ *raceState }

// conclude says what the race found as far as it came.
func (s *raceState) conclude() Result {
	c := conclusion{s}
	r := Result{Evidence: c.evidence()}
	for _, t := range c.base {
		if r.Baseline == 0 {
			r.Baseline = t.id()
		}
	}
	r.Winner = r.Baseline
	if l := c.leader(); l != nil && !c.isBase(l.trial.Config) {
		r.Challenger = l.trial.Trial
		if !c.based() {
			r.Winner = 0
		}
	}
	if c.confirmation != nil && c.finished {
		c.picks(&r)
	} else if c.finished && c.based() {
		r.Gain = new(0.0)
	}
	if e := c.recommended(); e != nil {
		r.Misses = c.confirmation.missesOf(e)
		r.Evidence.Constraints = c.confirmation.constraints(e)
	} else if r.Winner > 0 {
		r.Misses = c.bounds.Misses(c.trials[r.Winner-1].merged)
	}
	r.Verdict = c.verdict(r)
	return r
}

// recommended is the entrant that is recommended, the baseline where no other is;
// nil where there is none that was launched again.
func (c conclusion) recommended() *finalist {
	k := c.confirmation
	if k == nil || !c.finished {
		return nil
	}
	e := k.pick
	if e == nil {
		e = k.baseline()
	}
	if e == nil || len(e.rounds) == 0 {
		return nil
	}
	return e
}

// picks names what is recommended, and its gain.
func (c conclusion) picks(r *Result) {
	k := c.confirmation
	base := k.baseline()
	if base != nil {
		r.BaselineConfirm = base.middle()
	}
	r.ChallengerConfirm = k.others()[0].middle()
	r.Confirmed = (r.ChallengerConfirm > 0 || k.pick != nil) && (base == nil || r.BaselineConfirm > 0)
	if k.pick == nil {
		r.WinnerConfirm = r.BaselineConfirm
		if base != nil {
			r.Gain = new(0.0)
		}
		return
	}
	r.WinnerConfirm = k.pick.middle()
	r.Winner = r.WinnerConfirm
	for _, t := range c.trials {
		if maps.Equal(t.Config, k.pick.config) && t.measured() {
			r.Winner = t.Trial
			break
		}
	}
	if base == nil {
		return
	}
	if d, err := c.confirmation.compare(k.pick, base, "", k.family()); err == nil {
		r.Gain = new(d.Ratio.Value - 1)
		r.Interval = &Span{d.Ratio.Value - 1, d.Ratio.Low - 1, d.Ratio.High - 1}
	}
}

// verdict is the race's conclusion in one sentence.
func (c conclusion) verdict(r Result) string {
	tried := c.tried()
	switch {
	case !c.finished:
		return c.soFar()
	case c.leader() == nil && len(c.base) > 0:
		return fmt.Sprintf("nothing could be measured: the baseline ended %s", c.bounds.note(c.base[0], c.space.Primary))
	case c.confirmation == nil && !c.based():
		return "nothing is recommended: what could be measured is not acceptable, and the baseline ended " + c.bounds.note(c.base[0], c.space.Primary)
	case c.confirmation == nil:
		return fmt.Sprintf("no difference shown: of %s none could be measured and may be recommended%s", count(tried, "other configuration"), missed(r))
	case !c.based():
		return c.unopposed(r)
	}
	k := c.confirmation
	if k.pick == nil {
		return c.unbeaten(r, tried)
	}
	d, err := c.confirmation.compare(k.pick, k.finalists[0], "", k.family())
	if err == nil && d.Verdict == Better {
		return fmt.Sprintf("%s is %s; the best of %s%s", k.pick.name, d.Sentence, count(tried, "other configuration"), c.lost(r))
	}
	return c.closer(k.pick, d, err) + c.lost(r)
}

// closer is the verdict by which an entrant is recommended for a bound.
func (c conclusion) closer(e *finalist, d Comparison, err error) string {
	k := c.confirmation
	b := k.nearestBound(e, k.baseline())
	how := func(e *finalist) string {
		for _, k := range c.confirmation.constraints(e) {
			if k.Bound == b.String() {
				return k.figure()
			}
		}
		return "no figure"
	}
	does := "comes nearer to"
	if b.Holds(mean(e.trials())) {
		does = "meets"
	}
	text := fmt.Sprintf("%s %s %s than the baseline: %s against %s", e.name, does, b, how(e), how(k.baseline()))
	if does == "meets" {
		text = fmt.Sprintf("%s meets %s, which the baseline misses: %s against %s", e.name, b, how(e), how(k.baseline()))
	}
	if err == nil {
		text += fmt.Sprintf("; it is at %s on %s", c.confirmation.gainOf(d.Ratio), c.objective.Metric)
	}
	return text
}

// unbeaten is the verdict by which the baseline stays. It speaks of the entrant
// that led the search, or of the next where that one has no figure.
func (c conclusion) unbeaten(r Result, tried int) string {
	k := c.confirmation
	base, best := k.finalists[0], k.others()[0]
	for _, e := range k.others() {
		if len(best.rounds) == 0 && len(e.rounds) > 0 {
			best = e
		}
	}
	of := count(tried, "other configuration")
	d, err := c.confirmation.compare(best, base, "", k.family())
	switch {
	case len(base.rounds) == 0:
		return fmt.Sprintf("not confirmed: %s led the search, but the baseline measured again ended %s, so nothing could be compared and the baseline stays", k.others()[0].name, c.bounds.note(base.failed, c.space.Primary))
	case len(best.rounds) == 0:
		return fmt.Sprintf("not confirmed: %s led the search, but measured again it ended %s, so the baseline stays%s", best.name, c.bounds.note(best.failed, c.space.Primary), missed(r))
	case len(best.rounds) < fewest:
		return fmt.Sprintf("not confirmed: of the launches to confirm %s only one has figures, so the baseline stays%s", best.name, missed(r))
	case err != nil:
		return fmt.Sprintf("not confirmed: %s led the search, but %s, so the baseline stays%s", best.name, err, missed(r))
	case c.failedGuard(best.config) || c.confirmation.score(best).class < c.confirmation.score(base).class || d.Verdict == Better:
		return fmt.Sprintf("no other configuration is recommended: %s, the best of %s, %s, so the baseline stays%s", best.name, of, c.confirmation.obstacle(best), missed(r))
	case d.Verdict == TooSmall:
		return fmt.Sprintf("%s%s; the baseline stays%s", best.name+": "+d.Sentence, c.needed(d), missed(r))
	}
	return fmt.Sprintf("no gain shown: %s, the best of %s, is %s; the baseline stays%s", best.name, of, d.Sentence, missed(r))
}

// needed says how many launches the effect that was seen would need.
func (c conclusion) needed(d Comparison) string {
	if d.Ratio.Value <= 1 {
		return ""
	}
	return fmt.Sprintf(" (an effect of the size seen, %s, needs more launches)", percent(d.Ratio.Value-1))
}

// unopposed is the verdict without a measured baseline.
func (c conclusion) unopposed(r Result) string {
	no := fmt.Sprintf("the baseline ended %s, so no gain can be given", c.bounds.note(c.base[0], c.space.Primary))
	k := c.confirmation
	if k.pick == nil {
		return "nothing is recommended: " + no + ", and what led could not be measured again"
	}
	figures := mean(k.pick.trials())
	return fmt.Sprintf("%s is the best of %s that could be measured, with %s of %s; %s%s",
		k.pick.name, count(c.tried(), "configuration"), number(figures[c.objective.Metric]), c.objective.Metric, no, c.lost(r))
}

func (c conclusion) soFar() string {
	after := "not finished after " + count(len(c.trials), "trial")
	lead := c.leader()
	switch {
	case lead == nil:
		return after + ": nothing is measured yet"
	case c.isBase(lead.trial.Config):
		return after + ": nothing beats the baseline yet"
	}
	return fmt.Sprintf("%s: %s leads, not confirmed", after, lead.trial.name)
}

// lost ends a verdict with hold-outs that the winner loses, and constraints it
// misses.
func (c conclusion) lost(r Result) string {
	var worse, others []string
	for _, d := range r.Evidence.HoldOuts {
		switch d.Verdict {
		case Worse:
			worse = append(worse, fmt.Sprintf("%s (%s)", d.Workload, percent(d.Ratio.Value-1)))
		case Missed, Unknown:
			others = append(others, fmt.Sprintf("on %s it %s", d.Workload, d.Sentence))
		}
	}
	s := ""
	if len(worse) > 0 {
		s = "; it loses on " + strings.Join(worse, ", ")
	}
	for _, text := range others {
		s += "; " + text
	}
	if w := c.confirmation.wavers(c.confirmation.pick); len(w) > 0 {
		s += "; not every launch meets " + joined(w)
	}
	return s + missed(r)
}

func missed(r Result) string {
	if len(r.Misses) == 0 {
		return ""
	}
	return "; not every SLO is met: " + strings.Join(r.Misses, ", ")
}

// evidence is what stands behind the conclusion.
func (c conclusion) evidence() *Evidence {
	e := &Evidence{Steps: c.steps, Accuracy: c.accuracy(), Stopped: c.stopReason}
	e.Noise = Noise{Within: c.within()}
	if e.Noise.Between, e.Noise.Launches = c.confirmation.noise(); e.Noise.Launches == 0 {
		e.Noise.Between, e.Noise.Launches = c.repeated()
	}
	m := c.fit()
	for _, r := range c.candidates {
		e.Candidates = append(e.Candidates, c.armEnd(r, m))
	}
	e.Predictions = c.fits()
	if k := c.confirmation; k != nil {
		e.Comparisons = c.comparisons()
		e.HoldOuts = c.heldOut()
		for _, a := range k.ablations {
			out := Ablation{Setting: a.setting.Label, Gain: a.span, Dropped: a.dropped, Reason: a.reason}
			if a.without != nil && len(a.without.rounds) == 1 {
				out.Trial = a.without.ids()[0]
			}
			e.Ablation = append(e.Ablation, out)
		}
	}
	e.Phases = c.ledger()
	return e
}

// comparisons are those of the confirmation, corrected for their number by
// Bonferroni's inequality, and what is left of the winner after the ablation against
// the baseline and the winner.
func (c conclusion) comparisons() []Comparison {
	k := c.confirmation
	var out []Comparison
	add := func(a, b *finalist) {
		if d, err := c.confirmation.compare(a, b, "", k.family()); err == nil {
			out = append(out, c.bounded(d, a, b))
		}
	}
	for i, a := range k.finalists {
		for _, b := range k.finalists[:i] {
			add(a, b)
		}
	}
	if k.reduced != nil && !slices.Contains(k.finalists, k.reduced) {
		if base := k.baseline(); base != nil {
			add(k.reduced, base)
		}
		add(k.reduced, k.winner)
	}
	return out
}

// bounded is a comparison in which bounds go before the objective.
func (c conclusion) bounded(d Comparison, a, b *finalist) Comparison {
	if c.confirmation.score(a).class < c.confirmation.score(b).class {
		d.Verdict, d.Sentence = Missed, c.confirmation.obstacle(a)+"; "+d.Sentence
	}
	return d
}

// heldOut is the recommendation against the baseline on each workload that the
// search is not judged by. One without figures is there too: what is not known is
// no success.
func (c conclusion) heldOut() []Comparison {
	k := c.confirmation
	base := k.baseline()
	if k.pick == nil || base == nil {
		return nil
	}
	var out []Comparison
	for _, w := range c.holdOuts() {
		d, err := c.confirmation.compare(k.pick, base, w, len(c.holdOuts()))
		if err != nil {
			d.Verdict, d.Sentence, d.P = Unknown, "cannot be compared: "+err.Error(), 1
		}
		if misses := k.missesOn(w, k.pick, base); len(misses) > 0 {
			d.Verdict, d.Sentence = Missed, joined(append(misses, d.Sentence))
		}
		out = append(out, d)
	}
	return out
}

// accuracy are the verdicts of the guard. What is recommended has one of its own:
// where another of its numerics was asked, that one's.
func (c conclusion) accuracy() []PairedTest {
	e := c.recommended()
	if e == nil || c.objective.Guard == nil || c.answersAlike(e.config) {
		return c.tests
	}
	asked := c.askedAgain(c.search.Numerics(e.config))
	if asked == nil || asked.name == e.name {
		return c.tests
	}
	out := slices.Clone(c.tests)
	for _, p := range slices.Backward(c.tests) {
		if p.Label == asked.name {
			p.Label, p.Sentence = e.name, fmt.Sprintf("%s; %s was asked, which answers alike", p.Sentence, asked.name)
			return append(out, p)
		}
	}
	return out
}

func (c conclusion) armEnd(r *contender, m *surrogate) Outcome {
	out := Outcome{Label: r.Label, Config: r.Config, Prior: r.Prior, Reason: r.Refused}
	if r.point.known {
		out.Predicted = new(math.Exp(r.point.x))
		mean, _ := m.at(r.point)
		out.Expected = new(math.Exp(mean))
	}
	for _, t := range c.trials {
		if t.Pass == 0 && maps.Equal(t.Config, r.Config) {
			out.Trials = append(out.Trials, t.Trial)
		}
	}
	lead := c.launches(r.Config, 0)
	share := 0.0
	if len(lead) == 0 {
		share = c.short()
		lead = c.launches(r.Config, share)
	}
	switch {
	case r.Refused != "":
		out.State = StateRefused
	case len(lead) > 0:
		out.State, out.Reason = StateNotWorse, ""
		out.Measured = c.ratio(r.Config, share)
		if why := c.worse(lead[0]); why != "" {
			out.State, out.Reason = StateEliminated, why
		} else if c.failedGuard(r.Config) {
			out.State, out.Reason = StateEliminated, "its answers are not those of the baseline"
		}
		if c.carried(r) {
			out.State, out.Reason = StateRefined, ""
		}
	case len(out.Trials) > 0:
		out.State = StateFailed
		out.Reason = c.bounds.note(c.trials[out.Trials[0]-1], c.space.Primary)
	case r.pruned:
		out.State = StatePruned
		out.Reason = fmt.Sprintf("predicted at %s of the baseline, more than %d times worse than the best", percentage(math.Exp(r.point.x)), pruneFactor)
	case c.failedGuard(r.Config):
		out.State, out.Reason = StateEliminated, "its numerics were rejected by the accuracy guard"
	default:
		out.State = StateUntried
		out.Reason = "no launch was left that it was worth"
	}
	return out
}

// carried reports whether an arm, or what was made of it, was refined or confirmed.
func (c conclusion) carried(r *contender) bool {
	return slices.ContainsFunc(c.trials, func(t *trial) bool {
		return t.origin.candidate == r.origin.candidate && len(t.origin.changes) >= len(r.origin.changes) &&
			(t.Stage == RefineStage && len(t.origin.changes) > len(r.origin.changes) || t.Stage == ConfirmStage)
	})
}

// ledger is what each phase cost and brought.
func (c conclusion) ledger() []Phase {
	var out []Phase
	lead := math.NaN()
	if l := c.leader(); l != nil {
		lead = l.mean
	}
	for i, m := range c.phases {
		end, after := len(c.trials), lead
		if i+1 < len(c.phases) {
			end, after = c.phases[i+1].trial, c.phases[i+1].lead
		}
		p := Phase{Name: m.name, Launches: end - m.trial}
		for _, t := range c.trials[m.trial:end] {
			p.Seconds += t.end.Seconds
		}
		before := m.lead
		if math.IsNaN(before) {
			before = 0
		}
		if !math.IsNaN(after) && (m.name == RaceStage || m.name == RepairStage || m.name == FinalStage || m.name == RefineStage) {
			p.Gain = new(math.Expm1(after - before))
		}
		out = append(out, p)
	}
	return out
}
