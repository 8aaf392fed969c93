package plan_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"perflab/internal/cli"
	"perflab/internal/cli/console"
	"perflab/internal/cli/plan"
	"perflab/internal/forecast"
)

// predicted runs perflab predict.
func predicted(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = cli.Main(console.Env{Args: append([]string{"predict"}, args...), Stdout: &out, Stderr: &errs, Getenv: func(string) string { return "" }})
	return out.String(), errs.String(), code
}

// predictedTable is the JSON of perflab predict.
func predictedTable(t *testing.T, args ...string) forecast.Table {
	t.Helper()
	out, errs, code := predicted(t, append([]string{"--json", "--num-prompts", "20", "--random-input-len", "64", "--random-output-len", "8", "--draws", "0"}, args...)...)
	var f forecast.Table
	if err := json.Unmarshal([]byte(out), &f); err != nil || code != console.ExitDone {
		t.Fatalf("exit %d: %v: %s", code, err, errs)
	}
	return f
}

func TestPredictHelp(t *testing.T) {
	c := plan.NewPredict(console.Env{})
	c.InitDefaultHelpFlag()
	seen := map[string]bool{}
	for _, g := range plan.PredictHelp().Groups {
		for name := range strings.FieldsSeq(g.Flags) {
			if c.Flags().Lookup(name) == nil || seen[name] {
				t.Errorf("%s: --%s is no flag, or stands twice", g.Title, name)
			}
			seen[name] = true
		}
	}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !seen[f.Name] {
			t.Errorf("--%s stands under no heading", f.Name)
		}
	})
	out, _, code := predicted(t, "--help")
	if code != console.ExitDone || !strings.Contains(out, "\nConfigurations:\n      --gpu") {
		t.Errorf("exit %d: %s", code, out)
	}
	for line := range strings.Lines(out) {
		if n := len(strings.TrimRight(line, "\n")); n > console.HelpWidth {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// TestPredictGrid: every combination is a row, replicas fill the machine, a
// refusal keeps its reason, and the objective orders.
func TestPredictGrid(t *testing.T) {
	f := predictedTable(t, "--gpu", "h100-sxm", "--gpus", "4", "--grid", "tp=1,2,8", "--grid", "max_num_seqs=,64", "--objective", "mean_ttft", "--", "vllm", "serve", "Qwen/Qwen3-14B")
	if !f.Simulated || f.Schema != forecast.Schema || len(f.Rows) != 6 || len(f.Configurations) != 6 {
		t.Fatalf("%+v", f)
	}
	if c := f.Configurations[2]; c.Label != "tp=2 max_num_seqs=default" || c.Replicas != 2 || c.Each != 2 || c.Command != "vllm serve Qwen/Qwen3-14B -tp 2" || c.Memory == nil || c.Memory.KV <= 0 {
		t.Errorf("%+v", c)
	}
	if c := f.Configurations[4]; !strings.Contains(c.Refused, "8 GPUs") || c.Memory != nil {
		t.Errorf("%+v", c)
	}
	for i, r := range f.Rows {
		v, ok := r.Figures["mean_ttft_ms"]
		if ok != (i < 4) || i > 0 && ok && v.Value < f.Rows[i-1].Figures["mean_ttft_ms"].Value {
			t.Errorf("row %d: %v, %v", i, v, ok)
		}
		if ok && (r.PerGPU["total_token_throughput"].Value*4 != r.Figures["total_token_throughput"].Value || len(r.Times) != 12 || len(r.Waits) != 5 || r.Bottleneck == nil) {
			t.Errorf("row %d: %+v", i, r)
		}
	}
}

// TestPredictLoads: rates and concurrencies make the load axis, of commands
// from a file, on two accelerators.
func TestPredictLoads(t *testing.T) {
	file := filepath.Join(t.TempDir(), "commands")
	text := "# two engines\nvllm serve Qwen/Qwen3-14B \\\n  --max-num-seqs 64\n\npython3 -m sglang.launch_server --model-path 'Qwen/Qwen3-14B'\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	f := predictedTable(t, "--gpu", "h100-sxm,h200", "--commands", file, "--request-rate", "2,inf", "--max-concurrency", "4..8x2")
	if len(f.Configurations) != 4 || len(f.Rows) != 16 {
		t.Fatalf("%d commands, %d rows", len(f.Configurations), len(f.Rows))
	}
	if got := f.Configurations[3].Label; got != "h200 SGLang" {
		t.Errorf("%q", got)
	}
	for i, want := range []string{"2/s, 4 at once", "2/s, 8 at once", "4 at once", "8 at once"} {
		if r := f.Rows[i]; r.Load != want || (r.Rate == 2) != (i < 2) || (r.Utilisation > 0) != (i < 2) || r.Concurrency == 0 {
			t.Errorf("%+v, want %q", r, want)
		}
	}
}

// TestPredictSLO: the row says whether it is met, the exit status whether any
// row does.
func TestPredictSLO(t *testing.T) {
	base := []string{"--num-prompts", "20", "--draws", "0", "--", "vllm", "serve", "Qwen/Qwen3-14B"}
	out, _, code := predicted(t, append([]string{"--slo", "p99_ttft_ms <= 1e9"}, base...)...)
	if code != console.ExitDone || !strings.Contains(out, "SLO: met") || !strings.HasPrefix(out, "SIMULATED") {
		t.Errorf("exit %d: %s", code, out)
	}
	out, errs, code := predicted(t, append([]string{"--slo", "p99_ttft_ms <= 0.001"}, base...)...)
	if code != console.ExitMissed || !strings.Contains(out, "missed, ") || !strings.Contains(errs, "no prediction meets") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}

// TestPredictRefused: the only configuration is refused as perflab sim refuses,
// several leave a table and a failure.
func TestPredictRefused(t *testing.T) {
	_, errs, code := predicted(t, "--gpu", "a100-sxm-80", "--", "vllm", "serve", "Qwen/Qwen3-14B", "-tp", "2")
	if code != console.ExitFailed || !strings.Contains(errs, "SIMULATED engine") || !strings.Contains(errs, "there is 1") && !strings.Contains(errs, "there are 1") {
		t.Errorf("exit %d: %s", code, errs)
	}
	out, errs, code := predicted(t, "--grid", "tp=2,4", "--", "vllm", "serve", "Qwen/Qwen3-14B")
	if code != console.ExitFailed || strings.Count(out, "refused") != 2 || !strings.Contains(errs, "every configuration would be refused") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	// A request that is too long for one configuration is named.
	out, _, code = predicted(t, "--num-prompts", "5", "--draws", "0", "--random-input-len", "2000", "--", "vllm", "serve", "Qwen/Qwen3-14B", "--max-model-len", "1000")
	if !strings.Contains(out, "Not served: 5 of 5 calls failed") || !strings.Contains(out, "over max_model_len 1000: raise max_model_len or shorten the workload") {
		t.Errorf("exit %d: %s", code, out)
	}
	// What is unwise about a configuration stands beside its figures.
	out, _, code = predicted(t, "--num-prompts", "5", "--draws", "0", "--", "vllm", "serve", "Qwen/Qwen3-14B", "--enforce-eager")
	if code != 0 || !strings.Contains(out, "\nNote: CUDA graphs are off: ") {
		t.Errorf("exit %d: %s", code, out)
	}
}

func TestPredictUsage(t *testing.T) {
	serve := []string{"--", "vllm", "serve", "Qwen/Qwen3-14B"}
	for want, args := range map[string][]string{
		"needs a serving command":          {},
		"tp=1,2,4":                         append([]string{"--grid", "tp"}, serve...),
		`unknown parameter "tpp"`:          append([]string{"--grid", "tpp=1"}, serve...),
		"has tp twice":                     append([]string{"--grid", "tp=1", "--grid", "tp=2"}, serve...),
		"unknown accelerator":              append([]string{"--gpu", "h1000"}, serve...),
		"--gpus 0":                         append([]string{"--gpus", "0"}, serve...),
		"--draws is -1":                    append([]string{"--draws", "-1"}, serve...),
		"is not closed":                    {"--command", "vllm serve 'M"},
		"unknown model":                    {"--command", "vllm serve No/Such-Model"},
		"is not a serving command":         {"--command", "serve M"},
		"llama.cpp is not modelled":        {"--command", "llama-server -m m.gguf"},
		"nothing is known of CPU":          append([]string{"--gpu", "cpu"}, serve...),
		"--max-concurrency has":            append([]string{"--max-concurrency", "1,x"}, serve...),
		"--request-rate":                   append([]string{"--request-rate", "1,x"}, serve...),
		"--latency total_token_throughput": append([]string{"--latency", "total_token_throughput"}, serve...),
		"neither better":                   append([]string{"--objective", "max_concurrency"}, serve...),
		"unknown metric":                   append([]string{"--metrics", "speed"}, serve...),
		"read --calibration":               append([]string{"--calibration", "/no/such"}, serve...),
		"read --commands":                  {"--commands", "/no/such"},
	} {
		if _, errs, code := predicted(t, args...); code != console.ExitUsage || !strings.Contains(errs, want) {
			t.Errorf("%q: exit %d: %s", args, code, errs)
		}
	}
}

// TestPredictFiles: --html and --out leave what they say, and no secret is shown.
func TestPredictFiles(t *testing.T) {
	dir := t.TempDir()
	out, errs, code := predicted(t, "--num-prompts", "10", "--draws", "0", "--grid", "max_num_seqs=4,8", "--html", filepath.Join(dir, "a", "x.html"), "--out", filepath.Join(dir, "b"),
		"--", "VLLM_API_KEY=s3cr3tvalue", "vllm", "serve", "Qwen/Qwen3-14B", "--api-key", "s3cr3tvalue")
	if code != console.ExitDone || !strings.Contains(errs, "written: ") {
		t.Fatalf("exit %d: %s", code, errs)
	}
	var texts strings.Builder
	texts.WriteString(out)
	for _, name := range []string{"a/x.html", "b/predictions.html", "b/predictions.json", "b/plots/front.svg", "b/plots/steps.svg"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(b), "SIMULATED") && !strings.Contains(string(b), `"simulated": true`) {
			t.Errorf("%s: %v", name, err)
		}
		texts.WriteString(string(b))
	}
	if strings.Contains(texts.String(), "s3cr3tvalue") {
		t.Error("a secret is shown")
	}
}

// TestPredictWidth: tables of a grid under several loads fit a hundred columns,
// each range under its figure.
func TestPredictWidth(t *testing.T) {
	out, errs, code := predicted(t, "--num-prompts", "20", "--random-input-len", "64", "--random-output-len", "8", "--draws", "0", "--gpus", "4",
		"--request-rate", "1,inf", "--grid", "max_num_batched_tokens=2048,4096", "--grid", "max_num_seqs=64,128", "--", "vllm", "serve", "Qwen/Qwen3-14B")
	if code != console.ExitDone {
		t.Fatalf("exit %d: %s", code, errs)
	}
	table, _, ok := strings.Cut(out, "* On the front")
	if _, table, _ = strings.Cut(table, "Calibration:"); !ok || !strings.Contains(table, "\n#1 max_num_seqs=64 max_num_batched_tokens=2048\n") {
		t.Fatalf("%s", out)
	}
	_, table, _ = strings.Cut(table, "\n")
	for line := range strings.Lines(table) {
		if len([]rune(line)) > 101 {
			t.Errorf("%d columns: %s", len([]rune(line)), line)
		}
	}
}

// TestPredictTooMany: what would need more memory than there is, is refused
// before any work.
func TestPredictTooMany(t *testing.T) {
	_, errs, code := predicted(t, "--num-prompts", "1000000", "--random-output-len", "100", "--", "vllm", "serve", "Qwen/Qwen3-8B")
	if code != console.ExitUsage || !strings.Contains(errs, "100000000 output tokens") || !strings.Contains(errs, "--num-prompts") {
		t.Errorf("exit %d: %s", code, errs)
	}
}
