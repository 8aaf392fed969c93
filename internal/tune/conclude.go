package tune

import (
	"maps"
	"math"
	"slices"

	"perflab/internal/tune/answers"
	"perflab/internal/tune/surrogate"
)

// conclusion is what a race found as far as it came.
type conclusion struct{ *raceState }

// conclude says what the race found as far as it came.
func (s *raceState) conclude() Result {
	c := conclusion{s}
	r := Result{Evidence: c.evidence(), Nodes: c.nodeEffects()}
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

// recommended is the finalist that is recommended, the baseline where no other is;
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
	r.ChallengerConfirm = k.foremost().middle()
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
	if d, err := k.compareAll(k.pick, base); err == nil {
		r.Gain = new(d.Ratio.Value - 1)
		r.Interval = &Span{d.Ratio.Value - 1, d.Ratio.Low - 1, d.Ratio.High - 1}
	}
}

// verdict is the race's conclusion.
func (c conclusion) verdict(r Result) Finding {
	k := c.confirmation
	switch {
	case !c.finished:
		return c.soFar()
	case c.leader() == nil && len(c.base) > 0:
		return Finding{Kind: NothingMeasured, Against: theBaseline.candidate, Cause: c.note(c.base[0])}
	case k == nil && !c.based():
		f := Finding{Kind: NothingAcceptable, Cause: c.note(c.base[0])}
		if alone := confirmable(c.model).all; len(alone) > 0 { // with nothing to be held against
			f.Name = alone[0].trial.name
		}
		return f
	case k == nil:
		return Finding{Kind: NoneUsable, N: c.tried(), Misses: r.Misses}
	case !c.based() && k.pick == nil:
		return Finding{Kind: NoBaselineAgain, Cause: c.note(c.base[0])}
	case k.pick == nil:
		return c.baselineStays(r)
	}
	f := Finding{Name: k.pick.name, N: c.tried(), Misses: r.Misses, Unsteady: k.unsteady(k.pick)}
	if !c.based() {
		f.Kind, f.Cause = NoBaseline, c.note(c.base[0])
		if v, ok := mean(k.pick.trials())[c.objective.Metric]; ok {
			f.Value = &v
		}
		return f
	}
	d, err := k.compareAll(k.pick, k.baseline())
	if err == nil {
		f.Comparison = &d
	}
	if f.Kind = ShownBetter; err != nil || d.Verdict != Better {
		f.Kind, f.Bound = BetterByBound, k.preferredBy(k.pick)
	}
	return f
}

// preferredBy is the bound for which a finalist goes before the baseline.
func (k *confirmation) preferredBy(f *finalist) *BoundPair {
	b := k.nearestBound(f, k.baseline())
	keeps := func(f *finalist) Constraint {
		for _, c := range k.constraints(f) {
			if c.Bound == b.String() {
				return c
			}
		}
		return Constraint{Bound: b.String()}
	}
	return &BoundPair{Bound: keeps(f), Other: keeps(k.baseline())}
}

// foremost is the finalist that most is known of beside the baseline: one that fell
// behind, or could not be launched again, has fewer launches.
func (k *confirmation) foremost() *finalist {
	return slices.MaxFunc(k.others(), func(a, b *finalist) int { return len(a.rounds) - len(b.rounds) })
}

// baselineStays is the verdict by which no other is recommended.
func (c conclusion) baselineStays(r Result) Finding {
	k := c.confirmation
	base, best := k.baseline(), k.foremost()
	f := Finding{Name: best.name, N: c.tried(), Misses: r.Misses}
	d, err := k.compareAll(best, base)
	switch {
	case len(base.rounds) == 0:
		f.Kind, f.Name, f.Cause = BaselineLost, k.others()[0].name, c.note(base.failed)
	case len(best.rounds) == 0:
		f.Kind, f.Cause = LeaderLost, c.note(best.failed)
	case len(best.rounds) < fewest:
		f.Kind = OneLaunch
	case err != nil:
		f.Kind, f.Reason = Incomparable, err.Error()
	case c.failedGuard(best.config) || k.score(best).class < k.score(base).class || d.Verdict == Better:
		f.Kind, f.Cause = NotRecommended, k.obstacle(best)
	case d.Verdict == TooSmall:
		f.Kind, f.Comparison = BudgetTooSmall, &d
	default:
		f.Kind, f.Comparison = NoGainShown, &d
	}
	return f
}

func (c conclusion) soFar() Finding {
	f := Finding{After: new(c.ended())}
	switch lead := c.leader(); {
	case lead == nil:
		f.Kind = NothingYet
	case c.isBase(lead.trial.Config):
		f.Kind = BaselineLeads
	default:
		f.Kind, f.Name, f.Ratio = CandidateLeads, lead.trial.name, c.ratio(lead.trial.Config, lead.trial.Share)
	}
	return f
}

