package wire

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// piece is what one call of Body brought.
type piece struct {
	text string
	at   Stamp
}

// pieces is a sink that gives what comes to a function.
type pieces func(piece) bool

func (pieces) Head(int, http.Header, Stamp) {}

func (f pieces) Body(p []byte, at Stamp) bool { return f(piece{string(p), at}) }

// oneLoop is a transport whose connections share one loop.
func oneLoop(t *testing.T, cfg Config) *Transport {
	t.Helper()
	tr := New(cfg)
	t.Cleanup(tr.Close)
	tr.fast.spread = 1
	return tr
}

// streams gives the connection of each request, behind the head of its answer,
// to the test, and keeps it until the test ends.
func streams(t *testing.T, tr func(Config) *Transport) (start func(Sink) net.Conn) {
	t.Helper()
	conns := make(chan net.Conn)
	over := make(chan struct{})
	u := listen(t, func(c net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
			return
		}
		io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		conns <- c
		<-over
	})
	transport := tr(Config{URL: u})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	t.Cleanup(func() { cancel(); wg.Wait(); close(over) })
	return func(s Sink) net.Conn {
		wg.Go(func() { transport.Do(ctx, &Exchange{Start: origin, Sink: s}) })
		return <-conns
	}
}

// origin is the start of the exchanges of these tests.
var origin = time.Now()

func chunk(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }

// TestHeldUp: a loop that was held up finds two messages on a socket. Each has
// the stamp of its own packet, or the first one a span in which it came.
func TestHeldUp(t *testing.T) {
	start := streams(t, func(cfg Config) *Transport { return oneLoop(t, cfg) })
	holding, release := make(chan struct{}), make(chan struct{})
	holder := start(pieces(func(piece) bool { holding <- struct{}{}; <-release; return true }))
	came := make(chan piece, 8)
	c := start(pieces(func(p piece) bool { came <- p; return true }))
	for range 40 { // beyond those that the kernel acknowledges at once, after which it joins what follows
		io.WriteString(c, chunk("ready"))
		<-came
	}
	const slack = time.Millisecond // of two clocks
	apart := 0
	for range 5 {
		io.WriteString(c, chunk("ready"))
		<-came
		looked := time.Since(origin)
		io.WriteString(holder, chunk("hold"))
		<-holding
		first := time.Since(origin)
		io.WriteString(c, chunk("one"))
		for time.Since(origin) < first+20*time.Millisecond { // the truth: at least so long before the second
		}
		second := time.Since(origin)
		io.WriteString(c, chunk("two"))
		release <- struct{}{}
		p, q := <-came, <-came
		if p.text != "one" || q.text != "two" {
			t.Fatalf("%q, then %q", p.text, q.text)
		}
		switch early := p.at.At - p.at.Span; {
		case early > first+slack || early < looked-100*time.Millisecond || q.at.At < second-slack:
			t.Errorf("one came at %v after %v, as the loop says between %v and %v; two at %v, it says %v", first, looked, early, p.at.At, second, q.at.At)
		case p.at.At < second-slack && q.at.Read > p.at.Read:
			apart++
		}
	}
	if apart == 0 && haveKernelStamps() {
		t.Error("no message has the stamp of its own packet")
	}
}

// TestSpanTogether: messages that the server sent together are known to have
// come together, however long it was silent before.
func TestSpanTogether(t *testing.T) {
	start := streams(t, func(cfg Config) *Transport { return oneLoop(t, cfg) })
	came := make(chan piece, 8)
	c := start(pieces(func(p piece) bool { came <- p; return true }))
	least := time.Hour
	for range 50 { // a machine with other work to do may hold up some
		for from := time.Now(); time.Since(from) < 10*time.Millisecond; time.Sleep(time.Millisecond) {
		}
		io.WriteString(c, chunk("one")+chunk("two"))
		p, q := <-came, <-came
		if p.text != "one" || q.at.Read != p.at.Read {
			t.Fatalf("%+v, then %+v", p, q)
		}
		if least = min(least, p.at.Span); least < 2*time.Millisecond {
			return
		}
	}
	t.Errorf("two messages that came together may have come %v apart", least)
}

// flooding answers "flood" without an end, and other requests with short.
func flooding(c net.Conn) {
	text := strings.Repeat(chunk(strings.Repeat("x", 200)), 1000)
	for r := bufio.NewReader(c); ; {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		if body, err := io.ReadAll(req.Body); err != nil || string(body) != "flood" {
			io.WriteString(c, short)
			continue
		}
		io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		for err == nil {
			_, err = io.WriteString(c, text)
		}
		return
	}
}

