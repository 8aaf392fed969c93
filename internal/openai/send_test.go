package openai

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"perflab/internal/result"
	"perflab/internal/workload"

	"github.com/google/go-cmp/cmp"
)

// pipes is a listener whose connections are in-memory pipes, so that a bubble's
// clock runs while both ends wait.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.closed:
		return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// bubble runs test against a server with the handler, under a fake clock.
func bubble(t *testing.T, cfg Config, h http.HandlerFunc, test func(t *testing.T, c *Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ln := newPipes()
		srv := &http.Server{Handler: h}
		go srv.Serve(ln)
		defer srv.Close()
		if cfg.BaseURL == "" {
			cfg.BaseURL = "http://engine.test"
		}
		cfg.Dial = ln.dial
		c, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		test(t, c)
		c.Close()
		srv.Close()
		time.Sleep(2 * time.Hour) // handlers that still wait get to their end
	})
}

// say writes the pieces with a flush after each; a time.Duration is a wait.
func say(w http.ResponseWriter, pieces ...any) {
	for _, p := range pieces {
		switch p := p.(type) {
		case time.Duration:
			time.Sleep(p)
		case string:
			io.WriteString(w, p)
			http.NewResponseController(w).Flush()
		}
	}
}

const ms = time.Millisecond

func word(s string) string {
	return fmt.Sprintf("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q},\"finish_reason\":null}]}\n\n", s)
}

const (
	role   = "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"
	finish = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
	done   = "data: [DONE]\n\n"
)

func usage(in, out int) string {
	return fmt.Sprintf("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d}}\n\n", in, out)
}

// TestOverlappingStreams: with hundreds of streams at once every stamp of every
// stream is exact.
func TestOverlappingStreams(t *testing.T) {
	const n, tokens, ttft, itl = 300, 20, 200 * ms, 10 * ms
	h := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		say(w, role, ttft)
		for i := range tokens {
			if i > 0 {
				time.Sleep(itl)
			}
			say(w, word("x"))
		}
		say(w, finish, usage(7, tokens), done)
	}
	bubble(t, Config{Backend: BackendChat, Model: "m"}, h, func(t *testing.T, c *Client) {
		start := time.Now()
		calls := make([]result.Call, n)
		var wg sync.WaitGroup
		for i := range calls {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * ms)
				calls[i] = c.Send(t.Context(), start, workload.Request{Prompt: "p", Output: tokens})
			})
		}
		wg.Wait()
		for i, got := range calls {
			sent := time.Duration(i) * ms
			want := result.Call{
				Sent: sent, Headers: sent, Answer: sent + ttft, End: sent + ttft + (tokens-1)*itl,
				Finish: "stop", Status: 200, Usage: &result.Usage{Prompt: 7, Completion: tokens},
			}
			for k := range time.Duration(tokens) {
				want.Chunks = append(want.Chunks, result.Chunk{At: sent + ttft + k*itl, Tokens: 1})
			}
			if d := cmp.Diff(want, seen(got)); d != "" {
				t.Fatalf("stream %d (-want +got):\n%s", i, d)
			}
		}
	})
}

// seen leaves out what depends on how bytes came, connection and reads, and
// what the tables of the dialects hold.
func seen(c result.Call) result.Call {
	c.UsageAt, c.Done, c.Empty = 0, 0, nil
	c.Conn, c.Wrote, c.First, c.Reads, c.Coarse = result.Conn{}, 0, 0, 0, 0
	c.FirstText, c.StreamText = 0, 0 // see TestTextOfChunks
	c.Chunks = slices.Clone(c.Chunks)
	for i := range c.Chunks {
		c.Chunks[i].Read = 0
	}
	return c
}

func chunks(at ...time.Duration) []result.Chunk {
	var out []result.Chunk
	for _, a := range at {
		out = append(out, result.Chunk{At: a, Tokens: 1})
	}
	return out
}

// raw answers with bytes of its own making and closes the connection.
func raw(pieces ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		for _, p := range pieces {
			io.WriteString(conn, p)
		}
	}
}

func says(pieces ...any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { say(w, pieces...) }
}

func chunked(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

func status(code int, header, value, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if header != "" {
			w.Header().Set(header, value)
		}
		w.WriteHeader(code)
		io.WriteString(w, body)
	}
}

