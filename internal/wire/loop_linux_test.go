package wire

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// listen serves each connection on loopback by serve, which need not close it.
func listen(t *testing.T, serve func(c net.Conn)) *url.URL {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
			wg.Go(func() {
				defer c.Close()
				serve(c)
			})
		}
	})
	t.Cleanup(func() {
		ln.Close()
		mu.Lock()
		for _, c := range conns {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return &url.URL{Scheme: "http", Host: ln.Addr().String(), Path: "/v1/chat/completions"}
}

// each answers every request of a connection.
func each(answer string) func(c net.Conn) {
	return func(c net.Conn) {
		for r := bufio.NewReader(c); ; {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			io.Copy(io.Discard, req.Body)
			io.WriteString(c, answer)
		}
	}
}

const short = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// eventually waits for what another goroutine or the kernel does.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
	}
}

// only is the one idle connection of a transport.
func only(t *testing.T, tr *Transport) *conn {
	t.Helper()
	if err := tr.Open(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	c := tr.fast.takeIdle()
	if c == nil {
		t.Fatal("no connection")
	}
	return c
}

// TestClosedWhenTaken: a connection that closes between being taken and being
// written to is replaced, also late in a run.
func TestClosedWhenTaken(t *testing.T) {
	tr := New(Config{URL: listen(t, each(short))})
	defer tr.Close()
	c := only(t, tr)
	c.mu.Lock()
	c.close()
	c.mu.Unlock()
	var got kept
	x := Exchange{Start: time.Now().Add(-time.Minute), Sink: &got}
	s := Started{t: tr, x: &x, sent: tr.fast.send(c, &x)}
	if err := s.Wait(t.Context()); err != nil || string(got.body) != "ok" {
		t.Errorf("body %q, error %v", got.body, err)
	}
	if x.Sent < time.Minute || x.Conn.Replaced != 1 || !x.Conn.New {
		t.Errorf("sent at %v, connection %+v", x.Sent, x.Conn)
	}
}

// TestOpenAfterIdleClose: connections that the server closed do not count as
// open ones.
func TestOpenAfterIdleClose(t *testing.T) {
	var mu sync.Mutex
	var conns []net.Conn
	u := listen(t, func(c net.Conn) {
		mu.Lock()
		conns = append(conns, c)
		mu.Unlock()
		io.Copy(io.Discard, c)
	})
	tr := New(Config{URL: u})
	defer tr.Close()
	const n = 5
	for round := range 2 {
		if err := tr.Open(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		if _, opened := tr.Sockets(); opened != n {
			t.Errorf("round %d: %d connections opened, want %d", round, opened, n)
		}
		eventually(t, "the server has not all connections", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(conns) == n
		})
		mu.Lock()
		for _, c := range conns {
			c.Close()
		}
		conns = nil
		mu.Unlock()
		eventually(t, "closed connections are not noticed", func() bool { most, _ := tr.Sockets(); return most == 0 })
	}
}

// TestOpenError: that many connections fail alike is said once.
func TestOpenError(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	tr := New(Config{URL: &url.URL{Scheme: "http", Host: ln.Addr().String()}})
	defer tr.Close()
	if err := tr.Open(t.Context(), 8); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v", err)
	}
}

