package science

import (
	"perflab/internal/engine"
	"perflab/internal/tune"
)

const (
	llama8  = "meta-llama/Llama-3.1-8B-Instruct"
	qwen8   = "Qwen/Qwen3-8B"
	qwen14  = "Qwen/Qwen3-14B"
	qwen32  = "Qwen/Qwen3-32B"
	llama70 = "meta-llama/Llama-3.3-70B-Instruct"
)

// small are models that one device serves.
func small() []Landscape {
	return []Landscape{
		{
			Name: "8b-h100-chat", About: "Llama 8B, 1 H100, burst of short prompts: throughput",
			Models: both(llama8), GPU: "h100-sxm", GPUs: 1, Engines: three, Set: limit("8192"),
			Baseline: start("vllm", llama8, nil), Narrow: knobs(nil),
			Load: burst(200, 0, 220, 200), Objective: throughput(),
			Noise: Noise{Launch: 0.01, Within: 0.005}, StartS: 60,
			Wrong: Wrong{Engine: map[string]float64{"sglang": 1.12, "trtllm": 0.93}, Host: 1.2},
		},
		{
			Name: "8b-a100x2-long", About: "Qwen 8B, 2 A100, long prompts in a closed loop of 32: throughput",
			Models: both(qwen8), GPU: "a100-sxm-80", GPUs: 2, Engines: two, Set: limit("20480"),
			Baseline: start("vllm", qwen8, tune.Config{engine.TP: "2"}),
			Narrow:   knobs(map[string][]string{engine.TP: {"", "2"}}),
			Load:     burst(120, 32, 4000, 200), Objective: throughput(),
			Noise: Noise{Launch: 0.015, Within: 0.008}, StartS: 80,
			Wrong:   Wrong{Engine: map[string]float64{"sglang": 0.9}, Compute: 1.15},
			Effects: []Effect{{When: with(engine.KVDtype, "fp8"), Slow: 1.15}},
		},
		{
			Name: "8b-l4-latency", About: "Llama 8B, 1 L4, 1 request/s: p99 latency",
			Models: both(llama8), GPU: "l4", GPUs: 1, Engines: three, Set: limit("4096"), Latency: true,
			Baseline: start("vllm", llama8, nil), Narrow: knobs(map[string][]string{engine.Speculative: {"", "ngram:3"}, engine.MemoryShare: {"", "0.95"}}),
			Load: rate(120, 1, 300, 150), Objective: latency("p99_e2el_ms"),
			Noise: Noise{Launch: 0.02, Within: 0.01}, StartS: 90,
			Wrong: Wrong{Engine: map[string]float64{"sglang": 1.08, "trtllm": 1.2}, Memory: 0.85, Accept: 0.7},
		},
		{
			Name: "14b-h100-documents", About: "Qwen 14B, 1 H100, prompts of 6,000 tokens at once: throughput",
			Models: both(qwen14), GPU: "h100-sxm", GPUs: 1, Engines: three, Set: limit("28672"),
			Baseline: start("vllm", qwen14, nil), Narrow: knobs(nil),
			Load: burst(100, 0, 6000, 150), Objective: throughput(),
			Noise: Noise{Launch: 0.008, Within: 0.006}, StartS: 70,
			Wrong:    Wrong{Engine: map[string]float64{"sglang": 1.1, "trtllm": 1.18}, Memory: 0.9},
			Refusals: []Refusal{{When: all(of("vllm"), with(engine.MemoryShare, "0.95"), with(engine.MaxBatched, "16384")), Log: vllmLoad}},
		},
		{
			Name: "14b-h200-goodput", About: "Qwen 14B, 1 H200, 14 requests/s: goodput within TTFT 400 ms and TPOT 25 ms",
			Models: both(qwen14), GPU: "h200", GPUs: 1, Engines: three, Set: limit("8192"),
			Baseline: start("vllm", qwen14, nil), Narrow: knobs(nil),
			Load: rate(200, 14, 900, 220), Goodput: "ttft:400 tpot:25",
			Objective: tune.Objective{Metric: "request_goodput", Higher: true, MinGain: 0.02},
			Noise:     Noise{Launch: 0.01, Within: 0.015}, StartS: 70,
			Wrong: Wrong{Engine: map[string]float64{"sglang": 0.95, "trtllm": 1.1}, Host: 0.8},
		},
	}
}

