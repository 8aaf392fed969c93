package report

import (
	"fmt"
	"math"
	"strings"
	"time"

	"perflab/internal/outcome"
	"perflab/internal/result"
	"perflab/internal/stat"
	"perflab/internal/tune"
)

// sum is a summary whose figures hang together: n requests of in and out
// tokens at a total token throughput.
func sum(n, in, out int, total, ttft, tpot float64) *result.Summary {
	tokens := float64(n * (in + out))
	d := tokens / total
	s := &result.Summary{Figures: map[string]float64{
		"completed": float64(n), "failed": 0, "duration": d,
		"total_input_tokens": float64(n * in), "total_output_tokens": float64(n * out),
		"request_throughput": float64(n) / d, "output_throughput": float64(n*out) / d,
		"max_output_tokens_per_s": 1.8 * float64(n*out) / d, "max_concurrent_requests": float64(n),
		"total_token_throughput": total,
	}, Verdict: result.Verdict{Status: result.Sound, Checks: []result.Check{{Name: "dispatch_lag", Status: result.Sound, Text: "P99 dispatch lag 0.31 ms"}}}}
	for name, mean := range map[string]float64{"ttft": ttft, "tpot": tpot, "itl": tpot, "e2el": ttft + tpot*float64(out-1)} {
		for stat, by := range map[string]float64{"mean": 1, "median": 0.97, "p90": 1.4, "p95": 1.6, "p99": 2.1} {
			s.Figures[stat+"_"+name+"_ms"] = mean * by
		}
	}
	return s
}

// simulated marks what a simulator made.
func simulated(s *result.Summary) *result.Summary {
	s.Simulated = true
	s.Verdict.Checks = append(s.Verdict.Checks, result.Check{Name: "simulated", Status: result.Sound, Text: "SIMULATED: no hardware was measured"})
	return s
}

func chat(total, ttft, tpot float64) *result.Summary {
	return simulated(sum(1000, 217, 197, total, ttft, tpot))
}

func runs(s ...*result.Summary) []outcome.Run {
	var r []outcome.Run
	for i, x := range s {
		name := []string{"sharegpt", "long", "short"}[i]
		r = append(r, outcome.Run{Workload: name, Dir: "runs/" + name, Seed: 42 + uint64(i), Summary: *x})
	}
	return r
}

