package report

import (
	"fmt"

	"perflab/internal/outcome"
	"perflab/internal/result"
	"perflab/internal/tune"
	"perflab/internal/tune/answers"
)

const raceModel = "Qwen/Qwen3-32B"

// raceTrials are the launches of raceStudy: failed ones of two kinds, a void
// one, short loads, and a confirmation of three sides.
func raceTrials() []outcome.Trial {
	var all []outcome.Trial
	add := func(stage, label, command string, share float64, replicas int, cfg map[string]string, total, ttft, tpot float64) *outcome.Trial {
		id := len(all) + 1
		t := outcome.Trial{ID: id, Stage: stage, Label: label, Engine: "vllm", Version: "0.11.0", Command: command, Share: share, Replicas: replicas, GPUs: 8, Each: 8 / replicas, Config: cfg, Status: tune.Measured}
		if total > 0 {
			r := runs(chat(total, ttft, tpot))
			r[0].Dir, r[0].Seed = fmt.Sprintf("trials/%03d/sharegpt", id), uint64(40+id)
			t.Runs = r
		}
		all = append(all, t)
		return &all[id-1]
	}
	base := map[string]string{"engine": "vllm", "model": raceModel, "tp": "8"}
	tp2 := map[string]string{"engine": "vllm", "model": raceModel + "-FP8", "tp": "2", "replicas": "4", "max_num_seqs": "512"}
	const serve, best = "vllm serve " + raceModel + " -tp 8", "vllm serve " + raceModel + "-FP8 -tp 2 --max-num-seqs 512 --max-num-batched-tokens 8192"
	for i := range 3 {
		add("noise", "vLLM TP8", serve, 0, 1, base, 5120+20*float64(i), 21000, 98)
	}
	add("race", "vLLM FP8 TP2 x4", "vllm serve "+raceModel+"-FP8 -tp 2", 0.3, 4, tp2, 6601, 15200, 117)
	add("race", "SGLang FP8 TP2 x4", "python3 -m sglang.launch_server --model-path "+raceModel+"-FP8 --tp-size 2", 0.3, 4, nil, 6480, 15800, 119).Engine = "sglang"
	add("race", "vLLM TP4 x2", "vllm serve "+raceModel+" -tp 4", 0.3, 2, nil, 5702, 18100, 104)
	add("race", "vLLM FP8 TP1 x8", "vllm serve "+raceModel+"-FP8 -tp 1", 0.3, 8, nil, 4020, 31000, 142)
	oom := add("race", "vLLM TP1 x8", "vllm serve "+raceModel+" -tp 1", 0.3, 8, nil, 0, 0, 0)
	oom.Status, oom.Class, oom.Reason, oom.Advice, oom.Log = tune.Refused, "out_of_memory", "No available memory for the cache blocks", "raise tp, or lower max_model_len", "trials/008/logs"
	oom = add("repair", "vLLM TP1 x8, max_model_len 8192", "vllm serve "+raceModel+" -tp 1 --max-model-len 8192", 0.3, 8, nil, 0, 0, 0)
	oom.Status, oom.Class, oom.Reason, oom.Advice, oom.Log = tune.Refused, "out_of_memory", "CUDA out of memory. Tried to allocate 2.5 GiB", "raise tp, or lower max_model_len", "trials/009/logs"
	add("repair", "vLLM FP8 TP2 x4, max_num_seqs 512", "vllm serve "+raceModel+"-FP8 -tp 2 --max-num-seqs 512", 0.3, 4, tp2, 7011, 14100, 126)
	void := add("refine", "vLLM FP8 TP2 x4, max_num_seqs 1024", "vllm serve "+raceModel+"-FP8 -tp 2 --max-num-seqs 1024", 0, 4, tp2, 0, 0, 0)
	void.Status, void.Reason = tune.Void, "31 of 1000 calls failed: connection reset"
	add("refine", "vLLM FP8 TP2 x4, 8192 tokens a step", best, 0, 4, tp2, 7215, 13700, 128)
	add("race", "vLLM FP8 KV8 TP2 x4", "vllm serve "+raceModel+"-FP8 -tp 2 --kv-cache-dtype fp8", 0, 4, nil, 7302, 13500, 125)
	for i := range 3 {
		add("confirm", "vLLM TP8", serve, 0, 1, base, 5118+25*float64(i), 21100, 98)
		add("confirm", "vLLM FP8 TP2 x4 tuned", best, 0, 4, tp2, 7208+18*float64(i), 13720, 128)
		add("confirm", "SGLang FP8 TP2 x4", "python3 -m sglang.launch_server --model-path "+raceModel+"-FP8 --tp-size 2", 0, 4, nil, 6902+30*float64(i), 14900, 121).Engine = "sglang"
	}
	add("ablate", "without max_num_batched_tokens", "vllm serve "+raceModel+"-FP8 -tp 2 --max-num-seqs 512", 0, 4, tp2, 7204, 13750, 127)
	return all
}

