package measure_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"perflab/internal/cli/console"
	"perflab/internal/cli/measure"
	"perflab/internal/interop/vllmbench"
	"perflab/internal/openai"
	"perflab/internal/workload"
)

// TestBenchHelp: every flag stands under exactly one heading, no heading has a
// name that is no flag, and a line is no wider than a terminal usually is.
func TestBenchHelp(t *testing.T) {
	c := measure.NewBench(console.Env{})
	c.InitDefaultHelpFlag()
	seen := map[string]string{}
	for _, g := range measure.BenchHelp().Groups {
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

	text := benchHelpText(t, "--help=all")
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
	text := benchHelpText(t, "--help")
	fs := measure.NewBench(console.Env{}).Flags()
	for name := range strings.FieldsSeq(measure.BenchHelp().Usual) {
		if fs.Lookup(name) == nil || !strings.Contains(text, "--"+name+" ") {
			t.Errorf("the help lacks --%s", name)
		}
	}
	if n := strings.Count(text, "\n"); n > 100 || !strings.Contains(text, "flags more: perflab bench --help=all") || strings.Contains(text, "--ramp-up-strategy") {
		t.Errorf("%d lines:\n%s", n, text)
	}
}

// TestVLLMFlags: of vLLM's flags what is the same exists here, what is refused does not
// unless it came later, and what is to be given instead exists.
func TestVLLMFlags(t *testing.T) {
	fs := measure.NewBench(console.Env{}).Flags()
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

// benchHelpText is what perflab bench prints for a flag that asks for help.
func benchHelpText(t *testing.T, flag string) string {
	t.Helper()
	code, stdout, stderr := benchExit(t, flag)
	if code != console.ExitDone {
		t.Fatalf("%s: exit %d: %s", flag, code, stderr)
	}
	return stdout
}
