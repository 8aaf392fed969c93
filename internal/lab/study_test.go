package lab

import (
	"errors"
	"strings"
	"testing"
)

const good = `name: t
model: Qwen/Qwen3-32B
hardware: {gpu: h100-sxm, gpus: 2}
objective: {metric: total_token_throughput}
workloads:
  - {name: a, dataset_name: random, num_prompts: 10}
baseline: {label: base, engine: vllm}
stages:
  - name: engine
    try: [{label: SGLang, engine: sglang, set: {tp: 2}}]
runtime: {kind: predicted}
`

func TestParseStudy(t *testing.T) {
	s, err := ParseStudy("t.yaml", []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	if s.Stages[0].Try[0].Set["tp"] != "2" || s.Strategy != Staged || s.Workloads[0].Title != "a" {
		t.Errorf("study read wrongly: %+v", s)
	}
}

// Each case edits the good study and names the message it must get, with its
// line and column.
func TestStudyErrors(t *testing.T) {
	tests := []struct{ name, old, new, want string }{
		{"unknown top key", "name: t\n", "name: t\ncolour: red\n", `t.yaml:2:1: unknown key "colour"`},
		{"unknown inner key", "gpus: 2}", "gpus: 2, cores: 3}", `t.yaml:3:36: unknown key "cores"`},
		{"wrong type", "gpus: 2", "gpus: two", "t.yaml:3:33: two is not a whole number"},
		{"unknown gpu", "gpu: h100-sxm", "gpu: h1000", "t.yaml:3:17: "},
		{"unknown metric", "metric: total_token_throughput", "metric: total_tokn", "t.yaml:4:21: "},
		{"no such engine", "engine: sglang", "engine: sgl", "t.yaml:10:35: "},
		{"no such parameter", "set: {tp: 2}", "set: {tpp: 2}", "t.yaml:10:54: "},
		{"no baseline", "baseline: {label: base, engine: vllm}\n", "", "t.yaml:1:1: baseline is missing"},
		{"bad workload", "num_prompts: 10", "num_prompts: 10, sharegpt_output_len: 5", "t.yaml:6:5: workload a: "},
		{"runtime", "kind: predicted", "kind: slurm", `t.yaml:11:17: runtime kind "slurm" is not known`},
		{"slo", "metric: total_token_throughput", "metric: total_token_throughput, slos: [p99_ttft_ms < ]", "t.yaml:4:"},
		{"twice", "workloads:\n", "workloads:\n  - {name: a, dataset_name: random}\n", `t.yaml:7:12: workload name "a" is used twice`},
		{"tab", "name: t\n", "name: t\n\tfoo\n", "t.yaml:"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := strings.Replace(good, tt.old, tt.new, 1)
			if text == good {
				t.Fatalf("the edit %q changes nothing", tt.old)
			}
			_, err := ParseStudy("t.yaml", []byte(text))
			if _, ok := errors.AsType[*StudyError](err); !ok {
				t.Fatalf("got %v, want a StudyError", err)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %s\nwant %s", err, tt.want)
			}
		})
	}
}
