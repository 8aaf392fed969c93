package main

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what the commands print into the documents")

// terminal is a fenced block of a terminal session: commands behind "$ ", each
// with what it prints.
var terminal = regexp.MustCompile("(?s)```console\n(.*?)```")

// TestDocuments runs every "$ perflab" command of the documents and compares
// what it prints with what stands there.
func TestDocuments(t *testing.T) {
	if raceEnabled {
		t.Skip("the predicted studies of the documents take half a minute under the race detector; go test without -race runs them")
	}
	if runtime.GOARCH != "amd64" {
		t.Skip("the last digits of predicted figures differ between processor families; the documents show those of amd64")
	}
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	sessions := 0
	paths, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(paths) == 0 {
		t.Fatal(err, len(paths))
	}
	for _, path := range append(paths, filepath.Join(root, "README.md")) {
		name, err := filepath.Rel(root, path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got := terminal.ReplaceAllFunc(text, func(block []byte) []byte {
			sessions++
			return []byte("```console\n" + session(t, root, string(terminal.FindSubmatch(block)[1])) + "```")
		})
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if d := cmp.Diff(string(got), string(text)); d != "" {
			t.Errorf("%s does not show what the commands print (-run TestDocuments -update writes it; - printed, + shown):\n%s", name, d)
		}
	}
	if sessions == 0 {
		t.Error("no console session was found")
	}
}

// session runs the commands of one block in one empty directory that has the
// examples, and returns the block as it should be.
func session(t *testing.T, root, block string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(root, "examples"), filepath.Join(dir, "examples")); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for line := range strings.Lines(block) {
		command, ok := strings.CutPrefix(strings.TrimSpace(line), "$ perflab ")
		if !ok {
			continue
		}
		out.WriteString(line)
		out.WriteString(run(t, dir, command))
	}
	return out.String()
}

// run runs perflab with shell-like words and returns all that it prints, as on
// a terminal.
func run(t *testing.T, dir, command string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", `"$PERFLAB" `+command)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PERFLAB_TEST_MAIN=1", "PERFLAB="+self)
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return date.ReplaceAllString(progressLine.ReplaceAllString(both.String(), ""), "2026-11-23 01:20 UTC")
}

// date is when something ran, which documents show of one day.
var date = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d UTC( to \d{4}-\d\d-\d\d \d\d:\d\d UTC)?`)

// progressLine is what a command without a terminal says each quarter of a minute:
// how often depends on the machine.
var progressLine = regexp.MustCompile(`(?m)^(\d+ min \d\d|\d+\.\d) s  .*\n`)

func TestProgressLine(t *testing.T) {
	const progress = "15.0 s  trial 3 of 7\n1 min 00 s  trial 5 of 7\n12 min 05 s  trial 6 of 7\n"
	if got := progressLine.ReplaceAllString(progress+"3.1 s of it\n", ""); got != "3.1 s of it\n" {
		t.Errorf("of the progress is left %q", got)
	}
}
