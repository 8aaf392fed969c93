package wire

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// loop reads many sockets in one goroutine, which blocks in epoll_wait.
//
// Edge-triggered: a socket is reported once for what arrived, and is read until
// a read comes short. Two system calls an event, as in a program in C; waiting
// in Go's own poller for the epoll descriptor instead makes it four. What
// blocks holds a processor of Go's until the runtime takes it back, within 10
// ms: a process that has only one must not use it (see enoughProcessors).
//
// A socket gets one full read a turn: one whose server never stops sending
// holds up neither the others nor those who give its exchange up.
//
// While an exchange is under way a look at the sockets lasts no longer than
// beat, so that it is known of each how long ago it was empty: what a look did
// not report was empty when the look began. That bounds how early the bytes of
// a read can have come, whatever kept this thread from its processor.
type loop struct {
	ep    int
	wake  int // eventfd that ends a look
	timer int // timerfd that ends one every beat
	buf   []byte
	msg   message
	free  bool // a call ended: its goroutine should run before the next look

	clock               // when the last look returned, or later
	empty time.Duration // when the sockets that no look reported since were empty; an offset like clock.at
	again []*conn       // that were not read to their end in this turn
	spare []*conn       // backs the next turn's

	idle int // beats since an exchange was under way

	busy    atomic.Int32 // exchanges under way
	asleep  atomic.Bool  // the beats have stopped, since nothing was under way
	stopped atomic.Bool

	mu    sync.Mutex
	conns []*conn // by slot; nil: free
	slots []int32 // that are free
}

const (
	// loopBuffer is the most that one read brings, which bounds a socket's turn:
	// some 250 events, a quarter of a millisecond of reading.
	loopBuffer = 64 << 10

	loopBatch = 64 // events between two chances for other goroutines
	wakeSlot  = -1
	beatSlot  = -2

	// beat is how long a look lasts at most while an exchange is under way. A
	// server that sends many tokens in one packet is told from a late wake-up
	// within two beats, and 2,000 looks a second take 1 % of a processor at most.
	// A timer of its own costs less than a limit on every look.
	beat = 500 * time.Microsecond

	// linger is how many beats the loop goes on after the last exchange, so that
	// the next one of a client that sends one at a time need not wake it.
	linger = 2000
)

// clock is one instant on both clocks.
type clock struct {
	epoch time.Time     // of the offsets
	at    time.Duration // monotonic, since epoch
	wall  int64         // nanoseconds since 1970
}

// tick sets the clock to now.
func (c *clock) tick() {
	now := time.Now()
	c.at, c.wall = now.Sub(c.epoch), now.UnixNano()
}

func newLoop() (*loop, error) {
	l := &loop{ep: -1, wake: -1, timer: -1, buf: make([]byte, loopBuffer), clock: clock{epoch: time.Now()}}
	l.tick()
	if err := l.prepare(); err != nil {
		l.release()
		return nil, err
	}
	return l, nil
}

// prepare opens what the loop waits for beside sockets.
func (l *loop) prepare() (err error) {
	if l.ep, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	if l.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return os.NewSyscallError("eventfd", err)
	}
	if l.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK); err != nil {
		return os.NewSyscallError("timerfd_create", err)
	}
	every := unix.NsecToTimespec(int64(beat))
	if err := unix.TimerfdSettime(l.timer, 0, &unix.ItimerSpec{Interval: every, Value: every}, nil); err != nil {
		return os.NewSyscallError("timerfd_settime", err)
	}
	for _, fd := range [][2]int{{l.wake, wakeSlot}, {l.timer, beatSlot}} {
		event := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: int32(fd[1])}
		if err := unix.EpollCtl(l.ep, unix.EPOLL_CTL_ADD, fd[0], &event); err != nil {
			return os.NewSyscallError("epoll_ctl", err)
		}
	}
	return nil
}

