package trace

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"perflab/internal/otlp"
	"perflab/internal/result"
)

const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	spanID  = "00f067aa0ba902b7"
)

// full is a call whose every phase took time.
func full() result.Call {
	at := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	return result.Call{
		Index: 3, Due: at(10), Ready: at(30), Sent: at(40), Wrote: at(41), First: at(43), Headers: at(43), End: at(152),
		Conn:   result.Conn{New: true, Dial: at(5)},
		Chunks: []result.Chunk{{At: at(100), Tokens: 1}, {At: at(125), Tokens: 1}, {At: at(150), Tokens: 1}},
		Finish: "length", Status: 200, Want: 3, Session: 2, Turn: 1, Text: "the answer", Usage: &result.Usage{Prompt: 11, Completion: 3, Cached: 8},
		TraceID: traceID, SpanID: spanID,
	}
}

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func run() Run {
	return Run{Header: result.Header{Version: "1.2", Model: "m", Backend: "openai-chat", Targets: []string{"http://127.0.0.1:8000"}, Started: start.Add(-time.Minute)}, Start: start}
}

// show is a span's name, and its begin and end in milliseconds from the run's start.
func show(s otlp.Span) string {
	return fmt.Sprintf("%s %d-%d", s.Name, (s.Start-start.UnixNano())/1e6, (s.End-start.UnixNano())/1e6)
}

func TestSpans(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*result.Call)
		want   []string
	}{
		{"all", func(*result.Call) {}, []string{"chat m 10-152", "queue 10-35", "connect 35-40", "send 40-41", "wait for first byte 41-43", "first token 43-100", "tokens 100-150", "end 150-152"}},
		{"kept connection", func(c *result.Call) { c.Conn = result.Conn{} }, []string{"chat m 10-152", "queue 10-40", "send 40-41", "wait for first byte 41-43", "first token 43-100", "tokens 100-150", "end 150-152"}},
		{"of an import", func(c *result.Call) { c.Wrote, c.First = 0, 0 }, []string{"chat m 10-152", "queue 10-35", "connect 35-40", "first token 40-100", "tokens 100-150", "end 150-152"}},
		{"refused connection", func(c *result.Call) {
			*c = result.Call{Due: c.Due, Sent: c.Sent, End: 45 * time.Millisecond, Class: result.Connect, Error: "connection refused"}
		}, []string{"chat m 10-45", "queue 10-40", "no answer 40-45"}},
		{"refused request", func(c *result.Call) { c.Chunks, c.Status, c.Class = nil, 429, result.HTTPStatus }, []string{"chat m 10-152", "queue 10-35", "connect 35-40", "send 40-41", "wait for first byte 41-43", "end 43-152"}},
		{"adapter", func(c *result.Call) {
			*c = result.Call{Model: "lora", Due: c.Due, Sent: c.Due, End: c.End, Class: result.Cancelled}
		}, []string{"chat lora 10-152", "no answer 10-152"}},
	} {
		call := full()
		c.change(&call)
		spans := run().Spans(&call)
		var got []string
		ids := map[string]bool{}
		for i, s := range spans {
			got = append(got, show(s))
			if ids[s.SpanID] || s.TraceID != spans[0].TraceID || len(s.SpanID) != 16 || len(s.TraceID) != 32 {
				t.Errorf("%s: %s has the ids %s, %s", c.name, s.Name, s.TraceID, s.SpanID)
			}
			ids[s.SpanID] = true
			if want := map[bool]string{true: "", false: spans[0].SpanID}[i == 0]; s.Parent != want {
				t.Errorf("%s: %s is below %q", c.name, s.Name, s.Parent)
			}
		}
		if diff := gocmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		if spans[0].Failed == call.OK() || spans[0].Message != call.Error {
			t.Errorf("%s: failed %v, %q", c.name, spans[0].Failed, spans[0].Message)
		}
	}
}

