package candidate

import (
	"reflect"
	"testing"
)

// apart is a field of six devices on which a study lists ways to take engines apart.
func apart(t *testing.T, ways ...string) *Field {
	t.Helper()
	f, err := New(Options{
		Resolve: resolver("h100-sxm", 6, map[string]use{"vllm": {version: "0.32.0"}, "trtllm": {version: "1.2.0"}}), GPUs: 6,
		Baseline: set("engine", "vllm", "model", "Qwen/Qwen3-8B"),
		Narrow:   map[string][]string{"engine": {"vllm", "trtllm"}, "tp": {"1"}, "disaggregation": ways},
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestPoolsAreRaced: what a study lists is a candidate of engines that can be taken apart;
// unasked no search does it.
func TestPoolsAreRaced(t *testing.T) {
	run, refused := labels(apart(t, "none", "1:1", "2:1", "1:2", "5:5").Candidates())
	want := []string{
		"vLLM, tp 1 x 6 replicas", "vLLM, tp 1 as 1:1 prefill:decode x 3 replicas",
		"vLLM, tp 1 as 2:1 prefill:decode x 2 replicas", "vLLM, tp 1 as 1:2 prefill:decode x 2 replicas",
		"TensorRT-LLM, tp 1 x 6 replicas",
	}
	if !reflect.DeepEqual(run, want) || len(refused) > 0 {
		t.Errorf("candidates %q, refused %q, want %q", run, refused, want)
	}
	f := apart(t, "none")
	run, _ = labels(f.Candidates())
	if want := []string{"vLLM, tp 1 x 6 replicas", "TensorRT-LLM, tp 1 x 6 replicas"}; !reflect.DeepEqual(run, want) {
		t.Errorf("not asked for: %q, want %q", run, want)
	}
}

// TestMovesBetweenPools: the pool for which requests wait gets more of the engines.
func TestMovesBetweenPools(t *testing.T) {
	f := apart(t, "none", "1:1", "2:1", "1:2")
	for _, c := range []struct {
		pools           string
		prefill, decode float64
		want            string
	}{
		{"1:1", 9, 0.5, "2:1"},
		{"1:1", 0.3, 12, "1:2"},
		{"2:1", 0.3, 12, "1:1"},
		{"2:1", 90, 0.5, ""}, // the study lists no more
		{"1:1", 9, 12, ""},
		{"1:1", 0.5, 0.5, ""},
	} {
		base := set("engine", "vllm", "model", "Qwen/Qwen3-8B", "disaggregation", c.pools)
		figures := map[string]float64{"mean_prefill_waiting_requests": c.prefill, "mean_waiting_requests": c.decode}
		got := ""
		for _, m := range f.Moves(base, figures, nil) {
			if v := m.Set["disaggregation"]; v != "" && got == "" {
				got = v
			}
		}
		if got != c.want {
			t.Errorf("%s with %v waiting for prefill and %v for decode: %q, want %q", c.pools, c.prefill, c.decode, got, c.want)
		}
	}
}
