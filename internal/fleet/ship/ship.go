// Package ship brings the calls of a load from the machine that sent it to the one that
// leads it, as calls: in batches that are compressed, numbered, kept on disk until they
// are acknowledged, and sent again until they are.
//
//	s, err := ship.New(link, ship.Options{Dir: "spool"})
//	stats, err := load.Run(ctx, requests, senders, o, func(c result.Call) { s.Add(&c) })
//	sent, err := s.Close(ctx) // all is with the leader, or err says what is not
//
//	r := ship.NewReceiver() // on the leader
//	calls, err := r.Take(seq, batch) // acknowledged when err is nil
//
//	l, err := ship.Look("spool")     // of a load that has ended, where not all was taken
//	batch, err := l.Read(l.Numbers()[0])
//	calls, err := ship.Calls(l.Numbers()[0], batch)
//
// Invariants: Add waits for no disk and no network. Every call that was added comes out
// of the Receiver once, its JSON byte for byte the same, in the order of Add; or it lies in
// the spool, where Look finds it, and Close says so; or neither disk nor memory had
// room for it, and Close says that. A batch that comes twice, late or before others
// does no harm; the number of one that will not come any more is told on the other side.
// What a Receiver takes of memory is bounded, whatever the bytes that it is given.
//
// A process that is killed loses what was added in the last moments (Options.Every) and
// what only memory had room for. Nothing is synced while a load goes on, so that a power
// failure loses what the kernel had not yet written; what is lost leaves a gap that the
// Receiver tells.
//
// Deliberately absent: who carries batches (a Link does), percentiles, and any thought of
// what the calls mean.
package ship

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"perflab/internal/result"
)

// Link carries batches to the leader.
type Link interface {
	// Send returns nil once the leader has the batch. After any error it is called again
	// with the same batch, also where that did arrive. It ends soon after ctx, and keeps
	// no part of the batch.
	Send(ctx context.Context, seq uint64, batch []byte) error
}

// Options say how calls are shipped. The zero values of all but Dir are useful.
type Options struct {
	Dir        string        // the spool's own directory; it is made where there is none
	Calls      int           // most calls of a batch; 0: 1,024
	Every      time.Duration // how long a call waits at most for a batch to fill; 0: 250 ms
	MostSpool  int64         // bytes of the spool on disk; 0: 4 GiB
	MostMemory int64         // bytes of calls that wait for room on the disk; 0: 64 MiB
	Timeout    time.Duration // how long the leader may take to answer before a batch is sent again; 0: 15 s
}

// Validate says what cannot be used.
func (o Options) Validate() error {
	switch {
	case o.Dir == "":
		return errors.New("a spool needs a directory")
	case o.Calls < 0 || o.Calls > mostCalls:
		return fmt.Errorf("%d calls of a batch: use 1 to %d", o.Calls, mostCalls)
	case o.Every < 0 || o.Timeout < 0 || o.MostSpool < 0 || o.MostMemory < 0:
		return errors.New("times and sizes of a spool must not be negative")
	}
	return nil
}

func (o Options) filled() Options {
	o.Calls = cmp.Or(o.Calls, 1024)
	o.Every = cmp.Or(o.Every, 250*time.Millisecond)
	o.MostSpool = cmp.Or(o.MostSpool, 4<<30)
	o.MostMemory = cmp.Or(o.MostMemory, 64<<20)
	o.Timeout = cmp.Or(o.Timeout, 15*time.Second)
	return o
}

// Sent is how far the calls have come.
type Sent struct {
	Calls   int    `json:"calls"`                   // the leader has them
	Batches uint64 `json:"batches"`                 // made so far, numbered from 1
	Bytes   int64  `json:"sent_bytes"`              // of the batches that the leader has
	Again   int    `json:"sent_again,omitzero"`     // attempts that failed, or that nobody acknowledged
	Waiting int    `json:"waiting_calls,omitzero"`  // the leader does not have them yet
	Lost    int    `json:"lost_calls,omitzero"`     // nobody has them
	Why     string `json:"lost_reason,omitempty"`   // of the first that was lost
	Failing string `json:"link_failing,omitempty"`  // why the last attempt failed; "" where it did not
	Disk    string `json:"spool_failing,omitempty"` // why the disk did not take a batch; "" where it took all
}

// LeftError says which calls did not reach the leader.
type LeftError struct {
	Sent Sent
	Dir  string // the spool, where it has those that wait
}

func (e *LeftError) Error() string {
	var parts []string
	if n := e.Sent.Waiting; n > 0 {
		why := cmp.Or(e.Sent.Failing, "time was up")
		parts = append(parts, fmt.Sprintf("%d calls did not reach the leader and lie in %s: %s", n, e.Dir, why))
	}
	if n := e.Sent.Lost; n > 0 {
		parts = append(parts, fmt.Sprintf("%d calls are lost: %s", n, e.Sent.Why))
	}
	return strings.Join(parts, "; ")
}

