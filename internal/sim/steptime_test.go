package sim

import (
	"math"
	"slices"
	"testing"
	"time"

	"perflab/internal/arch"
	"perflab/internal/engine"
)

func TestStepTime(t *testing.T) {
	dur := func(change func(*engine.Config), b batch) time.Duration {
		cfg := testConfig()
		if change != nil {
			change(&cfg)
		}
		k := constantsFor(nil, cfg)
		return newStepModel(cfg, k).duration(&b, new(Times))
	}
	decode := func(n, ctx int) (b batch) {
		for range n {
			b.decode(ctx, 1, 0)
		}
		return b
	}
	prefill := func(p, c int) (b batch) { b.chunk(p, c, 0, true); return b }
	fp8 := func(c *engine.Config) { c.Model.Format = arch.FP8 }
	for _, tt := range []struct {
		what         string
		less, longer time.Duration
	}{
		{"more context", dur(nil, decode(8, 100)), dur(nil, decode(8, 10_000))},
		{"more sequences", dur(nil, decode(8, 100)), dur(nil, decode(64, 100))},
		{"a longer chunk", dur(nil, prefill(0, 1000)), dur(nil, prefill(0, 2000))},
		{"a later chunk", dur(nil, prefill(0, 1000)), dur(nil, prefill(20_000, 1000))},
		{"no graph", dur(nil, decode(8, 100)), dur(func(c *engine.Config) { c.GraphMax = 4 }, decode(8, 100))},
		{"16-bit weights", dur(fp8, decode(1, 100)), dur(nil, decode(1, 100))},
		{"weight-only FP8", dur(fp8, prefill(0, 8000)), dur(func(c *engine.Config) { fp8(c); c.WeightOnly = true }, prefill(0, 8000))},
		{"no FP8 units", dur(fp8, prefill(0, 8000)), dur(func(c *engine.Config) { fp8(c); c.GPU.FP8TFLOPS = 0 }, prefill(0, 8000))},
		{"fewer ranks", dur(func(c *engine.Config) { c.TP = 4 }, prefill(0, 8000)), dur(nil, prefill(0, 8000))},
		{"a slower link", dur(func(c *engine.Config) { c.TP = 4 }, prefill(0, 8000)), dur(func(c *engine.Config) { c.TP = 4; c.GPU.LinkGBs = 25 }, prefill(0, 8000))},
	} {
		if tt.less >= tt.longer {
			t.Errorf("%s: %v is not longer than %v", tt.what, tt.longer, tt.less)
		}
	}
	// A decode step of one sequence is bound by reading the weights.
	cfg := testConfig()
	floor := float64(cfg.Model.LinearBytes()+cfg.Model.HeadBytes()) / (cfg.GPU.BandwidthGBs * 1e9)
	if got := dur(nil, decode(1, 100)).Seconds(); got < floor || got > 4*floor {
		t.Errorf("a decode step takes %.2f ms, reading the weights %.2f ms", got*1e3, floor*1e3)
	}
}

// No step is faster than the device: arithmetic at its peak, weights and the
// cache of each sequence read once. A rank more never more than halves it.
func TestStepNeverBeatsTheDevice(t *testing.T) {
	for _, gpu := range arch.Accelerators() {
		for _, name := range []string{"Qwen/Qwen3-32B", "meta-llama/Llama-3.3-70B-Instruct-AWQ", "Qwen/Qwen3-32B-FP8", "openai/gpt-oss-120b", "Qwen/Qwen3.5-35B-A3B-FP8"} {
			m, err := arch.LookupModel(name)
			if err != nil {
				t.Fatal(err)
			}
			last := map[int]time.Duration{}
			for _, tp := range []int{1, 2, 4} {
				cfg := testConfig()
				cfg.Model, cfg.GPU, cfg.TP = m, gpu, tp
				k := constantsFor(nil, cfg)
				model, ranks := newStepModel(cfg, k), float64(tp)
				for _, n := range []int{1, 64, 2000} {
					var decode, prefill batch
					for range n {
						decode.decode(500, 1, m.Window)
					}
					prefill.chunk(0, n, m.Window, true)
					read := float64(m.LinearBytes()+m.HeadBytes())/ranks + float64(n)*kvRead(m, 500, tp)
					d, p := model.duration(&decode, new(Times)), model.duration(&prefill, new(Times))
					if floor := read / (gpu.BandwidthGBs * 1e9); d.Seconds() < floor {
						t.Errorf("%s on %d %s: %d decodes take %v, reading alone %.4f s", name, tp, gpu.Name, n, d, floor)
					}
					if floor := 2 * float64(n) * float64(m.Active()-m.HeadParams()) / (ranks * peakFLOPS(cfg)); p.Seconds() < floor {
						t.Errorf("%s on %d %s: %d prompt tokens take %v, arithmetic alone %.4f s", name, tp, gpu.Name, n, p, floor)
					}
					if before := last[n]; before > 2*d {
						t.Errorf("%s on %d %s: %d decodes take %v, with half the ranks %v", name, tp, gpu.Name, n, d, before)
					}
					last[n] = d
				}
			}
		}
	}
}

