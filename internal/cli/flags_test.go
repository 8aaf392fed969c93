package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"perflab/internal/cli/console"
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

	var out bytes.Buffer
	if code := Main(console.Env{Args: []string{"bench", "--help"}, Stdout: &out, Stderr: &out, Getenv: func(string) string { return "" }}); code != exitDone {
		t.Fatalf("exit %d", code)
	}
	text := out.String()
	for line := range strings.Lines(text) {
		if n := len(strings.TrimRight(line, "\n")); n > console.HelpWidth {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, want := range []string{"Usage:\n  perflab bench --model MODEL", "\nEndpoint:\n      --base-url", "\nOutput:\n      --out", "-h, --help"} {
		if !strings.Contains(text, want) {
			t.Errorf("the help lacks %q", want)
		}
	}
}

// TestAbsentFlags: what is said not to be there is not there.
func TestAbsentFlags(t *testing.T) {
	fs := newBench(console.Env{}).Flags()
	for name, why := range vllmOnlyFlags {
		if fs.Lookup(name) != nil {
			t.Errorf("--%s exists", name)
		}
		for word := range strings.FieldsSeq(why) { // what to give instead exists
			if flag, ok := strings.CutPrefix(strings.Trim(word, "(),;:'"), "--"); ok && fs.Lookup(flag) == nil {
				t.Errorf("--%s sends to --%s, which does not exist", name, flag)
			}
		}
	}
}
