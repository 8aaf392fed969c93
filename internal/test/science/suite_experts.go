package science

import (
	"perflab/internal/engine"
	"perflab/internal/tune"
)

const (
	qwen30  = "Qwen/Qwen3-30B-A3B"
	qwen235 = "Qwen/Qwen3-235B-A22B"
	qwen35  = "Qwen/Qwen3.5-35B-A3B"
	air     = "zai-org/GLM-4.5-Air"
	oss120  = "openai/gpt-oss-120b"
)

// experts are models of experts.
func experts() []Landscape {
	return []Landscape{
		{
			Name: "30b-a3b-h100-chat", About: "Qwen 30B-A3B, 1 H100, burst: throughput",
			Models: both(qwen30), GPU: "h100-sxm", GPUs: 1, Engines: three, Set: limit("8192"),
			Baseline: start("vllm", qwen30, nil), Narrow: knobs(nil),
			Load: burst(200, 0, 400, 200), Objective: throughput(),
			Noise: Noise{Launch: 0.015, Within: 0.006}, StartS: 120,
			Wrong: Wrong{Engine: map[string]float64{"sglang": 1.2, "trtllm": 1.05}, Host: 0.8},
		},
		{
			Name: "30b-a3b-a100x4-slo", About: "Qwen 30B-A3B, 4 A100, 10 requests/s: mean TPOT with p99 TTFT bounded",
			Models: both(qwen30), GPU: "a100-sxm-80", GPUs: 4, Engines: three, Set: limit("8192"), Latency: true,
			Baseline: start("vllm", qwen30, tune.Config{engine.TP: "4"}),
			Narrow: map[string][]string{
				engine.TP: {"", "2", "4"}, engine.ExpertParallel: {"", "true"}, engine.MaxNumSeqs: {"", "16", "64"},
				engine.MaxBatched: {"", "1024", "8192", "16384"}, engine.KVDtype: {"", "fp8"},
			},
			Load: rate(200, 10, 1500, 200), Objective: latency("mean_tpot_ms", atMost("p99_ttft_ms", 900)),
			Noise: Noise{Launch: 0.015, Within: 0.01}, StartS: 150,
			Wrong: Wrong{Engine: map[string]float64{"sglang": 0.9, "trtllm": 1.12}, Network: 0.8},
		},
		{
			Name: "235b-a22b-h200x8-chat", About: "Qwen 235B-A22B, 8 H200, closed loop of 160: throughput",
			Models: both(qwen235), GPU: "h200", GPUs: 8, Engines: three, Set: limit("8192"),
			Baseline: start("vllm", qwen235, tune.Config{engine.TP: "8"}),
			Narrow: map[string][]string{
				engine.TP: {"4", "8"}, engine.DP: {"", "2"}, engine.ExpertParallel: {"", "true"}, engine.MaxNumSeqs: {"", "64", "256"},
				engine.MaxBatched: {"", "4096", "16384"}, engine.KVDtype: {"", "fp8"}, engine.MemoryShare: {"", "0.95"},
			},
			Load: burst(200, 160, 800, 200), Objective: throughput(),
			Noise: Noise{Launch: 0.01, Within: 0.006}, StartS: 600,
			Wrong:    Wrong{Engine: map[string]float64{"sglang": 1.15, "trtllm": 0.85}, Network: 0.85},
			Refusals: []Refusal{{When: all(of("sglang"), with(engine.MemoryShare, "0.95")), Log: sglangGraph}},
		},
		{
			Name: "235b-a22b-h100x8-latency", About: "Qwen 235B-A22B in FP8, 8 H100, 2 requests/s: mean latency",
			Models: []string{qwen235 + "-FP8"}, GPU: "h100-sxm", GPUs: 8, Engines: three, Set: limit("8192"), Latency: true,
			Baseline: start("vllm", qwen235+"-FP8", tune.Config{engine.TP: "8", engine.ExpertParallel: "true"}),
			Narrow: map[string][]string{
				engine.TP: {"4", "8"}, engine.PP: {"", "2"}, engine.DP: {"", "2"}, engine.ExpertParallel: {"", "true"}, engine.MaxNumSeqs: {"", "64"},
				engine.MaxBatched: {"", "2048", "8192", "16384"}, engine.KVDtype: {"", "fp8"}, engine.Speculative: {"", "ngram:3"},
			},
			Load: rate(100, 2, 1000, 250), Objective: latency("mean_e2el_ms"),
			Noise: Noise{Launch: 0.02, Within: 0.01}, StartS: 600,
			Wrong: Wrong{Engine: map[string]float64{"sglang": 1.1, "trtllm": 1.15}, Network: 0.75, Accept: 0.6},
		},
		{
			Name: "glm-air-h200x4-latency", About: "GLM-4.5-Air, 4 H200, 2 requests/s: mean latency, its own prediction layers",
			Models: both(air), GPU: "h200", GPUs: 4, Engines: two, Set: limit("8192"), Latency: true,
			Baseline: start("vllm", air, tune.Config{engine.TP: "4"}),
			Narrow: map[string][]string{
				engine.TP: {"2", "4"}, engine.ExpertParallel: {"", "true"}, engine.MaxNumSeqs: {"", "64"},
				engine.MaxBatched: {"", "2048", "8192", "16384"}, engine.KVDtype: {"", "fp8"}, engine.Speculative: {"", "mtp:1", "mtp:2", "mtp:3"},
			},
			Load: rate(120, 2, 1000, 300), Objective: latency("mean_e2el_ms"),
			Noise: Noise{Launch: 0.02, Within: 0.015}, StartS: 240,
			Wrong: Wrong{Engine: map[string]float64{"sglang": 1.08}, Accept: 1.2},
		},
		{
			Name: "glm-air-h200x4-burst", About: "GLM-4.5-Air, 4 H200, burst: throughput, where prediction layers cost",
			Models: both(air), GPU: "h200", GPUs: 4, Engines: two, Set: limit("8192"),
			Baseline: start("vllm", air, tune.Config{engine.TP: "4"}),
			Narrow: map[string][]string{
				engine.TP: {"2", "4"}, engine.ExpertParallel: {"", "true"}, engine.MaxNumSeqs: {"", "64", "256"},
				engine.MaxBatched: {"", "2048", "8192", "16384"}, engine.KVDtype: {"", "fp8"}, engine.Speculative: {"", "mtp:1", "mtp:3"},
			},
			Load: burst(200, 0, 700, 200), Objective: throughput(),
			Noise: Noise{Launch: 0.012, Within: 0.006}, StartS: 240,
			Wrong: Wrong{Engine: map[string]float64{"sglang": 0.93}, Memory: 0.9},
		},
		{
			Name: "qwen3.5-35b-h200-latency", About: "Qwen3.5 35B-A3B, 1 H200, 3 requests/s: p99 latency",
			Models: both(qwen35), GPU: "h200", GPUs: 1, Engines: two, Set: limit("8192"), Latency: true,
			Baseline: start("vllm", qwen35, nil),
			Narrow: map[string][]string{
				engine.MaxNumSeqs: {"", "16", "64", "256"}, engine.MaxBatched: {"", "2048", "8192", "16384"},
				engine.KVDtype: {"", "fp8"}, engine.MemoryShare: {"", "0.85"}, engine.Speculative: {"", "mtp:1", "mtp:2", "mtp:3"},
			},
			Load: rate(150, 3, 900, 300), Objective: latency("p99_e2el_ms"),
			Noise: Noise{Launch: 0.03, Within: 0.015}, StartS: 120,
			Wrong: Wrong{Engine: map[string]float64{"sglang": 1.1}, Accept: 1.1, Host: 0.85},
		},
		{
			Name: "gpt-oss-120b-h100x2-chat", About: "gpt-oss-120b, 2 H100, closed loop of 128: throughput",
			Models: []string{oss120}, GPU: "h100-sxm", GPUs: 2, Engines: two, Set: limit("8192"),
			Baseline: start("vllm", oss120, tune.Config{engine.TP: "2"}),
			Narrow:   knobs(map[string][]string{engine.TP: {"", "2"}, engine.ExpertParallel: {"", "true"}, engine.KVDtype: {""}}),
			Load:     burst(200, 128, 600, 250), Objective: throughput(),
			Noise: Noise{Launch: 0.015, Within: 0.006}, StartS: 200,
			Wrong: Wrong{Engine: map[string]float64{"sglang": 1.12}, Network: 1.2},
		},
	}
}

