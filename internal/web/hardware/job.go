package hardware

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Bounds of what is computed for readers of pages: a core, so that who measures on this machine
// has the others, and as many questions as a reader waits for.
const (
	mostKept    = 256
	mostWaiting = 32
	limit       = 2 * time.Minute // of one question
)

// errBusy says that too many questions wait.
var errBusy = errors.New("too many predictions wait for their turn: try again in a minute")

// job is a question that is computed, or was. value and err are there once done is closed.
type job struct {
	done  chan struct{}
	value any
	err   error
}

// over reports whether the job has ended.
func (j *job) over() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// jobs computes questions one after another, and keeps the answers.
type jobs struct {
	ctx  context.Context // ends with the server
	stop context.CancelCauseFunc
	wait sync.WaitGroup
	slot chan struct{} // has room for the one that is computed

	mu      sync.Mutex
	all     map[string]*job
	order   []string // the oldest first
	waiting int
	closed  bool
}

func newJobs() *jobs {
	j := &jobs{slot: make(chan struct{}, 1), all: map[string]*job{}}
	j.ctx, j.stop = context.WithCancelCause(context.Background())
	return j
}

// close ends what is computed, and waits for it.
func (j *jobs) close() {
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	j.stop(errors.New("the server ends"))
	j.wait.Wait()
}

// ask returns the job of a key, and begins it where there is none. A job that failed for want of
// time or room is begun again by who asks next.
func (j *jobs) ask(key string, do func(context.Context) (any, error)) *job {
	j.mu.Lock()
	defer j.mu.Unlock()
	if x, ok := j.all[key]; ok {
		return x
	}
	if j.closed || j.waiting >= mostWaiting {
		return ended(nil, errBusy)
	}
	x := &job{done: make(chan struct{})}
	j.all[key] = x
	j.order = append(j.order, key)
	if len(j.order) > mostKept {
		delete(j.all, j.order[0])
		j.order = j.order[1:]
	}
	j.waiting++
	j.wait.Go(func() { j.run(key, x, do) })
	return x
}

// beside does something that is no question, at once.
func (j *jobs) beside(do func(context.Context)) { j.wait.Go(func() { do(j.ctx) }) }

// run computes a job when it is its turn.
func (j *jobs) run(key string, x *job, do func(context.Context) (any, error)) {
	defer close(x.done)
	defer func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.waiting--
		if errors.Is(x.err, context.DeadlineExceeded) || errors.Is(x.err, errLate) {
			delete(j.all, key)
		}
	}()
	select {
	case j.slot <- struct{}{}:
		defer func() { <-j.slot }()
	case <-j.ctx.Done():
		x.err = context.Cause(j.ctx)
		return
	}
	ctx, cancel := context.WithTimeoutCause(j.ctx, limit, errLate)
	defer cancel()
	x.value, x.err = do(ctx)
}

// errLate ends a question that takes too long.
var errLate = errors.New("the prediction took longer than two minutes: ask for shorter requests or fewer GPUs")

func ended(value any, err error) *job {
	x := &job{done: make(chan struct{}), value: value, err: err}
	close(x.done)
	return x
}
