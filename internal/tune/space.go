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
	errs = append(errs, workloadErrors(append([]string{s.Primary}, s.Others...))...)
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
		errs = append(errs, changeErrors(path+".changes", fmt.Sprintf("stage %q", st.Name), st.Changes)...)
	}
	return errors.Join(errs...)
}

func workloadErrors(workloads []string) []error {
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

func changeErrors(path, where string, changes []Change) []error {
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

// Budget bounds a search; the zero Budget does not. It is spent on search
// trials only as far as the two launches of the confirmation stay affordable:
// candidates that do not fit are left out with a note, and the confirmation
// always takes place.
type Budget struct {
	Trials int `json:"trials,omitempty"` // launches in all, the baseline and the confirmation included
	// Time is that of the trials, as observations give it. No search trial
	// begins unless it and the confirmation fit, each launch taken to be as
	// long as the longest so far; so further workloads may exceed it.
	Time time.Duration `json:"time_ns,omitempty"`
}

// reserve is the number of launches that the confirmation may take.
const reserve = 2

// Validate says what is wrong with the budget of a search that confirms nothing.
func (b Budget) Validate() error { return b.validate(false) }

func (b Budget) validate(candidates bool) error {
	switch {
	case b.Trials < 0:
		return field.Errorf("budget", "the budget has %d trials: give at least %d, or none for no limit", b.Trials, 2+reserve)
	case b.Time < 0:
		return field.Errorf("budget", "the budget has the time %v: give a positive one, or none for no limit", b.Time)
	case candidates && b.Trials > 0 && b.Trials < 2+reserve:
		return field.Errorf("budget", "a budget of %d trials leaves none for a candidate: the baseline takes 1 and the confirmation %d, so give at least %d", b.Trials, reserve, 2+reserve)
	}
	return nil
}

// spent says why another search trial does not fit; nil where one does.
func (b Budget) spent(trials []*trial) *Finding {
	if b.Trials > 0 && len(trials)+1+reserve > b.Trials {
		return &Finding{Kind: NoTrialsLeft, N: b.Trials, Of: reserve}
	}
	if sum, longest := seconds(trials); b.Time > 0 && sum+(1+reserve)*longest > b.Time.Seconds() {
		return &Finding{Kind: NoTimeLeft, Seconds: b.Time.Seconds()}
	}
	return nil
}

// used reports whether no further trial fits; unlike spent it keeps nothing for a
// confirmation.
func (b Budget) used(trials []*trial) bool {
	sum, longest := seconds(trials)
	return b.Trials > 0 && len(trials) >= b.Trials || b.Time > 0 && sum+longest > b.Time.Seconds()
}

// seconds are those of all trials and of the longest.
func seconds(trials []*trial) (sum, longest float64) {
	for _, t := range trials {
		sum += t.end.Seconds
		longest = max(longest, t.end.Seconds)
	}
	return sum, longest
}
