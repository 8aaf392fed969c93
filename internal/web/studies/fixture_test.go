package studies_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"perflab/internal/durable"
	"perflab/internal/gauge"
	"perflab/internal/outcome"
	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/test/storetest"
	"perflab/internal/tune"
	"perflab/internal/tune/journal"
)

// underWay is a study in its fifth launch that a test makes, and is at work on while it has the journal.
type underWay struct {
	dir     string
	journal *os.File
}

var clock = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// race makes a race in its fifth launch below a root. mark stands in every name.
func race(t testing.TB, root, mark string) *underWay {
	t.Helper()
	dir := filepath.Join(root, "h100")
	storetest.Mkdir(t, filepath.Join(dir, "trials", "005", "logs"))
	x := &underWay{dir: dir}
	f, err := os.Create(filepath.Join(dir, rundir.JournalFile))
	if err != nil {
		t.Fatal(err)
	}
	x.journal = f
	t.Cleanup(func() { f.Close() })
	if _, err := journal.Open(f, journal.Log{}, journal.Head{Study: "1234", Name: "h100"}); err != nil {
		t.Fatal(err)
	}
	if held, err := durable.Hold(f); !held || err != nil {
		t.Fatal(held, err)
	}
	storetest.WriteFile(t, filepath.Join(dir, "study.yaml"), []byte("name: h100\n"))
	storetest.WriteJSON(t, filepath.Join(dir, rundir.StudyFile), raceSoFar(t, dir, mark))
	x.progress(t, mark, 212)
	storetest.WriteFile(t, filepath.Join(dir, "trials", "005", "logs", "replica-0.log"), []byte("# vllm serve\nINFO loading "+mark+"\nloading 10 %\rloading 100 %\n"))
	storetest.WriteFile(t, filepath.Join(dir, "trials", "003", "logs", "replica-0.log"), []byte("torch.OutOfMemoryError: CUDA out of memory "+mark+"\n"))
	run := filepath.Join(dir, "trials", "005", "chat.tmp")
	storetest.Mkdir(t, run)
	storetest.WriteJSON(t, filepath.Join(run, "header.json"), storetest.Run{N: 9, Simulated: true}.Header())
	x.telemetry(t, 30)
	return x
}

// progress writes where the study stands.
func (x *underWay) progress(t testing.TB, mark string, done int) {
	t.Helper()
	storetest.WriteJSON(t, filepath.Join(x.dir, rundir.UnderwayFile), outcome.Underway{
		Schema: outcome.UnderwaySchema, Name: "h100" + mark, Simulated: true, Resume: "perflab tune h100.yaml --out h100 --resume", Started: clock, At: clock.Add(14*time.Minute + 10*time.Second),
		Ended: 4, Most: 24, SpentS: 600, EachS: 110, LeftS: new(2150.0),
		Trials: []outcome.UnderwayTrial{{Trial: 5, Stage: "refine", Label: "max_num_seqs 512" + mark, Why: "a change of what leads, expected to gain most" + mark, Workload: "chat", Phase: "measuring",
			Since: clock.Add(13 * time.Minute), Load: &outcome.UnderwayLoad{Planned: 500, Done: done, Failed: 1, InFlight: 64, Tokens: 90000, Seconds: 40}}},
		Leader: &outcome.Leader{Label: "vLLM FP8" + mark, Ratio: &tune.Span{Value: 1.18, Low: 1.11, High: 1.26}, Launches: 1, Higher: true},
	})
}

// telemetry writes readings of so many seconds.
func (x *underWay) telemetry(t testing.TB, n int) {
	t.Helper()
	var b strings.Builder
	for i := range n {
		at := time.Duration(i) * time.Second
		for _, r := range []gauge.Reading{
			{At: at, Source: gauge.SourceEngine, Values: map[string]float64{"running": 40 + float64(i%24), "waiting": float64(i % 9), "kv_usage": 0.3 + float64(i%20)/50}},
			{At: at, Source: gauge.SourceGPU, Values: map[string]float64{gauge.GPUUtilization: 0.9, gauge.GPUPower: 610 + float64(i%40)}},
		} {
			line, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			b.Write(append(line, '\n'))
		}
	}
	storetest.WriteFile(t, filepath.Join(x.dir, "trials", "005", "chat.tmp", rundir.TelemetryFile), []byte(b.String()))
}

