package load

import (
	"context"
	"fmt"
	"time"

	"perflab/internal/result"
	"perflab/internal/workload"
)

// prepare works ahead on what follows a request; the channel is closed when
// that is done.
func (r *run) prepare(req workload.Request) <-chan struct{} {
	done := make(chan struct{})
	r.sends.Go(func() {
		defer close(done)
		defer r.catch(fmt.Sprintf("prepare what follows request %d", req.Index))
		r.o.Prepare(req)
	})
	return done
}

// follow starts the turn after a call that ended, which keeps the call's place
// at the limit, or gives the place back.
func (r *run) follow(ctx context.Context, req workload.Request, call *result.Call, target int) {
	if r.o.Next != nil {
		if next, ok := r.after(req, call); ok {
			r.sends.Go(func() { r.turn(ctx, next, target) })
			return
		}
	}
	r.limit.give(r.start)
}

// after is the next turn of a conversation with its due time. A failed turn is
// the last: what a user would have said next nobody knows.
func (r *run) after(req workload.Request, call *result.Call) (next workload.Request, ok bool) {
	defer r.catch(fmt.Sprintf("build what follows request %d", req.Index))
	req.Body = nil // the next turn has one of its own
	next, think, ok := r.o.Next(req, call.Text)
	if !ok {
		return next, false
	}
	if call.Class == result.OK {
		next.Due = call.End + think
		return r.build(next), true
	}
	if call.Class != result.Cancelled {
		for more := true; more; next, _, more = r.o.Next(next, "") {
			r.unsent.Add(1)
		}
	}
	return workload.Request{}, false
}

// turn sends a later turn of a conversation when it is due.
func (r *run) turn(ctx context.Context, req workload.Request, target int) {
	if r.over(req.Due) {
		r.limit.give(r.start)
		return
	}
	if !r.wait(ctx, req.Due) {
		r.stopped.Store(true)
		r.limit.give(r.start)
		return
	}
	if !r.o.Affinity {
		target = r.target()
	}
	r.send(ctx, req, req.Due, target)
}

// wait returns at due; false: ctx ended before. A conversation that thinks
// holds no thread: only the last stretch is the pacer's, which locks one.
func (r *run) wait(ctx context.Context, due time.Duration) bool {
	if left := due - time.Since(r.start) - r.o.Spin; left > 0 {
		timer := time.NewTimer(left)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return false
		}
	}
	if time.Since(r.start) >= due {
		return ctx.Err() == nil
	}
	p := newPacer(r.start, r.o.Spin)
	defer p.close()
	return p.wait(ctx, due)
}
