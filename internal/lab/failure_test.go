package lab

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"perflab/internal/deploy"
	"perflab/internal/outcome"
	"perflab/internal/rundir"
	"perflab/internal/study"
	"perflab/internal/test/deploytest"
	"perflab/internal/tune"
	"perflab/internal/tune/journal"
)

// twoEngines is a survey of an engine that is tried and of one that is in order.
const twoEngines = `name: t
strategy: survey
model: Qwen/Qwen3-8B
hardware: {gpu: h100-sxm, gpus: 1, check: off}
objective: {metric: total_token_throughput}
workloads:
  - {name: a, dataset_name: random, num_prompts: 10, random_input_len: 100, random_output_len: 2}
candidates:
  - {label: tried, engine: vllm}
  - {label: sound, engine: sglang}
runtime: {kind: process, ready_timeout_s: 10}
bench: {num_warmups: 0, telemetry_interval_s: 0}
engines: {vllm: {env: [ENV]}}
`

// trialOf is what a study that was run knows of a trial.
type trialOf struct {
	dir     string
	study   outcome.Study
	trial   trialRecord
	journal []string // what was noted of the trial
	pids    string   // directory of the stand-ins' process ids
}

// failing runs a study whose first candidate's engine is given env; wrong is the error of
// the study, if any.
func failing(t *testing.T, text string, env ...string) (trialOf, error) {
	t.Helper()
	return failingFenced(t, deploy.AnyFence, text, env...)
}

func failingFenced(t *testing.T, fence deploy.Fence, text string, env ...string) (o trialOf, wrong error) {
	t.Helper()
	o.pids = filepath.Join(t.TempDir(), "pids")
	if err := os.Mkdir(o.pids, 0o755); err != nil {
		t.Fatal(err)
	}
	text = strings.Replace(text, "ENV", strings.Join(append(env, pidsEnv+"="+o.pids), ", "), 1)
	s, err := study.Parse("t.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o.dir = filepath.Join(t.TempDir(), "out")
	o.study, wrong = Tune(t.Context(), s, []byte(text), Options{Dir: o.dir, grace: time.Second, fence: fence, pauses: []time.Duration{10 * time.Millisecond, 20 * time.Millisecond}})
	if err := rundir.ReadJSON(filepath.Join(o.dir, "trials", "001", trialFile), &o.trial); err != nil {
		t.Fatalf("%v (%v)", err, wrong)
	}
	b, err := os.ReadFile(filepath.Join(o.dir, journalFile))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var r journal.Record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		busy := strings.Contains(string(r.Data), "void, measured again") // of the machine, not of an engine
		if r.Kind == journal.KindInfra && r.Trial == 1 && !busy {
			o.journal = append(o.journal, string(r.Data))
		}
	}
	return o, wrong
}

// status is that of a trial, and measured where nothing but this machine, busy with other tests,
// made it void however often it was measured: these tests are of what engines do.
func status(r outcome.Trial) string {
	if r.Status == tune.Void && strings.Contains(r.Reason, "client-bound") {
		return tune.Measured
	}
	return r.Status
}

