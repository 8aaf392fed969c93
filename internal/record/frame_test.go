package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// pieces gives a body to a frame in pieces of a size, and returns its content by its end, how much of it belonged to
// it, and whether it ended.
func pieces(kind framing, left int64, body string, size int) (a *answer, n int, done bool, err error) {
	a = new(answer)
	f := frame{kind: kind, left: left}
	for len(body) > 0 && !done && err == nil {
		p := body[:min(size, len(body))]
		var k int
		k, done, err = f.advance([]byte(p), a)
		n += k
		body = body[len(p):]
	}
	return a, n, done, err
}

func (a *answer) all() string {
	head, tail := a.ends()
	return string(head) + string(tail)
}

// TestFrame: however a body comes in pieces, its content and its end are the same.
func TestFrame(t *testing.T) {
	for _, tt := range []struct {
		kind    framing
		left    int64
		body    string
		content string
		behind  int // bytes that are of no body
		done    bool
		err     error
	}{
		{chunked, 0, "5\r\nhello\r\n1;x=y\r\n!\r\n0\r\n\r\n", "hello!", 0, true, nil},
		{chunked, 0, "00A\r\n0123456789\r\n0\r\nTrailer: 1\r\nB: 2\r\n\r\nHTTP", "0123456789", 4, true, nil},
		{chunked, 0, "3\nabc\n0\n\n", "abc", 0, true, nil},
		{chunked, 0, "5\r\nhel", "hel", 0, false, nil},
		{chunked, 0, "x\r\n", "", 2, false, errFraming},
		{chunked, 0, "1\r\nabc", "a", 1, false, errFraming},
		{chunked, 0, "ffffffffffffffff\r\n", "", 5, false, errFraming},
		{byLength, 3, "abcd", "abc", 1, true, nil},
		{byLength, 3, "ab", "ab", 0, false, nil},
		{untilClose, 0, "abc", "abc", 0, false, nil},
		{empty, 0, "abc", "", 3, true, nil},
	} {
		for size := 1; size <= len(tt.body); size++ {
			a, n, done, err := pieces(tt.kind, tt.left, tt.body, size)
			if a.all() != tt.content || done != tt.done || !errors.Is(err, tt.err) || err == nil && n != len(tt.body)-tt.behind {
				t.Errorf("%q in pieces of %d: content %q, %d bytes, done %t, %v", tt.body, size, a.all(), n, done, err)
			}
		}
	}
}

// FuzzFrame: what the standard library takes for a body of chunks has the same content here, whatever its pieces.
func FuzzFrame(f *testing.F) {
	f.Add([]byte("5\r\nhello\r\n0\r\n\r\n"), 3)
	f.Add([]byte("1;a\r\nx\r\n2\r\nyz\r\n0\r\nA: b\r\n\r\n"), 1)
	f.Fuzz(func(t *testing.T, body []byte, size int) {
		want, wantErr := io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(body)))
		a, n, done, err := pieces(chunked, 0, string(body), max(1, size%64))
		if n > len(body) || done && err != nil {
			t.Fatalf("%d of %d bytes, done %t, %v", n, len(body), done, err)
		}
		if wantErr == nil && err == nil && len(want) < len(a.head) && a.all() != string(want) {
			t.Errorf("content %q, want %q", a.all(), want)
		}
	})
}

// TestEvents: events are counted where they have data, however their bytes come.
func TestEvents(t *testing.T) {
	for _, tt := range []struct {
		body         string
		events, text int
	}{
		{"data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n" +
			"data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"b\"}}]}\n\ndata: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", 5, 2},
		{": ping\r\n\r\ndata: {\"choices\":[{\"text\":\"a\"}]}\r\n\r\ndata: [DONE]\r\n\r\n", 2, 1},
		{"event: content_block_delta\ndata: {\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n", 2, 1},
		{"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"arguments\":\"{\"}}]}}]}\n\n\n\n", 1, 1},
		{strings.Repeat("data: {\"choices\":[{\"delta\":{\"content\":\"some text\"}}]}\n\n", 900) + "data: [DONE]\n\n", 901, 900},
		{"data: {\"a\":1}\n", 0, 0},
	} {
		for _, size := range []int{1, 2, 7, 100, 9000, 1 << 20} {
			a, _, _, _ := pieces(untilClose, 0, tt.body, size)
			if got := a.textEvents(); a.events != tt.events || tt.events > 0 && got != tt.text {
				t.Errorf("%.60q in pieces of %d: %d events, %d with text; want %d and %d", tt.body, size, a.events, got, tt.events, tt.text)
			}
		}
	}
}

