package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"perflab/internal/cli"
	"perflab/internal/cli/console"
	"perflab/internal/outcome"
	"perflab/internal/source"
	"perflab/internal/web/allow"
	"perflab/internal/web/launch"
)

// A study of four starts, and some that confirm, each of which takes long enough to be stopped in.
const launchStudy = `name: launched
model: Qwen/Qwen3-8B
hardware: {gpu: h100-sxm, gpus: 2}
objective: {metric: total_token_throughput}
workloads:
  - {name: chat, dataset_name: random, num_prompts: 20, random_input_len: 64, random_output_len: 8, max_concurrency: 8}
baseline: {label: vLLM, engine: vllm}
strategy: staged
stages:
  - name: layout
    try:
      - {label: TP2, set: {tp: 2}}
      - {label: small steps, set: {max_num_batched_tokens: 512}}
      - {label: few, set: {max_num_seqs: 4}}
bench: {num_warmups: 0, telemetry_interval_s: 0}
runtime: {kind: simulated, startup_s: 1.5}
`

// queueOf opens a queue whose launches are this test binary as a perflab.
func queueOf(dir string) (*launch.Queue, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return launch.Open(dir, launch.Options{Program: self, Env: append(os.Environ(), "PERFLAB_TEST_MAIN=1", "PERFLAB_TEST_QUEUE=")})
}

// queueMain is a server that launches a study and does nothing more, until it is killed.
func queueMain(dir string) int {
	q, err := queueOf(dir)
	if err == nil {
		var l launch.Launch
		if l, err = q.Submit(launch.Request{Who: "ada", Study: &launch.StudyRequest{Text: launchStudy}}); err == nil {
			fmt.Println(l.ID)
			select {}
		}
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// TestLaunchOutlivesServer: a server is killed, as kill -9 does, while a study runs. The next one
// finds it, stops it, and lets it go on, and the study comes to its end with no trial made twice.
func TestLaunchOutlivesServer(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("nothing can be launched on Windows")
	}
	dir := t.TempDir()
	server := perflabCommand(t)
	server.Env = append(server.Env, "PERFLAB_TEST_QUEUE="+dir)
	server.Stderr = os.Stderr
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	id, err := bufio.NewReader(out).ReadString('\n')
	id = strings.TrimSpace(id)
	result := filepath.Join(dir, id, "result")
	until(t, "the first trial to end", func() bool { return trialsOf(result) > 0 || err != nil })
	_ = server.Process.Kill()
	_ = server.Wait() // killed
	if err != nil {
		t.Fatal(err)
	}

	q, err := queueOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	l, err := q.Get(id)
	if err != nil || l.State != launch.Running || !l.Simulated || l.Who != "ada" {
		t.Fatalf("the new server has %+v, %v", l, err)
	}
	if _, err := q.Stop(id, "bob"); err != nil {
		t.Fatal(err)
	}
	l = endOf(t, q, id)
	kept := trialsOf(result)
	if code := l.Last().Exit.Code; code == nil || *code != 130 || kept == 0 || kept >= 4 {
		t.Fatalf("stopped with %+v after %d trials\n%s", l.Last().Exit, kept, logOf(q, id))
	}

	if l, err = q.Resume(id, "bob"); err != nil || !strings.HasSuffix(l.Command(), " --resume") {
		t.Fatalf("%s, %v", l.Command(), err)
	}
	l = endOf(t, q, id)
	s, err := source.Standing(result)
	if code := l.Last().Exit.Code; code == nil || *code != 0 || len(l.Attempts) != 2 || !l.Last().Resume || err != nil || s.State != outcome.Finished || s.Ended < 5 {
		t.Fatalf("resumed with %+v to %+v, %v\n%s", l.Last().Exit, s, err, logOf(q, id))
	}
	for trial := range s.Ended {
		if log := logOf(q, id); strings.Count(log, fmt.Sprintf("\ntrial %d  ", trial+1)) != 1 {
			t.Errorf("trial %d was made twice, or not at all:\n%s", trial+1, log)
		}
	}
	if c, err := q.Tail(id, launch.Stdout, 0); err != nil || !strings.Contains(c.Text, "SIMULATED") || !strings.Contains(c.Text, "Report: "+result) {
		t.Errorf("it printed %q, %v", c.Text, err)
	}
	if _, err := q.Resume(id, "bob"); err == nil || !strings.Contains(err.Error(), "has come to its end") {
		t.Errorf("resumed once more: %v", err)
	}
}

// trialsOf is how many trials of a study have ended.
func trialsOf(dir string) int {
	s, err := source.Standing(dir)
	if err != nil { // it has not begun
		return 0
	}
	return s.Ended
}

// endOf waits for the end of a launch.
func endOf(t *testing.T, q *launch.Queue, id string) launch.Launch {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for version := uint64(0); ; {
		var err error
		version, err = q.Wait(ctx, version)
		l, gerr := q.Get(id)
		if gerr == nil && l.State == launch.Ended {
			return l
		}
		if err = cmp.Or(err, gerr); err != nil {
			t.Fatalf("wait for the end of %s: %v\n%s", id, err, logOf(q, id))
		}
	}
}

func logOf(q *launch.Queue, id string) string {
	c, err := q.Tail(id, launch.Stderr, 0)
	if err != nil {
		return err.Error()
	}
	return "\n" + c.Text
}

// TestLaunchBench: flags of a form make a run.
func TestLaunchBench(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("nothing can be launched on Windows")
	}
	server := newHangingServer(t, 1000, true)
	q, err := queueOf(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	l, err := q.Submit(launch.Request{Bench: &launch.BenchRequest{Flags: map[string][]string{
		"base-url": {server.URL}, "model": {"m"}, "num-prompts": {"5"}, "num-warmups": {"0"}, "random-input-len": {"8"}, "random-output-len": {"2"}, "telemetry": {"off"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if l.Place.Text() != strings.TrimPrefix(server.URL, "http://") {
		t.Errorf("it is at %s", l.Place.Text())
	}
	id := l.ID
	// On a busy machine the measurement may be void: it is the run that counts here.
	if l = endOf(t, q, id); l.Last().Exit.Code == nil || *l.Last().Exit.Code != 0 && *l.Last().Exit.Code != console.ExitVoid {
		t.Fatalf("ended with %+v\n%s", l.Last().Exit, logOf(q, id))
	}
	if s, err := source.Standing(l.Dir); err != nil || s.State != outcome.Finished || s.Run == nil || s.Run.Load.Done != 5 {
		t.Errorf("made %+v, %v", s, err)
	}
	if _, err := q.Resume(id, "ada"); err == nil || !strings.Contains(err.Error(), "is a bench, which cannot go on: retry it") {
		t.Errorf("resumed: %v", err)
	}
}

// TestLaunchFlags: somebody has decided about each flag of perflab bench.
func TestLaunchFlags(t *testing.T) {
	bench, _, err := cli.Command().Find([]string{"bench"})
	if err != nil {
		t.Fatal(err)
	}
	decided, n := allow.BenchFlags(), 0
	bench.Flags().VisitAll(func(f *pflag.Flag) {
		n++
		if _, ok := decided[f.Name]; !ok {
			t.Errorf("nobody has decided what --%s may lead to: give it a row in allow.benchRules", f.Name)
		}
		delete(decided, f.Name)
	})
	for name := range decided {
		t.Errorf("perflab bench has no --%s: remove its row in allow.benchRules", name)
	}
	if n < 100 {
		t.Errorf("only %d flags were seen", n)
	}
}
