package sim

import "testing"

// TestChunksAreFound: what a chunk of a long prompt computes is found by the
// next request at once, in every engine.
func TestChunksAreFound(t *testing.T) {
	for _, name := range []string{"vllm", "sglang"} {
		cfg := engines()[name]
		cfg.Batched = 512
		c := mustCore(t, cfg, Options{})
		for i := range 2 {
			if err := c.Submit(Job{Index: i, Prompt: prompt(0, 2048), Output: 2}); err != nil {
				t.Fatal(err)
			}
		}
		want := (2048 - 1) / cfg.Block * cfg.Block
		for step, ok := c.Step(); ok; step, ok = c.Step() {
			for _, p := range step.Progress {
				if p.Index == 1 && p.Cached != want {
					t.Fatalf("%s: the second prompt finds %d tokens, want %d", name, p.Cached, want)
				}
			}
		}
	}
}
