package load

import (
	"context"
	"fmt"
	"sync"
	"time"

	"perflab/internal/result"
	"perflab/internal/workload"
)

// tree is a session whose requests wait for each other as a tree, under way. It holds one
// place at the limit until the last of them has ended.
type tree struct {
	r      *run
	target int // of its first request

	mu      sync.Mutex
	session Session
	open    int                             // requests that are in flight or wait for their time
	built   map[int]func() workload.Request // by turn, those that are built ahead; nil once taken
}

// first sends the request with which a session begins, or one that stands alone.
func (r *run) first(ctx context.Context, req workload.Request, ready time.Duration) {
	target := r.home(req)
	if r.o.Begin == nil || req.Session == 0 {
		r.send(ctx, req, ready, target, nil)
		return
	}
	t := &tree{r: r, target: target, open: 1, built: map[int]func() workload.Request{}}
	var others []workload.Step
	func() {
		defer r.catch(fmt.Sprintf("begin the session of request %d", req.Index))
		t.session, others = r.o.Begin(req, ready)
	}()
	t.open += len(others)
	r.send(ctx, req, ready, target, t)
	t.ahead(req.Turn)
	for _, step := range others {
		r.sends.Go(func() { t.turn(ctx, step) })
	}
}

// home is the target of a session's first request, or of one that stands alone.
func (r *run) home(req workload.Request) int {
	if r.o.Home != nil && req.Session > 0 {
		if k := r.o.Home(req); k >= 0 {
			return k
		}
	}
	return r.target()
}

// follow starts what is due after a call that ended.
func (t *tree) follow(ctx context.Context, req workload.Request, call *result.Call) {
	due := t.after(req, call)
	for _, step := range due {
		t.r.sends.Go(func() { t.turn(ctx, step) })
	}
	t.done()
}

// after are the requests that are due after a call.
func (t *tree) after(req workload.Request, call *result.Call) (due []workload.Step) {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.r.catch(fmt.Sprintf("go on after request %d", req.Index))
	due, lost := t.session.Ended(req.Turn, call.End, call.Class == result.OK)
	if call.Class != result.Cancelled {
		t.r.unsent.Add(int64(lost))
	}
	t.open += len(due)
	return due
}

// done takes one request off those that are open, and gives the place back with the last.
func (t *tree) done() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open--; t.open == 0 {
		t.r.limit.release(t.r.start)
	}
}

// turn makes a later request of the session, and sends it when it is due.
func (t *tree) turn(ctx context.Context, step workload.Step) {
	r := t.r
	if r.idle == nil && r.over(step.Due) {
		t.done()
		return
	}
	due, waited := step.Due, true
	if r.idle != nil {
		if due, waited = r.idle.wait(ctx, due); waited && r.over(due) {
			t.done()
			return
		}
	}
	step.Due = due
	req, made := t.take(step)
	if !made || !waited || !r.wait(ctx, due) {
		r.stopped.Store(true)
		t.done()
		return
	}
	target := t.target
	if !r.o.Affinity {
		target = r.target()
	}
	r.send(ctx, req, step.Due, target, t)
	t.ahead(step.Turn)
}

// ahead builds what waits for a turn while that is in flight: a long prompt takes
// milliseconds, and may be due when the turn ends.
func (t *tree) ahead(turn int) {
	if t.session == nil { // Begin panicked
		return
	}
	t.r.sends.Go(func() {
		defer t.r.catch("build a request of a session ahead")
		for _, next := range t.session.Next(turn) {
			if build := t.request(next); build != nil {
				build()
			}
		}
	})
}

// request builds a turn's request, once for all who ask; nil: it was taken.
func (t *tree) request(turn int) func() workload.Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	build, ok := t.built[turn]
	if !ok {
		build = sync.OnceValue(func() workload.Request { return t.r.build(t.session.Request(turn)) })
		t.built[turn] = build
	}
	return build
}

// take gives the request of a step away, its body too.
func (t *tree) take(step workload.Step) (req workload.Request, made bool) {
	defer t.r.catch("build a request of a session")
	req = t.request(step.Turn)()
	req.Due = step.Due
	t.mu.Lock()
	defer t.mu.Unlock()
	t.built[step.Turn] = nil
	return req, true
}
