package result

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// pooledCalls are three calls of an API that generates nothing, 40 ms each.
func pooledCalls() []Call {
	var calls []Call
	for i := range 3 {
		at := time.Duration(i) * 100 * msec
		calls = append(calls, Call{Index: i, Due: at, Ready: at, Sent: at, Headers: at + 30*msec, End: at + 40*msec,
			WantIn: 10, Want: 128, Usage: &Usage{Prompt: 10}})
	}
	return calls
}

// Calls of an API that generates nothing succeed without a token: the latency
// is up to their end, and what counts output is absent, not zero.
func TestPooled(t *testing.T) {
	calls := pooledCalls()
	s := summarize(t, Header{Rate: 10}, Options{}, calls)
	const d = 0.24
	for name, want := range map[string]float64{
		"completed": 3, "total_input_tokens": 30, "request_throughput": 3 / d, "total_token_throughput": 30 / d,
		"mean_e2el_ms": 40, "p99_e2el_due_ms": 40, "mean_stream_ms": 40,
	} {
		if got, ok := s.Figures[name]; !ok || got < want*(1-1e-12) || got > want*(1+1e-12) {
			t.Errorf("%s = %v (there: %v), want %v", name, got, ok, want)
		}
	}
	for name := range s.Figures {
		for _, part := range []string{"output", "ttft", "tpot", "itl", "ttfa", "merged"} {
			if strings.Contains(name, part) {
				t.Errorf("%s is there", name)
			}
		}
	}
}

// By vLLM's definitions too a run that generates nothing has the latency up to
// the end, from before the connection, and no figure of output.
func TestPooledCompat(t *testing.T) {
	calls := pooledCalls()
	calls[2].New, calls[2].Dial, calls[2].Sent = true, 5*msec, calls[2].Due+5*msec
	bounds, err := ParseGoodput("e2el:39 e2el:100")
	if err != nil {
		t.Fatal(err)
	}
	for _, bound := range bounds {
		o := Options{Goodput: []SLO{bound}}
		ours := summarize(t, Header{}, o, calls)
		o.Compat = VLLM
		s := summarize(t, Header{}, o, calls)
		if diff := cmp.Diff(slices.Sorted(maps.Keys(ours.Figures)), slices.Sorted(maps.Keys(s.Figures))); diff != "" {
			t.Errorf("other figures are there: -ours +compat\n%s", diff)
		}
		if s.Figures["mean_e2el_ms"] != 40 || ours.Figures["mean_e2el_ms"] >= 39 || s.Figures["max_concurrent_requests"] != 1 {
			t.Errorf("mean E2EL %v, ours %v, in flight %v", s.Figures["mean_e2el_ms"], ours.Figures["mean_e2el_ms"], s.Figures["max_concurrent_requests"])
		}
		want := 0.0
		if bound.Limit == 100 {
			want = 1
		}
		if got := s.Figures["goodput_ratio"]; got != want {
			t.Errorf("%s: goodput ratio %v, want %v", bound, got, want)
		}
	}
}
