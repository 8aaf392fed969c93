package truth

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const ms = time.Millisecond

// servers are both kinds; elsewhere than on Linux they are the same.
var servers = map[string]func(context.Context, *net.TCPListener, *book) error{
	"fast":     serveFast,
	"portable": func(ctx context.Context, l *net.TCPListener, b *book) error { return servePortable(ctx, l, b) },
}

// start runs a server until the test ends.
func start(t *testing.T, serve func(context.Context, *net.TCPListener, *book) error, p Params) Remote {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b, err := newBook(p)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := serve(ctx, l.(*net.TCPListener), b); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	return Remote{"http://" + l.Addr().String()}
}

var stampOf = regexp.MustCompile(`"(?:content|text)":"([0-9]{19})"`)

// ask sends a request and returns the stamps in its answer and the answer.
func ask(t *testing.T, c *http.Client, r Remote, path string, id int) ([]int64, string) {
	t.Helper()
	resp, err := c.Post(r.URL+path, "application/json", strings.NewReader(`{"prompt":"`+Prompt(id)+`"}`))
	if err != nil {
		t.Error(err)
		return nil, ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("%v, %s", err, resp.Status)
	}
	var out []int64
	for _, m := range stampOf.FindAllStringSubmatch(string(text), -1) {
		n, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil {
			t.Error(err)
		}
		out = append(out, n)
	}
	return out, string(text)
}

// TestTruth: what the server says it sent is what came, and none of it early.
func TestTruth(t *testing.T) {
	for name, serve := range servers {
		for shape, p := range map[string]Params{
			"own pace":   {TTFT: 20 * ms, ITL: 2 * ms, Tokens: 10},
			"merged":     {TTFT: 5 * ms, ITL: 3 * ms, Tokens: 10, Merge: 4, Bytes: 400},
			"in step":    {TTFT: 5 * ms, ITL: 5 * ms, Tokens: 5, Slots: 1},
			"gate":       {TTFT: 30 * ms, ITL: 4 * ms, Tokens: 5, Slots: 4, Gate: 6},
			"at once":    {Tokens: 50},
			"large":      {ITL: ms, Tokens: 3, Bytes: 5000, NoRole: true},
			"one":        {TTFT: ms, Tokens: 1},
			"odd finish": {ITL: ms, Tokens: 5, Merge: 2},
		} {
			t.Run(name+"/"+shape, func(t *testing.T) {
				r := start(t, serve, Params{Tokens: 1})
				if err := r.Set(t.Context(), p); err != nil {
					t.Fatal(err)
				}
				const n = 6
				got := make([][]int64, n)
				var wg sync.WaitGroup
				for i := range n {
					wg.Go(func() { got[i], _ = ask(t, http.DefaultClient, r, "/v1/chat/completions", i) })
				}
				wg.Wait()
				truth, err := r.Truth(t.Context(), true)
				if err != nil {
					t.Fatal(err)
				}
				checkTruth(t, p.withDefaults(), truth, got)
			})
		}
	}
}

// checkTruth compares the record with the stamps that n clients found.
func checkTruth(t *testing.T, p Params, truth Truth, got [][]int64) {
	t.Helper()
	if d := cmp.Diff(p, truth.Params); d != "" {
		t.Errorf("parameters: -want +got:\n%s", d)
	}
	if len(truth.Requests) != len(got) || truth.Sends != len(got)*p.sends() || truth.Blocked != 0 {
		t.Fatalf("%d requests, %d sends, %d blocked", len(truth.Requests), truth.Sends, truth.Blocked)
	}
	last := int64(0)
	for _, q := range truth.Requests {
		last = max(last, q.Received)
	}
	for _, q := range truth.Requests {
		var want []int64
		for k := range p.Tokens {
			want = append(want, q.Sends[k/p.Merge])
		}
		if d := cmp.Diff(want, got[q.ID]); d != "" {
			t.Errorf("request %d: -recorded +came:\n%s", q.ID, d)
		}
		if q.Events != p.Tokens || q.First != q.Sends[0] || q.Last != q.Sends[len(q.Sends)-1] || !slices.IsSorted(q.Sends) {
			t.Errorf("request %d: %+v", q.ID, q)
		}
		from := q.Received
		if p.Gate > 0 {
			from = last
		}
		// The two clocks are read one after the other.
		if early := from + int64(p.TTFT) - q.First; early > int64(20*time.Microsecond) {
			t.Errorf("request %d: the first event was sent %v early", q.ID, time.Duration(early))
		}
	}
	if truth.LateMax < 0 || truth.LateP50 > truth.LateP99 || truth.LateP99 > truth.LateMax {
		t.Errorf("late by %v, %v, %v", truth.LateP50, truth.LateP99, truth.LateMax)
	}
}

