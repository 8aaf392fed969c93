//go:build !race

// The predicted studies of the documents take half a minute under the race detector, and start no
// goroutine that races.

package main

import (
	"flag"
	"os"
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
