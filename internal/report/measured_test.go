package report

import (
	"encoding/json"
	"io"
	"maps"
	"strings"
	"testing"

	"perflab/internal/outcome"
	"perflab/internal/report/doc"
	"perflab/internal/result"
	"perflab/internal/tune"
)

// measuredStudy is of engines in containers, with what they and the machine told: a
// refusal with its class, facts of the logs, telemetry, a price, and GPUs that no replica
// uses.
func measuredStudy() outcome.Study {
	const model = "Qwen/Qwen3-32B"
	beside := func(s *result.Summary, joules, watts, cost float64) *result.Summary {
		maps.Copy(s.Figures, map[string]float64{
			"mean_running_requests": 212.4, "max_running_requests": 256, "mean_waiting_requests": 31.07, "max_waiting_requests": 90, "mean_kv_usage": 0.8123, "max_kv_usage": 0.9931,
			"preemptions": 12, "gpus": 8, "mean_gpu_utilization": 0.93, "max_gpu_utilization": 1, "mean_gpu_power_w": watts, "energy_per_token_j": joules,
			"output_tokens_per_s_per_w": 0.5 / joules, "cost_per_million_tokens": cost, "cost_per_million_output_tokens": 2 * cost,
		})
		s.Currency = "USD"
		return s
	}
	base, best := beside(sum(1000, 217, 197, 3801.11, 37900.2, 122.9), 1.4411, 541.3, 2.1032), beside(sum(1000, 217, 197, 7240.55, 22110.4, 161.2), 0.8012, 577.9, 1.1042)
	facts := []outcome.EngineFact{
		{Name: "kv_tokens", Unit: "tokens", Value: 336640}, {Name: "max_concurrency", Unit: "requests", Value: 8.22}, {Name: "concurrency_len", Unit: "tokens", Value: 40960},
		{Name: "model_gib", Unit: "GiB", Value: 30.5913}, {Name: "graph_gib", Unit: "GiB", Value: 0.9}, {Name: "load_seconds", Unit: "s", Value: 61.24},
		{Name: "compile_seconds", Unit: "s", Value: 33}, {Name: "graph_seconds", Unit: "s", Value: 21}, {Name: "running_peak", Unit: "requests"}, {Name: "novel_bytes", Unit: "bytes", Value: 7},
	}
	const image = "vllm/vllm-openai@sha256:6c7f3f6bd0a2b1f9cf7e9b1d2a3948576afbecdd00112233445566778899aabb"
	const idle = "2 of 8 GPUs are used by no replica (6, 7); they count as allocated."
	trial := func(id int, stage, label, command string, replicas, each int, r []outcome.Run) outcome.Trial {
		return outcome.Trial{ID: id, Stage: stage, Label: label, Engine: "vllm", Version: "0.11.0", Image: image, Command: command, Replicas: replicas, GPUs: 8, Each: each,
			Config: map[string]string{"engine": "vllm"}, Status: tune.Measured, Facts: facts, Runs: r}
	}
	three := trial(3, "Parallelism", "TP3 x2", "vllm serve "+model+" -tp 3", 2, 3, runs(best))
	three.Notes = []string{idle}
	return outcome.Study{
		Schema: "perflab.study/1", Version: "0.1.0", Name: "measured", Title: "Optimizing Qwen3-32B Throughput", Strategy: "staged", Model: model,
		Hardware: "8 x AMD Instinct MI300X on one node", Visible: "HIP_VISIBLE_DEVICES",
		Objective: outcome.Objective{Metric: "cost_per_million_tokens", Better: "lower", Goal: "Lowest Cost per million tokens"},
		Engines:   []outcome.Software{{Name: "vllm", Title: "vLLM", Version: "0.11"}, {Name: "sglang", Title: "SGLang"}},
		Workloads: []outcome.Load{{Name: "sharegpt", Title: "ShareGPT", Primary: true, Text: "ShareGPT, 1000 requests", Command: "perflab bench --seed 42"}},
		Trials: []outcome.Trial{
			trial(1, "baseline", "TP8", "vllm serve "+model+" -tp 8", 1, 8, runs(base)),
			{ID: 2, Stage: "Parallelism", Label: "TP7", Engine: "vllm", Version: "0.11.0", Command: "vllm serve " + model + " -tp 7", GPUs: 8, Status: tune.Refused,
				Reason: "ValueError: Total number of attention heads (64) must be divisible by tensor parallel size (7).", Class: "heads", Advice: "use a tp that divides them; try tp=4", Log: "trials/002/logs"},
			three,
		},
		Stages:   []outcome.Stage{{Name: "Parallelism", Trials: []int{2, 3}, Before: 1, Winner: 3, Gain: new(0.905), Result: "TP3 x2 goes on"}},
		Baseline: &outcome.Pick{Trial: 1, Label: "TP8", Engine: "vllm", Command: "vllm serve " + model + " -tp 8", Replicas: 1, Summary: base},
		Recommended: &outcome.Pick{Trial: 3, Label: "TP3 x2", Engine: "vllm", Command: "vllm serve " + model + " -tp 3", Replicas: 2, Summary: best, Gain: new(0.905),
			Processes: copies("HIP_VISIBLE_DEVICES=", "vllm serve "+model+" -tp 3", "0,1,2", "3,4,5"), Script: "trials/003/start.sh"},
		Cases:   []outcome.Case{{Workload: "sharegpt", Baseline: base, Recommended: best, Gain: new(0.905)}},
		Verdict: "TP3 x2 is 1.90x better on cost_per_million_tokens than TP8", Ledger: outcome.Ledger{Launches: 3, LoadS: 260, GPUSeconds: 4200},
	}
}

