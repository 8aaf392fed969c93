package earlier

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"perflab/internal/arch"
	"perflab/internal/outcome"
	"perflab/internal/tune"
)

const (
	metric = "total_token_throughput"
	qwen   = "Qwen/Qwen3-32B"
)

// learner is a study of Qwen3-32B by vLLM and SGLang on four H100.
func learner(t *testing.T) Target {
	t.Helper()
	gpu, err := arch.LookupAccelerator("h100-sxm")
	if err != nil {
		t.Fatal(err)
	}
	return Target{
		Metric: metric, Model: qwen, Models: []string{qwen, qwen + "-FP8"}, Lookup: arch.LookupModel, Engines: map[string]string{"vllm": "0.11.0", "sglang": ""},
		GPU: gpu, GPUs: 4, Load: Load{Dataset: "random", Input: 1024, Output: 128},
		Dimensions: []tune.Dimension{{Name: "engine"}, {Name: "model"}, {Name: "tp", Values: []string{"", "2", "4"}}, {Name: "max_num_seqs", Values: []string{"", "256", "512"}}},
	}
}

// measured is a result like those of the learner.
func measured(figure float64, set tune.Config) Result {
	c := tune.Config{"engine": "vllm", "model": qwen}
	maps.Copy(c, set)
	return Result{Config: c, Version: "0.11.0", GPU: "h100-sxm", GPUs: 4, Load: Load{Dataset: "random", Input: 1024, Output: 128}, Figures: map[string]float64{metric: figure}}
}

func weigh(t *testing.T, s Source) outcome.Earlier {
	t.Helper()
	return Weigh(learner(t), []Source{s})[0]
}

// TestLikeness: each difference takes something of it and is said; what has nothing in common
// teaches nothing.
func TestLikeness(t *testing.T) {
	for _, c := range []struct {
		what   string
		change func(*Result)
		want   float64
		said   string // "": nothing differs
	}{
		{"the same", func(*Result) {}, 1, ""},
		{"its length by chance", func(r *Result) { r.Load.Output = 125 }, 1, ""},
		{"another checkpoint", func(r *Result) { r.Config["model"] = qwen + "-FP8" }, 1, ""},
		{"another owner", func(r *Result) { r.Config["model"] = "/models/qwen3-32b" }, 1, ""},
		{"a smaller model", func(r *Result) { r.Config["model"] = "Qwen/Qwen3-14B" }, 0.66, "another model: Qwen3-14B against Qwen3-32B"},
		{"a far smaller model", func(r *Result) { r.Config["model"] = "Qwen/Qwen3-0.6B" }, 0, "a model of another size: Qwen3-0.6B against Qwen3-32B"},
		{"another kind", func(r *Result) { r.Config["model"] = "Qwen/Qwen3-30B-A3B" }, 0, "another kind of model: Qwen3-30B-A3B (mixture of experts) against Qwen3-32B (dense)"},
		{"an unknown model", func(r *Result) { r.Config["model"] = "acme/tiny" }, 0, "another model, tiny against Qwen3-32B, and perflab does not know how alike they are"},
		{"a version", func(r *Result) { r.Version = "0.10.1" }, 0.9, "another version of vLLM: 0.10.1 against 0.11.0"},
		{"a version that is not known", func(r *Result) { r.Version = "" }, 1, ""},
		{"an engine", func(r *Result) { r.Config["engine"] = "trtllm" }, 0.7, "no engine in common"},
		{"half the devices", func(r *Result) { r.GPUs = 2 }, 0.8, "2 devices against 4"},
		{"an accelerator", func(r *Result) { r.GPU = "a100-sxm-80" }, 0.7, "other hardware: NVIDIA A100"},
		{"no accelerator", func(r *Result) { r.GPU = "cpu" }, 0, "other hardware: CPU of the host against NVIDIA H100 SXM"},
		{"hardware that is not known", func(r *Result) { r.GPU = "" }, 0.5, "its hardware is not known"},
		{"lengths", func(r *Result) { r.Load.Input, r.Load.Output = 512, 64 }, 0.81, "another load: 512/64 tokens against 1024/128"},
		{"a rate", func(r *Result) { r.Load.Rate = 10 }, 0.6, "another load: 10 requests/s against all at once"},
		{"a dataset", func(r *Result) { r.Load.Dataset = "sharegpt" }, 0.9, "another dataset: sharegpt against random"},
	} {
		s := Source{Name: "a"}
		for i, v := range []string{"", "2"} {
			r := measured(100+float64(i), tune.Config{"tp": v})
			c.change(&r)
			s.Results = append(s.Results, r)
		}
		e := weigh(t, s)
		said := strings.Join(e.Differences, "; ")
		if math.Abs(e.Likeness-c.want) > 0.011 || !strings.HasPrefix(said, c.said) || c.said == "" && said != "" {
			t.Errorf("%s: likeness %v (%s), want %v (%s)", c.what, e.Likeness, said, c.want, c.said)
		}
		if taught := len(Known([]outcome.Earlier{e})) > 0; taught != (c.want > 0) || (e.Configurations == 2) != taught {
			t.Errorf("%s: it gives %d configurations, of a likeness of %v", c.what, e.Configurations, c.want)
		}
	}
}

