package report

import (
	"io"
	"testing"

	"perflab/internal/outcome"
	"perflab/internal/report/doc"
	"perflab/internal/result"
	"perflab/internal/tune"
)

// forecastStudy launched nothing: three replays, one of them of what was published, and what the search says of
// settings and of what the study names.
func forecastStudy() outcome.Study {
	const model = "Qwen/Qwen3-32B"
	predicted := func(total, ttft, tpot float64) *result.Summary {
		s := chat(total, ttft, tpot)
		s.Predicted = true
		return s
	}
	base, published, best := predicted(5100, 21000, 98), predicted(6600, 15200, 117), predicted(7200, 13700, 128)
	trial := func(id int, stage, label, command string, figure *float64, set map[string]string, s *result.Summary) outcome.Trial {
		return outcome.Trial{ID: id, Stage: stage, Label: label, Engine: "vllm", Command: command, Replicas: 2, GPUs: 2, Each: 1, Config: set, Published: figure, Status: tune.Measured, Runs: runs(s)}
	}
	serve := "vllm serve " + model
	trials := []outcome.Trial{
		trial(1, tune.BaselineStage, "vLLM default", serve, new(5000.0), map[string]string{"engine": "vllm", "model": model}, base),
		trial(2, tune.NamedStage, "FP8", serve+"-FP8", new(6900.0), map[string]string{"engine": "vllm", "model": model + "-FP8"}, published),
		trial(3, tune.BestStage, "FP8 + max_num_seqs 512", serve+"-FP8 --max-num-seqs 512", nil, map[string]string{"engine": "vllm", "model": model + "-FP8", "max_num_seqs": "512"}, best),
	}
	gain := 7200.0/5100 - 1
	return outcome.Study{
		Schema: "perflab.study/1", Version: "0.1.0", Name: "qwen3-32b-h100", Title: "Optimizing Qwen3-32B Throughput on NVIDIA H100 SXM",
		Simulated: true, Predicted: true, Strategy: "race", Model: model, Hardware: "2 x NVIDIA H100 SXM on one node",
		Objective: outcome.Objective{Metric: "total_token_throughput", Better: "higher", Goal: "Highest total token throughput", SLOs: []string{"p99_ttft_ms <= 45000"}},
		Engines:   []outcome.Software{{Name: "vllm", Title: "vLLM", Version: "0.11.0"}},
		Method:    "Each trial is one replay of the load in virtual time.",
		Workloads: []outcome.Load{{Name: "sharegpt", Title: "ShareGPT", Primary: true, Text: "ShareGPT conversations, 1000 requests, all at once", Command: "perflab bench --model " + model}},
		Trials:    trials,
		Baseline:  &outcome.Pick{Trial: 1, Label: "vLLM default", Engine: "vllm", Command: serve, Replicas: 2, Summary: base},
		Recommended: &outcome.Pick{Trial: 3, Label: trials[2].Label, Engine: "vllm", Command: trials[2].Command, Replicas: 2, Summary: best,
			Gain: &gain, Interval: &tune.Span{Value: gain, Low: 0.21, High: 0.64}, SLOs: []outcome.Judged{{SLO: "p99_ttft_ms <= 45000", Met: true, Why: "28770 <= 45000"}}},
		Cases: []outcome.Case{{Workload: "sharegpt", Baseline: base, Recommended: best, Gain: &gain}},
		Conclusion: &tune.Finding{Kind: tune.PredictedBetter, Name: trials[2].Label, N: 240,
			Pair:       &tune.Pair{Name: trials[2].Label, Against: "the baseline", Value: 7200, Other: 5100},
			Comparison: &tune.Comparison{Label: trials[2].Label, Against: "the baseline", Workload: "sharegpt", Ratio: tune.Span{Value: 1 + gain, Low: 1.21, High: 1.64}}},
		Forecast: &outcome.Forecast{Predicted: 240, Unknown: 3, Refused: 16, Cut: true, Outside: []string{"No run of vLLM 0.11.0 is in the calibration."},
			Named: []tune.Entry{{Label: "FP8", Trial: 2, Total: new(6600.0/5100 - 1)}, {Label: "TP4", Finding: &tune.Finding{Kind: tune.RefusedByRule, Reason: "it takes 4 GPUs, there are 2"}}},
			Settings: []tune.Ablation{
				{Setting: "--performance-mode throughput", Dropped: true, Gain: &tune.Span{Value: 0.002, Low: 0.002, High: 0.002}, Finding: &tune.Finding{Kind: tune.PredictedBrings, Value: new(0.002)}},
				{Setting: "--max-num-seqs 512", Gain: &tune.Span{Value: 0.09, Low: 0.09, High: 0.09}, Finding: &tune.Finding{Kind: tune.PredictedBrings, Value: new(0.09)}},
				{Setting: "--quantization fp8", Finding: &tune.Finding{Kind: tune.PredictedNeeded}},
			}},
		Reference: &outcome.Reference{Label: "FP8", Source: "a blog post", Command: serve + "-FP8", Trial: 2, Gain: new(6600.0/5100 - 1), Published: new(6900.0), PublishedGain: new(0.38),
			Over: &tune.Span{Value: 7200.0/6600 - 1, Low: -0.05, High: 0.25}, Pairs: 1},
	}
}

// TestGoldenForecast: the report of a study that launched nothing, with its chapters on the search, on settings and on what
// was published.
func TestGoldenForecast(t *testing.T) {
	s := forecastStudy()
	o := Options{Repeat: "perflab tune " + s.Name + ".yaml"}
	golden(t, "forecast.md", func(w io.Writer) error { return doc.Markdown(w, must(Study(s, o))) })
	golden(t, "forecast.html", func(w io.Writer) error { return doc.HTML(w, must(Study(s, o))) })
	golden(t, "forecast.txt", func(w io.Writer) error { return doc.Text(w, must(Study(s, Options{}))) })
}
