package truth

import (
	"cmp"
	"container/heap"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const fastHere = true

// fast is the server of one thread: it reads requests when epoll says so and
// sends events when they are due, all without blocking.
type fast struct {
	*book
	poll, listener, wake int // file descriptors
	conns                []*conn
	queue                queue
	spin                 bool // there is a processor to spare
	ended                bool

	events []unix.EpollEvent
	in     []byte // one read
	oob    []byte
	send   []byte // one send
}

// conn is one connection and the stream that it carries.
type conn struct {
	fd      int
	in      []byte  // of a request, not whole yet
	out     []byte  // given to the socket, which had no room
	rec     *record // nil: idle
	due     int64
	waits   bool // at the gate
	blocked bool // the next send waits for room
	closing bool // close when out is empty
}

var errPipelined = errors.New("the truth server takes one request at a time on a connection")

const (
	// margin is how long before a due instant the kernel's timer is set: it
	// wakes late by some 50 us. The rest is spun.
	margin = 60 * time.Microsecond

	// look is for how long the server may send and spin without a look at its
	// sockets.
	look = 100 * time.Microsecond

	readSize = 64 << 10
	perPoll  = 256
)

func serveFast(ctx context.Context, l *net.TCPListener, b *book) (err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s := &fast{
		book: b, poll: -1, wake: -1, listener: -1, spin: spare(),
		events: make([]unix.EpollEvent, perPoll), in: make([]byte, readSize), oob: make([]byte, 128),
	}
	b.kernel = true
	defer s.close()
	file, err := l.File()
	if err != nil {
		return errors.Join(fmt.Errorf("take over the listener: %w", err), l.Close())
	}
	defer file.Close()
	defer l.Close()
	if err := s.prepare(int(file.Fd())); err != nil {
		return err
	}
	woken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(woken)
		var one = [8]byte{1}
		unix.Write(s.wake, one[:])
	})
	defer func() {
		if !stop() {
			<-woken
		}
	}()
	return s.run()
}

// prepare opens what the loop needs. The stamp option is set on the listener,
// from which connections inherit it, so that their first packet has one.
func (s *fast) prepare(listener int) (err error) {
	s.listener = listener
	if err := unix.SetNonblock(listener, true); err != nil {
		return fmt.Errorf("prepare the listener: %w", err)
	}
	if err := unix.SetsockoptInt(listener, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
		return fmt.Errorf("ask for kernel stamps: %w", err)
	}
	if s.poll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("open epoll: %w", err)
	}
	if s.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return fmt.Errorf("open an eventfd: %w", err)
	}
	// A thread's timers may else be late by 50 us on purpose. It is a wish.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	for _, fd := range []int{s.listener, s.wake} {
		if err := unix.EpollCtl(s.poll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
			return fmt.Errorf("watch a socket: %w", err)
		}
	}
	return nil
}