// descriptors counts the open files of this process.
func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// TestNoLeak: transports give back what they took, descriptors and goroutines,
// whether they were used, left with an exchange under way, or never used.
func TestNoLeak(t *testing.T) {
	u := listen(t, each(short))
	hung := listen(t, func(c net.Conn) { io.Copy(io.Discard, c) })
	use := func(i int) {
		tr := New(Config{URL: u, Standard: i%5 == 4})
		defer tr.Close()
		switch i % 5 {
		case 0:
		case 1:
			if err := tr.Open(t.Context(), 3); err != nil {
				t.Error(err)
			}
		case 2, 4:
			for range 3 {
				if err := tr.Do(t.Context(), &Exchange{Start: time.Now(), Sink: new(kept)}); err != nil {
					t.Error(err)
				}
			}
		case 3: // closed before its exchange has ended
			other := New(Config{URL: hung})
			ctx, cancel := context.WithCancelCause(t.Context())
			if err := other.Open(ctx, 2); err != nil {
				t.Error(err)
			}
			s := other.Start(&Exchange{Start: time.Now(), Sink: new(kept)})
			other.Close()
			cause := errors.New("enough")
			cancel(cause)
			if err := s.Wait(ctx); err != cause {
				t.Errorf("an exchange that was given up ends with %v", err)
			}
		}
	}
	use(0) // Go's own descriptors are there from the first use on
	use(2)
	eventually(t, "the first transports keep their loops", func() bool { return runtime.NumGoroutine() < 20 })
	goroutines, files := runtime.NumGoroutine(), descriptors(t)
	for i := range 300 {
		use(i)
	}
	eventually(t, "goroutines or descriptors are left", func() bool {
		return runtime.NumGoroutine() <= goroutines && descriptors(t) <= files
	})
}

// TestUnused: a transport that nobody uses or closes holds no goroutine.
func TestUnused(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 50 {
		New(Config{URL: &url.URL{Scheme: "http", Host: "127.0.0.1:1"}})
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines after %d", n, before)
	}
}

// still is a connection whose loop does not run, and the other end of it: a
// test says what epoll reports, and when.
func still(t *testing.T) (c *conn, peer *os.File) {
	t.Helper()
	l, err := newLoop()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.release)
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := &pool{loops: []*loop{l}}
	p.count.add()
	c = &conn{pool: p, fd: fds[0], life: 1}
	if err := l.add(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.close()
	})
	peer = os.NewFile(uintptr(fds[1]), "peer")
	t.Cleanup(func() { peer.Close() })
	return c, peer
}

// TestKept: what a connection went through decides whether it serves another
// exchange. The answer is the same, and whole, in all cases.
func TestKept(t *testing.T) {
	for name, tt := range map[string]struct {
		answer string
		body   int // bytes of the request
		closes bool
		events uint32
		kept   bool
	}{
		"answered":                {answer: short, events: unix.EPOLLIN, kept: true},
		"closed behind it":        {answer: short, closes: true, events: unix.EPOLLIN | unix.EPOLLRDHUP},
		"more than an answer":     {answer: short + "x", events: unix.EPOLLIN},
		"answered before written": {answer: short, body: 8 << 20, events: unix.EPOLLIN},
		"broke before written":    {answer: short, body: 8 << 20, closes: true, events: unix.EPOLLIN | unix.EPOLLOUT},
		"by its word":             {answer: "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", events: unix.EPOLLIN},
		"another protocol":        {answer: "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", events: unix.EPOLLIN},
	} {
		c, peer := still(t)
		var got kept
		x := Exchange{Start: time.Now(), Body: make([]byte, tt.body), Sink: &got}
		done, err := c.send(&x, nil)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(peer, tt.answer)
		if tt.closes {
			peer.Close()
		}
		c.ready(tt.events)
		if err := <-done; err != nil || got.heads != 1 {
			t.Errorf("%s: %d heads, error %v", name, got.heads, err)
		}
		if idle := len(c.pool.idle); (idle == 1) != tt.kept || c.closed.Load() == tt.kept {
			t.Errorf("%s: %d idle connections, closed: %v", name, idle, c.closed.Load())
		}
	}
}

// TestWroteAgain: a request that is sent again has the times of that sending.
func TestWroteAgain(t *testing.T) {
	c, _ := still(t)
	x := Exchange{Start: time.Now(), Body: make([]byte, 8<<20), Sink: new(kept), Wrote: 1}
	if _, err := c.send(&x, nil); err != nil {
		t.Fatal(err)
	}
	if x.Wrote != 0 {
		t.Errorf("written at %v, though the kernel has not all of it", x.Wrote)
	}
}