func TestAttributes(t *testing.T) {
	call := full()
	s := run().Spans(&call)[0]
	if s.TraceID != traceID || s.SpanID != spanID || s.Kind != otlp.Client {
		t.Errorf("%+v", s)
	}
	var got []string
	for _, a := range s.Attrs {
		got = append(got, fmt.Sprintf("%s=%v", a.Key, a.Value))
	}
	want := strings.Fields(`gen_ai.operation.name=chat gen_ai.provider.name=openai gen_ai.request.model=m server.address=127.0.0.1 server.port=8000
		gen_ai.request.max_tokens=3 gen_ai.request.stream=true gen_ai.response.time_to_first_chunk=0.06 gen_ai.response.finish_reasons=[length]
		gen_ai.usage.input_tokens=11 gen_ai.usage.output_tokens=3 gen_ai.usage.cache_read.input_tokens=8 http.response.status_code=200 perflab.call=3
		gen_ai.conversation.id=2 perflab.turn=1`)
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if line := string(otlp.Append(nil, run().Source(), run().Spans(&call))); strings.Contains(line, "the answer") {
		t.Error("a span has the text of an answer")
	}
}

// What no engine answered says so in each span.
func TestSimulated(t *testing.T) {
	for _, c := range []struct {
		header result.Header
		call   result.Call
		want   bool
	}{
		{result.Header{}, full(), false},
		{result.Header{Simulated: true}, full(), true},
		{result.Header{Predicted: true}, full(), true},
		{result.Header{}, result.Call{Sim: true, End: 1}, true},
	} {
		for _, s := range (Run{Header: c.header, Start: start}).Spans(&c.call) {
			if s.Yes(Simulated) != c.want {
				t.Errorf("%+v, call simulated %v: %s is marked %v", c.header, c.call.Sim, s.Name, !c.want)
			}
		}
	}
}

// Calls without a trace context have ids of their own, the same each time.
func TestOwnIDs(t *testing.T) {
	seen := map[string]bool{}
	for i := range 100 {
		c := full()
		c.Index, c.TraceID, c.SpanID = i, "", ""
		trace, span := run().ids(&c)
		again, _ := run().ids(&c)
		if trace != again || seen[trace] || len(trace) != 32 || len(span) != 16 {
			t.Fatalf("call %d: %s, %s, %s", i, trace, again, span)
		}
		seen[trace] = true
	}
	c, other := full(), run()
	c.TraceID = ""
	other.Header.Started = other.Header.Started.Add(1)
	a, _ := run().ids(&c)
	if b, _ := other.ids(&c); a == b {
		t.Error("two runs have the same traces")
	}
}

// spans yields spans and then an error, where there is one.
func spans(err error, all ...otlp.Span) iter.Seq2[otlp.Span, error] {
	return func(yield func(otlp.Span, error) bool) {
		for _, s := range all {
			if !yield(s, nil) {
				return
			}
		}
		if err != nil {
			yield(otlp.Span{}, err)
		}
	}
}

// told is a span with times, "queue=0.02".
func told(at int64, service string, times ...any) otlp.Span {
	s := otlp.Span{TraceID: traceID, Start: at, Service: service}
	for i := 0; i < len(times); i += 2 {
		s.Attrs = append(s.Attrs, otlp.Attr{Key: times[i].(string), Value: times[i+1]})
	}
	return s
}

func took(ms int) Took { return Took{time.Duration(ms) * time.Millisecond, true} }