func TestAwkwardServers(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	typed := func(kind string, pieces ...any) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind)
			say(w, pieces...)
		}
	}
	continuous := func(text string, n int) string {
		return fmt.Sprintf("data: {\"choices\":[{\"text\":%q}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":%d}}\n\n", text, n)
	}
	thinking := func(s string) string { return "data: {\"choices\":[{\"delta\":{\"thinking\":\"" + s + "\"}}]}\n\n" }
	for name, tt := range map[string]struct {
		h    http.HandlerFunc
		want result.Call
	}{
		"no usage": {says(word("a"), 5*ms, word("b"), finish, done),
			result.Call{Chunks: chunks(0, 5*ms), End: 5 * ms, Finish: "stop"}},
		"done without finish reason": {says(5*ms, word("a"), done), result.Call{Headers: 5 * ms, Chunks: chunks(5 * ms), Answer: 5 * ms, End: 5 * ms}},
		"finish reason without done": {says(word("a"), finish, 5*ms), result.Call{Chunks: chunks(0), End: 5 * ms, Finish: "stop"}},
		"done without a blank line":  {says(word("a"), "data: [DONE]"), result.Call{Chunks: chunks(0)}},
		"body held open after done":  {says(word("a"), 5*ms, done, time.Hour), result.Call{Chunks: chunks(0), End: 5 * ms}},
		"events after done":          {says(word("a"), done+word("b")+finish+"data: {\"error\":\"x\"}\n\n"), result.Call{Chunks: chunks(0)}},
		"event cut at every byte": {func(w http.ResponseWriter, r *http.Request) {
			for b := range strings.SplitSeq(word("a"), "") {
				say(w, b, ms)
			}
			say(w, done)
		}, result.Call{Chunks: chunks(time.Duration(len(word("a"))-1) * ms), Answer: time.Duration(len(word("a"))-1) * ms, End: time.Duration(len(word("a"))) * ms}},
		"two tokens in one read": {says(5*ms, word("a")+word("b"), 5*ms, word("c")+done), result.Call{Headers: 5 * ms, Chunks: chunks(5*ms, 5*ms, 10*ms), Answer: 5 * ms, End: 10 * ms}},
		"reasoning first": {says(5*ms, "data: {\"choices\":[{\"delta\":{\"reasoning\":\"h\"}}]}\n\n", 5*ms, word("a"), done),
			result.Call{Headers: 5 * ms, Chunks: chunks(5*ms, 10*ms), Answer: 10 * ms, End: 10 * ms}},
		"renamed field": {says(role, 5*ms, thinking("x"), 5*ms, thinking("x"), 5*ms, thinking("y"), word("a"), finish, done),
			result.Call{Chunks: chunks(5*ms, 10*ms, 15*ms, 15*ms), Answer: 15 * ms, End: 15 * ms, Finish: "stop", Field: "thinking"}},
		"renamed field between known ones": {says(word("a"), 5*ms, thinking("x"), 5*ms, word("b"), 5*ms, thinking("x"), done),
			result.Call{Chunks: chunks(0, 5*ms, 10*ms, 15*ms), End: 15 * ms, Field: "thinking"}},
		"unknown field once": {says(thinking("x"), 5*ms, word("a"), done), result.Call{Chunks: chunks(5 * ms), Answer: 5 * ms, End: 5 * ms}},
		"continuous usage": {says(continuous("", 0), 5*ms, continuous("ab", 2), 5*ms, continuous("c", 3), continuous("d", 3), 5*ms, continuous("ef", 6), usage(3, 6), done), result.Call{
			Chunks: []result.Chunk{{At: 5 * ms, Tokens: 2}, {At: 10 * ms, Tokens: 1}, {At: 10 * ms, Tokens: 1}, {At: 15 * ms, Tokens: 2}},
			Answer: 5 * ms, End: 15 * ms, Usage: &result.Usage{Prompt: 3, Completion: 6}}},
		"usage beyond all counts": {says(continuous("a", 1), continuous("b", 5_000_000_000), done), result.Call{Chunks: chunks(0, 0), Usage: &result.Usage{Prompt: 3, Completion: 1}}},
		"usage with the last token only": {says(word("a"), word("b"), continuous("c", 9), done),
			result.Call{Chunks: chunks(0, 0, 0), Usage: &result.Usage{Prompt: 3, Completion: 9}}},
		"usage twice": {says(word("a"), usage(1, 1), usage(1, 1), done), result.Call{Chunks: chunks(0), Usage: &result.Usage{Prompt: 1, Completion: 1}}},
		"one JSON answer": {typed("application/json", 5*ms, `{"choices":[{"message":{"content":"a b"},"finish_reason":"stop"}],`, 5*ms, `"usage":{"prompt_tokens":1,"completion_tokens":2}}`),
			result.Call{Headers: 5 * ms, Chunks: []result.Chunk{{At: 10 * ms, Tokens: 2}}, Answer: 10 * ms, End: 10 * ms, Finish: "stop", Usage: &result.Usage{Prompt: 1, Completion: 2}}},
		"error in a JSON answer": {typed("application/json", `{"object":"error","message":"no such model","type":"NotFoundError"}`),
			result.Call{Class: result.StreamError, Error: "NotFoundError: no such model"}},
		"cut JSON answer": {typed("application/json", `{"choices":[`), result.Call{Class: result.BadBody, Error: `the answer is not the API's JSON: {"choices":[`}},
		"HTML":            {typed("text/html", "<html>\n<h1>Hello</h1>"), result.Call{Class: result.BadBody, Error: "the answer is not the API's: <html> <h1>Hello</h1>"}},
		"plain text":      {typed("text/plain", "upstream is down"), result.Call{Class: result.BadBody, Error: "the answer is not the API's: upstream is down"}},
		"event that is not JSON": {says(word("a"), 5*ms, "data: oops\n\n", word("b"), done),
			result.Call{Chunks: chunks(0), End: 5 * ms, Class: result.BadBody, Error: "an event of the stream is not a JSON object: oops"}},
		"error in the stream": {says(word("a"), 5*ms, "data: {\"error\":{\"message\":\"out of memory\",\"type\":\"InternalServerError\",\"code\":500}}\n\n", done),
			result.Call{Chunks: chunks(0), End: 5 * ms, Class: result.StreamError, Error: "InternalServerError: out of memory"}},
		"error event":  {says("event: error\ndata: overloaded\n\n", done), result.Call{Class: result.StreamError, Error: "overloaded"}},
		"empty answer": {says(), result.Call{Class: result.EarlyClose, Error: "the stream ended after 0 tokens without [DONE] or a finish reason"}},
		"early close":  {says(word("a"), 5*ms), result.Call{Chunks: chunks(0), End: 5 * ms, Class: result.EarlyClose, Error: "the stream ended after 1 tokens without [DONE] or a finish reason"}},
		"pings and a close": {says(": ping\n\n", ": ping\n\n"),
			result.Call{Class: result.EarlyClose, Error: "the stream ended after 0 tokens without [DONE] or a finish reason"}},
		"cut within an event": {raw(head, chunked(word("a")+word("b")[:20])),
			result.Call{Chunks: chunks(0), Class: result.EarlyClose, Error: "the stream broke after 1 tokens: connection closed within the answer"}},
		"cut after the finish reason": {raw(head, chunked(word("a")+finish)), result.Call{Chunks: chunks(0), Finish: "stop"}},
		"zero tokens": {says(role, finish, usage(3, 2), done), result.Call{Finish: "stop", Usage: &result.Usage{Prompt: 3, Completion: 2},
			Class: result.ZeroTokens, Error: "the answer is complete but carries no token (usage says 2)"}},
		"closed before an answer": {raw(), result.Call{Status: -1, Class: result.Connect, Error: "no answer from engine.test: connection closed before an answer"}},
		"not HTTP":                {raw("SSH-2.0-x\r\n"), result.Call{Status: -1, Class: result.Connect, Error: `no answer from engine.test: malformed HTTP response "SSH-2.0-x"`}},
		"429":                     {status(429, "Retry-After", "7", `{"detail": "slow down"}`), result.Call{Status: 429, Class: result.HTTPStatus, Error: `429 Too Many Requests: {"detail": "slow down"} (Retry-After: 7)`}},
		"500":                     {status(500, "", "", "key sk-secret "+strings.Repeat("é", 300)), result.Call{Status: 500, Class: result.HTTPStatus, Error: "500 Internal Server Error: key [API key] " + strings.Repeat("é", 142)}},
		"redirect":                {status(307, "Location", "/v2", ""), result.Call{Status: 307, Class: result.HTTPStatus, Error: "307 Temporary Redirect (redirects to /v2; redirects are not followed)"}},
		"brotli": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			say(w, 5*ms, "xx")
		},
			result.Call{Headers: 5 * ms, End: 5 * ms, Class: result.BadBody, Error: `the server compressed its answer with "br" though none was asked for`}},
		"gzip": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			for _, s := range []string{word("a"), word("b"), done} {
				io.WriteString(z, s)
				z.Flush()
				say(w, "", 5*ms)
			}
			z.Close()
		}, result.Call{Chunks: chunks(0, 5*ms), End: 10 * ms}},
		"simulator": {func(w http.ResponseWriter, r *http.Request) { w.Header().Set(simHeader, "1"); say(w, word("a"), done) }, result.Call{Chunks: chunks(0), Sim: true}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Config{Backend: BackendChat, APIKey: "sk-secret"}, tt.h, func(t *testing.T, c *Client) {
				got := c.Send(t.Context(), time.Now(), workload.Request{Prompt: "p"})
				switch tt.want.Status {
				case 0:
					tt.want.Status = 200
				case -1:
					tt.want.Status = 0
				}
				if d := cmp.Diff(tt.want, seen(got)); d != "" {
					t.Errorf("-want +got:\n%s", d)
				}
			})
		})
	}
}

