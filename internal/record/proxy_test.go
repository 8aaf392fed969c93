package record_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"perflab/internal/record"
	"perflab/internal/workload/blocktrace"
)

// proxied is a proxy in front of a server, on loopback.
type proxied struct {
	url, addr, path string
	stop            func() record.Summary // ends it; the recording is whole then
	client          *http.Client
}

// through starts a proxy in front of an address.
func through(t *testing.T, target string, o record.Options) *proxied {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, l, &record.Proxy{Target: to}, o)
}

// serve starts a proxy on a listener.
func serve(t *testing.T, l net.Listener, p *record.Proxy, o record.Options) *proxied {
	t.Helper()
	d := &proxied{addr: l.Addr().String(), path: filepath.Join(t.TempDir(), "traffic.jsonl")}
	d.url = "http://" + d.addr
	d.client = &http.Client{Transport: &http.Transport{DisableCompression: true}}
	rec, err := record.Open(d.path, o)
	if err != nil {
		t.Fatal(err)
	}
	p.Recorder = rec
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Serve(ctx, l) }()
	stopped := false
	d.stop = func() record.Summary {
		t.Helper()
		stopped = true
		cancel()
		d.client.CloseIdleConnections()
		if err := <-done; err != nil {
			t.Error(err)
		}
		sum, err := rec.Close()
		if err != nil {
			t.Error(err)
		}
		return sum
	}
	t.Cleanup(func() {
		if !stopped {
			d.stop()
		}
	})
	return d
}

// rows are the lines of the recording, once it has ended.
func (d *proxied) rows(t *testing.T, n int) []blocktrace.Row {
	t.Helper()
	d.stop()
	rows, err := record.Read(d.path)
	if err != nil || len(rows) != n {
		t.Fatalf("%d lines, want %d: %v", len(rows), n, err)
	}
	return rows
}

func (d *proxied) post(t *testing.T, path, body string, header ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := d.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

const chatBody = `{"model":"m","max_tokens":9,"temperature":0.5,"stream":true,"messages":[{"role":"user","content":"one two three"}]}`

// TestStreams: each chunk is with the client before the server sends the next one.
func TestStreams(t *testing.T) {
	got := make(chan bool)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for k := range 3 {
			fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":\"w%d\"}}]}\n\n", k)
			w.(http.Flusher).Flush()
			select {
			case <-got:
			case <-t.Context().Done():
			}
		}
		io.WriteString(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":11,\"completion_tokens\":3}}\n\ndata: [DONE]\n\n")
	}))
	defer s.Close()
	d := through(t, s.URL, record.Options{})
	resp := d.post(t, "/v1/chat/completions", chatBody)
	in := bufio.NewReader(resp.Body)
	for k := range 3 {
		line, err := in.ReadString('\n')
		if _, blank := in.ReadString('\n'); err != nil || blank != nil || !strings.Contains(line, fmt.Sprintf("w%d", k)) {
			t.Fatalf("%q: %v, %v", line, err, blank)
		}
		got <- true
	}
	if rest, err := io.ReadAll(in); err != nil || !strings.HasSuffix(string(rest), "[DONE]\n\n") {
		t.Fatalf("%q: %v", rest, err)
	}
	r := d.rows(t, 1)[0]
	if r.Input != 11 || r.Output != 3 || r.Status != 200 || r.Error != "" || !r.Stream || r.MaxTokens != 9 || *r.Temperature != 0.5 || r.Model != "m" || r.API != "chat" || r.TextTokens != 3 {
		t.Errorf("%+v", r)
	}
}

// TestGone: a client that goes away ends its request at the server, also before the first byte of the answer.
func TestGone(t *testing.T) {
	for _, begun := range []bool{false, true} {
		arrived, gone := make(chan bool, 1), make(chan bool, 1)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			if begun {
				w.(http.Flusher).Flush()
			}
			arrived <- true
			<-r.Context().Done()
			gone <- true
		}))
		d := through(t, s.URL, record.Options{})
		conn, err := net.Dial("tcp", d.addr)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST /v1/completions HTTP/1.1\r\nHost: h\r\nContent-Length: 16\r\n\r\n{\"prompt\":\"a b\"}")
		<-arrived
		conn.Close()
		<-gone
		if r := d.rows(t, 1)[0]; r.Error != "cancelled" || r.Input != 2 || r.Output != 0 {
			t.Errorf("begun %t: %+v", begun, r)
		}
		s.Close()
	}
}