// A failure of each kind, by engines that behave so.
func TestFailures(t *testing.T) {
	const busy = "Free memory on device (10.12/79.11 GiB) on startup is less than desired GPU memory utilization (0.9, 71.2 GiB)"
	sglangTried := []string{"{label: sound, engine: sglang}", "{label: sound, engine: vllm}"}
	for _, tt := range []struct {
		name     string
		env      []string
		replace  []string // in the study
		status   string
		class    string
		reason   string
		advice   string
		launches int
		infra    string   // noted in the journal, as often as is launched again
		notes    []string // how they begin
		command  string   // what it says
	}{
		{name: "out of memory at start", env: []string{"LAB_ENGINE=oom"},
			status: tune.Refused, class: "oom-start", reason: "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB",
			advice: "use more GPUs, a smaller format, a lower gpu_memory_utilization or fewer sequences; try gpu_memory_utilization=", launches: 1},
		{name: "KV cache too small", env: []string{"LAB_ENGINE=kv"},
			status: tune.Refused, class: "kv-memory", reason: "the estimated maximum model length is 22208", advice: "; try max_model_len=22208", launches: 1},
		{name: "not divisible", env: []string{"LAB_ENGINE=heads"},
			status: tune.Refused, class: "heads", reason: "Total number of attention heads (32)", advice: "32 attention heads do not divide by tp 5: use a tp that divides them; try tp=4", launches: 1},
		{name: "no kernel", env: []string{"LAB_ENGINE=kernel"},
			status: tune.Refused, class: "kernel", reason: "no kernel image is available", advice: "use another checkpoint format, engine or device", launches: 1},
		{name: "a rule of ours", replace: []string{"{label: tried, engine: vllm}", "{label: tried, engine: vllm, set: {tp: 3}}"},
			status: tune.Refused, class: "gpus", reason: "the configuration takes 3 GPUs (tp 3 x pp 1 x dp 1), and there are 1"},
		{name: "a flag that its help lacks", env: []string{"LAB_LACKS=--async-scheduling"},
			replace: []string{"vllm: {env", "vllm: {flags: [--async-scheduling], env"},
			status:  tune.Refused, class: "flag", reason: "--async-scheduling (overlap_scheduling) is not in this vLLM (0.11.0 by its own account)"},
		{name: "another spelling than its version's", env: []string{"LAB_LACKS=--cuda-graph-max-bs"}, replace: slices.Concat(sglangTried, []string{"vllm: {env", "sglang: {env", "engine: vllm}", "engine: sglang, set: {max_cudagraph_capture_size: 512}}"}),
			status: tune.Measured, launches: 1, command: "--cuda-graph-max-bs-decode 512"},
		{name: "newer than the catalogue", env: []string{"LAB_LACKS=--cuda-graph-max-bs-decode", "LAB_VERSION=99.0.1"},
			replace: slices.Concat(sglangTried, []string{"engine: vllm}", "engine: sglang}", "vllm: {env", "sglang: {flags: [--cuda-graph-max-bs-decode, 512], env"}),
			status:  tune.Measured, launches: 1, command: "--cuda-graph-max-bs 512", notes: []string{"perflab was not tried with SGLang 99.0.1, and knows SGLang up to 0."}},
		{name: "an unknown flag without help", env: []string{"LAB_ENGINE=flag", "LAB_NOHELP=1"},
			status: tune.Refused, class: "flag", reason: "error: unrecognized arguments: --no-such-flag", advice: "check the engine's version", launches: 1,
			notes: []string{"The flags of vLLM could not be checked against its own help: "}},
		{name: "a request that does not fit", replace: []string{"engine: vllm}", "engine: vllm, set: {max_model_len: 96}}"},
			status: tune.Refused, class: "request", reason: "workload a: a request of 1"},
		{name: "memory held by another", env: []string{"LAB_ENGINE=busy"},
			status: tune.Failed, reason: busy, launches: 3, infra: busy},
		{name: "a model that no network brings", env: []string{"LAB_ENGINE=offline"},
			status: tune.Failed, reason: "LocalEntryNotFoundError", launches: 1},
		{name: "a crash of no known kind", env: []string{"LAB_ENGINE=crash"},
			status: tune.Failed, reason: "something that nobody has seen before", launches: 3, infra: "something that nobody has seen before"},
		{name: "hangs at start", env: []string{"LAB_ENGINE=hang"}, replace: []string{"ready_timeout_s: 10", "ready_timeout_s: 1"},
			status: tune.Failed, reason: "not ready after 1s (loading weights); its last line is", launches: 1},
		{name: "is silent at start", env: []string{"LAB_ENGINE=hang"}, replace: []string{"ready_timeout_s: 10", "silence_timeout_s: 4"},
			status: tune.Failed, reason: "not ready, and its log shows no progress for 4s (loading weights); its last line is", launches: 1},
		{name: "a port that is taken", env: []string{"LAB_ENGINE=taken", "LAB_DIES=ONCE"}, status: tune.Measured, launches: 1},
		{name: "out of memory under load", env: []string{"LAB_ENGINE=oom-load"},
			status: tune.Refused, class: "oom-load", reason: "the engine died under a: replica 0 died in the middle (exit status 1): torch.OutOfMemoryError", advice: "lower gpu_memory_utilization", launches: 1},
		{name: "dies once without a word", env: []string{"LAB_DIES=ONCE"}, replace: []string{"gpus: 1", "gpus: 3", "engine: vllm}", "engine: vllm, set: {tp: 2}}"},
			status: tune.Measured, launches: 2, infra: "exit status 7", notes: []string{"1 of 3 GPUs are used by no replica (2); they count as allocated."}},
		{name: "dies always without a word", env: []string{"LAB_ENGINE=dies"}, status: tune.Failed, reason: "the engine died under a: replica 0 died in the middle (exit status 7)", launches: 2, infra: "launched again"},
		{name: "answers with errors", env: []string{"LAB_ENGINE=errors"}, status: tune.Refused, reason: "a: ", launches: 1},
		{name: "ignores SIGTERM", env: []string{"LAB_ENGINE=stubborn"}, status: tune.Measured, launches: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for i := range tt.env {
				tt.env[i] = strings.Replace(tt.env[i], "ONCE", filepath.Join(t.TempDir(), "once"), 1)
			}
			o, err := failing(t, strings.NewReplacer(tt.replace...).Replace(twoEngines), tt.env...)
			if err != nil {
				t.Fatalf("the study: %v", err)
			}
			r := o.trial
			if status(r.Trial) != tt.status || r.Class != tt.class || !strings.Contains(r.Reason, tt.reason) || !strings.Contains(r.Advice, tt.advice) || tt.advice == "" && r.Advice != "" {
				t.Errorf("trial is %s (%s): %s\nadvice: %s", r.Status, r.Class, r.Reason, r.Advice)
			}
			if r.Launches != tt.launches {
				t.Errorf("%d launches, want %d", r.Launches, tt.launches)
			}
			if best := o.study.Recommended; tt.command != "" && (!strings.Contains(r.Command+" ", " "+tt.command+" ") || best == nil && r.Status == tune.Measured || best != nil && best.Trial == 1 && best.Command != r.Command) {
				t.Errorf("the command is %q, want %q; recommended %+v", r.Command, tt.command, best)
			}
			o.noted(t, tt.infra, max(tt.launches-1, 0))
			o.wentOn(t)
			o.nothingLeft(t)
			if !slices.EqualFunc(r.Notes, tt.notes, strings.HasPrefix) {
				t.Errorf("notes %q, want %q", r.Notes, tt.notes)
			}
		})
	}
}

