package openai

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"perflab/internal/otlp"
	"perflab/internal/result"
	"perflab/internal/workload"
)

// Each request carries a trace context of its own, which its call keeps, over the event loop and
// over net/http; without the option there is none.
func TestTraceparent(t *testing.T) {
	got := make(chan string, 1) // what a request carried, before its answer
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		got <- strings.Join(r.Header.Values("Traceparent"), "+")
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	defer s.Close()
	for _, standard := range []bool{false, true} {
		for _, on := range []bool{false, true} {
			c, err := New(Config{BaseURL: s.URL, Model: "m", Standard: standard, Traceparent: on})
			if err != nil {
				t.Fatal(err)
			}
			seen := map[string]bool{}
			for range 3 {
				call := c.Send(t.Context(), time.Now(), workload.Request{Prompt: "Hello"})
				if !call.OK() {
					t.Fatalf("%s: %s", call.Class, call.Error)
				}
				header := <-got
				sent, ok := otlp.ParseContext(header)
				if ok != on || sent.TraceID() != call.TraceID || sent.SpanID() != call.SpanID || on && seen[call.TraceID] {
					t.Errorf("standard %v, on %v: the server got %q, the call has %s, %s", standard, on, header, call.TraceID, call.SpanID)
				}
				seen[call.TraceID] = true
			}
			c.Close()
		}
	}
}

// The trace context of a call that got no answer is kept as well: the engine may have had it.
func TestTraceparentOfFailure(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	url := s.URL
	s.Close()
	c, err := New(Config{BaseURL: url, Model: "m", Traceparent: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if call := c.Send(t.Context(), time.Now(), workload.Request{Prompt: "Hello"}); call.Class != result.Connect || len(call.TraceID) != 32 || len(call.SpanID) != 16 {
		t.Errorf("%+v", call)
	}
}

func TestTraceparentTwice(t *testing.T) {
	_, err := New(Config{BaseURL: "http://127.0.0.1:1", Headers: map[string]string{"traceparent": "x"}, Traceparent: true})
	if err == nil || !strings.Contains(err.Error(), "sent already") {
		t.Error(err)
	}
	if _, err = New(Config{BaseURL: "http://127.0.0.1:1", Headers: map[string]string{"traceparent": "x"}}); err != nil {
		t.Error(err)
	}
}
