package relay

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"perflab/internal/stat"
)

// Link is one way of a relay.
type Link struct {
	Delay time.Duration // of each byte
	Rate  int64         // bytes a second of all connections together; 0: as fast as it goes

	// Loss is the share of reads, of 64 KiB at most, whose bytes are lost: they
	// and what is behind them on the connection come later by Again, as
	// after TCP has sent them a second time.
	Loss float64
}

// Again is how long it takes TCP to send again what was lost, at least.
const Again = 200 * time.Millisecond

// Options say what a relay does to what it brings.
type Options struct {
	Up   Link   // from those who connect to the target
	Down Link   // and back
	Seed uint64 // of what is lost

	// Dial connects to the target; nil: from this process.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// check refuses what cannot be.
func (l Link) check() error {
	if l.Delay < 0 || l.Rate < 0 || l.Loss < 0 || l.Loss >= 1 {
		return fmt.Errorf("a link with %s of delay, %d bytes a second and a loss of %g: neither can be negative, and a loss is below 1", l.Delay, l.Rate, l.Loss)
	}
	return nil
}

// Relay brings connections to a target.
type Relay struct {
	listener net.Listener
	target   string
	dial     func(ctx context.Context, network, address string) (net.Conn, error)
	base     time.Time // of all instants
	ctx      context.Context
	cancel   context.CancelFunc
	bell     *bell
	wg       sync.WaitGroup

	mu       sync.Mutex
	changed  *sync.Cond // the relay was stalled, mended or closed, or a queue has room
	up, down way
	queue    queue // flows that have something to send, by when it is due
	pairs    map[*pair]bool
	counts   Stats
	stalled  bool
	cut      bool
	cuts     int           // so that the end of one does not mend the next
	mended   time.Duration // when a stall ended last
	sleeping time.Duration // until when the pacer sleeps
	closed   bool
}

// way is one direction of all connections.
type way struct {
	link   Link
	free   time.Duration // when the last byte so far has left, at the link's rate
	random *rand.Rand
	count  Way
	late   time.Duration // summed
}

// Listen relays what connects to the address.
func Listen(address, target string, o Options) (*Relay, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for a relay: %w", err)
	}
	return Serve(l, target, o)
}

// Serve relays what connects to a listener, which it closes.
func Serve(l net.Listener, target string, o Options) (*Relay, error) {
	b, err := newBell()
	if err := errors.Join(err, o.Up.check(), o.Down.check()); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	r := &Relay{
		listener: l, target: target, dial: o.Dial, base: time.Now(), bell: b, pairs: map[*pair]bool{},
		up:   way{link: o.Up, random: stat.Stream(o.Seed, "relay up")},
		down: way{link: o.Down, random: stat.Stream(o.Seed, "relay down")},
	}
	if r.dial == nil {
		r.dial = new(net.Dialer).DialContext
	}
	r.changed = sync.NewCond(&r.mu)
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.wg.Go(r.pace)
	r.wg.Go(r.accept)
	return r, nil
}

// Addr is where the relay listens.
func (r *Relay) Addr() string { return r.listener.Addr().String() }

// Set changes both ways for what comes from now on. What is under way stays as
// it was, and nothing overtakes it.
func (r *Relay) Set(up, down Link) error {
	if err := errors.Join(up.check(), down.check()); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.up.link, r.down.link = up, down
	r.up.free, r.down.free = 0, 0
	r.changed.Broadcast()
	return nil
}

// Cut resets all connections, and those that come, for so long; 0: until Mend.
func (r *Relay) Cut(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = true
	r.cuts++
	for p := range r.pairs {
		r.reset(p)
	}
	if this := r.cuts; d > 0 {
		time.AfterFunc(d, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.cut = r.cut && r.cuts != this
		})
	}
}

// Stall holds everything back until Mend, and tells nobody: connections stay
// open, new ones are taken, and nothing comes over them.
func (r *Relay) Stall() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stalled = true
}

// Mend undoes Cut and Stall.
func (r *Relay) Mend() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stalled {
		r.mended = r.now()
	}
	r.stalled, r.cut = false, false
	r.changed.Broadcast()
	r.bell.ring()
}

// Close resets all connections and ends the relay.
func (r *Relay) Close() error {
	r.mu.Lock()
	twice := r.closed
	r.closed = true
	for p := range r.pairs {
		r.reset(p)
	}
	r.changed.Broadcast()
	r.bell.ring()
	r.mu.Unlock()
	if twice {
		return nil
	}
	r.cancel()
	err := r.listener.Close()
	r.wg.Wait()
	r.bell.close()
	if err != nil {
		return fmt.Errorf("close a relay: %w", err)
	}
	return nil
}

// Stats are what a relay has done so far.
type Stats struct {
	Connections int // taken
	Open        int
	Reset       int // by a cut, as they came or in their midst, or since an end was not to be reached
	Up, Down    Way
}

// Way is what went one way.
type Way struct {
	Bytes  int64
	Pieces int // that the bytes came in
	Lost   int // pieces that came by Again later

	// The relay's own lateness: when a piece was sent, less when it was due. A
	// stall is none, nor is a receiver that takes nothing.
	LateMean, LateMax time.Duration
}

// Stats says what the relay has done so far.
func (r *Relay) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.counts
	s.Open, s.Up, s.Down = len(r.pairs), r.up.counted(), r.down.counted()
	return s
}

func (w *way) counted() Way {
	c := w.count
	if c.Pieces > 0 {
		c.LateMean = w.late / time.Duration(c.Pieces)
	}
	return c
}

func (r *Relay) now() time.Duration { return time.Since(r.base) }

// pace sends what is due, each when it is.
func (r *Relay) pace() {
	wait, done := r.bell.waiter(r.base)
	defer done()
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.closed {
		next := never
		if len(r.queue) > 0 && !r.stalled {
			f := r.queue[0]
			if next = f.pieces[0].due; next <= r.now() {
				heap.Pop(&r.queue)
				r.send(f)
				continue
			}
		}
		r.sleeping = next
		r.mu.Unlock()
		wait(next)
		r.mu.Lock()
		r.sleeping = 0
	}
}
