package openai

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"perflab/internal/result"
	"perflab/internal/workload"
)

// rawServer answers each request on loopback with the script for it, in order;
// the last one is used again. A script writes bytes of its own making.
type rawServer struct {
	url   string
	conns atomic.Int64
	asked atomic.Int64

	closed chan struct{} // a connection was closed
}

// script writes an answer; false closes the connection.
type script func(c net.Conn) bool

func startRaw(t *testing.T, scripts ...script) *rawServer {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	s := &rawServer{url: "http://" + ln.Addr().String(), closed: make(chan struct{}, 8)}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			s.conns.Add(1)
			t.Cleanup(func() { c.Close() })
			go s.serve(c, scripts)
		}
	}()
	return s
}

func (s *rawServer) serve(c net.Conn, scripts []script) {
	defer func() {
		c.Close()
		select {
		case s.closed <- struct{}{}:
		default: // nobody waits for it
		}
	}()
	r := bufio.NewReader(c)
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		io.Copy(io.Discard, req.Body)
		n := int(s.asked.Add(1))
		if !scripts[min(n, len(scripts))-1](c) {
			return
		}
	}
}

// pause lets what was written leave as a segment of its own.
const pause = time.Millisecond

// sends writes the pieces one after the other and keeps the connection.
func sends(pieces ...string) script { return plays(true, pieces...) }

// ends writes the pieces and closes the connection.
func ends(pieces ...string) script { return plays(false, pieces...) }

func plays(keep bool, pieces ...string) script {
	return func(c net.Conn) bool {
		for i, p := range pieces {
			if i > 0 {
				time.Sleep(pause)
			}
			io.WriteString(c, p)
		}
		return keep
	}
}

// resets writes the pieces and resets the connection.
func resets(pieces ...string) script {
	return func(c net.Conn) bool {
		plays(false, pieces...)(c)
		time.Sleep(20 * pause) // a reset throws away what was not read yet
		c.(*net.TCPConn).SetLinger(0)
		return false
	}
}

// hangs writes the pieces and then nothing, with the connection open.
func hangs(pieces ...string) script {
	return func(c net.Conn) bool {
		plays(true, pieces...)(c)
		io.Copy(io.Discard, c) // until the client gives up
		return false
	}
}

func everyByte(s string) []string { return strings.Split(s, "") }

func gzipped(pieces ...string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for _, p := range pieces {
		io.WriteString(z, p)
		z.Flush()
	}
	z.Close()
	return b.String()
}

const (
	okHead  = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
	okClose = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
	last    = "0\r\n\r\n"
)

