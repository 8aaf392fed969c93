package page

import (
	"bytes"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"perflab/internal/field"
)

var testFiles = fstest.MapFS{"x.html": {Data: []byte(`{{define "main"}}<h1>{{.}}</h1><p>{{none .}}</p>{{end}}`)},
	"y.html": {Data: []byte(`{{define "main"}}<h1 title="{{.}}">{{.}}</h1><script type="application/json">{{.}}</script>{{end}}`)}}

// TestHostileText: whatever a name holds, a page shows it as text.
func TestHostileText(t *testing.T) {
	p := New(Options{Lab: "<b>lab", Version: "1"})
	tpl := p.Template(testFiles, "y.html")
	hostile := `</script><script>alert(1)</script>" onload="x` + "\x1b[31m"
	w := httptest.NewRecorder()
	if err := p.Show(w, httptest.NewRequest("GET", "/x?"+"a=%3Cb%3E", nil), tpl, View{Title: hostile, Banner: hostile, Data: hostile}); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"<script>alert", `onload="`, "<b>lab", "\x1b"} {
		if strings.Contains(w.Body.String(), bad) {
			t.Errorf("the page has %q:\n%s", bad, w.Body)
		}
	}
}

// TestNoInline: the frame has no script, style or handler inside, as the content policy wants.
func TestNoInline(t *testing.T) {
	p := New(Options{})
	w := httptest.NewRecorder()
	p.Fail(w, httptest.NewRequest("GET", "/x", nil), NotFound("there is no run x"))
	if w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "there is no run x") {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
	if m := regexp.MustCompile(`<script>|<style|style=|\son[a-z]+=`).FindString(w.Body.String()); m != "" {
		t.Errorf("the page has %q:\n%s", m, w.Body)
	}
}

func TestProblems(t *testing.T) {
	p := New(Options{})
	for _, test := range []struct {
		err  error
		code int
		want string
	}{
		{Bad("no"), 400, `{"status":400,"error":"no"}`},
		{&Problem{Status: 403, Text: "no", Hint: "ask"}, 403, `{"status":403,"error":"no","hint":"ask"}`},
		{field.Errorf("a.b", "is not known"), 400, `{"status":400,"error":"a.b: is not known"}`},
		{errors.New("disk"), 500, `{"status":500,"error":"disk"}`},
		{&http.MaxBytesError{Limit: 3}, 413, `{"status":413,"error":"what was sent is larger than this address takes"}`},
	} {
		h := p.Handler(Route{Serve: func(http.ResponseWriter, *http.Request) error { return test.err }})
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/api/v1/x", nil))
		if got := strings.TrimSpace(w.Body.String()); w.Code != test.code || got != test.want {
			t.Errorf("%v: %d %s, want %d %s", test.err, w.Code, got, test.code, test.want)
		}
	}
}

func TestBody(t *testing.T) {
	p := New(Options{})
	h := p.Handler(Route{Serve: func(_ http.ResponseWriter, r *http.Request) error {
		var v struct{ A int }
		r.Body = http.MaxBytesReader(nil, r.Body, 10)
		return ReadJSON(r, &v)
	}})
	for body, want := range map[string]int{`{"a":1}`: 200, `{"b":1}`: 400, `{"a":1111111111111}`: 413, `x`: 400} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", "/api/v1/x", strings.NewReader(body)))
		if w.Code != want {
			t.Errorf("%s: %d, want %d", body, w.Code, want)
		}
	}
}

func TestTexts(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct{ got, want string }{
		{Age(at, at.Add(-30*time.Second)), "just now"},
		{Age(at, at.Add(-61*time.Second)), "1 minute ago"},
		{Age(at, at.Add(-3*time.Hour)), "3 hours ago"},
		{Age(at, at.Add(-50*time.Hour)), "2 days ago"},
		{Age(at, at.AddDate(-1, 0, 0)), "12 months ago"},
		{Age(at, time.Time{}), None},
		{Age(at, at.Add(time.Hour)), "2026-03-01 13:00"},
		{Size(1), "1 byte"}, {Size(1500), "1.5 KB"}, {Size(2e9), "2.0 GB"}, {Size(3e12), "3.0 TB"},
		{Figure(map[string]float64{"p99_ttft_ms": 1.234}, "p99_ttft_ms"), "1.23"},
		{Figure(nil, "p99_ttft_ms"), None}, {Figure(map[string]float64{"p99_ttft_ms": math.NaN()}, "p99_ttft_ms"), None},
		{Percent(0.1234), "+12.3 %"}, {Percent(math.NaN()), None}, {Short("abc"), "abc"},
	} {
		if test.got != test.want {
			t.Errorf("got %q, want %q", test.got, test.want)
		}
	}
}

// TestStream: an event may have lines, and none of them can begin another event.
func TestStream(t *testing.T) {
	w := httptest.NewRecorder()
	s, err := OpenStream(w)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SendText("part", "7", "a\r\n\nevent: x"); err != nil {
		t.Fatal(err)
	}
	if err := s.Send("state", "", map[string]int{"n": 1}); err != nil {
		t.Fatal(err)
	}
	want := "retry: 2000\n\nevent: part\nid: 7\ndata: a\ndata: \ndata: event: x\n\nevent: state\ndata: {\"n\":1}\n\n"
	if got := w.Body.Bytes(); !bytes.Equal(got, []byte(want)) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}