func TestTimeouts(t *testing.T) {
	cfg := Config{FirstTokenTimeout: 100 * ms, IdleTimeout: 50 * ms, TotalTimeout: 300 * ms}
	ping := ": ping\n\n"
	for name, tt := range map[string]struct {
		h    http.HandlerFunc
		want result.Call
	}{
		"no headers": {func(http.ResponseWriter, *http.Request) { time.Sleep(time.Hour) },
			result.Call{End: 100 * ms, Class: result.TimeoutFirstToken, Error: "no token within 100ms"}},
		"headers and pings": {says(40*ms, ping, 40*ms, ping, 40*ms, word("a")),
			result.Call{Status: 200, Headers: 40 * ms, End: 100 * ms, Class: result.TimeoutFirstToken, Error: "no token within 100ms"}},
		"idle": {says(99*ms, word("a"), 49*ms, word("b"), 30*ms, ping, time.Hour),
			result.Call{Status: 200, Headers: 99 * ms, Chunks: chunks(99*ms, 148*ms), Answer: 99 * ms, End: 198 * ms, Class: result.TimeoutIdle, Error: "nothing for 50ms after 2 tokens"}},
		"total": {says(word("a"), 45*ms, word("b"), 45*ms, word("b"), 45*ms, word("b"), 45*ms, word("b"), 45*ms, word("b"), 45*ms, word("b"), 45*ms, word("b")),
			result.Call{Status: 200, Chunks: chunks(0, 45*ms, 90*ms, 135*ms, 180*ms, 225*ms, 270*ms), End: 300 * ms, Class: result.TimeoutTotal, Error: "not done within 300ms, after 7 tokens"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, cfg, tt.h, func(t *testing.T, c *Client) {
				got := c.Send(t.Context(), time.Now(), workload.Request{Prompt: "p"})
				if d := cmp.Diff(tt.want, seen(got)); d != "" {
					t.Errorf("-want +got:\n%s", d)
				}
			})
		})
	}
}