// TestPasses: requests and answers of every form go on as they are.
func TestPasses(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	io.WriteString(z, `{"choices":[{"text":"a"}],"usage":{"prompt_tokens":5,"completion_tokens":1}}`)
	z.Close()
	long := strings.Repeat("0123456789", 50_000)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		w.Header()["X-Got"] = []string{r.Method + " " + r.RequestURI, fmt.Sprint(len(body), err), r.Header.Get("X-One"), r.Header.Get("Connection") + r.Header.Get("X-Hop"), fmt.Sprint(r.TransferEncoding), r.Host}
		switch r.URL.Path {
		case "/busy":
			w.Header().Set("Retry-After", "3")
			http.Error(w, "too busy", http.StatusServiceUnavailable)
		case "/none":
			w.WriteHeader(http.StatusNoContent)
		case "/long":
			io.WriteString(w, long)
		case "/sized":
			w.Header().Set("Content-Length", fmt.Sprint(len(long)))
			io.WriteString(w, long)
		case "/trailer":
			w.Header().Set("Trailer", "X-After")
			io.WriteString(w, "body")
			w.(http.Flusher).Flush()
			w.Header().Set("X-After", "1")
		case "/v1/completions":
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(zipped.Bytes())
		default:
			io.WriteString(w, "plain")
		}
	}))
	defer s.Close()
	d := through(t, s.URL, record.Options{})
	host := strings.TrimPrefix(s.URL, "http://")
	for _, tt := range []struct {
		method, path, body string
		chunks             bool
		status             int
		answer             string
	}{
		{"GET", "/a/b?q=%20x", "", false, 200, "plain"},
		{"HEAD", "/long", "", false, 200, ""},
		{"POST", "/long", "", false, 200, long},
		{"POST", "/sized", long, false, 200, long},
		{"POST", "/long", long, true, 200, long},
		{"PUT", "/none", "x", false, 204, ""},
		{"POST", "/busy", "x", false, 503, "too busy\n"},
		{"GET", "/trailer", "", false, 200, "body"},
		{"POST", "/v1/completions", `{"prompt":"a b"}`, false, 200, zipped.String()},
	} {
		var body io.Reader = strings.NewReader(tt.body)
		if tt.chunks {
			body = struct{ io.Reader }{body}
		}
		req, err := http.NewRequestWithContext(t.Context(), tt.method, d.url+tt.path, body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-One", "1")
		req.Header.Set("X-Hop", "of this hop")
		req.Header.Set("Connection", "X-Hop")
		resp, err := d.client.Do(req)
		if err != nil {
			t.Fatal(tt, err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		encoding := "[]"
		if tt.chunks {
			encoding = "[chunked]"
		}
		want := []string{tt.method + " " + tt.path, fmt.Sprint(len(tt.body), nil), "1", "", encoding, host}
		if err != nil || resp.StatusCode != tt.status || string(got) != tt.answer || fmt.Sprint(resp.Header["X-Got"]) != fmt.Sprint(want) {
			t.Errorf("%s %s: %d, %d bytes (%v), the server got %q, want %q", tt.method, tt.path, resp.StatusCode, len(got), err, resp.Header["X-Got"], want)
		}
		switch tt.path {
		case "/trailer":
			if resp.Trailer.Get("X-After") != "1" {
				t.Errorf("trailer %v", resp.Trailer)
			}
		case "/busy":
			if resp.Header.Get("Retry-After") != "3" {
				t.Errorf("header %v", resp.Header)
			}
		}
	}
	r := d.rows(t, 1)[0]
	if r.Input != 5 || r.Output != 1 || r.InputBy != "" {
		t.Errorf("of a compressed answer: %+v", r)
	}
}

// raw sends bytes over a connection of its own and returns all that comes back.
func (d *proxied) raw(t *testing.T, text string) string {
	t.Helper()
	conn, err := net.Dial("tcp", d.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, text)
	got, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(got)
}

// TestOldAndMalformed: a client of HTTP/1.0 gets no chunks, one that expects 100-continue gets it, requests that follow each other
// at once are answered in order, and what is no request is refused.
func TestOldAndMalformed(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s;", r.URL.Path, body)
		w.(http.Flusher).Flush()
	}))
	defer s.Close()
	d := through(t, s.URL, record.Options{})
	for _, tt := range []struct{ send, has, not string }{
		{"GET /old HTTP/1.0\r\n\r\n", "Connection: close\r\n\r\n/old ;", "chunked"},
		{"POST /e HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK", "Expect"},
		{"GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", "/2 ;", "400"},
		{"nonsense\r\n\r\n", "HTTP/1.1 400", "200"},
		{"GET / HTTP/1.1\r\nHost: h\r\nA: b\rc\r\n\r\n", "HTTP/1.1 400", "200"},
		{"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "HTTP/1.1 400", "200"},
		{"GET / HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("x", 1<<20+1<<13), "HTTP/1.1 431", "200"},
	} {
		if got := d.raw(t, tt.send); !strings.Contains(got, tt.has) || strings.Contains(got, tt.not) {
			t.Errorf("%.80q: %q", tt.send, got)
		}
	}
}

// TestServerFails: what a server breaks off ends broken off, one that is not there is said, and one that closed a connection
// which it had kept is asked again.
func TestServerFails(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for k := 0; ; k++ {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					if k == 0 {
						io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
					} else {
						io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel")
					}
				}
				conn.Close() // though it may be used again
			}()
		}
	}()
	d := through(t, "http://"+l.Addr().String(), record.Options{})
	resp := d.post(t, "/v1/completions", `{"prompt":"a"}`)
	if got, err := io.ReadAll(resp.Body); string(got) != "ok" || err != nil {
		t.Fatalf("%q: %v", got, err)
	}
	resp = d.post(t, "/v1/completions", `{"prompt":"a"}`)
	if got, err := io.ReadAll(resp.Body); string(got) != "hel" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("%q: %v", got, err)
	}
	l.Close()
	resp = d.post(t, "/v1/completions", `{"prompt":"a"}`)
	if got, err := io.ReadAll(resp.Body); resp.StatusCode != http.StatusBadGateway || !strings.Contains(string(got), "perflab record: the server cannot be reached") {
		t.Fatalf("%d %q: %v", resp.StatusCode, got, err)
	}
	var classes []string
	for _, r := range d.rows(t, 3) {
		classes = append(classes, r.Error)
	}
	if got := fmt.Sprint(classes); got != "[ early_close connect]" {
		t.Errorf("errors %s", got)
	}
}
