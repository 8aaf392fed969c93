package lab

import (
	"maps"
	"slices"

	"perflab/internal/deploy"
	"perflab/internal/engine"
	"perflab/internal/outcome"
	"perflab/internal/result"
	"perflab/internal/study"
	"perflab/internal/tune"
)

// factsMaker makes the facts of a study from its trials and what the search
// concluded of them.
type factsMaker struct {
	*study.Study
	perflab       string              // version
	engineVersion func(string) string // of an engine, as far as it is known
	workloads     []outcome.Load      // as facts: opening a dataset takes time
	ground        *ground
	foreseen      string            // why configurations can hardly be told apart, before anything was launched
	predictor     tune.Predictor    // nil: nobody predicts
	earlier       []outcome.Earlier // studies that this one learned from, without their figures
}

func trialByID(trials []outcome.Trial, id int) *outcome.Trial {
	for i := range trials {
		if trials[i].ID == id {
			return &trials[i]
		}
	}
	return nil
}

func summaryOf(trials []outcome.Trial, id int, workload string) *result.Summary {
	t := trialByID(trials, id)
	if t == nil {
		return nil
	}
	for i := range t.Runs {
		if t.Runs[i].Workload == workload {
			return &t.Runs[i].Summary
		}
	}
	return nil
}

// summaryWith is summaryOf, or where that trial was not under the workload, of
// the last launch of the same configuration that was, under all of its load.
func summaryWith(trials []outcome.Trial, id int, workload string) *result.Summary {
	t := trialByID(trials, id)
	if s := summaryOf(trials, id, workload); s != nil || t == nil {
		return s
	}
	for i := range slices.Backward(trials) {
		o := &trials[i]
		if s := summaryOf(trials, o.ID, workload); s != nil && o.Share == 0 && maps.Equal(o.Config, t.Config) {
			return s
		}
	}
	return nil
}

// redacted is a command as it may be written down: without secrets.
func redacted(c engine.Command) string {
	return deploy.RedactCommand(c).String()
}
