package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestKillKeepsFinishedCalls: 99 of 100 calls end at once and one never does. What
// ended is on disk soon after, without another call that would carry it there, so
// that a kill -9 takes none of it, nor of the telemetry; also where tokens are to be counted after the load.
func TestKillKeepsFinishedCalls(t *testing.T) {
	t.Parallel()
	const calls = 100
	rows := filepath.Join(t.TempDir(), "rows.jsonl")
	if err := os.WriteFile(rows, bytes.Repeat([]byte(`{"prompt":"how are you?","output_tokens":2}`+"\n"), calls), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Run("counted by the server", func(t *testing.T) {
		killBench(t, calls, "calls.jsonl", newHangingServer(t, calls, true), "--random-input-len", "8", "--random-output-len", "2")
	})
	t.Run("counted at the end", func(t *testing.T) {
		killBench(t, calls, "uncounted.jsonl", newHangingServer(t, calls, false), "--dataset-name", "jsonl", "--dataset-path", rows, "--tokenizer", "server")
	})
}

// killBench kills a run of so many calls when all but one of them are in a file of its
// directory, and looks that the report has them.
func killBench(t *testing.T, calls int, file string, server *httptest.Server, args ...string) {
	dir := filepath.Join(t.TempDir(), "run")
	cmd := perflabCommand(t, append([]string{"bench", "--base-url", server.URL, "--model", "m", "--out", dir, "--num-warmups", "0", "--num-prompts", fmt.Sprint(calls)}, args...)...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended, readings := 0, 0
	for wait := time.Now(); (ended < calls-1 || readings < 2) && time.Since(wait) < 20*time.Second; time.Sleep(20 * time.Millisecond) {
		b, _ := os.ReadFile(filepath.Join(dir+".tmp", file)) // not there yet
		ended = bytes.Count(b, []byte("\n"))
		b, _ = os.ReadFile(filepath.Join(dir+".tmp", "telemetry.jsonl")) // likewise
		readings = bytes.Count(b, []byte("\n"))
	}
	_ = cmd.Process.Kill() // fails only where it ended, which the next line says
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
		t.Fatalf("bench was not killed: %v\n%s", err, output.String())
	}
	if ended != calls-1 {
		t.Errorf("%d calls were on disk at the kill, want %d", ended, calls-1)
	}
	if readings < 2 {
		t.Errorf("%d readings of the telemetry were on disk at the kill", readings)
	}
	report, err := perflabCommand(t, "report", dir).CombinedOutput()
	if err != nil || !regexp.MustCompile(fmt.Sprintf(`Successful requests: +%d\b`, calls-1)).Match(report) || bytes.Contains(report, []byte("telemetry.jsonl")) {
		t.Errorf("report of the killed run: %v, want %d successful requests in\n%s", err, calls-1, report)
	}
}

// newHangingServer streams two tokens to every request but the last of n, which
// never gets an answer. It has /tokenize, and counts tokens itself where it is to.
func newHangingServer(t *testing.T, n int64, counts bool) *httptest.Server {
	var asked atomic.Int64
	released := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/tokenize":
			fmt.Fprint(w, `{"tokens":[1,2,3]}`)
			return
		case r.Method != http.MethodPost:
			http.NotFound(w, r)
			return
		case asked.Add(1) == n:
			select {
			case <-released:
			case <-r.Context().Done():
			}
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for range 2 {
			fmt.Fprint(w, `data: {"choices":[{"text":"a"}]}`+"\n\n")
		}
		if counts {
			fmt.Fprint(w, `data: {"choices":[],"usage":{"prompt_tokens":8,"completion_tokens":2}}`+"\n\n")
		}
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	t.Cleanup(func() { close(released); s.Close() })
	return s
}

// perflabCommand is this test binary as a perflab.
func perflabCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), "PERFLAB_TEST_MAIN=1")
	return cmd
}

// TestKillImport: an import that was killed half-way has no directory of its name, and can
// be made again.
func TestKillImport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const runs = 3000 // take a second or so
	var text strings.Builder
	for i := range runs {
		fmt.Fprintf(&text, "## Case %d\n\n```\n============ Serving Benchmark Result ============\nSuccessful requests:                     10\n"+
			"Benchmark duration (s):                  %d.00\nMean TTFT (ms):                          24.78\n==================================================\n```\n\n", i, i+1)
	}
	file, out := filepath.Join(dir, "doc.md"), filepath.Join(dir, "out")
	if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := perflabCommand(t, "import", file, "--out", out)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	written := func() int {
		entries, _ := os.ReadDir(out + ".importing") // not there yet
		return len(entries)
	}
	for wait := time.Now(); written() < 50 && time.Since(wait) < 60*time.Second; time.Sleep(time.Millisecond) {
	}
	_ = cmd.Process.Kill() // fails only where it ended, which the next line says
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
		t.Fatalf("import was not killed: %v", err)
	}
	if _, err := os.Stat(out); err == nil || written() == 0 {
		t.Errorf("after the kill: %v for the directory itself, %d runs beside it", err, written())
	}
	if output, err := perflabCommand(t, "import", file, "--out", out).CombinedOutput(); err != nil {
		t.Fatalf("import again: %v\n%s", err, output)
	}
	dirs, err := os.ReadDir(out)
	if err != nil || len(dirs) != runs+1 || written() > 0 {
		t.Errorf("%d entries, want %d runs and import.json; %d are left beside them (%v)", len(dirs), runs, written(), err)
	}
}