// raceArms are those that raceStudy began with.
func raceArms() []outcome.Candidate {
	arms := []outcome.Candidate{
		{Label: "vLLM FP8 TP2 x4", Engine: "vllm", Command: "vllm serve", Trials: []int{4, 10}, State: tune.StateRefined, Predicted: new(1.52), Expected: new(1.38), Measured: &tune.Span{Value: 1.372, Low: 1.331, High: 1.414}},
		{Label: "SGLang FP8 TP2 x4", Engine: "sglang", Command: "python3 -m sglang.launch_server", Trials: []int{5}, State: tune.StateRefined, Predicted: new(1.47), Measured: &tune.Span{Value: 1.347, Low: 1.307, High: 1.388}},
		{Label: "vLLM FP8 KV8 TP2 x4", Engine: "vllm", Prior: "recipes.yaml", Trials: []int{13}, State: tune.StateEliminated, Reason: "its answers lose more than two points, so no speed saves it", Predicted: new(1.61), Measured: &tune.Span{Value: 1.423, Low: 1.38, High: 1.467}},
		{Label: "vLLM TP4 x2", Engine: "vllm", Trials: []int{6}, State: tune.StateNotWorse, Reason: "not shown to be worse than what led, but two others were ahead", Predicted: new(1.22), Measured: &tune.Span{Value: 1.185, Low: 1.121, High: 1.253}},
		{Label: "vLLM FP8 TP1 x8", Engine: "vllm", Trials: []int{7}, State: tune.StateEliminated, Reason: "its interval ends below what led by more than the margin", Predicted: new(1.18), Measured: &tune.Span{Value: 0.836, Low: 0.811, High: 0.861}},
		{Label: "vLLM TP1 x8", Engine: "vllm", Trials: []int{8, 9}, State: tune.StateFailed, Reason: "out of memory, also after a repair", Predicted: new(1.05)},
		{Label: "TensorRT-LLM TP8", Engine: "trtllm", State: tune.StateUntried, Reason: "the budget of 24 launches was spent", Predicted: new(1.11)},
		{Label: "vLLM PP8", Engine: "vllm", State: tune.StatePruned, Reason: "predicted to be at least 3 times worse than the best", Predicted: new(0.31), Expected: new(0.28)},
		{Label: "SGLang PP8", Engine: "sglang", State: tune.StatePruned, Reason: "predicted to be at least 3 times worse than the best", Predicted: new(0.29)},
	}
	for _, e := range []string{"vLLM", "SGLang"} {
		for _, tp := range []int{3, 5, 6, 7} {
			arms = append(arms, outcome.Candidate{Label: fmt.Sprintf("%s TP%d", e, tp), Engine: "vllm", State: tune.StateRefused, Reason: fmt.Sprintf("64 attention heads are not divisible by tp %d: use tp 4 or 8", tp)})
		}
		for _, tp := range []int{1, 2, 4, 8} {
			arms = append(arms, outcome.Candidate{Label: fmt.Sprintf("%s FP8 EP%d", e, tp), Engine: "vllm", State: tune.StateRefused, Reason: "expert parallelism needs experts, and the model is dense"})
		}
	}
	return arms
}