func (s *fast) close() {
	for _, c := range s.conns {
		if c != nil {
			unix.Close(c.fd)
		}
	}
	for _, fd := range []int{s.poll, s.wake} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// run is the loop: what is due, then what came, then sleep to the next.
func (s *fast) run() error {
	for !s.ended {
		s.sendDue()
		if err := s.sleep(); err != nil {
			return err
		}
		if err := s.receive(); err != nil {
			return err
		}
	}
	return nil
}

func (s *fast) now() int64 { return int64(time.Since(s.epoch)) }

// sendDue sends what is due, or will be within margin, for at most look.
func (s *fast) sendDue() {
	until := s.now() + int64(look)
	for len(s.queue) > 0 {
		c := s.queue[0]
		for {
			now := s.now()
			if now >= until {
				return
			}
			if c.due <= now {
				break
			}
			if !s.spin || c.due-now > int64(margin) {
				return
			}
		}
		if s.step(c) {
			c.due = c.rec.next()
			heap.Fix(&s.queue, 0)
		} else {
			heap.Pop(&s.queue)
		}
	}
}

// sleep waits until a socket is ready or margin before the next send.
func (s *fast) sleep() error {
	var timeout *unix.Timespec
	if len(s.queue) > 0 {
		left := s.queue[0].due - s.now()
		if s.spin {
			left -= int64(margin)
		}
		if left <= 0 {
			return nil
		}
		t := unix.NsecToTimespec(left)
		timeout = &t
	}
	// ppoll on the epoll instance, since epoll's own nanosecond wait is young.
	fds := []unix.PollFd{{Fd: int32(s.poll), Events: unix.POLLIN}}
	if _, err := unix.Ppoll(fds, timeout, nil); err != nil && !errors.Is(err, unix.EINTR) {
		return fmt.Errorf("wait for sockets: %w", err)
	}
	return nil
}

// receive handles every socket that is ready.
func (s *fast) receive() error {
	n, err := unix.EpollWait(s.poll, s.events, 0)
	if errors.Is(err, unix.EINTR) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("wait for sockets: %w", err)
	}
	for _, e := range s.events[:n] {
		switch fd := int(e.Fd); fd {
		case s.wake:
			s.ended = true
		case s.listener:
			if err := s.accept(); err != nil {
				return err
			}
		default:
			c := s.conns[fd]
			if c != nil && e.Events&unix.EPOLLOUT != 0 {
				s.flush(c)
			}
			if s.conns[fd] == c && c != nil && e.Events&^unix.EPOLLOUT != 0 {
				s.read(c)
			}
		}
	}
	return nil
}

// accept takes connections, a few at once so that sends are not held up.
func (s *fast) accept() error {
	for range 16 {
		fd, _, err := unix.Accept4(s.listener, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR), errors.Is(err, unix.ECONNABORTED):
			return nil
		case err != nil:
			return fmt.Errorf("accept a connection: %w", err)
		}
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
			unix.Close(fd)
			return fmt.Errorf("prepare a connection: %w", err)
		}
		for fd >= len(s.conns) {
			s.conns = append(s.conns, make([]*conn, max(64, len(s.conns)))...)
		}
		s.conns[fd] = &conn{fd: fd}
		if err := unix.EpollCtl(s.poll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
			return fmt.Errorf("watch a connection: %w", err)
		}
	}
	return nil
}

// drop closes a connection; a stream of it stays in the record as far as it
// came.
func (s *fast) drop(c *conn) {
	for i, q := range s.queue {
		if q == c {
			heap.Remove(&s.queue, i)
			break
		}
	}
	s.conns[c.fd] = nil
	unix.Close(c.fd)
}

// read takes what came and serves requests that are whole.
func (s *fast) read(c *conn) {
	n, oobn, _, _, err := unix.Recvmsg(c.fd, s.in, s.oob, unix.MSG_DONTWAIT)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
		return
	}
	if err != nil || n == 0 {
		s.drop(c)
		return
	}
	at, ok := kernelStamp(s.oob[:oobn])
	if !ok {
		at = time.Now().UnixNano()
		s.coarse++
	}
	if c.rec != nil { // a request before the answer to the last one ended
		s.drop(c)
		return
	}
	in := s.in[:n]
	if len(c.in) > 0 {
		c.in = append(c.in, in...)
		in = c.in
	}
	r, bad := parseRequest(in)
	switch {
	case bad != nil || r.size > 0 && r.size < len(in):
		c.closing = true
		s.write(c, failure("400 Bad Request", cmp.Or(bad, errPipelined)))
	case r.size == 0:
		c.in = append(c.in[:0], in...)
	default:
		c.in = nil
		s.serve(c, r, at)
	}
}

// kernelStamp finds the arrival time, wall ns, in the control data of a read.
func kernelStamp(oob []byte) (int64, bool) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return 0, false
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_TIMESTAMPNS {
			return timespec(m.Data)
		}
	}
	return 0, false
}

// timespec reads the kernel's seconds and nanoseconds, of a machine word each.
func timespec(b []byte) (ns int64, ok bool) {
	switch len(b) {
	case 16:
		return int64(binary.NativeEndian.Uint64(b))*1e9 + int64(binary.NativeEndian.Uint64(b[8:])), true
	case 8:
		return int64(binary.NativeEndian.Uint32(b))*1e9 + int64(binary.NativeEndian.Uint32(b[4:])), true
	}
	return 0, false
}

