package load

import (
	"context"
	"sync"
	"time"
)

// idling keeps a load from leaving all servers idle for longer than it may: then all requests of sessions that wait for
// their time come earlier by the same span, so that the next one is due at once. Their order and the time
// between them stay.
type idling struct {
	most, until time.Duration // until: when the load ends; 0: it does not by itself
	spin        time.Duration // before a due instant a wait ends, and leaves the rest to the pacer
	now         func() time.Duration

	mu       sync.Mutex
	inFlight int
	since    time.Duration // since when nothing is in flight
	waiting  map[*waiter]struct{}
	timer    *time.Timer
	end      *time.Timer   // of the load
	skipped  time.Duration // in all
	times    int
}

// waiter is a request that waits for its time.
type waiter struct {
	due  time.Duration
	wake chan struct{} // due has changed
}

// newIdling is nil where nothing bounds idle times.
func newIdling(o Options, start time.Time) *idling {
	if o.MaxIdle == 0 {
		return nil
	}
	i := &idling{most: o.MaxIdle, until: o.Until, spin: o.Spin, now: func() time.Duration { return time.Since(start) }, waiting: map[*waiter]struct{}{}}
	i.timer = time.AfterFunc(o.MaxIdle, i.look)
	if o.Until > 0 {
		i.end = time.AfterFunc(o.Until-i.now(), i.look)
	}
	return i
}

// sent and ended tell what is in flight.
func (i *idling) sent() {
	if i == nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.inFlight++
	i.timer.Stop()
}

func (i *idling) ended() {
	if i == nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.inFlight--; i.inFlight == 0 {
		i.since = i.now()
		i.timer.Reset(i.most)
	}
}

// look brings the requests that wait forward, where nothing was in flight for too long.
func (i *idling) look() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.bring()
}

func (i *idling) bring() {
	now := i.now()
	over := i.until > 0 && now >= i.until
	if len(i.waiting) == 0 || !over && (i.inFlight > 0 || now-i.since < i.most) {
		return
	}
	next := time.Duration(1<<63 - 1)
	for w := range i.waiting {
		next = min(next, w.due)
	}
	by := next - now
	if by <= 0 && !over {
		return
	}
	if by > 0 && !over {
		i.skipped, i.times = i.skipped+by, i.times+1
	}
	for w := range i.waiting {
		if w.due -= by; over {
			w.due = now
		}
		close(w.wake)
		w.wake = make(chan struct{})
	}
}

// wait returns shortly before a request is due, with that instant, which may be earlier than it was; false: ctx ended before.
func (i *idling) wait(ctx context.Context, due time.Duration) (time.Duration, bool) {
	w := &waiter{due: due, wake: make(chan struct{})}
	i.mu.Lock()
	i.waiting[w] = struct{}{}
	wake := w.wake
	i.bring()
	due = w.due
	i.mu.Unlock()
	defer func() {
		i.mu.Lock()
		delete(i.waiting, w)
		i.mu.Unlock()
	}()
	for {
		left := due - i.now() - i.spin
		if left <= 0 {
			return due, ctx.Err() == nil
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
			return due, true
		case <-ctx.Done():
			timer.Stop()
			return due, false
		case <-wake:
			timer.Stop()
		}
		i.mu.Lock()
		due, wake = w.due, w.wake
		i.mu.Unlock()
	}
}

// stop ends the looking.
func (i *idling) stop() (skipped time.Duration, times int) {
	if i == nil {
		return 0, 0
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.timer.Stop()
	if i.end != nil {
		i.end.Stop()
	}
	return i.skipped, i.times
}
