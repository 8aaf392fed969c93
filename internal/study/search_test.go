package study

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"perflab/internal/tune"
	"perflab/internal/workload"
)

// raced is a study that says everything that a race can be told.
const raced = `name: t
model: Qwen/Qwen3-8B
hardware: {gpu: h100-sxm, gpus: 2}
engines: {vllm: {}, sglang: {}, llamacpp: {}}
objective: {metric: total_token_throughput, min_gain: 1%, weights: {a: 2, b: 1}, slos: [p99_ttft_ms <= baseline + 5%]}
workloads:
  - {name: a, dataset_name: random, num_prompts: 600, max_concurrency: 8}
  - {name: b, dataset_name: random, num_prompts: 10}
baseline: {label: base, engine: vllm}
space: {model: [Qwen/Qwen3-8B], tp: [1, 2], max_num_seqs: [128, 256, ""]}
arms: [{label: mine, engine: sglang, set: {tp: 2, max_num_seqs: 99}}]
priors: [PRIORS]
stages:
  - name: s
    try: [{label: c, set: {max_num_batched_tokens: 4096}}, {label: f, engine: sglang, fresh: true, set: {max_num_seqs: 77}}]
budget: {trials: 20, time: 3h, gpu_hours: 4}
race: {rounds: 2, short_load: 0.25}
runtime: {kind: simulated}
`

// someRecipes is a file of priors: one that the study may try twice, and two that it
// may not.
const someRecipes = `- {label: mine, engine: sglang, set: {max_num_seqs: 300}, source: a recipe book}
- {label: other model, engine: vllm, model: Qwen/Qwen3-32B}
- {label: other engine, engine: trtllm}
- {label: another, engine: vllm, set: {max_num_seqs: 400}}
`

