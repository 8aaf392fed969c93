package measure_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/cli/console"
)

// TestSeriesRefuses: what a series cannot do is told before any work.
func TestSeriesRefuses(t *testing.T) {
	slo := []string{"--slo", "p99_ttft_ms <= 5"}
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"two series":              {[]string{"--sweep", "rate=1,2", "--repeat", "3"}, "--sweep and --repeat are two series"},
		"search and sweep":        {append([]string{"--sweep", "rate=1,2", "--find-max", "rate"}, slo...), "--sweep and --find-max are two series"},
		"search and repeat":       {append([]string{"--repeat", "3", "--find-max", "rate"}, slo...), "--find-max and --repeat are two series"},
		"empty sweep":             {[]string{"--sweep", ""}, "is no sweep"},
		"bad sweep":               {[]string{"--sweep", "rate=1..8"}, "--sweep: the range 1..8 has no step"},
		"rate and sweep":          {[]string{"--sweep", "rate=1,2", "--request-rate", "5"}, "--request-rate does not apply with --sweep rate, which sets it"},
		"limit and sweep":         {[]string{"--sweep", "concurrency=1,2", "--max-concurrency", "5"}, "--max-concurrency does not apply with --sweep concurrency"},
		"steps and sweep":         {[]string{"--sweep", "rate=1,2", "--steps", "1:2s"}, "--steps does not apply with --sweep rate"},
		"ramp and sweep":          {[]string{"--sweep", "rate=1,2", "--ramp-up-strategy", "linear", "--ramp-up-start-rps", "1", "--ramp-up-end-rps", "2"}, "--ramp-up-strategy does not apply with --sweep rate"},
		"too concurrent":          {[]string{"--sweep", "concurrency=1..64x2", "--num-prompts", "40"}, "--num-prompts 40 never reaches the concurrency of 64"},
		"anchors without end":     {[]string{"--sweep", "rate=auto", "--duration", "3s"}, "--sweep rate=auto, throughput: --duration needs"},
		"points of a list":        {[]string{"--sweep", "rate=1,2", "--sweep-points", "4"}, "--sweep-points is for --sweep rate=auto"},
		"points of nothing":       {[]string{"--sweep-points", "4"}, "--sweep-points needs --sweep"},
		"two points":              {[]string{"--sweep", "rate=auto", "--sweep-points", "2"}, "--sweep-points is 2"},
		"one result file":         {[]string{"--sweep", "rate=1,2", "--save-result", "--result-filename", "x"}, "--result-filename is one file"},
		"rows of many runs":       {[]string{"--sweep", "rate=1,2", "--parquet", "x"}, "--parquet is for a single run"},
		"block":                   {[]string{"--repeat", "2", "--block", "gpustack"}, "--block is for a single run"},
		"sections":                {[]string{"--sweep", "rate=1,2", "--percentile-metrics", "ttft"}, "--percentile-metrics is for a single run"},
		"search for nothing":      {[]string{"--find-max", "rate"}, "--find-max needs --slo"},
		"search for what":         {append([]string{"--find-max", "speed"}, slo...), `--find-max "speed" is not known: rate or concurrency`},
		"search of a rate":        {append([]string{"--find-max", "rate", "--request-rate", "2"}, slo...), "--request-rate does not apply with --find-max rate"},
		"search of so many":       {append([]string{"--find-max", "rate", "--num-prompts", "20"}, slo...), "--num-prompts does not apply with --find-max"},
		"search from nothing":     {append([]string{"--find-max", "rate", "--find-max-from", "0"}, slo...), "--find-max-from is 0"},
		"search from a half":      {append([]string{"--find-max", "concurrency", "--find-max-from", "1.5"}, slo...), "--find-max-from is 1.5"},
		"search downwards":        {append([]string{"--find-max", "rate", "--find-max-from", "4", "--find-max-to", "2"}, slo...), "--find-max-to is 2"},
		"search to nothing":       {append([]string{"--find-max", "rate", "--find-max-to", "0"}, slo...), "--find-max-to is 0"},
		"search without end":      {append([]string{"--find-max", "rate", "--find-max-precision", "0"}, slo...), "--find-max-precision is 0"},
		"search by no requests":   {append([]string{"--find-max", "rate", "--find-max-requests", "0"}, slo...), "--find-max-requests is 0"},
		"search for no time":      {append([]string{"--find-max", "rate", "--find-max-seconds", "-1"}, slo...), "--find-max-seconds is -1"},
		"bounds of no search":     {[]string{"--find-max-to", "4"}, "--find-max-to needs --find-max"},
		"one run":                 {[]string{"--repeat", "1"}, "--repeat is 1"},
		"no run":                  {[]string{"--repeat", "0"}, "--repeat is 0"},
		"same seed alone":         {[]string{"--repeat-same-seed"}, "--repeat-same-seed needs --repeat"},
		"same seed, found prompt": {[]string{"--repeat", "2", "--repeat-same-seed"}, "--repeat-same-seed needs --cache reset"},
		"cache":                   {[]string{"--cache", "cold"}, `--cache "cold" is not known: use unique, reset, warm, shared`},
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

// TestSeriesFiles: every run has a result file of its own, or a line of one.
func TestSeriesFiles(t *testing.T) {
	dir, url := t.TempDir(), endpoint(t, words(3))
	run := func(name string, more ...string) {
		args := []string{"--base-url", url, "--model", "org/m", "--num-prompts", "2", "--num-warmups", "0",
			"--random-input-len", "5", "--random-output-len", "3", "--out", filepath.Join(dir, name), "--result-dir", filepath.Join(dir, "results-"+name)}
		if code, _, stderr := benchExit(t, append(args, more...)...); code != console.ExitDone && code != console.ExitVoid {
			t.Fatalf("exit %d, %s", code, stderr)
		}
	}
	files := func(name string) (out []string) {
		all, err := os.ReadDir(filepath.Join(dir, "results-"+name))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range all {
			out = append(out, f.Name())
		}
		return out
	}
	run("repeat", "--repeat", "3", "--request-rate", "200", "--save-result", "--html", filepath.Join(dir, "pages", "r.html"))
	if got := files("repeat"); len(got) != 3 || !strings.HasPrefix(got[0], "openai-chat-200.0qps-m-") {
		t.Errorf("of 3 runs: %v", got)
	}
	run("sweep", "--sweep", "concurrency=1,2", "--save-result", "--save-detailed")
	if got := files("sweep"); len(got) != 2 || !strings.HasPrefix(got[0], "openai-chat-infqps-concurrency1-m-") || !strings.HasPrefix(got[1], "openai-chat-infqps-concurrency2-m-") {
		t.Errorf("of 2 loads: %v", got)
	}
	run("append", "--sweep", "rate=100,200", "--append-result", "--result-filename", "all.json")
	b, err := os.ReadFile(filepath.Join(dir, "results-append", "all.json"))
	if err != nil {
		t.Fatal(err)
	}
	var rates []float64
	for line := range strings.Lines(string(b)) {
		var row struct {
			Rate float64 `json:"request_rate"`
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		rates = append(rates, row.Rate)
	}
	if d := cmp.Diff([]float64{100, 200}, rates); d != "" {
		t.Error(d)
	}
	page, err := os.ReadFile(filepath.Join(dir, "pages", "r.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"3 runs of org/m under random", "<th scope=\"col\" class=\"n\">run-3</th>", "TTFT: share at or below"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// TestCacheResetNeedsIt: a server whose prefix cache cannot be emptied ends the
// run before it begins.
func TestCacheResetNeedsIt(t *testing.T) {
	sent := 0
	url := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "reset") || strings.Contains(r.URL.Path, "flush") {
			http.NotFound(w, r)
			return
		}
		sent++
		fmt.Fprint(w, "data: [DONE]\n\n")
	})
	dir := filepath.Join(t.TempDir(), "run")
	code, _, stderr := benchExit(t, "--base-url", url, "--model", "m", "--num-prompts", "3", "--num-warmups", "0", "--cache", "reset", "--out", dir)
	if code != console.ExitFailed || !strings.Contains(stderr, "cache reset: ") || sent > 0 {
		t.Errorf("exit %d, %q, %d requests", code, stderr, sent)
	}
}