// spare reports whether the machine has a processor to spin on: this process
// may have been given one of several for itself.
func spare() bool {
	online, err := os.ReadFile("/sys/devices/system/cpu/online")
	return err == nil && strings.TrimSpace(string(online)) != "0"
}

// serve answers a request or opens its stream.
func (s *fast) serve(c *conn, r request, at int64) {
	chat, ok := r.streams()
	if !ok {
		reset := r.method == "POST" && r.path == "/truth"
		s.write(c, s.answer(r))
		if reset {
			s.sendAway()
		}
		return
	}
	rec, ready := s.add(r.id, chat, at)
	c.rec = rec
	s.write(c, rec.page.opening)
	c.waits = true
	switch {
	case len(ready) == 1 && ready[0] == rec:
		s.enqueue(c)
	case len(ready) > 0: // the gate opened
		for _, w := range s.conns {
			if w != nil && w.waits {
				s.enqueue(w)
			}
		}
	}
}

// sendAway drops the streams that waited at a gate that is no more.
func (s *fast) sendAway() {
	for _, c := range s.conns {
		if c != nil && c.waits {
			s.drop(c)
		}
	}
}

func (s *fast) enqueue(c *conn) {
	c.waits, c.due = false, c.rec.next()
	heap.Push(&s.queue, c)
}

// step makes the next send of a stream and reports whether there is another
// one to schedule.
func (s *fast) step(c *conn) bool {
	if len(c.out) > 0 {
		s.hold(c)
		return false
	}
	var tokens int
	var at int64
	s.send, tokens, at = c.rec.send(s.send)
	n, err := unix.Write(c.fd, s.send)
	if n <= 0 {
		if errors.Is(err, unix.EAGAIN) {
			s.hold(c)
			s.watch(c, true)
		}
		return errors.Is(err, unix.EINTR) // a broken connection ends at its next read
	}
	last := c.rec.sent(at, tokens)
	if n < len(s.send) {
		c.out = append(c.out[:0], s.send[n:]...)
		s.watch(c, true)
	}
	if last {
		closing := c.rec.page.closing
		c.rec = nil
		s.write(c, closing)
	}
	return !last
}

// hold leaves the next send to the moment at which the socket has room.
func (s *fast) hold(c *conn) {
	s.blocked++
	c.blocked = true
}

// write sends b, or keeps what the socket has no room for.
func (s *fast) write(c *conn, b []byte) {
	if len(c.out) == 0 {
		n, err := unix.Write(c.fd, b)
		if err != nil && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			return // it ends at its next read
		}
		b = b[max(n, 0):]
		if len(b) > 0 {
			s.watch(c, true)
		}
	}
	c.out = append(c.out, b...)
	if len(c.out) == 0 && c.closing {
		s.drop(c)
	}
}

// flush goes on when a socket has room again.
func (s *fast) flush(c *conn) {
	for len(c.out) > 0 {
		n, err := unix.Write(c.fd, c.out)
		if n <= 0 {
			if err != nil && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
				s.drop(c)
			}
			return
		}
		c.out = append(c.out[:0], c.out[n:]...)
	}
	s.watch(c, false)
	if c.closing {
		s.drop(c)
		return
	}
	if c.blocked {
		c.blocked = false
		s.enqueue(c)
	}
}

// watch asks epoll to tell when the socket has room, or not to.
func (s *fast) watch(c *conn, room bool) {
	e := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(c.fd)}
	if room {
		e.Events |= unix.EPOLLOUT
	}
	_ = unix.EpollCtl(s.poll, unix.EPOLL_CTL_MOD, c.fd, &e) // of a socket that is watched: cannot fail
}

// queue orders connections by their next send.
type queue []*conn

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].due < q[j].due }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(*conn)) }
func (q *queue) Pop() any {
	old := *q
	c := old[len(old)-1]
	*q = old[:len(old)-1]
	return c
}