func TestGoldenMeasured(t *testing.T) {
	s := measuredStudy()
	golden(t, "measured.md", func(w io.Writer) error { return doc.Markdown(w, must(Study(s, Options{}))) })
	golden(t, "measured.html", func(w io.Writer) error { return doc.HTML(w, must(Study(s, Options{}))) })
	golden(t, "measured.txt", func(w io.Writer) error { return doc.Text(w, must(Study(s, Options{}))) })
	docs := render(t, s)
	for form, doc := range docs {
		for _, want := range []string{"heads", "divisible by tensor parallel size (7)", "Use a tp that divides them; try tp=4.", "HIP_VISIBLE_DEVICES=3,4,5", "Cost per million tokens (USD)"} {
			if !strings.Contains(doc, want) {
				t.Errorf("%s lacks %q", form, want)
			}
		}
		if strings.Contains(doc, "1.1042 price") || strings.Contains(doc, "0 requests at once") {
			t.Errorf("%s names a unit that is none, or a fact that says nothing", form)
		}
	}
	for _, form := range []string{"md", "html"} {
		for _, want := range []string{
			"vllm/vllm-openai@sha256:6c7f3f", "0.11.0", "KV cache of 336,640 tokens; 8.22 requests of 40,960 tokens at once; weights 30.59 GiB; graphs 0.90 GiB; 61.2 s to load; 33.0 s to compile; 21.0 s to capture graphs; novel_bytes 7 bytes",
			"2 of 8 GPUs are used by no replica (6, 7)", "2 replicas on 8 GPUs (3 each, 2 unused)", "1.1042 USD", "mean 81.2 %, peak 99.3 %", "Energy per token (J)",
		} {
			if !strings.Contains(docs[form], want) {
				t.Errorf("%s lacks %q", form, want)
			}
		}
	}
}

// TestOnTheCPU: a host without a GPU has none to count, in any form.
func TestOnTheCPU(t *testing.T) {
	s := measuredStudy()
	s.Hardware, s.Visible, s.Ledger.GPUSeconds = "CPU of one host, no GPU", "", 0
	for i := range s.Trials {
		s.Trials[i].GPUs, s.Trials[i].Each, s.Trials[i].Notes, s.Trials[i].Runs = 0, 0, nil, runs(sum(10, 5, 5, 100, 1, 1))
	}
	s.Recommended.Processes = copies("", "vllm serve Qwen/Qwen3-32B -tp 3", "", "")
	s.Cases, s.Baseline.Summary, s.Recommended.Summary = nil, nil, nil
	for form, doc := range render(t, s) {
		body := strings.ReplaceAll(doc, s.Hardware, "")
		if i := strings.Index(body, "GPU"); i >= 0 {
			t.Errorf("%s speaks of GPUs: %q", form, body[max(0, i-60):i+20])
		}
		if form != "text" && (!strings.Contains(doc, "1 replica on the CPU") || !strings.Contains(doc, "2 replicas on the CPU, loaded together")) {
			t.Errorf("%s does not say where the replicas ran", form)
		}
		if !strings.Contains(doc, "\nvllm serve Qwen/Qwen3-32B -tp 3 --host 127.0.0.1 --port 8001 &") && !strings.Contains(doc, "\nvllm serve Qwen/Qwen3-32B -tp 3 --host 127.0.0.1 --port 8001 &amp;") {
			t.Errorf("%s does not start both replicas", form)
		}
	}
}

