package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"perflab/internal/otlp"
	"perflab/internal/result"
	"perflab/internal/trace"
)

// calls yields n calls, and then an error where there is one.
func calls(n int, err error) iter.Seq2[result.Call, error] {
	return func(yield func(result.Call, error) bool) {
		for i := range n {
			at := time.Duration(i) * time.Millisecond
			if !yield(result.Call{Index: i, Due: at, Sent: at, End: at + 5*time.Millisecond, Chunks: []result.Chunk{{At: at + time.Millisecond, Tokens: 1}}}, nil) {
				return
			}
		}
		if err != nil {
			yield(result.Call{}, err)
		}
	}
}

func none(string) string { return "" }

// perCall counts the spans of calls themselves.
func perCall(t *testing.T, r io.Reader) (n int) {
	t.Helper()
	for s, err := range otlp.Read(r) {
		if err != nil {
			t.Fatal(err)
		}
		if s.Kind == otlp.Client {
			n++
		}
	}
	return n
}

func TestParse(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ in, want, wrong string }{
		{"spans.jsonl", "spans.jsonl", ""},
		{"http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces", ""},
		{"http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/traces", ""},
		{"https://host/otlp/v1/traces", "https://host/otlp/v1/traces", ""},
		{"grpc://127.0.0.1:4317", "", "is not spoken"},
		{"http://", "", "no address"},
		{"http://user:hunter2@host", "", "user name"},
		{"http://host/?key=hunter2", "", "query"},
		{dir, "", "is a directory"},
	} {
		got, err := Parse(c.in)
		if (err == nil) != (c.wrong == "") || err != nil && (!strings.Contains(err.Error(), c.wrong) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%s: %v", c.in, err)
		}
		if err == nil && got.String() != c.want {
			t.Errorf("%s goes to %s", c.in, got)
		}
	}
}

// Runs of a series come one after the other into one file, which a later series begins anew.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "spans.jsonl")
	target, err := Parse(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		e, err := target.Begin(none)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{atOnce + 3, 0, 2} {
			if got, err := e.Add(t.Context(), trace.Run{}, calls(n, nil)); got != n || err != nil {
				t.Fatalf("%d of %d calls: %v", got, n, err)
			}
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if got := perCall(t, f); got != atOnce+5 {
			t.Errorf("the file has %d calls, want %d", got, atOnce+5)
		}
	}
	e, _ := target.Begin(none)
	if n, err := e.Add(t.Context(), trace.Run{}, calls(3, errors.New("unreadable"))); n != 3 || err == nil || err.Error() != "unreadable" {
		t.Errorf("calls that break off: %d, %v", n, err)
	}
}

func TestCollector(t *testing.T) {
	var got int
	answer := func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "{}") }
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != "POST" || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("X-Key") != "hunter 2" {
			t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
		}
		got += perCall(t, r.Body)
		answer(w, r)
	}))
	defer s.Close()
	env := func(name string) string {
		return map[string]string{HeadersVariable: "x-key=other", TracesHeadersVariable: "x-key=hunter%202, y=z"}[name]
	}
	target, err := Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		answer func(w http.ResponseWriter, r *http.Request)
		n      int
		wrong  string
	}{
		{answer, 2*atOnce + 1, ""},
		{func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"partialSuccess":{}}`) }, 1, ""},
		{func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "\x00binary") }, 1, ""},
		{func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, `{"partialSuccess":{"rejectedSpans":"7","errorMessage":"too old"}}`)
		}, 0, "did not take 7 spans of a batch: too old"},
		{func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintf(w, "no room for %s\n\x1b[31mnow", r.Header.Get("X-Key"))
		}, 0, "503 Service Unavailable: no room for [header of OTEL_EXPORTER_OTLP_TRACES_HEADERS] now"},
		{func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, 0, "307"},
	} {
		got, answer = 0, c.answer
		e, err := target.Begin(env)
		if err != nil {
			t.Fatal(err)
		}
		n, err := e.Add(t.Context(), trace.Run{}, calls(max(c.n, 1), nil))
		if n != c.n || (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) || err != nil && strings.Contains(err.Error(), "hunter") {
			t.Errorf("%d calls, want %d: %v", n, c.n, err)
		}
		if want := max(c.n, 1); got != want {
			t.Errorf("the collector got %d calls, want %d", got, want)
		}
	}
}

// A collector that is away, or that does not answer, is an error that names it.
func TestAway(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	target, err := Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	e, err := target.Begin(none)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := e.Add(t.Context(), trace.Run{}, calls(3, nil)); n != 0 || err == nil || !strings.HasPrefix(err.Error(), "send spans to "+target.String()+": dial") {
		t.Errorf("%d, %v", n, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Add(ctx, trace.Run{}, calls(3, nil)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestHeaders(t *testing.T) {
	target, err := Parse("http://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"hunter2", "x=%zzhunter2", "x=a%0ahunter2"} {
		_, err := target.Begin(func(string) string { return text })
		if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), HeadersVariable) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