func sized(status, body string) string {
	return fmt.Sprintf("HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
}

// outcome is what a row expects of a call.
type outcome struct {
	class  result.Class
	chunks int
	tokens int    // of the chunks; 0: as many
	text   string // generated, where the call is OK
	err    string // within the error
}

// TestWire holds a raw server's bytes against what a call must say, over the
// event loop and over net/http.
func TestWire(t *testing.T) {
	whole := word("a") + word("b") + finish + usage(3, 2) + done
	ab := outcome{chunks: 2, text: "ab"}
	crlf := strings.ReplaceAll(whole, "\n", "\r\n")
	big := strings.Repeat("x", 1<<20)
	euro := "data: {\"choices\":[{\"delta\":{\"content\":\"\u20ac\U0001f600\"}}]}\n\n"
	failure := "data: {\"error\":{\"message\":\"out of memory\",\"type\":\"InternalServerError\",\"code\":500}}\n\n"
	continuous := func(s string, n int) string {
		return fmt.Sprintf("data: {\"choices\":[{\"delta\":{\"content\":%q}}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":%d}}\n\n", s, n)
	}
	for name, tt := range map[string]struct {
		s    script
		want outcome
	}{
		"plain":                      {sends(okHead, chunked(word("a")), chunked(word("b")), chunked(finish+done), last), ab},
		"all in one write":           {sends(okHead + chunked(whole) + last), ab},
		"every byte by itself":       {sends(everyByte(okHead + chunked(word("a")) + chunked(done) + last)...), outcome{chunks: 1, text: "a"}},
		"events merged":              {sends(okHead, chunked(word("a")+word("b")+word("c")), chunked(done)+last), outcome{chunks: 3, text: "abc"}},
		"event over two chunks":      {sends(okHead, chunked(word("a")[:30]), chunked(word("a")[30:]+word("b")), chunked(done), last), ab},
		"CRLF":                       {sends(okHead, chunked(crlf), last), ab},
		"CR":                         {sends(okHead, chunked(strings.ReplaceAll(whole, "\n", "\r")), last), ab},
		"comments":                   {sends(okHead, chunked(": keep-alive\n\n"), chunked(":\n"+word("a")), chunked(": x\n\n"+word("b")+done), last), ab},
		"data without a space":       {sends(okHead, chunked(strings.ReplaceAll(whole, "data: ", "data:")), last), ab},
		"other fields":               {sends(okHead, chunked("event: message\nid: 7\nretry: 10\n"+word("a")+word("b")+done), last), ab},
		"byte order mark":            {sends(okHead, chunked("\ufeff"+whole), last), ab},
		"UTF-8 split":                {sends(append(append([]string{okHead + fmt.Sprintf("%x\r\n", len(euro))}, everyByteOf(euro)...), "\r\n", chunked(done), last)...), outcome{chunks: 1, text: "\u20ac\U0001f600"}},
		"a chunk of 1 MiB":           {sends(okHead, chunked(word(big)), chunked(done), last), outcome{chunks: 1, text: big}},
		"chunk extensions, trailer":  {sends(okHead, fmt.Sprintf("%X;a=b\r\n%s\r\n", len(whole), whole), "0\r\nX-Sum: 1\r\n\r\n"), ab},
		"100 before the answer":      {sends("HTTP/1.1 100 Continue\r\n\r\n", okHead, chunked(whole), last), ab},
		"103 before the answer":      {sends("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"+okHead, chunked(whole), last), ab},
		"content length":             {sends(sized("200 OK", whole)), ab},
		"close-delimited":            {ends(okClose, word("a"), word("b"), done), ab},
		"HTTP/1.0":                   {ends("HTTP/1.0 200 OK\r\n\r\n", whole), ab},
		"no [DONE], finish reason":   {sends(okHead, chunked(word("a")+word("b")+finish), last), ab},
		"no [DONE], close-delimited": {ends(okClose, word("a")+word("b")+finish), ab},
		"[DONE] without blank line":  {sends(okHead, chunked(word("a")+word("b")+"data: [DONE]"), last), ab},
		"role and finish only":       {sends(okHead, chunked(role+finish+done), last), outcome{class: result.ZeroTokens, err: "carries no token"}},
		"zero tokens, usage":         {sends(okHead, chunked(finish+usage(3, 0)+done), last), outcome{class: result.ZeroTokens, err: "usage says 0"}},
		"usage in every chunk":       {sends(okHead, chunked(continuous("a", 1)), chunked(continuous("bcd", 4)+done), last), outcome{chunks: 2, tokens: 4, text: "abcd"}},
		"not streamed":               {sends(sized("200 OK", `{"choices":[{"message":{"content":"ab"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`)), outcome{chunks: 1, tokens: 2, text: "ab"}},
		"not streamed, empty":        {sends(sized("200 OK", `{"choices":[{"message":{"content":""},"finish_reason":"stop"}]}`)), outcome{class: result.ZeroTokens}},
		"gzip":                       {sends("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n", chunked(gzipped(word("a"), word("b"), done)), last), ab},
		"gzip by the byte":           {sends(append([]string{"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n"}, everyByteOf(gzipped(word("a"), word("b"), done))...)...), outcome{class: result.OK, chunks: 2, text: "ab"}},
		"gzip that is none":          {sends("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n", chunked(whole), last), outcome{class: result.EarlyClose, err: "gzip"}},
		"brotli":                     {sends("HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nTransfer-Encoding: chunked\r\n\r\n", chunked("xx"), last), outcome{class: result.BadBody, err: `compressed its answer with "br"`}},
		"redirect":                   {sends("HTTP/1.1 307 Temporary Redirect\r\nLocation: /v2\r\nContent-Length: 0\r\n\r\n"), outcome{class: result.HTTPStatus, err: "307 Temporary Redirect (redirects to /v2"}},
		"429":                        {sends("HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nContent-Length: 9\r\n\r\nslow down"), outcome{class: result.HTTPStatus, err: "429 Too Many Requests: slow down (Retry-After: 7)"}},
		"503 while loading":          {sends(sized("503 Service Unavailable", `{"error":{"message":"Loading model","code":503}}`)), outcome{class: result.HTTPStatus, err: "Loading model"}},
		"204":                        {sends("HTTP/1.1 204 No Content\r\n\r\n"), outcome{class: result.HTTPStatus, err: "204 No Content"}},
		"error body without end":     {hangs("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 99\r\n\r\nboom"), outcome{class: result.HTTPStatus, err: "500 Internal Server Error: boom"}},
		"HTML":                       {sends("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 21\r\n\r\n<html>Hello there!\n\n\n"), outcome{class: result.BadBody, err: "not the API's: <html>Hello there!"}},
		"error after tokens":         {sends(okHead, chunked(word("a")), chunked(failure), chunked(done), last), outcome{class: result.StreamError, chunks: 1, err: "out of memory"}},
		"error in place of tokens":   {sends(okHead, chunked(failure), last), outcome{class: result.StreamError, err: "InternalServerError: out of memory"}},
		"invalid JSON":               {sends(okHead, chunked(word("a")), chunked("data: {\"choices\":[}\n\n"), last), outcome{class: result.BadBody, chunks: 1, err: `not a JSON object: {"choices":[}`}},
		"closed in mid-stream":       {ends(okHead, chunked(word("a"))), outcome{class: result.EarlyClose, chunks: 1, err: "broke after 1 tokens: connection closed"}},
		"closed within a chunk":      {ends(okHead, chunked(word("a"))+"80\r\ndata: {"), outcome{class: result.EarlyClose, chunks: 1, err: "broke after 1 tokens"}},
		"content length cut":         {ends("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", word("a")), outcome{class: result.EarlyClose, chunks: 1, err: "broke after 1 tokens"}},
		"reset in mid-stream":        {resets(okHead, chunked(word("a"))), outcome{class: result.EarlyClose, chunks: 1, err: "broke after 1 tokens: connection reset"}},
		"reset after the finish":     {resets(okHead, chunked(word("a")+word("b")+finish)), ab},
		"broken chunked coding":      {sends(okHead, chunked(word("a"))+"zz\r\n"), outcome{class: result.EarlyClose, chunks: 1, err: "broke after 1 tokens"}},
		"stall in mid-stream":        {hangs(okHead, chunked(word("a"))), outcome{class: result.TimeoutIdle, chunks: 1, err: "nothing for 300ms after 1 tokens"}},
		"headers, then nothing":      {hangs(okHead), outcome{class: result.TimeoutFirstToken, err: "no token within 300ms"}},
		"headers that never come":    {hangs(), outcome{class: result.TimeoutFirstToken, err: "no token within 300ms"}},
		"half a head":                {hangs("HTTP/1.1 200 OK\r\nContent-"), outcome{class: result.TimeoutFirstToken}},
		"closed before an answer":    {ends(), outcome{class: result.Connect, err: "closed before an answer"}},
		"closed within the head":     {ends("HTTP/1.1 200 OK\r\nContent-"), outcome{class: result.Connect}},
		"not HTTP":                   {ends("SSH-2.0-OpenSSH\r\n"), outcome{class: result.Connect, err: "malformed HTTP"}},
		"held open after [DONE]":     {hangs(okHead, chunked(whole)), ab},
	} {
		for _, standard := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", name, map[bool]string{false: "loop", true: "net"}[standard]), func(t *testing.T) {
				t.Parallel()
				srv := startRaw(t, tt.s)
				patience := 300 * ms
				if tt.want.class == result.OK { // a busy machine may be slow
					patience = 20 * time.Second
				}
				c := patientClient(t, srv, standard, patience)
				got := c.Send(t.Context(), time.Now(), workload.Request{Prompt: "p"})
				tt.want.check(t, got)
				checkStamps(t, got)
			})
		}
	}
}

