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
	"strings"
	"sync"
	"testing"
	"time"
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
	c := tr.fast.kept()
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
