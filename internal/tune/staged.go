package tune

import (
	"errors"
	"maps"
	"slices"
)

// Staged is the greedy search of the published studies: the baseline first,
// then stage after stage, whose best candidate goes on if it beats the
// incumbent, and at the end baseline and winner launched again.
//
// A candidate is a change of the incumbent its stage began with, and the
// stage is decided when its last candidate is in, so the order of candidates
// decides only between equals: the first goes on, and the incumbent stays
// where the best only equals it. A configuration that was measured or refused
// before is not launched again: its trial stands for it. One that failed or
// was void may be, when another candidate asks for it.
//
// Without a measured baseline the search goes on: candidates change the
// baseline's configuration, and the first stage that measures one has a
// winner with nothing to compare it with.
//
// The confirmation measures baseline and winner once more, in this order, on
// fresh seeds and under every workload. Only a winner that beats the baseline
// there by the same rule is recommended; else the baseline is, and the verdict
// says that no difference was shown.
type Staged struct {
	Procedure
	state *stagedState
}

var _ Strategy = (*Staged)(nil)

// NewStaged returns a staged search, or everything that is wrong with what it
// was given.
func NewStaged(s Space, o Objective, b Budget) (*Staged, error) {
	if err := errors.Join(s.Validate(), o.Validate(), b.validate(len(s.Stages) > 0)); err != nil {
		return nil, err
	}
	st := &Staged{state: &stagedState{space: s, objective: o, budget: b}}
	st.Procedure = NewProcedure(st.state.run)
	return st, nil
}

// Result is what the observations so far say.
func (s *Staged) Result() Result {
	s.start()
	return s.state.conclude()
}

// stagedState is how far a staged search has come.
type stagedState struct {
	space     Space
	objective Objective
	budget    Budget
	ask       func(Proposal) Observation
	finished  bool
	trials    []*trial

	base, lead           *trial // lead is the incumbent; nil while nothing could be measured
	baseAgain, leadAgain *trial // of the confirmation
	decisions            []Decision
	current              *Decision // of the stage under way
}

// run is the search. It is suspended in measure while a trial is under way.
func (s *stagedState) run(ask func(Proposal) Observation) {
	s.ask = ask
	s.base = s.measure(Proposal{
		Stage: BaselineStage, Label: BaselineStage,
		Config: Change{}.Apply(s.space.Baseline), Workloads: []string{s.space.Primary},
	}, theBaseline.candidate)
	if s.base.measured() {
		s.lead = s.base
	}
	for _, st := range s.space.Stages {
		s.stage(st)
	}
	s.confirm()
	s.finished = true
}

// measure proposes a trial and takes its end.
func (s *stagedState) measure(p Proposal, name string) *trial {
	p.Trial = len(s.trials) + 1
	end := s.ask(p)
	t := &trial{Proposal: p, name: name, end: end, score: s.objective.score(end.Status, end.Figures[s.space.Primary])}
	s.trials = append(s.trials, t)
	return t
}

// stage measures every candidate, then decides.
func (s *stagedState) stage(st Stage) {
	before := s.lead
	d := Decision{Stage: st.Name, Before: before.id()}
	s.current = &d
	var best *trial
	for _, c := range st.Changes {
		t, why := s.try(st.Name, c)
		d.Entries = append(d.Entries, s.entry(c.Label, t, before, why))
		if t == nil {
			continue
		}
		if !slices.Contains(d.Trials, t.Trial) {
			d.Trials = append(d.Trials, t.Trial)
		}
		if t != before && (best == nil || s.objective.prefer(t.score, best.score)) {
			best = t
		}
	}
	if best.measured() && (before == nil || s.objective.beats(best.score, before.score)) {
		s.lead = best
	}
	d.Winner = s.lead.id()
	d.Gain = s.gain(before, s.lead)
	d.Total = s.gain(s.base, s.lead)
	d.Reason = s.reason(before, best)
	s.decisions, s.current = append(s.decisions, d), nil
}

