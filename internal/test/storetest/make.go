package storetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"perflab/internal/outcome"
	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/test/calltest"
	"perflab/internal/tune"
)

// Began is when the first run that is made began; each further one begins a minute later.
var Began = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// Run is a run that is made.
type Run struct {
	N         int    // decides its figures, and when it began
	Model     string // "": Qwen/Qwen3-8B
	Command   string
	Simulated bool
	Status    result.Status // "": sound
	Build     string
	Partial   bool
	Figures   map[string]float64 // beside those that follow from N
}

// Header is the header of the run.
func (r Run) Header() result.Header {
	model := r.Model
	if model == "" {
		model = "Qwen/Qwen3-8B"
	}
	spec, _ := json.Marshal(map[string]any{"gpus": 1 + r.N%8, "metadata": map[string]string{"commit": r.Build}})
	return result.Header{
		Schema: rundir.Schema, Version: "1.0.0", Simulated: r.Simulated, Started: Began.Add(time.Duration(r.N) * time.Minute),
		Model: model, Backend: "openai-chat", Targets: []string{"http://127.0.0.1:8000"}, Workload: "random", Spec: spec, Requests: 10,
		Rate: float64(1 + r.N%16), Command: r.Command, Host: result.Host{OS: "linux", Arch: "amd64", CPUs: 8},
		Fingerprint: fmt.Sprintf("workload-%d", r.N%5),
	}
}

// Summary has the figures of the run.
func (r Run) Summary() result.Summary {
	s := result.Summary{Figures: map[string]float64{
		"completed": 10, "duration": 10 + float64(r.N%60), "output_throughput": 1000 + float64(r.N*7%1000),
		"total_token_throughput": 2000 + float64(r.N*13%1000), "p99_ttft_ms": 50 + float64(r.N*17%500), "mean_tpot_ms": 5 + float64(r.N%30),
	}, Simulated: r.Simulated, Partial: r.Partial}
	maps.Copy(s.Figures, r.Figures)
	s.Intervals = map[string][2]float64{"p99_ttft_ms": {s.Figures["p99_ttft_ms"] - 5, s.Figures["p99_ttft_ms"] + 9}}
	s.Verdict.Add(result.Check{Name: "dispatch_lag", Status: result.Sound, Text: "0.1 ms"})
	if r.Status != "" {
		s.Verdict.Add(result.Check{Name: "failures", Status: r.Status, Text: "1 of 10 calls failed"})
	}
	return s
}

// Write makes the directory of the run below a root, and returns its path.
func (r Run) Write(t testing.TB, root, name string) string {
	t.Helper()
	dir := filepath.Join(root, filepath.FromSlash(name))
	Mkdir(t, dir)
	WriteJSON(t, filepath.Join(dir, "header.json"), r.Header())
	WriteJSON(t, filepath.Join(dir, "summary.json"), r.Summary())
	WriteJSON(t, filepath.Join(dir, "client.json"), result.Client{Wall: time.Second, Partial: r.Partial})
	r.WriteCalls(t, dir)
	return dir
}

// WriteCalls makes the file of the calls of the run.
func (r Run) WriteCalls(t testing.TB, dir string) {
	t.Helper()
	var b []byte
	for _, c := range calltest.Steady(3, 100*time.Millisecond) {
		c.Due += time.Duration(r.N)
		b = append(c.AppendJSON(b), '\n')
	}
	WriteFile(t, filepath.Join(dir, "calls.jsonl"), b)
}

// Study makes the directory of a study with so many trials of one run each.
func Study(t testing.TB, root, name string, n, trials int) string {
	t.Helper()
	dir := filepath.Join(root, filepath.FromSlash(name))
	s := StudyOf(n)
	for i := 1; i <= trials; i++ {
		r := Run{N: 1000*n + i, Command: fmt.Sprintf("vllm serve Qwen/Qwen3-8B -tp %d", i)}
		at := fmt.Sprintf("trials/%03d/chat", i)
		r.Write(t, dir, at)
		s.Trials = append(s.Trials, outcome.Trial{ID: i, Label: fmt.Sprintf("TP%d", i), Engine: "vllm", Version: "0.11.0", GPUs: i, Status: tune.Measured,
			Command: r.Command, Image: "vllm@sha256:12", Runs: []outcome.Run{{Workload: "chat", Dir: at, Summary: r.Summary()}}})
	}
	Mkdir(t, dir)
	WriteFile(t, filepath.Join(dir, rundir.JournalFile), fmt.Appendf(nil, "{\"seq\":1,\"kind\":\"study\",\"study\":{\"hash\":\"%d\"}}\n", n))
	WriteJSON(t, filepath.Join(dir, rundir.StudyFile), s)
	return dir
}

// StudyOf is a finished study without trials.
func StudyOf(n int) outcome.Study {
	r := Run{N: n}.Summary()
	gain := float64(n%40) / 100
	return outcome.Study{
		Schema: "perflab.study/1", Name: fmt.Sprintf("study-%d", n), Title: fmt.Sprintf("Optimizing Qwen3-8B, part %d", n),
		Started: Began.Add(time.Duration(n) * time.Hour), Ended: Began.Add(time.Duration(n)*time.Hour + 30*time.Minute),
		Objective: outcome.Objective{Metric: "output_throughput", Better: "higher", Goal: "Highest output throughput"},
		Model:     "Qwen/Qwen3-8B", Hardware: "2 x NVIDIA H100 SXM on one node", Engines: []outcome.Software{{Name: "vllm", Version: "0.11.0"}},
		Workloads: []outcome.Load{{Name: "chat", Primary: true, Text: "Random dataset, 10 requests"}}, Confirmed: true,
		Recommended: &outcome.Pick{Trial: 2, Label: "TP2", Command: "vllm serve Qwen/Qwen3-8B -tp 2", Gain: &gain,
			Interval: &tune.Span{Value: gain, Low: gain - 0.01, High: gain + 0.01}, Summary: &r},
		Stages: []outcome.Stage{}, Trials: []outcome.Trial{},
	}
}

// Many makes a root of so many runs and studies, the latter with two trials each, in folders of a
// thousand.
func Many(t testing.TB, root string, runs, studies int) {
	t.Helper()
	for i := range runs {
		r := Run{N: i, Model: []string{"Qwen/Qwen3-8B", "meta-llama/Llama-3-70B", "openai/gpt-oss-120b"}[i%3], Simulated: i%10 == 0}
		r.Command = fmt.Sprintf("%s %s --tp %d", []string{"vllm serve", "python3 -m sglang.launch_server --model-path"}[i%2], r.Model, 1+i%8)
		if i%20 == 0 {
			r.Status = result.Voided
		}
		r.Write(t, root, fmt.Sprintf("runs-%d/run-%05d", i/1000, i))
	}
	for i := range studies {
		Study(t, root, fmt.Sprintf("studies/study-%04d", i), i, 2)
	}
}

// Mkdir makes a directory with its parents.
func Mkdir(t testing.TB, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
}

// WriteJSON makes a file of a value, unsynced.
func WriteJSON(t testing.TB, path string, v any) {
	t.Helper()
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	WriteFile(t, path, b)
}

// WriteFile makes a file, unsynced.
func WriteFile(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}