// throughputStudy is of the published kind: two engines, a candidate that the
// engine refuses, a void run, two replicas, a stage that gains nothing, and a
// confirmation on three workloads.
func throughputStudy() outcome.Study {
	const model = "Qwen/Qwen3-235B-A22B-Instruct-2507"
	noted := chat(7240.55, 22110.4, 161.2)
	noted.Simulated = true
	noted.Verdict = result.Verdict{Status: result.Noted, Checks: []result.Check{
		{Name: "simulated", Status: result.Sound, Text: "SIMULATED: no hardware was measured"},
		{Name: "dispatch_lag", Status: result.Noted, Text: "P99 dispatch lag 12.40 ms"},
		{Name: "peak", Status: result.Sound, Text: "peak >= mean"}}}
	base := []*result.Summary{chat(3801.11, 37900.2, 122.9), simulated(sum(500, 4000, 200, 8170.72, 118254.6, 205.64)), simulated(sum(1000, 128, 4, 7449.43, 8712.9, 155.16))}
	best := []*result.Summary{noted, simulated(sum(500, 4000, 200, 9120.31, 102310.7, 347.13)), simulated(sum(1000, 128, 4, 7301.02, 9020.1, 265.87))}
	trial := func(id int, stage, label, engine, command string, replicas int, cfg map[string]string, r []outcome.Run) outcome.Trial {
		return outcome.Trial{ID: id, Stage: stage, Label: label, Engine: engine, Command: command, Replicas: replicas, GPUs: 8, Config: cfg, Status: tune.Measured, Runs: r}
	}
	refused := outcome.Trial{ID: 4, Stage: "Quantization", Label: "FP8, TP8", Engine: "vllm", Command: "vllm serve " + model + "-FP8 -tp 8", Replicas: 1, GPUs: 8,
		Config: map[string]string{"engine": "vllm", "model": model + "-FP8", "tp": "8"}, Status: tune.Refused,
		Reason: "output size 192 of gate_up_proj is not divisible by block_n = 128 at TP 8", Log: "logs/trial-4.log"}
	void := outcome.Trial{ID: 7, Stage: "Parallelism", Label: "TP4 | EP4 x2", Engine: "vllm", Command: "vllm serve " + model + "-FP8 -tp 4 --enable-expert-parallel", Replicas: 2, GPUs: 8,
		Config: map[string]string{"engine": "vllm", "model": model + "-FP8", "tp": "4", "expert_parallel": "true", "replicas": "2"}, Status: tune.Void,
		Reason: "31 of 1000 calls failed: connection reset", Runs: runs(chat(6500.1, 30000, 200))}
	fp8tp4 := map[string]string{"engine": "vllm", "model": model + "-FP8", "tp": "4", "replicas": "2"}
	return outcome.Study{
		Schema: "perflab.study/1", Version: "0.1.0", Name: "qwen3-235b-a100", Title: "Optimizing Qwen3-235B-A22B Throughput on NVIDIA A100 GPUs",
		Started: time.Date(2026, 11, 20, 8, 30, 12, 0, time.UTC), Ended: time.Date(2026, 11, 20, 11, 2, 0, 0, time.UTC),
		Simulated: true, Strategy: "staged", Model: model, Hardware: "8 x NVIDIA A100 SXM 80GB on one node",
		Objective: outcome.Objective{Metric: "total_token_throughput", Better: "higher", Goal: "Highest total token throughput under many concurrent requests", SLOs: []string{"p99_ttft_ms <= 120000"}},
		Engines:   []outcome.Software{{Name: "vllm", Title: "vLLM", Version: "v0.11.0"}, {Name: "sglang", Title: "SGLang", Version: "v0.5.5.post1"}},
		Method:    "Each trial is one launch; a warm-up of 8 requests is discarded, then every workload is run once with the seeds shown.",
		Workloads: []outcome.Load{
			{Name: "sharegpt", Title: "ShareGPT", Primary: true, Text: "ShareGPT conversations, 1000 requests, all at once", Command: "perflab bench --model " + model + " --dataset-name sharegpt --dataset-path ShareGPT_V3_unfiltered_cleaned_split.json --num-prompts 1000 --seed 42"},
			{Name: "long", Title: "Long Prompt", Text: "random, 4000 input tokens, 200 output tokens, 500 requests, all at once", Command: "perflab bench --model " + model + " --dataset-name random --random-input-len 4000 --random-output-len 200 --num-prompts 500 --seed 43"},
			{Name: "short", Title: "Short Prompt", Text: "random, 128 input tokens, 4 output tokens, 1000 requests, all at once", Command: "perflab bench --model " + model + " --dataset-name random --random-input-len 128 --random-output-len 4 --num-prompts 1000 --seed 44"},
		},
		Trials: []outcome.Trial{
			trial(1, "baseline", "vLLM default", "vllm", "vllm serve "+model+" -tp 8", 1, map[string]string{"engine": "vllm", "model": model, "tp": "8"}, runs(chat(3792.5, 38065.91, 123.36))),
			trial(2, "Choosing the inference engine", "SGLang", "sglang", "python3 -m sglang.launch_server --model-path "+model+" --tp-size 8", 1, map[string]string{"engine": "sglang", "model": model, "tp": "8"}, runs(chat(4635.31, 21130.67, 235.1))),
			trial(3, "Quantization", "vLLM FP8, TP8 EP8", "vllm", "vllm serve "+model+"-FP8 -tp 8 --enable-expert-parallel", 1, map[string]string{"engine": "vllm", "model": model + "-FP8", "tp": "8", "expert_parallel": "true"}, runs(chat(4810.2, 37366.87, 115.74))),
			refused,
			trial(5, "Parallelism", "TP4 x2", "vllm", "vllm serve "+model+"-FP8 -tp 4", 2, fp8tp4, runs(chat(7193.04, 22310.1, 160.72))),
			trial(6, "Max batched tokens", "4096 tokens a step", "vllm", "vllm serve "+model+`-FP8 -tp 4 --max-num-batched-tokens 4096 --speculative-config '{"method":"mtp","num_speculative_tokens":1}'`, 2, map[string]string{"engine": "vllm", "model": model + "-FP8", "tp": "4", "replicas": "2", "max_num_batched_tokens": "4096"}, runs(chat(7150, 22389.84, 165.37))),
			void,
			trial(8, "confirm", "vLLM default", "vllm", "vllm serve "+model+" -tp 8", 1, map[string]string{"engine": "vllm", "model": model, "tp": "8"}, runs(base...)),
			trial(9, "confirm", "TP4 x2", "vllm", "vllm serve "+model+"-FP8 -tp 4", 2, fp8tp4, runs(best...)),
		},
		Stages: []outcome.Stage{
			{Name: "Choosing the inference engine", Trials: []int{2}, Before: 1, Winner: 2, Gain: new(0.2222), Result: "SGLang goes on: +22.2 % on total_token_throughput over vLLM default"},
			{Name: "Quantization", Trials: []int{3, 4}, Before: 2, Winner: 3, Gain: new(0.0377), Result: "vLLM FP8, TP8 EP8 goes on"},
			{Name: "Parallelism", Trials: []int{5, 7, 3}, Before: 3, Winner: 5, Gain: new(0.4954), Result: "TP4 x2 goes on"},
			{Name: "Max batched tokens", Trials: []int{6}, Before: 5, Winner: 5, Result: "no difference shown, so TP4 x2 stays"},
		},
		Baseline: &outcome.Pick{Trial: 8, Label: "vLLM default", Engine: "vllm", Command: "vllm serve " + model + " -tp 8", Replicas: 1, Summary: base[0]},
		Recommended: &outcome.Pick{Trial: 9, Label: "TP4 x2", Engine: "vllm", Command: "vllm serve " + model + "-FP8 -tp 4", Replicas: 2, Summary: best[0], Gain: new(0.9048),
			Processes: copies("CUDA_VISIBLE_DEVICES=", "vllm serve "+model+"-FP8 -tp 4", "0,1,2,3", "4,5,6,7"), Script: "trials/009/start.sh"},
		Cases: []outcome.Case{
			{Workload: "sharegpt", Baseline: base[0], Recommended: best[0], Gain: new(0.9048)},
			{Workload: "long", Baseline: base[1], Recommended: best[1], Gain: new(0.1162)},
			{Workload: "short", Baseline: base[2], Recommended: best[2], Gain: new(-0.0199)},
		},
		Confirmed: true, Verdict: "TP4 x2 is +90.5 % on total_token_throughput over vLLM default, confirmed on fresh seeds, the best of 6 other configurations",
		Ledger: outcome.Ledger{Launches: 11, LoadS: 1830.25, GPUSeconds: 14642.5},
		Notes:  []string{"FP8 weights may change answers; no accuracy was measured here."},
	}
}