// raceSoFar is what the race has found.
func raceSoFar(t testing.TB, dir, mark string) outcome.Study {
	t.Helper()
	s := outcome.Study{Schema: "perflab.study/1", Name: "h100" + mark, Title: "Optimizing Qwen3-8B on H100" + mark, Simulated: true, Partial: true, Started: clock, Ended: clock.Add(10 * time.Minute), Strategy: "race",
		Objective: outcome.Objective{Metric: "total_token_throughput", Better: "higher", SLOs: []string{"p99_ttft_ms <= 500"}, Goal: "Highest total token throughput" + mark},
		Model:     "Qwen/Qwen3-8B" + mark, Hardware: "8 x NVIDIA H100 SXM" + mark, Engines: []outcome.Software{{Name: "vllm", Title: "vLLM" + mark, Version: "0.11.0"}},
		Workloads: []outcome.Load{{Name: "chat", Title: "Chat" + mark, Primary: true}}, Verdict: "vLLM FP8 leads" + mark,
		Race: &outcome.Race{Noise: tune.Noise{Between: 0.012, Launches: 4}, Candidates: []outcome.Candidate{
			{Label: "vLLM FP8" + mark, Engine: "vllm", State: tune.StateRefined, Predicted: new(1.15), Measured: &tune.Span{Value: 1.18, Low: 1.11, High: 1.26}, Trials: []int{2}},
			{Label: "SGLang" + mark, Engine: "sglang", State: tune.StateEliminated, Reason: "shown to be worse than vLLM FP8" + mark, Measured: &tune.Span{Value: 0.93, Low: 0.9, High: 0.97}, Trials: []int{4}},
			{Label: "TP4" + mark, Engine: "vllm", State: tune.StateFailed, Reason: "refused: CUDA out of memory" + mark, Trials: []int{3}},
			{Label: "TP8" + mark, Engine: "vllm", State: tune.StateUntried, Reason: "the expected gain was too small for a launch" + mark},
		}, Comparisons: []tune.Comparison{{Label: "vLLM FP8" + mark, Against: tune.TheBaseline, Trials: []int{2}, Others: []int{1}, Ratio: tune.Span{Value: 1.17, Low: 1.02, High: 1.31}, Verdict: tune.Better}}},
		Baseline:    &outcome.Pick{Trial: 1, Label: "vLLM", SLOs: []outcome.Judged{{SLO: "p99_ttft_ms <= 500", Met: true, Why: "p99_ttft_ms <= 500: met, 410 ms" + mark}}},
		Recommended: &outcome.Pick{Trial: 2, Label: "vLLM FP8" + mark, Command: "vllm serve Qwen/Qwen3-8B-FP8", SLOs: []outcome.Judged{{SLO: "p99_ttft_ms <= 500", Met: false, Why: "p99_ttft_ms <= 500: missed by 12 ms, 512 ms" + mark}}},
	}
	for i, label := range []string{"vLLM", "vLLM FP8", "TP4", "SGLang"} {
		n := i + 1
		tr := outcome.Trial{ID: n, Stage: "race", Label: label + mark, Engine: "vllm", Version: "0.11.0", Config: map[string]string{"engine": "vllm", "note": mark}, Command: "vllm serve Qwen/Qwen3-8B " + mark, Replicas: 1, GPUs: 1,
			Status: tune.Measured, Started: clock.Add(time.Duration(n) * time.Minute), Ended: clock.Add(time.Duration(n)*time.Minute + 50*time.Second)}
		at := fmt.Sprintf("trials/%03d", n)
		storetest.Mkdir(t, filepath.Join(dir, at, "logs"))
		if label == "TP4" {
			tr.Status, tr.Reason, tr.Class, tr.Advice = tune.Refused, "CUDA out of memory"+mark, "oom", "Give it more GPUs"+mark
			s.Trials = append(s.Trials, tr)
			continue
		}
		r := storetest.Run{N: 100 + n, Simulated: true, Command: tr.Command, Status: map[int]result.Status{4: result.Noted}[n]}
		tr.Runs = []outcome.Run{{Workload: "chat", Dir: at + "/chat", Seed: uint64(n), Summary: r.Summary()}}
		r.Write(t, dir, at+"/chat")
		s.Trials = append(s.Trials, tr)
	}
	return s
}

// stop ends the process that is at work on it, before its end.
func (x *underWay) stop(t testing.TB) {
	t.Helper()
	if err := x.journal.Close(); err != nil {
		t.Fatal(err)
	}
}

// finish brings the study to its end.
func (x *underWay) finish(t testing.TB) {
	t.Helper()
	s := raceSoFar(t, x.dir, "")
	s.Partial, s.Confirmed = false, true
	s.Verdict = "vLLM FP8 is 17 % better than the baseline."
	storetest.WriteJSON(t, filepath.Join(x.dir, rundir.StudyFile), s)
	if err := os.Remove(filepath.Join(x.dir, rundir.UnderwayFile)); err != nil {
		t.Fatal(err)
	}
	x.stop(t)
}