// The gain of speculation shrinks as the batch fills, of a dense model and without what
// drafting itself costs, whatever the constants: from at most the tokens more that a step
// brings, as long as reading the weights bounds it, to the share of its tokens that is kept,
// where arithmetic does.
func TestSpeculationUnderLoad(t *testing.T) {
	for _, accept := range []float64{0, 0.3, 0.65, 1} {
		cfg := testConfig()
		cfg.GraphMax = 1 << 20 // a step without a graph is another matter
		cfg.SpecTokens = 1
		none, err := constantsFor(nil, cfg).With(Set{Values: map[string]float64{"t_draft": 0, "t_draft_seq": 0, "t_seq": 0}})
		if err != nil {
			t.Fatal(err)
		}
		model := newStepModel(cfg, constantsFor(none, cfg))
		model.drafts = 0 // the draft's own layers
		gain := func(n int) float64 {
			var one, two batch
			for range n {
				one.decode(1, 1, 0)
				two.decode(1, 2, 0)
			}
			two.drafts = true
			return (1 + accept) * model.duration(&one, new(Times)).Seconds() / model.duration(&two, new(Times)).Seconds()
		}
		last := 1 + accept
		for n := 1; n <= 1<<16; n *= 4 {
			g := gain(n)
			if g >= last {
				t.Errorf("%.0f %% accepted: the gain is %.5f with %d sequences, with a quarter of them %.5f", 100*accept, g, n, last)
			}
			last = g
		}
		if want := (1 + accept) / 2; math.Abs(last/want-1) > 0.02 {
			t.Errorf("%.0f %% accepted: the gain is %.4f where arithmetic bounds the step, want %.4f", 100*accept, last, want)
		}
	}
}

func TestExpertCoverage(t *testing.T) {
	m := stepModel{parts: 1, pace: 1, moeGather: 1, experts: 128, active: 8, routing: 1, moeRead: 1}
	one := m.duration(&batch{tokens: 1}, new(Times))
	if got := one.Seconds(); math.Abs(got-8) > 1e-6 {
		t.Errorf("one token reaches %.3f experts, want 8", got)
	}
	if got := m.duration(&batch{tokens: 4096}, new(Times)).Seconds(); math.Abs(got-128) > 1e-3 {
		t.Errorf("many tokens reach %.3f experts, want 128", got)
	}
}

func TestCausal(t *testing.T) {
	for _, tt := range []struct {
		n, w int
		want float64
	}{{10, 100, 50}, {100, 100, 5000}, {1000, 100, 5000 + 90_000}} {
		if got := causal(tt.n, tt.w); got != tt.want {
			t.Errorf("causal(%d, %d) = %v, want %v", tt.n, tt.w, got, tt.want)
		}
	}
}

// Every constant says what it is and where it comes from, and every override
// names a constant.
func TestConstants(t *testing.T) {
	all := Default()
	for _, name := range all.Names() {
		c, _ := all.About(name)
		if c.Meaning == "" || c.Source == "" || c.Unit == "" || c.Symbol == "" || c.Prior < 0 || c.Spread < 0 || !slices.Contains([]string{"device", "format", "engine", "family", "model", "site", "installation"}, c.Of) {
			t.Errorf("%s: %+v", name, c)
		}
	}
	for _, s := range all.sets {
		if s.Source == "" || s.Accelerator == "" && s.Engine == "" && s.Source != "from fits of others" {
			t.Errorf("set %+v has no source or matches everything", s)
		}
	}
}

// What is known of a generation of an engine wins over what names none, wherever it stands,
// and speaks of no other.
func TestGenerations(t *testing.T) {
	c, err := Priors().With(
		Set{Engine: "vllm", Generation: "0.22", Values: map[string]float64{"t_seq": 1, "f_req": 2}, Spread: map[string]float64{"t_seq": 0.1}},
		Set{Accelerator: "h100-sxm", Engine: "vllm", Values: map[string]float64{"t_seq": 3, "t_step": 4}, Spread: map[string]float64{"t_seq": 0.3}},
	)
	if err != nil {
		t.Fatal(err)
	}
	before := Subject{Engine: "vllm", Accelerator: "h100-sxm"}
	since := before
	since.Generation = "0.22"
	for name, want := range map[string][2]float64{"t_seq": {3, 1}, "t_step": {4, 4}, "f_req": {Priors().Value(before, "f_req"), 2}} {
		if got := [2]float64{c.Value(before, name), c.Value(since, name)}; got != want {
			t.Errorf("%s is %v before and since, want %v", name, got, want)
		}
	}
	if a, b := c.Spread(before, "t_seq"), c.Spread(since, "t_seq"); a != 0.3 || b != 0.1 {
		t.Errorf("spreads are %v and %v", a, b)
	}
}

