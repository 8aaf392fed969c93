package lab

import (
	"cmp"
	"fmt"

	"perflab/internal/bench"
	"perflab/internal/engine"
	"perflab/internal/tune"
	"perflab/internal/workload"
)

// extents are the longest requests of a workload.
type extents struct {
	whole, prompt workload.Extent
	exact         bool
}

// fits holds the longest requests of a proposal's workloads against what the
// configuration serves. It is an *engine.Rejection that requests of the first one, which
// decides what the trial is worth, are known not to fit; of the others, and of lengths that
// are estimates, the trial gets a note.
func (l *study) fits(t *trialRecord, p tune.Proposal, pl plan) error {
	for i, name := range p.Workloads {
		longest := l.lengths(name, p.Pass)
		if longest == nil {
			continue
		}
		r := cmp.Or(pl.cfg.Fits(longest.whole.Input, longest.whole.Output), pl.cfg.Fits(longest.prompt.Input, longest.prompt.Output))
		switch {
		case r == nil:
		case !longest.exact:
			t.Notes = append(t.Notes, fmt.Sprintf("Workload %s may have requests that do not fit, by an estimate of their lengths: %s.", name, r.Reason))
		case i > 0 || l.attached():
			t.Notes = append(t.Notes, fmt.Sprintf("Workload %s has requests that do not fit: %s.", name, r.Reason))
		default:
			return &engine.Rejection{Rule: r.Rule, Log: r.Log, Reason: fmt.Sprintf("workload %s: %s", name, r.Reason)}
		}
	}
	return nil
}

// lengths are the longest requests of a workload in one pass; nil where they cannot be
// known beforehand: its run says what is wrong with it, and only a server that runs can be
// the tokenizer.
func (l *study) lengths(name string, pass int) *extents {
	key := fmt.Sprintf("%s %d", name, pass)
	if e, ok := l.longest[key]; ok {
		return e
	}
	if l.longest == nil {
		l.longest = map[string]*extents{}
	}
	l.longest[key] = nil
	if w, _, err := bench.OpenWorkload(l.workload(name, pass)); err == nil {
		e := &extents{}
		e.whole, e.prompt, e.exact = w.Longest()
		l.longest[key] = e
	}
	return l.longest[key]
}