// TestHeldOpen: a server that keeps the body open after [DONE] holds the caller
// for a moment only.
func TestHeldOpen(t *testing.T) {
	bubble(t, Config{}, says(word("a"), 5*ms, done, 500*ms, ": x\n\n", time.Hour), func(t *testing.T, c *Client) {
		start := time.Now()
		got := c.Send(t.Context(), start, workload.Request{})
		if held := time.Since(start); got.Class != result.OK || got.End != 5*ms || held != 5*ms+drainTime {
			t.Errorf("class %q, end %v, returned after %v", got.Class, got.End, held)
		}
	})
}

func TestCancelKeepsChunks(t *testing.T) {
	bubble(t, Config{}, says(word("a"), 10*ms, word("b"), time.Hour), func(t *testing.T, c *Client) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(25*ms, func() { cancel(errors.New("interrupted")) })
		got := c.Send(ctx, time.Now(), workload.Request{Prompt: "p"})
		want := result.Call{Status: 200, Chunks: chunks(0, 10*ms), End: 25 * ms, Class: result.Cancelled, Error: "cancelled after 2 tokens: interrupted"}
		if d := cmp.Diff(want, seen(got)); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
	})
}

func TestConnectErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"refused": {&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, "no answer from engine.test: connection refused"},
		"dns":     {&net.DNSError{Err: "no such host", Name: "engine.test", IsNotFound: true}, "no answer from engine.test: lookup engine.test: no such host"},
		"files":   {&net.OpError{Op: "dial", Err: syscall.EMFILE}, "no answer from engine.test: too many open files: raise the limit with ulimit -n"},
		"ports":   {&net.OpError{Op: "dial", Err: syscall.EADDRNOTAVAIL}, "no answer from engine.test: no free local port: lower the concurrency or use more target addresses"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := New(Config{BaseURL: "http://engine.test", Dial: func(context.Context, string, string) (net.Conn, error) { return nil, tt.err }})
			if err != nil {
				t.Fatal(err)
			}
			got := c.Send(t.Context(), time.Now(), workload.Request{})
			if got.Class != result.Connect || got.Error != tt.want {
				t.Errorf("class %q, error %q, want %q", got.Class, got.Error, tt.want)
			}
		})
	}
}

