package measure_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"perflab/internal/cli"
	"perflab/internal/cli/console"
)

// runBench runs the command and returns its exit code and what it printed.
func benchExit(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = cli.Main(console.Env{
		Args: append([]string{"bench"}, args...), Stdout: &out, Stderr: &errs, Version: "test",
		Getenv: func(string) string { return "" },
	})
	return code, out.String(), errs.String()
}

// endpoint is a server whose completions answer with what h writes.
func endpoint(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		h(w, r)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

// words streams as many tokens as it says in usage.
func words(n int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for range n {
			time.Sleep(20 * time.Millisecond) // else the run is all the client's work
			fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n")
			w.(http.Flusher).Flush()
		}
		fmt.Fprintf(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":%d}}\n\ndata: [DONE]\n\n", n)
	}
}

// everySecond answers every second call with h, and fails the others.
func everySecond(h http.HandlerFunc) http.HandlerFunc {
	var calls atomic.Int32
	return func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1)%2 == 0 {
			http.Error(w, "overloaded", http.StatusServiceUnavailable)
			return
		}
		h(w, r)
	}
}

// TestBenchRefuses: bad input is told before any work, with exit status 2.
func TestBenchRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"a word":                {[]string{"--max-concurrency", "2", "tpot:5"}, `"tpot:5" is no flag`},
		"a flag of nobody":      {[]string{"--nonsense"}, "unknown flag: --nonsense (see perflab bench --help)"},
		"no prompts":            {[]string{"--num-prompts", "0"}, "--num-prompts is 0: it must be above 0"},
		"no output":             {[]string{"--random-output-len", "0"}, "--random-output-len is 0"},
		"no rate":               {[]string{"--request-rate", "0"}, "must be a number above 0 or inf"},
		"backend":               {[]string{"--backend", "foo"}, `backend "foo" is not known`},
		"backend and endpoint":  {[]string{"--backend", "openai-chat", "--endpoint", "/v1/completions"}, "needs an endpoint that ends in /chat/completions"},
		"negative timeout":      {[]string{"--timeout-idle", "-1s"}, "--timeout-idle is -1s"},
		"negative wait":         {[]string{"--ready-check-timeout-sec", "-1"}, "it cannot be negative"},
		"metadata over figures": {[]string{"--append-result", "--metadata", "duration=3"}, `"duration" is a key of the result`},
		"details of nothing":    {[]string{"--save-detailed"}, "--save-detailed needs --save-result"},
		"unknown SLO":           {[]string{"--slo", "p99_tft <= 5"}, `unknown metric "p99_tft": did you mean p99_ttft_ms?`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			code, _, stderr := benchExit(t, append([]string{"--base-url", "http://127.0.0.1:1", "--model", "m", "--out", dir}, tt.args...)...)
			if code != console.ExitUsage || !strings.Contains(stderr, tt.want) {
				t.Errorf("exit %d, %q, want %q", code, stderr, tt.want)
			}
			if strings.Count(stderr, "\n") != 1 {
				t.Errorf("more than the one fault: %q", stderr)
			}
		})
	}
}

// TestBenchJudges: the exit status and the sentence say what went wrong.
func TestBenchJudges(t *testing.T) {
	for name, tt := range map[string]struct {
		h    http.HandlerFunc
		args []string
		code int
		want string
		not  string
	}{
		"all fail": {func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "out of quota", http.StatusTooManyRequests)
		}, nil,
			console.ExitFailed, "too many calls failed (100 %, --max-error-rate allows 1 %): 3 of 3 calls failed (http 3) and are in no latency or throughput figure; call 0: 429 Too Many Requests: out of quota", "hint"},
		"all fail, as allowed": {func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", http.StatusInternalServerError) }, []string{"--max-error-rate", "1"},
			console.ExitFailed, "call 0: 500", "hint"},
		"broken server": {func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(50 * time.Millisecond)
			for range 9 {
				fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n")
			}
			fmt.Fprint(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n")
		}, nil, console.ExitVoid, "more tokens streamed", "more CPU"},
		"half fail": {everySecond(words(3)), []string{"--slo", "mean_ttft_ms <= 5000"}, console.ExitFailed,
			"SLO: mean_ttft_ms <= 5000: not judged, too many calls failed\nperflab: too many calls failed (33.3 %, --max-error-rate allows 1 %): the calls that succeeded do not stand for all, percentiles above P66.66 have no bound", "hint"},
		"half fail, as allowed": {everySecond(words(3)), []string{"--max-error-rate", "0.9", "--slo", "mean_ttft_ms <= 5000"}, console.ExitVoid,
			"SLO: mean_ttft_ms <= 5000: not judged, the measurement is void\nperflab: the measurement is void: the calls that succeeded do not stand for all, percentiles above P66.66", "hint"},
		"a third of each answer": {words(1), []string{"--slo", "mean_ttft_ms <= 5000"}, console.ExitVoid, "66.7 % of all are missing", "hint"},
		"missed":                 {words(3), []string{"--slo", "mean_ttft_ms <= 0.0001"}, console.ExitMissed, "SLO missed: 1 of 1 bounds", "void"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := 0, "", ""
			for range 5 { // a busy machine can make a run void, which says so
				args := []string{"--base-url", endpoint(t, tt.h), "--model", "m", "--num-prompts", "3", "--num-warmups", "0",
					"--random-input-len", "5", "--random-output-len", "3", "--out", filepath.Join(t.TempDir(), "run")}
				code, stdout, stderr = benchExit(t, append(args, tt.args...)...)
				if code == tt.code || !strings.Contains(stderr, "client-bound") {
					break
				}
			}
			if i := strings.Index(stdout, "SLO:"); i >= 0 {
				stderr = stdout[i:] + stderr[strings.LastIndex(stderr, "perflab: "):]
			}
			if code != tt.code || !strings.Contains(stderr, tt.want) || strings.Contains(stderr, tt.not) {
				t.Errorf("exit %d, %q, want %d and %q", code, stderr, tt.code, tt.want)
			}
		})
	}
}

