package openai

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"perflab/internal/result"
	"perflab/internal/workload"
)

// behaviour is what a request asks the server of TestStress to do with it, by
// a word in its prompt, and what must come of the call.
type behaviour struct {
	word   string
	do     func(c net.Conn, r *rand.Rand, body io.Reader) (keep bool)
	class  result.Class
	or     result.Class // as well
	chunks int          // at least
	err    string       // within the error of a call that failed
	large  bool         // the request is more than a socket takes
	cancel bool         // the caller gives up after a moment
}

// behaviours of a server under which every call still has one right end, or two.
func behaviours() []behaviour {
	answer := okHead + chunked(word("a")) + chunked(word("b")+done) + last
	play := func(keep bool, text string) func(net.Conn, *rand.Rand, io.Reader) bool {
		return func(c net.Conn, r *rand.Rand, body io.Reader) bool {
			io.Copy(io.Discard, body)
			for rest := text; len(rest) > 0; { // cut anywhere
				n := 1 + r.IntN(len(rest))
				io.WriteString(c, rest[:n])
				rest = rest[n:]
			}
			return keep
		}
	}
	reset := func(text string) func(net.Conn, *rand.Rand, io.Reader) bool {
		return func(c net.Conn, r *rand.Rand, body io.Reader) bool {
			play(false, text)(c, r, body)
			c.(*net.TCPConn).SetLinger(0)
			return false
		}
	}
	hang := func(text string) func(net.Conn, *rand.Rand, io.Reader) bool {
		return func(c net.Conn, r *rand.Rand, body io.Reader) bool {
			play(true, text)(c, r, body)
			io.Copy(io.Discard, c)
			return false
		}
	}
	return []behaviour{
		{word: "answers", do: play(true, answer), chunks: 2},
		{word: "answers-large", do: play(true, answer), chunks: 2, large: true},
		{word: "closes-behind", do: play(false, answer), chunks: 2},
		{word: "closes-later", chunks: 2, do: func(c net.Conn, r *rand.Rand, body io.Reader) bool {
			play(true, answer)(c, r, body)
			time.Sleep(time.Duration(r.IntN(5)) * ms)
			return false
		}},
		{word: "early", chunks: 2, large: true, do: func(c net.Conn, r *rand.Rand, body io.Reader) bool {
			io.WriteString(c, answer)
			io.Copy(io.Discard, body)
			return true
		}},
		{word: "refuses", do: play(true, sized("429 Too Many Requests", "slow down")), class: result.HTTPStatus, err: "429 Too Many Requests: slow down"},
		{word: "cuts", do: play(false, okHead+chunked(word("a"))), class: result.EarlyClose, err: "broke after 1 tokens", chunks: 1},
		{word: "resets", do: reset(okHead), class: result.EarlyClose, or: result.Connect}, // a reset throws away what was not read
		{word: "breaks", do: reset(""), class: result.Connect, err: "no answer from"},
		{word: "stalls", do: hang(okHead + chunked(word("a"))), class: result.Cancelled, cancel: true},
		{word: "silent", do: hang(""), class: result.Cancelled, cancel: true, large: true},
		{word: "races", do: play(true, answer), class: result.OK, or: result.Cancelled, cancel: true},
	}
}

// stressServer does what each request asks for. An idle connection it closes
// now and then.
func stressServer(t *testing.T, seed uint64) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	all := behaviours()
	serve := func(c net.Conn, r *rand.Rand) {
		defer c.Close()
		in := bufio.NewReader(c)
		for n := 0; ; n++ {
			if n > 0 && r.IntN(4) == 0 { // a new one it serves
				c.SetReadDeadline(time.Now().Add(time.Duration(r.IntN(10)) * ms))
			}
			if _, err := in.Peek(1); err != nil {
				return
			}
			c.SetReadDeadline(time.Time{})
			req, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			head := make([]byte, 200)
			read, _ := io.ReadFull(req.Body, head)
			for _, b := range all {
				if strings.Contains(string(head[:read]), b.word+" ") && !b.do(c, r, req.Body) {
					return
				}
			}
		}
	}
	var conns sync.WaitGroup
	conns.Go(func() {
		for n := uint64(0); ; n++ {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			conns.Go(func() { serve(c, rand.New(rand.NewPCG(seed, n))) })
		}
	})
	t.Cleanup(func() { ln.Close(); conns.Wait() })
	return "http://" + ln.Addr().String()
}

// TestStress: whatever a server does to hundreds of calls at once, each ends
// once, in its right class, and nothing is left open.
func TestStress(t *testing.T) {
	const callers, each = 120, 5
	for _, standard := range []bool{false, true} {
		t.Run(fmt.Sprintf("standard %v", standard), func(t *testing.T) {
			const seed = 7
			goroutines, files := runtime.NumGoroutine(), descriptors()
			url := stressServer(t, seed)
			c, err := New(Config{BaseURL: url, Backend: BackendChat, Standard: standard, Concurrency: callers})
			if err != nil {
				t.Fatal(err)
			}
			all, start := behaviours(), time.Now().Add(-time.Hour) // late in a run
			var wg sync.WaitGroup
			var ended atomic.Int64
			for i := range callers {
				wg.Go(func() {
					r := rand.New(rand.NewPCG(seed, uint64(i)))
					for range each {
						b := all[r.IntN(len(all))]
						if b.large && standard {
							continue // net/http may drop an answer that comes before the request is written
						}
						b.check(t, b.call(t, c, start, r))
						ended.Add(1)
					}
				})
			}
			wg.Wait()
			t.Logf("%d calls", ended.Load())
			c.Close()
			for deadline := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > goroutines+1 || descriptors() > files+1; time.Sleep(ms) { // the listener's
				if time.Now().After(deadline) {
					t.Fatalf("%d goroutines and %d descriptors, before %d and %d", runtime.NumGoroutine(), descriptors(), goroutines, files)
				}
			}
		})
	}
}

// descriptors is how many files are open; 0 where the system does not tell.
func descriptors() int {
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(all)
}

func (b behaviour) call(t *testing.T, c *Client, start time.Time, r *rand.Rand) result.Call {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if b.cancel {
		defer time.AfterFunc(time.Duration(r.IntN(20))*ms, cancel).Stop()
	}
	prompt := b.word + " "
	if b.large {
		prompt += strings.Repeat("x", 1<<20)
	}
	return c.Send(ctx, start, workload.Request{Prompt: prompt})
}

func (b behaviour) check(t *testing.T, got result.Call) {
	t.Helper()
	switch {
	case got.Class != b.class && (b.or == b.class || got.Class != b.or):
		t.Errorf("%s: class %q, want %q: %s (%+v, sent at %v, ended at %v)", b.word, got.Class, b.class, got.Error, got.Conn, got.Sent, got.End)
	case got.Class == b.class && !strings.Contains(got.Error, b.err):
		t.Errorf("%s: error %q, want %q in it", b.word, got.Error, b.err)
	case len(got.Chunks) < b.chunks:
		t.Errorf("%s: %d chunks", b.word, len(got.Chunks))
	case got.Sent < time.Hour:
		t.Errorf("%s: sent at %v, %v before the start of the test", b.word, got.Sent, time.Hour-got.Sent)
	}
	checkStamps(t, got)
}