// noted checks what the journal says of launches that were repeated.
func (o trialOf) noted(t *testing.T, what string, times int) {
	t.Helper()
	if what == "" {
		times = 0
	}
	if len(o.journal) != times {
		t.Errorf("the journal notes %q, want %d notes", o.journal, times)
	}
	for _, note := range o.journal {
		if !strings.Contains(note, what) {
			t.Errorf("the journal notes %s, without %q", note, what)
		}
	}
}

// wentOn checks that the study measured the sound engine all the same, and says so.
func (o trialOf) wentOn(t *testing.T) {
	t.Helper()
	f := o.study
	if len(f.Trials) != 2 || status(f.Trials[1]) != tune.Measured || f.Partial {
		t.Fatalf("%d trials, partial %v: %+v", len(f.Trials), f.Partial, f.Trials)
	}
	if f.Trials[1].Status == tune.Measured && (f.Recommended == nil || o.trial.Status != tune.Measured && f.Recommended.Trial != 2) {
		t.Errorf("recommended is %+v (%s)", f.Recommended, f.Verdict)
	}
	if o.trial.Launches == 0 { // refused before: not even a log
		if _, err := os.Stat(filepath.Join(o.dir, "trials", "001", "logs")); !os.IsNotExist(err) {
			t.Errorf("logs of a launch: %v", err)
		}
		if o.trial.GPUSeconds != 0 {
			t.Errorf("%v GPU seconds without a launch", o.trial.GPUSeconds)
		}
		return
	}
	if o.trial.GPUSeconds <= 0 || o.trial.Log == "" && o.trial.Status != tune.Failed {
		t.Errorf("%v GPU seconds, log %q", o.trial.GPUSeconds, o.trial.Log)
	}
}

