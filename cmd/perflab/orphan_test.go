package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"perflab/internal/test/deploytest"
)

// The engine has a process that ignores SIGTERM, in a session of its own, whose parent has
// ended and whose environment is empty.
const (
	orphanStudy = `name: orphan
model: Qwen/Qwen3-8B
hardware: {gpu: h100-sxm, gpus: 1, check: off}
objective: {metric: output_throughput}
workloads:
  - {name: chat, dataset_name: random, num_prompts: 2, random_input_len: 16, random_output_len: 4}
baseline: {label: vLLM, engine: vllm}
strategy: staged
runtime: {kind: process}
`
	orphanEngine = `#!/bin/sh
case $* in
*--version* | *--help*) exit 1 ;;
esac
(env -i /usr/bin/setsid /bin/sh -c 'trap "" TERM; echo $$ > "$0.new"; mv "$0.new" "$0"; for i in 1 2 3 4 5 6; do sleep 10; done' "$PERFLAB_TEST_PID" &)
exec sleep 60
`
)

// TestKilledTuneLeavesNothing kills a study whose engine is being started, as kill -9 does.
// Nothing of the engine runs a moment later, without another start of perflab.
func TestKilledTuneLeavesNothing(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/usr/bin/setsid"); runtime.GOOS != "linux" || err != nil {
		t.Skip("only Linux ends all that an engine started, and there is no setsid: ", err)
	}
	dir := t.TempDir()
	study, said := filepath.Join(dir, "study.yaml"), filepath.Join(dir, "pid")
	for path, text := range map[string]string{study: orphanStudy, filepath.Join(dir, "vllm"): orphanEngine} {
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "tune", study, "--out", filepath.Join(dir, "out"))
	cmd.Env = append(os.Environ(), "PERFLAB_TEST_MAIN=1", "PATH="+dir+":"+os.Getenv("PATH"), "PERFLAB_TEST_PID="+said)
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	pid := 0
	until(t, "the engine to start", func() bool {
		b, err := os.ReadFile(said)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(b)))
		return err == nil
	})
	if !deploytest.Alive(pid) {
		t.Errorf("process %d of the engine has ended before perflab", pid)
	}
	cmd.Process.Kill()
	_ = cmd.Wait() // killed
	until(t, "the engine to end", func() bool { return !deploytest.Alive(pid) })
	if t.Failed() {
		t.Log(output.String())
	}
}

// until waits for what takes a moment.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
