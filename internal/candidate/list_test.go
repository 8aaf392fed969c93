package candidate

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"perflab/internal/tune"
)

// labels are those of arms that run, and of those that do not.
func labels(arms []tune.Candidate) (run, refused []string) {
	for _, a := range arms {
		if a.Refused == "" {
			run = append(run, a.Label)
		} else {
			refused = append(refused, a.Label)
		}
	}
	return run, refused
}

func TestArmsOfSmallExamples(t *testing.T) {
	for name, want := range map[string][]string{
		"qwen3-32b-h100": {"vLLM", "SGLang", "TensorRT-LLM", "FP8", "SGLang, FP8", "TensorRT-LLM, FP8"},
		"qwen3.5-35b-h200-latency": {
			"vLLM", "SGLang", "FP8", "size 256", "16k", "32k", "interactivity", "MTP, 1 token", "vLLM, FP8, MTP", "SGLang, MTP", "SGLang, FP8, MTP", "SGLang, FP8",
		},
		"llamacpp-cpu": {
			"llama.cpp, f16", "Q8_0", "Q4_0", "1 slot", "8 slots", "1 thread", "1 thread and 2 for prompts", "4 threads",
			"micro-batch 128", "micro-batch 1024", "batch 512", "keys and values in Q8_0", "no flash attention", "no prefix cache", "llama.cpp, q8_0, KV q8_0", "llama.cpp, q4_0, KV q8_0",
		},
		"vllm-cpu": {"vLLM", "compiled"},
	} {
		run, refused := labels(field(t, studies()[name]).Candidates())
		if !reflect.DeepEqual(run, want) || len(refused) > 0 {
			t.Errorf("%s: arms %q, refused %q\nwant %q", name, run, refused, want)
		}
	}
}

func TestArmsOfLargeExamples(t *testing.T) {
	for name, want := range map[string]struct{ run, refused, absent []string }{
		"docker-vllm": {
			run: []string{
				"vLLM, tp 2 x 4 replicas", "SGLang, FP8, tp 1 x 8 replicas", "vLLM, FP8, tp 8, KV fp8",
				"vLLM, tp 1 x 8 replicas, max_model_len 16384",
			},
			refused: []string{"TP1"},
			absent:  []string{"vLLM, tp 1 x 8 replicas", "vLLM, tp 4 pp 2", "vLLM, tp 2 with EP x 4 replicas"},
		},
		"qwen3-235b-a100": {
			run:     []string{"vLLM FP8 TP4", "vLLM FP8 TP8 EP", "vLLM, FP8, tp 2 dp 4 with EP", "SGLang, tp 8 with EP"},
			refused: []string{"vLLM FP8 TP8", "SGLang FP8 TP8", "vLLM, tp 4 x 2 replicas", "SGLang, tp 8 dp 8 with attention DP"},
			absent:  []string{"vLLM, tp 1 x 8 replicas", "vLLM, tp 2 x 4 replicas"},
		},
		"ssh-two-nodes": {
			run:    []string{"vLLM TP8 PP2", "SGLang, tp 8 pp 2", "vLLM, tp 8 dp 2 with EP", "SGLang, FP8, tp 16 dp 16 with attention DP and EP"},
			absent: []string{"vLLM, tp 4 pp 2 dp 2 with EP"},
		},
	} {
		arms := field(t, studies()[name]).Candidates()
		run, refused := labels(arms)
		if len(run) < 9 || len(run) > maxCombined || len(refused) > 12 {
			t.Errorf("%s: %d arms run and %d do not", name, len(run), len(refused))
		}
		for _, w := range want.run {
			if !slices.Contains(run, w) {
				t.Errorf("%s: no arm %q in %q", name, w, run)
			}
		}
		for _, w := range want.refused {
			if !slices.Contains(refused, w) {
				t.Errorf("%s: %q is not refused: %q", name, w, refused)
			}
		}
		for _, w := range want.absent {
			if slices.Contains(run, w) || slices.Contains(refused, w) {
				t.Errorf("%s: there is %q", name, w)
			}
		}
	}
}

func TestArmsHold(t *testing.T) {
	for name, s := range studies() {
		f := field(t, s)
		arms := f.Candidates()
		if !maps.Equal(arms[0].Config, s.Baseline) {
			t.Errorf("%s: the first arm is %v", name, arms[0].Config)
		}
		seen := map[string]bool{}
		for _, a := range arms {
			if seen[a.Label] || a.Label == "" {
				t.Errorf("%s: the label %q twice", name, a.Label)
			}
			seen[a.Label] = true
			if a.Refused != f.Refuse(a.Config) {
				t.Errorf("%s: %s is refused for %q, and Refuse says %q", name, a.Label, a.Refused, f.Refuse(a.Config))
			}
		}
		if !reflect.DeepEqual(arms, f.Candidates()) || !reflect.DeepEqual(arms, field(t, s).Candidates()) {
			t.Errorf("%s: arms differ when asked for again", name)
		}
	}
}

