package lab

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"perflab/internal/deploy"
	"perflab/internal/outcome"
	"perflab/internal/study"
	"perflab/internal/test/dockertest"
)

// Engines are dealt what the environment shows perflab, and nothing beside it: what else the
// machine has is other people's.
func TestDealtFromThePool(t *testing.T) {
	t.Setenv("CUDA_VISIBLE_DEVICES", "3,GPU-1")
	bin := t.TempDir()
	link(bin, "nvidia-smi")
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	o, err := failing(t, strings.Replace(twoEngines, "gpus: 1, check: off", "gpus: 2", 1))
	if err != nil || o.trial.Status != "ok" {
		t.Fatalf("%v, trial is %s: %s", err, o.trial.Status, o.trial.Reason)
	}
	var saw []string
	entries, err := os.ReadDir(o.pids)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		saw = append(saw, readFile(t, filepath.Join(o.pids, e.Name())))
	}
	slices.Sort(saw)
	if pool := []string{"3", "GPU-1"}; !slices.Equal(saw, pool) || !slices.Equal(o.study.Devices, pool) {
		t.Errorf("engines saw %q, and the study was dealt %q", saw, o.study.Devices)
	}
	// What is there is in the facts, and not what the study says.
	busy := "Before the first launch process 4711 (/usr/bin/python3) holds 1024 MiB of device GPU-1 on this machine: figures of this study may be of both."
	if o.study.Hardware != "2 x NVIDIA H100 80GB HBM3 on one node" || !slices.Contains(o.study.Notes, busy) {
		t.Errorf("hardware %q, notes %q", o.study.Hardware, o.study.Notes)
	}
}