// A decode step costs what the graph that covers it does; beyond the largest one,
// beside prompts and with TensorRT-LLM it costs what it is.
func TestPadded(t *testing.T) {
	s := stepModel{pads: true, graphMax: 500}
	for n, want := range map[float64]float64{1: 1, 2: 2, 3: 4, 4: 4, 5: 8, 100: 104, 256: 256, 257: 272, 499: 500, 501: 501} {
		if got := s.padded(n); got != want {
			t.Errorf("%v tokens run as %v, want %v", n, got, want)
		}
	}
	s.pads = false
	if got := s.padded(5); got != 5 {
		t.Errorf("without padding 5 tokens run as %v", got)
	}
	s.sizes = []int{1, 2, 4, 8, 64}
	for n, want := range map[float64]float64{1: 1, 3: 4, 8: 8, 8.5: 64, 64: 64, 65: 65} {
		if got := s.padded(n); got != want {
			t.Errorf("%v tokens run as %v of the sizes given, want %v", n, got, want)
		}
	}
	cfg := testConfig()
	length := func(n, prompt int) time.Duration {
		var b batch
		for range n {
			b.decode(200, 1, 0)
		}
		if prompt > 0 {
			b.chunk(0, prompt, 0, true)
		}
		return newStepModel(cfg, constantsFor(Priors(), cfg)).duration(&b, new(Times))
	}
	k := Priors().About
	seq, _ := k("t_seq")
	perSeq := time.Duration(seq.Prior * 1e3)
	if d := length(62, 0) - length(61, 0); d < perSeq || d > perSeq+20*time.Microsecond {
		t.Errorf("within a graph a sequence more costs %v, want its own %v and its cache", d, perSeq)
	}
	if length(65, 0)-length(64, 0) <= length(64, 0)-length(63, 0) {
		t.Error("the next graph costs no more")
	}
}

// A draft layer costs what a layer of the model does over a row of each sequence,
// and the head: with experts that is more the more sequences there are.
func TestDrafting(t *testing.T) {
	cfg := testConfig()
	cfg.SpecTokens = 2
	s := newStepModel(cfg, constantsFor(Priors(), cfg))
	want := 2 * (s.linear.time(7)/s.layers + s.head.time(7))
	if got := s.drafting(7); math.Abs(got/want-1) > 1e-9 || s.linear.time(7) == 0 {
		t.Errorf("two drafts of 7 sequences cost %v s, want %v", got, want)
	}
	s.experts, s.active, s.routing, s.moeLayers, s.moeGather, s.moeRead, s.moeCompute, s.tile = 128, 8, 1, 40, 1, 1e-2, 1e-6, 16
	if few, many := s.drafting(1), s.drafting(64); few <= want/2 || many < 3*few {
		t.Errorf("one sequence's drafts cost %v s, of 64 %v s", few, many)
	}
}

// kvRead are the bytes of KV cache and state that one token after n others reads on a rank.
func kvRead(m arch.Model, n, tp int) float64 {
	tokens := (m.KVLayers()-m.WindowLayers)*n + m.WindowLayers*min(n, m.Window)
	return float64(int64(tokens)*m.KVBytesPerTokenLayer(2, tp) + m.StateBytesRank(tp, 1))
}

// TestKernels: a layer with experts has more kernels than one without, and so has latent
// attention; weights that Hopper widens are multiplied below its peak.
func TestKernels(t *testing.T) {
	host := func(model string) float64 {
		m, err := arch.LookupModel(model)
		if err != nil {
			t.Fatal(err)
		}
		cfg := testConfig()
		cfg.Model = m
		k, err := Priors().With(Set{Values: map[string]float64{"t_step": 0, "t_layer": 100}})
		if err != nil {
			t.Fatal(err)
		}
		return newStepModel(cfg, constantsFor(k, cfg)).step * 1e4 / float64(m.Layers)
	}
	for model, want := range map[string]float64{"Qwen/Qwen3-32B": 1, "Qwen/Qwen3-30B-A3B": 1.7, "deepseek-ai/DeepSeek-R1-0528": 1.7 + 0.7*58.0/61} {
		if got := host(model); math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: a layer counts as %v, want %v", model, got, want)
		}
	}
	for name, want := range map[string]float64{"h100-sxm": registerShare, "h200": registerShare, "a100-sxm-80": 1, "gb10": 1} {
		gpu, err := arch.LookupAccelerator(name)
		if err != nil {
			t.Fatal(err)
		}
		cfg := engine.Config{GPU: gpu, Model: arch.Model{Format: arch.INT4}, WeightOnly: true}
		if got := peakFLOPS(cfg) / (gpu.BF16TFLOPS * 1e12); math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: widened weights are multiplied at %v of the peak, want %v", name, got, want)
		}
	}
}