// paths are all configurations that a staged search may come to, with the settings that
// are not of the structure apart.
func paths(f *Field, s study) []tune.Config {
	all := []tune.Config{s.Baseline}
	for _, stage := range s.stages {
		from := slices.Clone(all)
		for _, c := range from {
			for _, ch := range stage {
				all = append(all, ch.Apply(c))
			}
		}
	}
	return all
}

func TestStagesWithinReach(t *testing.T) {
	for name, s := range studies() {
		f := field(t, s)
		arms := map[string]bool{}
		for _, a := range f.Candidates() {
			arms[f.resolve(a.Config).identity(a.Config)] = a.Refused == ""
		}
		for _, c := range paths(f, s) {
			frame, more := tune.Config{}, tune.Config{}
			for k, v := range c {
				if slices.Contains(structure, k) {
					frame[k] = v
				} else {
					more[k] = v
				}
			}
			if f.Refuse(frame) != "" {
				continue
			}
			if !arms[f.resolve(frame).identity(frame)] {
				t.Errorf("%s: no arm %v", name, frame)
			}
			reachable(t, f, s, frame, more)
		}
	}
}

// reachable checks that each setting beside the structure is a step, or nothing new, or refused.
func reachable(t *testing.T, f *Field, s study, frame, more tune.Config) {
	t.Helper()
	var steps []string
	for _, step := range f.Steps(frame) {
		steps = append(steps, key(step.Set))
	}
	for _, ch := range s.Changes {
		wanted := true
		for k, v := range ch.Set {
			wanted = wanted && more[k] == v
		}
		next := ch.Apply(frame)
		if !wanted || f.Refuse(next) != "" || reflect.DeepEqual(f.resolve(next).cfg, f.resolve(frame).cfg) && !f.resolve(next).measuredOnly() {
			continue
		}
		if !slices.Contains(steps, key(ch.Set)) {
			t.Errorf("no step %v from %v in %q", ch.Set, frame, steps)
		}
	}
}

func TestNarrow(t *testing.T) {
	s := studies()["docker-vllm"]
	s.Changes = nil
	s.Narrow = map[string][]string{
		"engine": {"sglang"}, "model": {q32 + "-FP8"}, "tp": {"2", "4"}, "kv_cache_dtype": {""}, "max_running": {"1"},
	}
	if _, err := New(s.Options); err == nil || !strings.Contains(err.Error(), "max_running") {
		t.Errorf("an unknown parameter: %v", err)
	}
	delete(s.Narrow, "max_running")
	s.Narrow["max_num_seqs"] = []string{"100", "300"}
	s.Narrow["max_model_len"] = []string{"20000"}
	f := field(t, s)
	run, _ := labels(f.Candidates())
	want := []string{
		"vLLM, tp 2 x 4 replicas", "SGLang, FP8, tp 2 x 4 replicas, max_model_len 20000", "SGLang, FP8, tp 4 x 2 replicas, max_model_len 20000",
	}
	if !reflect.DeepEqual(run, want) {
		t.Errorf("arms %q, want %q", run, want)
	}
	for _, step := range f.Steps(f.Candidates()[1].Config) {
		if v, ok := step.Set["max_num_seqs"]; ok && v != "100" && v != "300" {
			t.Errorf("step %s", step.Label)
		}
	}
	for _, d := range f.Domain() {
		if d.Name == "max_num_seqs" && !reflect.DeepEqual(d.Values, []string{"100", "300"}) {
			t.Errorf("domain %v", d)
		}
	}
}

func TestBaselinesFurtherSettings(t *testing.T) {
	s := studies()["docker-vllm"]
	s.Changes = []tune.Change{change("SGLang", "engine", "sglang")}
	s.Baseline = with(s.Baseline, set("performance_mode", "balanced", "async", "", "max_num_seqs", "256", "enforce_eager", "true", "max_model_len", "20000"))
	f := field(t, s)
	arms := f.Candidates()
	for _, a := range arms {
		if want := a.Config["engine"] == "vllm" && !strings.Contains(a.Label, "by default"); a.Refused == "" && want != (a.Config["enforce_eager"] == "true") && a.Prior == "" {
			t.Errorf("%s is %v", a.Label, a.Config)
		}
		if a.Config["max_model_len"] != "20000" {
			t.Errorf("%s has another length: %v", a.Label, a.Config)
		}
	}
	run, _ := labels(arms)
	for _, want := range []string{"vLLM, tp 2 x 4 replicas", "vLLM, tp 2 x 4 replicas, enforce_eager by default, max_num_seqs by default, performance_mode by default"} {
		if !slices.Contains(run, want) {
			t.Errorf("no arm %q in %q", want, run)
		}
	}
	var dropped bool
	for _, step := range f.Steps(s.Baseline) {
		v, ok := step.Set["enforce_eager"]
		dropped = dropped || ok && v == ""
	}
	if !dropped {
		t.Error("no step leaves enforce_eager out")
	}
}

