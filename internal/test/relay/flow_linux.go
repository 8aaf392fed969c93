package relay

import (
	"bytes"
	"container/heap"
	"errors"
	"io"
	"net"
	"time"
)

const (
	// readSize is the most that is read at once, and leastRead what it comes down to
	// at low rates, so that a read is some 10 ms of the link.
	readSize  = 64 << 10
	leastRead = 1448

	// held is how much a flow may have under way before its sender must wait: what
	// 100 ms of 40 MB/s are.
	held = 4 << 20

	// ahead is how much of a limited link's time may be taken before those who send must wait.
	ahead = 20 * time.Millisecond

	never = time.Duration(1<<63 - 1)
)

// pair is a connection and the one to the target that belongs to it.
type pair struct {
	client, target net.Conn // target is nil until it is there
	left           int      // flows that have not ended
	broken         bool
}

// flow is one way of a pair.
type flow struct {
	pair     *pair
	way      *way
	from, to *net.TCPConn
	pieces   []piece
	size     int           // bytes of the pieces
	last     time.Duration // when the last piece is due
	free     time.Duration // when the receiver was last waited for
	busy     bool          // somebody writes
}

// piece is what one read brought.
type piece struct {
	due  time.Duration
	data []byte
	end  error // nil: it goes on; io.EOF: the sender has no more; else it broke
}

// accept takes connections.
func (r *Relay) accept() {
	for {
		c, err := r.listener.Accept()
		if err != nil {
			return // closed; a listener of tests does not run out of files for long
		}
		p := &pair{client: c, left: 2}
		r.mu.Lock()
		r.counts.Connections++
		r.pairs[p] = true
		if r.cut || r.closed {
			r.reset(p)
		} else {
			r.wg.Go(func() { r.serve(p) })
		}
		r.mu.Unlock()
	}
}

// serve connects to the target and starts both ways.
func (r *Relay) serve(p *pair) {
	if !r.await(func() bool { return p.broken || !r.stalled }) {
		return
	}
	target, err := r.dial(r.ctx, "tcp", r.target)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		p.target = target
	}
	client, isClient := p.client.(*net.TCPConn)
	server, isServer := p.target.(*net.TCPConn)
	if err != nil || p.broken || !isClient || !isServer {
		p.broken = false // so that what has come since is closed too
		r.reset(p)
		return
	}
	for _, f := range []*flow{{pair: p, way: &r.up, from: client, to: server}, {pair: p, way: &r.down, from: server, to: client}} {
		r.wg.Go(func() { r.read(f) })
	}
}

// await waits until something is so; false: the relay is closed.
func (r *Relay) await(so func() bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.closed && !so() {
		r.changed.Wait()
	}
	return !r.closed
}

// reset breaks both connections of a pair, so that their ends see it.
func (r *Relay) reset(p *pair) {
	if p.broken {
		return
	}
	p.broken = true
	if r.pairs[p] {
		r.counts.Reset++
	}
	delete(r.pairs, p)
	for _, c := range []net.Conn{p.client, p.target} {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a connection that is gone needs none
		}
		if c != nil {
			c.Close()
		}
	}
	r.changed.Broadcast()
}

// read takes what a sender sends and queues it.
func (r *Relay) read(f *flow) {
	stamps := newReader(f.from)
	looked := r.now()
	b := make([]byte, readSize)
	for {
		size, ok := r.room(f)
		if !ok {
			return
		}
		n, age, err := stamps.read(b[:size])
		now := r.now()
		// Bytes came after the last look: a clock that was set meanwhile makes no others.
		at := max(now-age, looked)
		looked = now
		if n > 0 {
			r.put(f, piece{data: bytes.Clone(b[:n])}, at)
		}
		if err != nil {
			r.put(f, piece{end: err}, at)
			return
		}
	}
}

