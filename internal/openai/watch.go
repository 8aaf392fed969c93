package openai

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"perflab/internal/result"
)

// drainTime is how long to wait for the end of the body after [DONE], and for
// all of a failed answer's.
const drainTime = time.Second

// Causes that end a request's context.
var (
	errFirst = errors.New("first token")
	errIdle  = errors.New("idle")
	errTotal = errors.New("total")
	errDrain = errors.New("drained")
)

// watch bounds a request's time. Each limit cancels the context with a cause
// of its own. A token only notes its instant: the timer looks at it when it
// fires, which is once a limit and not once a token.
type watch struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	cfg    *Config
	start  time.Time
	begun  time.Duration
	last   instant // of the last token
	ended  instant // at which only the end of the body was left

	mu    sync.Mutex // held from reading the limit to setting the timer by it
	timer *time.Timer
}

// instant is an offset that may not be known; kept one up, so that zero is not
// known.
type instant struct{ v atomic.Int64 }

func (i *instant) get() (at time.Duration, ok bool) {
	v := i.v.Load()
	return time.Duration(v - 1), v != 0
}

// set reports whether it was not known before.
func (i *instant) set(at time.Duration) (first bool) { return i.v.Swap(int64(at)+1) == 0 }

func (c *Client) watch(parent context.Context, start time.Time) *watch {
	w := &watch{cfg: &c.cfg, start: start, begun: time.Since(start)}
	w.ctx, w.cancel = context.WithCancelCause(parent)
	w.timer = time.AfterFunc(min(c.cfg.FirstTokenTimeout, c.cfg.TotalTimeout), w.fire)
	return w
}

// limit is the next instant at which the request has taken too long, and what
// that means.
func (w *watch) limit() (at time.Duration, cause error) {
	at, cause = w.begun+w.cfg.FirstTokenTimeout, errFirst
	if last, ok := w.last.get(); ok {
		at, cause = last+w.cfg.IdleTimeout, errIdle
	}
	if ended, ok := w.ended.get(); ok {
		at, cause = ended+drainTime, errDrain
	}
	if total := w.begun + w.cfg.TotalTimeout; total < at {
		at, cause = total, errTotal
	}
	return at, cause
}

func (w *watch) fire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, cause := w.limit()
	if left := at - time.Since(w.start); left > 0 {
		w.timer.Reset(left)
		return
	}
	w.cancel(cause)
}

// token starts the wait for the next token.
func (w *watch) token(at time.Duration) {
	if first := w.last.set(at); first {
		w.advance()
	}
}

// drain starts the wait for the end of a body whose last event came.
func (w *watch) drain(at time.Duration) {
	if _, ok := w.ended.get(); !ok {
		w.ended.set(at)
		w.advance()
	}
}

// advance sets the timer anew when the limit may have come nearer.
func (w *watch) advance() {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, _ := w.limit()
	w.timer.Reset(at - time.Since(w.start))
}

func (w *watch) stop() {
	w.timer.Stop()
	w.cancel(nil)
}

// classify classes a call by what ended its context.
func (w *watch) classify(call *result.Call) {
	n := call.Counted()
	switch cause := context.Cause(w.ctx); cause {
	case errFirst:
		call.Class = result.TimeoutFirstToken
		call.Error = fmt.Sprintf("no token within %v", w.cfg.FirstTokenTimeout)
	case errIdle:
		call.Class = result.TimeoutIdle
		call.Error = fmt.Sprintf("nothing for %v after %d tokens", w.cfg.IdleTimeout, n)
	case errTotal:
		call.Class = result.TimeoutTotal
		call.Error = fmt.Sprintf("not done within %v, after %d tokens", w.cfg.TotalTimeout, n)
	default:
		call.Class = result.Cancelled
		call.Error = fmt.Sprintf("cancelled after %d tokens: %v", n, cause)
	}
}