func (l *loop) release() {
	for _, fd := range []int{l.ep, l.wake, l.timer} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// stop ends run.
func (l *loop) stop() {
	l.stopped.Store(true)
	l.rouse()
}

// rouse ends a look.
func (l *loop) rouse() {
	unix.Write(l.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // an eventfd takes it
}

// join counts an exchange that begins.
func (l *loop) join() {
	if l.busy.Add(1) == 1 && l.asleep.Load() {
		l.rouse()
	}
}

// leave counts one that ended.
func (l *loop) leave() { l.busy.Add(-1) }

// run reads until the loop is stopped.
func (l *loop) run() {
	defer l.release()
	var events [loopBatch]unix.EpollEvent
	var batch [loopBatch]*conn
	for {
		begun := l.at
		n, all := l.look(events[:])
		if l.stopped.Load() {
			return
		}
		l.tick()
		l.find(events[:n], &batch)
		l.turn(events[:n], batch[:n])
		if all {
			l.empty = begun
		}
		if l.free || n == loopBatch || len(l.again) > 0 {
			l.free = false
			runtime.Gosched()
		}
	}
}

// look waits until sockets have something, or the next beat. all: it reports
// every one that has.
func (l *loop) look(events []unix.EpollEvent) (n int, all bool) {
	timeout := -1
	if len(l.again) > 0 {
		timeout = 0
	}
	n, err := unix.EpollWait(l.ep, events, timeout)
	switch {
	case err == nil:
		return n, n < len(events)
	case err == unix.EINTR:
		return 0, false
	}
	panic(os.NewSyscallError("epoll_wait", err)) // it would leave every exchange without an end
}

// beat lets the next beat come, unless nothing was under way for a while.
func (l *loop) beat() {
	if l.idle++; l.busy.Load() > 0 {
		l.idle = 0
	}
	if l.idle >= linger {
		l.asleep.Store(true) // whoever begins an exchange from here on wakes the loop
		if l.busy.Load() == 0 {
			return
		}
	}
	l.asleep.Store(false)
	var expirations [8]byte
	unix.Read(l.timer, expirations[:]) // the timer goes on when it was read
}

// turn lets each socket that was reported, and each that was not read to its
// end in the turn before, have one full read.
func (l *loop) turn(events []unix.EpollEvent, batch []*conn) {
	rest := l.again
	l.again, l.spare = l.spare[:0], rest
	for i, c := range batch {
		if c != nil {
			c.ready(events[i].Events)
		}
	}
	for _, c := range rest {
		c.resume()
	}
	clear(rest)
}

// find puts the connections that the events are of into batch, nil for those
// that closed meanwhile and for what is no connection.
func (l *loop) find(events []unix.EpollEvent, batch *[loopBatch]*conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, e := range events {
		batch[i] = nil
		if e.Fd < 0 {
			l.beat() // one begins an exchange, or it is time
			continue
		}
		if c := l.conns[e.Fd]; c != nil && c.life == e.Pad {
			batch[i] = c
		}
	}
}

// add begins to watch a connection.
func (l *loop) add(c *conn) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.slots); n > 0 {
		c.slot, l.slots = l.slots[n-1], l.slots[:n-1]
	} else {
		c.slot = int32(len(l.conns))
		l.conns = append(l.conns, nil)
	}
	l.conns[c.slot] = c
	c.loop = l
	event := unix.EpollEvent{
		Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET, Fd: c.slot, Pad: c.life,
	}
	if err := unix.EpollCtl(l.ep, unix.EPOLL_CTL_ADD, c.fd, &event); err != nil {
		l.conns[c.slot] = nil
		l.slots = append(l.slots, c.slot)
		return os.NewSyscallError("epoll_ctl", err)
	}
	return nil
}

func (l *loop) remove(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[c.slot] = nil
	l.slots = append(l.slots, c.slot)
}

// conn is one connection. mu guards all below it; the loop holds it while it
// feeds the sink.
type conn struct {
	pool *pool
	loop *loop
	fd   int
	slot int32
	life int32 // tells it from others that had its slot

	mu     sync.Mutex
	x      *Exchange     // under way; nil: idle
	origin time.Duration // its start, by the loop's clock
	done   chan error    // of the exchange; room for one
	out    []byte        // of the request, not taken by the kernel yet
	answer answer
	closed atomic.Bool // written under mu

	hup     bool          // the server sends no more
	full    bool          // the last read brought all it could: the loop reads on in its next turn
	emptied time.Duration // before the last read that left nothing, by the loop's clock
	gap     time.Duration // between the stamps of the last two packets
}

// ready is called by the loop with what epoll reported.
func (c *conn) ready(events uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Load() {
		return
	}
	if events&unix.EPOLLOUT != 0 && len(c.out) > 0 {
		c.flush()
	}
	hup := events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0
	c.hup = c.hup || hup
	if events&unix.EPOLLIN == 0 && !hup || c.full {
		return
	}
	c.read()
}

// resume reads on after a read that brought all it could.
func (c *conn) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed.Load() {
		c.read()
	}
}

// read takes what is there, as far as one read holds it.
func (c *conn) read() {
	l := c.loop
	if c.x != nil && l.at-c.since() >= lateLook && c.several() {
		if err := c.apart(); err != nil && err != syscall.EAGAIN {
			c.broke(readError(err))
			return
		}
	}
	for !c.closed.Load() {
		before := l.at
		n, wall, err := recv(c.fd, l.buf, &l.msg)
		if wall == 0 || wall > l.wall {
			l.tick()
		}
		switch {
		case err == syscall.EAGAIN:
			c.full, c.emptied = false, before
			return
		case err != nil:
			c.broke(readError(err))
			return
		case n == 0:
			c.broke(io.EOF)
			return
		}
		since := c.since()
		if c.full = n == len(l.buf); !c.full {
			c.emptied = before
		}
		c.took(l.buf[:n], wall, since)
		if c.full && !c.closed.Load() {
			l.again = append(l.again, c)
		}
		if c.full || !c.hup {
			return
		}
	}
}

// lateLook is how long a socket was not looked at when its messages are read
// one by one. Within two beats, an undisturbed loop, it is never reached.
const lateLook = 3 * beat

// several reports whether more than one message may wait on the socket: whether
// the next but one is due, by the pace of the stream.
func (c *conn) several() bool {
	return c.loop.at-c.origin-c.x.Last > c.gap+c.gap/2
}

