package study

import (
	"errors"
	"strings"
	"testing"

	"perflab/internal/tune"
)

// learning is a race that names earlier studies.
const learning = `name: t
model: Qwen/Qwen3-14B
hardware: {gpu: h100-sxm, gpus: 2}
objective: {metric: total_token_throughput}
workloads:
  - {name: a, dataset_name: random, num_prompts: 10, random_input_len: 100, random_output_len: 20, max_concurrency: 4}
baseline: {label: base, engine: vllm, set: {tp: 2}}
engines: {vllm: {version: 0.11.0}}
runtime: {kind: process}
earlier: [out/before, /data/results.md]
budget: {trials: 12}
`

// TestLearner: what the study is like to an earlier one.
func TestLearner(t *testing.T) {
	s, err := Parse("t.yaml", []byte(learning))
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.Learner()
	if err != nil {
		t.Fatal(err)
	}
	if l.Metric != "total_token_throughput" || l.Model != "Qwen/Qwen3-14B" || l.GPU.Name != "h100-sxm" || l.GPUs != 2 || l.Engines["vllm"] != "0.11.0" || l.Simulated {
		t.Errorf("%+v", l)
	}
	if o := l.Load; o.Dataset != "random" || o.Output != 20 || !(o.Input >= 100 && o.Input < 120) || o.Rate != 0 || o.Limit != 4 || o.Traced || o.Searched != "" {
		t.Errorf("load %+v", o)
	}
	names := map[string][]string{}
	for _, d := range l.Dimensions {
		names[d.Name] = d.Values
	}
	if len(names["tp"]) < 2 || names["engine"] == nil || names["model"] == nil {
		t.Errorf("dimensions %v", names)
	}
}

// TestEarlierKey: who cannot learn says so, with its line; another strategy by a flag drops them.
func TestEarlierKey(t *testing.T) {
	for text, want := range map[string]string{
		strings.Replace(learning, "kind: process", "kind: predicted", 1):                        "t.yaml:10:10: runtime kind predicted launches nothing",
		learning + "strategy: tpe\n":                                                            "t.yaml:10:10: earlier belongs to strategy race: tpe does not learn from other studies",
		learning + "strategy: staged\nstages: [{name: s, try: [{label: b, engine: sglang}]}]\n": "earlier belongs to strategy race",
	} {
		if _, err := Parse("t.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	s, err := ParseAs("t.yaml", []byte(learning), TPE)
	if err != nil || len(s.Earlier) > 0 {
		t.Fatalf("%v", err)
	}
	if err := s.LearnFrom([]string{"x"}); err == nil {
		t.Error("a study by tpe learns from another")
	}
	if s, err = Parse("t.yaml", []byte(learning)); err != nil {
		t.Fatal(err)
	}
	if err := s.LearnFrom([]string{"x"}); err != nil || len(s.Earlier) != 3 || s.Earlier[2] != "x" {
		t.Errorf("%v: %v", err, s.Earlier)
	}
	wrong := errors.New("it is gone")
	if got := s.EarlierError(1, wrong).Error(); got != "t.yaml:10:23: earlier study /data/results.md: it is gone" {
		t.Errorf("%s", got)
	}
	if got := s.EarlierError(2, wrong).Error(); !strings.HasPrefix(got, "earlier: ") || !strings.HasSuffix(got, "x: it is gone") {
		t.Errorf("%s", got)
	}
}

// TestFingerprintOfEarlier: a study is known by what it took of earlier ones, and not by where
// they lie.
func TestFingerprintOfEarlier(t *testing.T) {
	print := func(text string, known ...tune.Earlier) string {
		s, err := Parse("t.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		s.Known = known
		hash, err := s.Fingerprint()
		if err != nil {
			t.Fatal(err)
		}
		return hash
	}
	one := tune.Earlier{Name: "a", Likeness: 0.5, Measured: []tune.Known{{Config: tune.Config{"engine": "vllm"}, Figures: map[string]float64{"x": 1}}}}
	two := one
	two.Likeness = 0.6
	moved := strings.Replace(learning, "out/before", "elsewhere", 1)
	if print(learning, one) != print(moved, one) || print(learning, one) == print(learning, two) || print(learning, one) == print(learning) {
		t.Error("the fingerprint is of the places, or not of what was read")
	}
	if without := strings.Replace(learning, "earlier: [out/before, /data/results.md]\n", "", 1); print(without) != print(learning) {
		t.Error("a study that learned nothing has another fingerprint than one that names no study")
	}
}
