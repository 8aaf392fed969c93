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
type loop struct {
	ep   int
	wake int // eventfd that ends run
	buf  []byte
	msg  message
	free bool // a call ended: its goroutine should run before the next wait

	mu    sync.Mutex
	conns []*conn // by slot; nil: free
	slots []int32 // that are free
}

const (
	loopBuffer = 256 << 10 // what merged reads of a burst bring at most
	loopBatch  = 64        // events between two chances for other goroutines
	wakeSlot   = -1
)

func newLoop() (*loop, error) {
	l := &loop{ep: -1, wake: -1, buf: make([]byte, loopBuffer)}
	var err error
	if l.ep, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if l.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		l.release()
		return nil, os.NewSyscallError("eventfd", err)
	}
	if err := unix.EpollCtl(l.ep, unix.EPOLL_CTL_ADD, l.wake, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: wakeSlot}); err != nil {
		l.release()
		return nil, os.NewSyscallError("epoll_ctl", err)
	}
	return l, nil
}

func (l *loop) release() {
	for _, fd := range []int{l.ep, l.wake} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// stop ends run.
func (l *loop) stop() {
	unix.Write(l.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // an eventfd takes it
}

// run reads until the loop is stopped.
func (l *loop) run() {
	defer l.release()
	var events [loopBatch]unix.EpollEvent
	var batch [loopBatch]*conn
	for {
		n, err := unix.EpollWait(l.ep, events[:], -1)
		if err == unix.EINTR {
			continue
		}
		if err != nil { // it would leave every exchange without an end
			panic(os.NewSyscallError("epoll_wait", err))
		}
		if !l.find(events[:n], &batch) {
			return
		}
		for i, c := range batch[:n] {
			if c != nil {
				c.ready(events[i].Events)
			}
		}
		if l.free || n == loopBatch {
			l.free = false
			runtime.Gosched()
		}
	}
}

// find puts the connections that the events are of into batch, nil for those
// that closed meanwhile; false: run was told to end.
func (l *loop) find(events []unix.EpollEvent, batch *[loopBatch]*conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, e := range events {
		if e.Fd == wakeSlot {
			return false
		}
		batch[i] = nil
		if c := l.conns[e.Fd]; c != nil && c.life == e.Pad {
			batch[i] = c
		}
	}
	return true
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
	x      *Exchange  // under way; nil: idle
	done   chan error // of the exchange; room for one
	out    []byte     // of the request, not taken by the kernel yet
	answer answer
	closed atomic.Bool // written under mu
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
	if events&(unix.EPOLLIN|unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) == 0 {
		return
	}
	hup := events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0
	for !c.closed.Load() {
		n, wall, err := recv(c.fd, c.loop.buf, &c.loop.msg)
		now := time.Now()
		switch {
		case err == syscall.EAGAIN:
			return
		case err != nil:
			c.broke(now, readError(err))
			return
		case n == 0:
			c.broke(now, io.EOF)
			return
		}
		c.took(c.loop.buf[:n], now, wall, hup)
		if n < len(c.loop.buf) && !hup {
			return
		}
	}
}

// took feeds what one read brought; hup: the server sends no more than that.
func (c *conn) took(p []byte, now time.Time, wall int64, hup bool) {
	x := c.x
	if x == nil { // nobody asked: not an answer
		c.close()
		return
	}
	at := x.read(now, wall)
	if wall == 0 {
		x.Coarse++
	}
	rest, err := c.feed(p, at, x.Sink)
	switch {
	case err == errStop:
		c.end(nil, false)
	case err != nil:
		c.end(err, false)
	case c.answer.state == ended:
		c.end(nil, c.answer.keep && !hup && len(rest) == 0 && len(c.out) == 0)
	}
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
func (c *conn) broke(now time.Time, err error) {
	x := c.x
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
	c.x, c.done, c.out = nil, nil, nil
	if keep {
		c.answer.state, c.answer.heard = inHead, false
		c.pool.put(c)
	} else {
		c.close()
	}
	c.loop.free = true
	done <- err
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
	c.x, c.done = x, done
	x.Sent, x.Wrote, x.sent = x.now(), 0, true
	n, err := unix.Writev(c.fd, [][]byte{head, x.Body})
	if err != nil && err != syscall.EAGAIN && err != syscall.EINTR {
		c.x, c.done = nil, nil
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
	c.x, c.done, c.out = nil, nil, nil
	c.close()
	return true
}
