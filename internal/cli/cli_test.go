package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"perflab/internal/cli/console"
)

// TestOutputIsGuarded: what a command shows, an error and its hint too, has no
// secret of the environment or of the flags, and nothing that a terminal obeys.
func TestOutputIsGuarded(t *testing.T) {
	const secret = "canary-in-the-environment"
	dir := t.TempDir()
	file := filepath.Join(dir, "result.json")
	hostile := `{"date":"20260101-000000","model_id":"` + `evil\u001b]52;c;aGk=\u0007\u202e\u009b31m` + secret + `","num_prompts":2,"completed":2,"duration":1,"request_throughput":2,"output_throughput":10,"total_token_throughput":20,"mean_ttft_ms":1,"median_ttft_ms":1,"p99_ttft_ms":1}`
	if err := os.WriteFile(file, []byte(hostile), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"import", file, "--out", filepath.Join(dir, "out")},
		{"audit", file},
		{"audit", file, "--format", "md"},
		{"tune", "no\x1b[31m such\rfile " + secret},
		{"bench", "--extra-body", `{"api_key": "flag-canary"`, "--base-url", "http://h/?key=flag-canary"},
		{"report", filepath.Join(dir, "out"), "--format", "md"},
	} {
		var out, errs strings.Builder
		Main(console.Env{Args: args, Stdout: &out, Stderr: &errs, Getenv: os.Getenv, Environ: []string{"MY_PGPASS=" + secret}})
		got := out.String() + errs.String()
		if strings.TrimSpace(got) == "" {
			t.Errorf("%q says nothing", args)
		}
		if strings.ContainsAny(got, "\x1b\r\a\u009b\u202e") {
			t.Errorf("%q steers the terminal: %q", args, got)
		}
		if strings.Contains(got, secret) || strings.Contains(got, "flag-canary") {
			t.Errorf("%q shows a secret: %s", args, got)
		}
	}
}

// TestOneWayOut: no package but console writes to the process's outputs, and
// here it is the guarded ones; no text but a control of the screen steers a
// terminal.
func TestOneWayOut(t *testing.T) {
	direct := regexp.MustCompile(`os\.Std(out|err)\b|\bprintln\(|fmt\.Print(f|ln)?\(|log\.Print`)
	steers := regexp.MustCompile(`\\x1b|\\033|\\u001b|\\e\[`)
	allowed := map[string]bool{"cli/console/env.go": true, "truth/remote.go": true, "deploy/guard_linux.go": true,
		"web/launch/supervisor_unix.go": true} // all but the first: of children, whose output goes elsewhere
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(filepath.ToSlash(path), "../")
		if d.IsDir() && name == "test" {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || allowed[name] {
			return nil
		}
		text, err := os.ReadFile(path)
		for n, line := range strings.Split(string(text), "\n") {
			code, _, _ := strings.Cut(line, "//")
			if direct.MatchString(code) {
				t.Errorf("%s:%d writes past the guarded outputs: %s", name, n+1, strings.TrimSpace(line))
			}
			if steers.MatchString(code) && name != "interop/decode.go" {
				t.Errorf("%s:%d steers a terminal: %s", name, n+1, strings.TrimSpace(line))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
