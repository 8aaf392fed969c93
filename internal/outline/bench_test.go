package outline

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"perflab/internal/sim"
	"perflab/internal/workload"
)

// long writes sessions that grow to 100,000 tokens.
func long(b *testing.B, sessions, turns int) string {
	var all []byte
	for s := range sessions {
		var list []map[string]any
		var ids []int
		for k := range turns {
			for len(ids) < (k+1)*100_000/64/turns {
				ids = append(ids, len(ids))
			}
			list = append(list, map[string]any{"input_tokens": 64 * len(ids), "output_tokens": 200, "blocks": append([]int(nil), ids...), "idle_s": 2})
		}
		text, err := json.Marshal(map[string]any{"id": fmt.Sprint(s), "turns": list})
		if err != nil {
			b.Fatal(err)
		}
		all = append(append(all, text...), '\n')
	}
	path := filepath.Join(b.TempDir(), "long.jsonl")
	if err := os.WriteFile(path, all, 0o600); err != nil {
		b.Fatal(err)
	}
	return path
}

// BenchmarkLongSessions replays eight sessions at once that grow to 100,000 tokens in fifty turns each: what their 20
// million prompt tokens cost is small beside the steps.
func BenchmarkLongSessions(b *testing.B) {
	w := open(b, workload.Spec{Dataset: "agents", Path: long(b, 8, 50), MaxConcurrency: 8})
	cfg := resolved(b, "vllm serve meta-llama/Llama-3.1-8B-Instruct")
	b.Run("jobs", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			New(w, nil).Means(1 << 20)
		}
	})
	b.Run("replay", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p := New(w, nil)
			out, err := sim.Replay(cfg, 1, p.Jobs(), p.Options(sim.ReplayOptions{KVTokens: 1_000_000}, 1))
			if err != nil {
				b.Fatal(err)
			}
			for o := range out {
				if o.Err != "" {
					b.Fatal(o.Err)
				}
			}
		}
	})
	b.Run("texts", func(b *testing.B) { // what the same prompts would cost as words
		for b.Loop() {
			for r := range w.All() {
				for more := true; more; r, _, more = w.Next(r, "") {
					if _, err := Tokens(r, nil); err != nil {
						b.Fatal(err)
					}
				}
			}
		}
	})
}
