package load

import (
	"context"
	"fmt"
	"time"
)

// LateStartError says that the instant at which a load was to start had passed when
// the load was ready for it. Nothing was sent.
type LateStartError struct{ By time.Duration }

func (e *LateStartError) Error() string {
	return fmt.Sprintf("the load was to start %v before it was ready, so nothing was sent", e.By)
}

// Hint says how to go on.
func (e *LateStartError) Hint() string {
	return "let it start later: building the first requests takes time, longest with long prompts"
}

// sampleLead is how long before a start instant that was given the first sample of
// this process's use is taken, which takes some tenths of a millisecond: at the
// instant itself it would delay the first requests. On a busy machine it waits for
// its turn first, which has been some 90 ms.
const sampleLead = 250 * time.Millisecond

// ready takes the first sample of what this process uses and settles the start
// instant: now, or the one that was given, which the dispatcher then waits for.
func (r *run) ready(ctx context.Context) (*Usage, error) {
	usage := findEngines(r.o.Servers...)
	if r.o.Start.IsZero() {
		usage.begin()
		r.start = time.Now()
		return usage, nil
	}
	r.start = monotonic(r.o.Start)
	if left := time.Until(r.start) - sampleLead; left > 0 {
		timer := time.NewTimer(left)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	usage.begin()
	if late := time.Since(r.start); late > 0 {
		return nil, &LateStartError{By: late}
	}
	return usage, nil
}

// monotonic is the same instant with a reading of the monotonic clock, which one that
// was read from a message has not: a step of the wall clock moves no request then.
func monotonic(at time.Time) time.Time {
	now := time.Now()
	return now.Add(at.Sub(now))
}

// begun waits for a start instant that was given, and says that it has come;
// false: ctx ended before.
func (r *run) begun(ctx context.Context, p *pacer) bool {
	if !r.o.Start.IsZero() && !p.wait(ctx, 0) {
		return false
	}
	r.o.Progress.Running.Store(true)
	if r.o.Begun != nil {
		r.o.Begun(r.start)
	}
	return true
}
