package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/deploy/docker"
	"perflab/internal/hardware"
	"perflab/internal/openai"
	"perflab/internal/result"
	"perflab/internal/version"
)

var update = flag.Bool("update", false, "write the golden files anew")

// machine is one that answers from tables.
type machine struct {
	system   string
	programs map[string]string // on PATH
	answers  map[string]string // of commands, by a part of the line; "fails: " begins a failure
	files    map[string]string
	env      map[string]string
	cache    fstest.MapFS
	servers  map[string]openai.Info
	docker   error
	runtimes []string
	limit    uint64
	checked  bool
}

func (m machine) probes() Probes {
	return Probes{
		Program: version.Info{Version: "v0.3.0", OS: m.system, Arch: "amd64"}, CPUs: 16, Home: "/home/a",
		Find: func(program string) string { return m.programs[program] },
		Env:  func(name string) string { return m.env[name] },
		Read: func(path string) (string, error) {
			if text, ok := m.files[path]; ok {
				return text, nil
			}
			return "", fs.ErrNotExist
		},
		Run: func(_ context.Context, argv ...string) (string, string, error) {
			line := strings.Join(argv, " ")
			for part, text := range m.answers {
				if why, fails := strings.CutPrefix(text, "fails: "); strings.Contains(line, part) && fails {
					return "", why, errors.New(why)
				} else if strings.Contains(line, part) {
					return text, "", nil
				}
			}
			return "", "", hardware.ErrNoTool
		},
		Dir: func(path string) fs.FS { return m.cache },
		Ask: func(_ context.Context, base string) (openai.Info, error) {
			if info, ok := m.servers[base]; ok {
				return info, nil
			}
			return openai.Info{}, &openai.EndpointError{Text: "no server answers", Err: errors.New("refused")}
		},
		Docker: func(context.Context) (docker.Daemon, error) {
			return docker.Daemon{Version: "27.0.0", Runtimes: m.runtimes}, m.docker
		},
		OpenFiles: func() (uint64, error) { return m.limit, nil },
		SelfCheck: func() *result.SelfCheck {
			if !m.checked {
				return nil
			}
			return &result.SelfCheck{Taken: time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC), ArrivalP50: 2.1, ArrivalP99: 6.4}
		},
	}
}

const twoA100 = "0, GPU-a0, NVIDIA A100-SXM4-80GB, 81920, 81000, 580.95.05, 1410, 1410, 1410, 400.00, 400.00, Disabled, 0x0\n" +
	"1, GPU-a1, NVIDIA A100-SXM4-80GB, 81920, 100, 580.95.05, 1410, 1410, 1410, 400.00, 400.00, Disabled, 0x0\n"

// machines are those that the golden files are of.
func machines() map[string]machine {
	file := func(n int) *fstest.MapFile { return &fstest.MapFile{Data: make([]byte, n)} }
	text := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	return map[string]machine{
		"a100": {
			system:   "linux",
			programs: map[string]string{"python3": "/usr/bin/python3", "vllm": "/opt/v/bin/vllm", "llama-server": "/usr/bin/llama-server", "ssh": "/usr/bin/ssh"},
			answers: map[string]string{
				"nvidia-smi --query-gpu": twoA100, "--query-compute-apps": "GPU-a1, 7, python3, 80000\n",
				"/opt/v/bin/python -c": "vllm 0.11.2\n", "/usr/bin/python3 -c": "sglang 0.5.5\n",
				"llama-server --version": "version: 11600 (abc)\n",
			},
			files: map[string]string{
				"/etc/os-release": "NAME=x\nPRETTY_NAME=\"Ubuntu 24.04\"\n", "/proc/sys/kernel/osrelease": "6.8.0\n",
				"/proc/cpuinfo": "processor: 0\nmodel name : AMD EPYC 9654\n", "/proc/meminfo": "MemTotal: 1048576000 kB\nMemAvailable:  104857600 kB\n",
				"/sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n", "/opt/v/bin/vllm": "#!/opt/v/bin/python\n",
			},
			cache: fstest.MapFS{
				"models--Qwen--Qwen3-8B/refs/main":                                 text("r1\n"),
				"models--Qwen--Qwen3-8B/snapshots/r0/tokenizer.json":               file(1),
				"models--Qwen--Qwen3-8B/snapshots/r1/model-1.safetensors":          file(3 << 20),
				"models--Qwen--Qwen3-8B/snapshots/r1/model-2.safetensors":          file(2 << 20),
				"models--Qwen--Qwen3-8B/snapshots/r1/tokenizer.json":               file(1),
				"models--Qwen--Qwen3-8B/snapshots/r1/model.safetensors.index.json": text(`{"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}`),
				"models--o--half/snapshots/r/model-1.safetensors":                  file(10),
				"models--o--half/snapshots/r/model.safetensors.index.json":         text(`{"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}`),
				"models--o--loading/snapshots/r/model.gguf":                        file(10),
				"models--o--loading/blobs/x.incomplete":                            file(10),
				"models--o--tokenizer/snapshots/r/tokenizer.json":                  file(1),
				"datasets--o--d/snapshots/r/x.bin":                                 file(1),
			},
			servers: map[string]openai.Info{
				"http://127.0.0.1:8000":  {Models: []string{"sim"}, Owner: "perflab-sim", Simulated: true},
				"http://127.0.0.1:30000": {Models: []string{"Qwen/Qwen3-8B"}, Owner: "sglang"},
			},
			runtimes: []string{"nvidia", "runc"}, limit: 1 << 20, checked: true,
		},
		"bare": {system: "linux", docker: errors.New("no Docker engine answers at unix:///var/run/docker.sock: no such file or directory"), limit: 1024,
			answers: map[string]string{"nvidia-smi": "fails: Driver/library version mismatch"},
			files:   map[string]string{"/sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet"}},
		"mac": {system: "darwin", programs: map[string]string{"llama-server": "/opt/homebrew/bin/llama-server"}, limit: 1 << 40,
			answers: map[string]string{"sysctl": "Apple M4 Max\n137438953472\n26.1\n", "llama-server --version": "version: 12000 (x)\n"}},
		"windows": {system: "windows", limit: 1<<64 - 1, env: map[string]string{"PROCESSOR_IDENTIFIER": "Intel64 Family 6"}},
	}
}