func everyByteOf(s string) []string {
	out := make([]string, len(s))
	for i := range len(s) {
		out[i] = s[i : i+1]
	}
	return out
}

func rawClient(t *testing.T, srv *rawServer, standard bool) *Client {
	t.Helper()
	return patientClient(t, srv, standard, 300*ms)
}

// patientClient waits so long for a token.
func patientClient(t *testing.T, srv *rawServer, standard bool, patience time.Duration) *Client {
	t.Helper()
	c, err := New(Config{
		BaseURL: srv.url, Backend: BackendChat, KeepText: true, Standard: standard,
		FirstTokenTimeout: patience, IdleTimeout: patience, TotalTimeout: 20 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func (want outcome) check(t *testing.T, got result.Call) {
	t.Helper()
	if want.tokens == 0 {
		want.tokens = want.chunks
	}
	if got.Class != want.class || !strings.Contains(got.Error, want.err) || (got.Error == "") != (want.class == result.OK) {
		t.Errorf("class %q, error %q; want %q with %q", got.Class, got.Error, want.class, want.err)
	}
	if len(got.Chunks) != want.chunks || got.Counted() != want.tokens {
		t.Errorf("%d chunks with %d tokens, want %d with %d", len(got.Chunks), got.Counted(), want.chunks, want.tokens)
	}
	if want.class == result.OK && got.Text != want.text {
		t.Errorf("text %.80q, want %.80q", got.Text, want.text)
	}
}

// checkStamps holds the order that the instants of any call must have.
func checkStamps(t *testing.T, c result.Call) {
	t.Helper()
	in := []time.Duration{c.Sent}
	names := []string{"sent"}
	add := func(name string, at time.Duration, known bool) {
		if known {
			in, names = append(in, at), append(names, name)
		}
	}
	add("first", c.First, c.Reads > 0)
	add("headers", c.Headers, c.Headers > 0)
	for _, k := range c.Chunks {
		add("chunk", k.At, true)
	}
	add("end", c.End, true)
	for i := 1; i < len(in); i++ {
		if in[i] < in[i-1] {
			t.Errorf("%s at %v comes before %s at %v", names[i], in[i], names[i-1], in[i-1])
		}
	}
}

// TestKernelStamps: every read carries the kernel's stamp, over the loop and
// over net/http.
func TestKernelStamps(t *testing.T) {
	for _, standard := range []bool{false, true} {
		srv := startRaw(t, sends(okHead, chunked(word("a")), chunked(word("b")+done), last))
		c := rawClient(t, srv, standard)
		if c.Clock() != result.ClockKernel {
			t.Skip("this system gives no kernel stamps")
		}
		var got result.Call
		for range 1000 { // the kernel begins to stamp a moment after it is asked
			if got = c.Send(t.Context(), time.Now(), workload.Request{}); got.Coarse == 0 {
				break
			}
		}
		if got.Coarse > 0 || got.Reads == 0 {
			t.Errorf("net/http %v: %d of %d reads have no kernel stamp", standard, got.Coarse, got.Reads)
		}
	}
}

// TestKeptConnection: one connection serves request after request, and one that
// the server closed while it was idle is replaced without a failed call.
func TestKeptConnection(t *testing.T) {
	answer := okHead + chunked(word("a")+done) + last
	idle := make(chan struct{}) // the client has put its connection back
	for name, tt := range map[string]struct {
		scripts []script
		conns   int64
	}{
		"kept":               {[]script{sends(answer)}, 1},
		"closed at once":     {[]script{ends(answer)}, 4},
		"closed by its word": {[]script{ends(strings.Replace(answer, "Transfer", "Connection: close\r\nTransfer", 1))}, 4},
		"closed while idle": {[]script{func(c net.Conn) bool {
			io.WriteString(c, answer)
			<-idle
			return false
		}}, 4},
	} {
		for _, standard := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", name, standard), func(t *testing.T) {
				srv := startRaw(t, tt.scripts...)
				c := rawClient(t, srv, standard)
				for i := range 4 {
					got := c.Send(t.Context(), time.Now(), workload.Request{})
					if got.Class != result.OK || len(got.Chunks) != 1 {
						t.Errorf("call %d: class %q: %s", i, got.Class, got.Error)
					}
					if name != "closed while idle" {
						continue
					}
					idle <- struct{}{}
					if i%2 == 0 {
						<-srv.closed // before the next call, which otherwise may meet it
					}
				}
				if n := srv.conns.Load(); n != tt.conns {
					t.Errorf("%d connections, want %d", n, tt.conns)
				}
				if _, opened := c.Sockets(); opened != int(tt.conns) {
					t.Errorf("%d connections counted, want %d", opened, tt.conns)
				}
			})
		}
	}
}