// TestDeadConnection: a kept connection that turns out closed costs no failed
// call, but one that breaks after the server had the request for a while does.
func TestDeadConnection(t *testing.T) {
	for name, tt := range map[string]struct {
		hold  time.Duration
		class result.Class
		conns int
	}{
		"at once": {0, result.OK, 2},
		"later":   {time.Second + ms, result.Connect, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ln := newPipes()
				defer ln.Close()
				conns := 0
				go func() {
					for {
						conn, err := ln.Accept()
						if err != nil {
							return
						}
						conns++
						go serveOnce(conn, tt.hold)
					}
				}()
				c, err := New(Config{BaseURL: "http://engine.test", Dial: ln.dial})
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				first := c.Send(t.Context(), time.Now(), workload.Request{})
				second := c.Send(t.Context(), time.Now(), workload.Request{})
				if first.Class != result.OK || second.Class != tt.class || conns != tt.conns {
					t.Errorf("classes %q and %q over %d connections, want %q over %d: %s", first.Class, second.Class, conns, tt.class, tt.conns, second.Error)
				}
			})
		})
	}
}

// serveOnce answers one request and breaks the connection some time after it
// has read another.
func serveOnce(conn net.Conn, hold time.Duration) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	read := func() bool {
		req, err := http.ReadRequest(r)
		if err == nil {
			io.Copy(io.Discard, req.Body)
		}
		return err == nil
	}
	if !read() {
		return
	}
	fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%s0\r\n\r\n", chunked(word("a")+done))
	if read() {
		time.Sleep(hold)
	}
}

func TestKeepText(t *testing.T) {
	h := says("data: {\"choices\":[{\"delta\":{\"reasoning\":\"h\\u00e9 \"}}]}\n\n", word("a"), word("\nb"), done)
	bubble(t, Config{KeepText: true}, h, func(t *testing.T, c *Client) {
		if got := c.Send(t.Context(), time.Now(), workload.Request{}); got.Text != "hé a\nb" {
			t.Errorf("text %q", got.Text)
		}
	})
}