func TestText(t *testing.T) {
	for name, m := range machines() {
		r := Look(t.Context(), m.probes())
		got := r.Text()
		path := filepath.Join("testdata", name+".txt")
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		for line := range strings.Lines(got) {
			if strings.HasSuffix(line, " \n") {
				t.Errorf("%s: blanks end the line %q", name, line)
			}
		}
		b, err := json.Marshal(r)
		var back Report
		if err != nil || json.Unmarshal(b, &back) != nil || cmp.Diff(r, back) != "" {
			t.Errorf("%s: JSON %s, %v: %s", name, b, err, cmp.Diff(r, back))
		}
	}
}

// TestHangs: a check that does not end is named, and the others tell all the same; so does the end
// of the whole look.
func TestHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer func() { close(release); synctest.Wait() }()
		p := machine{system: "linux", limit: 5}.probes()
		p.Run = func(ctx context.Context, argv ...string) (string, string, error) {
			<-ctx.Done()
			return "", "", context.Cause(ctx)
		}
		p.Dir = func(string) fs.FS { <-release; return fstest.MapFS{} }
		begin := time.Now()
		r := Look(t.Context(), p)
		if d := time.Since(begin); d != 20*time.Second {
			t.Errorf("it took %v", d)
		}
		if len(r.Unanswered) != 2 || r.why("models") != "no answer within 10s" || !strings.Contains(r.why("accelerators"), "no answer within 20s") || r.Client.OpenFiles != 5 {
			t.Errorf("%+v, client %+v", r.Unanswered, r.Client)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		begin = time.Now()
		r = Look(ctx, p)
		if d := time.Since(begin); d != 3*time.Second || r.Client.OpenFiles != 5 {
			t.Errorf("ended after %v with %+v", d, r)
		}
	})
}