// What a study needs beyond the pool is refused before there is anything.
func TestBeyondThePool(t *testing.T) {
	for _, tt := range []struct{ shown, hardware, wrong string }{
		{"4,5", "gpus: 3", "hardware of the study: CUDA_VISIBLE_DEVICES of the environment shows devices 4, 5, and 3 are needed: show more, or ask for fewer"},
		{"", "gpus: 1", "hardware of the study: CUDA_VISIBLE_DEVICES of the environment shows no device, and 1 is needed: show more, or ask for fewer"},
		{"4,5", "gpus: 1, devices: [0]", "hardware of the study: device 0 is wanted, and CUDA_VISIBLE_DEVICES of the environment shows devices 4, 5: name one of those, or change the variable"},
		{"4,all", "gpus: 1", `CUDA_VISIBLE_DEVICES=4,all of the environment: "all" names no device: write its index, or its UUID (GPU-..., MIG-...)`},
	} {
		t.Setenv("CUDA_VISIBLE_DEVICES", tt.shown)
		text := strings.Replace(strings.Replace(twoEngines, "gpus: 1", tt.hardware, 1), "ENV", "A=b", 1)
		s, err := study.Parse("t.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "out")
		if _, err := Tune(t.Context(), s, []byte(text), Options{Dir: dir, grace: time.Second, fence: deploy.AnyFence}); err == nil || err.Error() != tt.wrong {
			t.Errorf("%s of %s: %v", tt.hardware, tt.shown, err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: a directory was made", tt.hardware)
		}
	}
}

// answers are a machine's to the commands of the look before the first launch: gpus and apps
// are what nvidia-smi prints, "" where it is not there; other commands have the answers of
// rest.
type answers struct {
	gpus, apps string
	rest       map[string]string // by a part of the command
	asked      []string
}

func (a *answers) answer(_ context.Context, _ string, argv []string) (string, error) {
	line := strings.Join(argv, " ")
	a.asked = append(a.asked, line)
	for part, text := range a.rest {
		if strings.Contains(line, part) {
			return text, nil
		}
	}
	switch {
	case a.gpus != "" && strings.Contains(line, "--query-gpu="):
		return a.gpus, nil
	case a.gpus != "" && strings.Contains(line, "--query-compute-apps="):
		return a.apps, nil
	}
	return "", &deploy.ExitError{Argv: argv, Code: 127}
}

const (
	fourH100 = "0, GPU-a0, NVIDIA H100 80GB HBM3, 81559, 570.86.15, 1980, 700.00, 700.00, Disabled\n" +
		"1, GPU-a1, NVIDIA H100 80GB HBM3, 81559, 570.86.15, 1980, 700.00, 700.00, Disabled\n" +
		"2, GPU-a2, NVIDIA H100 80GB HBM3, 81559, 570.86.15, 1980, 500.00, 700.00, Disabled\n" +
		"3, GPU-a3, NVIDIA H100 80GB HBM3, 81559, 570.86.15, 1980, 700.00, 700.00, Disabled\n"
	other = "GPU-a0, 41, python3, 70000\nGPU-a2, 4711, /usr/bin/python3, 1024\n"
)

// What the machine has is what the report names; what it has not ends the study with one
// sentence.
func TestLooksAtTheHardware(t *testing.T) {
	a100 := strings.ReplaceAll(fourH100, "NVIDIA H100 80GB HBM3, 81559", "NVIDIA A100-SXM4-40GB, 40960")
	for _, tt := range []struct {
		name     string
		hardware string
		machine  answers
		title    string
		notes    []string
		wrong    string
	}{
		{name: "as it is", hardware: "gpu: h100-sxm, gpus: 2", machine: answers{gpus: fourH100, apps: other}, title: "NVIDIA H100 80GB HBM3",
			notes: []string{"Found on this machine as device 0, 1: NVIDIA H100 80GB HBM3, 79.6 GiB, driver 570.86.15, SM clock up to 1980 MHz, power cap 700 W.",
				"Before the first launch process 41 (python3) holds 70000 MiB of device 0 on this machine: figures of this study may be of both."}},
		{name: "named devices", hardware: "gpu: h100-sxm, gpus: 2, devices: [GPU-a3, 2]", machine: answers{gpus: fourH100, apps: other}, title: "NVIDIA H100 80GB HBM3",
			notes: []string{"Found on this machine as device GPU-a3: NVIDIA H100 80GB HBM3, 79.6 GiB, driver 570.86.15, SM clock up to 1980 MHz, power cap 700 W.",
				"Found on this machine as device 2: NVIDIA H100 80GB HBM3, 79.6 GiB, driver 570.86.15, SM clock up to 1980 MHz, power cap 500 W, where 700 W is usual.",
				"Before the first launch process 4711 (/usr/bin/python3) holds 1024 MiB of device 2 on this machine: figures of this study may be of both."}},
		{name: "too few", hardware: "gpu: h100-sxm, gpus: 5", machine: answers{gpus: fourH100},
			wrong: "this machine has 4 of the devices, and the study uses device 4 of it: correct the study's hardware, or set check: off there"},
		{name: "another name", hardware: "gpu: h200, gpus: 1", machine: answers{gpus: fourH100},
			wrong: "device 0 of this machine is NVIDIA H100 80GB HBM3, and the study says NVIDIA H200: correct the study's hardware, or set check: off there"},
		{name: "another size", hardware: "gpu: a100-sxm-80, gpus: 1", machine: answers{gpus: a100},
			wrong: "device 0 of this machine (NVIDIA A100-SXM4-40GB) has 40.0 GiB of memory, and NVIDIA A100 SXM 80GB has 79.2 GiB: correct the study's hardware, or set check: off there"},
		{name: "that size", hardware: "gpu: a100-sxm-40, gpus: 1", machine: answers{gpus: a100}, title: "NVIDIA A100-SXM4-40GB",
			notes: []string{"Found on this machine as device 0: NVIDIA A100-SXM4-40GB, 40.0 GiB, driver 570.86.15, SM clock up to 1980 MHz, power cap 700 W."}},
		{name: "nothing", hardware: "gpu: h100-sxm, gpus: 1",
			wrong: "no NVIDIA H100 SXM is found on this machine: there is no /dev/nvidia, and the tool that tells of them is not there: correct the study's hardware, or set check: off there"},
		{name: "no tool", hardware: "gpu: h100-sxm, gpus: 1", machine: answers{rest: map[string]string{"ls -d /dev/nvidia": "/dev/nvidia0\n"}},
			notes: []string{"What devices this machine has is not known (the tool that tells of them is not there): what is said of them is what the study says."}},
		{name: "not asked", hardware: "gpu: h100-sxm, gpus: 1, check: off",
			notes: []string{"The hardware was not looked at, as the study wants it: what is said of it is what the study says."}},
		{name: "an MI300X", hardware: "gpu: mi300x, gpus: 1", machine: answers{rest: map[string]string{"rocm-smi": `WARNING: low power
{"card0": {"Card Series": "AMD Instinct MI300X OAM", "Unique ID": "0xab", "VRAM Total Memory (B)": "206141652992", "Max Graphics Package Power (W)": "750.0"}, "system": {"Driver version": "6.8.5", "PID77": "python3, 1, 2147483648, 0, 0", "PID78": "idle, 1, 0, 0, 0"}}`}},
			title: "AMD Instinct MI300X OAM", notes: []string{"Found on this machine as device 0: AMD Instinct MI300X OAM, 192.0 GiB, driver 6.8.5, power cap 750 W.",
				"Before the first launch process 77 (python3) holds 2048 MiB on this machine: figures of this study may be of both."}},
		{name: "a CPU", hardware: "gpu: cpu, gpus: 1", machine: answers{rest: map[string]string{"/proc/cpuinfo": "processor\t: 0\nmodel name\t: AMD EPYC 9654\nprocessor\t: 1\nmodel name\t: AMD EPYC 9654\nMemTotal:       16777216 kB\n"}},
			title: "AMD EPYC 9654", notes: []string{"Found on this machine: AMD EPYC 9654, 2 processors, 16.0 GiB."}},
		{name: "another CPU", hardware: "gpu: xeon-8480, gpus: 1", machine: answers{rest: map[string]string{"/proc/cpuinfo": "processor\t: 0\nmodel name\t: AMD EPYC 9654\n"}},
			wrong: "the processors of this machine are AMD EPYC 9654, and the study says Intel Xeon Platinum 8480+ (AMX), one socket: correct the study's hardware, or set check: off there"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := strings.Replace(strings.Replace(twoEngines, "gpu: h100-sxm, gpus: 1, check: off", tt.hardware, 1), "ENV", "A=b", 1)
			rt := commander{nodes: []string{""}, answer: tt.machine.answer}
			l := with(t, text, rt)
			var err error
			if l.ground.pool, err = l.Pool(true, func(string) (string, bool) { return "", false }); err != nil {
				t.Fatal(err)
			}
			err = errors.Join(l.inspect(t.Context(), true)...)
			if tt.wrong != "" {
				if err == nil || err.Error() != tt.wrong {
					t.Errorf("%v, want %q", err, tt.wrong)
				}
				return
			}
			if err != nil || l.ground.title != tt.title || !slices.Equal(l.ground.notes, tt.notes) {
				t.Errorf("%v; %q; %q", err, l.ground.title, l.ground.notes)
			}
			if l.Hardware.Check == study.CheckOff && len(tt.machine.asked) > 0 {
				t.Errorf("asked %q", tt.machine.asked)
			}
		})
	}
}

// What the launches of a study need and is not there is said once, before there is anything.
// Mended, the study begins.
func TestAbsent(t *testing.T) {
	here := t.TempDir()
	model, config := filepath.Join(here, "model"), filepath.Join(here, "config.json")
	writeFile(t, config, `{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4, "num_key_value_heads": 2,
		"num_hidden_layers": 2, "vocab_size": 1000, "max_position_embeddings": 4096, "torch_dtype": "bfloat16"}`)
	text := strings.NewReplacer("ENV", "PATH="+here+":/usr/bin:/bin", "model: Qwen/Qwen3-8B", "model: "+model+"\nmodel_config: {"+model+": "+config+"}").Replace(twoEngines)
	s, err := study.Parse("t.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(here, "out")
	begin := func() (outcome.Study, error) {
		return Tune(t.Context(), s, []byte(text), Options{Dir: dir, grace: time.Second, fence: deploy.AnyFence})
	}
	const program = "vLLM is not installed: vllm is not on PATH; install it, or give the engine its PATH in the study (engines.vllm.env)"
	missing := "the model " + model + " does not exist: correct the path, or put the model there"
	if _, err := begin(); err == nil || err.Error() != program+"\n"+missing {
		t.Errorf("%v", err)
	}
	link(here, "vllm")
	if _, err := begin(); err == nil || err.Error() != missing {
		t.Errorf("with a program: %v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a directory was made")
	}
	writeFile(t, model, "")
	f, err := begin()
	if err != nil || len(f.Trials) != 2 {
		t.Errorf("mended: %d trials, %v", len(f.Trials), err)
	}
}

// An image that is not there is found before the first launch.
func TestAbsentImage(t *testing.T) {
	t.Parallel()
	e := dockertest.Start(t)
	text := remotely + `runtime: {kind: docker, docker: {image: "vllm/vllm-openai:v0.0.0", docker_host: "` + e.Host + `"}}
`
	s, err := study.Parse("t.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "out")
	_, err = Tune(t.Context(), s, []byte(text), Options{Dir: dir})
	if err == nil || strings.Count(err.Error(), "vllm/vllm-openai:v0.0.0") == 0 || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a directory was made")
	}
}

// A study that goes on with other devices says which trials had which.
func TestOtherDevices(t *testing.T) {
	trial := func(id int, devices ...string) trialRecord {
		return trialRecord{Trial: outcome.Trial{ID: id}, Devices: devices}
	}
	trials := []trialRecord{trial(1), trial(2), trial(3, "4", "5"), trial(4, "4", "5"), trial(5)}
	got := changedDevices(trials)
	want := "The study went on with other devices (the machine's first from trial 1; 4, 5 from trial 3; the machine's first from trial 5): differences between its trials may be of that."
	if len(got) != 1 || got[0] != want {
		t.Errorf("%q", got)
	}
	if got := changedDevices(trials[:2]); got != nil {
		t.Errorf("nothing changed, and yet %q", got)
	}
}

// A flag that perflab does not know is given where the installed engine lists it, and the
// report says so. Where it does not, the study ends before there is anything.
func TestFlagsOfANewerEngine(t *testing.T) {
	const given = "engines: {vllm: {flags: [--new-thing, 3], env: [ENV]}}"
	text := strings.Replace(twoEngines, "engines: {vllm: {env: [ENV]}}", given, 1)
	o, err := failing(t, text, versionEnv+"=99.0", extraEnv+"=--new-thing")
	if err != nil || o.trial.Status != "ok" {
		t.Fatalf("%v, trial is %s: %s", err, o.trial.Status, o.trial.Reason)
	}
	if !strings.Contains(o.trial.Command, "--new-thing 3") {
		t.Errorf("the engine was started as %s", o.trial.Command)
	}
	if notes := strings.Join(slices.Concat(o.study.Notes, o.trial.Notes), "\n"); !strings.Contains(notes, "perflab does not know what --new-thing of vLLM does") || !strings.Contains(notes, "perflab was not tried with vLLM 99.0") {
		t.Errorf("notes %q", notes)
	}
	for _, tt := range []struct{ env, wrong string }{
		{extraEnv + "=--new-things", "vLLM 99.0 does not list --new-thing, which the study gives it (engines.vllm.flags): did you mean --new-things?"},
		{extraEnv + "=--zzzzzzzzzzzzzzzzz", "vLLM 99.0 does not list --new-thing, which the study gives it (engines.vllm.flags)"},
	} {
		text := strings.Replace(text, "ENV", versionEnv+"=99.0, "+tt.env, 1)
		s, err := study.Parse("t.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "out")
		if _, err := Tune(t.Context(), s, []byte(text), Options{Dir: dir, grace: time.Second, fence: deploy.AnyFence}); err == nil || err.Error() != tt.wrong {
			t.Errorf("%v, want %q", err, tt.wrong)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: a directory was made", tt.env)
		}
	}
}
