package filter

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParts(t *testing.T) {
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	got, err := Parts(`engine=vLLM|none and p99_ttft_ms <= 500 ms, simulated!=yes "a b" mlperf:llama2-70b`, now)
	if err != nil {
		t.Fatal(err)
	}
	want := []Part{
		{Text: "engine=vLLM|none", Fact: "engine", Op: "=", Values: []string{"vllm", None}},
		{Text: "p99_ttft_ms <= 500 ms", Fact: "p99_ttft_ms", Op: "<="},
		{Text: "simulated!=yes", Fact: "simulated", Op: "!=", Values: []string{"true"}},
		{Text: `"a b"`},
		{Text: "mlperf:llama2-70b"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if _, err := Parts("engin=vllm", now); err == nil {
		t.Error("a fact that is not known was taken")
	}
}

// TestEquals: what a part says of a value is what is read again.
func TestEquals(t *testing.T) {
	for v, ok := range map[string]bool{
		"vllm": true, "": true, "8 x H100 80GB": true, `a"b`: true, "it's": true, "a,b": true, "é\u00a0x": true,
		`a"b'c`: false, "a|b": false, "a\x00b": false,
	} {
		p, got := Equals("hardware", v)
		if got != ok {
			t.Errorf("%q: %v", v, got)
			continue
		}
		if !ok {
			continue
		}
		again, err := Parts(p.Text+" x", time.Time{})
		if err != nil || len(again) != 2 || !cmp.Equal(again[0], p) {
			t.Errorf("%q: %+v, %v; want %+v", v, again, err, p)
		}
	}
}
