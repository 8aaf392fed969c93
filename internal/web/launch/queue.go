package launch

import (
	"cmp"
	"fmt"
	"log/slog"
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

// Queue is the launches below a directory. What everybody sees of them is its board.
type Queue struct {
	*board
	dir  folder
	make maker
	o    Options

	acts     sync.Mutex          // held by who changes launches, so that files and memory go together
	children map[string]int      // supervisors that this process started and has not reaped, by launch
	started  map[string]int      // the attempts that this process started, by launch
	told     map[string]process  // what this process told children without a supervisor, by launch
	unsaved  map[string]struct{} // launches that are further than their file, which could not be written
	seen     map[string]stamp    // of another server's files, when they were last read

	wake   chan struct{} // size one: a wish to look at once is not lost, and two are one
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
	work, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("open the launches: %w", err)
	}
	if o, err = o.filled(); err != nil {
		return nil, fmt.Errorf("open the launches: %w", err)
	}
	q := &Queue{
		board: newBoard(o.AtOnce), dir: folder(dir), make: maker{dir: folder(dir), work: work, o: o}, o: o, wake: make(chan struct{}, 1),
		children: map[string]int{}, started: map[string]int{}, told: map[string]process{}, unsaved: map[string]struct{}{}, seen: map[string]stamp{},
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

// filled are the options with what they leave out.
func (o Options) filled() (_ Options, err error) {
	if o.Program == "" {
		if o.Program, err = os.Executable(); err != nil {
			return o, fmt.Errorf("find this program: %w", err)
		}
	}
	if o.Results != "" {
		if o.Results, err = filepath.Abs(o.Results); err != nil {
			return o, err
		}
	}
	if o.Env == nil {
		o.Env = os.Environ()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.AtOnce, o.every, o.forceAfter = cmp.Or(o.AtOnce, 1), cmp.Or(o.every, defaultEvery), cmp.Or(o.forceAfter, defaultForce)
	return o, nil
}

// takeOver makes the queue this server's own, where no other has it. Who may not write there
// shows it.
func (q *Queue) takeOver() {
	lock, err := os.OpenFile(filepath.Join(string(q.dir), lockFile), os.O_CREATE|os.O_RDWR, 0o644)
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
		q.setOwner(nil, &ReadOnlyError{Dir: string(q.dir)})
	default:
		q.setOwner(lock, nil)
	}
}

// Close ends the work of this server at the queue. What runs goes on, and what waits waits for
// the next server.
func (q *Queue) Close() {
	q.closed.Do(func() { close(q.done) })
	q.wait.Wait()
	q.release()
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
