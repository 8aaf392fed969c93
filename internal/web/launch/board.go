package launch

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
)

// board is what everybody sees of the launches. The zero board is not ready: see newBoard.
type board struct {
	atOnce int
	done   chan struct{} // closed when the server ends

	mu       sync.Mutex // guards what follows
	launches map[string]*Launch
	version  uint64
	changed  chan struct{} // closed at the next change
	readOnly error         // nil: this server runs the queue
	lock     *os.File      // of the queue; nil: another server has it
}

func newBoard(atOnce int) *board {
	return &board{atOnce: atOnce, done: make(chan struct{}), launches: map[string]*Launch{}, version: 1, changed: make(chan struct{})}
}

// List returns all launches: those that run, then those that wait in their order, then the
// others, of each what came last first.
func (b *board) List() []Launch {
	all := b.snapshot()
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
func (b *board) Get(id string) (Launch, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l, ok := b.launches[id]
	if !ok {
		return Launch{}, &NotFoundError{ID: id}
	}
	l = l.clone()
	if l.State == Queued {
		p := plan(b.active(), b.atOnce)
		l.Position, l.Waits = p.position[id], p.waits[id]
	}
	return *l, nil
}

// snapshot is every launch as it is now, with what it waits for.
func (b *board) snapshot() []Launch {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := plan(b.active(), b.atOnce)
	out := make([]Launch, 0, len(b.launches))
	for _, l := range b.launches {
		l = l.clone()
		l.Position, l.Waits = p.position[l.ID], p.waits[l.ID]
		out = append(out, *l)
	}
	return out
}

// active are the launches that run or wait, which nobody may change; b.mu is held.
func (b *board) active() (out []*Launch) {
	for _, l := range b.launches {
		if l.State == Running || l.State == Queued {
			out = append(out, l)
		}
	}
	return out
}

// current are the launches that run or wait, to be changed and put back.
func (b *board) current() []*Launch {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.active()
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
func (b *board) Version() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.version
}

// Wait returns the version as soon as it is another one than the given.
func (b *board) Wait(ctx context.Context, version uint64) (uint64, error) {
	for {
		b.mu.Lock()
		now, changed := b.version, b.changed
		b.mu.Unlock()
		if now != version {
			return now, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return now, context.Cause(ctx)
		case <-b.done:
			return now, errClosed
		}
	}
}

var errClosed = fmt.Errorf("the launches are closed, as the server ends: %w", os.ErrClosed)

// bump says that something has changed; b.mu is held.
func (b *board) bump() {
	b.version++
	close(b.changed)
	b.changed = make(chan struct{})
}

// put makes a launch what everybody sees, as it is now: the caller may go on changing it.
func (b *board) put(l *Launch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.launches[l.ID] = l.clone()
	b.bump()
}

func (b *board) setOwner(lock *os.File, why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if (b.readOnly == nil) != (why == nil) || b.lock != lock {
		b.bump()
	}
	b.lock, b.readOnly = lock, why
}

// release lets another server have the queue; this one changes nothing from then on.
func (b *board) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lock != nil {
		b.lock.Close() // it holds nothing that could be lost
		b.lock = nil
	}
	b.readOnly = errClosed
}

// ReadOnly says why this server only shows the launches; nil where it runs them.
func (b *board) ReadOnly() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.readOnly
}
