package cli

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"perflab/internal/cli/console"
	"perflab/internal/interop/vllmbench"
	"perflab/internal/openai"
	"perflab/internal/workload"
)

// TestBenchHelp: every flag stands under exactly one heading, no heading has a
// name that is no flag, and a line is no wider than a terminal usually is.
func TestBenchHelp(t *testing.T) {
	c := newBench(console.Env{})
	c.InitDefaultHelpFlag()
	seen := map[string]string{}
	for _, g := range benchGroups() {
		for name := range strings.FieldsSeq(g.Flags) {
			if c.Flags().Lookup(name) == nil {
				t.Errorf("%s: --%s is no flag", g.Title, name)
			}
			if at, twice := seen[name]; twice {
				t.Errorf("--%s stands under %s and %s", name, at, g.Title)
			}
			seen[name] = g.Title
		}
	}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if seen[f.Name] == "" && !f.Hidden {
			t.Errorf("--%s stands under no heading: add it to benchGroups", f.Name)
		}
	})

	text := helpOf(t, "bench", "--help=all")
	for line := range strings.Lines(text) {
		if n := len(strings.TrimRight(line, "\n")); n > console.HelpWidth {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, want := range []string{"Usage:\n  perflab bench [--model MODEL]", "\nEndpoint:\n      --base-url", "\nOutput:\n      --out", "-h, --help"} {
		if !strings.Contains(text, want) {
			t.Errorf("the help lacks %q", want)
		}
	}
}

// TestShortHelp: the help of bench shows the usual flags on a page, and says that there are more.
func TestShortHelp(t *testing.T) {
	text := helpOf(t, "bench", "--help")
	fs := newBench(console.Env{}).Flags()
	for name := range strings.FieldsSeq(benchUsual) {
		if fs.Lookup(name) == nil || !strings.Contains(text, "--"+name+" ") {
			t.Errorf("the help lacks --%s", name)
		}
	}
	if n := strings.Count(text, "\n"); n > 100 || !strings.Contains(text, "flags more: perflab bench --help=all") || strings.Contains(text, "--ramp-up-strategy") {
		t.Errorf("%d lines:\n%s", n, text)
	}
}

// helpOf is what a command line prints that ends well.
func helpOf(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if code := Main(console.Env{Args: args, Stdout: &out, Stderr: &out, Getenv: func(string) string { return "" }}); code != exitDone {
		t.Fatalf("%q: exit %d:\n%s", args, code, out.String())
	}
	return out.String()
}

// TestCompletion: shells complete the values of flags and the arguments of commands.
func TestCompletion(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"bench", "--model", "qwen/qwen3-8"}, "Qwen/Qwen3-8B\n"},
		{[]string{"bench", "--dataset-name", "sh"}, "sharegpt\nshared-prefix\n"},
		{[]string{"bench", "--backend", "anth"}, "anthropic\n"},
		{[]string{"predict", "--gpu", "h2"}, "h200\nh20\n"},
		{[]string{"predict", "--objective", "total_tok"}, "total_token_throughput\n"},
		{[]string{"tune", "--strategy", "s"}, "staged\nsurvey\n"},
		{[]string{"engines", "s"}, "sglang\n"},
		{[]string{"tune", ""}, "yaml\nyml\n"},
	} {
		if got := helpOf(t, append([]string{"__complete"}, tt.args...)...); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%q: %q, want %q", tt.args, got, tt.want)
		}
	}
	dir := t.TempDir()
	t.Chdir(dir)
	for _, run := range []string{"perflab-out/bench-1/header.json", "perflab-out/quickstart/study.json", "perflab-out/sweep-1/sweep.json", "perflab-out/repeat-1/repeat.json", "perflab-out/other/notes.txt"} {
		if err := os.MkdirAll(filepath.Dir(run), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(run, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := helpOf(t, "__complete", "report", "perf"); !strings.HasPrefix(got, "perflab-out/bench-1\nperflab-out/quickstart\nperflab-out/repeat-1\nperflab-out/sweep-1\n:") {
		t.Errorf("runs: %q", got)
	}
}

// TestVLLMFlags: of vLLM's flags what is the same exists here, what is refused does not
// unless it came later, and what is to be given instead exists.
func TestVLLMFlags(t *testing.T) {
	fs := newBench(console.Env{}).Flags()
	for _, r := range vllmbench.Rows() {
		if fs.Lookup(r.Name) == nil && r.State == vllmbench.Same {
			t.Errorf("--%s does not exist", r.Name)
		}
		for word := range strings.FieldsSeq(r.Ours + " " + r.Note) {
			name, ok := strings.CutPrefix(strings.Trim(word, "(),;:'`"), "--")
			if name, _, _ = strings.Cut(name, "="); ok && fs.Lookup(name) == nil && name != "...-output-len" {
				t.Errorf("the row of --%s sends to --%s, which does not exist", r.Name, name)
			}
		}
	}
	for _, c := range vllmbench.Datasets() {
		name := c.Value
		if words := strings.Fields(c.Ours); len(words) > 1 {
			name = words[1]
		}
		if c.State != vllmbench.Refused && !slices.Contains(workload.Datasets(), name) {
			t.Errorf("--dataset-name %s does not exist", name)
		}
	}
	for _, c := range vllmbench.Backends() {
		cfg := openai.Config{BaseURL: "http://127.0.0.1:1", Backend: strings.TrimPrefix(cmp.Or(c.Ours, c.Value), "--backend ")}
		if _, err := openai.New(cfg); (err == nil) == (c.State == vllmbench.Refused) {
			t.Errorf("--backend %s is %s: %v", c.Value, c.State, err)
		}
	}
}
