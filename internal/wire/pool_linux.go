package wire

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptrace"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// pool is the connections to one endpoint, spread over a few loops.
type pool struct {
	addr   string
	head   []byte // of every request, up to the length of its body
	dialer net.Dialer
	count  count

	spread int // loops

	detaching  sync.Mutex
	stampReads func(fd uintptr) error

	mu    sync.Mutex
	loops []*loop // begin with the first connection; not changed once shut
	idle  []*conn // the last used at the end
	lives int32
	shut  bool        // close was called
	down  atomic.Bool // the same, read without mu
	ended atomic.Bool // the loops were stopped
}

func newPool(cfg Config) *pool {
	enoughProcessors()
	spread := max(1, min(8, runtime.GOMAXPROCS(0)/2))
	return &pool{addr: address(cfg), head: head(cfg), dialer: net.Dialer{Timeout: dialTimeout}, spread: spread, stampReads: stampReads}
}

// begin starts the loops; mu is held.
func (p *pool) begin() error {
	for len(p.loops) < p.spread {
		l, err := newLoop()
		if err != nil {
			return err
		}
		p.loops = append(p.loops, l)
		go l.run()
	}
	return nil
}

// enoughProcessors gives Go a second processor where it has one, so that what
// else is to run, first of all the next send, need not wait for the runtime to
// notice that a loop blocks. On one CPU the kernel then shares it out between
// two threads, which it does at once.
func enoughProcessors() {
	if runtime.GOMAXPROCS(0) < 2 {
		runtime.GOMAXPROCS(2)
	}
}

func address(cfg Config) string {
	port := cfg.URL.Port()
	if port == "" {
		port = "80"
	}
	return net.JoinHostPort(cfg.URL.Hostname(), port)
}

// head writes the request's head up to the value of Content-Length.
func head(cfg Config) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: %s\r\n", cfg.URL.RequestURI(), cfg.host())
	// A buffer takes every write.
	cfg.Header.WriteSubset(&b, map[string]bool{"Host": true, "Content-Length": true, "Transfer-Encoding": true})
	b.WriteString("Content-Length: ")
	return b.Bytes()
}

// sent is a request that was written to a connection.
type sent struct {
	c    *conn
	done <-chan error
	err  error // instead of done
}

// start sends over an idle connection; nil: there is none.
func (p *pool) start(x *Exchange) *sent {
	c := p.takeIdle()
	if c == nil {
		return nil
	}
	return p.send(c, x)
}

func (p *pool) send(c *conn, x *Exchange) *sent {
	size := len(p.head) + 24
	for _, f := range x.Fields {
		size += len(f.Name) + len(f.Value) + len(": \r\n")
	}
	head := append(make([]byte, 0, size), p.head...)
	head = append(strconv.AppendInt(head, int64(len(x.Body)), 10), "\r\n"...)
	for _, f := range x.Fields {
		head = append(append(append(append(head, f.Name...), ": "...), f.Value...), "\r\n"...)
	}
	head = append(head, "\r\n"...)
	s := &sent{c: c}
	s.done, s.err = c.send(x, head)
	return s
}

// do waits for the end of an exchange that was sent, or sends it first.
func (p *pool) do(ctx context.Context, x *Exchange, s *sent) error {
	begun := x.now()
	for {
		if s == nil {
			c, err := p.take(ctx, x)
			if err != nil {
				if !x.sent {
					x.Sent = begun
				}
				return err
			}
			s = p.send(c, x)
		}
		err := s.wait(ctx, x)
		if err == nil || x.Conn.New || !replayable(x, err) {
			return err
		}
		x.Conn.Replaced++
		s = nil
	}
}

// wait returns when the answer has ended.
func (s *sent) wait(ctx context.Context, x *Exchange) error {
	if s.err != nil {
		return s.err
	}
	var err error
	select {
	case err = <-s.done:
	case <-ctx.Done():
		if s.c.abandon(x) {
			return context.Cause(ctx)
		}
		err = <-s.done
	}
	if e, ok := err.(*panicError); ok {
		panic(e.value)
	}
	return err
}

