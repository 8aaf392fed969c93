package plan_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"perflab/internal/calib"
	"perflab/internal/cli"
	"perflab/internal/cli/console"
	"perflab/internal/cli/plan"
	"perflab/internal/result"
	"perflab/internal/sim"
)

// calibrating runs perflab calibrate and returns what it printed.
func calibrating(args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = cli.Main(console.Env{Args: append([]string{"calibrate"}, args...), Stdout: &out, Stderr: &err, Version: "test"})
	return code, out.String(), err.String()
}

// known is a simulator whose constants are known, and other than the priors.
func known(t *testing.T, values map[string]float64) *sim.Constants {
	t.Helper()
	k, err := sim.Priors().With(sim.Set{Accelerator: "h100-sxm", Values: values})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// Runs of a simulator with known constants give the constants back, the whole
// way over run directories.
func TestCalibrateRecovers(t *testing.T) {
	values := map[string]float64{"gemm_compute": 0.45, "gemm_bandwidth": 0.60, "t_step": 4.5, "f_req": 4}
	k, dir := known(t, values), t.TempDir()
	for i, l := range []calib.Load{
		{Requests: 60, Input: calib.Lengths{Mean: 2000}, Output: calib.Lengths{Mean: 50}},
		{Requests: 30, Input: calib.Lengths{Mean: 100}, Output: calib.Lengths{Mean: 100}},
		{Requests: 4, Input: calib.Lengths{Mean: 64}, Output: calib.Lengths{Mean: 200}},
		{Requests: 60, Rate: 4, Arrival: "constant", Input: calib.Lengths{Mean: 500}, Output: calib.Lengths{Mean: 80}},
		{Requests: 300, Input: calib.Lengths{Mean: 30}, Output: calib.Lengths{Mean: 4}},
		{Requests: 60, Concurrency: 8, Input: calib.Lengths{Mean: 300}, Output: calib.Lengths{Mean: 60}},
	} {
		command := "vllm serve Qwen/Qwen3-8B"
		if i == 2 { // weights against the time of a layer
			command = "vllm serve Qwen/Qwen3-32B --max-model-len 8192"
		}
		plan.SimulatedRun(t, filepath.Join(dir, fmt.Sprintf("run%d", i)), command, k, l, func(h *result.Header) { h.Workload = fmt.Sprint("load", i) })
	}
	if code, _, stderr := calibrating(dir, "--gpu", "h100-sxm"); code != console.ExitFailed || !strings.Contains(stderr, "SIMULATED") || !strings.Contains(stderr, "run4, run5\n") {
		t.Errorf("simulated runs without --simulated: exit %d\n%s", code, stderr)
	}
	file := filepath.Join(t.TempDir(), "c.json")
	code, stdout, stderr := calibrating(dir, "--gpu", "h100-sxm", "--simulated", "--out", file)
	if code != console.ExitDone || !strings.HasPrefix(stdout, "SIMULATED") {
		t.Fatalf("exit %d\n%s\n%s", code, stdout, stderr)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var c calib.Calibration
	if err := json.Unmarshal(data, &c); err != nil {
		t.Fatal(err)
	}
	fitted, err := sim.Priors().With(c.Sets...)
	if err != nil {
		t.Fatal(err)
	}
	// What belongs to the device and to its site, or to the host and to its site, is one
	// product to runs of one site, and so is the engine's factor there, which is one of times.
	of := sim.Subject{Engine: "vllm", Accelerator: "h100-sxm", Format: "bf16", Family: "qwen3"}
	parts := map[string][]string{"gemm_compute": {"site_device", "rate_family"}, "gemm_bandwidth": {"site_device", "rate_family"}, "t_step": {"site_host"}, "f_req": {"site_host", "f_family"}}
	value := func(k *sim.Constants, name string) float64 {
		v := k.Value(of, name)
		if name == "t_step" { // what runs tell is the host's time of a step of 36 layers
			v += 36e-3 * k.Value(of, "t_layer")
		}
		for _, part := range parts[name] {
			v *= k.Value(of, part)
		}
		if strings.HasPrefix(name, "gemm_") {
			return v / k.Value(of, "site_engine")
		}
		return v * k.Value(of, "site_engine")
	}
	truth, err := sim.Priors().With(sim.Set{Values: values})
	if err != nil {
		t.Fatal(err)
	}
	for name := range values {
		want, prior, got := value(truth, name), value(sim.Priors(), name), value(fitted, name)
		if math.Abs(math.Log(got/want)) > 0.35*math.Abs(math.Log(prior/want)) {
			t.Errorf("%s is %.4g, want %.4g (prior %.4g)", name, got, want, prior)
		}
	}
	for _, e := range c.Errors {
		if e.Metric == calib.Throughput && (math.Abs(e.Bias) > 0.05 || e.Spread > 0.35) {
			t.Errorf("held out: %+v", e)
		}
	}
	e := c.Seen
	if len(e) != 1 || e[0].Rate != [2]float64{4, 4} || e[0].Burst != [2]int{4, 300} || e[0].Input != [2]float64{30, 2000} || c.Runs != 6 || len(c.Note) != 1 {
		t.Errorf("seen %+v, %d runs, notes %q", e, c.Runs, c.Note)
	}
	if code, _, stderr := calibrating(dir, "--out", file); code != console.ExitUsage || !strings.Contains(stderr, "exists: give --out another name") {
		t.Errorf("over a file: exit %d: %s", code, stderr)
	}
}