// raceFacts is the race of raceStudy.
func raceFacts() *outcome.Race {
	return &outcome.Race{
		Noise: tune.Noise{Between: 0.008, Launches: 6, Within: 0.004}, Candidates: raceArms(),
		Steps: []tune.Entry{
			{Trial: 9, Label: "max_model_len 8192", Note: "answers the out of memory of #8; refused again"},
			{Trial: 10, Label: "max_num_seqs 512", Gain: new(0.062), Total: new(0.372), Note: "requests waited while the KV cache was 61 % full"},
			{Trial: 11, Label: "max_num_seqs 1024", Note: "void: 31 of 1000 calls failed"},
			{Trial: 12, Label: "max_num_batched_tokens 8192", Gain: new(0.004), Total: new(0.408)},
		},
		Learned:     &tune.Learned{Trial: 1, Measured: 2440, Predicted: 3120, Corrected: 2515},
		Predictions: []tune.PredictionFit{{Engine: "vllm", N: 4, Bias: -0.09, Scale: 0.92, Error: 0.142}, {Engine: "sglang", N: 1, Bias: -0.087, Scale: 1, Error: 0.091}},
		Comparisons: []tune.Comparison{
			{Label: "vLLM FP8 TP2 x4 tuned", Against: "vLLM TP8", Workload: "sharegpt", Trials: []int{15, 18, 21}, Others: []int{14, 17, 20}, Ratio: tune.Span{Value: 1.408, Low: 1.381, High: 1.436}, P: 0.0000213, Family: 2, Shown: 0.021,
				Verdict: tune.Better, Sentence: "vLLM FP8 TP2 x4 tuned is 40.8 % better than vLLM TP8, 38.1 % to 43.6 % at 95 %"},
			{Label: "vLLM FP8 TP2 x4 tuned", Against: "SGLang FP8 TP2 x4", Workload: "sharegpt", Trials: []int{15, 18, 21}, Others: []int{16, 19, 22}, Ratio: tune.Span{Value: 1.041, Low: 0.998, High: 1.086}, P: 0.058, Family: 2, Shown: 0.046,
				Verdict: tune.NoDifference, Sentence: "no difference is shown between vLLM FP8 TP2 x4 tuned and SGLang FP8 TP2 x4; the first sets fewer flags"},
		},
		Ablation: []tune.Ablation{
			{Setting: "--max-num-seqs 512", Trial: 10, Gain: &tune.Span{Value: 0.061, Low: 0.034, High: 0.089}, Reason: "brings more than can be noise"},
			{Setting: "--max-num-batched-tokens 8192", Trial: 23, Gain: &tune.Span{Value: 0.0011, Low: -0.019, High: 0.022}, Dropped: true, Reason: "its interval covers zero"},
			{Setting: "model " + raceModel + "-FP8", Reason: "not taken away: it is another checkpoint, not a flag"},
		},
		HoldOuts: []tune.Comparison{
			{Label: "vLLM FP8 TP2 x4 tuned", Against: "vLLM TP8", Workload: "long", Trials: []int{15, 18, 21}, Others: []int{14, 17, 20}, Ratio: tune.Span{Value: 1.283, Low: 1.241, High: 1.326}, P: 0.0002, Family: 2, Shown: 0.029, Verdict: tune.Better, Sentence: "better on Long Prompt"},
			{Label: "vLLM FP8 TP2 x4 tuned", Against: "vLLM TP8", Workload: "short", Trials: []int{15, 18, 21}, Others: []int{14, 17, 20}, Ratio: tune.Span{Value: 0.942, Low: 0.917, High: 0.968}, P: 0.004, Family: 2, Shown: 0.024, Verdict: tune.Worse, Sentence: "worse on Short Prompt"},
		},
		Accuracy: []answers.Test{
			{Label: "vLLM FP8 KV8 TP2 x4", Questions: 400, Right: 331, Base: 352, Lost: 29, Won: 8, Change: -0.0525, Error: 0.015, Low: -0.077, P: 0.00077, Margin: 0.02, Sentence: "loses 5.2 points, up to 7.7 at 95 %, where 2 are allowed"},
			{Label: "vLLM FP8 TP2 x4 tuned", Questions: 400, Right: 351, Base: 352, Lost: 4, Won: 3, Change: -0.0025, Error: 0.0066, Low: -0.0134, P: 1, Margin: 0.02, Accepted: true, Sentence: "351 of 400 questions right, the baseline 352: it loses at most 1.3 points at 95 %, where 2 are allowed"},
		},
		Frontier: []outcome.FrontPoint{
			{Trials: []int{15, 18, 21}, Label: "vLLM FP8 TP2 x4 tuned", PerUser: tune.Span{Value: 7.81, Low: 7.6, High: 8.03}, PerGPU: tune.Span{Value: 428.2, Low: 421, High: 436}, Front: true, Pick: "recommended"},
			{Trials: []int{16, 19, 22}, Label: "SGLang FP8 TP2 x4", PerUser: tune.Span{Value: 8.26, Low: 8.0, High: 8.5}, PerGPU: tune.Span{Value: 411.3, Low: 398, High: 425}, Front: true},
			{Trials: []int{14, 17, 20}, Label: "vLLM TP8", PerUser: tune.Span{Value: 10.2, Low: 10, High: 10.4}, PerGPU: tune.Span{Value: 305.1, Low: 302, High: 309}, Front: true, Pick: "baseline"},
			{Trials: []int{6}, Label: "vLLM TP4 x2", PerUser: tune.Span{Value: 9.61}, PerGPU: tune.Span{Value: 301.1}},
		},
		Phases: []outcome.Phase{
			{Name: "noise", Launches: 3, LoadS: 730, GPUSeconds: 9120, WallS: 1140},
			{Name: "race", Launches: 7, LoadS: 612, GPUSeconds: 19800, WallS: 2475, Gain: new(0.298)},
			{Name: "repair", Launches: 2, LoadS: 80, GPUSeconds: 4010, WallS: 501, Gain: new(0.062)},
			{Name: "refine", Launches: 2, LoadS: 390, GPUSeconds: 6900, WallS: 862, Gain: new(0.004)},
			{Name: "confirm", Launches: 9, LoadS: 1950, GPUSeconds: 30100, WallS: 3762},
			{Name: "ablate", Launches: 1, LoadS: 220, GPUSeconds: 3500, WallS: 437},
		},
		Stopped: "no change that was left is expected to gain 2 %",
	}
}

