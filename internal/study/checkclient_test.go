package study

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestStudyTakesEveryWorkload: what perflab bench sends a study does too, or it
// says where in the file what does not fit stands.
func TestStudyTakesEveryWorkload(t *testing.T) {
	tok := "../bench/testdata/tokenizer.json"
	rows := filepath.Join(t.TempDir(), "rows.jsonl")
	if err := os.WriteFile(rows, []byte(`{"prompt":"how are you?","output_tokens":9}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		workload, runtime, bench string
		want                     string // "": accepted
	}{
		"steps":                   {"dataset_name: random, steps: '2:3s,4:1s'", "predicted", "", ""},
		"steps and a count":       {"dataset_name: random, steps: '2:3s', request_rate: 4", "predicted", "", "6:66: workload a: request_rate"},
		"duration and rate":       {"dataset_name: random, request_rate: 4, duration: 3s", "predicted", "", ""},
		"endless":                 {"dataset_name: random, max_concurrency: 4, duration: 3s", "predicted", "", ""},
		"endless, served":         {"dataset_name: random, max_concurrency: 4, duration: 3s", "simulated", "", ""},
		"conversations":           {"dataset_name: conversations, num_prompts: 4, turns: 2-3", "simulated", "", ""},
		"conversations ahead":     {"dataset_name: conversations, num_prompts: 4", "predicted", "", ""},
		"conversations, no chat":  {"dataset_name: conversations, num_prompts: 4", "simulated", "backend: vllm", "6:29: workload a: dataset_name conversations needs a chat API"},
		"tokenizer":               {"dataset_name: jsonl, dataset_path: " + rows + ", tokenizer: " + tok, "predicted", "", ""},
		"no such tokenizer":       {"dataset_name: random, tokenizer: nope.json", "predicted", "", "6:48: workload a: tokenizer "},
		"the server's tokenizer":  {"dataset_name: random, tokenizer: server", "process", "", "6:48: workload a: tokenizer server needs a server that runs already"},
		"scenario":                {"dataset_name: random, num_prompts: 4, scenario: 'N(480,240)/(300,150)'", "predicted", "", ""},
		"scenario of nothing":     {"dataset_name: random, num_prompts: 4, scenario: 'Q(1)'", "predicted", "", "6:63: workload a: scenario "},
		"to embed":                {"dataset_name: random, num_prompts: 4, scenario: E(64)", "process", "backend: openai-embeddings", ""},
		"to rank":                 {"dataset_name: random, num_prompts: 4, scenario: 'R(64,10)'", "process", "backend: rerank", ""},
		"to rank by chat":         {"dataset_name: random, num_prompts: 4, scenario: 'R(64,10)'", "process", "", "6:63: workload a: scenario R(64,10) ranks documents, which backend openai-chat does not"},
		"to rank without a model": {"dataset_name: random, num_prompts: 4, scenario: 'R(64,10)'", "predicted", "backend: rerank", "13:18: backend rerank does not apply to runtime kind predicted"},
		"prefix repetition":       {"dataset_name: prefix_repetition, num_prompts: 20, prefix_repetition_num_prefixes: 2", "predicted", "", ""},
		"prefixes of another":     {"dataset_name: random, prefix_repetition_num_prefixes: 2", "predicted", "", "6:69: workload a: prefix_repetition_num_prefixes"},
		"shared prefix":           {"dataset_name: shared-prefix, gsp_num_groups: 2, gsp_prompts_per_group: 3", "predicted", "", ""},
		"images":                  {"dataset_name: random, num_prompts: 4, random_images: 1, random_image_size: 8x8", "process", "", ""},
		"images ahead":            {"dataset_name: random, num_prompts: 4, random_images: 1, random_image_size: 8x8", "predicted", "", "6:5: workload a: images and documents"},
		"unknown key":             {"dataset_name: random, step: 2", "predicted", "", `unknown key "step"`},
		"anthropic":               {"dataset_name: random, num_prompts: 4", "process", "backend: anthropic", ""},
		"sglang, simulated":       {"dataset_name: random, num_prompts: 4", "simulated", "backend: sglang", "13:18: backend sglang does not apply to runtime kind simulated"},
		"no such backend":         {"dataset_name: random, num_prompts: 4", "process", "backend: telnet", `13:18: backend "telnet" is not known: use openai-chat, `},
		"reset":                   {"dataset_name: random, num_prompts: 4", "process", "cache: reset", ""},
		"reset, simulated":        {"dataset_name: random, num_prompts: 4", "simulated", "cache: reset", "13:16: cache reset does not apply to runtime kind simulated"},
		"warm":                    {"dataset_name: random, num_prompts: 4", "simulated", "cache: warm", ""},
		"warm, ahead":             {"dataset_name: random, num_prompts: 4", "predicted", "cache: warm", "13:16: cache warm does not apply to runtime kind predicted"},
		"warm, endless":           {"dataset_name: random, max_concurrency: 4, duration: 3s", "simulated", "cache: warm", "6:5: workload a: cache warm needs to know the prompts beforehand"},
		"unique, ahead":           {"dataset_name: random, num_prompts: 4", "predicted", "cache: unique", ""},
		"cold":                    {"dataset_name: random, num_prompts: 4", "process", "cache: cold", `13:16: cache "cold" is not known: use unique, reset, warm, shared`},
	} {
		text := strings.Replace(good, "dataset_name: random, num_prompts: 10", tt.workload, 1)
		text = strings.Replace(text, "kind: predicted", "kind: "+tt.runtime, 1) + fmt.Sprintf("bench: {%s}\n", tt.bench)
		_, err := Parse("t.yaml", []byte(text))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
}
