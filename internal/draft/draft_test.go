package draft

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/deploy/docker"
	"perflab/internal/doctor"
	"perflab/internal/engine"
	"perflab/internal/result"
	"perflab/internal/study"
	"perflab/internal/version"
)

var update = flag.Bool("update", false, "write the golden files anew")

// machines are those that a study may be made on.
func machines() map[string]doctor.Report {
	linux := version.Info{OS: "linux"}
	a100 := []doctor.Accelerator{{Name: "NVIDIA A100-SXM4-80GB", Known: []string{"a100-sxm-80"}}, {Index: 1, Name: "NVIDIA A100-SXM4-80GB", Known: []string{"a100-sxm-80"}}}
	vllm := doctor.Engine{Name: "vllm", Title: "vLLM", Version: "0.11.2", OnPath: true}
	sglang := doctor.Engine{Name: "sglang", Title: "SGLang", Version: "0.5.5", OnPath: true}
	llama := doctor.Engine{Name: "llamacpp", Title: "llama.cpp", Version: "b11600", OnPath: true}
	return map[string]doctor.Report{
		"bare":    {Program: linux},
		"engines": {Program: linux, Accelerators: a100, Host: doctor.Host{MemoryGiB: 503.6}, Engines: []doctor.Engine{vllm, sglang, llama}, Models: []doctor.Model{{ID: "o/part", Weights: doctor.SomeWeights, Known: true}, {ID: "Qwen/Qwen3-32B", Weights: doctor.AllWeights, Known: true}}},
		"docker":  {Program: linux, Accelerators: a100, Docker: &docker.Daemon{Runtimes: []string{"nvidia"}}},
		"server":  {Program: linux, Accelerators: a100, Servers: []doctor.Server{{URL: "http://127.0.0.1:8001", Models: []string{"mine: 1"}, Engine: "vllm"}}},
		"llama":   {Program: linux, Engines: []doctor.Engine{llama}},
		"windows": {Program: version.Info{OS: "windows"}},
	}
}

// gguf is a model's file, in the test's directory.
func gguf(t *testing.T) string {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("m.gguf", []byte("GGUF"), 0o644); err != nil {
		t.Fatal(err)
	}
	return "m.gguf"
}

// TestEveryCombination: whatever engine, objective and load are asked for on whatever machine,
// the file is one that the checker takes.
func TestEveryCombination(t *testing.T) {
	file := gguf(t)
	made := 0
	for where, r := range machines() {
		for _, e := range engine.All() {
			for i, o := range Objectives() {
				a := Answers{Engine: e.Name, Objective: o.Name, Price: "32 USD", SLOs: []string{"p99_ttft_ms <= 500"}, Workload: Workloads()[i%len(Workloads())].Name}
				if e.Name == "llamacpp" {
					a.Model = file
				}
				f, err := Make(a, r)
				if err != nil {
					t.Errorf("%s, %s, %s: %v", where, e.Name, o.Name, err)
					continue
				}
				s, err := study.Parse("study.yaml", f.Text)
				metric, unknown := result.Lookup(o.Metric)
				if err != nil || unknown != nil || s.Metric.Name != metric.Name || s.Baseline.Engine != e.Name {
					t.Errorf("%s, %s, %s: %v\n%s", where, e.Name, o.Name, err, f.Text)
				}
				made++
			}
		}
	}
	if want := 6 * 4 * 6; made != want {
		t.Errorf("%d files were made, want %d", made, want)
	}
}

// TestEveryRuntime: each kind can be asked for.
func TestEveryRuntime(t *testing.T) {
	for _, kind := range Runtimes() {
		for where, r := range machines() {
			f, err := Make(Answers{Runtime: kind, Engine: "vllm", GPU: "h100-sxm"}, r)
			if err != nil || !strings.Contains(string(f.Text), "kind: "+kind) {
				t.Errorf("%s on %s: %v\n%s", kind, where, err, f.Text)
			}
		}
	}
}