// prior makes a file of recipes.
func prior(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "priors.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestParseRace(t *testing.T) {
	path := prior(t, someRecipes)
	s, err := Parse("t.yaml", []byte(strings.Replace(raced, "PRIORS", path, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if s.Strategy != Race || !slices.Equal(s.Space["max_num_seqs"], []string{"128", "256", ""}) {
		t.Errorf("read wrongly: %+v", s.Search)
	}
	engines, models := s.searchedNames()
	if !slices.Equal(engines, []string{"vllm", "sglang"}) || !slices.Equal(models, []string{"Qwen/Qwen3-8B"}) {
		t.Errorf("engines %v, models %v: llama.cpp cannot be predicted", engines, models)
	}
	o := s.options()
	var arms []string
	for _, a := range o.Candidates {
		arms = append(arms, a.Label+" of "+a.Prior)
	}
	if want := []string{"f of the study", "mine of the study", "mine (2) of a recipe book", "another of " + path}; !slices.Equal(arms, want) {
		t.Errorf("arms %q, want %q", arms, want)
	}
	if len(o.Changes) != 1 || o.Latency || o.Numerics || o.Longest < 1024+128 || s.Skipped != 2 {
		t.Errorf("changes %v, longest %d, foreign %d", o.Changes, o.Longest, s.Skipped)
	}
	obj := s.Goal
	if obj.MinGain != 0.01 || obj.Weights["a"] != 2 || len(obj.SLOs) != 1 || obj.SLOs[0].Of == "" {
		t.Errorf("objective %+v", obj)
	}
	if b := s.Limits; b.Trials != 20 || b.Time != 2*time.Hour {
		t.Errorf("budget %+v: 4 hours of 2 GPUs are 2 hours", b)
	}
}

// Without a word a study races, and asks for 2 %; an endpoint that is up cannot.
func TestDefaultStrategy(t *testing.T) {
	text := strings.Replace(small, "strategy: staged\n", "", 1)
	s, err := Parse("t.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if s.Strategy != Race || s.Goal.MinGain != 0.02 {
		t.Errorf("strategy %s, objective %+v", s.Strategy, s.Goal)
	}
	up := small[:strings.Index(small, "stages:")] + "runtime: {kind: existing, urls: ['http://127.0.0.1:1']}\n"
	if s, err = Parse("t.yaml", []byte(up)); err != nil || s.Strategy != Staged {
		t.Errorf("of an endpoint: %v (%v)", s, err)
	}
	for _, name := range Strategies() {
		if name == Survey {
			continue
		}
		if s, err = ParseAs("t.yaml", []byte(strings.Replace(text, "runtime:", "budget: {trials: 12}\nrace: {rounds: 2}\nruntime:", 1)), name); err != nil || s.Strategy != name {
			t.Errorf("as %s: %v", name, err)
		}
	}
}

// Each case edits the study of a race and names the message it must get.
func TestRaceErrors(t *testing.T) {
	good := strings.Replace(raced, "PRIORS", prior(t, someRecipes), 1)
	tests := []struct{ name, old, new, want string }{
		{"no strategy", "name: t\n", "name: t\nstrategy: bayes\n", `t.yaml:2:11: strategy "bayes" is not known: use race, staged, survey, random, grid, tpe`},
		{"unknown parameter", "tp: [1, 2]", "tpp: [1, 2]", "t.yaml:10:38: unknown parameter"},
		{"no values", "tp: [1, 2]", "tp: []", "t.yaml:10:37: tp has no values"},
		{"unreadable value", "tp: [1, 2]", "tp: [1, two]", "t.yaml:10:41: parameter tp=\"two\""},
		{"no list", "tp: [1, 2]", "tp: 1", "t.yaml:10:37: 1 is no list"},
		{"unknown engine", "tp: [1, 2]", "engine: [vllm, sgl]", "t.yaml:10:48: "},
		{"engine without a model of it", "tp: [1, 2]", "engine: [vllm, llamacpp]", "t.yaml:10:48: llama.cpp is not modelled"},
		{"unknown model", "model: [Qwen/Qwen3-8B]", "model: [acme/Foo]", "t.yaml:10:17: unknown model"},
		{"arm without an engine", "engine: sglang, set: {tp: 2, max", "set: {tp: 2, max", "t.yaml:11:8: engine is missing"},
		{"arm of an unknown parameter", "max_num_seqs: 99", "max_seqs: 99", "t.yaml:11:"},
		{"arms of one label", "arms: [", "arms: [{label: mine, engine: vllm}, ", `t.yaml:11:37: the label "mine" is taken`},
		{"no priors", "priors: [", "priors: [nope.yaml, ", "t.yaml:12:10: read the recipes: open nope.yaml"},
		{"rounds", "rounds: 2", "rounds: 1", "t.yaml:17:16: rounds is 1: give 2 to 50"},
		{"short load", "short_load: 0.25", "short_load: 25", "t.yaml:17:31: short_load is 25"},
		{"gain", "min_gain: 1%", "min_gain: lots", `t.yaml:5:55: min_gain "lots" is no share`},
		{"weight of no workload", "weights: {a: 2", "weights: {a: 2, c: 1", `t.yaml:5:`},
		{"weight of nothing", "weights: {a: 2", "weights: {a: 0", "the weight of a is 0"},
		{"primary without a weight", "weights: {a: 2, b: 1}", "weights: {b: 1}", "t.yaml:5:68: the first workload, a, has no weight"},
		{"relative bound", "baseline + 5%", "baseline times 2", "t.yaml:5:"},
		{"accuracy without questions", "p99_ttft_ms <= baseline + 5%", "accuracy >= baseline - 2pt", "a bound on accuracy needs questions"},
		{"absolute accuracy", "p99_ttft_ms <= baseline + 5%", "accuracy >= 80%", "write accuracy >= baseline - 2pt"},
		{"GPU hours", "gpu_hours: 4", "gpu_hours: -4", "t.yaml:16:43: gpu_hours is -4"},
		{"small budget", "trials: 20", "trials: 5", "t.yaml:16:9: a budget of 5 trials is too small for a race"},
		{"no baseline", "baseline: {label: base, engine: vllm}\n", "", "t.yaml:1:1: baseline is missing"},
		{"candidates", "arms:", "candidates: [{label: x, engine: vllm}]\narms:", "t.yaml:11:13: candidates belongs to strategy survey, which must be said"},
		{"staged with a space", "name: t\n", "name: t\nstrategy: staged\n", "t.yaml:11:8: space belongs to strategy race: a staged study tries what it lists"},
		{"weights of a draw", "name: t\n", "name: t\nstrategy: random\n", "weights belong to strategy race"},
		{"rounds of a draw", "name: t\n", "name: t\nstrategy: tpe\n", "race belongs to strategy race, not tpe"},
		{"bound of a draw", "name: t\n", "name: t\nstrategy: grid\n", "is a bound of the baseline's figure, which strategy race has: give grid an amount"},
		{"endpoint", "kind: simulated", "kind: existing, urls: [http://h:1]", "t.yaml:18:17: an existing endpoint cannot be reconfigured"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := strings.Replace(good, tt.old, tt.new, 1)
			if text == good {
				t.Fatalf("the edit %q changes nothing", tt.old)
			}
			_, err := Parse("t.yaml", []byte(text))
			if _, ok := errors.AsType[*Error](err); !ok || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

// What is wrong in a file of recipes has its own line and column.
func TestRecipeErrors(t *testing.T) {
	for text, want := range map[string]string{
		"- {label: a, engine: vllm, sets: {}}":       `priors.yaml:1:28: unknown key "sets"`,
		"- {engine: vllm}":                           "priors.yaml:1:3: this recipe needs a label",
		"- {label: a, engine: vllm}\n- {label: b}\n": "priors.yaml:2:3: ",
		"- {label: a, engine: vllm, set: {tpp: 1}}":  "priors.yaml:1:3: unknown parameter",
		"label: a": "priors.yaml:1:1: a value of another kind belongs here: a list",
		"":         "list recipes of label, engine, model, set and source",
	} {
		path := prior(t, text)
		_, err := Parse("t.yaml", []byte(strings.Replace(raced, "PRIORS", path, 1)))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "t.yaml:12:10: "+filepath.Dir(path)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// A part of a load is its first requests, never fewer than tell something.
func TestPart(t *testing.T) {
	l := &Study{File: &File{Workloads: []Workload{{Name: "a"}}}, counts: map[string]int{}}
	spec := &l.Workloads[0].Spec
	for _, tt := range []struct {
		name     string
		dataset  string
		prompts  int
		limit    int
		duration string
		share    float64
		want     int
		seconds  string
	}{
		{"a third", "random", 900, 0, "", 1. / 3, 300, ""},
		{"all", "random", 900, 0, "", 0, 900, ""},
		{"at least a hundred", "random", 150, 0, "", 0.1, 100, ""},
		{"all of a few", "random", 60, 0, "", 0.1, 60, ""},
		{"fills the limit twice", "random", 900, 150, "", 0.1, 300, ""},
		{"by default", "random", 0, 0, "", 0.2, 200, ""},
		{"time", "random", 0, 8, "120s", 0.25, 0, "30s"},
		{"some time", "random", 0, 8, "20s", 0.1, 0, "10s"},
		{"whole groups", "prefix_repetition", 900, 0, "", 1. / 3, 300, ""},
	} {
		*spec = workload.Spec{Dataset: tt.dataset, NumPrompts: tt.prompts, MaxConcurrency: tt.limit, Duration: workload.Span(tt.duration)}.Defaults()
		got := l.ShortenedSpec("a", 0, tt.share)
		if got.NumPrompts != tt.want || string(got.Duration) != tt.seconds {
			t.Errorf("%s: %d prompts, %q, want %d, %q", tt.name, got.NumPrompts, got.Duration, tt.want, tt.seconds)
		}
		if whole := l.WorkloadSpec("a", 0); whole.Seed != got.Seed || whole.Nonce != got.Nonce {
			t.Errorf("%s: other prompts", tt.name)
		}
		clear(l.counts)
	}
}

// TestShortLoad: configurations compete under a part of the load first only where it is any
// shorter. A load that cannot be shortened is met whole by all of them.
func TestShortLoad(t *testing.T) {
	for name, tt := range map[string]struct {
		old, new string
		want     float64 // of the load, in the baseline's second launch; 0: all of it
	}{
		"as the study says":     {"", "", 0.25},
		"a few requests":        {"num_prompts: 600", "num_prompts: 90", 0},
		"of another workload":   {"num_prompts: 600, max_concurrency: 8}\n  - {name: b, dataset_name: random, num_prompts: 10}", "num_prompts: 90}\n  - {name: b, dataset_name: random, num_prompts: 600}", 0.25},
		"no time in the budget": {"time: 3h, gpu_hours: 4", "", 0},
	} {
		text := strings.Replace(strings.Replace(raced, "priors: [PRIORS]\n", "", 1), tt.old, tt.new, 1)
		s, err := Parse("t.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		race, _, err := s.NewStrategy(nil)
		if err != nil {
			t.Fatal(err)
		}
		p, _ := race.Ask()
		race.Tell(tune.Observation{Trial: p.Trial, Status: tune.Measured, Seconds: 60, Figures: map[string]map[string]float64{
			"a": {"total_token_throughput": 1000, "p99_ttft_ms": 100}, "b": {"total_token_throughput": 1000, "p99_ttft_ms": 100}}})
		if p, ok := race.Ask(); !ok || p.Share != tt.want {
			t.Errorf("%s: the second launch is under %v of the load (%v), want %v", name, p.Share, ok, tt.want)
		}
		tune.Stop(race)
	}
}