// raceStudy is a race with everything that a report may have to show.
func raceStudy() outcome.Study {
	s := throughputStudy()
	trials := raceTrials()
	base := []*result.Summary{&trials[13].Runs[0].Summary, s.Cases[1].Baseline, s.Cases[2].Baseline}
	best := []*result.Summary{&trials[14].Runs[0].Summary, s.Cases[1].Recommended, s.Cases[2].Recommended}
	s.Name, s.Title, s.Model, s.Hardware, s.Strategy = "qwen3-32b-h100", "Optimizing Qwen3-32B Throughput on NVIDIA H100 SXM", raceModel, "8 x NVIDIA H100 SXM on one node", "race"
	s.Objective.SLOs = []string{"p99_ttft_ms <= 30000", "accuracy >= baseline - 2pt"}
	s.Engines = append(s.Engines, outcome.Software{Name: "trtllm", Title: "TensorRT-LLM", Version: "1.2.0"})
	s.Trials, s.Stages, s.Race = trials, nil, raceFacts()
	s.Baseline = &outcome.Pick{Trial: 14, Label: "vLLM TP8", Engine: "vllm", Command: trials[13].Command, Replicas: 1, Summary: base[0]}
	s.Recommended = &outcome.Pick{Trial: 15, Label: "vLLM FP8 TP2 x4 tuned", Engine: "vllm", Command: "vllm serve " + raceModel + "-FP8 -tp 2 --max-num-seqs 512", Replicas: 4, Summary: best[0],
		Processes: copies("CUDA_VISIBLE_DEVICES=", "vllm serve "+raceModel+"-FP8 -tp 2 --max-num-seqs 512", "0,1", "2,3", "4,5", "6,7"), Script: "trials/015/start.sh",
		Gain: new(0.408), Interval: &tune.Span{Value: 0.408, Low: 0.381, High: 0.436}, Launches: 3}
	s.Cases = []outcome.Case{
		{Workload: "sharegpt", Baseline: base[0], Recommended: best[0], Gain: new(0.4084)}, {Workload: "long", Baseline: base[1], Recommended: best[1], Gain: new(0.1162)}, {Workload: "short", Baseline: base[2], Recommended: best[2], Gain: new(-0.0199)},
	}
	s.Confirmed, s.Verdict = true, "vLLM FP8 TP2 x4 tuned is 40.8 % better than the baseline, but loses on Short Prompt"
	s.Ledger, s.Notes = outcome.Ledger{Launches: 24, LoadS: 3982, GPUSeconds: 73430}, nil
	return s
}

