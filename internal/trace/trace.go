// Package trace tells where the time of a call went: as spans of OpenTelemetry for other tools,
// and joined with what the engine's own spans say of the same call. Pure.
//
//	spans := trace.Run{Header: h, Start: start}.Spans(&call)
//	engine, err := trace.Engine(otlp.Read(file), trace.IDs(calls))
//	parts, ok := trace.Split(&call, engine[call.TraceID])
//
// A call is a span of kind client by the semantic conventions for generative AI, and each of its
// phases a span below it: queue, connect, send, wait, first token, tokens, end. The engine's spans
// come below the call's as well, since the request carried its trace and span.
//
// Invariants: prompts, answers and headers are in no span; a phase that was not observed has no
// span; what a simulator made has perflab.simulated.
//
// Deliberately absent: a guess of what the engine did where it says nothing.
package trace

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"perflab/internal/otlp"
	"perflab/internal/result"
)

// Run is a run whose calls become spans.
type Run struct {
	Header result.Header
	Start  time.Time // from which the times of calls count; zero: Header.Started, which is somewhat before
}

// Source says who made the spans of a run.
func (r Run) Source() otlp.Source {
	h := r.Header
	return otlp.Source{Service: "perflab", Version: h.Version, Attrs: []otlp.Attr{
		{Key: "perflab.workload", Value: h.Workload}, {Key: "perflab.workload_fingerprint", Value: h.Fingerprint},
	}}
}

// Spans are those of a call: its own, and one for each phase that took time.
func (r Run) Spans(c *result.Call) []otlp.Span {
	trace, id := r.ids(c)
	whole := otlp.Span{
		TraceID: trace, SpanID: id, Name: operation(r.Header.Backend) + " " + cmp.Or(c.Model, r.Header.Model), Kind: otlp.Client,
		Start: r.at(c.Due), End: r.at(max(c.End, c.Due)), Attrs: r.attrs(c), Failed: !c.OK(), Message: c.Error,
	}
	spans := []otlp.Span{whole}
	for i, p := range phases(c) {
		if p.to <= p.from {
			continue
		}
		spans = append(spans, otlp.Span{
			TraceID: trace, SpanID: below(id, i), Parent: id, Name: p.name, Kind: otlp.Internal,
			Start: r.at(p.from), End: r.at(p.to), Attrs: r.simulated(c),
		})
	}
	return spans
}

// ids are the trace and the span of a call. One that was sent without has those that follow from
// the run's begin and the call's number, so that they are the same however often they are written.
func (r Run) ids(c *result.Call) (trace, span string) {
	if c.TraceID != "" && c.SpanID != "" {
		return c.TraceID, c.SpanID
	}
	h := r.Header
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%s\x00%d\x00%d", h.Fingerprint, h.Started.UnixNano(), h.Model, c.Agent, c.Index))
	return hex.EncodeToString(sum[:16]), hex.EncodeToString(sum[16:24])
}

// below is the span of a phase: of the call's, so that it is the same each time.
func below(span string, phase int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", span, phase))
	return hex.EncodeToString(sum[:8])
}

func (r Run) at(offset time.Duration) int64 {
	start := r.Start
	if start.IsZero() {
		start = r.Header.Started
	}
	return start.Add(offset).UnixNano()
}

// phase is a part of a call between two of its instants.
type phase struct {
	name     string
	from, to time.Duration
}

// phases are those of a call in their order. Those that a failure cut off take no time.
func phases(c *result.Call) []phase {
	first, answered := c.FirstToken()
	last, _ := c.LastToken()
	connecting := max(c.Due, c.Sent-c.Dial)
	all := []phase{
		{"queue", c.Due, connecting},
		{"connect", connecting, c.Sent},
		{"send", c.Sent, c.Wrote},
		{"wait for first byte", max(c.Sent, c.Wrote), c.First},
	}
	switch {
	case answered:
		return append(all, phase{"first token", max(c.Sent, c.First), first}, phase{"tokens", first, last}, phase{"end", last, c.End})
	case c.First > 0:
		return append(all, phase{"end", c.First, c.End})
	}
	return append(all, phase{"no answer", max(c.Sent, c.Wrote), c.End})
}

// attrs are the attributes of a call, those by the conventions first.
func (r Run) attrs(c *result.Call) []otlp.Attr {
	h := r.Header
	attrs := append([]otlp.Attr{
		{Key: "gen_ai.operation.name", Value: operation(h.Backend)},
		{Key: "gen_ai.provider.name", Value: provider(h.Backend)},
		{Key: "gen_ai.request.model", Value: cmp.Or(c.Model, h.Model)},
	}, r.server(c)...)
	add := func(key string, v int) {
		if v > 0 {
			attrs = append(attrs, otlp.Attr{Key: key, Value: v})
		}
	}
	add("gen_ai.request.max_tokens", c.Want)
	if d, ok := c.TTFT(); ok {
		attrs = append(attrs, otlp.Attr{Key: "gen_ai.request.stream", Value: true}, otlp.Attr{Key: "gen_ai.response.time_to_first_chunk", Value: d.Seconds()})
	}
	if c.Finish != "" {
		attrs = append(attrs, otlp.Attr{Key: "gen_ai.response.finish_reasons", Value: []string{c.Finish}})
	}
	if u := c.Usage; u != nil {
		add("gen_ai.usage.input_tokens", u.Prompt)
		add("gen_ai.usage.output_tokens", u.Completion)
		add("gen_ai.usage.cache_read.input_tokens", u.Cached)
		add("gen_ai.usage.reasoning.output_tokens", u.Reasoning)
	}
	add("http.response.status_code", c.Status)
	if !c.OK() {
		attrs = append(attrs, otlp.Attr{Key: "error.type", Value: string(c.Class)})
	}
	attrs = append(attrs, otlp.Attr{Key: "perflab.call", Value: c.Index})
	if c.Session > 0 {
		attrs = append(attrs, otlp.Attr{Key: "gen_ai.conversation.id", Value: strconv.Itoa(c.Session)}, otlp.Attr{Key: "perflab.turn", Value: c.Turn})
	}
	add("perflab.agent", c.Agent)
	return append(attrs, r.simulated(c)...)
}

// simulated marks what no real engine answered.
func (r Run) simulated(c *result.Call) []otlp.Attr {
	if c.Sim || r.Header.Simulated || r.Header.Predicted {
		return []otlp.Attr{{Key: Simulated, Value: true}}
	}
	return nil
}

// Simulated is the attribute of spans that a simulator made, or that were measured on one.
const Simulated = "perflab.simulated"

// server is the address that a call went to.
func (r Run) server(c *result.Call) []otlp.Attr {
	if c.Target < 0 || c.Target >= len(r.Header.Targets) {
		return nil
	}
	u, err := url.Parse(r.Header.Targets[c.Target])
	if err != nil || u.Hostname() == "" {
		return nil
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		port = map[string]int{"http": 80, "https": 443}[u.Scheme]
	}
	return []otlp.Attr{{Key: "server.address", Value: u.Hostname()}, {Key: "server.port", Value: port}}
}

// operation is what the conventions call the work of a backend; those for which they have no name
// have their own.
func operation(backend string) string {
	switch backend {
	case "openai-chat", "openai-responses", "anthropic":
		return "chat"
	case "openai", "vllm", "sglang", "":
		return "text_completion"
	case "openai-embeddings", "pooling":
		return "embeddings"
	}
	return backend
}

// provider is whose API was spoken, which is what the conventions mean by it.
func provider(backend string) string {
	switch backend {
	case "anthropic":
		return "anthropic"
	case "sglang":
		return "sglang"
	}
	return "openai"
}