// TestBenchResultFile: --append-result alone writes the file of vllm bench
// serve, one line a run, with the arrivals as they were.
func TestBenchResultFile(t *testing.T) {
	dir, url := t.TempDir(), endpoint(t, words(3))
	file := filepath.Join(dir, "new", "r.json")
	run := func(name string, more ...string) {
		args := []string{"--base-url", url, "--model", "m", "--num-prompts", "3", "--num-warmups", "0",
			"--random-input-len", "5", "--random-output-len", "3", "--out", filepath.Join(dir, name),
			"--append-result", "--result-dir", filepath.Dir(file), "--result-filename", "r.json"}
		if code, _, stderr := benchExit(t, append(args, more...)...); code != console.ExitDone && code != console.ExitVoid {
			t.Fatalf("exit %d, %s", code, stderr)
		}
	}
	run("a", "--backend", "vllm", "--label", "night", "--request-rate", "500", "--burstiness", "0.5")
	run("b", "--endpoint", "/v1/completions", "--ramp-up-strategy", "linear", "--ramp-up-start-rps", "100", "--ramp-up-end-rps", "200")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines in %s", len(lines), b)
	}
	for i, want := range []map[string]any{
		{"backend": "vllm", "label": "night", "request_rate": 500.0, "burstiness": 0.5, "completed": 3.0},
		{"backend": "openai", "label": nil, "ramp_up_strategy": "linear", "ramp_up_start_rps": 100.0, "ramp_up_end_rps": 200.0, "completed": 3.0},
	} {
		var got map[string]any
		if err := json.Unmarshal([]byte(lines[i]), &got); err != nil {
			t.Fatal(err)
		}
		for k, v := range want {
			if got[k] != v {
				t.Errorf("run %d: %s is %v, want %v", i, k, got[k], v)
			}
		}
	}
}

// TestSeriesOfVoidRuns: what a single run ends with, a series of such runs ends with too,
// and no SLO is passed over in silence.
func TestSeriesOfVoidRuns(t *testing.T) {
	for name, args := range map[string][]string{"one run": nil, "repeat": {"--repeat", "2"}, "sweep": {"--sweep", "concurrency=1,2"}} {
		t.Run(name, func(t *testing.T) {
			args = append(args, "--base-url", endpoint(t, words(1)), "--model", "m", "--num-prompts", "3", "--num-warmups", "0", "--random-input-len", "5",
				"--random-output-len", "3", "--slo", "mean_ttft_ms <= 5000", "--out", filepath.Join(t.TempDir(), "out"))
			code, stdout, stderr := benchExit(t, args...)
			if code != console.ExitVoid || !strings.Contains(stderr, "the measurement is void: ") || !strings.Contains(stderr, "66.7 % of all are missing") {
				t.Errorf("exit %d: %s", code, stderr)
			}
			if !strings.Contains(stdout, "mean_ttft_ms <= 5000: not judged, the measurement is void") && !strings.Contains(stdout, "not judged in 2 void") && !strings.Contains(stdout, "void  n/a") {
				t.Errorf("nothing of the SLO:\n%s", stdout)
			}
		})
	}
}