// replayable reports whether a kept connection was closed by the server before
// it got the request.
func replayable(x *Exchange, err error) bool {
	if x.Reads > 0 || x.sent && x.now()-x.Sent > replayWindow {
		return false
	}
	return err == io.EOF || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// take gives an idle connection, or a new one.
func (p *pool) take(ctx context.Context, x *Exchange) (*conn, error) {
	if c := p.takeIdle(); c != nil {
		return c, nil
	}
	x.Conn.New = true
	return p.dial(ctx, &x.Conn)
}

// takeIdle gives an idle connection; nil: there is none.
func (p *pool) takeIdle() *conn {
	for {
		p.mu.Lock()
		n := len(p.idle)
		if n == 0 {
			p.mu.Unlock()
			return nil
		}
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		if !c.closed.Load() {
			return c
		}
	}
}

// put keeps a connection for the next exchange; its lock is held.
func (p *pool) put(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shut {
		c.close()
		return
	}
	p.idle = append(p.idle, c)
}

// dial opens a connection and takes it out of Go's poller: the loop alone
// watches it.
func (p *pool) dial(ctx context.Context, facts *Conn) (*conn, error) {
	begun := time.Now()
	var mu sync.Mutex // addresses are looked up in goroutines of the dialer's
	var looked time.Time
	var lookup time.Duration
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		DNSStart: func(httptrace.DNSStartInfo) { mu.Lock(); looked = time.Now(); mu.Unlock() },
		DNSDone:  func(httptrace.DNSDoneInfo) { mu.Lock(); lookup = time.Since(looked); mu.Unlock() },
	})
	nc, err := p.dialer.DialContext(traced, "tcp", p.addr)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	fd, err := p.detach(nc)
	if err != nil {
		return nil, err
	}
	mu.Lock()
	defer mu.Unlock()
	facts.DNS, facts.Dial = lookup, time.Since(begun)
	return p.adopt(fd)
}

// detach takes a socket out of its connection, which it closes, and asks for
// stamps. For a moment the socket has two descriptors: one at a time, since
// thousands of connections opened at once may be all that the limit allows.
func (p *pool) detach(nc net.Conn) (fd int, err error) {
	p.detaching.Lock()
	defer p.detaching.Unlock()
	defer nc.Close()
	rc, err := nc.(*net.TCPConn).SyscallConn()
	if err != nil {
		return 0, err
	}
	var dup error
	err = rc.Control(func(s uintptr) {
		// Without the kernel's stamps reads have our own, and [Transport.Clock] says so.
		if dup = p.stampReads(s); dup != nil && !errors.Is(dup, unix.ENOPROTOOPT) {
			return
		}
		fd, dup = unix.FcntlInt(s, unix.F_DUPFD_CLOEXEC, 0)
		dup = os.NewSyscallError("dup", dup)
	})
	if err == nil {
		err = dup
	}
	return fd, err
}

// adopt gives a socket to one of the loops.
func (p *pool) adopt(fd int) (*conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := net.ErrClosed
	if !p.shut {
		err = p.begin()
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	p.lives++
	c := &conn{pool: p, fd: fd, life: p.lives}
	p.count.add() // before the loop can drop it
	if err := p.loops[int(p.lives)%len(p.loops)].add(c); err != nil {
		p.count.drop()
		unix.Close(fd)
		return nil, err
	}
	return c, nil
}

// openers bounds the connections being opened at once: servers queue few.
const openers = 64

// open makes connections until n are idle.
func (p *pool) open(ctx context.Context, n int) error {
	p.mu.Lock()
	p.idle = slices.DeleteFunc(p.idle, func(c *conn) bool { return c.closed.Load() })
	need := n - len(p.idle)
	p.mu.Unlock()
	var wg sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(need))
	errs := make([]error, max(0, min(need, openers)))
	for i := range errs {
		wg.Go(func() {
			for left.Add(-1) >= 0 && errs[i] == nil {
				var facts Conn
				c, err := p.dial(ctx, &facts)
				if errs[i] = err; err == nil {
					c.mu.Lock()
					p.put(c)
					c.mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return cmp.Or(errs...) // they are alike
}

// close ends idle connections now and the others when they are done, and with
// the last of them the loops.
func (p *pool) close() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.shut = nil, true
	p.down.Store(true)
	p.mu.Unlock()
	for _, c := range idle {
		c.mu.Lock()
		c.close()
		c.mu.Unlock()
	}
	if p.count.none() {
		p.stop()
	}
}

// dropped counts a connection that closed.
func (p *pool) dropped() {
	p.count.drop()
	if p.down.Load() && p.count.none() {
		p.stop()
	}
}

func (p *pool) stop() {
	if p.ended.Swap(true) {
		return
	}
	for _, l := range p.loops {
		l.stop()
	}
}
