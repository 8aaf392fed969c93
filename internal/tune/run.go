package tune

import (
	"context"
	"fmt"
)

// Evaluate measures one proposal. A trial that could not be measured is an
// Observation too; an error stops the study and leaves the trial open, to be
// evaluated again on resume.
type Evaluate func(context.Context, Proposal) (Observation, error)

// Run drives a strategy to its end: each proposal is in the journal before it
// is evaluated, and each end is there before the strategy is told. When ctx is
// done Run returns its cause before the next trial, with everything measured
// kept; whether a trial under way is finished first is for evaluate to decide.
func Run(ctx context.Context, s Strategy, j *Journal, evaluate Evaluate) error {
	for {
		p, ok := s.Ask()
		if !ok {
			return j.end()
		}
		if ctx.Err() != nil {
			return fmt.Errorf("stop before trial %d (%s): %w", p.Trial, p.Label, context.Cause(ctx))
		}
		if err := j.propose(p); err != nil {
			return err
		}
		o, err := evaluate(ctx, p)
		if err != nil {
			return fmt.Errorf("trial %d (%s): %w", p.Trial, p.Label, err)
		}
		o.Trial = p.Trial
		o = o.settle()
		if err := j.observe(o); err != nil {
			return err
		}
		s.Tell(o)
	}
}

// Resume tells a new strategy everything that a journal holds, and returns
// the proposal that has no end yet, if any; Run evaluates it first. It is an
// error if the strategy proposes anything else than the journal says.
func Resume(s Strategy, log Log) (pending *Proposal, err error) {
	for i, t := range log.Trials {
		p, ok := s.Ask()
		if !ok || !p.equal(t.Proposal) {
			return nil, foreign(i + 1)
		}
		if t.Observation == nil {
			return &p, nil
		}
		s.Tell(*t.Observation)
	}
	if p, ok := s.Ask(); ok && log.Ended {
		return nil, foreign(p.Trial)
	}
	return nil, nil
}