func TestPriorsAndCarriedSettings(t *testing.T) {
	s := studies()["docker-vllm"]
	s.Changes = []tune.Change{change("TP1 short", "tp", "1", "max_model_len", "32768")}
	s.Candidates = []tune.Candidate{
		{Label: "recipe", Config: set("engine", "sglang", "tp", "4", "max_num_seqs", "512"), Prior: "recipes.yaml"},
		{Label: "recipe", Config: set("engine", "vllm", "model", q32, "tp", "3"), Prior: "recipes.yaml"},
		{Label: "known", Config: set("engine", "vllm", "tp", "4"), Prior: "recipes.yaml"},
	}
	s.Label = "ours"
	f := field(t, s)
	arms := f.Candidates()
	find := func(label string) tune.Candidate {
		for _, a := range arms {
			if a.Label == label {
				return a
			}
		}
		t.Fatalf("no arm %q in %v", label, arms)
		return tune.Candidate{}
	}
	if a := find("TP1 short"); a.Prior != ofStudy || a.Refused != "" || !a.Named || f.Label(a.Config) != "vLLM, tp 1 x 8 replicas, max_model_len 32768" {
		t.Errorf("%+v is %s", a, f.Label(a.Config))
	}
	if a := find("ours"); !maps.Equal(a.Config, s.Baseline) || f.Label(a.Config) != "vLLM, tp 2 x 4 replicas" {
		t.Errorf("%+v is %s", a, f.Label(a.Config))
	}
	if a := find("recipe"); a.Prior != "recipes.yaml" || a.Config["model"] != q32 || a.Refused != "" {
		t.Errorf("%+v", a)
	}
	if a := find("recipe (2)"); !strings.Contains(a.Refused, "64 attention heads cannot be divided over tp 3") {
		t.Errorf("%+v", a)
	}
}

func TestEnginesForeignToACheckpoint(t *testing.T) {
	s := studies()["qwen3-32b-h100"]
	s.Engines = append(s.Engines, "llamacpp")
	s.Models = append(s.Models, "ggml-org/Qwen3-32B-GGUF")
	_, refused := labels(field(t, s).Candidates())
	for _, want := range []string{"llama.cpp", "llama.cpp, FP8", "vLLM, GGUF", "SGLang, GGUF", "TensorRT-LLM, GGUF"} {
		if !slices.Contains(refused, want) {
			t.Errorf("no refused arm %q in %q", want, refused)
		}
	}
}

func TestModelsLargerThanTheDevices(t *testing.T) {
	s := study{Options: Options{
		Baseline: set("engine", "vllm", "model", q235, "tp", "4"), Engines: []string{"vllm"}, GPUs: 6, Longest: 4000,
		Resolve: resolver("h200", 6, nil),
	}}
	run, _ := labels(field(t, s).Candidates())
	if !slices.Contains(run, "vLLM, tp 4") && !slices.Contains(run, "vLLM, tp 2 pp 2") {
		t.Errorf("six devices hold it in %q", run)
	}
}

// TestLongestPrompt: what takes no prompt as long as the study's is refused before a launch, unless the
// baseline takes none either.
func TestLongestPrompt(t *testing.T) {
	const rule = "the study's longest prompt takes 20000 tokens"
	small, large := set("engine", "trtllm", "model", q32), set("engine", "trtllm", "model", q32, "max_num_batched_tokens", "32768")
	s := studies()["qwen3-32b-h100"]
	s.Prompt = 20000
	f := field(t, s)
	if why := f.Refuse(small); !strings.HasPrefix(why, rule) {
		t.Errorf("an engine that takes 8192 tokens at once is refused for %q", why)
	}
	if why := f.Refuse(large); why != "" {
		t.Errorf("one that takes 32768 is refused for %q", why)
	}
	for _, c := range f.Candidates() {
		if c.Config["engine"] == "trtllm" && c.Refused == "" && c.Config["max_num_batched_tokens"] == "" && c.Config["chunked_prefill"] == "" {
			t.Errorf("%s is a candidate", c.Label)
		}
	}
	s.Baseline = small
	if why := field(t, s).Refuse(small); why != "" {
		t.Errorf("where the baseline takes none such it is refused for %q", why)
	}
}