// TestHeaders: what the caller's headers say of host and connection is sent,
// both ways.
func TestHeaders(t *testing.T) {
	for _, standard := range []bool{false, true} {
		hosts := make(chan string, 1)
		u := listen(t, func(c net.Conn) {
			req, err := http.ReadRequest(bufio.NewReader(c))
			if err != nil {
				return
			}
			hosts <- req.Host + ", close: " + strconv.FormatBool(req.Close)
			io.WriteString(c, short)
		})
		tr := New(Config{URL: u, Standard: standard, Header: http.Header{"Host": {"model.example"}, "Connection": {"close"}}})
		defer tr.Close()
		if err := tr.Do(t.Context(), &Exchange{Start: time.Now(), Sink: new(kept)}); err != nil {
			t.Error(err)
		}
		if got := <-hosts; got != "model.example, close: true" {
			t.Errorf("net/http %v: the server is asked for host %s", standard, got)
		}
	}
}

// TestOwnHeader: a header of one request is sent with it alone, both ways.
func TestOwnHeader(t *testing.T) {
	for _, standard := range []bool{false, true} {
		seen := make(chan string, 2)
		u := listen(t, func(c net.Conn) {
			in := bufio.NewReader(c)
			for range 2 {
				req, err := http.ReadRequest(in)
				if err != nil {
					return
				}
				body, _ := io.ReadAll(req.Body)
				seen <- string(body) + " " + req.Header.Get("X-All") + " " + req.Header.Get("X-Session")
				io.WriteString(c, short)
			}
		})
		tr := New(Config{URL: u, Standard: standard, Header: http.Header{"X-All": {"a"}}})
		defer tr.Close()
		for _, x := range []*Exchange{{Fields: []Field{{"X-Session", "s-1"}}}, {}} {
			x.Start, x.Body, x.Sink = time.Now(), []byte("body"), new(kept)
			if err := tr.Do(t.Context(), x); err != nil {
				t.Error(err)
			}
		}
		if one, other := <-seen, <-seen; one != "body a s-1" || other != "body a " {
			t.Errorf("net/http %v: the server saw %q and %q", standard, one, other)
		}
	}
}

// nothing is a sink that looks at nothing.
type nothing struct{}

func (nothing) Head(int, http.Header, Stamp) {}
func (nothing) Body([]byte, Stamp) bool      { return true }

// TestReadAllocates: a read of a stream costs no allocation.
func TestReadAllocates(t *testing.T) {
	c, peer := still(t)
	x := Exchange{Start: time.Now(), Sink: nothing{}}
	if _, err := c.send(&x, nil); err != nil {
		t.Fatal(err)
	}
	chunk := []byte("5\r\nhello\r\n")
	read := func() {
		peer.Write(chunk)
		c.ready(unix.EPOLLIN)
	}
	io.WriteString(peer, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
	c.ready(unix.EPOLLIN)
	if n := testing.AllocsPerRun(500, read); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if x.Reads != 502 {
		t.Errorf("%d reads", x.Reads)
	}
}

// TestWithoutKernelStamps: a kernel that stamps nothing, as that of a sandbox, fails no request;
// another refusal does.
func TestWithoutKernelStamps(t *testing.T) {
	for refusal, want := range map[error]string{
		os.NewSyscallError("setsockopt", unix.ENOPROTOOPT): "ok",
		os.NewSyscallError("setsockopt", unix.EBADF):       "",
	} {
		tr := New(Config{URL: listen(t, each(short))})
		defer tr.Close()
		tr.fast.stampReads = func(uintptr) error { return refusal }
		var got kept
		x := Exchange{Start: time.Now(), Sink: &got}
		err := tr.Do(t.Context(), &x)
		if string(got.body) != want || (err == nil) != (want == "ok") || want == "" && !errors.Is(err, unix.EBADF) {
			t.Errorf("%v: body %q, error %v", refusal, got.body, err)
		}
	}
}