// tieStudy is a race that shows no difference: the configuration with fewer
// settings is recommended, which is the baseline.
func tieStudy() outcome.Study {
	s := raceStudy()
	s.Race.Comparisons = s.Race.Comparisons[:1]
	c := &s.Race.Comparisons[0]
	c.Ratio, c.P, c.Family, c.Shown, c.Verdict = tune.Span{Value: 1.006, Low: 0.985, High: 1.028}, 0.48, 1, 0.027, tune.NoDifference
	c.Sentence = "no difference is shown; the baseline sets fewer flags, so it stays"
	s.Recommended = &outcome.Pick{Trial: 14, Label: "vLLM TP8", Engine: "vllm", Command: s.Baseline.Command, Replicas: 1, Summary: s.Baseline.Summary, Gain: new(0.0)}
	s.Cases, s.Race.HoldOuts, s.Race.Ablation, s.Race.Accuracy = s.Cases[:1], nil, nil, nil
	s.Cases[0].Recommended, s.Cases[0].Gain = s.Cases[0].Baseline, nil
	s.Workloads = s.Workloads[:1]
	s.Verdict = "no difference shown: 3 launches each of vLLM FP8 TP2 x4 tuned and the baseline differ by +0.6 % [-1.5, +2.8], so the baseline stays"
	return s
}

// smallStudy is a race on the CPU whose budget was too small for the effect.
func smallStudy() outcome.Study {
	s := raceStudy()
	s.Recommended.Processes = copies("", s.Recommended.Command, "", "", "", "")
	s.Hardware, s.Objective.Metric, s.Objective.Better, s.Objective.SLOs = "CPU of one host", "mean_e2el_ms", "lower", nil
	for i := range s.Trials {
		s.Trials[i].GPUs, s.Trials[i].Each = 0, 0
	}
	r := s.Race
	r.Comparisons = r.Comparisons[:1]
	c := &r.Comparisons[0]
	c.Trials, c.Others, c.Ratio, c.P, c.Family, c.Shown, c.Verdict = []int{15}, []int{14}, tune.Span{Value: 1.031}, 0, 1, 0.12, tune.TooSmall
	c.Sentence = "the budget was too small for an effect of 3.1 %: one launch each shows 12 %"
	s.Recommended.Gain, s.Recommended.Interval, s.Recommended.Launches = new(0.031), nil, 1
	r.Noise, r.HoldOuts, r.Accuracy, r.Frontier, r.Predictions, r.Learned = tune.Noise{Launches: 1}, nil, nil, nil, nil, nil
	r.Stopped = "the budget of 8 launches was spent"
	for i := range r.Phases {
		r.Phases[i].GPUSeconds = 0
	}
	s.Ledger.GPUSeconds, s.Confirmed = 0, false
	s.Verdict = "budget too small: one launch each cannot show an effect of 3.1 %"
	return s
}