// traps are landscapes on which a plausible shortcut fails.
func traps() []Landscape {
	return []Landscape{
		{
			Name: "trap-cap", About: "Qwen 8B, 1 H200, burst: the fastest engine runs 24 at once unless it is told to run more",
			Models: both(qwen8), GPU: "h200", GPUs: 1, Engines: three, Set: limit("8192"),
			Baseline: start("vllm", qwen8, nil), Narrow: knobs(nil),
			Load: burst(200, 0, 300, 250), Objective: throughput(),
			Noise: Noise{Launch: 0.01, Within: 0.005}, StartS: 60,
			Wrong:   Wrong{Engine: map[string]float64{"sglang": 1.25}},
			Effects: []Effect{capped("sglang", 24)},
		},
		{
			Name: "trap-memory", About: "Qwen 14B, 1 H100, burst: the fastest engine runs out of memory as it comes",
			Models: both(qwen14), GPU: "h100-sxm", GPUs: 1, Engines: three, Set: limit("8192"),
			Baseline: start("sglang", qwen14, nil), Narrow: knobs(nil),
			Load: burst(200, 0, 500, 200), Objective: throughput(),
			Noise: Noise{Launch: 0.01, Within: 0.006}, StartS: 80,
			Wrong: Wrong{Engine: map[string]float64{"vllm": 1.25, "trtllm": 0.95}},
			Refusals: []Refusal{
				{When: all(of("vllm"), with(engine.MemoryShare, "")), Log: vllmStart},
				{When: all(of("vllm"), with(engine.MemoryShare, "0.95")), Log: vllmStart},
			},
		},
		{
			Name: "trap-predictor", About: "Qwen 32B, 4 H100, burst: the predictor has the engines the wrong way round",
			Models: both(qwen32), GPU: "h100-sxm", GPUs: 4, Engines: three, Set: limit("8192"),
			Baseline: start("vllm", qwen32, tune.Config{engine.TP: "4"}),
			Narrow:   knobs(map[string][]string{engine.TP: {"", "2", "4"}, engine.MemoryShare: {""}, engine.MaxBatched: {"", "2048", "16384"}}),
			Load:     burst(200, 0, 400, 200), Objective: throughput(),
			Noise: Noise{Launch: 0.012, Within: 0.006}, StartS: 140,
			Wrong: Wrong{Engine: map[string]float64{"vllm": 1.25, "sglang": 0.95, "trtllm": 0.72}, Network: 0.7, Host: 0.8},
		},
		{
			Name: "trap-kv", About: "Qwen 32B, 4 A100, burst: an FP8 cache, which gains by prediction, costs a quarter",
			Models: both(qwen32), GPU: "a100-sxm-80", GPUs: 4, Engines: three, Set: limit("8192"),
			Baseline: start("vllm", qwen32, tune.Config{engine.TP: "2"}),
			Narrow:   knobs(map[string][]string{engine.TP: {"", "2", "4"}, engine.MaxBatched: {"", "2048", "8192"}}),
			Load:     burst(200, 0, 1500, 200), Objective: throughput(),
			Noise: Noise{Launch: 0.012, Within: 0.006}, StartS: 140,
			Wrong:   Wrong{Engine: map[string]float64{"sglang": 1.1, "trtllm": 0.95}, Memory: 1.1},
			Effects: []Effect{{When: with(engine.KVDtype, "fp8"), Slow: 1.25}},
		},
		{
			Name: "trap-noise", About: "Llama 8B, 2 H100, closed loop of 64: launches differ by 4 %, some by more",
			Models: both(llama8), GPU: "h100-sxm", GPUs: 2, Engines: three, Set: limit("8192"),
			Baseline: start("vllm", llama8, tune.Config{engine.TP: "2"}),
			Narrow:   knobs(map[string][]string{engine.TP: {"", "2"}, engine.MemoryShare: {""}}),
			Load:     burst(200, 64, 500, 200), Objective: throughput(),
			Noise: Noise{Launch: 0.04, Within: 0.01, Outlier: 0.05}, StartS: 60,
			Wrong: Wrong{Engine: map[string]float64{"sglang": 1.08, "trtllm": 1.04}},
		},
		{
			Name: "trap-default", About: "Llama 8B, 1 A100, 5 requests/s: the baseline is all but the best already",
			Models: []string{llama8}, GPU: "a100-sxm-80", GPUs: 1, Engines: two, Set: limit("8192"), Latency: true,
			Baseline: start("vllm", llama8, nil), Narrow: knobs(map[string][]string{engine.MaxNumSeqs: {"", "8", "32", "128"}}),
			Load: rate(150, 5, 400, 200), Objective: latency("mean_e2el_ms"),
			Noise: Noise{Launch: 0.015, Within: 0.008}, StartS: 60,
			Wrong:   Wrong{Engine: map[string]float64{"sglang": 0.85}},
			Effects: []Effect{{When: with(engine.KVDtype, "fp8"), Slow: 1.1}},
		},
	}
}

