package study

import (
	"strings"
	"testing"

	"perflab/internal/result"
	"perflab/internal/tune"
)

// impossible is a study that a line or two of it makes one whose baseline cannot start.
const impossible = `name: t
model: Qwen/Qwen3-8B
hardware: {gpu: h100-sxm, gpus: 1}
objective: {metric: total_token_throughput}
workloads:
  - {name: a, dataset_name: random, num_prompts: 10}
baseline: {label: base, engine: vllm, set: {tp: 16}}
runtime: {kind: KIND}
`

// A baseline that breaks a rule is said where it stands, before anything is launched; one that is
// up already, and candidates, are judged when they are measured.
func TestImpossibleBaseline(t *testing.T) {
	for _, kind := range []string{Process, Simulated, Predicted} {
		_, err := Parse("t.yaml", []byte(strings.Replace(impossible, "KIND", kind, 1)))
		if err == nil || !strings.Contains(err.Error(), "t.yaml:7:11: the baseline would not start: the configuration takes 16 GPUs") || !strings.Contains(err.Error(), "use a smaller tp") {
			t.Errorf("%s: %v", kind, err)
		}
	}
	weights := strings.NewReplacer("KIND", Process, "Qwen3-8B", "Qwen3-235B-A22B-Instruct-2507", ", set: {tp: 16}", "").Replace(impossible)
	if _, err := Parse("t.yaml", []byte(weights)); err == nil || !strings.Contains(err.Error(), "the baseline would not start") {
		t.Errorf("weights that do not fit: %v", err)
	}
	candidate := strings.NewReplacer("KIND", Process, ", set: {tp: 16}}", "}\nstages: [{name: p, try: [{label: TP16, set: {tp: 16}}]}]").Replace(impossible)
	if _, err := Parse("t.yaml", []byte(candidate)); err != nil {
		t.Errorf("a candidate: %v", err)
	}
	up := strings.Replace(impossible, "KIND", "existing, urls: ['http://127.0.0.1:8000']", 1)
	if _, err := Parse("t.yaml", []byte(up)); err != nil {
		t.Errorf("what is up: %v", err)
	}
}

// Which studies have a load that decides their objective.
func TestOffers(t *testing.T) {
	for _, tt := range []struct{ metric, workload, more, want string }{
		{"total_token_throughput", "request_rate: 10", "", "10 requests/s of workload a"},
		{"output_throughput_per_gpu", "request_rate: 2.5, max_concurrency: 64", "", "2.5 requests/s of workload a"},
		{"steady_request_throughput", "request_rate: 10", "", "10 requests/s of workload a"},
		{"cost_per_million_tokens", "request_rate: 10", "", "10 requests/s of workload a"},
		{"total_token_throughput", "random_input_len: 8", "", ""},
		{"total_token_throughput", "max_concurrency: 8", "", ""},
		{"p99_ttft_ms", "request_rate: 10", "", ""},
		{"total_token_throughput", "request_rate: 10", "  - {name: b, dataset_name: random}\n", "10 requests/s of workload a"},
		{"total_token_throughput", "request_rate: 10", "  - {name: b, dataset_name: random}\nweights", ""},
		{"total_token_throughput", "request_rate: 10", "  - {name: b, dataset_name: random, request_rate: 5}\nweights", "10 requests/s of workload a, 5 requests/s of workload b"},
		{"goodput_rate", "find_max: {axis: rate}", "", ""},
	} {
		more, weighed := strings.CutSuffix(tt.more, "weights")
		objective := "{metric: " + tt.metric + ", slos: [p99_ttft_ms <= 500]}"
		if weighed {
			objective = strings.Replace(objective, "}", ", weights: {a: 1, b: 1}}", 1)
		}
		text := strings.NewReplacer("KIND", Process, ", set: {tp: 16}", "", "gpus: 1", "gpus: 1, price_per_hour: 2 USD", "{metric: total_token_throughput}", objective,
			", num_prompts: 10}\n", ", "+tt.workload+"}\n"+more).Replace(impossible)
		s, err := Parse("t.yaml", []byte(text))
		if err != nil {
			t.Fatalf("%s of %s: %v", tt.metric, tt.workload, err)
		}
		var got []string
		for _, o := range s.Offers() {
			got = append(got, o.Text())
		}
		if strings.Join(got, ", ") != tt.want {
			t.Errorf("%s of %s: %q, want %q", tt.metric, tt.workload, got, tt.want)
		}
	}
	for _, name := range boundByRate {
		if _, err := result.Lookup(name); err != nil || name != strings.TrimSuffix(name, "_per_gpu") {
			t.Error(name, err)
		}
	}
}

// What a configuration cuts of the context is said against the baseline, and against the model
// where there is none.
func TestShorterContext(t *testing.T) {
	s, err := Parse("t.yaml", []byte(strings.NewReplacer("KIND", Process, "tp: 16", "max_model_len: 8192").Replace(impossible)))
	if err != nil {
		t.Fatal(err)
	}
	of := func(s *Study, length string) string {
		return s.ShorterContext(tune.Config{"engine": "sglang", "model": s.Model, "max_model_len": length})
	}
	for length, want := range map[string]string{
		"4096": "serves requests of up to 4096 tokens, the baseline of up to 8192", "8192": "", "": "", "16384": "",
	} {
		if got := of(s, length); got != want {
			t.Errorf("%q: %q, want %q", length, got, want)
		}
	}
	survey := strings.NewReplacer("KIND", Process, "baseline: {label: base, engine: vllm, set: {tp: 16}}", "strategy: survey\ncandidates: [{label: one, engine: vllm}]").Replace(impossible)
	if s, err = Parse("t.yaml", []byte(survey)); err != nil {
		t.Fatal(err)
	}
	if got, want := of(s, "4096"), "serves requests of up to 4096 tokens, the model's own length is 40960"; got != want || of(s, "") != "" {
		t.Errorf("%q, want %q", got, want)
	}
}
