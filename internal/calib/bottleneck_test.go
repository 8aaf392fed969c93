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

// TestBottleneck: what is named, and advice that follows from the
// configuration.
func TestBottleneck(t *testing.T) {
	const s = time.Second
	k, _ := (&Calibration{}).Constants()
	vllm := engine.Config{
		Engine: "vllm", TP: 2, Seqs: 256, Batched: 8192, KVBytes: 2, MemoryShare: 0.9, Prefix: true, GraphMax: 512,
		Model: arch.Model{Format: arch.BF16, KVHeads: 8}, GPU: arch.Accelerator{Name: "a", FP8TFLOPS: 1},
	}
	with := func(change func(*engine.Config)) engine.Config { c := vllm; change(&c); return c }
	fp8 := with(func(c *engine.Config) { c.Model.Format, c.KVBytes, c.MemoryShare = arch.FP8, 1, 0.95 })
	for _, c := range []struct {
		name    string
		cfg     engine.Config
		use     float64
		stats   sim.Stats
		share   float64
		say     []string
		without []string
	}{
		{OfferedLoad, vllm, 0, sim.Stats{Times: sim.Times{Weights: 6 * s}, Waits: sim.Waits{Idle: 4 * s}}, 0.4, []string{"40 % of the time", "Offer more"}, nil},
		{OfferedLoad, vllm, 0.5, sim.Stats{Times: sim.Times{Weights: 6 * s}}, 0.5, []string{"50 %", "reading dense weights takes 100 %"}, nil},
		{FrontEnd, vllm, 0, sim.Stats{Times: sim.Times{Weights: 6 * s}, Waits: sim.Waits{FrontEnd: 4 * s}}, 0.4, []string{"40 %", "--api-server-count"}, nil},
		{FrontEnd, with(func(c *engine.Config) { c.Engine = "sglang" }), 0, sim.Stats{Times: sim.Times{Weights: 6 * s}, Waits: sim.Waits{FrontEnd: 4 * s}}, 0.4, []string{"further replicas"}, []string{"--api-server-count"}},
		{KVBlocks, vllm, 0, sim.Stats{Times: sim.Times{Weights: 6 * s, Arithmetic: 4 * s}, Waits: sim.Waits{KV: 8 * s}}, 0.8, []string{"80 % of the time", "60 % of the steps", "FP8 KV cache", "above 0.9"}, nil},
		{KVBlocks, fp8, 0, sim.Stats{Times: sim.Times{Weights: 6 * s}, Waits: sim.Waits{KV: 5 * s}}, 5.0 / 6, []string{"larger tp"}, []string{"FP8", "gpu_memory"}},
		{RunLimit, vllm, 0, sim.Stats{Times: sim.Times{Weights: 6 * s}, Waits: sim.Waits{Seqs: 5 * s}}, 5.0 / 6, []string{"max_num_seqs above 256"}, nil},
		{StepTokens, vllm, 0, sim.Stats{Times: sim.Times{Host: 6 * s}, Waits: sim.Waits{Tokens: 5 * s}}, 5.0 / 6, []string{"max_num_batched_tokens above 8192"}, nil},
		// Room does not help where arithmetic takes the time.
		{Arithmetic, vllm, 0, sim.Stats{Times: sim.Times{Arithmetic: 9 * s, Weights: s}, Waits: sim.Waits{KV: 9 * s}}, 0.9, []string{"90 % of the steps", "FP8 weights"}, nil},
		{Arithmetic, fp8, 0, sim.Stats{Times: sim.Times{Arithmetic: 9 * s, Weights: s}}, 0.9, []string{"More GPUs"}, []string{"FP8"}},
		{Experts, fp8, 0, sim.Stats{Times: sim.Times{Experts: 4 * s, Arithmetic: 3 * s, KV: 3 * s}}, 0.4, []string{"takes 40 % of the steps and multiplying by dense weights 30 %"}, nil},
		{Experts, fp8, 0, sim.Stats{Times: sim.Times{Experts: 5 * s, ExpertReads: 4 * s, Host: s}}, 0.5, []string{"more than the 50 % that"}, []string{"does not help"}},
		{Experts, vllm, 0, sim.Stats{Times: sim.Times{Experts: 9 * s, Weights: s}}, 0.9, []string{"experts"}, nil},
		{Weights, vllm, 0, sim.Stats{PeakRunning: 8, Times: sim.Times{Weights: 9 * s, Arithmetic: s}}, 0.9, []string{"send more requests", "halve"}, nil},
		{Weights, fp8, 0, sim.Stats{PeakRunning: 256, Times: sim.Times{Weights: 9 * s, Arithmetic: s}}, 0.9, []string{"max_num_seqs above 256"}, []string{"halve"}},
		{ExpertReads, vllm, 0, sim.Stats{PeakKV: 1, PeakRunning: 8, Times: sim.Times{ExpertReads: 9 * s, Arithmetic: s}}, 0.9, []string{"the KV cache is full"}, nil},
		{KVReads, vllm, 0, sim.Stats{Times: sim.Times{KV: 9 * s, Weights: s}}, 0.9, []string{"FP8 KV cache"}, nil},
		{KVReads, fp8, 0, sim.Stats{Times: sim.Times{KV: 9 * s, Weights: s}}, 0.9, []string{"larger tp"}, []string{"FP8"}},
		{Attention, vllm, 0, sim.Stats{Times: sim.Times{Attention: 9 * s, Weights: s}}, 0.9, []string{"square"}, []string{"Prefix caching"}},
		{Attention, with(func(c *engine.Config) { c.Prefix = false }), 0, sim.Stats{Times: sim.Times{Attention: 9 * s, Weights: s}}, 0.9, []string{"Prefix caching"}, nil},
		{Collectives, vllm, 0, sim.Stats{Times: sim.Times{Collectives: 9 * s, Weights: s}}, 0.9, []string{"smaller tp"}, nil},
		{Elementwise, vllm, 0, sim.Stats{Times: sim.Times{Elementwise: 9 * s, Weights: s}}, 0.9, []string{"replicas"}, nil},
		{Host, vllm, 0, sim.Stats{Times: sim.Times{Host: 9 * s, Weights: s}}, 0.9, []string{"larger batch"}, []string{"enforce_eager"}},
		{Launches, with(func(c *engine.Config) { c.PromptGraphs = 512 }), 0, sim.Stats{Times: sim.Times{Launches: 9 * s, Weights: s}}, 0.9, []string{"Launching kernels one by one takes 90 %", "up to 512 tokens: raise max_cudagraph_capture_size"}, nil},
		{Launches, with(func(c *engine.Config) { c.PromptGraphs = 0 }), 0, sim.Stats{Times: sim.Times{Launches: 9 * s, Weights: s}}, 0.9, []string{"decode steps only"}, []string{"capture_size"}},
		{Launches, with(func(c *engine.Config) { c.GraphMax, c.PromptGraphs = 0, 0 }), 0, sim.Stats{Times: sim.Times{Launches: 9 * s, Weights: s}}, 0.9, []string{"enforce_eager"}, nil},
		{Host, with(func(c *engine.Config) { c.GraphMax = 0 }), 0, sim.Stats{Times: sim.Times{Host: 9 * s, Weights: s}}, 0.9, []string{"enforce_eager"}, nil},
		{Fetching, vllm, 0, sim.Stats{Times: sim.Times{Fetching: 9 * s, Weights: s}}, 0.9, []string{"KV blocks from and to the host", "FP8 KV cache"}, nil},
		{Drafting, vllm, 0, sim.Stats{Times: sim.Times{Drafting: 9 * s, Weights: s}}, 0.9, []string{"Draft fewer"}, nil},
		{"", vllm, 0, sim.Stats{}, 0, nil, nil},
	} {
		a := predictor{Question: Question{Config: c.cfg}, constants: k}
		r := loadedRun{c.cfg, c.stats, c.use, c.use, a.frontEndRate()}
		b := r.bottleneck()
		if b.Name != c.name || b.Share < c.share-0.001 || b.Share > c.share+0.001 {
			t.Errorf("%s: %+v, want a share of %.2f", c.name, b, c.share)
		}
		if c.name != "" && (!slices.Contains(Bottlenecks, b.Name) || !strings.HasSuffix(b.Text, ".") || strings.Contains(b.Text, "%!")) {
			t.Errorf("%s: %q", c.name, b.Text)
		}
		for _, want := range c.say {
			if !strings.Contains(b.Text, want) {
				t.Errorf("%s lacks %q: %s", c.name, want, b.Text)
			}
		}
		for _, no := range c.without {
			if strings.Contains(b.Text, no) {
				t.Errorf("%s has %q: %s", c.name, no, b.Text)
			}
		}
	}
}
