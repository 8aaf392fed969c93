package load

import (
	"context"
	"time"
)

// limit bounds the calls in flight. Its slots queue in the order in which they
// were freed, each with the instant of that as an offset from the start (0:
// never used), so that a request's Ready is when the limit let it pass and not
// when the dispatcher noticed. nil: no limit.
type limit chan time.Duration

func newLimit(n int) limit {
	if n <= 0 {
		return nil
	}
	l := make(limit, n) // room for every slot: give never waits
	for range n {
		l <- 0
	}
	return l
}

// acquire waits for a slot and tells since when it is free.
func (l limit) acquire(ctx context.Context) (freed time.Duration, ok bool) {
	if l == nil {
		return 0, ctx.Err() == nil
	}
	select {
	case freed = <-l:
		return freed, ctx.Err() == nil
	case <-ctx.Done():
		return 0, false
	}
}

func (l limit) release(start time.Time) {
	if l != nil {
		l <- time.Since(start)
	}
}
