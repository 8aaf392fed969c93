package study

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
		strings.Repeat("#", mostConfig) + "\n": "more than 1 MiB",
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
