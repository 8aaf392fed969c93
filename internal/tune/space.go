package tune

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"perflab/internal/field"
)

// Validate says everything that is wrong with the space: errors of package field,
// with paths such as stages[0].changes[1].
func (s Space) Validate() error {
	var errs []error
	if len(Change{}.Apply(s.Baseline)) == 0 {
		errs = append(errs, errors.New("the baseline sets no parameter: give the configuration to compare with"))
	}
	errs = append(errs, WorkloadErrors(append([]string{s.Primary}, s.Others...))...)
	seen := map[string]bool{BaselineStage: true, ConfirmStage: true}
	for i, st := range s.Stages {
		path := field.Index("stages", i)
		switch {
		case st.Name == "":
			errs = append(errs, field.Errorf(path, "stage %d has no name: give it one", i+1))
		case seen[st.Name]:
			errs = append(errs, field.Errorf(path, "the stage name %q is taken: give each stage its own, other than %q and %q", st.Name, BaselineStage, ConfirmStage))
		case len(st.Changes) == 0:
			errs = append(errs, field.Errorf(path, "stage %q has no candidates: list at least one, or remove the stage", st.Name))
		}
		seen[st.Name] = true
		errs = append(errs, ChangeErrors(path+".changes", fmt.Sprintf("stage %q", st.Name), st.Changes)...)
	}
	return errors.Join(errs...)
}

// WorkloadErrors say what is wrong with the names of workloads, the primary one first.
func WorkloadErrors(workloads []string) []error {
	var errs []error
	for i, w := range workloads {
		switch {
		case w == "" && i == 0:
			errs = append(errs, errors.New("no primary workload: name the one that the search is judged by"))
		case w == "":
			errs = append(errs, fmt.Errorf("workload %d has no name: give it one", i+1))
		case slices.Contains(workloads[:i], w):
			errs = append(errs, fmt.Errorf("workload %q is listed twice: name each once", w))
		}
	}
	return errs
}

// ChangeErrors say what is wrong with candidates that are listed at a path.
func ChangeErrors(path, where string, changes []Change) []error {
	var errs []error
	seen := map[string]bool{}
	for i, c := range changes {
		at := field.Index(path, i)
		switch {
		case c.Label == "":
			errs = append(errs, field.Errorf(at, "%s: candidate %d has no label: give it one", where, i+1))
		case seen[c.Label]:
			errs = append(errs, field.Errorf(at, "%s: the label %q is taken: give each candidate its own", where, c.Label))
		case len(c.Set) == 0, c.Replace && len(c.Apply(nil)) == 0:
			errs = append(errs, field.Errorf(at, "%s: candidate %q sets no parameter: say what it changes", where, c.Label))
		}
		seen[c.Label] = true
	}
	return errs
}

// Budget bounds a search; the zero Budget does not.
type Budget struct {
	Trials int           `json:"trials,omitempty"`  // launches in all, the baseline and the confirmation included
	Time   time.Duration `json:"time_ns,omitempty"` // of the trials, as observations give it
}

// Validate says what is wrong with the budget.
func (b Budget) Validate() error {
	switch {
	case b.Trials < 0:
		return field.Errorf("budget", "the budget has %d trials: give a positive number, or none for no limit", b.Trials)
	case b.Time < 0:
		return field.Errorf("budget", "the budget has the time %v: give a positive one, or none for no limit", b.Time)
	}
	return nil
}
