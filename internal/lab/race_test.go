package lab

import (
	"context"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"perflab/internal/bench"
	"perflab/internal/outcome"
	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/study"
	"perflab/internal/tune"
)

// fewArms is a study of a few arms whose figures paced gives.
const fewArms = `name: t
model: Qwen/Qwen3-8B
hardware: {gpu: h100-sxm, gpus: 2}
engines: {vllm: {}, sglang: {}}
objective: {metric: total_token_throughput, slos: [p99_ttft_ms <= baseline + 400%]}
workloads:
  - {name: a, dataset_name: random, num_prompts: 300, random_input_len: 8, random_output_len: 2}
  - {name: b, dataset_name: random, num_prompts: 10, random_input_len: 8, random_output_len: 2}
baseline: {label: base, engine: vllm}
stages:
  - name: s
    try: [{label: FP8, model: Qwen/Qwen3-8B-FP8}, {label: TP3, set: {tp: 3}}]
budget: {trials: 14}
runtime: {kind: predicted}
`

// paced is a predictor of calls whose length depends on the configuration, and a
// little on the seed: SGLang is faster than vLLM, FP8 than bfloat16, and replicas
// than tp. before, if any, hears of each run.
type paced struct{ before hook }

// hook is what a test does at a run, of which several may be made at the same time.
type hook func()

var hooks sync.Mutex

func (h hook) call() {
	if h != nil {
		hooks.Lock()
		defer hooks.Unlock()
		h()
	}
}

func (p paced) Predict(ctx context.Context, q bench.Prediction) iter.Seq2[result.Call, error] {
	return func(yield func(result.Call, error) bool) {
		p.before.call()
		ms := 1000.0 + float64(q.Seed%7)
		if q.Config.Engine == "sglang" {
			ms *= 0.8
		}
		if strings.HasSuffix(q.Config.ServedName, "FP8") {
			ms *= 0.7
		}
		ms *= float64(q.Config.TP)
		end := time.Duration(ms * float64(time.Millisecond))
		n := 0
		for r := range q.Workload.All() {
			if ctx.Err() != nil {
				yield(result.Call{}, context.Cause(ctx))
				return
			}
			sent := time.Duration(n) * end / 10
			n++
			chunks := []result.Chunk{{At: sent + end/2, Tokens: 1}, {At: sent + end, Tokens: 1}}
			c := result.Call{
				Index: r.Index, Due: sent, Ready: sent, Sent: sent, Headers: sent + end/2, Answer: sent + end/2, End: sent + end, Chunks: chunks, Status: 200, Finish: "length",
				Usage: &result.Usage{Prompt: 8, Completion: 2}, WantIn: 8, Want: 2, Class: result.OK, Sim: true,
			}
			if !yield(c, nil) {
				return
			}
		}
		if q.Engine != nil {
			q.Engine(map[string]float64{"mean_running_requests": 10, "mean_waiting_requests": 0, "mean_kv_usage": 0.1})
		}
	}
}

