package tune

import (
	"errors"
	"maps"

	"perflab/internal/field"
)

// Survey measures every configuration under every workload, once and in the
// order given: nothing is carried forward and nothing confirmed. Its result
// ranks by the first workload; Baseline is the first configuration, Winner the
// best, and Confirmed stays false.
type Survey struct {
	configs   []Change
	workloads []string
	objective Objective
	trials    []*trial
}

var _ Strategy = (*Survey)(nil)

// NewSurvey returns a survey, or everything that is wrong with what it was
// given. Candidates are complete configurations; the first workload is the
// primary one.
func NewSurvey(configs []Change, workloads []string, o Objective) (*Survey, error) {
	var errs []error
	if len(configs) == 0 {
		errs = append(errs, errors.New("the survey has no configurations: list at least one"))
	}
	if len(workloads) == 0 {
		errs = append(errs, errors.New("the survey has no workloads: list at least one"))
	}
	errs = append(errs, changeErrors("configs", "survey", configs)...)
	errs = append(errs, workloadErrors(workloads)...)
	for i, c := range configs {
		for _, first := range configs[:i] {
			if maps.Equal(first.Apply(nil), c.Apply(nil)) {
				errs = append(errs, field.Errorf(field.Index("configs", i), "survey: %q and %q are the same configuration: remove one", first.Label, c.Label))
			}
		}
	}
	if err := errors.Join(append(errs, o.Validate())...); err != nil {
		return nil, err
	}
	return &Survey{configs: configs, workloads: workloads, objective: o}, nil
}

// Ask returns the trial to measure next.
func (s *Survey) Ask() (Proposal, bool) { return ask(s.open()) }

// Tell takes the end of the trial that was asked for.
func (s *Survey) Tell(o Observation) {
	open := s.open()
	o = checked(open, o)
	t := &trial{Proposal: *open, name: open.Label, end: o}
	t.score = s.objective.score(o.Status, o.Figures[s.workloads[0]])
	s.trials = append(s.trials, t)
}

func (s *Survey) open() *Proposal {
	n := len(s.trials)
	if n == len(s.configs) {
		return nil
	}
	c := s.configs[n]
	return &Proposal{Trial: n + 1, Stage: SurveyStage, Label: c.Label, Config: c.Apply(nil), Workloads: s.workloads}
}

// Result is what the observations so far say.
func (s *Survey) Result() Result {
	if len(s.trials) == 0 {
		return Result{Verdict: Finding{Kind: NothingYet}}
	}
	primary := s.workloads[0]
	first, best := s.trials[0], s.objective.bestOf(s.trials)
	gain := func(t *trial) *float64 { return s.objective.Gain(first.figures(primary), t.figures(primary)) }
	r := Result{Baseline: first.id(), Winner: best.id(), Gain: gain(best)}
	if best.measured() {
		r.Misses = s.objective.Misses(best.figures(primary))
	}
	r.Verdict = s.verdict(best, r.Misses)
	d := Decision{Stage: SurveyStage, Before: first.id(), Winner: best.id(), Gain: gain(best), Total: gain(best), Reason: new(r.Verdict)}
	for _, t := range s.trials {
		d.Trials = append(d.Trials, t.Trial)
		d.Entries = append(d.Entries, Entry{Label: t.Label, Trial: t.Trial, Gain: gain(t), Total: gain(t), Finding: s.objective.noteOn(t, primary, t.figures(primary))})
	}
	r.Stages = []Decision{d}
	if best != first {
		r.Challenger = best.id()
	}
	if s.open() != nil {
		r.Verdict.After, r.Verdict.Of = new(len(s.trials)), len(s.configs)
	}
	return r
}

func (s *Survey) verdict(best *trial, misses []Constraint) Finding {
	if !best.measured() {
		return Finding{Kind: NothingMeasured, Cause: s.objective.noteOn(best, s.workloads[0], nil)}
	}
	measured := 0
	for _, t := range s.trials {
		if t.measured() {
			measured++
		}
	}
	return Finding{Kind: SurveyBest, Name: best.name, Workload: s.workloads[0], Value: &best.score.value, N: measured, Misses: misses}
}
