package store

import (
	"context"
	"database/sql"
	"sync"
	"time"
)

// notice wakes those who wait for a change.
type notice struct {
	mu      sync.Mutex
	version int64
	wake    chan struct{} // closed at the next change; nil: nobody waits
	closed  bool
	looked  time.Time // when somebody last looked whether another process made a change
}

// mine reports whether it is on the one who asks to look whether another process made a change:
// of all who wait one does, and its next turn comes before anybody has waited for a second.
func (n *notice) mine(now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if now.Sub(n.looked) < elsewhere/2 {
		return false
	}
	n.looked = now
	return true
}

func (n *notice) tell(version int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if version <= n.version {
		return
	}
	n.version = version
	if n.wake != nil {
		close(n.wake)
		n.wake = nil
	}
}

func (n *notice) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	if n.wake != nil {
		close(n.wake)
		n.wake = nil
	}
}

// next is the version, and what is closed when there is another; nil once the store is closed.
func (n *notice) next() (int64, <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return n.version, nil
	}
	if n.wake == nil {
		n.wake = make(chan struct{})
	}
	return n.version, n.wake
}

// Version is a number that grows with every change of what the index shows, whoever made it.
func (s *Store) Version(ctx context.Context) (version int64, err error) {
	err = s.d.rows(ctx, s.db, "SELECT value FROM meta WHERE name='version'", nil, func(r *sql.Rows) error { return r.Scan(&version) })
	return version, s.failed("read the index", err)
}

// elsewhere is how often Wait looks whether another process changed the index.
const elsewhere = time.Second

// Wait returns the version of the index as soon as it is above one, and at once where it is already:
// what an event stream waits on. Changes of this process are told when they are made, those of others
// within a second.
func (s *Store) Wait(ctx context.Context, above int64) (int64, error) {
	look := time.NewTicker(elsewhere)
	defer look.Stop()
	for {
		version, wake := s.changed.next()
		if version > above {
			return version, nil
		}
		if wake == nil {
			return version, sql.ErrConnDone
		}
		select {
		case <-ctx.Done():
			return version, context.Cause(ctx)
		case <-wake:
		case now := <-look.C:
			if !s.changed.mine(now) {
				continue
			}
			version, err := s.Version(ctx)
			if err != nil && ctx.Err() == nil {
				continue // a server of a database that is gone comes back
			}
			s.changed.tell(version)
		}
	}
}
