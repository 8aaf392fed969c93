package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"perflab/internal/tune/journal"
)

// A study of seven trials that takes about a second, so that a kill lands
// anywhere in it: in a run, between trials, in the report.
const resumeStudy = `name: resume
model: Qwen/Qwen3-8B
hardware: {gpu: h100-sxm, gpus: 2}
objective: {metric: total_token_throughput}
workloads:
  - {name: chat, dataset_name: random, num_prompts: 500, random_input_len: 300, random_output_len: 100}
  - {name: long, dataset_name: random, num_prompts: 40, random_input_len: 4000, random_output_len: 20}
baseline: {label: vLLM, engine: vllm}
strategy: staged
stages:
  - name: engine
    try:
      - {label: SGLang, engine: sglang}
      - {label: TensorRT-LLM, engine: trtllm}
  - name: checkpoint
    try: [{label: FP8, model: Qwen/Qwen3-8B-FP8}]
  - name: layout
    try:
      - {label: TP2, set: {tp: 2}}
      - {label: TP3, set: {tp: 3}}
runtime: {kind: predicted}
`

// kills is how many processes are killed.
const kills = 10

// TestKillAndResume kills a study ten times at random points, as kill -9 does,
// and resumes it: the end is that of a study that was never killed, no trial
// was lost or repeated, and the journal is whole.
func TestKillAndResume(t *testing.T) {
	dir := t.TempDir()
	study := filepath.Join(dir, "study.yaml")
	if err := os.WriteFile(study, []byte(resumeStudy), 0o644); err != nil {
		t.Fatal(err)
	}
	whole := filepath.Join(dir, "whole")
	begun := time.Now()
	perflab(t, 0, study, "--out", whole)
	took := time.Since(begun)

	random := rand.New(rand.NewPCG(1, 2))
	studies := 0
	for killed := 0; killed < kills; studies++ {
		out := filepath.Join(dir, fmt.Sprintf("killed-%d", studies))
		for ; killed < kills; killed++ {
			// Short lives, so that one study takes many of them.
			after := time.Duration(random.Float64() * float64(took) / 4)
			if !perflab(t, after, study, "--out", out, "--resume") {
				break
			}
			checkJournal(t, out)
		}
		perflab(t, 0, study, "--out", out, "--resume")
		same(t, whole, out)
	}
	t.Logf("%d kills over %d studies of %v", kills, studies, took.Round(time.Millisecond))
}

// same holds a resumed study against one that was never interrupted.
func same(t *testing.T, whole, out string) {
	t.Helper()
	for _, name := range []string{"study.json", "report.md", "report.html"} {
		if !bytes.Equal(undated(read(t, whole, name)), undated(read(t, out, name))) {
			t.Errorf("%s differs from that of a study that was never killed", name)
		}
	}
	if a, b := trialEnds(t, whole), trialEnds(t, out); a != b {
		t.Errorf("the journals end their trials differently:\n%s\n%s", a, b)
	}
}

// undated leaves out when things ran.
func undated(b []byte) []byte {
	return stamp.ReplaceAll(date.ReplaceAll(b, nil), nil)
}

// stamp is a time in JSON.
var stamp = regexp.MustCompile(`"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"`)

// perflab tunes, killed after a while (0: never), and reports whether the kill
// came before its end. The first one of a directory has nothing to resume.
func perflab(t *testing.T, kill time.Duration, args ...string) (killed bool) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if out := args[2]; args[len(args)-1] == "--resume" {
		if _, err := os.Stat(filepath.Join(out, "journal.jsonl")); errors.Is(err, fs.ErrNotExist) {
			args = args[:len(args)-1]
		}
	}
	cmd := exec.Command(self, append([]string{"tune"}, args...)...)
	cmd.Env = append(os.Environ(), "PERFLAB_TEST_MAIN=1")
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if kill > 0 {
		timer := time.AfterFunc(kill, func() { cmd.Process.Kill() })
		defer timer.Stop()
	}
	err = cmd.Wait()
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		if s, ok := e.Sys().(syscall.WaitStatus); ok && s.Signaled() {
			return true
		}
	}
	if err != nil {
		t.Fatalf("tune %s: %v\n%s", strings.Join(args, " "), err, output.String())
	}
	return false
}

// checkJournal reads the journal as a resume does: whatever the kill cut is at
// most its last line.
func checkJournal(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "journal.jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		return // killed before it was begun
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := journal.Replay(f); err != nil {
		t.Fatalf("after a kill: %v", err)
	}
}

// trialEnds lists each trial with its end, in the journal's order. Seconds are
// left out: they are those of this run of the program.
func trialEnds(t *testing.T, dir string) string {
	t.Helper()
	log, err := journal.Replay(bytes.NewReader(read(t, dir, "journal.jsonl")))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, l := range log.Trials {
		fmt.Fprintf(&b, "%d %s %s %v\n", l.Proposal.Trial, l.Proposal.Label, l.Observation.Status, l.Observation.Figures["chat"])
	}
	return b.String()
}

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
