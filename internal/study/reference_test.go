package study

import (
	"strings"
	"testing"

	"perflab/internal/tune/foresight"
)

const withReference = `name: t
model: Qwen/Qwen3-8B
hardware: {gpu: h100-sxm, gpus: 2}
objective: {metric: total_token_throughput}
workloads:
  - {name: a, dataset_name: random, num_prompts: 10}
baseline: {label: base, engine: vllm, published: 100}
stages:
  - name: s
    try: [{label: f, engine: sglang, fresh: true, set: {tp: 2}, published: 150}, {label: c, set: {max_num_seqs: 64}}]
reference: {label: theirs, source: a page, engine: trtllm, model: Qwen/Qwen3-8B-FP8, set: {tp: 2}, published: 180}
budget: {trials: 5}
runtime: {kind: predicted}
`

// TestReference: a published recommendation is tried with what the study names, its engine and
// checkpoint among those that are searched; where nothing is launched no budget is too small.
func TestReference(t *testing.T) {
	s, err := Parse("t.yaml", []byte(withReference))
	if err != nil {
		t.Fatal(err)
	}
	st, field, err := s.NewStrategy(nil)
	if _, forecast := st.(*foresight.Search); err != nil || !forecast {
		t.Fatalf("strategy %T, %v", st, err)
	}
	named := map[string]bool{}
	others := false
	for _, c := range field.Candidates() {
		named[c.Label] = c.Named
		others = others || !c.Named && c.Config["engine"] == "trtllm"
	}
	if !named["theirs"] || !named["f"] || !others {
		t.Errorf("candidates %v", named)
	}
	var figures []float64
	for _, p := range s.PublishedFigures() {
		figures = append(figures, p.Figure)
	}
	if len(figures) != 3 || figures[0] != 100 || figures[1] != 150 || figures[2] != 180 {
		t.Errorf("published %v", figures)
	}
	s.Runtime.Kind = Simulated
	if _, _, err := s.NewStrategy(nil); err == nil {
		t.Error("5 launches are enough for a race")
	}
}

func TestReferenceErrors(t *testing.T) {
	for _, tt := range []struct{ old, new, want string }{
		{"set: {max_num_seqs: 64}", "set: {max_num_seqs: 64}, published: 9", "a published figure is of a whole configuration: give this candidate fresh: true"},
		{"published: 100", "published: -1", "published is -1: give the figure of the objective as it was published, above 0"},
		{"engine: trtllm", "engine: foo", "foo"},
		{"label: theirs, ", "", "label is missing"},
		{"Qwen/Qwen3-8B-FP8", "Qwen/NoSuchModel", "NoSuchModel"},
		{"source: a page", "sauce: a page", "sauce"},
	} {
		_, err := Parse("t.yaml", []byte(strings.Replace(withReference, tt.old, tt.new, 1)))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.new, err)
		}
	}
}

// TestReferenceOfSurvey: a survey measures the reference too, once.
func TestReferenceOfSurvey(t *testing.T) {
	text := "name: t\nstrategy: survey\nmodel: Qwen/Qwen3-8B\nhardware: {gpu: h100-sxm, gpus: 2}\nobjective: {metric: total_token_throughput}\nworkloads: [{name: a, dataset_name: random, num_prompts: 10}]\ncandidates: [{label: x, engine: vllm}]\nreference: {label: r, engine: ENGINE}\nruntime: {kind: predicted}\n"
	for engine, want := range map[string]int{"vllm": 1, "sglang": 2} {
		s, err := Parse("t.yaml", []byte(strings.Replace(text, "ENGINE", engine, 1)))
		if err != nil {
			t.Fatal(err)
		}
		if got := len(s.surveyed()); got != want {
			t.Errorf("%s: %d configurations, want %d", engine, got, want)
		}
	}
}
