package candidate

import (
	"maps"
	"testing"

	"perflab/internal/arch"
	"perflab/internal/engine"
	"perflab/internal/tune"
)

// use is what a study says of an engine.
type use struct {
	version string
	set     map[string]string
	flags   []string
}

// resolver makes configurations concrete as a study does.
func resolver(gpu string, gpus int, uses map[string]use) func(tune.Config) (engine.Command, engine.Config, error) {
	return func(c tune.Config) (engine.Command, engine.Config, error) {
		u := uses[c["engine"]]
		all := map[string]string{}
		maps.Copy(all, u.set)
		maps.Copy(all, params(c))
		cmd, err := engine.New(c["engine"], c["model"], all, u.flags)
		if err != nil {
			return engine.Command{}, engine.Config{}, err
		}
		cmd.Version = u.version
		g, err := arch.LookupAccelerator(gpu)
		if err != nil {
			return cmd, engine.Config{}, err
		}
		m, err := arch.LookupModel(c["model"])
		if err != nil && cmd.Modelled() == nil {
			return cmd, engine.Config{}, err
		}
		cfg, err := cmd.Outline(m, g, gpus)
		return cmd, cfg, err
	}
}

func set(kv ...string) tune.Config {
	c := tune.Config{}
	for i := 0; i < len(kv); i += 2 {
		c[kv[i]] = kv[i+1]
	}
	return c
}

func change(label string, kv ...string) tune.Change {
	return tune.Change{Label: label, Set: set(kv...)}
}

func fresh(label string, kv ...string) tune.Change {
	return tune.Change{Label: label, Set: set(kv...), Replace: true}
}

// study is one of the examples, with its stages.
type study struct {
	Options
	stages [][]tune.Change
}

const (
	q32   = "Qwen/Qwen3-32B"
	q235  = "Qwen/Qwen3-235B-A22B-Instruct-2507"
	q35   = "Qwen/Qwen3.5-35B-A3B"
	llama = "models/tiny-llama-f16.gguf"
)

