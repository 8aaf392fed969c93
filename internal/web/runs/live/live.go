// Package live reads a run that is under way as it grows, for those who watch it: how many calls have
// ended, how they went, how fast tokens come, and what the readings beside them say.
//
//	w := live.NewWatch()
//	now, err := w.Look("perflab-out/run-1.tmp")
//	figures := w.Figures("perflab-out/run-1.tmp")
//
// Invariants: each byte of a file is read once, whoever watches, and at most a bounded part of it at
// one look: of a run that was long before somebody came, the first looks say that they are behind. All
// that is kept of a run is bounded. Figures of a run under way are estimates: the report has those that
// count.
//
// Deliberately absent: pages, and what is made of a run at its end.
package live

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"perflab/internal/durable"
	"perflab/internal/result"
	"perflab/internal/rundir"
)

// Now is how far a run has come.
type Now struct {
	Planned   int // 0: time decides how many
	Done      int // failed ones included
	Failed    int
	Tokens    int
	Elapsed   time.Duration
	Rate      float64 // calls that ended per second, of late; NaN: not known yet
	TokenRate float64
	TTFT50    float64 // ms; NaN: none
	TTFT99    float64
	TPOT50    float64
	TPOT99    float64
	Errors    []Count // of failed calls, the most frequent first
	LastError string
	Running   float64 // requests in the engine, by its last reading; NaN: not told
	Waiting   float64
	Behind    float64 // share of the calls that is still to be read; 0: none
	Ended     bool    // nobody is at work on it
	Version   int     // grows when something was read
}

// Count is how many calls failed in one way.
type Count struct {
	Class string
	Calls int
}

// Watch looks at runs, each of which is read once for all who ask. The zero value is not ready.
type Watch struct {
	mu   sync.Mutex
	runs map[string]*run
}

// NewWatch makes a watch of no run yet.
func NewWatch() *Watch { return &Watch{runs: map[string]*run{}} }

const (
	mostRuns = 64          // that are kept
	idle     = time.Minute // after which one that nobody looks at is forgotten
	fresh    = 900 * time.Millisecond
	mostRead = 16 << 20 // bytes of a file at one look
	mostLine = 64 << 20 // of a line: a longer one is no call
)

// run is what is kept of one.
type run struct {
	mu     sync.Mutex
	dir    string
	looked time.Time
	used   time.Time
	header result.Header
	known  bool // header
	files  []*tail
	state
	now Now
	err error
}

// tail is a file that grows.
type tail struct {
	name    string
	at      int64 // where the next line begins
	size    int64
	take    func(line []byte) // of one line, without its end
	missing bool
}

// Look reads what is new of a run, unless somebody did a moment ago. dir is the directory as it is
// called while the run is under way, "" where none is known. An error that is fs.ErrNotExist means that
// it is under way no more.
func (w *Watch) Look(dir string) (Now, error) {
	r := w.of(dir)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.looked.IsZero() && time.Since(r.looked) < fresh {
		return r.now, r.err
	}
	r.err = r.read()
	r.looked = time.Now()
	if r.err == nil {
		r.now = r.sum(time.Now())
	}
	return r.now, r.err
}

// of is a run of the watch, which forgets those that nobody looks at.
func (w *Watch) of(dir string) *run {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	r := w.runs[dir]
	if r == nil {
		r = newRun(dir)
		w.runs[dir] = r
	}
	r.used = now
	for name, other := range w.runs {
		if other != r && (now.Sub(other.used) > idle || len(w.runs) > mostRuns) {
			delete(w.runs, name)
		}
	}
	return r
}

func newRun(dir string) *run {
	nan := math.NaN()
	r := &run{dir: dir, now: Now{Rate: nan, TokenRate: nan, TTFT50: nan, TTFT99: nan, TPOT50: nan, TPOT99: nan, Running: nan, Waiting: nan}}
	r.state.errors = map[string]int{}
	r.files = []*tail{
		{name: rundir.CallsFile, take: r.call}, {name: rundir.UncountedFile, take: r.call}, {name: rundir.TelemetryFile, take: r.reading},
	}
	return r
}

// read reads what is new.
func (r *run) read() error {
	if !r.known {
		gone := &fs.PathError{Op: "follow", Path: r.dir, Err: fs.ErrNotExist}
		if r.dir == "" {
			return gone
		}
		h, err := rundir.ReadHeader(r.dir)
		switch {
		case err != nil && !rundir.IsRun(r.dir): // the index has not seen yet that it got its last name
			return gone
		case err != nil:
			return err
		}
		r.header, r.known = h, true
	}
	root, err := os.OpenRoot(r.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, t := range r.files {
		if err := t.read(root); err != nil {
			return fmt.Errorf("follow %s: %w", filepath.Join(r.dir, t.name), err)
		}
	}
	return nil
}

// read takes the whole lines that are new, up to a bound.
func (t *tail) read(root *os.Root) error {
	f, err := root.Open(t.name)
	if errors.Is(err, fs.ErrNotExist) {
		t.missing = true
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	t.missing = false
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if t.size = info.Size(); t.size < t.at { // it was written anew
		t.at = t.size
	}
	for most := int64(mostRead); ; most *= 2 {
		b := make([]byte, min(t.size-t.at, most))
		n, err := f.ReadAt(b, t.at)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		end := bytes.LastIndexByte(b[:n], '\n') + 1
		for line := range bytes.Lines(b[:end]) {
			t.take(bytes.TrimRight(line, "\r\n"))
		}
		all := int64(n) == t.size-t.at
		t.at += int64(end)
		switch {
		case end > 0 || all: // the rest of a line is still to come
			return nil
		case most >= mostLine:
			t.at += int64(n)
			return nil
		}
	}
}

// sum says how far the run has come.
func (r *run) sum(at time.Time) Now {
	n := Now{Planned: r.header.Requests, Done: r.done, Failed: r.failed, Tokens: r.tokens, LastError: r.lastError, Version: r.version}
	n.Elapsed = max(r.lastEnd, at.Sub(r.header.Started))
	if n.Elapsed > r.lastEnd+maxSkew { // another machine's clock, or a run that was left
		n.Elapsed = r.lastEnd
	}
	n.Rate, n.TokenRate = r.rates(n.Elapsed)
	n.TTFT50, n.TTFT99 = quantiles(&r.ttft)
	n.TPOT50, n.TPOT99 = quantiles(&r.tpot)
	n.Running, n.Waiting = r.queue()
	for class, calls := range r.errors {
		n.Errors = append(n.Errors, Count{class, calls})
	}
	slices.SortFunc(n.Errors, func(a, b Count) int {
		if a.Calls != b.Calls {
			return b.Calls - a.Calls
		}
		return bytes.Compare([]byte(a.Class), []byte(b.Class))
	})
	if calls := r.files[0]; calls.size > 0 && calls.size-calls.at > mostLine/64 {
		n.Behind = float64(calls.size-calls.at) / float64(calls.size)
	}
	n.Ended = !durable.Held(filepath.Join(r.dir, rundir.CallsFile))
	return n
}

// maxSkew is how long a run may be silent, before its clock is thought to be another one.
const maxSkew = 24 * time.Hour