// apart reads what waits on a socket up to its last message, one by one, so
// that each has the stamp of its own packet: one read would give them all that
// of the newest. Packets that the kernel has joined meanwhile stay joined.
func (c *conn) apart() error {
	l := c.loop
	since := c.since()
	n, err := peek(c.fd, l.buf)
	for p := l.buf[:n]; err == nil && c.x != nil; {
		var wall int64
		if n = c.answer.message(p); n == len(p) {
			break
		}
		if n, wall, err = recv(c.fd, p[:n], &l.msg); n == 0 {
			break
		}
		if wall == 0 || wall > l.wall {
			l.tick()
		}
		c.took(p[:n], wall, since)
		p = p[n:]
	}
	return err
}

// since is when the socket was last empty, as far as is known, by the loop's
// clock. What a full read left behind came when nobody knows.
func (c *conn) since() time.Duration {
	if c.full {
		return 0
	}
	return max(c.emptied, c.loop.empty)
}

// took feeds what one read brought, none of it from before since.
func (c *conn) took(p []byte, wall int64, since time.Duration) {
	x := c.x
	if x == nil { // nobody asked: not an answer
		c.close()
		return
	}
	rest, err := c.feed(p, c.stamp(wall, since), x.Sink)
	switch {
	case err == errStop:
		c.end(nil, false)
	case err != nil:
		c.end(err, false)
	case c.answer.state == ended:
		c.end(nil, c.answer.keep && !c.hup && len(rest) == 0 && len(c.out) == 0)
	}
}

// stamp is that of a read. What has the stamp of the read before lay in the
// same packet, or in packets that the kernel had joined, and counts as that
// read.
func (c *conn) stamp(wall int64, since time.Duration) Stamp {
	x, l, last := c.x, c.loop, c.x.Last
	if wall != 0 && wall == x.packet {
		x.Reads++
		return x.stamp
	}
	since = max(since-c.origin, last, x.Sent)
	st := x.note(l.at-c.origin, l.wall, wall)
	if wall == 0 {
		x.Coarse++
	}
	st.Span = max(0, st.At-since)
	if x.packet, x.stamp = wall, st; last > 0 {
		c.gap = st.At - last
	}
	return st
}

// feed turns a panic of the sink into an error: it must not end the loop.
func (c *conn) feed(p []byte, at Stamp, sink Sink) (rest []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{v}
		}
	}()
	return c.answer.feed(p, at, sink)
}

// panicError carries a panic from the loop to the caller of Do.
type panicError struct{ value any }

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// broke takes the end of the connection.
func (c *conn) broke(err error) {
	x, now := c.x, time.Now()
	if x == nil {
		c.close()
		return
	}
	x.Last = max(x.Last, now.Sub(x.Start))
	if err == io.EOF {
		err = c.answer.eof()
	}
	c.end(err, false)
}

// end finishes the exchange under way.
func (c *conn) end(err error, keep bool) {
	done := c.done
	c.forget()
	if keep {
		c.answer.state, c.answer.heard = inHead, false
		c.pool.put(c)
	} else {
		c.close()
	}
	c.loop.free = true
	done <- err
}

// forget lets go of the exchange under way.
func (c *conn) forget() {
	c.x, c.done, c.out = nil, nil, nil
	c.loop.leave()
}

func (c *conn) close() {
	if c.closed.Swap(true) {
		return
	}
	c.loop.remove(c)
	unix.Close(c.fd)
	c.pool.dropped()
}

// send begins an exchange: it writes the request as far as the kernel takes it
// and leaves the rest to the loop.
func (c *conn) send(x *Exchange, head []byte) (done chan error, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Load() {
		return nil, io.EOF
	}
	done = make(chan error, 1)
	c.x, c.done, c.origin, c.gap = x, done, x.Start.Sub(c.loop.epoch), 0
	c.loop.join()
	x.Sent, x.Wrote, x.sent = x.now(), 0, true
	n, err := unix.Writev(c.fd, [][]byte{head, x.Body})
	if err != nil && err != syscall.EAGAIN && err != syscall.EINTR {
		c.forget()
		c.close()
		return nil, os.NewSyscallError("write", err)
	}
	n = max(n, 0)
	if n == len(head)+len(x.Body) {
		x.Wrote = x.now()
		return done, nil
	}
	if n < len(head) {
		c.out = append(append([]byte(nil), head[n:]...), x.Body...)
	} else {
		c.out = x.Body[n-len(head):]
	}
	c.flush() // room that came since will not be reported again
	return done, nil
}

// flush writes what is left of the request.
func (c *conn) flush() {
	for len(c.out) > 0 {
		n, err := unix.Write(c.fd, c.out)
		switch {
		case err == syscall.EINTR:
		case err != nil: // it is full; or broken, and what the server said before is read first
			return
		default:
			c.out = c.out[n:]
		}
	}
	c.x.Wrote = c.x.now()
}

// abandon ends the exchange from outside; false: it ended by itself.
func (c *conn) abandon(x *Exchange) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.x != x {
		return false
	}
	c.forget()
	c.close()
	return true
}
