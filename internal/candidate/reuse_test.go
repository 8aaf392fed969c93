package candidate

import (
	"slices"
	"strings"
	"testing"

	"perflab/internal/engine"
	"perflab/internal/tune"
)

// sharing is a study whose prompts begin alike, on hosts of so much memory (0: not known).
func sharing(t *testing.T, shared bool, hostGiB float64, version string) *Field {
	t.Helper()
	resolve := resolver("h100-sxm", 4, map[string]use{"vllm": {version: version}, "sglang": {version: "0.5.23"}})
	f, err := New(Options{
		Baseline: set("engine", "vllm", "model", q32+"-FP8"), Engines: []string{"vllm", "sglang"}, GPUs: 4, Shared: shared,
		Resolve: func(c tune.Config) (engine.Command, engine.Config, error) {
			cmd, cfg, err := resolve(c)
			if err != nil || hostGiB == 0 {
				return cmd, cfg, err
			}
			gpu := cfg.GPU
			gpu.HostGiB = hostGiB
			cfg, err = cmd.Resolve(cfg.Model, gpu, 4)
			return cmd, cfg, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestHostCacheSteps: sizes are steps where prompts begin alike and the engine's version takes them, and only there.
func TestHostCacheSteps(t *testing.T) {
	for _, tt := range []struct {
		shared  bool
		host    float64
		version string
		engine  string
		want    []string
	}{
		{true, 0, "0.33.0", "vllm", []string{"host_cache 32", "host_cache 64", "host_cache 128"}},
		{true, 300, "0.33.0", "vllm", []string{"host_cache 32", "host_cache 64"}}, // four replicas
		{true, 0, "0.33.0", "sglang", []string{"host_cache 32", "host_cache 64", "host_cache 128"}},
		{true, 0, "0.11.0", "vllm", nil},
		{false, 0, "0.33.0", "vllm", nil},
	} {
		f := sharing(t, tt.shared, tt.host, tt.version)
		var got []string
		for _, ch := range f.Steps(set("engine", tt.engine, "model", q32+"-FP8")) {
			if strings.Contains(ch.Label, "host_cache") {
				got = append(got, ch.Label)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%+v: %q", tt, got)
		}
		has := slices.ContainsFunc(f.Domain(), func(d tune.Dimension) bool { return d.Name == engine.HostCache })
		if has != tt.shared {
			t.Errorf("%+v: a dimension of its own: %v", tt, has)
		}
	}
}

// TestReuseMoves: a run's own counters ask for a host cache, with the reason.
func TestReuseMoves(t *testing.T) {
	vllm, sglang := set("engine", "vllm", "model", q32+"-FP8"), set("engine", "sglang", "model", q32+"-FP8")
	low := map[string]float64{"prefix_hit_ratio": 0.41, "possible_prefix_hit_ratio": 0.93}
	for _, tt := range []struct {
		name    string
		shared  bool
		host    float64
		config  tune.Config
		figures map[string]float64
		want    string // "": none
		why     string
	}{
		{"few hits of many", true, 0, vllm, low, "host_cache 128", "41 % of the prompts' tokens were found in the prefix cache and 93 % could have been: a host cache keeps what the devices give up"},
		{"what is possible where requests went", true, 0, vllm, map[string]float64{"prefix_hit_ratio": 0.41, "possible_prefix_hit_ratio": 0.93, "routed_prefix_hit_ratio": 0.45}, "", ""},
		{"hosts with less", true, 300, vllm, low, "host_cache 64", "41 %"},
		{"another engine", true, 0, sglang, low, "host_cache 128", "41 %"},
		{"more of it", true, 0, with(sglang, set("host_cache", "64")), low, "host_cache 128", "41 %"},
		{"all there is", true, 0, with(sglang, set("host_cache", "128")), low, "", ""},
		{"vLLM does not tell what the host had", true, 0, with(vllm, set("host_cache", "32")), low, "", ""},
		{"preemptions", true, 0, with(vllm, set("host_cache", "32")), map[string]float64{"preemptions": 7}, "host_cache 128", "7 requests lost their room in the KV cache and were computed again: a host cache"},
		{"most found", true, 0, vllm, map[string]float64{"prefix_hit_ratio": 0.86, "possible_prefix_hit_ratio": 0.93}, "", ""},
		{"nothing known", true, 0, vllm, map[string]float64{"prefix_hit_ratio": 0.41}, "", ""},
		{"nothing shared", false, 0, vllm, low, "", ""},
	} {
		f := sharing(t, tt.shared, tt.host, "0.33.0")
		got, why := "", ""
		for _, ch := range f.Moves(tt.config, tt.figures, nil) {
			if strings.Contains(ch.Label, "host_cache") {
				got, why = ch.Label, ch.Why
			}
		}
		if got != tt.want || !strings.HasPrefix(why, tt.why) {
			t.Errorf("%s: %q, %q", tt.name, got, why)
		}
	}
	off := sharing(t, true, 0, "0.33.0").Moves(with(vllm, set("prefix_caching", "false")), map[string]float64{}, nil)
	if len(off) != 1 || off[0].Why != "prompts begin alike, and the prefix cache is off" {
		t.Errorf("%+v", off)
	}
}