// equal are landscapes without anything to find.
func equal() []Landscape {
	one := func(name, about string, n Noise) Landscape {
		return Landscape{
			Name: name, About: about, Equal: true,
			Models: both(llama8), GPU: "h100-sxm", GPUs: 2, Engines: three, Set: limit("8192"),
			Baseline: start("vllm", llama8, tune.Config{engine.TP: "2"}),
			Narrow:   knobs(map[string][]string{engine.TP: {"", "2"}, engine.MemoryShare: {""}}),
			Load:     burst(120, 0, 220, 200), Objective: throughput(), Noise: n, StartS: 60,
		}
	}
	slo := one("equal-latency", "all are equal, mean latency, launches differ by 2 %", Noise{Launch: 0.02, Within: 0.01})
	slo.Load, slo.Objective, slo.Latency = rate(120, 6, 400, 200), latency("mean_e2el_ms"), true
	return []Landscape{
		one("equal-quiet", "all are equal, launches differ by 0.5 %", Noise{Launch: 0.005, Within: 0.003}),
		one("equal-noisy", "all are equal, launches differ by 4 %", Noise{Launch: 0.04, Within: 0.01}),
		one("equal-outliers", "all are equal, launches differ by 1.5 %, one in twenty by 10 %", Noise{Launch: 0.015, Within: 0.006, Outlier: 0.05}),
		slo,
	}
}
