package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"perflab/internal/cli/console"
)

// helpOf is what a command line prints that ends well.
func helpOf(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if code := Main(console.Env{Args: args, Stdout: &out, Stderr: &out, Getenv: func(string) string { return "" }}); code != console.ExitDone {
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
