package node

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"perflab/internal/deploy"
	"perflab/internal/test/deploytest"
)

// listening is a site with a node on which an engine seems to listen on a port of the test's.
func listening(t *testing.T, serve func(net.Conn)) (s *server, h *hold, port int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wait.Go(func() { serve(c) })
		}
	})
	t.Cleanup(func() { l.Close(); wait.Wait() })
	x := startSite(t)
	conn := x.join(t, "a", nil)
	s = newServer(conn.ID(), Options{Conn: conn, Dir: t.TempDir(), Processes: true})
	stop, err := s.listen()
	if err != nil {
		t.Fatal(err)
	}
	n := x.lead(t, Leader{Lease: time.Minute})
	t.Cleanup(func() { n.Close(); stop(); s.close(); conn.Close() })
	if h, err = n.node("a").held(t.Context()); err != nil {
		t.Fatal(err)
	}
	port = l.Addr().(*net.TCPAddr).Port
	begun := make(chan struct{})
	close(begun)
	e := &engine{Running: endless{l: l}, ports: []int{port}, started: begun, ended: make(chan struct{}), hurry: make(chan struct{}), run: s.holder.work.Go}
	s.holder.engines[1] = e
	return s, h, port
}

// endless is a process that runs until it is stopped.
type endless struct {
	deploy.Running
	l net.Listener // it listens no more then
}

func (endless) Exited() <-chan struct{} { return nil }

func (e endless) Stop(time.Duration, <-chan struct{}) error {
	_ = e.l.Close()
	return nil
}

func through(t *testing.T, h *hold, port int) *net.TCPConn {
	t.Helper()
	f, err := forward(h, 1, port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.close)
	c, err := net.Dial("tcp", strings.TrimPrefix(f.url(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn)
}

// TestStream: what goes in comes out, in both directions at once, and the end of one direction is its end.
func TestStream(t *testing.T) {
	_, h, port := listening(t, func(c net.Conn) {
		defer c.Close()
		_, _ = io.Copy(c, c)
	})
	c := through(t, h, port)
	sent := bytes.Repeat([]byte("0123456789abcdef"), 3<<20>>4)
	var wait sync.WaitGroup
	wait.Go(func() {
		_, _ = c.Write(sent)
		_ = c.CloseWrite()
	})
	got, err := io.ReadAll(c)
	wait.Wait()
	if err != nil || sha256.Sum256(got) != sha256.Sum256(sent) {
		t.Errorf("%d of %d bytes came back, %v", len(got), len(sent), err)
	}
}

// TestBackpressure: who does not read keeps the engine waiting, and nothing piles up between.
func TestBackpressure(t *testing.T) {
	var written atomic.Int64
	stuck := make(chan struct{})
	_, h, port := listening(t, func(c net.Conn) {
		defer c.Close()
		_ = c.(*net.TCPConn).SetWriteBuffer(64 << 10)
		b := make([]byte, 64<<10)
		for {
			_ = c.SetWriteDeadline(time.Now().Add(2 * time.Second))
			n, err := c.Write(b)
			written.Add(int64(n))
			if err != nil {
				close(stuck)
				return
			}
		}
	})
	c := through(t, h, port)
	_ = c.SetReadBuffer(64 << 10)
	<-stuck
	if n := written.Load(); n > 64<<20 {
		t.Errorf("%d MiB were taken of an engine that nobody reads", n>>20)
	}
}

// TestOnlyOwnPorts: a connection leads to an engine's own ports, and nowhere else.
func TestOnlyOwnPorts(t *testing.T) {
	s, h, port := listening(t, func(c net.Conn) { c.Close() })
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for what, o := range map[string]openOrder{
		"another port":       {1, 1, other.Addr().(*net.TCPAddr).Port},
		"no engine":          {2, 7, port},
		"a port of nobody's": {3, 1, 22},
	} {
		if _, err := once[struct{}](t.Context(), h, wordOpen, o); err == nil {
			t.Errorf("%s: a connection was made", what)
		}
	}
	s.holder.mu.Lock()
	defer s.holder.mu.Unlock()
	if len(s.holder.streams) > 0 {
		t.Errorf("%d connections are there", len(s.holder.streams))
	}
}

// TestRefusedThere: a port on which nothing listens yet is refused here too, so that who waits for it asks again.
func TestRefusedThere(t *testing.T) {
	_, h, port := listening(t, func(c net.Conn) { c.Close() })
	free := deploytest.UnusedPorts(t, 1)
	_ = port
	f, err := forward(h, 1, free)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.close)
	c, err := net.Dial("tcp", strings.TrimPrefix(f.url(), "http://"))
	if err != nil {
		return // refused before the dialer was through
	}
	defer c.Close()
	if n, err := c.Read(make([]byte, 1)); err == nil || n > 0 {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// TestHolderGone: connections end with their holder.
func TestHolderGone(t *testing.T) {
	s, h, port := listening(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c); c.Close() })
	c := through(t, h, port)
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	s.release(nil, context.Canceled)
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("a connection goes on without its holder")
	}
}