// studies are the examples' spaces, by hand.
func studies() map[string]study {
	all := map[string]study{
		"qwen3-32b-h100": {Options{
			Baseline: set("engine", "vllm", "model", q32), Engines: []string{"vllm", "sglang", "trtllm"}, Models: []string{q32, q32 + "-FP8"},
			GPUs: 1, Longest: 32100,
			Resolve: resolver("h100-pcie", 1, map[string]use{"vllm": {version: "0.11.0", set: map[string]string{"max_model_len": "32768"}}, "sglang": {version: "0.5.5.post1"}, "trtllm": {version: "1.2.0rc1"}}),
		}, [][]tune.Change{
			{change("SGLang", "engine", "sglang"), change("TensorRT-LLM", "engine", "trtllm")},
			{change("FP8", "model", q32+"-FP8")},
			{change("chunked prefill", "chunked_prefill", "true", "max_model_len", "40960")},
		}},
		"qwen3-235b-a100": {Options{
			Baseline: set("engine", "vllm", "model", q235, "tp", "8"), Engines: []string{"vllm", "sglang"}, Models: []string{q235, q235 + "-FP8"},
			GPUs: 8, Longest: 32100,
			Resolve: resolver("a100-sxm-80", 8, map[string]use{"vllm": {version: "0.11.0"}, "sglang": {version: "0.5.5.post1"}}),
		}, [][]tune.Change{
			{change("SGLang TP8", "engine", "sglang")},
			{
				change("SGLang FP8 TP8", "engine", "sglang", "model", q235+"-FP8"),
				fresh("vLLM FP8 TP8", "engine", "vllm", "model", q235+"-FP8", "tp", "8"),
				fresh("vLLM FP8 TP8 EP", "engine", "vllm", "model", q235+"-FP8", "tp", "8", "expert_parallel", "true"),
			},
			{
				fresh("vLLM FP8 TP4", "engine", "vllm", "model", q235+"-FP8", "tp", "4"),
				fresh("vLLM FP8 TP4 EP", "engine", "vllm", "model", q235+"-FP8", "tp", "4", "expert_parallel", "true"),
			},
			{change("4096 tokens", "max_num_batched_tokens", "4096"), change("8192 tokens", "max_num_batched_tokens", "8192")},
		}},
		"qwen3.5-35b-h200-latency": {Options{
			Baseline: set("engine", "vllm", "model", q35), Engines: []string{"vllm", "sglang"}, Models: []string{q35, q35 + "-FP8"},
			GPUs: 1, Latency: true, Longest: 1184,
			Resolve: resolver("h200", 1, map[string]use{
				"vllm":   {version: "0.17.1", set: map[string]string{"max_model_len": "32768"}, flags: []string{"--reasoning-parser=qwen3"}},
				"sglang": {version: "0.5.9", set: map[string]string{"max_model_len": "32768"}, flags: []string{"--reasoning-parser=qwen3"}},
			}),
		}, [][]tune.Change{
			{change("SGLang", "engine", "sglang")},
			{change("FP8", "model", q35+"-FP8")},
			{change("size 256", "max_cudagraph_capture_size", "256")},
			{change("16k", "max_num_batched_tokens", "16384"), change("32k", "max_num_batched_tokens", "32768")},
			{change("interactivity", "performance_mode", "interactivity")},
			{change("MTP, 1 token", "speculative", "mtp:1")},
		}},
		"llamacpp-cpu": {Options{
			Baseline: set("engine", "llamacpp", "model", llama), Engines: []string{"llamacpp"},
			Models: []string{llama, "models/tiny-llama-q8_0.gguf", "models/tiny-llama-q4_0.gguf"}, GPUs: 1, Longest: 480,
			Resolve: resolver("cpu", 1, nil),
		}, [][]tune.Change{
			{change("Q8_0", "model", "models/tiny-llama-q8_0.gguf"), change("Q4_0", "model", "models/tiny-llama-q4_0.gguf")},
			{change("1 slot", "max_num_seqs", "1", "max_model_len", "1024"), change("8 slots", "max_num_seqs", "8", "max_model_len", "1024")},
			{change("1 thread", "threads", "1"), change("1 thread and 2 for prompts", "threads", "1", "threads_batch", "2"), change("4 threads", "threads", "4")},
			{change("micro-batch 128", "micro_batch", "128"), change("micro-batch 1024", "micro_batch", "1024"), change("batch 512", "max_num_batched_tokens", "512")},
			{change("keys and values in Q8_0", "kv_cache_dtype", "q8_0"), change("no flash attention", "flash_attention", "off"), change("no prefix cache", "prefix_caching", "false")},
		}},
		"vllm-cpu": {Options{
			Baseline: set("engine", "vllm", "model", "Qwen/Qwen3-0.6B", "enforce_eager", "true"), Engines: []string{"vllm"}, Models: []string{"Qwen/Qwen3-0.6B"}, GPUs: 1, Longest: 480,
			Resolve: resolver("cpu", 1, map[string]use{"vllm": {version: "0.32.0", set: map[string]string{"max_model_len": "2048"}, flags: []string{"--kv-cache-memory-bytes=1073741824"}}}),
		}, [][]tune.Change{{change("compiled", "enforce_eager", "false")}}},
		"docker-vllm": {Options{
			Baseline: set("engine", "vllm", "model", q32, "tp", "2"), Engines: []string{"sglang", "vllm"}, Models: []string{q32, q32 + "-FP8"},
			GPUs: 8, Numerics: true, Longest: 16256,
			Resolve: resolver("h100-sxm", 8, map[string]use{"vllm": {version: "0.11.0"}, "sglang": {version: "0.5.5"}}),
		}, [][]tune.Change{
			{change("SGLang TP2", "engine", "sglang")},
			{change("FP8", "model", q32+"-FP8")},
			{change("TP1", "tp", "1"), change("TP4", "tp", "4")},
			{change("4096 tokens", "max_num_batched_tokens", "4096"), change("16384 tokens", "max_num_batched_tokens", "16384")},
		}},
		"ssh-two-nodes": {Options{
			Baseline: set("engine", "vllm", "model", q235, "tp", "8"), Engines: []string{"sglang", "vllm"}, Models: []string{q235, q235 + "-FP8"},
			GPUs: 16, Longest: 16256,
			Resolve: resolver("h100-sxm", 16, map[string]use{"vllm": {version: "0.12.0"}, "sglang": {version: "0.5.5"}}),
		}, [][]tune.Change{
			{change("vLLM TP8 PP2", "pp", "2")},
			{
				fresh("FP8 TP8 EP", "engine", "vllm", "model", q235+"-FP8", "tp", "8", "expert_parallel", "true"),
				fresh("FP8 TP4 EP", "engine", "vllm", "model", q235+"-FP8", "tp", "4", "expert_parallel", "true"),
			},
			{fresh("SGLang FP8 TP8 EP", "engine", "sglang", "model", q235+"-FP8", "tp", "8", "expert_parallel", "true")},
		}},
	}
	for name, s := range all {
		for _, stage := range s.stages {
			s.Changes = append(s.Changes, stage...)
		}
		all[name] = s
	}
	return all
}

// field is a study's.
func field(t *testing.T, s study) *Field {
	t.Helper()
	f, err := New(s.Options)
	if err != nil {
		t.Fatal(err)
	}
	return f
}
