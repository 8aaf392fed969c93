package compare

import (
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
