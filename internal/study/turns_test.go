package study

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/bench"
	"perflab/internal/workload"
)

const turnStudy = `name: turns
model: Qwen/Qwen3-8B
hardware: {gpu: h100-sxm, gpus: 1}
objective: {metric: total_token_throughput}
workloads:
  - {name: chat, dataset_name: conversations, turns: 4, turn_input_len: 64-128, turn_output_len: "32", think_time: 2, max_concurrency: 8, duration: 60}
baseline: {label: vLLM, engine: vllm}
runtime: {kind: simulated}
`

// TestConversationsInStudy: a study's numbers may stand without quotes, and a
// prediction or a backend without messages refuses what it cannot do.
func TestConversationsInStudy(t *testing.T) {
	s, err := Parse("turns.yaml", []byte(turnStudy))
	if err != nil {
		t.Fatal(err)
	}
	want := workload.Spec{
		Dataset: "conversations", Turns: "4", TurnInputLen: "64-128", TurnOutputLen: "32", ThinkTime: "2", MaxConcurrency: 8, Duration: "60",
	}.Defaults()
	if d := cmp.Diff(want, s.Workloads[0].Spec.Defaults()); d != "" {
		t.Errorf("-want +parsed:\n%s", d)
	}
	const command = "perflab bench --base-url http://HOST:PORT --model m --backend openai-chat --dataset-name conversations --seed 0" +
		" --arrival inf --max-concurrency 8 --ignore-eos --duration 60 --turns 4 --turn-input-len 64-128 --turn-output-len 32 --think-time 2 --history generated"
	if got := bench.Command("m", "openai-chat", "", want); got != command {
		t.Errorf("command %s", got)
	}
	if got := bench.Command("m", "openai-chat", bench.CacheReset, want); !strings.Contains(got, " --backend openai-chat --cache reset --dataset-name ") {
		t.Errorf("command %s", got)
	}
	for change, want := range map[[2]string]string{
		{"dataset_name: conversations, turns: 4, turn_input_len: 64-128, turn_output_len: \"32\", think_time: 2, max_concurrency: 8, duration: 60}\n" +
			"baseline: {label: vLLM, engine: vllm}\nruntime: {kind: simulated}", "scenario: \"E(64)\"}\n" +
			"baseline: {label: vLLM, engine: vllm}\nruntime: {kind: predicted}"}: "6:28: workload chat: scenario E(64) embeds texts, which backend openai-chat does not",
		{"turn_output_len: \"32\", think_time: 2, max_concurrency: 8, duration: 60}\nbaseline: {label: vLLM, engine: vllm}\nruntime: {kind: simulated}",
			"random_images: 1, max_concurrency: 8, duration: 60}\nbaseline: {label: vLLM, engine: vllm}\nruntime: {kind: predicted}"}: "6:5: workload chat: images and documents cannot be predicted",
		{"runtime:", "bench: {backend: openai}\nruntime:"}: "6:32: workload chat: dataset_name conversations needs a chat API: " +
			"backend openai sends one text, backend openai-chat messages",
	} {
		_, err := Parse("turns.yaml", []byte(strings.Replace(turnStudy, change[0], change[1], 1)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", change[1], err)
		}
	}
}

// TestAgentsInStudy: a study runs recorded sessions from a file beside it and may aim at what they
// get done, on a predicted runtime too.
func TestAgentsInStudy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.jsonl")
	if err := os.WriteFile(path, []byte(`{"turns":[{"input_tokens":5,"output_tokens":2},{"input_tokens":9,"output_tokens":2,"idle_s":1}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(turnStudy, "turns: 4, turn_input_len: 64-128, turn_output_len: \"32\", think_time: 2, max_concurrency: 8, duration: 60",
		"dataset_path: "+path+", start_ratio: \"0.25..0.75\", max_idle: 5, max_context: 20, max_concurrency: 8, duration: 60", 1)
	text = strings.NewReplacer("dataset_name: conversations", "dataset_name: agents", "total_token_throughput", "sessions_per_hour").Replace(text)
	s, err := Parse("agents.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := workload.Spec{
		Dataset: "agents", Path: path, StartRatio: "0.25..0.75", MaxIdle: "5", MaxContext: 20, OverContext: "drop", MaxConcurrency: 8, Duration: "60",
	}.Defaults()
	if d := cmp.Diff(want, s.Workloads[0].Spec.Defaults()); d != "" {
		t.Errorf("-want +parsed:\n%s", d)
	}
	for _, text := range []string{text, turnStudy} {
		if _, err = Parse("agents.yaml", []byte(strings.Replace(text, "kind: simulated", "kind: predicted", 1))); err != nil {
			t.Error(err)
		}
	}
}
