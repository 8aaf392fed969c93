package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"perflab/internal/calib"
	"perflab/internal/cli/console"
	"perflab/internal/field"
	"perflab/internal/forecast"
	"perflab/internal/report/prediction"
	"perflab/internal/result"
	"perflab/internal/sim"
)

// SimulatedRun writes a run directory as a client of that simulator would have.
func SimulatedRun(t *testing.T, dir, command string, k *sim.Constants, l calib.Load, change func(*result.Header)) {
	t.Helper()
	o := calib.Observation{Command: command, GPU: "h100-sxm", GPUs: 1}
	if err := o.Resolve(); err != nil {
		t.Fatal(err)
	}
	jobs := slices.Collect(l.Jobs(7))
	out, err := calib.Calls(o.Config, 1, slices.Values(jobs), sim.ReplayOptions{MaxConcurrency: l.Concurrency, Constants: k})
	if err != nil {
		t.Fatal(err)
	}
	h := result.Header{
		Schema: "perflab.run/1", Simulated: true, Started: time.Unix(0, 0), Model: o.Config.Model.Name, Targets: []string{"http://h"},
		Workload: "random", Spec: fmt.Appendf(nil, `{"workload":{"dataset_name":"random","arrival":%q}}`, l.Arrival),
		Requests: l.Requests, Rate: l.Rate, Limit: l.Concurrency, Command: command,
	}
	if change != nil {
		change(&h)
	}
	var calls []byte
	for c := range out {
		calls = append(c.AppendJSON(calls), '\n')
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	head, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	client, err := json.Marshal(result.Client{Wall: time.Second, CPU: time.Millisecond, Procs: 1})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"header.json": head, "calls.jsonl": calls, "client.json": client} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Observed reads runs on an H100, of simulators too.
func Observed(paths ...string) (*forecast.Observer, error) {
	f := knownFlags{gpu: "h100-sxm", simulated: true}
	return f.observer(console.Env{}, paths)
}

// What a run lacks is said, run by run.
func TestCalibrateLeavesOut(t *testing.T) {
	dir := t.TempDir()
	l := calib.Load{Requests: 3, Input: calib.Lengths{Mean: 10}, Output: calib.Lengths{Mean: 5}}
	write := func(name, command string, change func(*result.Header)) {
		SimulatedRun(t, filepath.Join(dir, name), "vllm serve Qwen/Qwen3-8B", nil, l, func(h *result.Header) {
			h.Command = command
			if change != nil {
				change(h)
			}
		})
	}
	write("good", "vllm serve Qwen/Qwen3-8B", nil)
	write("predicted", "vllm serve Qwen/Qwen3-8B", func(h *result.Header) { h.Predicted = true })
	write("nocommand", "", nil)
	write("flag", "vllm serve Qwen/Qwen3-8B --max-modl-len 5", nil)
	write("model", "vllm serve Nobody/Knows-9B", nil)
	write("big", "vllm serve Qwen/Qwen3-8B -tp 4", nil)
	write("sharing", "vllm serve Qwen/Qwen3-8B", func(h *result.Header) { h.Sharing = true })
	if err := os.Remove(filepath.Join(dir, "sharing", "client.json")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "notes.md"), []byte("nothing here\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	obs := filepath.Join(dir, "obs.json")
	if err := os.WriteFile(obs, []byte(`[{"id": "a", "load": {}, "command": ""}]`), 0o644); err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	o, err := (&knownFlags{simulated: true, gpu: "h100-sxm", gpus: 2}).observer(console.Env{Stderr: &errs}, []string{dir, filepath.Join(dir, "none"), filepath.Join(dir, "good")})
	if err != nil {
		t.Fatal(err)
	}
	if len(o.Observations) != 1 || !strings.HasSuffix(o.Observations[0].ID, "good") || len(o.Observations[0].Load.Exact) != 3 || o.Observations[0].Load.Exact[0].Input != 10 || o.Observations[0].Load.Exact[0].Output != 5 {
		t.Errorf("%+v", o.Observations)
	}
	for name, want := range map[string]string{
		"predicted": "it was predicted", "nocommand": "serving command is not recorded", "flag": "unrecognized arguments", "model": "unknown model",
		"big": "takes 4 GPUs", "sharing": "stopped before its end", "notes.md": "no result was found", "obs.json": "study is missing", "none": "cannot be read", "good": "was read already",
	} {
		if !slices.ContainsFunc(o.Omitted, func(u forecast.Omission) bool {
			return strings.HasSuffix(u.Place, name) && strings.Contains(u.Why, want)
		}) {
			t.Errorf("%s: want %q in\n%s", name, want, prediction.OmissionsText(o.Omitted))
		}
	}
	if len(o.Omitted) != 10 {
		t.Errorf("left out:\n%s", prediction.OmissionsText(o.Omitted))
	}
	// What --command and --gpu say, they say of runs that do not.
	o, err = (&knownFlags{simulated: true, command: "vllm serve Qwen/Qwen3-8B"}).observer(console.Env{}, []string{filepath.Join(dir, "nocommand")})
	if err != nil || len(o.Observations) != 0 || !strings.Contains(o.Omitted[0].Why, "hardware is not recorded: give it by gpu") {
		t.Errorf("%v %+v", err, o)
	}
	o, err = (&knownFlags{simulated: true, command: "vllm serve Qwen/Qwen3-8B", gpu: "l40s"}).observer(console.Env{}, []string{filepath.Join(dir, "nocommand")})
	if err != nil || len(o.Observations) != 1 || o.Observations[0].GPUs != 1 || o.Observations[0].Config.GPU.Name != "l40s" {
		t.Errorf("%v %+v", err, o)
	}
}

const oneBlock = "============ Serving Benchmark Result ============\nSuccessful requests:                     100\nBenchmark duration (s):                  10.00\n" +
	"Total input tokens:                      102400\nTotal generated tokens:                  12800\nRequest throughput (req/s):              10.00\n" +
	"Output token throughput (tok/s):         1280.00\nPeak concurrent requests:                100.00\nTotal Token throughput (tok/s):          11520.00\n" +
	"---------------Time to First Token----------------\nMean TTFT (ms):                          3000.00\n" +
	"-----Time per Output Token (excl. 1st token)------\nMean TPOT (ms):                          50.00\n" +
	"==================================================\n"

// A document's own facts make an observation: command, hardware, load.
func TestObserveDocument(t *testing.T) {
	for _, c := range []struct {
		name, text string
		flags      knownFlags
		want       string // of the reason; "" where it is taken
	}{
		{"whole", "# Qwen3-8B\n\n## Hardware\n\n2 x NVIDIA H100 SXM GPUs\n\n## Result\n\n```bash\nvllm serve Qwen/Qwen3-8B -tp 2\n```\n\n```\n" + oneBlock + "```\n", knownFlags{}, ""},
		{"vague", "# Qwen3-8B\n\n## Hardware\n\nNVIDIA H100 GPUs\n\n## Result\n\n```bash\nvllm serve Qwen/Qwen3-8B -tp 2\n```\n\n```\n" + oneBlock + "```\n", knownFlags{}, "say which by gpu"},
		{"told", "# Qwen3-8B\n\n## Hardware\n\nNVIDIA H100 GPUs\n\n## Result\n\n```bash\nvllm serve Qwen/Qwen3-8B -tp 2\n```\n\n```\n" + oneBlock + "```\n", knownFlags{gpu: "h100-pcie"}, ""},
		{"h200", "# Qwen3-8B\n\n## Hardware\n\nNVIDIA H200\n\n## Result\n\n```bash\nvllm serve Qwen/Qwen3-8B -tp 2\n```\n\n```\n" + oneBlock + "```\n", knownFlags{gpu: "h100-pcie"}, ""}, // what the text says stands
		{"mislabelled", "# Qwen3-8B\n\n## Hardware\n\nNVIDIA H200\n\n## SGLang\n\n```bash\nvllm serve Qwen/Qwen3-8B -tp 2\n```\n\n```\n" + oneBlock + "```\n", knownFlags{}, "is in doubt"},
	} {
		path := filepath.Join(t.TempDir(), c.name+".md")
		if err := os.WriteFile(path, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		o, err := c.flags.observer(console.Env{}, []string{path})
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case c.want != "" && (len(o.Observations) > 0 || len(o.Omitted) == 0 || !strings.Contains(prediction.OmissionsText(o.Omitted), c.want)):
			t.Errorf("%s: %d taken, left out:\n%swant %q", c.name, len(o.Observations), prediction.OmissionsText(o.Omitted), c.want)
		case c.want == "" && len(o.Observations) != 1:
			t.Errorf("%s: left out:\n%s", c.name, prediction.OmissionsText(o.Omitted))
		case c.want == "":
			x := o.Observations[0]
			gpu := map[string]string{"whole": "h100-sxm", "told": "h100-pcie", "h200": "h200"}[c.name]
			if x.GPU != gpu || x.Config.TP != 2 || x.GPUs != 2 || x.Load.Requests != 100 || x.Load.Rate != 0 || x.Load.Input.Mean != 1024 || x.Figures[calib.MeanTTFT] != 3000 || x.Figures[calib.Throughput] != 11520 {
				t.Errorf("%s: %+v", c.name, x)
			}
		}
	}
}

// What a run does not say is asked for by the flag that gives it.
func TestOmissionsNameFlags(t *testing.T) {
	var o forecast.Observer
	o.Omit("a", field.Errorf("", "its hardware is not recorded: give it by [gpu]"))
	o.Omitf("b", "it is void")
	got := withFlags(o.Omitted)
	if got[0].Why != "its hardware is not recorded: give it by --gpu" || got[1].Why != "it is void" {
		t.Errorf("%+v", got)
	}
}

// TestVersions: commands without a version are of that of the runs that correct them, where those
// of an engine agree.
func TestVersions(t *testing.T) {
	run := func(engine, version string) (o calib.Observation) {
		o.Config.Engine, o.Version = engine, version
		return o
	}
	got := versions([]calib.Observation{run("vllm", "0.25.1"), run("sglang", "0.5.9"), run("vllm", "0.25.1"), run("sglang", "0.5.23"), run("sglang", "0.5.9"), run("trtllm", "")})
	if got["vllm"] != "0.25.1" || got["sglang"] != "" || got["trtllm"] != "" {
		t.Errorf("versions are %q", got)
	}
	f := predictFlags{ran: got}
	cmd, err := f.parse([]string{"vllm", "serve", "Qwen/Qwen3-8B"})
	if err != nil || cmd.Version != "0.25.1" {
		t.Errorf("the command is of version %q, %v", cmd.Version, err)
	}
	f.version = "0.11.0"
	if cmd, err = f.parse([]string{"vllm", "serve", "Qwen/Qwen3-8B"}); err != nil || cmd.Version != "0.11.0" {
		t.Errorf("the command is of version %q where one is given, %v", cmd.Version, err)
	}
}