// Shipper takes the calls of one load.
type Shipper struct {
	o     Options
	link  Link
	spool *spool

	filled  chan struct{} // enough calls wait for a batch; of one token
	queued  chan struct{} // a batch is in the queue; of one token
	closing chan struct{} // no call comes any more
	written chan struct{} // nor does a batch
	work    sync.WaitGroup
	cancel  context.CancelCauseFunc // of the sending

	mu      sync.Mutex // of what follows; nobody holds it while a disk or a network works
	pending []result.Call
	spare   []result.Call // what pending was before
	held    int64         // bytes in memory, of calls that are in no batch and of batches that are on no disk
	queue   []parcel      // batches that the leader does not have, in their order
	sent    Sent
	closed  bool
}

// parcel is a batch on its way.
type parcel struct {
	seq   uint64
	calls int
	at    *place // in the spool; nil: in memory
	data  []byte
}

// New starts to ship over a link. A spool that still has calls of an earlier load is not
// touched: the error is a *LeftoverError.
func New(link Link, o Options) (*Shipper, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.filled()
	sp, err := openSpool(o.Dir, o.MostSpool)
	if err != nil {
		return nil, err
	}
	left, err := sp.scan(sp.acknowledged())
	if err != nil || len(left) > 0 {
		sp.close()
		return nil, cmp.Or(err, error(&LeftoverError{Dir: o.Dir, Calls: count(left)}))
	}
	if err := sp.reset(); err != nil {
		sp.close()
		return nil, fmt.Errorf("empty the spool %s: %w", o.Dir, err)
	}
	return newShipper(link, o, sp).start(), nil
}

// start lets a load's calls come.
func (s *Shipper) start() *Shipper {
	ctx, cancel := context.WithCancelCause(context.Background())
	s.cancel = cancel
	s.work.Go(s.write)
	s.work.Go(func() { s.send(ctx) })
	return s
}

func newShipper(link Link, o Options, sp *spool) *Shipper {
	return &Shipper{
		o: o, link: link, spool: sp,
		filled: make(chan struct{}, 1), queued: make(chan struct{}, 1),
		closing: make(chan struct{}), written: make(chan struct{}),
	}
}

// Add takes a call that has ended. It keeps what the call refers to, which may not change
// any more.
func (s *Shipper) Add(c *result.Call) {
	w := weight(c)
	s.mu.Lock()
	switch {
	case s.closed:
		s.lose(1, "they came after the end of the load")
	case s.held+w > s.o.MostMemory:
		s.lose(1, fmt.Sprintf("%d MiB of memory are full of calls that the disk does not take: %s", s.o.MostMemory>>20, cmp.Or(s.sent.Disk, "it is too slow")))
	default:
		s.held += w
		s.pending = append(s.pending, *c)
		s.sent.Waiting++
	}
	full := len(s.pending) >= s.o.Calls
	s.mu.Unlock()
	if full {
		tell(s.filled)
	}
}

// lose counts calls that nobody has; mu is held.
func (s *Shipper) lose(n int, why string) {
	s.sent.Lost += n
	s.sent.Why = cmp.Or(s.sent.Why, why)
}

// Sent returns how far the calls have come.
func (s *Shipper) Sent() Sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent
}

// Close sends what is left until ctx ends, and returns where all of it is. With a nil error
// the leader has all and the spool is gone; else the error is a *LeftError, and the
// spool has what waits. It is called once.
func (s *Shipper) Close(ctx context.Context) (Sent, error) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	close(s.closing)
	stop := context.AfterFunc(ctx, func() { s.cancel(context.Cause(ctx)) })
	s.work.Wait()
	stop()
	s.cancel(nil)
	return s.settle()
}

// settle ends the spool, with all in it that the leader does not have.
func (s *Shipper) settle() (Sent, error) {
	for i, p := range s.queue {
		if p.at != nil || p.calls == 0 {
			continue
		}
		if at, err := s.spool.append(p.data); err == nil {
			s.queue[i].at = at
		} else {
			s.sent.Waiting -= p.calls
			s.lose(p.calls, "memory alone had room for them when the sending ended: "+err.Error())
		}
	}
	err := s.spool.close()
	if len(s.queue) == 0 {
		err = errors.Join(err, s.spool.remove())
	}
	if s.sent.Waiting > 0 || s.sent.Lost > 0 {
		return s.sent, &LeftError{Sent: s.sent, Dir: s.o.Dir}
	}
	if err != nil {
		return s.sent, fmt.Errorf("end the spool %s: %w", s.o.Dir, err)
	}
	return s.sent, nil
}

// tell leaves word in a channel of one token.
func tell(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// weight is about how many bytes of memory a call takes.
func weight(c *result.Call) int64 {
	const bare, each = 640, 16
	lists := len(c.Chunks) + len(c.Empty) + len(c.Late)
	return int64(bare + each*lists + len(c.Text) + len(c.Error))
}