// TestArmsAreBounded holds the catalogue of large models to what can be raced.
func TestArmsAreBounded(t *testing.T) {
	for _, c := range []struct {
		gpu, model string
		gpus       int
		want       []string
	}{
		{"h200", "deepseek-ai/DeepSeek-V3", 8, []string{"SGLang, tp 8 dp 8 with attention DP, MTP, KV fp8", "TensorRT-LLM, tp 8 with attention DP and EP", "vLLM, tp 1 dp 8 with EP"}},
		{"h200", "zai-org/GLM-4.6-FP8", 8, []string{"vLLM, tp 4 x 2 replicas, MTP", "vLLM, tp 1 dp 8 with EP, max_model_len 9216"}},
		{"l40s", "Qwen/Qwen3-30B-A3B", 8, []string{"vLLM, tp 1 pp 2 x 4 replicas", "SGLang, fp8 on loading, tp 1 x 8 replicas"}},
		{"gb10", "openai/gpt-oss-120b", 4, []string{"vLLM, tp 1 pp 4", "SGLang, tp 4 with EP"}},
	} {
		f := field(t, study{Options: Options{
			Baseline: set("engine", "vllm", "model", c.model, "tp", strconv.Itoa(c.gpus)), Engines: []string{"vllm", "sglang", "trtllm"},
			GPUs: c.gpus, Numerics: true, Longest: 9000, Resolve: resolver(c.gpu, c.gpus, nil),
		}})
		run, refused := labels(f.Candidates())
		if len(run) < 20 || len(run) > maxCombined || len(refused) > 6 {
			t.Errorf("%s on %s: %d arms run and %d do not", c.model, c.gpu, len(run), len(refused))
		}
		for _, w := range c.want {
			if !slices.Contains(run, w) {
				t.Errorf("%s on %s: no arm %q in %q", c.model, c.gpu, w, run)
			}
		}
	}
}

func TestNumericsAndSettings(t *testing.T) {
	f := field(t, studies()["docker-vllm"])
	base := set("engine", "vllm", "model", q32, "tp", "2")
	for _, c := range []struct {
		set      tune.Config
		alike    bool
		settings int
	}{
		{set("tp", "1"), true, 0},
		{set("tp", "4", "max_num_seqs", "512"), true, 2},
		{set("engine", "sglang"), true, 1},
		{set("kv_cache_dtype", "auto"), true, 1},
		{set("kv_cache_dtype", "fp8"), false, 2},
		{set("model", q32+"-FP8"), false, 1},
		{set("quantization", "fp8"), false, 2},
		{set("speculative", "ngram:3"), false, 2},
	} {
		got := with(base, c.set)
		if alike := f.Numerics(got) == f.Numerics(base); alike != c.alike {
			t.Errorf("%v: %q beside %q", c.set, f.Numerics(got), f.Numerics(base))
		}
		if n := f.Settings(got); n != c.settings {
			t.Errorf("%v: %d settings, want %d", c.set, n, c.settings)
		}
	}
	a, b := set("engine", "vllm", "model", q32, "speculative", "ngram:3"), set("engine", "sglang", "model", q32, "speculative", "ngram:5")
	if f.Numerics(a) != f.Numerics(b) {
		t.Errorf("%q and %q", f.Numerics(a), f.Numerics(b))
	}
}

func TestWrongOptions(t *testing.T) {
	_, err := New(Options{Engines: []string{"vllm", "sgl"}, Narrow: map[string][]string{"tp": nil}})
	for _, want := range []string{"give Resolve", "at least 1", "names no engine", `unknown engine "sgl"`, "none of tp"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

func TestWords(t *testing.T) {
	for _, c := range []struct{ models, want []string }{
		{[]string{"a/Qwen3-32B"}, []string{""}},
		{[]string{"a/Qwen3-32B", "b/Qwen3-32B-FP8", "b/Qwen3-32B-FP8-dynamic"}, []string{"", "FP8", "FP8-dynamic"}},
		{[]string{"m/x-Q4_0.gguf", "m/x-Q4_1.gguf"}, []string{"Q4_0", "Q4_1"}},
		{[]string{"a/m", "b/m"}, []string{"", "b/m"}},
	} {
		w := words(c.models)
		for i, m := range c.models {
			if w[m] != c.want[i] {
				t.Errorf("%s of %q is %q, want %q", m, c.models, w[m], c.want[i])
			}
		}
	}
}