// TestRatios: figures are ratios to the study's own baseline under the same share of the
// load, the mean over launches; of a configuration that met all of the load that alone counts.
func TestRatios(t *testing.T) {
	with := func(r Result, share float64, base bool) Result {
		r.Share, r.Baseline = share, base
		return r
	}
	base, two, many := tune.Config(nil), tune.Config{"tp": "2"}, tune.Config{"max_num_seqs": "512"}
	e := weigh(t, Source{Name: "a", Results: []Result{
		with(measured(100, base), 0, true), with(measured(400, base), 0, true), // 200 on logarithms
		with(measured(50, base), 0.3, true),
		with(measured(300, two), 0, false), with(measured(10, two), 0.3, false),
		with(measured(75, many), 0.3, false),
		with(measured(1, tune.Config{"tp": "4"}), 0.5, false),
	}})
	got := map[string]float64{}
	for _, k := range e.Measured {
		got[k.Config["tp"]+"/"+k.Config["max_num_seqs"]] = k.Figures[metric]
	}
	want := map[string]float64{"/": 1, "2/": 1.5, "/512": 1.5}
	if !maps.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }) {
		t.Errorf("ratios %v, want %v", got, want)
	}
	if !slices.Contains(e.Unused, "Of 7 results 1 is not used: they are of a part of the load, and the baseline was not measured under it") {
		t.Errorf("said of the rest: %q", e.Unused)
	}
}

// TestMapping: configurations are in this study's words, and what cannot be mapped is counted.
func TestMapping(t *testing.T) {
	other := measured(90, tune.Config{"tp": "2"})
	other.Load.Input = 8000
	e := weigh(t, Source{Name: "a", Results: []Result{
		measured(100, tune.Config{"model": "/data/Qwen3-32B", "tp": "1", "block_size": "32"}),
		measured(120, tune.Config{"model": "acme/Qwen3-32B-FP8", "tp": "2", "block_size": "32"}),
		measured(300, tune.Config{"tp": "2", "block_size": "64"}), // who knows what made the difference
		other,
		{Figures: map[string]float64{metric: 5}},
		{Config: tune.Config{"engine": "vllm", "model": qwen}, Figures: map[string]float64{"mean_ttft_ms": 5}},
	}})
	var configs []tune.Config
	for _, k := range e.Measured {
		configs = append(configs, k.Config)
	}
	want := []tune.Config{{"engine": "vllm", "model": qwen}, {"engine": "vllm", "model": qwen + "-FP8", "tp": "2"}}
	if len(configs) != 2 || !maps.Equal(configs[0], want[0]) || !maps.Equal(configs[1], want[1]) {
		t.Errorf("configurations %v, want %v", configs, want)
	}
	for _, why := range []string{"no configuration is known", "they have no " + metric, "they are of other loads", "they set what this study does not vary"} {
		if !slices.ContainsFunc(e.Unused, func(s string) bool { return strings.HasPrefix(s, "Of 6 results 1 is not used: "+why) }) {
			t.Errorf("nobody says %q: %q", why, e.Unused)
		}
	}
}

// TestNearestOfSeveral: of several loads the most alike is used that has anything to compare.
func TestNearestOfSeveral(t *testing.T) {
	var all []Result
	for _, v := range []string{"", "2"} {
		far, near := measured(100, tune.Config{"tp": v}), measured(100, tune.Config{"tp": v})
		far.Load.Input, near.Load.Input = 8192, 512
		all = append(all, far, near)
	}
	all = append(all, measured(100, nil)) // the same load, of one configuration
	if e := weigh(t, Source{Name: "a", Results: all}); e.Likeness != 0.9 || e.Configurations != 2 {
		t.Errorf("likeness %v, %d configurations", e.Likeness, e.Configurations)
	}
	e := weigh(t, Source{Name: "a", Results: all[4:]})
	if e.Configurations != 0 || Known([]outcome.Earlier{e}) != nil || len(e.Unused) != 1 {
		t.Errorf("one configuration teaches %+v", e)
	}
}

// TestRefuse: a simulator directs no study of real engines.
func TestRefuse(t *testing.T) {
	real, simulated := learner(t), learner(t)
	simulated.Simulated = true
	s := Source{Name: "a", Simulated: true, Results: []Result{measured(1, nil), measured(2, tune.Config{"tp": "2"})}}
	if real.Refuse(s) == nil || simulated.Refuse(s) != nil || real.Refuse(Source{}) != nil {
		t.Error("SIMULATED sources are refused where they should not be, or not where they should")
	}
	if e := Weigh(simulated, []Source{s})[0]; e.Likeness != 1 || !e.Simulated {
		t.Errorf("%+v", e)
	}
	s.Simulated = false
	if e := Weigh(simulated, []Source{s})[0]; e.Likeness != 0.7 || len(e.Differences) != 1 {
		t.Errorf("%+v", e)
	}
}
