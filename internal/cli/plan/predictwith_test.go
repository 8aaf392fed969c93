package plan_test

import (
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"perflab/internal/calib"
	"perflab/internal/cli/console"
	"perflab/internal/cli/plan"
	"perflab/internal/forecast"
	"perflab/internal/sim"
)

// TestPredictWith: a run of the user's own machine, which is slower than others, corrects
// what is predicted for it, and the output says by what.
func TestPredictWith(t *testing.T) {
	k, err := sim.Default().With(sim.Set{Values: map[string]float64{"site_device": 0.7, "site_host": 1.5}})
	if err != nil {
		t.Fatal(err)
	}
	load := calib.Load{Requests: 200, Input: calib.Lengths{Mean: 500}, Output: calib.Lengths{Mean: 100}}
	dir := filepath.Join(t.TempDir(), "baseline")
	plan.SimulatedRun(t, dir, "vllm serve Qwen/Qwen3-8B", k, load, nil)
	measured := filepath.Join(t.TempDir(), "other")
	other := calib.Load{Requests: 100, Concurrency: 16, Input: calib.Lengths{Mean: 1000}, Output: calib.Lengths{Mean: 100}}
	plan.SimulatedRun(t, measured, "vllm serve Qwen/Qwen3-8B", k, other, nil)
	ask := func(more ...string) forecast.Row {
		args := append([]string{"--json", "--num-prompts", "100", "--max-concurrency", "16", "--random-input-len", "1000", "--random-output-len", "100"}, more...)
		stdout, stderr, code := predicted(t, append(args, "--", "vllm", "serve", "Qwen/Qwen3-8B")...)
		var table forecast.Table
		if err := json.Unmarshal([]byte(stdout), &table); code != console.ExitDone || err != nil {
			t.Fatalf("exit %d, %v\n%s", code, err, stderr)
		}
		if with := len(more) > 0; strings.Contains(table.Calibration.Source, "corrected by") != with {
			t.Errorf("calibration is %q", table.Calibration.Source)
		}
		return table.Rows[0]
	}
	got, err := plan.Observed(measured)
	if err != nil || len(got.Observations) != 1 {
		t.Fatal(err, got.Omitted)
	}
	truth := got.Observations[0].Figures[calib.Throughput]
	off := func(r forecast.Row) float64 { return math.Abs(math.Log(r.Figures[calib.Throughput].Value / truth)) }
	before, after := ask(), ask("--with", dir, "--simulated")
	if off(before) < 0.1 || off(after) > 0.5*off(before) {
		t.Errorf("off by %.3f before and by %.3f after a run of the machine", off(before), off(after))
	}
	width := func(r forecast.Row) float64 { e := r.Figures[calib.Throughput]; return *e.High / *e.Low }
	if width(after) > 1.0001*width(before) {
		t.Errorf("the range is %.2f times wide before and %.2f after", width(before), width(after))
	}
	if len(before.Hangs) == 0 || before.Measure == nil {
		t.Errorf("nothing is said of what the prediction hangs on: %+v", before)
	}
	if _, stderr, code := predicted(t, "--with", dir, "--", "vllm", "serve", "Qwen/Qwen3-8B"); code != console.ExitUsage || !strings.Contains(stderr, "SIMULATED") {
		t.Errorf("a simulated run without --simulated: exit %d\n%s", code, stderr)
	}
	if _, stderr, code := predicted(t, "--with", "nowhere", "--", "vllm", "serve", "Qwen/Qwen3-8B"); code != console.ExitUsage || !strings.Contains(stderr, "nowhere") {
		t.Errorf("no run: exit %d\n%s", code, stderr)
	}
}

// TestPredictWithVersion: a run that does not say its engine's version is of the version that is
// asked about, and then tells of its predictions.
func TestPredictWithVersion(t *testing.T) {
	k, err := sim.Default().With(sim.Set{Values: map[string]float64{"site_device": 0.7, "site_host": 1.5}})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "run")
	plan.SimulatedRun(t, dir, "vllm serve Qwen/Qwen3-8B", k, calib.Load{Requests: 200, Input: calib.Lengths{Mean: 500}, Output: calib.Lengths{Mean: 100}}, nil)
	throughput := func(more ...string) float64 {
		args := append([]string{"--json", "--engine-version", "0.25.1", "--num-prompts", "200", "--random-input-len", "500", "--random-output-len", "100"}, more...)
		stdout, stderr, code := predicted(t, append(args, "--", "vllm", "serve", "Qwen/Qwen3-8B")...)
		var table forecast.Table
		if err := json.Unmarshal([]byte(stdout), &table); code != console.ExitDone || err != nil {
			t.Fatalf("exit %d, %v\n%s", code, err, stderr)
		}
		return table.Rows[0].Figures[calib.Throughput].Value
	}
	before, after := throughput(), throughput("--with", dir, "--simulated")
	if after > 0.85*before {
		t.Errorf("throughput is %.0f before and %.0f after a run of a slow machine", before, after)
	}
}

// TestCalibratePlan: three runs for a device that nobody has measured, as commands to copy.
func TestCalibratePlan(t *testing.T) {
	code, stdout, stderr := calibrating("--plan", "--gpu", "l40s", "--", "vllm", "serve", "Qwen/Qwen3-8B")
	if code != console.ExitDone || strings.Count(stdout, "perflab bench --dataset-name random") != 3 || !strings.HasPrefix(stdout, "SIMULATED") || !strings.Contains(stdout, "--with RUN") {
		t.Errorf("exit %d\n%s\n%s", code, stdout, stderr)
	}
	for want, args := range map[string][]string{
		"needs --gpu": {"--plan", "--", "vllm", "serve", "Qwen/Qwen3-8B"},
		"plan runs":   {"--plan", "--gpu", "l40s", "--", "nothing"},
	} {
		if code, _, stderr := calibrating(args...); code != console.ExitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%v: exit %d, %s", args, code, stderr)
		}
	}
}