// copies are the processes of replicas on one machine, each on devices of its own.
func copies(variable, command string, devices ...string) []outcome.Process {
	var out []outcome.Process
	for i, d := range devices {
		out = append(out, outcome.Process{Replica: i, Command: strings.TrimSpace(fmt.Sprintf("%s%s %s --host 127.0.0.1 --port %d", variable, d, command, 8000+i))})
	}
	return out
}

// latencyStudy seeks a low figure, was not confirmed and holds a label that
// tries to be code.
func latencyStudy() outcome.Study {
	const model = "Qwen/Qwen3.5-35B-A3B-FP8"
	s8 := func(ttft, tpot float64) *result.Summary { return sum(1000, 342, 281, 4700, ttft, tpot) }
	base, mtp := s8(68.48, 18.75), s8(60.1, 11.5)
	return outcome.Study{
		Schema: "perflab.study/1", Version: "0.1.0", Name: "qwen3.5-35b-h200-latency", Title: "Optimizing Qwen3.5-35B-A3B Latency", Strategy: "staged",
		Model: model, Hardware: "1 x NVIDIA H200", Objective: outcome.Objective{Metric: "mean_latency", Better: "lower", Goal: "Lowest mean latency"},
		Engines:   []outcome.Software{{Name: "vllm", Title: "vLLM"}},
		Workloads: []outcome.Load{{Name: "sharegpt", Title: "Rate 8", Primary: true, Text: "ShareGPT at 8 requests/s", Command: "perflab bench --request-rate 8"}},
		Trials: []outcome.Trial{
			{ID: 1, Stage: "baseline", Label: "BF16", Engine: "vllm", Command: "vllm serve Qwen/Qwen3.5-35B-A3B", Replicas: 1, GPUs: 1, Status: tune.Measured, Runs: runs(base)},
			{ID: 2, Stage: "Speculation", Label: "<script>alert(1)</script> MTP", Engine: "vllm", Command: `vllm serve ` + model + ` --reasoning-parser=qwen3 --speculative-config '{"method":"mtp","num_speculative_tokens":1}' --max-model-len=32768`, Replicas: 1, GPUs: 1, Config: map[string]string{"speculative": "mtp:1"}, Status: tune.Measured, Runs: runs(mtp)},
		},
		Stages:      []outcome.Stage{{Name: "Speculation", Trials: []int{2}, Before: 1, Winner: 2, Gain: new(0.63), Result: "1.63x better"}},
		Baseline:    &outcome.Pick{Trial: 1, Label: "BF16", Engine: "vllm", Command: "vllm serve Qwen/Qwen3.5-35B-A3B", Replicas: 1, Summary: base},
		Recommended: &outcome.Pick{Trial: 2, Label: "MTP", Engine: "vllm", Command: "vllm serve " + model + " --max-model-len=32768", Replicas: 1, Summary: mtp, Gain: new(0.63)},
		Cases:       []outcome.Case{{Workload: "sharegpt", Baseline: base, Recommended: mtp, Gain: new(0.63)}},
		Verdict:     "MTP is 1.63x better on mean_e2el_ms than BF16", Ledger: outcome.Ledger{Launches: 2, LoadS: 260, GPUSeconds: 420},
	}
}

