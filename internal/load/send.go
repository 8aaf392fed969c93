package load

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"perflab/internal/result"
	"perflab/internal/workload"
)

// run is one load under way: how its calls are sent and their conversations go on.
type run struct {
	senders []Sender
	o       Options
	emit    func(result.Call)
	cancel  context.CancelCauseFunc

	start    time.Time
	limit    limit
	idle     *idling // nil: idle times are as they are
	sends    sync.WaitGroup
	inFlight []atomic.Int64   // by target
	calls    chan result.Call // unbuffered: a call that waits here has left its slot

	held     atomic.Int64  // bytes of the prompts that are built and not sent
	released chan struct{} // held fell; of one token, so that the news is not lost

	choice sync.Mutex
	next   int // target at which the search for the least busy begins; choice guards it

	sent    atomic.Int64
	unsent  atomic.Int64
	stopped atomic.Bool // a conversation was cut between two turns

	failed    int  // the collector's
	cancelled bool // a call was cancelled; the collector's

	firstPanic atomic.Pointer[PanicError]
}

// over reports whether the load has come to its end at an offset: time is up, or enough was sent.
func (r *run) over(at time.Duration) bool {
	return r.o.Until > 0 && at >= r.o.Until || r.o.Enough != nil && r.o.Enough.Load()
}

// send starts one call in a goroutine of its own; s is the session that it belongs to, nil
// where its turns follow one another.
func (r *run) send(ctx context.Context, req workload.Request, ready time.Duration, target int, s *tree) {
	r.inFlight[target].Add(1)
	r.idle.sent()
	r.sent.Add(1)
	r.o.Progress.Sent.Add(1)
	r.o.Progress.InFlight.Add(1)
	var prepared <-chan struct{}
	if r.o.Prepare != nil {
		prepared = r.prepare(req)
	}
	finish := r.begin(ctx, target, req)
	r.sends.Go(func() {
		call := r.call(req, finish)
		r.inFlight[target].Add(-1)
		r.idle.ended()
		r.o.Progress.InFlight.Add(-1)
		if prepared != nil {
			<-prepared
		}
		if s != nil {
			s.follow(ctx, req, &call)
		} else {
			r.follow(ctx, req, &call, target)
		}
		call.Index, call.Target, call.Due, call.Ready = req.Index, target, req.Due, ready
		call.Session, call.Turn, call.Turns, call.Model = req.Session, req.Turn, req.Turns, req.Model
		call.WantIn, call.Want = req.Input, req.Output
		r.calls <- call
	})
}

// build makes a request ready to be written, where the sender can.
func (r *run) build(req workload.Request) workload.Request {
	if b, ok := r.senders[0].(Builder); ok {
		return b.Build(req)
	}
	return req
}

// begin sends at once where the sender can, and returns what does the rest.
func (r *run) begin(ctx context.Context, target int, req workload.Request) (finish func() result.Call) {
	if s, ok := r.senders[target].(Starter); ok {
		defer r.catch(fmt.Sprintf("send request %d", req.Index))
		return s.Start(ctx, r.start, req)
	}
	return func() result.Call { return r.senders[target].Send(ctx, r.start, req) }
}

// call waits for the end of a request, with a panic turned into a failed call.
func (r *run) call(req workload.Request, finish func() result.Call) (call result.Call) {
	sent, returned := time.Since(r.start), false
	defer func() {
		if !returned {
			call = result.Call{Sent: sent, End: time.Since(r.start), Class: result.Cancelled, Error: "the sender panicked"}
		}
	}()
	defer r.catch(fmt.Sprintf("send request %d", req.Index))
	if finish == nil { // begin panicked
		return call
	}
	call = finish()
	returned = true
	return call
}

// target is the one with the fewest calls in flight; among equals they take
// turns.
func (r *run) target() int {
	r.choice.Lock()
	defer r.choice.Unlock()
	best, least := 0, int64(0)
	for i := range r.senders {
		k := (r.next + i) % len(r.senders)
		if n := r.inFlight[k].Load(); i == 0 || n < least {
			best, least = k, n
		}
	}
	r.next = (best + 1) % len(r.senders)
	return best
}

// PanicError is a panic in code that Run called.
type PanicError struct {
	Doing string
	Value any
}

func (e *PanicError) Error() string { return fmt.Sprintf("%s: panic: %v", e.Doing, e.Value) }

// catch keeps the first panic and stops the run, so that what was measured is
// still collected.
func (r *run) catch(doing string) {
	if v := recover(); v != nil {
		e := &PanicError{Doing: doing, Value: v}
		r.firstPanic.CompareAndSwap(nil, e)
		r.cancel(e)
	}
}

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
	r.limit.release(r.start)
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
		r.limit.release(r.start)
		return
	}
	if !r.wait(ctx, req.Due) {
		r.stopped.Store(true)
		r.limit.release(r.start)
		return
	}
	if !r.o.Affinity {
		target = r.target()
	}
	r.send(ctx, req, req.Due, target, nil)
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