// TestBaselineKept: of a recommendation that is the baseline nothing is said twice, or as
// a change.
func TestBaselineKept(t *testing.T) {
	s := measuredStudy()
	s.Recommended = s.Baseline
	s.Cases[0].Recommended = s.Cases[0].Baseline
	s.Cases[0].Baseline.Verdict = result.Verdict{Status: result.Noted, Checks: []result.Check{{Name: "x", Status: result.Noted, Text: "a doubt of the case"}}}
	for form, doc := range render(t, s) {
		if strings.Contains(doc, "instead of") || strings.Count(doc, "ShareGPT, recommended: a doubt")+strings.Count(doc, "ShareGPT, baseline: a doubt") > 1 {
			t.Errorf("%s says twice what is one:\n%s", form, doc)
		}
	}
	if got := factLine([]outcome.EngineFact{{Name: "slots", Unit: "requests", Value: 1}, {Name: "load_seconds", Unit: "s", Value: 1}}); got != "1.0 s to load; slots for 1 request" {
		t.Errorf("facts read %q", got)
	}
}

// TestOldStudy: a study.json from before engines told anything of themselves renders as
// it did.
func TestOldStudy(t *testing.T) {
	const old = `{"schema": "perflab.study/1", "version": "0.1.0", "name": "old", "title": "Old", "simulated": false, "strategy": "staged", "block": "vllm",
"objective": {"metric": "total_token_throughput", "better": "higher", "goal": "Highest total token throughput"}, "model": "Qwen/Qwen3-8B", "hardware": "4 x NVIDIA H100 SXM on one node",
"engines": [{"name": "vllm", "title": "vLLM", "version": "0.11.0"}], "method": "m", "workloads": [{"name": "w", "title": "W", "primary": true, "text": "t", "command": "perflab bench"}],
"baseline": {"trial": 1, "label": "TP2", "engine": "vllm", "command": "vllm serve Qwen/Qwen3-8B -tp 2", "replicas": 2, "gain": null},
"recommended": {"trial": 1, "label": "TP2", "engine": "vllm", "command": "vllm serve Qwen/Qwen3-8B -tp 2", "replicas": 2, "gain": 0}, "confirmed": false, "verdict": "no gain",
"stages": [], "trials": [
{"id": 1, "stage": "baseline", "label": "TP2", "engine": "vllm", "config": {"tp": "2"}, "command": "vllm serve Qwen/Qwen3-8B -tp 2", "replicas": 2, "gpus": 4, "status": "ok", "runs": []},
{"id": 2, "stage": "S", "label": "TP3", "engine": "vllm", "config": {"tp": "3"}, "command": "vllm serve Qwen/Qwen3-8B -tp 3", "replicas": 1, "gpus": 4, "status": "refused", "reason": "32 attention heads", "runs": []}],
"ledger": {"launches": 2, "load_s": 1, "gpu_s": 8}}`
	var s outcome.Study
	if err := json.Unmarshal([]byte(old), &s); err != nil {
		t.Fatal(err)
	}
	for form, doc := range render(t, s) {
		want := []string{"vllm serve Qwen/Qwen3-8B -tp 2", "tart it 2 times, each on its own GPUs and port", "refused by the engine", "32 attention heads"}
		if form != "text" {
			want = append(want, "0.11.0", "2 replicas on 4 GPUs, loaded together", "1 replica on 4 GPUs")
		}
		for _, w := range want {
			if !strings.Contains(doc, w) {
				t.Errorf("%s lacks %q", form, w)
			}
		}
		for _, bad := range []string{"engine&#39;s log", "engine's log", "What to do", "image", "()"} {
			if i := strings.Index(doc[strings.Index(doc, "Old"):], bad); i >= 0 && form != "html" {
				t.Errorf("%s says %q of what is not known", form, bad)
			}
		}
	}
}

// TestSentence: a clause gets its capital and full stop, and an identifier of a log stays as it is.
func TestSentence(t *testing.T) {
	for in, want := range map[string]string{
		"":            "",
		"no room":     "No room.",
		"no room.":    "No room.",
		"über uns":    "über uns.",
		"free memory": "Free memory.",
		"ggml_backend_cuda_buffer_type_alloc_buffer: cudaMalloc failed": "ggml_backend_cuda_buffer_type_alloc_buffer: cudaMalloc failed.",
	} {
		if got := sentence(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