// TestSchedule: the k-th stream gets the k-th part of the interval, on the
// first round that is not before its earliest instant.
func TestSchedule(t *testing.T) {
	b, err := newBook(Params{ITL: 40, Tokens: 3, Slots: 4})
	if err != nil {
		t.Fatal(err)
	}
	b.origin = 1000
	for k, tt := range []struct{ earliest, due int64 }{
		{1000, 1000}, {1000, 1010}, {1000, 1020}, {1000, 1030}, // one round
		{1001, 1040}, {1011, 1050}, {1020, 1020}, {0, 1030},
		{5000, 5000}, {5011, 5050},
	} {
		r := &record{itl: 40}
		if b.schedule(r, tt.earliest); r.due != tt.due {
			t.Errorf("stream %d, earliest %d: due %d, want %d", k, tt.earliest, r.due, tt.due)
		}
		if r.sent(1, 1); r.next() != tt.due+40 {
			t.Errorf("stream %d: second due %d", k, r.next())
		}
	}
}

// TestEvent: an event has the size asked for, or the least there is.
func TestEvent(t *testing.T) {
	for _, size := range []int{1, 200, DefaultBytes, 266, 267, 268, 269, 270, 271, 272, 273, 4000, 4110, 4111, 4112, 4113} {
		for _, chat := range []bool{true, false} {
			g := newPage(Params{Bytes: size, Tokens: 1, Merge: 1, Pack: 1}, chat)
			if len(g.event) < size || len(g.event) > max(size, 230)+2 {
				t.Errorf("%d bytes asked for, %d made", size, len(g.event))
			}
			length, rest, _ := strings.Cut(string(g.event), "\r\n")
			if n, err := strconv.ParseInt(length, 16, 64); err != nil || int(n) != len(rest)-2 {
				t.Errorf("%q before %d bytes", length, len(rest)-2)
			}
			putStamp(g.event[g.stamp:], 1764000000123456789)
			if m := stampOf.FindSubmatch(g.event); m == nil || string(m[1]) != "1764000000123456789" {
				t.Errorf("no stamp in %s", g.event)
			}
		}
	}
}

// TestAnswers: keep-alive over every path, and what is refused.
func TestAnswers(t *testing.T) {
	for name, serve := range servers {
		t.Run(name, func(t *testing.T) {
			r := start(t, serve, Params{Tokens: 2})
			dials := 0
			c := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				dials++
				return new(net.Dialer).DialContext(ctx, network, addr)
			}}}
			defer c.CloseIdleConnections()
			for _, tt := range []struct {
				method, path, body string
				status             int
				want               string
			}{
				{"GET", "/health", "", 200, `^$`},
				{"GET", "/v1/models", "", 200, `"id":"truth"`},
				{"POST", "/v1/completions", `{"prompt":"truth-id:7"}`, 200, `(?s)"text":"1[0-9]{18}".*"text":"1[0-9]{18}".*"finish_reason":"length".*"completion_tokens":2.*\[DONE\]`},
				{"POST", "/v1/chat/completions", "{}", 200, `(?s)"role":"assistant".*"content":"1[0-9]{18}"`},
				{"GET", "/truth", "", 200, `"id":7,.*"id":-1,.*"sends":4`},
				{"POST", "/truth", `{"tokens":0}`, 400, "0 tokens a stream: between 1 and"},
				{"POST", "/truth", `{"tokens":1,"slots":1}`, 400, "slots divide"},
				{"POST", "/truth", `{"tokens":2,"pack":257}`, 400, "257 tokens in one event"},
				{"POST", "/truth", `{"colour":1}`, 400, "colour"},
				{"GET", "/v1/chat/completions", "", 404, "has no GET"},
				{"POST", "/truth", `{"tokens":1,"no_role":true}`, 200, "^$"},
				{"POST", "/v1/chat/completions", "{}", 200, `^data: [^\n]*"content":"1`},
				{"POST", "/truth", `{"tokens":3,"pack":2,"bytes":300}`, 200, "^$"},
				{"POST", "/v1/completions", "{}", 200, `(?s)^(data: [^\n]*"text":"1[0-9]{18}x{19}"[^\n]*\n\n){3}.*"completion_tokens":6`},
				{"POST", "/truth", `{"tokens":3,"pack":2,"alone":true}`, 200, "^$"},
				{"POST", "/v1/chat/completions", "{}", 200, `(?s)"content":"1[0-9]{18}"[^\n]*\n\n(data: [^\n]*"content":"1[0-9]{18}x{19}"[^\n]*\n\n){2}.*"completion_tokens":5`},
			} {
				req, err := http.NewRequestWithContext(t.Context(), tt.method, r.URL+tt.path, strings.NewReader(tt.body))
				if err != nil {
					t.Fatal(err)
				}
				resp, err := c.Do(req)
				if err != nil {
					t.Fatal(tt.path, err)
				}
				text, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || resp.StatusCode != tt.status || !regexp.MustCompile(tt.want).Match(text) {
					t.Errorf("%s %s: %v, %d: %s", tt.method, tt.path, err, resp.StatusCode, text)
				}
			}
			if dials != 1 {
				t.Errorf("%d connections", dials)
			}
		})
	}
}