// nothingLeft checks that no engine runs and no record leads to one.
func (o trialOf) nothingLeft(t *testing.T) {
	t.Helper()
	deploytest.NothingLeft(t, deploy.Spec{Dir: filepath.Dir(o.pids)}, 0)
	if left, err := filepath.Glob(filepath.Join(o.dir, "trials", "*", "logs", "processes.json")); err != nil || len(left) > 0 {
		t.Errorf("%v (%v)", left, err)
	}
}

// An engine of which something keeps the port stops the study: what came after would be
// measured beside it. The trial stands. A guard would find and end it.
func TestLeakedPort(t *testing.T) {
	t.Parallel()
	o, err := failingFenced(t, deploy.NoFence, twoEngines, "LAB_ENGINE=leak")
	for _, pid := range deploytest.PIDs(t, filepath.Dir(o.pids)) {
		if deploytest.Alive(pid) {
			defer syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	if _, ok := errors.AsType[*deploy.InfraError](err); !ok || !strings.Contains(err.Error(), "an engine of the trial before is still there") || !strings.Contains(err.Error(), "still served") {
		t.Errorf("the study ends with %v", err)
	}
	if r := o.trial; status(r.Trial) != tune.Measured || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "Its engine could not be stopped") {
		t.Errorf("trial is %s (%s), notes %q", r.Status, r.Reason, r.Notes)
	}
	if !o.study.Partial || len(o.study.Trials) != 1 {
		t.Errorf("partial %v, %d trials", o.study.Partial, len(o.study.Trials))
	}
}

// What an engine prints in confidence is in its log alone.
func TestPrintedSecrets(t *testing.T) {
	t.Parallel()
	o, err := failing(t, twoEngines, "LAB_ENGINE=secret")
	if err != nil {
		t.Fatal(err)
	}
	if o.trial.Status != tune.Failed || !strings.Contains(o.trial.Reason, "cannot read") {
		t.Errorf("trial is %s: %s", o.trial.Status, o.trial.Reason)
	}
	for _, name := range []string{rundir.StudyFile, journalFile, "trials/001/" + trialFile} {
		b, err := os.ReadFile(filepath.Join(o.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{"hunter2", "hf_abc", "sk-abc"} {
			if strings.Contains(string(b), secret) {
				t.Errorf("%s holds %s", name, secret)
			}
		}
	}
}

// A search whose baseline does not start goes on, and says why it can give no gain.
func TestBaselineThatDoesNotStart(t *testing.T) {
	staged := strings.NewReplacer("strategy: survey\n", "", "candidates:\n  - {label: tried, engine: vllm}\n  - {label: sound, engine: sglang}",
		"baseline: {label: tried, engine: vllm}\nbudget: {trials: 12}\nstages: [{name: engine, try: [{label: sound, engine: sglang}]}]").Replace(twoEngines)
	for behaviour, want := range map[string]string{ // why the baseline has no figure
		"oom":  "refused: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. GPU 0 has a total capacity of 79.11 GiB of which 1.03 GiB is free",
		"busy": "failed: start vllm: replica 0 ended before it was ready",
	} {
		t.Run(behaviour, func(t *testing.T) {
			t.Parallel()
			o, err := failing(t, staged, "LAB_ENGINE="+behaviour)
			if err != nil {
				t.Fatal(err)
			}
			if c := o.study.Conclusion; c.Kind != tune.NoBaseline || !strings.HasPrefix(c.Cause.Status+": "+c.Cause.Reason, want) {
				t.Errorf("with %d trials the study concludes: %+v", len(o.study.Trials), c)
			}
			o.nothingLeft(t)
		})
	}
}