// try measures a candidate, or finds the trial that did; a nil trial comes
// with why there is none.
func (s *stagedState) try(stage string, c Change) (*trial, *Finding) {
	incumbent, name := s.base.Config, c.Label
	if s.lead != nil {
		incumbent = s.lead.Config
		if s.lead != s.base && !c.Replace {
			name = s.lead.name + " + " + c.Label
		}
	}
	config := c.Apply(incumbent)
	if t := s.find(config); t != nil {
		return t, nil
	}
	if why := s.budget.spent(s.trials); why != nil {
		return nil, why
	}
	t := s.measure(Proposal{Stage: stage, Label: c.Label, Config: config, Workloads: []string{s.space.Primary}}, name)
	if t.measured() && !s.base.measured() && maps.Equal(config, s.base.Config) {
		s.base, t.name = t, s.base.name // a second attempt at the baseline came through
	}
	return t, nil
}

// find returns the trial that measured a configuration, or had it refused.
func (s *stagedState) find(c Config) *trial {
	for _, t := range s.trials {
		settled := t.end.Status == Measured || t.end.Status == Refused
		if settled && maps.Equal(t.Config, c) {
			return t
		}
	}
	return nil
}

func (s *stagedState) entry(label string, t, before *trial, why *Finding) Entry {
	if t == nil {
		return Entry{Label: label, Finding: why}
	}
	return Entry{
		Label: label, Trial: t.Trial,
		Gain: s.gain(before, t), Total: s.gain(s.base, t),
		Finding: s.note(t),
	}
}

func (s *stagedState) gain(before, after *trial) *float64 {
	return s.objective.Gain(before.figures(s.space.Primary), after.figures(s.space.Primary))
}

func (s *stagedState) confirm() {
	if s.lead == nil {
		return
	}
	workloads := append([]string{s.space.Primary}, s.space.Others...)
	again := func(t *trial, label string) *trial {
		return s.measure(Proposal{Stage: ConfirmStage, Label: label, Config: t.Config, Workloads: workloads, Pass: 1}, t.name)
	}
	if s.base.measured() {
		s.baseAgain = again(s.base, BaselineStage)
	}
	if s.lead != s.base {
		s.leadAgain = again(s.lead, s.lead.name)
	}
}

// conclude names what to use. Only figures of the confirming pass are
// compared with each other here: the search's own are biased, since the best
// of several measurements was picked by them.
func (s *stagedState) conclude() Result {
	r := Result{Stages: slices.Clone(s.decisions)}
	if d := s.current; d != nil && len(d.Entries) > 0 { // as far as it came
		part := *d
		part.Winner, part.Entries, part.Trials = d.Before, slices.Clone(d.Entries), slices.Clone(d.Trials)
		part.Reason = &Finding{Kind: StageOpen, N: len(d.Entries), Of: len(s.space.Stages[len(s.decisions)].Changes)}
		r.Stages = append(r.Stages, part)
	}
	r.Baseline, r.BaselineConfirm = s.base.id(), s.baseAgain.id()
	if s.lead != s.base {
		r.Challenger, r.ChallengerConfirm = s.lead.id(), s.leadAgain.id()
	}
	r.Confirmed = s.confirmed()
	pick, again := s.base, s.baseAgain
	if s.shown() {
		pick, again = s.lead, s.leadAgain
	}
	r.Winner, r.WinnerConfirm = pick.id(), again.id()
	switch {
	case !s.finished || !s.base.measured():
	case pick == s.base:
		r.Gain = new(0.0)
	default:
		r.Gain = s.gain(s.baseAgain, s.leadAgain)
	}
	if again.measured() {
		pick = again
	}
	if pick.measured() {
		r.Misses = s.objective.Misses(pick.figures(s.space.Primary))
	}
	r.Verdict = s.verdict(r.Misses)
	return r
}

// confirmed reports whether every trial of the confirmation has figures.
func (s *stagedState) confirmed() bool {
	return s.finished && s.lead != nil &&
		(!s.base.measured() || s.baseAgain.measured()) &&
		(s.lead == s.base || s.leadAgain.measured())
}

// shown reports whether the second measurement repeats that the search's best
// beats the baseline; without a baseline, that it could be confirmed on fresh seeds.
func (s *stagedState) shown() bool {
	return s.confirmed() && s.lead != s.base &&
		(!s.base.measured() || s.objective.beats(s.leadAgain.score, s.baseAgain.score))
}
