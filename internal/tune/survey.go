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
	ended     int
	singles   Singles
	single
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
	return &Survey{configs: configs, workloads: workloads, singles: Singles{Stage: SurveyStage, Primary: workloads[0], Objective: o}}, nil
}

// Ask returns the trial to measure next.
func (s *Survey) Ask() (Proposal, bool) { return s.ask(s.open()) }

// Tell takes the end of the trial that was asked for.
func (s *Survey) Tell(o Observation) {
	open := s.open()
	o = checked(open, o)
	s.singles.Add(*open, o)
	s.ended++
}

func (s *Survey) open() *Proposal {
	if s.ended == len(s.configs) {
		return nil
	}
	c := s.configs[s.ended]
	return &Proposal{Trial: s.ended + 1, Stage: SurveyStage, Label: c.Label, Config: c.Apply(nil), Workloads: s.workloads}
}

// Result is what the observations so far say.
func (s *Survey) Result() Result {
	r := s.singles.Result()
	if s.ended > 0 && s.open() != nil {
		r.Verdict.After, r.Verdict.Of = new(s.ended), len(s.configs)
	}
	return r
}