// TestRace: the best configuration is found, launched beside the baseline until
// that is shown, and every fact that the report needs is there.
func TestRace(t *testing.T) {
	dir, f := tuned(t, fewArms, paced{})
	if f.Race == nil || f.Recommended == nil || f.Recommended.Engine != "sglang" || !strings.Contains(f.Recommended.Command, "FP8") || !f.Confirmed {
		t.Fatalf("recommended %+v: %s", f.Recommended, f.Verdict)
	}
	if g := f.Recommended.Gain; g == nil || *g < 0.7 || *g > 0.9 {
		t.Errorf("the gain is %v, and is 1/0.56 - 1", g)
	}
	if i := f.Recommended.Interval; i == nil || !(i.Low > 0.5 && i.High < 1) || f.Recommended.Launches < 2 {
		t.Errorf("interval %+v of %d launches", i, f.Recommended.Launches)
	}
	r := f.Race
	if len(f.Trials) > 14 || len(r.Comparisons) == 0 || len(r.HoldOuts) != 1 || r.HoldOuts[0].Workload != "b" {
		t.Errorf("%d trials, comparisons %v, hold-outs %v", len(f.Trials), r.Comparisons, r.HoldOuts)
	}
	refused := slices.IndexFunc(r.Candidates, func(a outcome.Candidate) bool { return a.State == tune.StateRefused })
	if refused < 0 || r.Candidates[refused].Finding == nil || len(r.Candidates[refused].Trials) > 0 {
		t.Errorf("tp 3 of 2 GPUs is not refused: %+v", r.Candidates)
	}
	if u := r.Unlaunched; len(u) != 1 || u[0].Label != "TP3" || u[0].Finding == nil || !strings.Contains(u[0].Finding.Reason, "takes 3 GPUs") {
		t.Errorf("of what the study names had no launch: %+v", u)
	}
	launches, cost := 0, 0.0
	for _, p := range r.Phases {
		launches, cost = launches+p.Launches, cost+p.GPUSeconds
	}
	if launches != len(f.Trials) || cost < f.Ledger.GPUSeconds*0.999 || cost > f.Ledger.GPUSeconds*1.001 {
		t.Errorf("phases of %d launches and %v GPU s, of %d and %v", launches, cost, len(f.Trials), f.Ledger.GPUSeconds)
	}
	for _, a := range r.Candidates {
		if a.State != tune.StateRefused && (a.Command == "" || a.Predicted == nil) {
			t.Errorf("arm %s has the command %q and the prediction %v", a.Label, a.Command, a.Predicted)
		}
	}
	picks := map[string]int{}
	for _, p := range r.Frontier {
		picks[p.Pick]++
		if p.Pick == "recommended" && (len(p.Trials) < 3 || !(p.PerGPU.Low < p.PerGPU.Value)) {
			t.Errorf("the recommended point is %+v", p)
		}
	}
	if picks["recommended"] != 1 || picks["baseline"] != 1 {
		t.Errorf("frontier %+v", r.Frontier)
	}
	if slices.ContainsFunc(f.Notes, func(n string) bool { return strings.Contains(n, "launched once") }) {
		t.Errorf("notes %q", f.Notes)
	}
	var rec trialRecord
	if err := rundir.ReadJSON(filepath.Join(dir, "trials", "001", trialFile), &rec); err != nil || rec.observation().Within["a"] == 0 && rec.Within != nil {
		t.Errorf("trial 1: %v, within %v", err, rec.Within)
	}
}

// TestDraws: random, grid and TPE end with a recommendation too.
func TestDraws(t *testing.T) {
	text := strings.Replace(fewArms, ", slos: [p99_ttft_ms <= baseline + 400%]", "", 1)
	for _, name := range []string{study.Random, study.Grid, study.TPE} {
		s, err := study.ParseAs("t.yaml", []byte(text), name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := Tune(t.Context(), s, []byte(text), Options{Dir: filepath.Join(t.TempDir(), "out"), Predictor: paced{}})
		if err != nil || f.Strategy != name || f.Recommended == nil || len(f.Trials) > 14 {
			t.Errorf("%s: %v, recommended %v, %d trials", name, err, f.Recommended, len(f.Trials))
		}
	}
}

// TestRaceOfFailures: whatever the engine of an arm does, the race goes on
// without it, and nothing of it is left.
func TestRaceOfFailures(t *testing.T) {
	const text = `name: t
model: Qwen/Qwen3-8B
hardware: {gpu: h100-sxm, gpus: 1, check: off}
objective: {metric: total_token_throughput}
workloads:
  - {name: a, dataset_name: random, num_prompts: 10, random_input_len: 100, random_output_len: 2}
baseline: {label: base, engine: vllm}
space: {engine: [vllm, sglang]}
engines: {sglang: {env: [ENV]}}
budget: {trials: 8}
race: {rounds: 2}
runtime: {kind: process, ready_timeout_s: 10}
bench: {num_warmups: 0, telemetry_interval_s: 0}
`
	for _, behaviour := range []string{"oom", "kv", "crash", "oom-load", "dies", "errors"} {
		t.Run(behaviour, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(text, "ENV", behaviourEnv+"="+behaviour, 1)
			s, err := study.Parse("t.yaml", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			f, err := Tune(t.Context(), s, []byte(text), Options{Dir: filepath.Join(t.TempDir(), "out"), grace: time.Second, pauses: []time.Duration{10 * time.Millisecond}})
			if err != nil || f.Partial || f.Recommended == nil || f.Recommended.Engine != "vllm" {
				t.Fatalf("%v: recommended %+v: %s", err, f.Recommended, f.Verdict)
			}
			tried := slices.IndexFunc(f.Trials, func(r outcome.Trial) bool { return r.Engine == "sglang" && r.Status != tune.Measured && r.Reason != "" })
			failed := slices.IndexFunc(f.Race.Candidates, func(a outcome.Candidate) bool { return a.Engine == "sglang" && a.State == tune.StateFailed })
			if tried < 0 || failed < 0 || f.Race.Candidates[failed].Finding == nil {
				t.Errorf("trials %+v, candidates %+v", f.Trials, f.Race.Candidates)
			}
		})
	}
}
