package launch

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"perflab/internal/durable"
	"perflab/internal/web/allow"
)

// Options are what a queue works with; the zero value works.
type Options struct {
	Program string       // perflab, which is started; "": this program
	Env     []string     // of what is started; nil: this process's own
	Allow   allow.List   // what launches may use
	Roots   []string     // directories whose files they may read besides those of Allow
	Results string       // where directories of studies and runs are made; "": each in that of its launch
	AtOnce  int          // launches that run together; 0: one
	Log     *slog.Logger // of what no caller can be told; nil: nobody is

	every      time.Duration // between looks at what runs; 0: defaultEvery
	forceAfter time.Duration // of a child that was told twice to end; 0: defaultForce
}

const (
	defaultEvery = 300 * time.Millisecond
	defaultForce = 10 * time.Second
	mostWaiting  = 500
	lockFile     = "queue.lock"
)

// Queue is the launches below a directory.
type Queue struct {
	dir  string
	work string // directory that launches run in
	o    Options

	acts     sync.Mutex          // held by who changes launches, so that files and memory go together
	children map[string]int      // supervisors that this process started and has not reaped, by launch
	started  map[string]int      // the attempts that this process started, by launch
	told     map[string]process  // what this process told children without a supervisor, by launch
	unsaved  map[string]struct{} // launches that are further than their file, which could not be written
	seen     map[string]stamp    // of another server's files, when they were last read

	mu       sync.Mutex // guards what follows
	launches map[string]*Launch
	version  uint64
	changed  chan struct{} // closed at the next change
	readOnly error         // nil: this server runs the queue
	lock     *os.File

	wake chan struct{} // size one: a wish to look at once is not lost, and two are one
	done chan struct{}

	closed sync.Once
	wait   sync.WaitGroup
}

// Open opens the queue in a directory, which is made where it does not exist, and goes on with
// what is there.
func Open(dir string, o Options) (*Queue, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open the launches: %w", err)
	}
	q := &Queue{dir: dir, o: o, children: map[string]int{}, started: map[string]int{}, told: map[string]process{}, unsaved: map[string]struct{}{}, seen: map[string]stamp{},
		launches: map[string]*Launch{}, version: 1, changed: make(chan struct{}), wake: make(chan struct{}, 1), done: make(chan struct{})}
	if err := q.fill(); err != nil {
		return nil, fmt.Errorf("open the launches: %w", err)
	}
	if err := durable.MkdirAll(dir); err != nil {
		return nil, fmt.Errorf("make the directory of launches: %w", err)
	}
	q.takeOver()
	if err := q.load(); err != nil {
		q.release()
		return nil, fmt.Errorf("read the launches: %w", err)
	}
	q.wait.Go(q.loop)
	return q, nil
}

// fill puts in what options leave out.
func (q *Queue) fill() (err error) {
	o := &q.o
	if o.Program == "" {
		if o.Program, err = os.Executable(); err != nil {
			return fmt.Errorf("find this program: %w", err)
		}
	}
	if o.Results != "" {
		if o.Results, err = filepath.Abs(o.Results); err != nil {
			return err
		}
	}
	if o.Env == nil {
		o.Env = os.Environ()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.AtOnce, o.every, o.forceAfter = cmp.Or(o.AtOnce, 1), cmp.Or(o.every, defaultEvery), cmp.Or(o.forceAfter, defaultForce)
	q.work, err = os.Getwd()
	return err
}

// takeOver makes the queue this server's own, where no other has it. Who may not write there
// shows it.
func (q *Queue) takeOver() {
	lock, err := os.OpenFile(filepath.Join(q.dir, lockFile), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		q.setOwner(nil, fmt.Errorf("the launches are only shown, as none can be written: %w", err))
		return
	}
	switch held, err := durable.Hold(lock); {
	case err != nil:
		lock.Close()
		q.setOwner(nil, fmt.Errorf("the launches are only shown, as they cannot be locked: %w", err))
	case !held:
		lock.Close()
		q.setOwner(nil, &ReadOnlyError{Dir: q.dir})
	default:
		q.setOwner(lock, nil)
	}
}

func (q *Queue) setOwner(lock *os.File, why error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if (q.readOnly == nil) != (why == nil) || q.lock != lock {
		q.bump()
	}
	q.lock, q.readOnly = lock, why
}

// release lets another server have the queue.
func (q *Queue) release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.lock != nil {
		q.lock.Close() // it holds nothing that could be lost
		q.lock = nil
	}
}

// Close ends the work of this server at the queue. What runs goes on, and what waits waits for
// the next server.
func (q *Queue) Close() {
	q.closed.Do(func() { close(q.done) })
	q.wait.Wait()
	q.release()
}