// burst is n calls of a burst through a server of 32 slots, each with its own
// pace; some fail.
func burst(n int) (result.Header, []result.Call) {
	h := result.Header{Schema: "perflab.run/1", Version: "0.1.0", Simulated: true, Model: "Qwen/Qwen3-32B", Backend: "openai-chat", Targets: []string{"http://127.0.0.1:8000"},
		Workload: "random", Requests: n, Rate: 16, Command: "vllm serve Qwen/Qwen3-32B", Host: result.Host{OS: "linux", Arch: "amd64", Go: "go1.26.0", CPUs: 2, GOMAXPROCS: 2}}
	rng := stat.Stream(7, "burst")
	var at time.Duration
	var calls []result.Call
	for i := range n {
		at += time.Duration(rng.ExpFloat64() * float64(62*time.Millisecond))
		c := result.Call{Index: i, Due: at, Ready: at, Sent: at}
		ttft := time.Duration(math.Exp(rng.NormFloat64()*0.5) * float64(80*time.Millisecond))
		for k := range 40 + rng.IntN(160) {
			c.Chunks = append(c.Chunks, result.Chunk{At: at + ttft + time.Duration(k)*21*time.Millisecond, Tokens: 1})
		}
		c.End = c.Chunks[len(c.Chunks)-1].At + time.Millisecond
		if i%50 == 49 {
			c.Class, c.Error, c.Chunks = result.EarlyClose, "the stream ended early", c.Chunks[:3]
		}
		calls = append(calls, c)
	}
	return h, calls
}