// evidence is what stands behind the conclusion.
func (c conclusion) evidence() *Evidence {
	e := &Evidence{Steps: c.steps, Accuracy: c.accuracy(), Learned: c.learned, Stopped: c.stopReason}
	e.Noise = Noise{Within: c.within()}
	if e.Noise.Between, e.Noise.Launches = c.confirmation.noise(); e.Noise.Launches == 0 {
		e.Noise.Between, e.Noise.Launches = c.repeated()
	}
	m := c.fit()
	for _, r := range c.candidates {
		e.Candidates = append(e.Candidates, c.outcome(r, m))
	}
	e.Unlaunched = c.unlaunched()
	e.Predictions = c.fits()
	if k := c.confirmation; k != nil {
		e.Comparisons = c.comparisons()
		e.HoldOuts = c.heldOut()
		for _, t := range c.trials {
			if t.Pass > 0 && !t.open && len(t.Workloads) > len(c.workloads()) {
				e.HeldOut++
			}
		}
		for _, a := range k.ablations {
			out := Ablation{Setting: a.setting.Label, Gain: a.span, Dropped: a.dropped, Finding: a.reason}
			if a.alone != nil {
				out.Trial = a.alone.middle()
			}
			e.Ablation = append(e.Ablation, out)
		}
	}
	e.Phases = c.ledger()
	return e
}

// comparisons are those with the baseline, corrected for their number by Bonferroni's
// inequality and for the looks, what is left of the winner after the ablation among
// them; and, each by itself, those by which one of two goes first.
func (c conclusion) comparisons() []Comparison {
	k := c.confirmation
	var out []Comparison
	add := func(a, b *finalist, d Comparison, err error) {
		if err == nil {
			out = append(out, k.bounded(d, a, b))
		}
	}
	others := k.others()
	if k.pick != nil && !slices.Contains(others, k.pick) {
		others = append(slices.Clone(others), k.pick)
	}
	if base := k.baseline(); base != nil {
		for _, f := range others {
			d, err := k.compareAll(f, base)
			add(f, base, d, err)
		}
	}
	for i, f := range others {
		for _, g := range others[:i] {
			d, err := k.compareAlone(f, g)
			add(f, g, d, err)
		}
	}
	return out
}

// bounded is a comparison in which bounds go before the objective.
func (k *confirmation) bounded(d Comparison, a, b *finalist) Comparison {
	if k.score(a).class < k.score(b).class {
		d.Verdict, d.Obstacle = Missed, k.obstacle(a)
	}
	return d
}

// heldOut is the recommendation against the baseline on each workload that the search is not
// judged by. One without figures is there too: what is not known is no success.
func (c conclusion) heldOut() []Comparison {
	k := c.confirmation
	base := k.baseline()
	if k.pick == nil || base == nil {
		return nil
	}
	var out []Comparison
	for _, w := range c.holdOuts() {
		n := len(c.holdOuts())
		d, err := k.compare(k.pick, base, w, 1-(1-Confidence)/float64(n), n)
		if err != nil {
			d.Verdict, d.ByObjective, d.Reason, d.P = Unknown, Unknown, err.Error(), 1
		}
		if misses := k.missesOn(w, k.pick, base); len(misses) > 0 {
			d.Verdict, d.Misses = Missed, misses
		}
		out = append(out, d)
	}
	return out
}

// accuracy are the verdicts of the guard. What is recommended has one of its own:
// where another of its numerics was asked, that one's.
func (c conclusion) accuracy() []answers.Test {
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
			p.Label, p.Asked = e.name, asked.name
			return append(out, p)
		}
	}
	return out
}

// outcome is what became of a candidate.
func (c conclusion) outcome(r *contender, m *surrogate.Model) Outcome {
	out := Outcome{Label: r.Label, Config: r.Config, Prior: r.Prior, Trials: c.launchesOf(r.Config)}
	if p := c.point(r.Config); r.Refused == "" && c.ofBase().own() && c.predict(r.Config).own() {
		out.Predicted = new(math.Exp(p.X))
		mean, _ := m.At(p)
		out.Expected = new(math.Exp(mean))
	}
	lead := c.launches(r.Config, 0)
	share := 0.0
	if len(lead) == 0 {
		share = c.short()
		lead = c.launches(r.Config, share)
	}
	switch {
	case r.Refused != "":
		out.State, out.Reason = StateRefused, &Finding{Kind: RefusedByRule, Reason: r.Refused}
	case len(lead) > 0:
		out.State = StateNotWorse
		out.Measured = c.ratio(r.Config, share)
		if why := c.worse(lead[0]); why != nil {
			out.State, out.Reason = StateEliminated, why
		} else if c.failedGuard(r.Config) {
			out.State, out.Reason = StateEliminated, &Finding{Kind: OtherAnswers}
		}
		if c.carried(r) {
			out.State, out.Reason = StateRefined, nil
		}
	case len(out.Trials) > 0:
		out.State = StateFailed
		out.Reason = c.note(c.trials[out.Trials[0]-1])
	case c.failedGuard(r.Config):
		out.State, out.Reason = StateEliminated, &Finding{Kind: NumericsFailed}
	case r.Named && c.finished:
		out.State, out.Reason = StateUntried, c.noLaunchLeft()
	default:
		out.State = StateUntried
		out.Reason = &Finding{Kind: NotWorth}
	}
	return out
}

// carried reports whether a candidate, or what was made of it, was refined or confirmed.
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