func TestEngines(t *testing.T) {
	for name, c := range map[string]struct {
		m    machine
		want []string
	}{
		"none":                      {machine{programs: map[string]string{"python3": "/p"}, answers: map[string]string{"/p -c": ""}}, nil},
		"of a script of another":    {machine{programs: map[string]string{"python3": "/p", "vllm": "/v"}, files: map[string]string{"/v": "#!/e/python3.12 -s\n"}, answers: map[string]string{"/e/python3.12 -c": "vllm 0.12.0\n", "/p -c": "vllm 0.1.0\n"}}, []string{"vllm 0.12.0 /v /e/python3.12 true"}},
		"by env":                    {machine{programs: map[string]string{"python3": "/p", "vllm": "/v"}, files: map[string]string{"/v": "#!/usr/bin/env -S python3\n"}, answers: map[string]string{"/p -c": "vllm 0.12.0\n"}}, []string{"vllm 0.12.0 /v /p true"}},
		"by a long path":            {machine{programs: map[string]string{"vllm": "/v"}, files: map[string]string{"/v": "#!/bin/sh\n'''exec' \"/a b/python\" \"$0\" \"$@\"\n"}, answers: map[string]string{"/a b/python -c": "vllm 0.12.0\n"}}, []string{"vllm 0.12.0 /v /a b/python true"}},
		"a program of another kind": {machine{programs: map[string]string{"vllm": "/v"}, answers: map[string]string{"/v --version": "0.13.0\n"}}, []string{"vllm 0.13.0 /v  true"}},
		"a module alone":            {machine{programs: map[string]string{"python3": "/p"}, answers: map[string]string{"/p -c": "vllm 0.12.0\nsglang 0.5.6\n"}}, []string{"vllm 0.12.0  /p false", "sglang 0.5.6  /p true"}},
		"sglang of another python":  {machine{programs: map[string]string{"python3": "/p", "sglang": "/s"}, files: map[string]string{"/s": "#!/e/python\n"}, answers: map[string]string{"/p -c": "", "/e/python -c": "sglang 0.5.6\n"}}, []string{"sglang 0.5.6 /s /e/python false"}},
		"a version that fails":      {machine{programs: map[string]string{"llama-server": "/l"}, answers: map[string]string{"/l --version": "fails: libcuda.so is missing"}}, []string{"llamacpp  /l  true"}},
	} {
		fill, err := lookEngines(t.Context(), c.m.probes())
		var r Report
		fill(&r)
		var got []string
		for _, e := range r.Engines {
			ready := "false"
			if e.OnPath {
				ready = "true"
			}
			got = append(got, strings.Join([]string{e.Name, e.Version, e.Path, e.Python, ready}, " "))
		}
		if !slices.Equal(got, c.want) || (err != nil) != (name == "a version that fails") {
			t.Errorf("%s: %q, want %q (%v)", name, got, c.want, err)
		}
	}
}

func TestServer(t *testing.T) {
	const url = "http://127.0.0.1:8000"
	for name, c := range map[string]struct {
		info openai.Info
		err  error
		want *Server
	}{
		"nothing": {err: &openai.EndpointError{Text: "no server", Err: errors.New("refused")}},
		"silent":  {err: context.DeadlineExceeded},
		"a model": {openai.Info{Models: []string{"m"}, Owner: "vllm", Version: "0.11"}, nil, &Server{URL: url, Models: []string{"m"}, Engine: "vllm", Version: "0.11"}},
		"a key":   {openai.Info{}, &openai.EndpointError{Text: url + " refuses access (401)", Do: "give a key"}, &Server{URL: url, Note: "refuses access (401): give a key"}},
		"no list": {openai.Info{Note: "answers 404"}, nil, &Server{URL: url, Note: "answers 404"}},
	} {
		if d := cmp.Diff(c.want, server(url, c.info, c.err)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestHub(t *testing.T) {
	for want, env := range map[string]map[string]string{
		"/c":                             {"HF_HUB_CACHE": "/c", "HF_HOME": "/h"},
		"/h/hub":                         {"HF_HOME": "/h"},
		"/x/huggingface/hub":             {"XDG_CACHE_HOME": "/x"},
		"/home/a/.cache/huggingface/hub": {},
	} {
		if got := hub(machine{env: env}.probes()); got != want {
			t.Errorf("%v: %q, want %q", env, got, want)
		}
	}
}

// TestKnownAs: where two rows have a device's name, that of its memory is meant.
func TestKnownAs(t *testing.T) {
	for want, f := range map[string]hardware.Found{
		"a100-sxm-80":             {Name: "NVIDIA A100-SXM4-80GB", MemoryMiB: 81920},
		"a100-sxm-40":             {Name: "NVIDIA A100-SXM4-40GB", MemoryMiB: 40960},
		"a100-sxm-80 a100-sxm-40": {Name: "NVIDIA A100-SXM4-80GB"},
		"":                        {Name: "NVIDIA RTX 2000", MemoryMiB: 8192},
	} {
		got := knownAs(f, "cuda")
		words := strings.Fields(want)
		slices.Sort(got)
		slices.Sort(words)
		if !slices.Equal(got, words) {
			t.Errorf("%s of %.0f MiB: %q, want %q", f.Name, f.MemoryMiB, got, words)
		}
	}
}

// TestSystem: this machine, whatever it has, is looked at without a fault of ours.
func TestSystem(t *testing.T) {
	r := Look(t.Context(), System(version.Read()))
	if r.Host.CPUs < 1 || r.Host.System == "" || len(r.Abilities) != 6 {
		t.Errorf("%+v", r)
	}
}
