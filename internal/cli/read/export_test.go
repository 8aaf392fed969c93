package read_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/cli"
	"perflab/internal/cli/console"
	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/verdict"
)

// exported makes a run directory to export: of another client's figures, with
// or without calls.
func exported(t *testing.T, defs map[string]result.Definition, calls []result.Call) string {
	t.Helper()
	s := result.Summary{Definitions: defs, Figures: map[string]float64{
		"completed": 3, "failed": 0, "duration": 12.5, "total_input_tokens": 300, "total_output_tokens": 30, "request_throughput": 0.24, "output_throughput": 2.4,
		"max_output_tokens_per_s": 9, "max_concurrent_requests": 2, "total_token_throughput": 26.4,
	}}
	for i, family := range []string{"ttft", "tpot", "itl", "e2el"} {
		for j, stat := range []string{"mean", "median", "std", "p90", "p99.9"} {
			s.Figures[stat+"_"+family+"_ms"] = float64(10*i+j) + 0.25
		}
	}
	h := result.Header{Model: "m", Requests: 3, Rate: 2, Spec: json.RawMessage("{}"), Imported: &result.Imported{Client: "some client", Format: "text", File: "f.md"}}
	dir := filepath.Join(t.TempDir(), "run")
	if err := rundir.WriteImported(dir, h, s, calls); err != nil {
		t.Fatal(err)
	}
	return dir
}

func perflabRun(t *testing.T, code int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	got := cli.Main(console.Env{Args: args, Stdout: &out, Stderr: &errs, Getenv: os.Getenv})
	if got != code {
		t.Fatalf("perflab %s: exit status %d, want %d\n%s", strings.Join(args, " "), got, code, &errs)
	}
	return out.String(), errs.String()
}

