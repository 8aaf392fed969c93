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
	fourH100 = "0, GPU-a0, NVIDIA H100 80GB HBM3, 81559, 81007, 570.86.15, 1980, [N/A], [N/A], 700.00, 700.00, Disabled, 0x0000000000000001\n" +
		"1, GPU-a1, NVIDIA H100 80GB HBM3, 81559, 81007, 570.86.15, 1980, [N/A], [N/A], 700.00, 700.00, Disabled, 0x0000000000000001\n" +
		"2, GPU-a2, NVIDIA H100 80GB HBM3, 81559, 81007, 570.86.15, 1980, [N/A], [N/A], 500.00, 700.00, Disabled, 0x0000000000000001\n" +
		"3, GPU-a3, NVIDIA H100 80GB HBM3, 81559, 81007, 570.86.15, 1980, [N/A], [N/A], 700.00, 700.00, Disabled, 0x0000000000000001\n"
	other = "GPU-a0, 41, python3, 70000\nGPU-a2, 4711, /usr/bin/python3, 1024\n"
)

// divided is a machine whose one device has a part.
var divided = answers{gpus: "0, GPU-a0, NVIDIA H100 80GB HBM3, 81559, [N/A], 570.86.15, 1980, [N/A], [N/A], 700.00, 700.00, Enabled, 0x0\n",
	rest: map[string]string{"nvidia-smi -L": "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-a0)\n  MIG 1g.10gb     Device  0: (UUID: MIG-7)\n"}}