// TestEndless: a server that never stops sending holds up neither the other
// exchanges of its loop nor those who give its own up.
func TestEndless(t *testing.T) {
	for _, standard := range []bool{false, true} {
		t.Run(fmt.Sprintf("standard %v", standard), func(t *testing.T) {
			tr := New(Config{URL: listen(t, flooding), Standard: standard})
			defer tr.Close()
			if !standard {
				tr.fast.spread = 1
			}
			const floods = 2
			cause := errors.New("enough")
			ctx, cancel := context.WithCancelCause(t.Context())
			done := make(chan error, floods)
			for range floods {
				began := make(chan struct{})
				once := sync.OnceFunc(func() { close(began) })
				slow := pieces(func(piece) bool {
					once()
					for from := time.Now(); time.Since(from) < 3*time.Microsecond; { // it comes faster
					}
					return true
				})
				go func() { done <- tr.Do(ctx, &Exchange{Start: origin, Body: []byte("flood"), Sink: slow}) }()
				<-began
			}
			for i := range 10 {
				limited, stop := context.WithTimeout(t.Context(), 10*time.Second)
				if err := tr.Do(limited, &Exchange{Start: origin, Sink: new(kept)}); err != nil {
					t.Fatalf("exchange %d beside them: %v", i, err)
				}
				stop()
			}
			cancel(cause)
			for range floods {
				select {
				case err := <-done:
					if err != cause {
						t.Errorf("it ends with %v", err)
					}
				case <-time.After(10 * time.Second):
					t.Fatal("an answer without an end cannot be given up")
				}
			}
		})
	}
}

// TestTurn: a socket that is full again whenever it was read gets one read a
// turn, and is read on in the next.
func TestTurn(t *testing.T) {
	c, peer := still(t)
	fill := func() {
		for err := error(nil); err == nil; {
			_, err = unix.Write(int(peer.Fd()), bytes.Repeat([]byte("x"), 1<<10))
		}
	}
	unix.SetNonblock(int(peer.Fd()), true)
	x := Exchange{Start: time.Now()}
	x.Sink = pieces(func(piece) bool { fill(); return x.Reads < 10 })
	if _, err := c.send(&x, nil); err != nil {
		t.Fatal(err)
	}
	io.WriteString(peer, "HTTP/1.1 200 OK\r\n\r\n")
	fill()
	c.ready(unix.EPOLLIN)
	if again := c.loop.again; x.Reads != 1 || len(again) != 1 || again[0] != c {
		t.Fatalf("%d reads in a turn, %d sockets to be read on", x.Reads, len(again))
	}
	c.ready(unix.EPOLLIN) // what comes meanwhile is reported
	c.loop.turn(nil, nil)
	if again := c.loop.again; x.Reads != 2 || len(again) != 1 || again[0] != c {
		t.Errorf("%d reads in two turns, %d sockets to be read on", x.Reads, len(again))
	}
}

// TestOnePacket: what has the stamp of the read before counts as that read.
func TestOnePacket(t *testing.T) {
	c, _ := still(t)
	x := Exchange{Start: time.Now(), Sink: nothing{}}
	if _, err := c.send(&x, nil); err != nil {
		t.Fatal(err)
	}
	at := func(d time.Duration) int64 { return x.Start.Add(d).UnixNano() }
	time.Sleep(10 * time.Millisecond)
	c.loop.tick()
	one, more := c.stamp(at(5*time.Millisecond), 0), c.stamp(at(5*time.Millisecond), 0)
	other, none := c.stamp(at(6*time.Millisecond), 0), c.stamp(0, 0)
	if more != one || other.Read == one.Read || none.Read == other.Read || x.Reads != 4 || x.Coarse != 1 {
		t.Errorf("%v, %v, %v, %v of %d reads, %d of them coarse", one, more, other, none, x.Reads, x.Coarse)
	}
	if early := one.At - one.Span; early > x.Sent || other.Span > other.At-one.At {
		t.Errorf("sent at %v; the first may have come from %v on, the other %v before %v", x.Sent, early, other.Span, other.At)
	}
}

// TestLateReset: that a server broke the connection is known as well when the
// loop comes late.
func TestLateReset(t *testing.T) {
	for _, late := range []time.Duration{0, time.Second} {
		c, peer := still(t)
		x := Exchange{Start: time.Now(), Body: []byte("unread, so that closing is a reset"), Sink: nothing{}}
		done, err := c.send(&x, nil)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(peer, "HTTP/1.1 200 OK\r\n\r\n")
		c.ready(unix.EPOLLIN)
		peer.Close()
		c.loop.at += late
		c.ready(unix.EPOLLIN | unix.EPOLLHUP)
		if err := <-done; !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%v late: it ends with %v", late, err)
		}
	}
}

// TestSleep: a loop that has nothing to do stops its beats, and goes on with
// the next exchange.
func TestSleep(t *testing.T) {
	tr := oneLoop(t, Config{URL: listen(t, each(short))})
	for range 2 {
		if err := tr.Do(t.Context(), &Exchange{Start: time.Now(), Sink: new(kept)}); err != nil {
			t.Fatal(err)
		}
		l := tr.fast.loops[0]
		if l.asleep.Load() {
			t.Error("it sleeps right behind an exchange")
		}
		eventually(t, "the loop goes on without an exchange", l.asleep.Load)
	}
}