// figuresOf reads the figures of a run directory.
func figuresOf(t *testing.T, dir string) result.Summary {
	t.Helper()
	r, err := rundir.OpenRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.Resummarise()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func threeCalls() []result.Call {
	var calls []result.Call
	for i := range 3 {
		at := time.Duration(i) * 500 * time.Millisecond
		calls = append(calls, result.Call{Index: i, Due: at, Ready: at, Sent: at, End: at + 90*time.Millisecond,
			Chunks: []result.Chunk{{At: at + 40*time.Millisecond, Tokens: 1}, {At: at + 60*time.Millisecond, Tokens: 1}, {At: at + 90*time.Millisecond, Tokens: 1}},
			Usage:  &result.Usage{Prompt: 100, Completion: 3}})
	}
	return calls
}

// TestExportRoundTrip: a run that goes out and comes back has the same figures
// by the same definitions.
func TestExportRoundTrip(t *testing.T) {
	for name, c := range map[string]struct {
		defs  map[string]result.Definition
		calls []result.Call
	}{
		"ours":           {},
		"vllm":           {defs: result.DefinitionsOf(result.VLLM)},
		"vllm and calls": {result.DefinitionsOf(result.VLLM), threeCalls()},
	} {
		t.Run(name, func(t *testing.T) {
			dir := exported(t, c.defs, c.calls)
			file, back := filepath.Join(t.TempDir(), "result.json"), filepath.Join(t.TempDir(), "back")
			_, said := perflabRun(t, 0, "export", dir, "--to", "vllm", "--out", file)
			if said != "" {
				t.Errorf("said %q", said)
			}
			perflabRun(t, 0, "import", file, "--out", back)
			dirs, err := rundir.OpenImport(back)
			if err != nil || len(dirs) != 1 {
				t.Fatalf("%v, %v", dirs, err)
			}
			want, got := figuresOf(t, dir), figuresOf(t, dirs[0])
			for metric, v := range want.Figures {
				if g, ok := got.Figures[metric]; !ok || math.Abs(g-v) > 1e-9*math.Abs(v) || got.Definition(metric) != want.Definition(metric) {
					t.Errorf("%s is %v (%q) and comes back as %v (%q)", metric, v, want.Definition(metric), g, got.Definition(metric))
				}
			}
			r, err := rundir.OpenRun(dirs[0])
			if err != nil || len(r.Calls) != len(c.calls) {
				t.Errorf("%d calls come back, %v", len(r.Calls), err)
			}
		})
	}
}

// TestCallsComeBack: in every form of calls, the figures that follow from them
// are the same when they come back.
func TestCallsComeBack(t *testing.T) {
	dir := exported(t, nil, threeCalls())
	first, err := rundir.OpenRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	want, err := verdict.Summarize(first.Header, &result.Client{}, result.Options{}, slices.Values(first.Calls))
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{"csv", "parquet"} {
		file, back := filepath.Join(t.TempDir(), "calls."+form), filepath.Join(t.TempDir(), "back")
		perflabRun(t, 0, "export", dir, "--to", form, "--out", file)
		perflabRun(t, 0, "import", file, "--out", back)
		dirs, err := rundir.OpenImport(back)
		if err != nil || len(dirs) != 1 {
			t.Fatalf("%s: %v, %v", form, dirs, err)
		}
		got := figuresOf(t, dirs[0])
		if d := cmp.Diff(want.Figures, got.Figures); d != "" {
			t.Errorf("%s (-exported +imported):\n%s", form, d)
		}
	}
	perflabRun(t, 0, "export", dir, "--to", "guidellm")
}

// TestExportClaimsNoUnlikeFigure: a figure that vLLM defines otherwise is null
// and named.
func TestExportClaimsNoUnlikeFigure(t *testing.T) {
	dir := exported(t, map[string]result.Definition{"tpot": result.E2EPerToken, "max_output_tokens_per_s": result.InverseGapPeak, "max_concurrent_requests": result.SecondBuckets}, nil)
	out, said := perflabRun(t, 0, "export", dir, "--to", "vllm")
	var got map[string]any
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"mean_tpot_ms", "max_output_tokens_per_s", "p99.9_tpot_ms"} {
		if v := got[name]; v != nil {
			t.Errorf("%s is %v", name, v)
		}
	}
	if got["mean_ttft_ms"] != 0.25 || got["max_concurrent_requests"] != 2.0 {
		t.Errorf("figures that are alike are lost: %v", got)
	}
	if d := fmt.Sprint(got["definitions"]); d != "map[max_concurrent_requests:second_buckets]" {
		t.Errorf("definitions %s", d)
	}
	if !strings.Contains(said, "left out, because vLLM defines them otherwise: max_output_tokens_per_s (inverse_gap_peak), tpot (e2e_per_token)") {
		t.Errorf("said %q", said)
	}
}

// TestCompareReadsWhatImportReads: a side may be any file that import takes,
// and the secrets in it stay unprinted.
func TestCompareReadsWhatImportReads(t *testing.T) {
	dir := exported(t, nil, threeCalls())
	for _, format := range []string{"vllm", "csv", "parquet"} {
		file := filepath.Join(t.TempDir(), "calls."+format)
		perflabRun(t, 0, "export", dir, "--to", format, "--out", file)
		perflabRun(t, 0, "compare", dir, file)
	}
	text := "# Study\n\n```bash\nvllm serve m --api-key sk-secretsecretsecretsecret\n```\n\n```\n============ Serving Benchmark Result ============\nSuccessful requests:                     3\nBenchmark duration (s):                  12.50\nOutput token throughput (tok/s):         2.40\n==================================================\n```\n"
	var docs []string
	for name, text := range map[string]string{"a.md": text, "b.md": strings.Replace(text, "serve m", "serve m -tp 2", 1)} {
		docs = append(docs, filepath.Join(t.TempDir(), name))
		if err := os.WriteFile(docs[len(docs)-1], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, _ := perflabRun(t, 0, append([]string{"compare"}, docs...)...)
	if !strings.Contains(out, "serve m -tp 2") || strings.Contains(out, "secretsecret") {
		t.Errorf("the command, without its secret, is missing in\n%s", out)
	}
	binary := filepath.Join(t.TempDir(), "cut.parquet")
	if err := os.WriteFile(binary, []byte("PAR1\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs := perflabRun(t, 2, "compare", dir, binary); !strings.Contains(errs, "Parquet") {
		t.Errorf("why a damaged file has no result: %s", errs)
	}
}
