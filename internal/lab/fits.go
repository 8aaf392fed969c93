package lab

import (
	"cmp"
	"fmt"

	"perflab/internal/engine"
	"perflab/internal/study"
	"perflab/internal/tune"
)

// fits holds the longest requests of a proposal's workloads against what the
// configuration serves. It is an *engine.Rejection that requests of the first one, which
// decides what the trial is worth, are known not to fit; of the others, and of lengths that
// are estimates, the trial gets a note.
func (l *session) fits(t *trialRecord, p tune.Proposal, pl study.Configuration) error {
	for i, name := range p.Workloads {
		longest := l.Lengths(name, p.Pass)
		if longest == nil {
			continue
		}
		r := cmp.Or(pl.Config.Fits(longest.Whole.Input, longest.Whole.Output), pl.Config.Fits(longest.Prompt.Input, longest.Prompt.Output))
		switch {
		case r == nil:
		case !longest.Exact:
			t.Notes = append(t.Notes, fmt.Sprintf("Workload %s may have requests that do not fit, by an estimate of their lengths: %s.", name, r.Reason))
		case i > 0 || l.Attached():
			t.Notes = append(t.Notes, fmt.Sprintf("Workload %s has requests that do not fit: %s.", name, r.Reason))
		default:
			return &engine.Rejection{Rule: r.Rule, Log: r.Log, Reason: fmt.Sprintf("workload %s: %s", name, r.Reason)}
		}
	}
	return nil
}
