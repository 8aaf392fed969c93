package result

import (
	"testing"
	"time"
)

// What a run says of its own noise is by its calls: of a figure with an interval
// by that, of a rate by blocks, and of a burst nothing.
func TestWithin(t *testing.T) {
	calls := func(every time.Duration) []Call {
		var out []Call
		for i := range 400 {
			sent := time.Duration(i) * every
			took := time.Duration(100+13*(i*i%7)) * time.Millisecond
			out = append(out, Call{
				Index: i, Due: sent, Ready: sent, Sent: sent, Headers: sent + took/2, Answer: sent + took/2, End: sent + took, Status: 200, Class: OK,
				Chunks: []Chunk{{At: sent + took/2, Tokens: 1}, {At: sent + took, Tokens: 1}}, Usage: &Usage{Prompt: 8, Completion: 2}, Want: 2,
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
		m := Measured{Calls: calls(tt.every)}
		var err error
		if m.Summary, err = Summarize(m.Header, nil, Options{}, func(yield func(Call) bool) {
			for _, c := range m.Calls {
				if !yield(c) {
					return
				}
			}
		}); err != nil {
			t.Fatal(err)
		}
		se, ok := Within(m, tt.metric)
		if ok != tt.known || ok && !(se > 0 && se < 0.1) {
			t.Errorf("%s every %v: %v, known %v", tt.metric, tt.every, se, ok)
		}
	}
}