// TestCounted: what the engine says that it counted is found at either end of an answer of any length.
func TestCounted(t *testing.T) {
	long := strings.Repeat("x", 30_000)
	for _, tt := range []struct {
		body string
		want tokens
	}{
		{`{"choices":[{"message":{"content":"` + long + `"}}],"usage":{"prompt_tokens":7,"total_tokens":9,"completion_tokens":2}}`, tokens{7, 2}},
		{`{"usage":{"prompt_tokens":7,"completion_tokens":2},"choices":[{"text":"` + long + `"}]}`, tokens{7, 2}},
		{`{"choices":[{"text":"say \"usage\":{\"prompt_tokens\":99} ` + long[:100] + `"}],"usage":{"prompt_tokens":7,"completion_tokens":2}}`, tokens{7, 2}},
		{`data: {"type":"message_start","message":{"usage":{"input_tokens":5,"cache_read_input_tokens":20,"output_tokens":1}}}` + "\n\n" + long +
			`data: {"type":"message_delta","usage":{"output_tokens":15}}` + "\n\n", tokens{25, 15}},
		{`data: {"text":"a","meta_info":{"prompt_tokens":4,"completion_tokens":1}}` + "\n\n" + `data: {"text":"ab","meta_info":{"prompt_tokens":4,"completion_tokens":2}}` + "\n\n", tokens{4, 2}},
		{`data: {"choices":[],"usage":null}`, tokens{}},
		{`{"usage":{"prompt_tokens":7,`, tokens{}},
	} {
		for _, size := range []int{1, 1000, 1 << 20} {
			a, _, _, _ := pieces(untilClose, 0, tt.body, size)
			if got := a.counted(); got != tt.want {
				t.Errorf("%.60q in pieces of %d: %+v, want %+v", tt.body, size, got, tt.want)
			}
		}
	}
}

// nowhere is a connection that takes all.
type nowhere struct{ net.Conn }

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }

// event is a chunk with an event as vLLM sends it.
func event() []byte {
	data := `data: {"id":"chatcmpl-0123456789abcdef0123456789abcdef","object":"chat.completion.chunk","created":1790000000,"model":"m","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null,"token_ids":null}]}` + "\n\n"
	return fmt.Appendf(nil, "%x\r\n%s\r\n", len(data), data)
}

// TestPassAllocatesNothing: a chunk that passes costs no memory.
func TestPassAllocatesNothing(t *testing.T) {
	chunk := event()
	r := relay{to: nowhere{}, seen: new(answer), frame: frame{kind: chunked}}
	if n := testing.AllocsPerRun(100, func() { r.pass(chunk) }); n != 0 || r.err != nil || r.seen.events != 101 {
		t.Errorf("%v allocations a chunk, %d events, %v", n, r.seen.events, r.err)
	}
}

// BenchmarkPass is what a chunk costs in this process, without the calls of the system.
func BenchmarkPass(b *testing.B) {
	chunk := event()
	r := relay{to: nowhere{}, seen: new(answer), frame: frame{kind: chunked}}
	b.ReportAllocs()
	for b.Loop() {
		r.pass(chunk)
	}
}

// BenchmarkChunk is what a chunk costs through sockets: one stream, one chunk after the other.
func BenchmarkChunk(b *testing.B) {
	server, from := tcpPair(b)
	to, client := tcpPair(b)
	chunk := event()
	r := relay{to: to, seen: new(answer), frame: frame{kind: chunked}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.run(from)
	}()
	buf := make([]byte, len(chunk))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := server.Write(chunk); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(client, buf); err != nil {
			b.Fatal(err)
		}
	}
	server.Write([]byte("0\r\n\r\n"))
	<-done
	if r.err != nil {
		b.Error(r.err)
	}
}

// tcpPair is both ends of a connection over loopback.
func tcpPair(tb testing.TB) (a, b net.Conn) {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	if a, err = net.Dial("tcp", l.Addr().String()); err != nil {
		tb.Fatal(err)
	}
	if b, err = l.Accept(); err != nil {
		tb.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	a.SetDeadline(deadline)
	b.SetDeadline(deadline)
	tb.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// TestMemoryComesBack: what a body holds is free again when its line is written, also where there was no room for all of it.
func TestMemoryComesBack(t *testing.T) {
	r, err := Open(filepath.Join(t.TempDir(), "traffic.jsonl"), Options{Memory: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for k := range 6 {
		x := r.begin(time.Now(), httptest.NewRequest(http.MethodPost, "/v1/completions", nil))
		for range 1 + k%2 {
			x.keep(make([]byte, 600), -1)
		}
		if x.lost != (k%2 == 1) {
			t.Errorf("body %d: lost is %t", k, x.lost)
		}
		r.end(x)
		for r.held.Load() > 0 {
			runtime.Gosched()
		}
	}
	if sum, err := r.Close(); err != nil || sum.Requests != 6 || r.held.Load() != 0 {
		t.Errorf("%+v, %d bytes held, %v", sum, r.held.Load(), err)
	}
}
