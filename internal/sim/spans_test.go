package sim_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perflab/internal/engine"
	"perflab/internal/otlp"
	"perflab/internal/sim"
	"perflab/internal/test/simtest"
)

// A request with a trace context becomes a span whose times are those of its stream, to the
// nanosecond of a float; without one, or where its client does not record, there is none.
func TestSpans(t *testing.T) {
	for name, cfg := range map[string]engine.Config{"one engine": config(), "apart": apart(config(), 1, 1)} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			e := simtest.Start(t, cfg, simtest.Options{Core: small.Core, Server: sim.ServerOptions{Spans: &out}})
			const trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
			zero := time.Now()
			ask := func(header string) []event {
				req, err := http.NewRequestWithContext(t.Context(), "POST", e.URL+"/v1/completions", strings.NewReader(`{"prompt":"What is the answer?","max_tokens":5,"stream":true}`))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Traceparent", header)
				resp, err := e.Client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				events, done, err := readStream(resp.Body, zero)
				if err != nil || !done {
					t.Fatalf("%s: done %v, %v", name, done, err)
				}
				synctest.Wait() // the handler has ended
				return events
			}
			for _, header := range []string{"", "nonsense", "00-" + trace + "-" + parent + "-00"} {
				if ask(header); out.Len() > 0 {
					t.Fatalf("%s: a span for the header %q: %s", name, header, out.String())
				}
			}
			events := ask("00-" + trace + "-" + parent + "-01")
			var spans []otlp.Span
			for s, err := range otlp.Read(&out) {
				if err != nil {
					t.Fatal(err)
				}
				spans = append(spans, s)
			}
			if len(spans) != 1 {
				t.Fatalf("%s: %d spans", name, len(spans))
			}
			s := spans[0]
			if s.TraceID != trace || s.Parent != parent || len(s.SpanID) != 16 || s.Kind != otlp.Server || !s.Yes("perflab.simulated") || s.Service != "perflab-sim" {
				t.Errorf("%s: %+v", name, s)
			}
			took := func(key string) time.Duration {
				v, ok := s.Number("gen_ai.latency." + key)
				if !ok {
					t.Errorf("%s: no %s", name, key)
				}
				return time.Duration(v*1e9 + 0.5)
			}
			first, last := events[0].at, events[len(events)-1].at
			if d := took("time_in_model_decode"); d != last-first {
				t.Errorf("%s: decode took %v, the stream %v", name, d, last-first)
			}
			if at := time.Duration(s.End - zero.UnixNano()); at != last {
				t.Errorf("%s: the span ends at %v, the stream at %v", name, at, last)
			}
			ttft, queue, prefill := took("time_to_first_token"), took("time_in_queue"), took("time_in_model_prefill")
			if at := time.Duration(s.Start-zero.UnixNano()) + ttft; at != first {
				t.Errorf("%s: the first token is at %v of the span and at %v of the stream", name, at, first)
			}
			if prefill <= 0 || queue+prefill > ttft || took("e2e") != time.Duration(s.End-s.Start) {
				t.Errorf("%s: queue %v and prefill %v of a TTFT of %v, e2e %v", name, queue, prefill, ttft, took("e2e"))
			}
		})
	}
}