// room waits until more may be read, and says how much.
func (r *Relay) room(f *flow) (size int, ok bool) {
	for {
		if !r.await(func() bool { return f.pair.broken || !r.stalled && f.size < held }) {
			return 0, false
		}
		r.mu.Lock()
		broken, rate, wait := f.pair.broken, f.way.link.Rate, f.way.free-r.now()-ahead
		r.mu.Unlock()
		switch {
		case broken:
			return 0, false
		case rate == 0:
			return readSize, true
		case wait <= 0:
			return int(min(max(rate/100, leastRead), readSize)), true
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-r.ctx.Done():
			timer.Stop()
			return 0, false
		}
	}
}

// put queues a piece that came at an instant.
func (r *Relay) put(f *flow, p piece, at time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.pair.broken {
		return
	}
	w := f.way
	p.due = at + w.link.Delay
	if w.link.Rate > 0 {
		w.free = max(w.free, at) + time.Duration(float64(len(p.data))/float64(w.link.Rate)*float64(time.Second))
		p.due = w.free + w.link.Delay
	}
	if len(p.data) > 0 && w.link.Loss > 0 && w.random.Float64() < w.link.Loss {
		w.count.Lost++
		p.due += Again
	}
	p.due = max(p.due, f.last) // nothing overtakes
	f.last = p.due
	f.pieces = append(f.pieces, p)
	f.size += len(p.data)
	switch {
	case f.busy || len(f.pieces) > 1:
	case p.due <= r.now() && !r.stalled:
		r.send(f)
	default:
		r.enqueue(f)
	}
}

// enqueue has the pacer send the flow's next piece when it is due.
func (r *Relay) enqueue(f *flow) {
	heap.Push(&r.queue, f)
	if f.pieces[0].due < r.sleeping {
		r.bell.ring()
	}
}

// send sends the flow's next piece. The lock is held, but not while it
// writes. A receiver that takes not all of it is waited for by a goroutine.
func (r *Relay) send(f *flow) {
	p, w := f.pieces[0], f.way
	if f.pair.broken {
		return
	}
	f.busy = true
	if p.end == nil {
		late := max(0, r.now()-max(p.due, r.mended, f.free))
		w.count.Pieces++
		w.count.Bytes += int64(len(p.data))
		w.late += late
		w.count.LateMax = max(w.count.LateMax, late)
	}
	r.mu.Unlock()
	n, err := writeNow(f.to, p.data)
	r.mu.Lock()
	if err == nil && n < len(p.data) {
		r.wg.Go(func() {
			_, err := f.to.Write(p.data[n:])
			r.mu.Lock()
			defer r.mu.Unlock()
			f.free = r.now()
			r.sent(f, err)
		})
		return
	}
	r.sent(f, err)
}

// sent goes on after the flow's first piece.
func (r *Relay) sent(f *flow, err error) {
	p := f.pieces[0]
	f.busy = false
	f.pieces[0] = piece{}
	f.pieces = f.pieces[1:]
	full := f.size >= held
	f.size -= len(p.data)
	if full && f.size < held {
		r.changed.Broadcast()
	}
	switch {
	case f.pair.broken:
	case err != nil, p.end != nil && !errors.Is(p.end, io.EOF):
		r.reset(f.pair)
	case p.end != nil:
		r.finish(f)
	case len(f.pieces) > 0:
		r.enqueue(f)
	}
}

// finish tells the receiver that there is no more, and closes a pair both of whose ways have ended.
func (r *Relay) finish(f *flow) {
	if err := f.to.CloseWrite(); err != nil {
		r.reset(f.pair)
		return
	}
	if f.pair.left--; f.pair.left == 0 {
		f.pair.broken = true
		delete(r.pairs, f.pair)
		f.from.Close()
		f.to.Close()
	}
}

// queue orders flows by when their next piece is due.
type queue []*flow

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].pieces[0].due < q[j].pieces[0].due }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(*flow)) }
func (q *queue) Pop() any {
	old := *q
	f := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return f
}