// What the machine has is what the report names; what it has not ends the study with one
// sentence.
func TestLooksAtTheHardware(t *testing.T) {
	a100 := strings.ReplaceAll(fourH100, "NVIDIA H100 80GB HBM3, 81559, 81007", "NVIDIA A100-SXM4-40GB, 40960, 40000")
	for _, tt := range []struct {
		name     string
		hardware string
		replace  []string // in the study
		machine  answers
		title    string
		notes    []string
		wrong    string
	}{
		{name: "as it is", hardware: "gpu: h100-sxm, gpus: 2", machine: answers{gpus: fourH100, apps: other}, title: "NVIDIA H100 80GB HBM3",
			notes: []string{"Found on this machine as device 0, 1: NVIDIA H100 80GB HBM3, 79.6 GiB, driver 570.86.15, clock up to 1980 MHz, power cap 700 W.",
				"Before the first launch process 41 (python3) holds 70000 MiB of device 0 on this machine: figures of this study may be of both."}},
		{name: "named devices", hardware: "gpu: h100-sxm, gpus: 2, devices: [GPU-a3, 2]", machine: answers{gpus: fourH100, apps: other}, title: "NVIDIA H100 80GB HBM3",
			notes: []string{"Found on this machine as device GPU-a3: NVIDIA H100 80GB HBM3, 79.6 GiB, driver 570.86.15, clock up to 1980 MHz, power cap 700 W.",
				"Found on this machine as device 2: NVIDIA H100 80GB HBM3, 79.6 GiB, driver 570.86.15, clock up to 1980 MHz, power cap 500 W, where 700 W is usual.",
				"Before the first launch process 4711 (/usr/bin/python3) holds 1024 MiB of device 2 on this machine: figures of this study may be of both."}},
		{name: "too few", hardware: "gpu: h100-sxm, gpus: 5", machine: answers{gpus: fourH100},
			wrong: "this machine has 4 of the devices, and the study uses device 4 of it: correct the study's hardware, or set check: off there"},
		{name: "another name", hardware: "gpu: h200, gpus: 1", machine: answers{gpus: fourH100},
			wrong: "device 0 of this machine is NVIDIA H100 80GB HBM3, and the study says NVIDIA H200: correct the study's hardware, or set check: off there"},
		{name: "another size", hardware: "gpu: a100-sxm-80, gpus: 1", machine: answers{gpus: a100},
			wrong: "device 0 of this machine (NVIDIA A100-SXM4-40GB) has 40.0 GiB of memory, and NVIDIA A100 SXM 80GB has 79.2 GiB: correct the study's hardware, or set check: off there"},
		{name: "that size", hardware: "gpu: a100-sxm-40, gpus: 1", machine: answers{gpus: a100}, title: "NVIDIA A100-SXM4-40GB",
			notes: []string{"Found on this machine as device 0: NVIDIA A100-SXM4-40GB, 40.0 GiB, driver 570.86.15, clock up to 1980 MHz, power cap 700 W."}},
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
		{name: "another build", hardware: "gpu: h100-pcie, gpus: 1", machine: answers{gpus: fourH100},
			wrong: "device 0 of this machine is NVIDIA H100 80GB HBM3, and the study says NVIDIA H100 PCIe: correct the study's hardware, or set check: off there"},
		{name: "no nvidia-smi", hardware: "gpu: h100-pcie, gpus: 1", machine: answers{rest: map[string]string{"/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Thu\nModel: \t NVIDIA H100 PCIe\nGPU UUID: \t GPU-a0\n"}},
			title: "NVIDIA H100 PCIe", notes: []string{"Found on this machine as device 0: NVIDIA H100 PCIe, driver 570.86.15.",
				"Of this machine: the NVIDIA driver is loaded and nvidia-smi is not on PATH: the devices' memory, clocks and power caps, and other processes on them, are not known."}},
		{name: "full", hardware: "gpu: h100-sxm, gpus: 2", replace: []string{"engine: sglang}", "engine: vllm, set: {max_num_seqs: 128}}"}, machine: answers{gpus: strings.Replace(fourH100, "81007", "11000", 1), apps: other},
			wrong: "device 0 of this machine has 10.7 of 79.6 GiB free, and vLLM does not start with less than 71.7 (gpu_memory_utilization 0.9): end what holds the memory (process 41 (python3) holds 70000 MiB of device 0), or give the study a device that is free (hardware.devices), or set check: off under hardware"},
		{name: "full, for one of two engines", hardware: "gpu: h100-sxm, gpus: 1", machine: answers{gpus: strings.Replace(fourH100, "81007", "11000", 1)}, title: "NVIDIA H100 80GB HBM3",
			notes: []string{"Found on this machine as device 0: NVIDIA H100 80GB HBM3, 79.6 GiB, driver 570.86.15, clock up to 1980 MHz, power cap 700 W."}},
		{name: "full, and less is asked for", hardware: "gpu: h100-sxm, gpus: 1", replace: []string{"engine: sglang}", "engine: vllm, set: {gpu_memory_utilization: 0.1}}"}, machine: answers{gpus: strings.Replace(fourH100, "81007", "11000", 1)}, title: "NVIDIA H100 80GB HBM3",
			notes: []string{"Found on this machine as device 0: NVIDIA H100 80GB HBM3, 79.6 GiB, driver 570.86.15, clock up to 1980 MHz, power cap 700 W."}},
		{name: "divided", hardware: "gpu: h100-sxm, gpus: 1", machine: divided,
			wrong: "device 0 of this machine (NVIDIA H100 80GB HBM3) is divided by MIG into 1 x 1g.10gb, and an engine gets one part alone: name parts under hardware.devices, by the UUIDs that nvidia-smi -L lists: correct the study's hardware, or set check: off there"},
		{name: "a part", hardware: "gpu: h100-sxm, gpus: 1, devices: [MIG-7]", machine: divided, title: "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
			notes: []string{"Device MIG-7 is a part of one, with 10.0 GiB of its memory: predictions, and what is refused for lack of memory, are by a whole NVIDIA H100 SXM.",
				"Found on this machine as device MIG-7: NVIDIA H100 80GB HBM3 MIG 1g.10gb, 10.0 GiB, driver 570.86.15, clock up to 1980 MHz."}},
		{name: "an MI300X by amd-smi", hardware: "gpu: mi300x, gpus: 1", machine: answers{rest: map[string]string{"amd-smi static": `[{"gpu": 0, "asic": {"market_name": "AMD Instinct MI300X"}, "vram": {"size": {"value": 196592, "unit": "MB"}}}]`}},
			title: "AMD Instinct MI300X", notes: []string{"Found on this machine as device 0: AMD Instinct MI300X, 192.0 GiB.",
				"Of this machine: other processes on the devices are not known: the tool that tells of them is not there."}},
		{name: "an NPU", hardware: "gpu: ascend-910b, gpus: 1", machine: answers{rest: map[string]string{"npu-smi info": "| npu-smi 25.2.0  Version: 25.2.0 |\n| 0     910B3  | OK  | 93.6 |\n| 0  | 0000:01:00.0  | 0   0 / 0    3161 / 65536 |\n| NPU  Chip | Process id | Process name | Process memory(MB) |\n| 0  0 | 77 | python | 100 |\n"}},
			title: "Ascend 910B3", notes: []string{"Found on this machine as device 0: Ascend 910B3, 64.0 GiB, driver 25.2.0.", "Before the first launch process 77 (python) holds 100 MiB of device 0 on this machine: figures of this study may be of both."}},
		{name: "another CPU", hardware: "gpu: xeon-8480, gpus: 1", machine: answers{rest: map[string]string{"/proc/cpuinfo": "processor\t: 0\nmodel name\t: AMD EPYC 9654\n"}},
			wrong: "the processors of this machine are AMD EPYC 9654, and the study says Intel Xeon Platinum 8480+ (AMX), one socket: correct the study's hardware, or set check: off there"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := strings.NewReplacer(append(tt.replace, "gpu: h100-sxm, gpus: 1, check: off", tt.hardware, "ENV", "A=b")...).Replace(twoEngines)
			rt := commander{nodes: []string{""}, answer: tt.machine.answer}
			l := with(t, text, rt)
			var told []string
			l.tell = func(text string) { told = append(told, text) }
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
			urgent := slices.DeleteFunc(slices.Clone(tt.notes), func(n string) bool {
				return !strings.HasPrefix(n, "Before the first launch") && !strings.HasPrefix(n, "Device ")
			})
			if !slices.Equal(told, urgent) {
				t.Errorf("told %q", told)
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

// A model of the hub that an engine may not download is looked for in its cache.
func TestAbsentOffline(t *testing.T) {
	hub := t.TempDir()
	s, err := study.Parse("t.yaml", []byte(strings.Replace(twoEngines, "ENV", "HF_HUB_OFFLINE=1, HF_HUB_CACHE="+hub, 1)))
	if err != nil {
		t.Fatal(err)
	}
	look := func() string {
		l := newSession(s, Options{fence: deploy.AnyFence}).engines
		defer l.release()
		if err := errors.Join(l.absent(t.Context())...); err != nil {
			return err.Error()
		}
		return ""
	}
	want := "the model Qwen/Qwen3-8B is not in the cache (" + hub + "), and HF_HUB_OFFLINE forbids to download it: download it beforehand, or unset the variable"
	if got := look(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	snapshot := filepath.Join(hub, "models--Qwen--Qwen3-8B", "snapshots", "0123")
	if err := os.MkdirAll(snapshot, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := look(); got != want {
		t.Errorf("with an empty snapshot %q", got)
	}
	writeFile(t, filepath.Join(snapshot, "config.json"), "{}")
	if got := look(); got != "" {
		t.Errorf("with the model %q", got)
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
	if notes := strings.Join(slices.Concat(o.study.Notes, o.trial.Notes), "\n"); !strings.Contains(notes, "perflab does not know what these flags of vLLM do: --new-thing") || !strings.Contains(notes, "perflab was not tried with vLLM 99.0") {
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

// sweeper is a runtime that notes what it sweeps.
type sweeper struct {
	deploy.Runtime
	swept func(dir string) (ended []string)
}

func (s sweeper) Sweep(_ context.Context, dir string) ([]string, error) {
	return s.swept(dir), nil
}

// A study that goes on ends the engines of its killed part before it looks who else is on the
// devices: they would be taken for other people's.
func TestSweepsBeforeItLooks(t *testing.T) {
	text := strings.NewReplacer("engine: sglang}", "engine: vllm, set: {max_num_seqs: 128}}", ", check: off", "", "ENV", "A=b").Replace(twoEngines)
	var order []string
	var swept time.Time
	rt := commander{Runtime: sweeper{swept: func(dir string) []string {
		order, swept = append(order, "sweep "+filepath.Base(dir)), time.Now()
		return []string{"process 41"}
	}}, nodes: []string{""},
		answer: func(_ context.Context, _ string, argv []string) (string, error) {
			line := strings.Join(argv, " ")
			switch {
			case strings.Contains(line, "--query-gpu="):
				order = append(order, "look")
				if !swept.IsZero() && time.Since(swept) < memoryReturns {
					t.Error("looked before the devices had their memory back")
				}
				return fourH100, nil
			case strings.Contains(line, "--query-compute-apps="):
				return "", nil
			}
			return "", nil
		}}
	dir := filepath.Join(t.TempDir(), "out")
	for _, resume := range []bool{false, true} {
		s, err := study.Parse("t.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		l := newSession(s, Options{Dir: dir, Resume: resume})
		l.engines.runtimes[""], l.engines.runtimes["vllm"] = rt, rt
		if _, err := l.begin(t.Context(), []byte(text)); err != nil {
			t.Fatal(err)
		}
		l.studyDir.file.Close()
	}
	if want := []string{"look", "sweep trials", "look"}; !slices.Equal(order, want) {
		t.Errorf("%q, want %q", order, want)
	}
}

// A check of a study looks where engines would be started here, and says why it does not.
func TestLookHere(t *testing.T) {
	bin := t.TempDir()
	link(bin, "nvidia-smi")
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	for _, tt := range []struct {
		replace []string
		lines   []string
	}{
		{nil, []string{"Found on this machine as device 0: NVIDIA H100 80GB HBM3, 79.6 GiB, driver 570.86.15, clock up to 1980 MHz, power cap 700 W."}},
		{[]string{"h100-sxm", "h200"}, []string{"warning: on this machine the study would end before it begins: device 0 of this machine is NVIDIA H100 80GB HBM3, and the study says NVIDIA H200: correct the study's hardware, or set check: off there"}},
		{[]string{"kind: process, ready_timeout_s: 10", "kind: simulated"}, []string{"The hardware was not looked at: runtime simulated starts no engines on it."}},
		{[]string{"kind: process, ready_timeout_s: 10", "kind: ssh, hosts: [{name: there}]"}, []string{"The hardware was not looked at: it is in other machines, which are asked when the study begins."}},
	} {
		s, err := study.Parse("t.yaml", []byte(strings.NewReplacer(append(tt.replace, ", check: off", "", "ENV", "A=b")...).Replace(twoEngines)))
		if err != nil {
			t.Fatal(err)
		}
		if lines := LookHere(t.Context(), s); !slices.Equal(lines, tt.lines) {
			t.Errorf("%q: %q", tt.replace, lines)
		}
	}
}
