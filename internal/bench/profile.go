package bench

import (
	"context"

	"perflab/internal/openai"
)

// profiled makes a measurement while every server is profiled, where the spec wants it; note is what
// is to be said of that.
func (b Runner) profiled(ctx context.Context, clients []*openai.Client, measure func() (*Outcome, error)) (out *Outcome, note string, err error) {
	stop, err := b.profile(ctx, clients)
	if err != nil {
		return nil, "", err
	}
	out, err = measure()
	return out, stop(), err
}

// profile starts the profiler of every server, where the spec wants it. stop ends them,
// also of a run that was interrupted, and says what went wrong with that: the calls
// have been measured then.
func (b Runner) profile(ctx context.Context, clients []*openai.Client) (stop func() (note string), err error) {
	if !b.Spec.Profile {
		return func() string { return "" }, nil
	}
	var started []*openai.Client
	stop = func() (note string) {
		b.phase(PhaseProfile)
		for _, c := range started {
			if err := c.StopProfile(context.WithoutCancel(ctx)); err != nil {
				note = "the profiler was not stopped: " + err.Error()
			}
		}
		return note
	}
	for _, c := range clients {
		if err := c.StartProfile(ctx); err != nil {
			stop()
			return nil, err
		}
		started = append(started, c)
	}
	return stop, nil
}