func TestEngine(t *testing.T) {
	for _, c := range []struct {
		name  string
		spans []otlp.Span
		want  map[string]Times
	}{
		{"vLLM", []otlp.Span{told(1, "vllm-server", FirstToken, 0.05, EndToEnd, 0.1, QueueTime, 0.02, PrefillTime, 0.025, DecodeTime, 0.05)},
			map[string]Times{traceID: {Queue: took(20), Prefill: took(25), Decode: took(50), First: took(50), E2E: took(100), Spans: 1, Service: "vllm-server"}}},
		{"SGLang counts the queue into the prefill, and tells it by a span of its own",
			[]otlp.Span{told(1, "sglang", FirstToken, 0.05, PrefillTime, 0.048, DecodeTime, 0.05), told(2, "sglang", QueueTime, 0.02)},
			map[string]Times{traceID: {Queue: took(20), Prefill: took(28), Decode: took(50), First: took(50), Spans: 2, Service: "sglang"}}},
		{"a prefill engine, and a decode engine whose span came first",
			[]otlp.Span{told(9, "decode", QueueTime, 0.5, PrefillTime, 0.001, DecodeTime, 0.07), told(5, "prefill", QueueTime, 0.02, PrefillTime, 0.03, DecodeTime, int64(0))},
			map[string]Times{traceID: {Queue: took(20), Prefill: took(30), Decode: took(70), Spans: 2, Service: "prefill"}}},
		{"a simulator", []otlp.Span{told(1, "", QueueTime, 0.0, Simulated, true)}, map[string]Times{traceID: {Queue: took(0), Spans: 1, Simulated: true}}},
		{"nothing told", []otlp.Span{told(1, "router", "http.status_code", int64(200))}, map[string]Times{}},
		{"times that cannot be", []otlp.Span{told(1, "x", QueueTime, -1.0, PrefillTime, 1e9)}, map[string]Times{}},
		{"another trace", []otlp.Span{{TraceID: "00f067aa0ba902b74bf92f3577b34da6", Attrs: []otlp.Attr{{Key: QueueTime, Value: 1.0}}}}, map[string]Times{}},
	} {
		got, err := Engine(spans(nil, c.spans...), map[string]bool{traceID: true})
		if err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
	broken := errors.New("broken")
	got, err := Engine(spans(broken, told(1, "x", QueueTime, 0.02)), IDs(slices.Values([]result.Call{full(), {}})))
	if err != broken || got[traceID].Queue != took(20) {
		t.Errorf("what was read before an error: %v, %v", got, err)
	}
}

func TestSplit(t *testing.T) {
	at := func(n float64) time.Duration { return time.Duration(n * 1e6) }
	whole := Times{Queue: took(20), Prefill: took(25), Decode: took(49), Spans: 1}
	for _, c := range []struct {
		name   string
		engine Times
		change func(*result.Call)
		want   Parts
		ok     bool
	}{
		{"all", whole, nil, Parts{Client: at(25), Connect: at(5), Between: at(15), Queue: took(20), Prefill: took(25), Stream: at(50), Decode: took(49)}, true},
		{"no prefill told", Times{Queue: took(20), Spans: 1}, nil, Parts{Client: at(25), Connect: at(5), Between: at(40), Queue: took(20), Stream: at(50)}, true},
		{"clocks apart by less than a millisecond", Times{Queue: took(20), Prefill: Took{at(40.5), true}, Spans: 1}, nil, Parts{Client: at(25), Connect: at(5), Queue: took(20), Prefill: Took{at(40.5), true}, Stream: at(50)}, true},
		{"more than the client waited", Times{Queue: took(50), Prefill: took(25), Spans: 1}, nil, Parts{}, false},
		{"failed", whole, func(c *result.Call) { c.Class = result.EarlyClose }, Parts{}, false},
		{"no token", whole, func(c *result.Call) { c.Chunks = nil }, Parts{}, false},
		{"no span", Times{}, nil, Parts{}, false},
	} {
		call := full()
		if c.change != nil {
			c.change(&call)
		}
		got, ok := Split(&call, c.engine)
		if ok != c.ok || ok && got != c.want {
			t.Errorf("%s: %+v, %v", c.name, got, ok)
		}
		last, _ := call.LastToken()
		if far := got.Lasted() - (last - call.Due); ok && cmp.Compare(far.Abs(), slack) > 0 {
			t.Errorf("%s: the parts are %v, the call took %v", c.name, got.Lasted(), last-call.Due)
		}
	}
}
