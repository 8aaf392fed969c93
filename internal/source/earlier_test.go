package source

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"perflab/internal/outcome"
	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/study"
)

// learner is a study that names earlier ones, by paths from a directory in which perflab runs.
func learner(t *testing.T, dir, runtime string, paths ...string) *study.Study {
	t.Helper()
	t.Chdir(dir)
	text := `name: t
model: Qwen/Qwen3-8B
hardware: {gpu: h100-sxm, gpus: 2}
objective: {metric: total_token_throughput}
workloads:
  - {name: a, dataset_name: random, num_prompts: 10, random_input_len: 100, random_output_len: 20}
baseline: {label: base, engine: vllm}
runtime: {kind: ` + runtime + `}
earlier: [` + strings.Join(paths, ", ") + `]
`
	s, err := study.Parse(filepath.Join("studies", "t.yaml"), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// before writes the directory of a study of some configurations, as perflab tune leaves it.
func before(t *testing.T, dir string, simulated bool) {
	t.Helper()
	file := `name: before
model: Qwen/Qwen3-8B
hardware: {gpu: h100-sxm, gpus: 1}
objective: {metric: output_throughput}
workloads:
  - {name: short, dataset_name: random, num_prompts: 10, random_input_len: 100, random_output_len: 20}
  - {name: long, dataset_name: random, num_prompts: 10, random_input_len: 4000, random_output_len: 20}
baseline: {label: base, engine: vllm}
runtime: {kind: process}
a_key_of_a_later_version: 1
`
	run := func(workload string, figure, input float64) outcome.Run {
		s := result.Summary{Figures: map[string]float64{"total_token_throughput": figure, "completed": 10, "total_input_tokens": 10 * input, "total_output_tokens": 200}}
		return outcome.Run{Workload: workload, Summary: s}
	}
	o := outcome.Study{Schema: "perflab.study/1", Name: "before", Simulated: simulated, Baseline: &outcome.Pick{Trial: 1}}
	for i, set := range []map[string]string{{}, {"max_num_seqs": "512"}, {"tp": "2"}} {
		c := map[string]string{"engine": "vllm", "model": "Qwen/Qwen3-8B"}
		maps.Copy(c, set)
		tr := outcome.Trial{ID: i + 1, Engine: "vllm", Config: c, Status: "ok", Runs: []outcome.Run{run("long", float64(500-i), 4000), run("short", float64(100*(i+1)), 100), run("other", 1, 1)}}
		if i == 2 { // it broke
			tr.Status, tr.Runs = "refused", nil
		}
		o.Trials = append(o.Trials, tr)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := rundir.WriteJSON(filepath.Join(dir, rundir.StudyFile), o); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "study.yaml"), []byte(file), 0o644); err != nil {
		t.Fatal(err)
	}
}

// published is a document with two configurations, one of which has a command.
const published = `# Qwen3-8B

## Hardware

NVIDIA H100 SXM

## Baseline

` + "```bash\nvllm serve Qwen/Qwen3-8B --max-num-seqs 128\n```" + `

` + block + `

## More sequences

` + "```bash\nvllm serve Qwen/Qwen3-8B --max-num-seqs 512\n```" + `

` + block2 + `
`

const (
	block  = "```\n============ Serving Benchmark Result ============\nSuccessful requests:                     1000\nBenchmark duration (s):                  100.00\nTotal input tokens:                      100000\nTotal generated tokens:                  20000\nRequest throughput (req/s):              10.00\nOutput token throughput (tok/s):         200.00\nPeak concurrent requests:                1000.00\nTotal Token throughput (tok/s):          1200.00\n==================================================\n```"
	block2 = "```\n============ Serving Benchmark Result ============\nSuccessful requests:                     1000\nBenchmark duration (s):                  50.00\nTotal input tokens:                      100000\nTotal generated tokens:                  20000\nRequest throughput (req/s):              20.00\nOutput token throughput (tok/s):         400.00\nPeak concurrent requests:                1000.00\nTotal Token throughput (tok/s):          2400.00\n==================================================\n```"
)

// TestEarlier: a study's directory and another client's document are read, each with what is
// like this study, by paths as seen from the study file.
func TestEarlier(t *testing.T) {
	dir := t.TempDir()
	before(t, filepath.Join(dir, "out"), false)
	if err := os.WriteFile(filepath.Join(dir, "results.md"), []byte(published), 0o644); err != nil {
		t.Fatal(err)
	}
	s := learner(t, dir, "process", "out", "results.md")
	facts, err := Learn(s)
	if err != nil {
		t.Fatal(err)
	}
	a, b := facts[0], facts[1]
	if a.Name != "before" || a.Path != "out" || a.Configurations != 2 || a.Likeness != 0.8 || len(a.Differences) != 1 || a.Differences[0] != "1 device against 2" {
		t.Errorf("of the study: %+v", a)
	}
	if len(a.Unused) != 2 || a.Unused[0] != "Results not used, as the copy of its file does not have their workload: 2" {
		t.Errorf("said of the rest: %q", a.Unused)
	}
	if len(a.Measured) != 2 || a.Measured[1].Config["max_num_seqs"] != "512" || a.Measured[1].Figures["total_token_throughput"] < 1.99 {
		t.Errorf("its ratios are %v", a.Measured)
	}
	if b.Name != "results.md" || b.Configurations != 2 || b.Likeness != 0.8 || b.Measured[0].Config["max_num_seqs"] != "128" {
		t.Errorf("of the document: %+v", b)
	}
	if len(s.Known) != 2 || s.Known[0].Likeness != a.Likeness {
		t.Errorf("the search is given %+v", s.Known)
	}
}

// TestEarlierRefused: what is SIMULATED directs no real study, a prediction none, and what is
// not there is said with its place in the file.
func TestEarlierRefused(t *testing.T) {
	dir := t.TempDir()
	before(t, filepath.Join(dir, "sim"), true)
	before(t, filepath.Join(dir, "bare"), false)
	if err := os.Remove(filepath.Join(dir, "bare", "study.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "nothing.md"), []byte("no result"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := Earlier(learner(t, dir, "process", "sim", "gone", "bare", "nothing.md"))
	if err == nil {
		t.Fatal("it learns from a simulation")
	}
	if _, ok := errors.AsType[*ArgumentError](err); !ok {
		t.Errorf("%T is no error of what was named", err)
	}
	for _, want := range []string{
		"t.yaml:9:11: earlier study sim: it is SIMULATED and this study starts real engines",
		"t.yaml:9:16: earlier study gone: there is no gone (looked for at " + filepath.Join(dir, "gone") + ": paths in a study file are from the working directory)",
		"earlier study bare: read the copy of its file",
		"earlier study nothing.md: no configuration with its figures was found",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("nobody says %q:\n%v", want, err)
		}
	}
	facts, err := Earlier(learner(t, dir, "simulated", "sim"))
	if err != nil || len(facts) != 1 || !facts[0].Simulated || facts[0].Configurations != 2 {
		t.Errorf("a simulated study learns %+v: %v", facts, err)
	}
	if facts, err := Earlier(learner(t, dir, "process")); facts != nil || err != nil {
		t.Errorf("without earlier studies: %v, %v", facts, err)
	}
}
