package library

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"perflab/internal/cli/console"
	"perflab/internal/test/storetest"
	"perflab/internal/trend"
)

// nightly writes runs of one configuration whose throughput falls by 10 % with the ninth build, and a
// single run of another.
func nightly(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for i := range 24 {
		v := 1000 + float64(i*7%5)
		if i >= 16 {
			v *= 0.9
		}
		storetest.Run{N: 80 * i, Command: "vllm serve Qwen/Qwen3-8B -tp 2", Build: fmt.Sprintf("build-%02d", i/2), Figures: map[string]float64{"output_throughput": v}}.Write(t, root, fmt.Sprintf("n-%02d", i))
	}
	storetest.Run{N: 3, Command: "vllm serve Qwen/Qwen3-8B -tp 4", Simulated: true}.Write(t, root, "other")
	return root
}

// run runs perflab history.
func runHistory(t *testing.T, root string, args ...string) (out, said string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	env := console.Env{Stdout: &stdout, Stderr: &stderr, Getenv: func(name string) string {
		return map[string]string{dirVariable: root}[name]
	}}
	c := NewHistory(env)
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetArgs(args)
	err = c.ExecuteContext(context.WithoutCancel(t.Context()))
	return stdout.String(), stderr.String(), err
}

func TestHistory(t *testing.T) {
	root := nightly(t)
	out, said, err := runHistory(t, root, "--metric", "output_throughput")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Qwen/Qwen3-8B, vllm", "24    12", "worse", "output_throughput -10."} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "SIMULATED") || !strings.Contains(said, "1 more with a single run: --all lists them") {
		t.Errorf("the single run is shown, or not told of:\n%s%s", out, said)
	}
	if out, _, err = runHistory(t, root, "--all"); err != nil || !strings.Contains(out, "SIMULATED") {
		t.Errorf("the single run is not marked: %v\n%s", err, out)
	}
	if out, _, err = runHistory(t, root, "simulated=false", "--metric", "output_throughput"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"24 runs of 12 builds", "Output token throughput (tok/s): worse; newest 90", "since build-08 (", "worse, 100", " to 90", "confirmed, it has lasted over 4; the last before it: build-07", "ooooooo|", "oooo"} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q in\n%s", want, out)
		}
	}
}

// TestHistoryOne: one line by its key, and by one of its runs.
func TestHistoryOne(t *testing.T) {
	root := nightly(t)
	out, _, err := runHistory(t, root, "--json", "simulated=false")
	if err != nil {
		t.Fatal(err)
	}
	var lines []trend.Line
	if err := json.Unmarshal([]byte(out), &lines); err != nil || len(lines) != 1 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	for _, by := range []string{lines[0].Key[:10], lines[0].Histories[0].Points[0].Runs[0]} {
		if out, _, err := runHistory(t, root, by); err != nil || !strings.HasPrefix(out, lines[0].Key[:10]+": ") {
			t.Errorf("%s: %v\n%s", by, err, out)
		}
	}
}

// TestHistoryFails: what CI asks for ends with an error of its own, and an expression has the history
// begin behind a change that is meant to stay.
func TestHistoryFails(t *testing.T) {
	root := nightly(t)
	_, _, err := runHistory(t, root, "--metric", "output_throughput", "--fail-if", "suspected,worse")
	if !errors.Is(err, console.ErrWorse) || !strings.HasPrefix(err.Error(), "output_throughput of ") {
		t.Errorf("worse: %v", err)
	}
	since := storetest.Began.AddDate(0, 0, 1).Format("2006-01-02")
	for _, args := range [][]string{{"--fail-if", "suspected"}, {"--fail-if", "worse", "started>=" + since}} {
		if _, _, err := runHistory(t, root, args...); err != nil {
			t.Errorf("%q: %v", args, err)
		}
	}
	if _, _, err := runHistory(t, root, "--fail-if", "stale"); !errors.Is(err, console.ErrWorse) {
		t.Errorf("stale: %v", err)
	}
	for want, args := range map[string][]string{
		`--fail-if "slow" is none`:                         {"--fail-if", "slow"},
		"did you mean output_throughput":                   {"--metric", "output_throughputt"},
		"must be above 0":                                  {"--least", "0"},
		`there is no configuration and no run "fffffffff"`: {"fffffffff"},
		"character 1:":                                     {"engin=vllm"},
	} {
		_, _, err := runHistory(t, root, args...)
		if _, ok := errors.AsType[console.UsageError](err); !ok || !strings.Contains(console.InFlags(err), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
}
