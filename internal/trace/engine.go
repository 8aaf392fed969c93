package trace

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"perflab/internal/otlp"
	"perflab/internal/result"
)

// The attributes in which vLLM's and SGLang's spans tell the times of a request, in seconds.
// The conventions have no names for these.
const (
	QueueTime   = "gen_ai.latency.time_in_queue"
	PrefillTime = "gen_ai.latency.time_in_model_prefill"
	DecodeTime  = "gen_ai.latency.time_in_model_decode"
	FirstToken  = "gen_ai.latency.time_to_first_token"
	EndToEnd    = "gen_ai.latency.e2e"
)

// Took is a time that an engine may tell.
type Took struct {
	time.Duration
	Known bool
}

// Times are what an engine's spans say of one call.
type Times struct {
	Queue   Took // from the request's place in the scheduler's queue to its first step
	Prefill Took // from there to the first token
	Decode  Took // from there to the last
	First   Took // time to first token as the engine sees it
	E2E     Took

	Spans     int    // of the trace that tell a time
	Service   string // that made them
	Simulated bool   // a simulator made them
}

// IDs are the traces of calls, for Engine.
func IDs(calls iter.Seq[result.Call]) map[string]bool {
	ids := map[string]bool{}
	for c := range calls {
		if c.TraceID != "" {
			ids[c.TraceID] = true
		}
	}
	return ids
}

// Engine gathers what spans say of the calls whose traces are wanted, by trace. Where several spans
// of a trace tell a time, as where one engine computes the prompt and another generates, the
// earliest counts for the time before the first token, and the latest for the time after it.
// An error comes with what was read before it.
func Engine(spans iter.Seq2[otlp.Span, error], wanted map[string]bool) (map[string]Times, error) {
	found := map[string][]otlp.Span{}
	var fault error
	for s, err := range spans {
		if err != nil {
			fault = err
			break
		}
		if wanted[s.TraceID] && tells(&s) {
			found[s.TraceID] = append(found[s.TraceID], s)
		}
	}
	out := make(map[string]Times, len(found))
	for id, of := range found {
		slices.SortStableFunc(of, func(a, b otlp.Span) int { return cmp.Compare(a.Start, b.Start) })
		out[id] = timesOf(of)
	}
	return out, fault
}

// tells reports whether a span has one of the times.
func tells(s *otlp.Span) bool {
	return slices.ContainsFunc([]string{QueueTime, PrefillTime, DecodeTime, FirstToken, EndToEnd}, func(key string) bool { return seconds(s, key).Known })
}

// seconds is a time of a span; one that cannot be is none.
func seconds(s *otlp.Span, key string) Took {
	v, ok := s.Number(key)
	const most = 1e6 // seconds
	if !ok || v < 0 || v > most {
		return Took{}
	}
	return Took{time.Duration(v * float64(time.Second)), true}
}

// timesOf joins the spans of one trace, which are in order.
func timesOf(spans []otlp.Span) Times {
	t := Times{Spans: len(spans)}
	for i := range spans {
		s := &spans[i]
		t.Simulated = t.Simulated || s.Yes(Simulated)
		if t.Service == "" {
			t.Service = s.Service
		}
		for _, x := range []struct {
			to  *Took
			key string
		}{{&t.Queue, QueueTime}, {&t.Prefill, PrefillTime}, {&t.First, FirstToken}, {&t.E2E, EndToEnd}} {
			if d := seconds(s, x.key); d.Known && !x.to.Known {
				*x.to = d
			}
		}
		if d := seconds(s, DecodeTime); d.Known {
			t.Decode = d
		}
	}
	// vLLM counts the prefill from the first step on, SGLang's front end from when it handed the
	// request on, the time in the queue included. Only of the first the two fit into the time to first token.
	if t.Queue.Known && t.Prefill.Known && t.First.Known && t.Queue.Duration+t.Prefill.Duration > t.First.Duration+slack {
		t.Prefill.Duration = max(0, t.Prefill.Duration-t.Queue.Duration)
	}
	return t
}

// slack is what two clocks' readings of the same instants may differ by.
const slack = time.Millisecond

// Parts are where the time of a call went, client and engine on one line. They follow each other,
// but for Decode, which is the engine's part of Stream.
type Parts struct {
	Client  time.Duration // in the client's queue, for its place under the concurrency limit
	Connect time.Duration
	Between time.Duration // sent and not in the engine's queue or prefill: network, server front end, the way back
	Queue   Took          // of the engine
	Prefill Took
	Stream  time.Duration // first token to last, as the client saw it
	Decode  Took          // the same as the engine saw it
}

// Split splits the time of a successful call, from due to last token. ok is false where there is
// no token, or where the engine claims more time before the first one than the client waited for it:
// then the spans are not of this call.
func Split(c *result.Call, e Times) (p Parts, ok bool) {
	first, ok := c.FirstToken()
	if !ok || !c.OK() || e.Spans == 0 {
		return p, false
	}
	last, _ := c.LastToken()
	p = Parts{Client: max(0, c.Sent-c.Dial-c.Due), Connect: c.Dial, Queue: e.Queue, Prefill: e.Prefill, Stream: last - first, Decode: e.Decode}
	p.Between = first - c.Sent - e.Queue.Duration - e.Prefill.Duration
	if p.Between < -slack {
		return Parts{}, false
	}
	p.Between = max(0, p.Between) // within what the readings of clocks differ by
	return p, true
}

// Lasted is the time from when the call was due to its last token.
func (p Parts) Lasted() time.Duration {
	return p.Client + p.Connect + p.Between + p.Queue.Duration + p.Prefill.Duration + p.Stream
}
