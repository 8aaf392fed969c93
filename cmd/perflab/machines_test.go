package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"perflab/internal/outcome"
	"perflab/internal/tune/journal"
)

// machinesStudy is a race over three simulated machines that differ, under loads that a busy machine can make three of at once.
const machinesStudy = `name: machines
model: Qwen/Qwen3-14B
hardware: {gpu: h100-sxm, gpus: 2}
objective: {metric: total_token_throughput}
workloads:
  - {name: chat, dataset_name: random, num_prompts: 40, random_input_len: 64, random_output_len: 16, max_concurrency: 4}
baseline: {label: vLLM, engine: vllm}
space: {engine: [vllm, sglang]}
budget: {trials: 12}
runtime: {kind: simulated, startup_s: 0.1, machines: [{name: a}, {name: b, speed: 0.8}, {name: c, speed: 1.1}]}
bench: {num_warmups: 2, telemetry_interval_s: 0}
`

// TestMachines races over three machines at once: each has trials, several are under way at
// the same time, the facts say how the machines differ, and a study that was killed goes on.
func TestMachines(t *testing.T) {
	dir := t.TempDir()
	study := filepath.Join(dir, "study.yaml")
	if err := os.WriteFile(study, []byte(machinesStudy), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out")
	random := rand.New(rand.NewPCG(3, 4))
	for range 3 {
		if !perflab(t, 2*time.Second+time.Duration(random.Float64()*float64(4*time.Second)), study, "--out", out, "--resume") {
			break
		}
		checkJournal(t, out)
	}
	perflab(t, 0, study, "--out", out, "--resume")

	var f outcome.Study
	if err := json.Unmarshal(read(t, out, "study.json"), &f); err != nil {
		t.Fatal(err)
	}
	on := map[string]int{}
	for _, k := range f.Trials {
		on[k.Machine]++
	}
	if len(f.Trials) != 12 || len(on) != 3 || on["a"] < 2 || on["b"] < 2 || on["c"] < 2 {
		t.Errorf("%d trials, on the machines %v", len(f.Trials), on)
	}
	if len(f.Machines) != 3 || f.Machines[1].Effect == nil || f.Machines[1].Effect.Value >= 0 {
		t.Errorf("the machines are said to be %+v", f.Machines)
	}
	if most := mostOpen(t, read(t, out, "journal.jsonl")); most != 3 {
		t.Errorf("%d trials at most are under way at the same time", most)
	}
	if text := string(read(t, out, "report.md")); !strings.Contains(text, "behind a") {
		t.Errorf("the report does not say how the machines differ:\n%s", text)
	}
}

// mostOpen is how many trials a journal has open at most.
func mostOpen(t *testing.T, data []byte) int {
	t.Helper()
	most, open := 0, map[int]bool{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var r journal.Record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		switch {
		case r.Proposal != nil:
			open[r.Proposal.Trial] = true
		case r.Observation != nil:
			delete(open, r.Observation.Trial)
		}
		most = max(most, len(open))
	}
	return most
}
