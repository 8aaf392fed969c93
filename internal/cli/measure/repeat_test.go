package measure

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"perflab/internal/lab"
	"perflab/internal/replay"
	"perflab/internal/study"
)

const repeatStudy = `name: repeat
model: Qwen/Qwen3-8B
seed: 7
hardware: {gpu: h100-sxm, gpus: 1}
objective: {metric: total_token_throughput}
workloads:
  - {name: burst, dataset_name: random, num_prompts: 4, random_input_len: 64, random_output_len: 4, random_prefix_len: 16, max_concurrency: 2}
  - {name: rate, dataset_name: random, num_prompts: 4, random_input_len: 64, random_output_len: 4, random_range_ratio: 0.5, request_rate: 2.5}
  - {name: gamma, dataset_name: random, num_prompts: 4, random_input_len: 64, random_output_len: 4, request_rate: 9, burstiness: 0.5}
  - {name: even, dataset_name: random, num_prompts: 4, random_input_len: 64, random_output_len: 4, request_rate: 3, arrival: constant}
  - {name: ramp, dataset_name: random, num_prompts: 4, random_input_len: 64, random_output_len: 4, ramp_up_strategy: linear, ramp_up_start_rps: 1, ramp_up_end_rps: 9}
  - {name: steps, dataset_name: random, random_input_len: 64, random_output_len: 4, steps: "2:1s,4:1", arrival: constant}
  - {name: time, dataset_name: random, random_input_len: 64, random_output_len: 4, request_rate: 9, duration: 2}
  - {name: adapters, dataset_name: random, num_prompts: 4, random_input_len: 64, random_output_len: 4, lora_modules: [a, b c], lora_assignment: round-robin}
baseline: {label: vLLM, engine: vllm}
runtime: {kind: predicted}
strategy: random
budget: {trials: 2}
`

// TestReportedCommandRepeats: the bench command that a report prints for a
// workload is, flag by flag, the workload that was measured.
func TestReportedCommandRepeats(t *testing.T) {
	s, err := study.Parse("repeat.yaml", []byte(repeatStudy))
	if err != nil {
		t.Fatal(err)
	}
	facts, err := lab.Tune(t.Context(), s, []byte(repeatStudy), lab.Options{
		Dir: filepath.Join(t.TempDir(), "out"), Predictor: replay.Predictor{},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range facts.Workloads {
		words := strings.Fields(strings.Replace(w.Command, "HOST:PORT", "127.0.0.1:8000", 1))
		for i, word := range words { // as a shell has it; only the name with a space is quoted here
			if word == "'a,b" {
				words = slices.Replace(words, i, i+2, "a,b c")
				break
			}
		}
		if words[0] != "perflab" || words[1] != "bench" {
			t.Fatalf("%s: %q is no bench command", w.Name, w.Command)
		}
		f := &benchFlags{}
		fs := pflag.NewFlagSet("bench", pflag.ContinueOnError)
		f.add(fs)
		if err := fs.Parse(words[2:]); err != nil {
			t.Fatalf("%s: %v", w.Command, err)
		}
		if err := f.complete(fs); err != nil {
			t.Fatalf("%s: %v", w.Command, err)
		}
		want := s.Workloads[i].Spec
		want.Seed = 7 + uint64(i)
		if d := cmp.Diff(want, f.spec.Workload); d != "" {
			t.Errorf("%s\n-measured +repeated:\n%s", w.Command, d)
		}
	}
}

// TestPercentilesAskedFor: an SLO or an objective on a percentile that no block
// shows still has its figure.
func TestPercentilesAskedFor(t *testing.T) {
	text := strings.Replace(repeatStudy, "{metric: total_token_throughput}", "{metric: p75_itl_ms, slos: [p99.9_ttft_ms <= 60000]}", 1)
	s, err := study.Parse("p.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	facts, err := lab.Tune(t.Context(), s, []byte(text), lab.Options{Dir: filepath.Join(t.TempDir(), "out"), Predictor: replay.Predictor{}})
	if err != nil {
		t.Fatal(err)
	}
	figures := facts.Recommended.Summary.Figures
	for _, name := range []string{"p75_itl_ms", "p99.9_ttft_ms"} {
		if _, ok := figures[name]; !ok {
			t.Errorf("the study asked for %s and has none", name)
		}
	}
	if err := judgeStudy(facts); err != nil {
		t.Errorf("the SLO is met and missed: %v", err)
	}

	f := &benchFlags{}
	fs := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	f.add(fs)
	if err := fs.Parse([]string{"--model", "m", "--slo", "p99.9_ttft_ms <= 5", "--metric-percentiles", "50"}); err != nil {
		t.Fatal(err)
	}
	if err := f.complete(fs); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]float64{50, 99.9}, f.spec.Percentiles); d != "" {
		t.Errorf("-want +computed:\n%s", d)
	}
	if d := cmp.Diff([]float64{50}, f.shownPercentiles); d != "" {
		t.Errorf("-want +shown:\n%s", d)
	}
}