// TestServerRepeatsSecrets: a server that sends the request's headers back puts
// no secret into a call, whole, quoted or cut by the end of the excerpt.
func TestServerRepeatsSecrets(t *testing.T) {
	cfg := Config{KeepText: true, APIKey: "sk-0123456789", Headers: map[string]string{"X-Auth": "Bearer abc\"defghij", "X-Try": "1"},
		ExtraBody: json.RawMessage(`{"user": {"password": "in-the-body"}}`)}
	pad := strings.Repeat("x", 292)
	for name, tt := range map[string]struct {
		h                http.HandlerFunc
		wantErr, wantTxt string
	}{
		"header":     {status(401, "", "", "got Bearer abc\"defghij 1"), "401 Unauthorized: got [header X-Auth] 1", ""},
		"credential": {status(401, "", "", "got abc\"defghij"), "401 Unauthorized: got [header X-Auth]", ""},
		"body":       {status(400, "", "", "in-the-body is wrong"), "400 Bad Request: [redacted] is wrong", ""},
		"in base64":  {status(401, "", "", base64.StdEncoding.EncodeToString([]byte("me:sk-0123456789"))), "401 Unauthorized: bWU6[API key]Q==", ""},
		"another's":  {status(500, "", "", "started with --api-key other and http://u:pw@h"), "500 Internal Server Error: started with --api-key [redacted] and http://u:[redacted]@h", ""},
		"quoted":     {status(401, "", "", `{"auth":"Bearer abc\"defghij"}`), `401 Unauthorized: {"auth":"[header X-Auth]"}`, ""},
		"cut key":    {status(400, "", "", pad+"sk-0123456789"), "400 Bad Request: " + pad + "[API key", ""},
		"cut body":   {says(pad + "sk-0123456789 and more"), "the answer is not the API's: " + pad + "[API key]", ""},
		"location":   {status(307, "Location", "http://h/sk-0123456789", ""), "307 Temporary Redirect (redirects to http://h/[API key]; redirects are not followed)", ""},
		"in stream":  {says(word("a"), "data: {\"error\":\"bad abc\\\"defghij\"}\n\n"), "bad [header X-Auth]", "a"},
		"text":       {says(word("sk-0123456789"), done), "", "[API key]"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, cfg, tt.h, func(t *testing.T, c *Client) {
				if got := c.Send(t.Context(), time.Now(), workload.Request{}); got.Error != tt.wantErr || got.Text != tt.wantTxt {
					t.Errorf("error %q, text %q", got.Error, got.Text)
				}
			})
		})
	}
}

// TestShortKey: a stand-in for a key makes no holes into what a server says.
func TestShortKey(t *testing.T) {
	bubble(t, Config{APIKey: "x"}, status(500, "", "", "max_tokens exceeds the context"), func(t *testing.T, c *Client) {
		if got := c.Send(t.Context(), time.Now(), workload.Request{}); got.Error != "500 Internal Server Error: max_tokens exceeds the context" {
			t.Errorf("error %q", got.Error)
		}
	})
}

// TestRefusalHeldOpen: nor does one that refuses and keeps the body open.
func TestRefusalHeldOpen(t *testing.T) {
	held := func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(503); say(w, "busy", time.Hour) }
	bubble(t, Config{}, held, func(t *testing.T, c *Client) {
		got := c.Send(t.Context(), time.Now(), workload.Request{})
		want := result.Call{Status: 503, End: drainTime, Class: result.HTTPStatus, Error: "503 Service Unavailable: busy"}
		if d := cmp.Diff(want, seen(got)); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
	})
}

// TestConnectionsAreKept: after a normal answer the connection serves the next
// request, one that came as an error too.
func TestConnectionsAreKept(t *testing.T) {
	n := 0
	h := func(w http.ResponseWriter, r *http.Request) {
		if n++; n == 2 {
			http.Error(w, strings.Repeat("busy ", 20_000), http.StatusServiceUnavailable)
			return
		}
		say(w, word("a"), done)
	}
	srv := httptest.NewServer(http.HandlerFunc(h))
	defer srv.Close()
	dials := 0
	c, err := New(Config{BaseURL: srv.URL, Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		dials++
		return new(net.Dialer).DialContext(ctx, network, addr)
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 4 {
		c.Send(t.Context(), time.Now(), workload.Request{})
	}
	if dials != 1 || n != 4 {
		t.Errorf("%d connections for %d requests", dials, n)
	}
}

func TestTLS(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 1 {
			t.Errorf("asked by %s", r.Proto)
		}
		say(w, word("a"), done)
	}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	for insecure, want := range map[bool]result.Class{true: result.OK, false: result.Connect} {
		c, err := New(Config{BaseURL: srv.URL, Insecure: insecure})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Send(t.Context(), time.Now(), workload.Request{}); got.Class != want {
			t.Errorf("insecure %v: class %q (%s)", insecure, got.Class, got.Error)
		}
		if _, err := c.Probe(t.Context()); !insecure && (err == nil || !strings.Contains(err.Error(), "the certificate of "+srv.URL+" cannot be trusted: x509: ")) {
			t.Errorf("the refused certificate is reported as %v", err)
		}
		c.Close()
	}
}