// TestRows: the rows of routed experts move as many bytes, whole to every rank that has slices
// of all experts, or to those alone whose experts they are for.
func TestRows(t *testing.T) {
	m, err := arch.LookupModel("Qwen/Qwen3-235B-A22B-Instruct-2507") // 94 layers, hidden 4096, 8 of 128 experts of 1536
	if err != nil {
		t.Fatal(err)
	}
	gpu, err := arch.LookupAccelerator("a100-sxm-80")
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []struct {
		tp, dp, ep  int
		rows, width float64
	}{{1, 1, 1, 8, 1536}, {8, 1, 1, 8, 192}, {8, 1, 8, 1, 1536}, {1, 8, 8, 1, 1536}, {2, 4, 1, 8, 768}} {
		cfg := testConfig()
		cfg.Model, cfg.GPU, cfg.TP, cfg.DP, cfg.EP = m, gpu, w.tp, w.dp, w.ep
		k, err := Priors().With(Set{Values: map[string]float64{"moe_bandwidth": 0.5, "ep_imbalance": 1}})
		if err != nil {
			t.Fatal(err)
		}
		want := 94 * w.rows * (6*4096 + 12*w.width) / (gpu.BandwidthGBs * 1e9 * 0.5)
		if got := newStepModel(cfg, constantsFor(k, cfg)).moeMove; math.Abs(got/want-1) > 1e-9 {
			t.Errorf("tp %d, dp %d, ep %d: a token's rows take %v s, want %v", w.tp, w.dp, w.ep, got, want)
		}
	}
}

// TestLaunches: a step that no graph covers takes at least its launches, whatever it computes;
// one that a graph covers, or that computes for longer, takes what it takes without.
func TestLaunches(t *testing.T) {
	cfg := testConfig()
	cfg.GraphMax, cfg.PromptGraphs = 512, 512
	launches := func(us float64) *stepModel {
		k, err := Priors().With(Set{Values: map[string]float64{"t_launch": us, "t_step": 0, "t_layer": 0, "t_seq": 0}})
		if err != nil {
			t.Fatal(err)
		}
		return newStepModel(cfg, constantsFor(k, cfg))
	}
	prompt := func(n int) *batch { var b batch; b.chunk(0, n, 0, true); return &b }
	decodes := func(n int) *batch {
		var b batch
		for range n {
			b.decode(100, 1, 0)
		}
		return &b
	}
	const us = 1000
	least := time.Duration(us*cfg.Model.Layers) * time.Microsecond
	for name, c := range map[string]struct {
		b     *batch
		waits bool // for launches
	}{
		"a prompt in a graph": {b: prompt(512)},
		"a prompt beyond":     {b: prompt(513), waits: true},
		"a long prompt":       {b: prompt(8192)},
		"decodes in a graph":  {b: decodes(512)},
		"decodes beyond":      {b: decodes(513), waits: true},
		"one decode":          {b: decodes(1)},
	} {
		var with, none Times
		got, base := launches(us).duration(c.b, &with), launches(0).duration(c.b, &none)
		want := base
		if c.waits {
			want = least
		}
		if got != want || with.Launches != want-base || with.Host != none.Host {
			t.Errorf("%s takes %v (%v of launches), want %v (%v)", name, got, with.Launches, want, want-base)
		}
	}
	cfg.GraphMax, cfg.PromptGraphs = 0, 0
	if got := launches(us).duration(decodes(1), new(Times)); got != least {
		t.Errorf("without graphs a decode takes %v, want %v", got, least)
	}
	m, err := arch.LookupModel("Qwen/Qwen3-30B-A3B")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Model = m
	if got, want := launches(us).duration(decodes(1), new(Times)), time.Duration(48*1.7*us)*time.Microsecond; (got - want).Abs() > 1 {
		t.Errorf("with experts in all 48 layers a decode takes %v, want %v", got, want)
	}
}