// ReadOnly says why this server only shows the launches; nil where it runs them.
func (q *Queue) ReadOnly() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.readOnly
}

// List returns all launches: those that run, then those that wait in their order, then the
// others, of each what came last first.
func (q *Queue) List() []Launch {
	all := q.snapshot()
	rank := map[State]int{Running: 0, Queued: 1}
	slices.SortFunc(all, func(a, b Launch) int {
		ra, rb := 2, 2
		if r, ok := rank[a.State]; ok {
			ra = r
		}
		if r, ok := rank[b.State]; ok {
			rb = r
		}
		if ra == 1 && rb == 1 {
			return cmp.Compare(a.Position, b.Position)
		}
		return cmp.Or(cmp.Compare(ra, rb), b.Queued.Compare(a.Queued), cmp.Compare(b.ID, a.ID))
	})
	return all
}

// Get returns one launch.
func (q *Queue) Get(id string) (Launch, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l, ok := q.launches[id]
	if !ok {
		return Launch{}, &NotFoundError{ID: id}
	}
	l = l.clone()
	if l.State == Queued {
		p := plan(q.active(), q.o.AtOnce)
		l.Position, l.Waits = p.position[id], p.waits[id]
	}
	return *l, nil
}

// snapshot is every launch as it is now, with what it waits for.
func (q *Queue) snapshot() []Launch {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := plan(q.active(), q.o.AtOnce)
	out := make([]Launch, 0, len(q.launches))
	for _, l := range q.launches {
		l = l.clone()
		l.Position, l.Waits = p.position[l.ID], p.waits[l.ID]
		out = append(out, *l)
	}
	return out
}

// active are the launches that run or wait, which nobody may change; q.mu is held.
func (q *Queue) active() (out []*Launch) {
	for _, l := range q.launches {
		if l.State == Running || l.State == Queued {
			out = append(out, l)
		}
	}
	return out
}

// current are the launches that run or wait, to be changed and put back.
func (q *Queue) current() []*Launch {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.active()
	for i := range all {
		all[i] = all[i].clone()
	}
	return all
}

// clone is a launch that shares nothing which is written to.
func (l *Launch) clone() *Launch {
	c := *l
	c.Args, c.Attempts, c.Flags = slices.Clone(l.Args), slices.Clone(l.Attempts), maps.Clone(l.Flags)
	for i := range c.Attempts {
		c.Attempts[i].Stops = slices.Clone(c.Attempts[i].Stops)
	}
	return &c
}

// Version counts the changes of launches that this server saw.
func (q *Queue) Version() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.version
}

// Wait returns the version as soon as it is another one than the given.
func (q *Queue) Wait(ctx context.Context, version uint64) (uint64, error) {
	for {
		q.mu.Lock()
		now, changed := q.version, q.changed
		q.mu.Unlock()
		if now != version {
			return now, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return now, context.Cause(ctx)
		case <-q.done:
			return now, errClosed
		}
	}
}

var errClosed = fmt.Errorf("the launches are closed, as the server ends: %w", os.ErrClosed)

// bump says that something has changed; q.mu is held.
func (q *Queue) bump() {
	q.version++
	close(q.changed)
	q.changed = make(chan struct{})
}

// put makes a launch what everybody sees, as it is now: the caller may go on changing it.
func (q *Queue) put(l *Launch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.launches[l.ID] = l.clone()
	q.bump()
}

// loop looks at what runs, and starts what may.
func (q *Queue) loop() {
	ticker := time.NewTicker(q.o.every)
	defer ticker.Stop()
	for {
		q.step()
		select {
		case <-ticker.C:
		case <-q.wake:
		case <-q.done:
			return
		}
	}
}

// soon has the loop look at once.
func (q *Queue) soon() {
	select {
	case q.wake <- struct{}{}:
	default: // it will
	}
}

// step is one look.
func (q *Queue) step() {
	q.acts.Lock()
	defer q.acts.Unlock()
	if q.ReadOnly() != nil {
		q.takeOver()
		if err := q.load(); err != nil {
			q.o.Log.Warn("read the launches", "error", err)
			return
		}
		if q.ReadOnly() != nil {
			return
		}
	}
	for _, l := range q.current() {
		if l.State == Running {
			q.observe(l)
		}
	}
	q.saveAgain()
	all := q.current()
	for _, id := range plan(all, q.o.AtOnce).ready {
		q.start(all[slices.IndexFunc(all, func(l *Launch) bool { return l.ID == id })])
	}
}