// TestOpenedAhead: connections opened before a burst serve it.
func TestOpenedAhead(t *testing.T) {
	srv := startRaw(t, sends(okHead+chunked(word("a")+done)+last))
	c := rawClient(t, srv, false)
	if err := c.Open(t.Context(), 8); err != nil {
		t.Fatal(err)
	}
	calls := make(chan result.Call)
	for range 8 {
		go func() { calls <- c.Send(t.Context(), time.Now(), workload.Request{}) }()
	}
	for range 8 {
		if got := <-calls; got.Class != result.OK || got.New {
			t.Errorf("class %q (%s), new connection: %v", got.Class, got.Error, got.New)
		}
	}
	if most, opened := c.Sockets(); most != 8 || opened != 8 {
		t.Errorf("%d connections at most, %d opened", most, opened)
	}
}

// TestLargeRequest: a prompt that the socket does not take at once is sent
// whole.
func TestLargeRequest(t *testing.T) {
	for _, standard := range []bool{false, true} {
		got := make(chan int, 1)
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		go func() {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			conn.(*net.TCPConn).SetReadBuffer(64 << 10) // with the client's own far less than the prompt
			req, err := http.ReadRequest(bufio.NewReader(conn))
			if err != nil {
				return
			}
			n, _ := io.Copy(io.Discard, req.Body)
			got <- int(n)
			io.WriteString(conn, okHead+chunked(word("a")+done)+last)
		}()
		c := rawClient(t, &rawServer{url: "http://" + ln.Addr().String()}, standard)
		prompt := strings.Repeat("word ", 8<<20/5)
		call := c.Send(t.Context(), time.Now(), workload.Request{Prompt: prompt})
		if n := <-got; call.Class != result.OK || n < len(prompt) || call.Wrote <= call.Sent {
			t.Errorf("class %q (%s), the server got %d bytes of a prompt of %d, sent %v, wrote %v", call.Class, call.Error, n, len(prompt), call.Sent, call.Wrote)
		}
	}
}

// TestCancelled: a call returns soon after its context ends, whatever the
// server does, and keeps what came.
func TestCancelled(t *testing.T) {
	for _, standard := range []bool{false, true} {
		srv := startRaw(t, hangs(okHead, chunked(word("a"))))
		c := rawClient(t, srv, standard)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*ms, cancel)
		got := c.Send(ctx, time.Now(), workload.Request{})
		if got.Class != result.Cancelled || len(got.Chunks) != 1 || got.End > 5*time.Second {
			t.Errorf("class %q with %d chunks at %v", got.Class, len(got.Chunks), got.End)
		}
	}
}
