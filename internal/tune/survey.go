package tune

import (
	"errors"
	"fmt"
	"maps"
	"strings"

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
		return Result{Verdict: "not finished: nothing is measured yet"}
	}
	primary := s.workloads[0]
	first, best := s.trials[0], s.trials[0]
	for _, t := range s.trials {
		if s.objective.prefer(t.score, best.score) {
			best = t
		}
	}
	gain := func(t *trial) *float64 { return s.objective.Gain(first.figures(primary), t.figures(primary)) }
	d := Decision{Stage: SurveyStage, Before: first.id(), Winner: best.id(), Gain: gain(best), Total: gain(best), Reason: s.reason(best)}
	for _, t := range s.trials {
		d.Trials = append(d.Trials, t.Trial)
		d.Entries = append(d.Entries, Entry{Label: t.Label, Trial: t.Trial, Gain: gain(t), Total: gain(t), Note: s.objective.note(t, primary)})
	}
	r := Result{Baseline: first.id(), Winner: best.id(), Stages: []Decision{d}, Gain: gain(best), Verdict: d.Reason}
	if best != first {
		r.Challenger = best.id()
	}
	if best.measured() {
		r.Misses = s.objective.Misses(best.figures(primary))
	}
	if s.open() != nil {
		r.Verdict = fmt.Sprintf("not finished after %d of %s: %s", len(s.trials), count(len(s.configs), "configuration"), d.Reason)
	}
	return r
}

func (s *Survey) reason(best *trial) string {
	if !best.measured() {
		return "nothing could be measured: the first configuration ended " + s.objective.note(best, s.workloads[0])
	}
	measured := 0
	for _, t := range s.trials {
		if t.measured() {
			measured++
		}
	}
	r := fmt.Sprintf("%s has the best %s of %s on %s, %s, each measured once",
		best.name, s.objective.Metric, count(measured, "configuration"), s.workloads[0], number(best.score.value))
	if misses := s.objective.Misses(best.figures(s.workloads[0])); len(misses) > 0 {
		r += "; not every SLO is met: " + strings.Join(misses, ", ")
	}
	return r
}
