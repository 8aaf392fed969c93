package sim

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"perflab/internal/otlp"
)

// spanLog writes a span for each request that brought a trace context, under vLLM's names.
type spanLog struct {
	mu sync.Mutex
	w  io.Writer
}

// traced is what becomes the span of a request. Nothing is noted of one that is nil.
type traced struct {
	context                     otlp.Context
	arrive, queued, begun, last time.Duration
	first                       time.Duration // 0: no token yet
	prompt, output              int
}

// follow begins the span of a request; nil: its client traces nothing, or nobody wants spans.
func (s *Server) follow(r *http.Request, arrive time.Duration, prompt int) *traced {
	if s.spans == nil {
		return nil
	}
	c, ok := otlp.ParseContext(r.Header.Get("Traceparent"))
	if !ok || !c.Sampled() {
		return nil
	}
	return &traced{context: c, arrive: arrive, prompt: prompt}
}

// took notes what a step brought.
func (t *traced) took(p Progress) {
	if t == nil {
		return
	}
	if t.first == 0 {
		t.first, t.queued, t.begun = p.At, p.Queued, p.Begun
	}
	t.last = p.At
	t.output += p.N
}

// export writes the span of a request that has ended. Of one that was cut off before its first
// token there is none.
func (s *Server) export(t *traced, id string) {
	if t == nil || t.first == 0 {
		return
	}
	s.mu.Lock()
	epoch := s.epoch
	s.mu.Unlock()
	time := func(from, to time.Duration) float64 { return (to - from).Seconds() }
	span := otlp.Span{
		TraceID: t.context.TraceID(), Parent: t.context.SpanID(), SpanID: fmt.Sprintf("%016x", mix(uint64(t.arrive))^mix(uint64(t.last)+1)|1),
		Name: "llm_request", Kind: otlp.Server, Start: epoch.Add(t.arrive).UnixNano(), End: epoch.Add(t.last).UnixNano(),
		Attrs: []otlp.Attr{
			{Key: "gen_ai.latency.time_to_first_token", Value: time(t.arrive, t.first)},
			{Key: "gen_ai.latency.e2e", Value: time(t.arrive, t.last)},
			{Key: "gen_ai.latency.time_in_queue", Value: time(t.queued, t.begun)},
			{Key: "gen_ai.latency.time_in_model_prefill", Value: time(t.begun, t.first)},
			{Key: "gen_ai.latency.time_in_model_decode", Value: time(t.first, t.last)},
			{Key: "gen_ai.latency.time_in_model_inference", Value: time(t.begun, t.last)},
			{Key: "gen_ai.usage.prompt_tokens", Value: t.prompt},
			{Key: "gen_ai.usage.completion_tokens", Value: t.output},
			{Key: "gen_ai.request.id", Value: id},
			{Key: "gen_ai.response.model", Value: s.name},
			{Key: "perflab.simulated", Value: true},
		},
	}
	s.spans.write(append(otlp.Append(nil, otlp.Source{Service: "perflab-sim"}, []otlp.Span{span}), '\n'))
}

func (l *spanLog) write(line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.w.Write(line) // spans are beside the answers, which a full disk does not keep
}
