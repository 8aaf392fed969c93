package calib

import (
	"slices"
	"strings"
	"testing"
	"time"

	"perflab/internal/arch"
	"perflab/internal/engine"
	"perflab/internal/sim"
)

// apart is a replica of prefill and decode engines that are configured alike.
func apart(cfg engine.Config, prefills, decodes int) engine.Config {
	prefill := cfg
	cfg.Prefills, cfg.Decodes, cfg.Prefill = prefills, decodes, &prefill
	cfg.GPUs *= prefills + decodes
	return cfg
}

// TestPoolBottleneck: which pool is short follows from what the engines, and the links
// between them, do in the time that passes.
func TestPoolBottleneck(t *testing.T) {
	const s = time.Second
	cfg := apart(engine.Config{
		Engine: "vllm", TP: 1, GPUs: 1, Seqs: 256, Batched: 8192, KVBytes: 2, MemoryShare: 0.9, Prefix: true, GraphMax: 512,
		Model: arch.Model{Format: arch.BF16, KVHeads: 8}, GPU: arch.Accelerator{Name: "a", FP8TFLOPS: 1, LinkDevices: 2},
	}, 2, 1)
	for _, c := range []struct {
		name            string
		prefill, decode time.Duration // steps of an engine, in 100 s
		moving          time.Duration // of the one link that receives
		idle            time.Duration
		use             float64
		share           float64
		say             []string
	}{
		{PrefillEngines, 95 * s, 99 * s, 10 * s, 0, 0, 0.95, []string{"compute for 95 % of the time", "2.0 requests wait for each", "waits 50 ms for room", "in use for 10 %", "In these engines: multiplying by dense weights takes 100 %"}},
		{DecodeEngines, 30 * s, 99 * s, 10 * s, 0, 0, 0.99, []string{"work for 99 % of the time", "the prefill engines compute for 30 %", "In these engines: reading dense weights takes 100 %"}},
		{KVTransfer, 30 * s, 99 * s, 90 * s, 0, 0, 0.9, []string{"in use for 90 % of the time", "waits 20 ms for one", "FP8 KV cache", "at most 2 GPUs", "disaggregation=none"}},
		{PrefillEngines, 95 * s, 99 * s, 90 * s, 0, 0, 0.95, nil},
		{OfferedLoad, 20 * s, 30 * s, s, 60 * s, 0, 0.6, []string{"nothing to do for 60 %"}},
		{OfferedLoad, 90 * s, 99 * s, s, 0, 0.5, 0.5, []string{"50 % of what"}},
	} {
		for _, replicas := range []int{1, 2} {
			one := sim.Stats{Times: sim.Times{Arithmetic: 2 * c.prefill, Weights: c.decode}, Waits: sim.Waits{Idle: c.idle}, Pools: &sim.Pools{
				Prefill:  sim.Stats{Times: sim.Times{Arithmetic: 2 * c.prefill}, Busy: 2 * c.prefill, WaitingTime: 400 * s},
				Decode:   sim.Stats{Times: sim.Times{Weights: c.decode}, Busy: c.decode},
				Replicas: 1, Prefills: 2, Decodes: 1, Egress: 2, Ingress: 1, Elapsed: 100 * s,
				Moving: c.moving, Transfers: 100, LinkWait: 2 * s, RoomWait: 5 * s,
			}}
			stats := one
			if replicas == 2 {
				stats = one.With(one)
			}
			b := (&loadedRun{cfg, stats, c.use, c.use, 100}).bottleneck()
			if b.Name != c.name || b.Share < c.share-0.001 || b.Share > c.share+0.001 || !slices.Contains(Bottlenecks, b.Name) || !strings.HasSuffix(b.Text, ".") || strings.Contains(b.Text, "%!") {
				t.Errorf("%d replicas: %+v, want %s of %.2f", replicas, b, c.name, c.share)
			}
			for _, want := range c.say {
				if !strings.Contains(b.Text, want) {
					t.Errorf("%s lacks %q: %s", c.name, want, b.Text)
				}
			}
		}
	}
}

// TestPredictPools: a prediction of engines apart has all that others have, says what is
// assumed, and is wider for that.
func TestPredictPools(t *testing.T) {
	cfg := resolved(t, "vllm serve Qwen/Qwen3-14B", "a100-sxm-80", 1)
	load := Load{Requests: 60, Input: Lengths{Mean: 3000}, Output: Lengths{Mean: 20}}
	whole := predict(t, own(), Question{Config: cfg, Replicas: 2, Load: load, Draws: -1})
	p := predict(t, own(), Question{Config: apart(cfg, 1, 1), Load: load, Draws: -1})
	if b := p.Bottleneck; b.Name != PrefillEngines || b.Share < poolShare {
		t.Errorf("%+v", b)
	}
	if p.Summary.Figures["p99_itl_ms"] >= whole.Summary.Figures["p99_itl_ms"] || p.KV.Tokens != whole.KV.Tokens || p.Steps.Finished != 60 {
		t.Errorf("P99 of ITL is %v apart and %v of whole engines; %+v", p.Summary.Figures["p99_itl_ms"], whole.Summary.Figures["p99_itl_ms"], p.KV)
	}
	if waits := WaitSeconds(p.Steps.Waits); waits[KVTransfer] <= 0 || len(WaitSeconds(whole.Steps.Waits)) != 5 {
		t.Errorf("%v", waits)
	}
	const said = "separate prefill and decode engines"
	about := func(p Prediction) string { return strings.Join(p.Outside, "\n") }
	if !strings.Contains(about(p), said) || strings.Contains(about(whole), said) || strings.Contains(about(p), "GPUs of a replica") != strings.Contains(about(whole), "GPUs of a replica") {
		t.Errorf("apart: %s\nwhole: %s", about(p), about(whole))
	}
	seen := own()
	for i := range seen.Seen {
		seen.Seen[i].Disaggregated = true
	}
	if again := predict(t, seen, Question{Config: apart(cfg, 1, 1), Load: load, Draws: -1}); strings.Contains(about(again), said) {
		t.Errorf("seen, and yet: %s", about(again))
	}
	// Twelve draws of constants go through, those of what is between the engines too.
	drawn := predict(t, Calibration{}, Question{Config: apart(cfg, 1, 1), Load: load, Draws: 3})
	if len(drawn.Figures) != 0 || drawn.Summary.Figures[Throughput] <= 0 {
		t.Errorf("without errors figures have ranges: %v", drawn.Figures)
	}
}