// TestPieces: a request may come byte by byte, and one that cannot be read is
// answered and ends the connection.
func TestPieces(t *testing.T) {
	for name, serve := range servers {
		t.Run(name, func(t *testing.T) {
			r := start(t, serve, Params{Tokens: 1})
			c, err := net.Dial("tcp", strings.TrimPrefix(r.URL, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			for _, b := range []byte("POST /v1/completions HTTP/1.1\r\nX-Request-ID: 5\r\ncontent-length: 4\r\n\r\nbody") {
				if _, err := c.Write([]byte{b}); err != nil {
					t.Fatal(err)
				}
			}
			in := bufio.NewReader(c)
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(resp.Body)
			if err != nil || !stampOf.Match(text) {
				t.Errorf("%v, %s", err, text)
			}
			if truth, err := r.Truth(t.Context(), false); err != nil || len(truth.Requests) != 1 || truth.Requests[0].ID != 5 || truth.Requests[0].Sends != nil {
				t.Errorf("%v, %+v", err, truth)
			}
			fmt.Fprint(c, "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n")
			if resp, err := http.ReadResponse(in, nil); err != nil || resp.StatusCode != http.StatusBadRequest {
				t.Errorf("%v, %v", resp, err)
			} else if _, err := io.ReadAll(resp.Body); err != nil {
				t.Error(err)
			}
			if _, err := in.ReadByte(); err != io.EOF {
				t.Errorf("the connection is still open: %v", err)
			}
		})
	}
}

// TestSlowReader: a client that does not read holds up its own stream alone,
// and gets all of it in the end.
func TestSlowReader(t *testing.T) {
	for name, serve := range servers {
		t.Run(name, func(t *testing.T) {
			const tokens = 4000
			r := start(t, serve, Params{Tokens: tokens, Bytes: 4000})
			resp, err := http.Post(r.URL+"/v1/completions", "application/json", strings.NewReader(Prompt(1)))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if got, _ := ask(t, http.DefaultClient, r, "/v1/completions", 2); len(got) != tokens {
				t.Errorf("the other stream has %d events", len(got))
			}
			text, err := io.ReadAll(resp.Body)
			if n := len(stampOf.FindAll(text, -1)); err != nil || n != tokens {
				t.Errorf("%d events, %v", n, err)
			}
			if truth, err := r.Truth(t.Context(), false); err != nil || truth.Requests[0].Events != tokens || name == "fast" && fastHere && truth.Blocked == 0 {
				t.Errorf("%v, %+v", err, truth)
			}
		})
	}
}

// TestGone: a client that goes away ends its stream, and the gate that it
// waited at can be given up.
func TestGone(t *testing.T) {
	for name, serve := range servers {
		t.Run(name, func(t *testing.T) {
			r := start(t, serve, Params{Tokens: 1000, ITL: ms})
			ctx, cancel := context.WithCancel(t.Context())
			req, err := http.NewRequestWithContext(ctx, "POST", r.URL+"/v1/completions", strings.NewReader(Prompt(1)))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := resp.Body.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			cancel()
			resp.Body.Close()
			if err := r.Set(t.Context(), Params{Tokens: 1, Gate: 2}); err != nil {
				t.Fatal(err)
			}
			waits, err := http.Post(r.URL+"/v1/completions", "application/json", strings.NewReader(Prompt(2)))
			if err != nil {
				t.Fatal(err)
			}
			defer waits.Body.Close()
			if err := r.Set(t.Context(), Params{Tokens: 1}); err != nil {
				t.Fatal(err)
			}
			if text, err := io.ReadAll(waits.Body); err == nil {
				t.Errorf("an answer without an end ended well: %q", text)
			}
			if got, _ := ask(t, http.DefaultClient, r, "/v1/completions", 3); len(got) != 1 {
				t.Errorf("%d events", len(got))
			}
		})
	}
}

// TestStreamOutlivesItsParameters: a stream that has its due time already ends
// as it began when the parameters change, whoever comes through the new gate.
func TestStreamOutlivesItsParameters(t *testing.T) {
	for name, serve := range servers {
		t.Run(name, func(t *testing.T) {
			r := start(t, serve, Params{TTFT: 200 * ms, ITL: ms, Tokens: 3})
			before, err := http.Post(r.URL+"/v1/completions", "application/json", strings.NewReader(Prompt(1)))
			if err != nil {
				t.Fatal(err)
			}
			defer before.Body.Close()
			if err := r.Set(t.Context(), Params{Tokens: 2, Gate: 2}); err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			for id := range 2 {
				wg.Go(func() {
					if got, _ := ask(t, http.DefaultClient, r, "/v1/completions", 2+id); len(got) != 2 {
						t.Errorf("a stream behind the gate has %d events", len(got))
					}
				})
			}
			wg.Wait()
			text, err := io.ReadAll(before.Body)
			if n := len(stampOf.FindAll(text, -1)); err != nil || n != 3 {
				t.Errorf("the stream before has %d events, %v", n, err)
			}
			if got, _ := ask(t, http.DefaultClient, r, "/v1/completions", 4); len(got) != 2 {
				t.Errorf("%d events", len(got))
			}
		})
	}
}

// TestKernelStamps: on Linux a request's time is the kernel's, also that of the
// first one on a connection.
func TestKernelStamps(t *testing.T) {
	if !fastHere {
		t.Skip("there are no kernel stamps on this system")
	}
	r := start(t, serveFast, Params{Tokens: 1})
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	var truth Truth
	var before int64
	// The kernel begins to stamp a moment after a socket asks for it.
	for begin := time.Now(); !truth.Stamped; {
		if err := r.Set(t.Context(), Params{Tokens: 1}); err != nil || time.Since(begin) > 10*time.Second {
			t.Fatalf("no stamp after 10 s (%v)", err)
		}
		before = time.Now().UnixNano()
		ask(t, c, r, "/v1/completions", 1)
		var err error
		if truth, err = r.Truth(t.Context(), false); err != nil {
			t.Fatal(err)
		}
	}
	if q := truth.Requests[0]; q.Received < before || q.Received > q.First {
		t.Errorf("received %d, between %d and %d?", q.Received, before, q.First)
	}
}

// TestMainProcess: the server's process says where it listens and ends with
// its standard input.
func TestMainProcess(t *testing.T) {
	in, hold := io.Pipe()
	said, out := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- Main(t.Context(), in, out, Params{Tokens: 1}) }()
	line, err := bufio.NewReader(said).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	r := Remote{strings.TrimSpace(line)}
	if got, _ := ask(t, http.DefaultClient, r, "/v1/completions", 1); len(got) != 1 {
		t.Errorf("%d events", len(got))
	}
	hold.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := r.Truth(t.Context(), false); err == nil {
		t.Error("it still answers")
	}
}

func FuzzParseRequest(f *testing.F) {
	f.Add([]byte("POST /v1/completions?a=b HTTP/1.1\r\nContent-Length: 13\r\n\r\ntruth-id:12 xGET"))
	f.Add([]byte("GET /truth HTTP/1.1\r\nx-request-id: 3\r\n\r\n"))
	f.Add([]byte("GET /\r\n\r\n"))
	f.Add([]byte("GET / HTTP/1.1\r\ncontent-length: -1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseRequest(b)
		if err != nil || r.size == 0 {
			return
		}
		if r.size > len(b) || len(r.body) > r.size || r.id < -1 {
			t.Fatalf("%+v of %d bytes", r, len(b))
		}
		// No more and no fewer bytes are the same request.
		again, err := parseRequest(b[:r.size])
		if err != nil || again.size != r.size || again.id != r.id || again.path != r.path {
			t.Fatalf("%+v, then %+v, %v", r, again, err)
		}
		if short, err := parseRequest(b[:r.size-1]); err != nil || short.size != 0 {
			t.Fatalf("whole without its last byte: %+v, %v", short, err)
		}
	})
}
