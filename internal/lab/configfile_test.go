package lab

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/deploy"
	"perflab/internal/engine"
)

func TestReadCommandFile(t *testing.T) {
	dir := t.TempDir()
	read := func(content string) (engine.Command, error) {
		path := filepath.Join(dir, "f.yaml")
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		c, err := engine.Parse([]string{"trtllm-serve", "M", "--config", path})
		if err != nil {
			t.Fatal(err)
		}
		return ReadCommandFile(c)
	}
	got, err := read("# ours\nkv_cache_config: {enable_block_reuse: false, free_gpu_memory_fraction: .8}\ncuda_graph_config:\n  batch_sizes:\n  - 1\n  - 0x10\nspeculative_config:\n  decoding_type: MTP\n  draft_len_schedule: {4: 3}\n")
	want := engine.Command{Engine: "trtllm", Model: "M", Params: map[string]string{"prefix_caching": "false", "gpu_memory_utilization": "0.8", "speculative": "mtp:1"},
		File: map[string]any{"cuda_graph_config": map[string]any{"batch_sizes": []any{1, 16}}, "speculative_config": map[string]any{"draft_len_schedule": map[string]any{"4": 3}}}}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
	if got, err := read("{}\n"); err != nil || got.File != nil || got.FilePath != "" {
		t.Errorf("an empty file: %+v, %v", got, err)
	}
	for content, want := range map[string]string{
		"a: [1":                                "f.yaml:2:1: did not find",
		"# nothing\n":                          "says nothing: write {}",
		"- a\n":                                "f.yaml:1:",
		"x: 1\n":                               "Extra inputs are not permitted",
		strings.Repeat("#", mostConfig) + "\n": "more than 1048576 bytes",
	} {
		if _, err := read(content); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %s", content, err, want)
		}
	}
	if _, err := ReadCommandFile(engine.Command{Engine: "trtllm", Model: "M", FilePath: "nofile.yaml"}); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "configuration file of TensorRT-LLM") {
		t.Errorf("no file: %v", err)
	}
	plain := engine.Command{Engine: "vllm", Model: "M"}
	if got, err := ReadCommandFile(plain); err != nil || cmp.Diff(plain, got) != "" {
		t.Errorf("a command without a file: %+v, %v", got, err)
	}
}

// A study's parameters win over what it puts into the file, candidates' over both,
// and the deployment gets the file that its command names.
func TestStudyFile(t *testing.T) {
	text := strings.Replace(good, "baseline: {label: base, engine: vllm}",
		"baseline: {label: base, engine: trtllm, set: {block_size: 64}}\nengines: {trtllm: {version: '1.2', set: {stream_interval: 2}, "+
			"file: {stream_interval: 9, max_batch_size: 77, env_overrides: {HF_TOKEN: abcdefgh1234}, kv_cache_config: {tokens_per_block: 16, host_cache_size: 5}}}}", 1)
	s, err := ParseStudy("t.yaml", []byte(strings.Replace(text, "kind: predicted", "kind: process", 1)))
	if err != nil {
		t.Fatal(err)
	}
	l := &study{Study: s}
	pl, err := l.plan(map[string]string{"engine": "trtllm", "model": "Qwen/Qwen3-32B-FP8", "block_size": "64", "tp": "2"})
	if err != nil {
		t.Fatal(err)
	}
	const file = "env_overrides:\n  HF_TOKEN: abcdefgh1234\nkv_cache_config:\n  host_cache_size: 5\n  tokens_per_block: 64\nstream_interval: 2\n"
	places, _, err := l.places(t.Context(), pl)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := l.deployment(pl, places, t.TempDir())
	if err != nil || len(spec.Replicas) != 1 {
		t.Fatalf("%d replicas, %v", len(spec.Replicas), err)
	}
	if d := cmp.Diff([]deploy.File{{Name: "trtllm.yaml", Text: file}}, spec.Replicas[0].Files); d != "" {
		t.Error(d)
	}
	want := "trtllm-serve Qwen/Qwen3-32B-FP8 --tp_size 2 --max_batch_size 77 --extra_llm_api_options {file:trtllm.yaml} --host {host} --port {port}"
	if got := strings.Join(spec.Replicas[0].Argv, " "); got != want {
		t.Errorf("argv %s\nwant %s", got, want)
	}
	if text := shown(pl.cmd); strings.Contains(text, "abcdefgh1234") || !strings.HasPrefix(text, "cat > trtllm.yaml <<'EOF'\n") {
		t.Errorf("shown: %s", text)
	}
	if !s.secret() {
		t.Error("the token of the file is not taken for a secret")
	}
	if pl.cfg.Seqs != 77 || pl.cfg.Block != 64 {
		t.Errorf("resolved to %d requests, blocks of %d", pl.cfg.Seqs, pl.cfg.Block)
	}
}