func TestGolden(t *testing.T) {
	testdata, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	file := gguf(t)
	for name, r := range machines() {
		a := Answers{}
		if name == "llama" {
			a = Answers{Model: file, Objective: "goodput"}
		}
		f, err := Make(a, r)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		path := filepath.Join(testdata, name+".yaml")
		if *update {
			if err := os.WriteFile(path, f.Text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), string(f.Text)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// TestFit: the baseline has as many devices as the model needs, and one that does not fit at all is
// refused with the engine's own reason.
func TestFit(t *testing.T) {
	f, err := Make(Answers{Model: "Qwen/Qwen3-32B", GPU: "l40s", GPUs: 4}, doctor.Report{})
	if err != nil || !strings.Contains(string(f.Text), "set: {tp: 2}") {
		t.Errorf("%v\n%s", err, f.Text)
	}
	_, err = Make(Answers{Model: "Qwen/Qwen3-32B", GPU: "l40s", GPUs: 1}, doctor.Report{})
	if err == nil || !strings.HasPrefix(err.Error(), "no study can be made of Qwen/Qwen3-32B with vllm on 1 x l40s: ") || !strings.Contains(err.Error(), "GiB") {
		t.Errorf("%v", err)
	}
}

// TestCachedConfig: a model that perflab does not know is read from the cache.
func TestCachedConfig(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config.json")
	text := `{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
 "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072, "torch_dtype": "bfloat16", "tie_word_embeddings": true}`
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	r := doctor.Report{Models: []doctor.Model{{ID: "o/own", Weights: doctor.AllWeights, Config: config}}}
	f, err := Make(Answers{}, r)
	if err != nil || !strings.Contains(string(f.Text), "model_config: {o/own: "+config+"}") {
		t.Errorf("%v\n%s", err, f.Text)
	}
}

func TestWrongAnswers(t *testing.T) {
	for want, a := range map[string]Answers{
		`engine: unknown engine "vlm"`:                {Engine: "vlm"},
		`gpu: unknown accelerator "h1"`:               {GPU: "h1"},
		"gpus: is -1":                                 {GPUs: -1},
		`runtime: "ssh" is not known here`:            {Runtime: "ssh"},
		`objective: "speed" is not known: use throug`: {Objective: "speed"},
		"objective: mean_running_requests is neither": {Objective: "mean_running_requests"},
		`workload: "mine" is not known: use chat`:     {Workload: "mine"},
		"workload: chat is named twice":               {Workload: "chat,chat"},
		"slo: ":                                       {SLOs: []string{"quick"}},
		"price_per_hour: is missing":                  {Objective: "cost"},
		"price_per_hour: price":                       {Price: "much"},
		`model: o/unknown: unknown model`:             {Model: "o/unknown"},
		"model: is missing: name the GGUF":            {Engine: "llamacpp"},
	} {
		if _, err := Make(a, doctor.Report{}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", a, err, want)
		}
	}
}

func TestAsk(t *testing.T) {
	var out strings.Builder
	in := strings.Join([]string{"vlm", "sglang", "", "h200", "two", "8", "cost", "p99_ttft_ms <= 500, mean_tpot_ms <= 30", "chat,2000/200", "cheap", "32 USD"}, "\n") + "\n"
	var a Answers
	err := a.Ask(strings.NewReader(in), &out, machines()["bare"])
	want := Answers{Engine: "sglang", Model: usualModel, GPU: "h200", GPUs: 8, Objective: "cost", SLOs: []string{"p99_ttft_ms <= 500", "mean_tpot_ms <= 30"}, Workload: "chat,2000/200", Price: "32 USD"}
	if d := cmp.Diff(want, a); err != nil || d != "" {
		t.Errorf("%v: %s\n%s", err, d, out.String())
	}
	for _, text := range []string{"Engine: vllm, sglang, trtllm, llamacpp [vllm]: ", `unknown engine "vlm"`, "Accelerator, by a name of perflab sim --list, or cpu [h100-sxm]: ", `"two" is not a number`, `price "cheap" must be`} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("%q is not in\n%s", text, out.String())
		}
	}
	// What was given is not asked for.
	out.Reset()
	if err := a.Ask(strings.NewReader(""), &out, machines()["bare"]); err != nil || out.Len() > 0 {
		t.Errorf("%v, %q", err, out.String())
	}
	if err := new(Answers).Ask(strings.NewReader("vllm\n"), &out, machines()["bare"]); !errors.Is(err, errEnded) {
		t.Errorf("an input that ends: %v", err)
	}
}

func TestWord(t *testing.T) {
	for in, want := range map[string]string{"Qwen/Qwen3-8B": "Qwen/Qwen3-8B", "no": `"no"`, "a: b": `"a: b"`, "1e3": `"1e3"`, "": `""`, "~/m": `"~/m"`, "/m/x.gguf": "/m/x.gguf"} {
		if got := word(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

// FuzzMake: no answer makes a file that the checker refuses.
func FuzzMake(f *testing.F) {
	f.Add("mine: 1", "x y", "chat")
	f.Fuzz(func(t *testing.T, model, name, load string) {
		r := machines()["server"]
		r.Servers[0].Models = []string{model}
		file, err := Make(Answers{Runtime: study.Existing, Model: model, Workload: load}, r)
		if err != nil || model == "" {
			return
		}
		if s, err := study.Parse(name, file.Text); err != nil || s.Model != model {
			t.Errorf("%q: %v, %v", model, fmt.Sprint(err), string(file.Text))
		}
	})
}
