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

// loop reads many sockets in one goroutine. It waits in Go's own poller for
// its epoll descriptor to be readable, so that it holds no thread and no
// processor while nothing comes.
//
// Edge-triggered: a socket is reported once for what arrived, and is read until
// a read comes short. A thread of its own that blocks in epoll_wait was slower
// to let go of its processor, which delayed sends by up to 10 ms where there
// are few.
type loop struct {
	ep   int
	file *os.File // of ep
	buf  []byte
	msg  message

	mu    sync.Mutex
	conns []*conn // by slot; nil: free
	free  []int32
}

const (
	loopBuffer = 256 << 10 // what merged reads of a burst bring at most
	loopBatch  = 64        // events between two chances for other goroutines
)

func newLoop() (*loop, error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if err := unix.SetNonblock(ep, true); err != nil {
		return nil, err
	}
	return &loop{ep: ep, file: os.NewFile(uintptr(ep), "epoll"), buf: make([]byte, loopBuffer)}, nil
}

// run reads until the loop is closed.
func (l *loop) run() {
	raw, err := l.file.SyscallConn()
	if err != nil {
		return // closed before it ran
	}
	var events [loopBatch]unix.EpollEvent
	var batch [loopBatch]*conn
	n := 0
	poll := func(ep uintptr) bool {
		var err error
		n, err = unix.EpollWait(int(ep), events[:], 0)
		return n > 0 || err != nil && err != unix.EINTR
	}
	for raw.Read(poll) == nil {
		l.mu.Lock()
		for i := range max(n, 0) {
			batch[i] = nil
			if c := l.conns[events[i].Fd]; c != nil && c.life == events[i].Pad {
				batch[i] = c
			}
		}
		l.mu.Unlock()
		for i := range max(n, 0) {
			if c := batch[i]; c != nil {
				c.ready(events[i].Events)
			}
		}
		runtime.Gosched() // sends go before reads: the kernel has stamped those
	}
}

// add begins to watch a connection.
func (l *loop) add(c *conn) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.free); n > 0 {
		c.slot, l.free = l.free[n-1], l.free[:n-1]
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
		l.free = append(l.free, c.slot)
		return os.NewSyscallError("epoll_ctl", err)
	}
	return nil
}

func (l *loop) remove(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[c.slot] = nil
	l.free = append(l.free, c.slot)
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
		c.took(c.loop.buf[:n], now, wall)
		if n < len(c.loop.buf) && !hup {
			return
		}
	}
}

// took feeds what one read brought.
func (c *conn) took(p []byte, now time.Time, wall int64) {
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
		c.end(nil, c.answer.keep && len(rest) == 0 && len(c.out) == 0)
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
	x.Sent, x.sent = x.now(), true
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
		case err == syscall.EAGAIN:
			return
		case err != nil: // what the server said before it broke is read first
			c.out = nil
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
