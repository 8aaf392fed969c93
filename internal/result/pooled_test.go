package result

import (
	"strings"
	"testing"
	"time"
)

// Calls of an API that generates nothing succeed without a token: the latency
// is up to their end, and what counts output is absent, not zero.
func TestPooled(t *testing.T) {
	var calls []Call
	for i := range 3 {
		at := time.Duration(i) * 100 * msec
		calls = append(calls, Call{Index: i, Due: at, Ready: at, Sent: at, Headers: at + 30*msec, End: at + 40*msec,
			WantIn: 10, Want: 128, Usage: &Usage{Prompt: 10}})
	}
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
	if c, _ := s.Verdict.Check("tokens"); s.Verdict.Status != Sound || c.Text != "nothing is generated: 3 whole answers to 30 input tokens" {
		t.Errorf("verdict %s: %+v", s.Verdict.Status, s.Verdict.Checks)
	}
	block := Block(s, Style{Sections: []string{"ttft", "tpot", "itl", "e2el"}})
	if strings.Contains(block, "generated") || strings.Contains(block, "First Token") || !strings.Contains(block, "Total token throughput (tok/s):") {
		t.Errorf("block:\n%s", block)
	}
	calls[0].Usage = nil
	if c, _ := summarize(t, Header{Rate: 10}, Options{}, calls).Verdict.Check("tokens"); c.Status != Noted {
		t.Errorf("one answer without usage: %+v", c)
	}
}
