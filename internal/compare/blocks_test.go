package compare

import (
	"strings"
	"testing"
	"time"

	"perflab/internal/result"
	"perflab/internal/verdict"
)

// What a run says of its own noise is by its calls: of a figure with an interval
// by that, of a rate by blocks, and of a burst nothing.
func TestStandardError(t *testing.T) {
	calls := func(every time.Duration) []result.Call {
		var out []result.Call
		for i := range 400 {
			sent := time.Duration(i) * every
			took := time.Duration(100+13*(i*i%7)) * time.Millisecond
			out = append(out, result.Call{
				Index: i, Due: sent, Ready: sent, Sent: sent, Headers: sent + took/2, Answer: sent + took/2, End: sent + took, Status: 200, Class: result.OK,
				Chunks: []result.Chunk{{At: sent + took/2, Tokens: 1}, {At: sent + took, Tokens: 1}}, Usage: &result.Usage{Prompt: 8, Completion: 2}, Want: 2,
			})
		}
		return out
	}
	for _, tt := range []struct {
		metric string
		every  time.Duration
		known  bool
	}{
		{"mean_ttft_ms", 50 * time.Millisecond, true},
		{"output_throughput", 50 * time.Millisecond, true},
		{"output_throughput", 0, false},
		{"nosuch", 50 * time.Millisecond, false},
	} {
		m := Run{Calls: calls(tt.every)}
		var err error
		if m.Summary, err = verdict.Summarize(m.Header, nil, result.Options{}, func(yield func(result.Call) bool) {
			for _, c := range m.Calls {
				if !yield(c) {
					return
				}
			}
		}); err != nil {
			t.Fatal(err)
		}
		se, ok := StandardError(m, tt.metric)
		if ok != tt.known || ok && !(se > 0 && se < 0.1) {
			t.Errorf("%s every %v: %v, known %v", tt.metric, tt.every, se, ok)
		}
	}
}

// TestSampledBlocks: of a run so long that one call in so many is at hand, rates and
// latencies still have intervals, and they hold the figures of all calls.
func TestSampledBlocks(t *testing.T) {
	const every = 4
	var calls []result.Call
	for i := range 40_000 {
		due := time.Duration(i) * time.Millisecond
		ttft := time.Duration(20+i*7919%13) * time.Millisecond
		c := result.Call{Index: i, Due: due, Ready: due, Sent: due, WantIn: 10, Usage: &result.Usage{Prompt: 10, Completion: 2}}
		c.Chunks = []result.Chunk{{At: due + ttft, Tokens: 1}, {At: due + 2*ttft, Tokens: 1}}
		c.End = due + 2*ttft
		calls = append(calls, c)
	}
	h := result.Header{Requests: len(calls), Rate: 1000}
	all := measured(t, "all", h, calls, result.Options{})
	some := all
	some.Calls, some.Summary.OneIn = nil, every
	for i := 0; i < len(calls); i += every {
		some.Calls = append(some.Calls, calls[i])
	}
	for _, name := range []string{"mean_ttft_ms", "p99_ttft_ms", "request_throughput", "output_throughput"} {
		m, err := result.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		r := newBlockedRun(some)
		e, why := r.estimate(m, all.Summary.Figures[name], r.blocks)
		if why != "" || e.Value != all.Summary.Figures[name] {
			t.Errorf("%s: %v, %s", name, e.Value, why)
		}
		if text := e.count(r.blocks, every); !strings.Contains(text, "one in 4") {
			t.Errorf("it does not say of which calls: %s", text)
		}
	}
}
