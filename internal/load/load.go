// Package load sends a workload on time through a sender to one or more
// targets, bounds concurrency, collects calls and judges its own punctuality.
//
//	stats, err := load.Run(ctx, w.All(), []load.Sender{client}, load.Options{Spin: load.DefaultSpin}, func(c result.Call) {
//		calls = append(calls, c)
//	})
//
// Invariants: a request is sent at its due instant after one start, however
// slow the server is, unless the concurrency limit holds it back; requests pass
// that limit in their order; a conversation holds its place there from its
// first turn to its last, think time included, so that the limit is on
// conversations, and a session of agents until all of them are done; a later turn is due its think time after the end of the turn
// before it; every request that was sent ends in exactly one
// Call, given to emit by one goroutine; Call.Sent - Call.Ready is this client's
// own lateness and nothing else. When ctx ends, nothing more is sent, calls in
// flight come back as cancelled, and Run returns what it has with Partial set.
//
// Deliberately absent: a worker pool (it would turn an open loop into a closed
// one), retries, figures (package result computes them from the calls).
package load

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"perflab/internal/result"
	"perflab/internal/workload"
)

// Stats is what Run knows beside the calls.
type Stats struct {
	Start   time.Time // the instant that all offsets count from
	Sent    int
	Failed  int
	Unsent  int           // later turns given up because the one before failed
	Skipped time.Duration // that no server was left idle for: see Options.MaxIdle
	Skips   int
	Partial bool // stopped before every request was sent and answered
	Client  result.Client
}

// VoidError says that the measurement is spoiled: its figures are not to be
// believed.
type VoidError struct {
	Reason string // one sentence, with figures
	Do     string // what the user can do; "" where nothing general helps
}

func (e *VoidError) Error() string { return "the measurement is void: " + e.Reason }

// Hint says how to go on.
func (e *VoidError) Hint() string { return e.Do }

// ahead is how many requests are built before they are due: enough for the
// usual thousand that are all due at once, 30 MB at 4,000 tokens each.
// aheadBytes bounds their prompts, for those of a million tokens.
const (
	ahead      = 1024
	aheadBytes = 512 << 20
)

// Run sends every request when it is due and gives every call to emit, in the
// order in which they end. The start instant is when the first requests have
// been built, or the one that the options give; where that has passed by then, the
// error is a *LateStartError. A ctx that ends is no error; a sender, a sequence or
// an emit that panics is, after everything in flight was collected.
func Run(ctx context.Context, requests iter.Seq[workload.Request], senders []Sender, o Options, emit func(result.Call)) (Stats, error) {
	if len(senders) == 0 {
		return Stats{}, errors.New("send the workload: there is no target")
	}
	if o.Progress == nil {
		o.Progress = new(Progress)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &run{
		senders: senders, o: o, emit: emit, cancel: cancel,
		inFlight: make([]atomic.Int64, len(senders)),
		calls:    make(chan result.Call),
		released: make(chan struct{}, 1),
	}
	source, built, finish := r.prefetch(ctx, requests)
	select {
	case <-built:
	case <-ctx.Done():
	}

	r.limit = newLimit(o.MaxConcurrency)
	usage, err := r.ready(ctx)
	r.idle = newIdling(o, r.start)
	defer r.idle.stop()
	if err != nil {
		cancel(err)
		finish()
		return Stats{Start: r.start}, err
	}
	var collector sync.WaitGroup
	collector.Go(r.collect)
	all := r.dispatch(ctx, source)
	r.sends.Wait()
	close(r.calls)
	collector.Wait()
	stats := Stats{
		Start: r.start, Sent: int(r.sent.Load()), Failed: r.failed, Unsent: int(r.unsent.Load()),
		Partial: !all || r.cancelled || r.stopped.Load(), Client: usage.Stop(),
	}
	stats.Client.Unsent = stats.Unsent
	stats.Skipped, stats.Skips = r.idle.stop()
	if stats.Partial {
		stats.Client.Partial = true
		stats.Client.StopNote = stopNote(ctx)
	}
	cancel(nil)
	finish()
	return stats, r.panicked()
}

func stopNote(ctx context.Context) string {
	if cause := context.Cause(ctx); cause != nil {
		return cause.Error()
	}
	return "requests were cancelled"
}

// prefetch pulls requests ahead of the dispatcher, so that building prompts
// delays no send. built is closed when the lead is reached, in number or in
// bytes, or the sequence ended; finish waits for the goroutine after ctx has
// ended.
func (r *run) prefetch(ctx context.Context, requests iter.Seq[workload.Request]) (source <-chan workload.Request, built <-chan struct{}, finish func()) {
	out := make(chan workload.Request, ahead)
	full := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(out)
		reached := sync.OnceFunc(func() { close(full) })
		defer reached()
		defer r.catch("build a request")
		for req := range requests {
			req = r.build(req)
			size := weight(req)
			for held := r.held.Load(); held > 0 && held+size > aheadBytes; held = r.held.Load() {
				reached()
				select {
				case <-r.released:
				case <-ctx.Done():
					return
				}
			}
			r.held.Add(size)
			select {
			case out <- req:
			case <-ctx.Done():
				return
			}
			if len(out) == cap(out) {
				reached()
			}
		}
	})
	return out, full, wg.Wait
}

// dispatch sends until the source is empty; false: it was stopped before.
func (r *run) dispatch(ctx context.Context, source <-chan workload.Request) bool {
	p := newPacer(r.start, r.o.Spin)
	defer p.close()
	if !r.begun(ctx, p) {
		return false
	}
	for sent := 0; ; sent++ {
		var req workload.Request
		var more bool
		select {
		case req, more = <-source:
		case <-ctx.Done():
			return false
		}
		if !more {
			return ctx.Err() == nil
		}
		r.release(req)
		if !p.wait(ctx, req.Due) {
			return false
		}
		freed, ok := r.limit.acquire(ctx)
		if !ok {
			return false
		}
		ready := max(req.Due, freed)
		if r.over(ready) && sent%max(1, r.o.Pass) == 0 {
			return ctx.Err() == nil
		}
		if r.o.Closed {
			req.Due = ready
		}
		r.first(ctx, req, ready)
	}
}

// weight is about how many bytes of text and images a request holds.
func weight(req workload.Request) int64 {
	n := len(req.Body) + len(req.Prompt) + len(req.System) + len(req.Fields) + 4*len(req.IDs)
	for _, m := range req.History {
		n += len(m.Content)
	}
	for _, list := range [][]string{req.Images, req.Documents} {
		for _, s := range list {
			n += len(s)
		}
	}
	return int64(n)
}

// release tells prefetch that a prompt left its lead.
func (r *run) release(req workload.Request) {
	r.held.Add(-weight(req))
	select {
	case r.released <- struct{}{}:
	default:
	}
}

// collect is the one goroutine that gives calls away.
func (r *run) collect() {
	for call := range r.calls {
		if r.o.Progress.end(&call); !call.OK() {
			r.failed++
		}
		r.cancelled = r.cancelled || call.Class == result.Cancelled
		r.give(call)
	}
}

func (r *run) give(call result.Call) {
	defer r.catch(fmt.Sprintf("keep the call of request %d", call.Index))
	if r.emit != nil {
		r.emit(call)
	}
}

func (r *run) panicked() error {
	if e := r.firstPanic.Load(); e != nil {
		return e
	}
	return nil
}
