package staged

import (
	"errors"
	"maps"

	"perflab/internal/field"
	"perflab/internal/tune"
)

// Survey measures every configuration under every workload, once and in the
// order given: nothing is carried forward and nothing confirmed. Its result
// ranks by the first workload; Baseline is the first configuration, Winner the
// best, and Confirmed stays false.
type Survey struct {
	tune.Procedure
	singles Singles
	of      int // configurations
}

var _ tune.Strategy = (*Survey)(nil)

// NewSurvey returns a survey, or everything that is wrong with what it was
// given. Candidates are complete configurations; the first workload is the
// primary one.
func NewSurvey(configs []tune.Change, workloads []string, o tune.Objective) (*Survey, error) {
	var errs []error
	if len(configs) == 0 {
		errs = append(errs, errors.New("the survey has no configurations: list at least one"))
	}
	if len(workloads) == 0 {
		errs = append(errs, errors.New("the survey has no workloads: list at least one"))
	}
	errs = append(errs, tune.ChangeErrors("configs", "survey", configs)...)
	errs = append(errs, tune.WorkloadErrors(workloads)...)
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
	s := &Survey{of: len(configs), singles: Singles{Stage: tune.SurveyStage, Primary: workloads[0], Objective: o}}
	s.Procedure = tune.NewProcedure(func(measure func(tune.Proposal) tune.Observation) {
		for i, c := range configs {
			p := tune.Proposal{Trial: i + 1, Stage: tune.SurveyStage, Label: c.Label, Config: c.Apply(nil), Workloads: workloads}
			s.singles.Add(p, measure(p))
		}
	})
	return s, nil
}

// Result is what the observations so far say.
func (s *Survey) Result() tune.Result {
	r := s.singles.Result()
	if n := len(s.singles.trials); n > 0 && n < s.of {
		r.Verdict.After, r.Verdict.Of = &n, s.of
	}
	return r
}
