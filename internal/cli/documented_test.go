package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"perflab/internal/cli/console"
	"perflab/internal/cli/measure"
	"perflab/internal/interop/command"
)

var shellBlock = regexp.MustCompile("(?s)```(?:sh|bash|console)\n(.*?)```")

// TestDocumentedFlags: every flag of a perflab command that a document shows is one that the
// command has.
func TestDocumentedFlags(t *testing.T) {
	paths, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := 0
	for _, path := range append(paths, "../../README.md", "../../CONTRIBUTING.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range shellBlock.FindAllSubmatch(text, -1) {
			joined := strings.ReplaceAll(string(block[1]), "\\\n", " ")
			for line := range strings.Lines(joined) {
				if args := documented(line); args != nil {
					commands++
					checkFlags(t, path, args)
				}
			}
		}
	}
	if commands < 100 {
		t.Errorf("only %d commands were found", commands)
	}
}

// documented are the arguments of perflab in a line of a shell; nil where it is not called.
func documented(line string) (args []string) {
	line, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "$ "), " #")
	found := false
	for _, w := range command.Split(line) {
		switch {
		case w.Operator && found:
			return args
		case w.Operator:
		case found:
			args = append(args, w.Text())
		default:
			found = w.Text() == "perflab" || w.Text() == "./perflab" || w.Text() == "./cmd/perflab"
		}
	}
	return args
}

func checkFlags(t *testing.T, path string, args []string) {
	t.Helper()
	env := console.Env{Getenv: func(string) string { return "" }, Args: args}
	translated, err := measure.FromVLLM(env)
	if err != nil {
		t.Errorf("%s: %q: %v", path, args, err)
		return
	}
	root := newRoot(env)
	root.InitDefaultCompletionCmd()
	c, rest, err := root.Find(translated)
	if err != nil {
		t.Errorf("%s: %q: %v", path, args, err)
		return
	}
	for _, a := range rest {
		if a == "--" {
			return
		}
		name, ok := strings.CutPrefix(a, "--")
		if name, _, _ = strings.Cut(name, "="); ok && name != "help" && c.Flags().Lookup(name) == nil {
			t.Errorf("%s: %s has no --%s: %q", path, c.CommandPath(), name, args)
		}
	}
}