// middle is a dense model of 32 billion.
func middle() []Landscape {
	return []Landscape{
		{
			Name: "32b-h100-chat", About: "Qwen 32B, 1 H100 that it hardly fits, burst: throughput",
			Models: both(qwen32), GPU: "h100-sxm", GPUs: 1, Engines: three, Set: limit("4096"),
			Baseline: start("vllm", qwen32, nil), Narrow: knobs(nil),
			Load: burst(200, 0, 220, 200), Objective: throughput(),
			Noise: Noise{Launch: 0.012, Within: 0.006}, StartS: 150,
			Wrong: Wrong{Engine: map[string]float64{"sglang": 0.92, "trtllm": 1.15}, Compute: 0.9},
			Refusals: []Refusal{
				{When: all(of("vllm"), with("model", qwen32), with(engine.MemoryShare, "0.95")), Log: vllmStart},
				{When: all(of("trtllm"), with(engine.MemoryShare, "0.95")), Log: trtllmStart},
			},
		},
		{
			Name: "32b-h100x4-latency", About: "Qwen 32B, 4 H100, 6 requests/s: mean latency",
			Models: both(qwen32), GPU: "h100-sxm", GPUs: 4, Engines: three, Set: limit("8192"), Latency: true,
			Baseline: start("vllm", qwen32, tune.Config{engine.TP: "2"}),
			Narrow: map[string][]string{
				engine.TP: {"", "2", "4"}, engine.MaxNumSeqs: {"", "64"}, engine.MaxBatched: {"", "2048", "8192", "16384"},
				engine.KVDtype: {"", "fp8"}, engine.Speculative: {"", "ngram:3", "ngram:5"},
			},
			Load: rate(150, 6, 600, 250), Objective: latency("mean_e2el_ms"),
			Noise: Noise{Launch: 0.015, Within: 0.008}, StartS: 140,
			Wrong: Wrong{Engine: map[string]float64{"sglang": 1.1, "trtllm": 1.05}, Network: 0.7, Accept: 0.85},
		},
		{
			Name: "32b-h200x4-slo", About: "Qwen 32B, 4 H200, closed loop of 96: throughput with p99 TTFT and TPOT bounded",
			Models: both(qwen32), GPU: "h200", GPUs: 4, Engines: three, Set: limit("8192"),
			Baseline:  start("vllm", qwen32, tune.Config{engine.TP: "4"}),
			Narrow:    knobs(map[string][]string{engine.TP: {"", "2", "4"}, engine.MemoryShare: {""}}),
			Load:      burst(200, 96, 1200, 250),
			Objective: under(atMost("p99_ttft_ms", 3000), atMost("p99_tpot_ms", 32)),
			Noise:     Noise{Launch: 0.01, Within: 0.01}, StartS: 140,
			Wrong: Wrong{Engine: map[string]float64{"sglang": 1.07, "trtllm": 0.88}, Compute: 1.1},
		},
		{
			Name: "32b-l40sx8-pcie", About: "Qwen 32B, 8 L40S without NVLink, burst: throughput",
			Models: both(qwen32), GPU: "l40s", GPUs: 8, Engines: two, Set: limit("4096"),
			Baseline: start("vllm", qwen32, tune.Config{engine.TP: "4"}),
			Narrow:   knobs(map[string][]string{engine.TP: {"", "2", "4", "8"}, engine.PP: {"", "2"}, engine.MemoryShare: {"", "0.95"}, engine.MaxBatched: {"", "2048", "8192"}}),
			Load:     burst(200, 0, 500, 150), Objective: throughput(),
			Noise: Noise{Launch: 0.02, Within: 0.006}, StartS: 160,
			Wrong: Wrong{Engine: map[string]float64{"sglang": 1.15}, Network: 0.65},
		},
	}
}

// large is a dense model of 70 billion.
func large() []Landscape {
	return []Landscape{
		{
			Name: "70b-h100x8-chat", About: "Llama 70B, 8 H100, burst: throughput",
			Models: both(llama70), GPU: "h100-sxm", GPUs: 8, Engines: three, Set: limit("8192"),
			Baseline: start("vllm", llama70, tune.Config{engine.TP: "8"}),
			Narrow:   knobs(map[string][]string{engine.TP: {"2", "4", "8"}, engine.MemoryShare: {"", "0.95"}, engine.MaxBatched: {"", "2048", "16384"}}),
			Load:     burst(200, 0, 300, 200), Objective: throughput(),
			Noise: Noise{Launch: 0.01, Within: 0.005}, StartS: 300,
			Wrong:    Wrong{Engine: map[string]float64{"sglang": 1.05, "trtllm": 1.22}, Network: 0.75},
			Refusals: []Refusal{{When: all(of("trtllm"), with(engine.TP, "2"), with(engine.MemoryShare, "")), Log: trtllmStart}},
		},
		{
			Name: "70b-h200x4-latency", About: "Llama 70B, 4 H200, 1 request/s: mean latency, speculation",
			Models: both(llama70), GPU: "h200", GPUs: 4, Engines: three, Set: limit("8192"), Latency: true,
			Baseline: start("vllm", llama70, tune.Config{engine.TP: "4"}),
			Narrow: map[string][]string{
				engine.TP: {"2", "4"}, engine.PP: {"", "2"}, engine.MaxNumSeqs: {"", "32", "128"}, engine.MaxBatched: {"", "2048", "8192", "16384"},
				engine.KVDtype: {"", "fp8"}, engine.Speculative: {"", "ngram:2", "ngram:4"},
			},
			Load: rate(100, 1, 800, 300), Objective: latency("mean_e2el_ms"),
			Noise: Noise{Launch: 0.025, Within: 0.012}, StartS: 280,
			Wrong:   Wrong{Engine: map[string]float64{"sglang": 0.9, "trtllm": 1.1}, Memory: 1.1, Accept: 1.15},
			Effects: []Effect{{When: all(of("vllm"), with(engine.Speculative, "ngram:4")), Slow: 1.12}},
		},
		{
			Name: "70b-a100x8-slo", About: "Llama 70B, 8 A100, 2 requests/s of long prompts: mean latency with p99 TTFT bounded",
			Models: []string{llama70}, GPU: "a100-sxm-80", GPUs: 8, Engines: three, Set: limit("16384"), Latency: true,
			Baseline: start("vllm", llama70, tune.Config{engine.TP: "8"}),
			Narrow:   knobs(map[string][]string{engine.TP: {"4", "8"}, engine.PP: {"", "2"}, engine.MemoryShare: {"", "0.95"}}),
			Load:     rate(120, 2, 2500, 200), Objective: latency("mean_e2el_ms", atMost("p99_ttft_ms", 4000)),
			Noise: Noise{Launch: 0.015, Within: 0.01}, StartS: 300,
			Wrong: Wrong{Engine: map[string]float64{"sglang": 1.12, "trtllm": 0.9}, Compute: 0.85},
		},
	}
}
