// Package staged has the searches of published studies, which conclude from one or two
// measurements of a configuration: stage by stage, and a survey.
//
//	s, err := staged.New(space, objective, budget)
//	for p, ok := s.Ask(); ok; p, ok = s.Ask() {
//		s.Tell(measured(p))
//	}
//	fmt.Println(s.Result().Verdict.Kind)
//
// Invariants: what is recommended by stages was measured twice, on fresh seeds beside the
// baseline; what is concluded from single measurements says so.
//
// Deliberately absent: intervals, which so few measurements do not have (tune.Race).
package staged

import (
	"errors"
	"maps"
	"slices"

	"perflab/internal/field"
	"perflab/internal/tune"
)

// Search is the greedy search of the published studies: the baseline first,
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
type Search struct {
	tune.Procedure
	state *state
}

var _ tune.Strategy = (*Search)(nil)

// New returns a staged search, or everything that is wrong with what it
// was given.
func New(s tune.Space, o tune.Objective, b tune.Budget) (*Search, error) {
	if err := errors.Join(s.Validate(), o.Validate(), budgetError(s, b)); err != nil {
		return nil, err
	}
	st := &Search{state: &state{space: s, objective: o, budget: b}}
	st.Procedure = tune.NewProcedure(st.state.run)
	return st, nil
}

// Result is what the observations so far say.
func (s *Search) Result() tune.Result {
	s.Over() // it has begun
	return s.state.conclude()
}

// state is how far a staged search has come.
type state struct {
	space     tune.Space
	objective tune.Objective
	budget    tune.Budget
	ask       func(tune.Proposal) tune.Observation
	finished  bool
	trials    []*trial

	base, lead           *trial // lead is the incumbent; nil while nothing could be measured
	baseAgain, leadAgain *trial // of the confirmation
	decisions            []tune.Decision
	current              *tune.Decision // of the stage under way
}

// run is the search. It is suspended in measure while a trial is under way.
func (s *state) run(ask func(tune.Proposal) tune.Observation) {
	s.ask = ask
	s.base = s.measure(tune.Proposal{
		Stage: tune.BaselineStage, Label: tune.BaselineStage,
		Config: tune.Change{}.Apply(s.space.Baseline), Workloads: []string{s.space.Primary},
	}, tune.TheBaseline)
	if s.base.measured() {
		s.lead = s.base
	}
	for _, st := range s.space.Stages {
		s.stage(st)
	}
	s.confirm()
	s.finished = true
}

// reserve is the number of launches that the confirmation may take.
const reserve = 2

// budgetError says what is wrong with a budget. It is spent on the search only as far as the
// confirmation stays affordable: candidates that do not fit are left out with a note, and the
// confirmation always takes place.
func budgetError(s tune.Space, b tune.Budget) error {
	if len(s.Stages) > 0 && b.Trials > 0 && b.Trials < 2+reserve {
		return field.Errorf("budget", "a budget of %d trials leaves none for a candidate: the baseline takes 1 and the confirmation %d, so give at least %d", b.Trials, reserve, 2+reserve)
	}
	return b.Validate()
}

// spent says why another trial of the search does not fit, each launch taken to be as long as
// the longest so far, so that further workloads may exceed a budget of time; nil where one does.
func (s *state) spent() *tune.Finding {
	b := s.budget
	if b.Trials > 0 && len(s.trials)+1+reserve > b.Trials {
		return &tune.Finding{Kind: tune.NoTrialsLeft, N: b.Trials, Of: reserve}
	}
	if sum, longest := seconds(s.trials); b.Time > 0 && sum+(1+reserve)*longest > b.Time.Seconds() {
		return &tune.Finding{Kind: tune.NoTimeLeft, Seconds: b.Time.Seconds()}
	}
	return nil
}

// measure proposes a trial and takes its end.
func (s *state) measure(p tune.Proposal, name string) *trial {
	p.Trial = len(s.trials) + 1
	t := ended(s.objective, s.space.Primary, p, name, s.ask(p))
	s.trials = append(s.trials, t)
	return t
}

// stage measures every candidate, then decides.
func (s *state) stage(st tune.Stage) {
	before := s.lead
	d := tune.Decision{Stage: st.Name, Before: before.id()}
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
		if t != before && (best == nil || s.objective.Order(t.score, best.score) < 0) {
			best = t
		}
	}
	if best.measured() && (before == nil || s.objective.Beats(best.score, before.score)) {
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
func (s *state) try(stage string, c tune.Change) (*trial, *tune.Finding) {
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
	if why := s.spent(); why != nil {
		return nil, why
	}
	t := s.measure(tune.Proposal{Stage: stage, Label: c.Label, Config: config, Workloads: []string{s.space.Primary}}, name)
	if t.measured() && !s.base.measured() && maps.Equal(config, s.base.Config) {
		s.base, t.name = t, s.base.name // a second attempt at the baseline came through
	}
	return t, nil
}

// find returns the trial that measured a configuration, or had it refused.
func (s *state) find(c tune.Config) *trial {
	for _, t := range s.trials {
		settled := t.end.Status == tune.Measured || t.end.Status == tune.Refused
		if settled && maps.Equal(t.Config, c) {
			return t
		}
	}
	return nil
}

func (s *state) entry(label string, t, before *trial, why *tune.Finding) tune.Entry {
	if t == nil {
		return tune.Entry{Label: label, Finding: why}
	}
	return tune.Entry{
		Label: label, Trial: t.Trial,
		Gain: s.gain(before, t), Total: s.gain(s.base, t),
		Finding: s.note(t),
	}
}

func (s *state) gain(before, after *trial) *float64 {
	return s.objective.Gain(before.figures(s.space.Primary), after.figures(s.space.Primary))
}

func (s *state) confirm() {
	if s.lead == nil {
		return
	}
	workloads := append([]string{s.space.Primary}, s.space.Others...)
	again := func(t *trial, label string) *trial {
		return s.measure(tune.Proposal{Stage: tune.ConfirmStage, Label: label, Config: t.Config, Workloads: workloads, Pass: 1}, t.name)
	}
	if s.base.measured() {
		s.baseAgain = again(s.base, tune.BaselineStage)
	}
	if s.lead != s.base {
		s.leadAgain = again(s.lead, s.lead.name)
	}
}

// conclude names what to use. Only figures of the confirming pass are
// compared with each other here: the search's own are biased, since the best
// of several measurements was picked by them.
func (s *state) conclude() tune.Result {
	r := tune.Result{Stages: slices.Clone(s.decisions)}
	if d := s.current; d != nil && len(d.Entries) > 0 { // as far as it came
		part := *d
		part.Winner, part.Entries, part.Trials = d.Before, slices.Clone(d.Entries), slices.Clone(d.Trials)
		part.Reason = &tune.Finding{Kind: tune.StageOpen, N: len(d.Entries), Of: len(s.space.Stages[len(s.decisions)].Changes)}
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
func (s *state) confirmed() bool {
	return s.finished && s.lead != nil &&
		(!s.base.measured() || s.baseAgain.measured()) &&
		(s.lead == s.base || s.leadAgain.measured())
}

// shown reports whether the second measurement repeats that the search's best
// beats the baseline; without a baseline, that it could be confirmed on fresh seeds.
func (s *state) shown() bool {
	return s.confirmed() && s.lead != s.base &&
		(!s.base.measured() || s.objective.Beats(s.leadAgain.score, s.baseAgain.score))
}
