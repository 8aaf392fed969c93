package study

import (
	"errors"
	"strings"
	"testing"
)

// TestAllMistakesAtOnce: what is wrong in a file's form and in its values is told together, in the
// order of the file; of what could not be read nothing more is said.
func TestAllMistakesAtOnce(t *testing.T) {
	_, err := Parse("t.yaml", []byte(`name: t
sed: 3
hardware: {gpu: h100-sx, gpus: two}
objective: total_token_throughput
workloads:
  - {dataset: random, num_prompts: 10, input_len: 4}
  - {name: b, dataset_name: randm}
runtime: {knd: simulated}
baseline: {engine: vlm, sett: {tensor_parallel: 2}, set: {tensor_parallel: 2}}
strategy: racing
budget: {trials: many, time: soon}
`))
	var e *Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	want := `2:1: unknown key "sed": did you mean seed?
3:17: unknown accelerator "h100-sx": did you mean h100-sxm? Or use one of
3:32: two is not a whole number
4:12: total_token_throughput is no mapping (key: value)
6:5: name is missing: workload 1 needs one, for its directories
6:6: unknown key "dataset": did you mean dataset_name?
6:40: unknown key "input_len": did you mean random_input_len?
7:29: workload b: dataset_name "randm" is unknown: did you mean random? (known: random,
8:11: unknown key "knd": did you mean kind?
9:11: model is missing, here or at the top of the study
9:20: unknown engine "vlm": did you mean vllm?
9:25: unknown key "sett": did you mean set?
9:76: unknown parameter "tensor_parallel": did you mean tp? perflab engines lists all
10:11: strategy "racing" is not known: use race, staged, survey, random, grid, tpe
11:18: many is not a whole number
11:30: `
	lines := strings.Split(want, "\n")
	if len(e.Problems) != len(lines) {
		t.Errorf("%d mistakes, want %d:\n%s", len(e.Problems), len(lines), strings.Join(e.Problems, "\n"))
	}
	for i := range min(len(lines), len(e.Problems)) {
		if !strings.HasPrefix(e.Problems[i], lines[i]) {
			t.Errorf("got  %s\nwant %s", e.Problems[i], lines[i])
		}
	}
}
