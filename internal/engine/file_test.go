package engine

import (
	"errors"
	"math"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/arch"
)

type tree = map[string]any

// TestFiles: each parameter without a flag of TensorRT-LLM goes into its file, and comes back from it.
func TestFiles(t *testing.T) {
	for _, tt := range []struct {
		params params
		argv   string
		file   string
	}{
		{nil, "trtllm-serve M", ""},
		{params{PrefixCaching: "true", BlockSize: "32", StreamInterval: "1", Overlap: "true", CapacityPolicy: "guaranteed_no_evict", MoEBackend: "auto"}, "trtllm-serve M", ""},
		{params{PrefixCaching: "false"}, "", "kv_cache_config:\n  enable_block_reuse: false\n"},
		{params{BlockSize: "64"}, "", "kv_cache_config:\n  tokens_per_block: 64\n"},
		{params{KVDtype: "fp8"}, "", "kv_cache_config:\n  dtype: fp8\n"},
		{params{KVDtype: "fp8", MemoryShare: "0.8"}, "trtllm-serve M --kv_cache_free_gpu_memory_fraction 0.8 --extra_llm_api_options {file:trtllm.yaml}",
			"kv_cache_config:\n  dtype: fp8\n  free_gpu_memory_fraction: 0.8\n"},
		{params{GraphMax: "256"}, "", "cuda_graph_config:\n  enable_padding: true\n  max_batch_size: 256\n"},
		{params{Eager: "true"}, "", "cuda_graph_config: null\n"},
		{params{Speculative: "mtp:3"}, "", "speculative_config:\n  decoding_type: MTP\n  num_nextn_predict_layers: 3\n"},
		{params{Speculative: "eagle3:4:org/draft"}, "", "speculative_config:\n  decoding_type: Eagle\n  max_draft_len: 4\n  speculative_model_dir: org/draft\n"},
		{params{Speculative: "ngram:5"}, "", "speculative_config:\n  decoding_type: NGram\n  max_draft_len: 5\n"},
		{params{Speculative: "draft_model:5:D"}, "", "speculative_config:\n  decoding_type: Draft_Target\n  max_draft_len: 5\n  speculative_model_dir: D\n"},
		{params{AttentionDP: "true"}, "", "enable_attention_dp: true\n"},
		{params{MoEBackend: "trtllm"}, "", "moe_config:\n  backend: TRTLLM\n"},
		{params{StreamInterval: "4"}, "", "stream_interval: 4\n"},
		{params{Overlap: "false"}, "", "disable_overlap_scheduler: true\n"},
		{params{CapacityPolicy: "max_utilization"}, "", "scheduler_config:\n  capacity_scheduler_policy: MAX_UTILIZATION\n"},
		{params{TP: "4", ExpertParallel: "true", MaxNumSeqs: "64", ChunkedPrefill: "true", StreamInterval: "2"},
			"trtllm-serve M --tp_size 4 --ep_size 4 --max_batch_size 64 --enable_chunked_prefill --extra_llm_api_options {file:trtllm.yaml}", "stream_interval: 2\n"},
	} {
		c, err := New("trtllm", "M", tt.params, nil)
		if err != nil {
			t.Errorf("%v: %v", tt.params, err)
			continue
		}
		want := tt.argv
		if want == "" {
			want = "trtllm-serve M --extra_llm_api_options {file:trtllm.yaml}"
		}
		if got := strings.Join(c.Argv(), " "); got != want {
			t.Errorf("%v: argv %s, want %s", tt.params, got, want)
		}
		var text strings.Builder
		for _, f := range c.Files() {
			text.WriteString(f.Text)
		}
		if text.String() != tt.file {
			t.Errorf("%v: file\n%s\nwant\n%s", tt.params, text.String(), tt.file)
		}
		again, err := ParseText(c.String())
		if d := cmp.Diff(c, again); err != nil || d != "" {
			t.Errorf("%s: %v\n%s", c, err, d)
		}
	}
}

// From the version on whose command line has a flag, no file is needed.
func TestFileOfVersion(t *testing.T) {
	c, err := New("trtllm", "M", params{KVDtype: "fp8", AttentionDP: "true"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]string{
		"":         "trtllm-serve M --extra_llm_api_options {file:trtllm.yaml}",
		"1.2.0":    "trtllm-serve M --extra_llm_api_options {file:trtllm.yaml}",
		"1.3.0rc4": "trtllm-serve M --kv_cache_dtype fp8 --enable_attention_dp",
	} {
		c.Version = version
		if got := strings.Join(c.Argv(), " "); got != want {
			t.Errorf("%s: %s, want %s", version, got, want)
		}
	}
	c, err = Parse(strings.Fields("trtllm-serve M --kv_cache_dtype fp8 --config own.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "trtllm-serve M --kv_cache_dtype fp8 --extra_llm_api_options own.yaml"; c.String() != want || c.Files() != nil {
		t.Errorf("beside a file of the user's own: %s, want %s", c, want)
	}
}

// TestFileBash: the printed text is a script that writes the file and runs the command.
func TestFileBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	c, err := New("trtllm", "M", params{Speculative: "eagle3:2:a'b $HOME \\ EOF", PrefixCaching: "false"}, []string{"--host", "h"})
	if err != nil {
		t.Fatal(err)
	}
	c.Env = []string{"A=b c"}
	script := strings.Replace(c.String(), "A=", "cat trtllm.yaml; echo ", 1)
	cmd := exec.CommandContext(t.Context(), bash, "-c", script)
	cmd.Dir = t.TempDir()
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if want := c.Files()[0].Text + "b c trtllm-serve M --extra_llm_api_options trtllm.yaml --host h\n"; string(out) != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
}

// TestWithFile: keys become parameters, the rest stays as it is.
func TestWithFile(t *testing.T) {
	for name, tt := range map[string]struct {
		line    string
		content tree
		want    Command
	}{
		"values win over flags": {"trtllm-serve M --max_batch_size 64 --tp_size 2 --config f.yaml", tree{"max_batch_size": 32, "tensor_parallel_size": 4, "moe_expert_parallel_size": 4},
			Command{Params: params{MaxNumSeqs: "32", TP: "4", ExpertParallel: "true"}}},
		"null unsets": {"trtllm-serve M --max_seq_len 99 --config f.yaml", tree{"max_seq_len": nil}, Command{}},
		"the section drops its flag": {"trtllm-serve M --free_gpu_memory_fraction 0.5 --config f.yaml", tree{"kv_cache_config": tree{"enable_block_reuse": false}},
			Command{Params: params{PrefixCaching: "false"}}},
		"kv": {"trtllm-serve M --config f.yaml", tree{"kv_cache_config": tree{"free_gpu_memory_fraction": 0.75, "tokens_per_block": 64, "dtype": "fp8", "enable_partial_reuse": false, "max_tokens": 4096.0}},
			Command{Params: params{MemoryShare: "0.75", BlockSize: "64", KVDtype: "fp8"}, File: tree{"kv_cache_config": tree{"enable_partial_reuse": false, "max_tokens": 4096}}}},
		"graphs padded":    {"trtllm-serve M --config f.yaml", tree{graphSection: tree{"max_batch_size": 256, "enable_padding": true}}, Command{Params: params{GraphMax: "256"}}},
		"graphs as is":     {"trtllm-serve M --config f.yaml", tree{graphSection: tree{"max_batch_size": 256}}, Command{Params: params{GraphMax: "256"}, File: tree{graphSection: tree{"enable_padding": false}}}},
		"graphs by size":   {"trtllm-serve M --config f.yaml", tree{graphSection: tree{"batch_sizes": []any{1, 2}}}, Command{File: tree{graphSection: tree{"batch_sizes": []any{1, 2}}}}},
		"graphs off":       {"trtllm-serve M --config f.yaml", tree{graphSection: nil}, Command{Params: params{Eager: "true"}}},
		"graphs untouched": {"trtllm-serve M --config f.yaml", tree{graphSection: tree{}}, Command{}},
		"overlap":          {"trtllm-serve M --config f.yaml", tree{"disable_overlap_scheduler": true, "stream_interval": "8"}, Command{Params: params{Overlap: "false", StreamInterval: "8"}}},
		"policies": {"trtllm-serve M --config f.yaml", tree{"scheduler_config": tree{"capacity_scheduler_policy": "MAX_UTILIZATION", "waiting_queue_policy": "fcfs"}, "moe_config": tree{"backend": "WIDEEP"}},
			Command{Params: params{CapacityPolicy: "max_utilization", MoEBackend: "wideep"}, File: tree{"scheduler_config": tree{"waiting_queue_policy": "fcfs"}}}},
		"mtp": {"trtllm-serve M --config f.yaml", tree{specSection: tree{"decoding_type": "MTP", "num_nextn_predict_layers": 2, "relaxed_topk": 10}},
			Command{Params: params{Speculative: "mtp:2"}, File: tree{specSection: tree{"relaxed_topk": 10}}}},
		"mtp newer":   {"trtllm-serve M --config f.yaml", tree{specSection: tree{"decoding_type": "MTP", "max_draft_len": 2}}, Command{Params: params{Speculative: "mtp:2"}}},
		"mtp default": {"trtllm-serve M --config f.yaml", tree{specSection: tree{"decoding_type": "MTP"}}, Command{Params: params{Speculative: "mtp:1"}}},
		"eagle3":      {"trtllm-serve M --config f.yaml", tree{specSection: tree{"decoding_type": "Eagle3", "max_draft_len": 2, "speculative_model": "D"}}, Command{Params: params{Speculative: "eagle3:2:D"}}},
		"lookahead": {"trtllm-serve M --config f.yaml", tree{specSection: tree{"decoding_type": "Lookahead", "max_ngram_size": 2}},
			Command{File: tree{specSection: tree{"decoding_type": "Lookahead", "max_ngram_size": 2}}}},
		"unknown to us": {"trtllm-serve M --config f.yaml", tree{"print_iter_log": true, "cp_config": tree{"any": tree{"thing": []any{}}}},
			Command{File: tree{"print_iter_log": true, "cp_config": tree{"any": tree{"thing": []any{}}}}}},
		"schedule": {"trtllm-serve M --config f.yaml", tree{specSection: tree{"decoding_type": "MTP", "draft_len_schedule": map[any]any{4: 3, 8: 1}}},
			Command{Params: params{Speculative: "mtp:1"}, File: tree{specSection: tree{"draft_len_schedule": tree{"4": 3, "8": 1}}}}},
	} {
		c, err := Parse(strings.Fields(tt.line))
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.WithFile(tt.content)
		tt.want.Engine, tt.want.Model = "trtllm", "M"
		if d := cmp.Diff(tt.want, got); err != nil || d != "" {
			t.Errorf("%s: %v\n%s", name, err, d)
		}
		again, err := ParseText(got.String())
		if d := cmp.Diff(got, again); err != nil || d != "" {
			t.Errorf("%s: printed\n%s\n%v\n%s", name, got, err, d)
		}
	}
}

// From 1.2 on the section of the file is laid over the flags.
func TestWithFileMerges(t *testing.T) {
	c, err := Parse(strings.Fields("trtllm-serve M --free_gpu_memory_fraction 0.5 --config f.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	c.Version = "1.2.0"
	got, err := c.WithFile(tree{"kv_cache_config": tree{"enable_block_reuse": false}})
	if err != nil || got.Params[MemoryShare] != "0.5" {
		t.Errorf("memory share %q, %v", got.Params[MemoryShare], err)
	}
	if c.FilePath != "f.yaml" || c.Params[PrefixCaching] != "" {
		t.Errorf("the command itself was changed: %+v", c)
	}
}

func TestWithFileRefuses(t *testing.T) {
	e, err := ByName("trtllm")
	if err != nil {
		t.Fatal(err)
	}
	c := Command{Engine: "trtllm", Model: "M"}
	for want, content := range map[string]tree{
		"kv_cache_config.enable_block_resue of its configuration file: Extra inputs are not permitted": {"kv_cache_config": tree{"enable_block_resue": true}},
		"tp_size of its configuration file: Extra inputs are not permitted":                            {"tp_size": 2},
		"kv_cache_config of its configuration file: Input should be a valid dictionary":                {"kv_cache_config": 3},
		"max_batch_size of its configuration file: Input should be a valid integer":                    {"max_batch_size": "many"},
		"kv_cache_config.enable_block_reuse of its configuration file: Input should be a valid bool":   {"kv_cache_config": tree{"enable_block_reuse": "perhaps"}},
		"kv_cache_config.free_gpu_memory_fraction of its configuration file: Input should be a valid":  {"kv_cache_config": tree{"free_gpu_memory_fraction": "all"}},
		"kv_cache_config.dtype of its configuration file: Input should be a valid string":              {"kv_cache_config": tree{"dtype": 8}},
		"cuda_graph_config.batch_sizes of its configuration file: Input should be a valid list":        {graphSection: tree{"batch_sizes": 8}},
		"scheduler_config.capacity_scheduler_policy of its configuration file: Input should be 'MAX_":  {"scheduler_config": tree{"capacity_scheduler_policy": "EVICT"}},
		"speculative_config of its configuration file: Value error, max_draft_len must be > 0":         {specSection: tree{"decoding_type": "Eagle"}},
	} {
		_, err := c.WithFile(content)
		r, ok := errors.AsType[*Rejection](err)
		if !ok || !strings.Contains(r.Reason, want) || r.Rule != "file" {
			t.Errorf("%v: %v, want %s", content, err, want)
			continue
		}
		if reason, ok := RefusalOf(e.Name, r.Log); !ok || reason == "" {
			t.Errorf("%v: the log %q is not found to be a refusal", content, r.Log)
		}
	}
	if _, err := c.WithFile(tree{"model_kwargs": tree{"x": math.NaN()}}); err == nil || !strings.Contains(err.Error(), "model_kwargs: x: NaN is no number") {
		t.Errorf("NaN: %v", err)
	}
	for _, line := range []string{"vllm serve M --config f.yaml", "sglang serve --model M"} {
		c, err := Parse(strings.Fields(line))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.WithFile(tree{"a": 1}); err == nil || !strings.Contains(err.Error(), "takes no configuration file here") {
			t.Errorf("%s: %v", line, err)
		}
		if again, err := c.WithFile(nil); err != nil || cmp.Diff(c, again) != "" {
			t.Errorf("%s with nothing: %v", line, err)
		}
	}
	_, err = New("trtllm", "M", params{PrefixCaching: "false"}, []string{"--config", "f.yaml"})
	if err == nil || !strings.Contains(err.Error(), "prefix_caching=false goes into the configuration file of TensorRT-LLM") {
		t.Errorf("two files: %v", err)
	}
}

// What of a file changes figures and is not simulated is named; what is as by
// default, or does not matter, is not.
func TestUnmodelledFile(t *testing.T) {
	c, err := Command{Engine: "trtllm", Model: "M"}.WithFile(tree{
		"kv_cache_config":    tree{"max_tokens": 999, "host_cache_size": 5, "enable_partial_reuse": true, "enable_block_reuse": false},
		"scheduler_config":   tree{"context_chunking_policy": "FIRST_COME_FIRST_SERVED", "capacity_scheduler_policy": "STATIC_BATCH"},
		graphSection:         tree{"batch_sizes": []any{1, 8}},
		"attn_backend":       "FLASHINFER",
		"print_iter_log":     true,
		"moe_config":         tree{"backend": "TRTLLM"},
		"stream_interval":    10,
		"speculative_config": tree{"decoding_type": "PARD"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"moe_config.backend", "stream_interval", "scheduler_config.capacity_scheduler_policy",
		"attn_backend", "cuda_graph_config.batch_sizes", "speculative_config.decoding_type"}
	if d := cmp.Diff(want, c.Unmodelled()); d != "" {
		t.Error(d)
	}
}

// TestResolveFile: what the file says is what the simulator is built from.
func TestResolveFile(t *testing.T) {
	m, err := arch.LookupModel("Qwen/Qwen3-32B-FP8")
	if err != nil {
		t.Fatal(err)
	}
	gpu, err := arch.LookupAccelerator("h100-sxm")
	if err != nil {
		t.Fatal(err)
	}
	resolve := func(content tree) (Config, error) {
		c, err := Command{Engine: "trtllm", Model: m.Name}.WithFile(content)
		if err != nil {
			t.Fatal(err)
		}
		return c.Resolve(m, gpu, 8)
	}
	plain, err := resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		content tree
		change  func(*Config)
	}{
		"reuse":                {tree{"kv_cache_config": tree{"enable_block_reuse": false}}, func(c *Config) { c.Prefix = false }},
		"block":                {tree{"kv_cache_config": tree{"tokens_per_block": 64}}, func(c *Config) { c.Block = 64 }},
		"fraction":             {tree{"kv_cache_config": tree{"free_gpu_memory_fraction": 0.5}}, func(c *Config) { c.MemoryShare = 0.5 }},
		"dtype":                {tree{"kv_cache_config": tree{"dtype": "fp8"}}, func(c *Config) { c.KVBytes = 1 }},
		"max bytes":            {tree{"kv_cache_config": tree{"max_gpu_total_bytes": 1 << 30}}, func(c *Config) { c.KVSpace = 1 << 30 }},
		"max tokens":           {tree{"kv_cache_config": tree{"max_tokens": 3200}}, func(c *Config) { c.KVSpace = 100 * c.Layout().Page }},
		"more tokens than fit": {tree{"kv_cache_config": tree{"max_tokens": 1 << 40}}, func(*Config) {}},
		"policy":               {tree{"scheduler_config": tree{"capacity_scheduler_policy": "MAX_UTILIZATION"}}, func(c *Config) { c.Reserve = false }},
		"overlap":              {tree{"disable_overlap_scheduler": true}, func(c *Config) { c.Overlap = false }},
		"limits": {tree{"max_batch_size": 64, "max_num_tokens": 4096, "max_seq_len": 8000, "enable_chunked_prefill": true},
			func(c *Config) { c.Seqs, c.Batched, c.MaxLen, c.Chunked = 64, 4096, 8000, true }},
		"parallel": {tree{"tensor_parallel_size": 2, "pipeline_parallel_size": 2}, func(c *Config) { c.TP, c.PP, c.GPUs = 2, 2, 4 }},
		"ngram": {tree{specSection: tree{"decoding_type": "NGram", "max_draft_len": 3}},
			func(c *Config) { c.Spec, c.SpecTokens, c.Overlap = "ngram", 3, false }},
		"eager":        {tree{graphSection: nil}, func(c *Config) { c.GraphMax = 0 }},
		"graphs":       {tree{graphSection: tree{"max_batch_size": 16}}, func(c *Config) { c.GraphMax = 16 }},
		"padded":       {tree{graphSection: tree{"max_batch_size": 20, "enable_padding": true}}, func(c *Config) { c.GraphMax, c.Graphs = 20, []int{1, 2, 4, 8, 16, 20} }},
		"sizes":        {tree{graphSection: tree{"batch_sizes": []any{64, 8}}}, func(c *Config) { c.GraphMax = 64 }},
		"padded sizes": {tree{graphSection: tree{"batch_sizes": []any{64, 8}, "enable_padding": true}}, func(c *Config) { c.GraphMax, c.Graphs = 64, []int{8, 64} }},
		"padded, 128": {tree{graphSection: tree{"enable_padding": true}}, func(c *Config) {
			c.Graphs = []int{1, 2, 4, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128}
		}},
	} {
		got, err := resolve(tt.content)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := plain
		tt.change(&want)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	off, err := New("trtllm", m.Name, params{Eager: "true", GraphMax: "256"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if cfg, err := off.Resolve(m, gpu, 8); err != nil || cfg.GraphMax != 0 || cfg.Graphs != nil {
		t.Errorf("graphs that are off: up to %d, sizes %v, %v", cfg.GraphMax, cfg.Graphs, err)
	}
	for want, content := range map[string]tree{
		"max_batch_size 64 is not the largest of batch_sizes, 8": {graphSection: tree{"max_batch_size": 64, "batch_sizes": []any{8}}},
		"batch_sizes=0: use a value of at least 1":               {graphSection: tree{"batch_sizes": []any{0}}},
		"block_size=0: use a value of at least 1":                {"kv_cache_config": tree{"tokens_per_block": 0}},
		"ships no multi-token-prediction layers":                 {specSection: tree{"decoding_type": "MTP"}},
	} {
		if _, err := resolve(content); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", content, err, want)
		}
	}
}

func TestPaddedSizes(t *testing.T) {
	for largest, want := range map[int][]int{1: {1}, 3: {1, 2, 3}, 4: {1, 2, 4}, 9: {1, 2, 4, 8, 9}} {
		if d := cmp.Diff(want, paddedSizes(largest)); d != "" {
			t.Errorf("%d: %s", largest, d)
		}
	}
	big := paddedSizes(300)
	if d := cmp.Diff([]int{120, 128, 192, 256, 300}, big[len(big)-5:]); d != "" {
		t.Error(d)
	}
}

// TestKeys: what checks go by is what the catalogue lists: sections, open choices and
// sections that take anything.
func TestKeys(t *testing.T) {
	e, err := ByName("trtllm")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range e.Keys() {
		def, ok := keyTables()[e.Name][k.Flag]
		if !ok || def == nil && k.Kind != JSON || def != nil && def.Flag != k.Flag {
			t.Errorf("%s is listed, and checked as %+v", k.Flag, def)
		}
	}
	for _, tt := range []struct {
		content tree
		ok      bool
	}{
		{tree{"orchestrator_type": "slurm"}, true}, // open
		{tree{"orchestrator_type": 7}, false},
		{tree{"kv_cache_config": tree{"use_kv_cache_manager_v2": true}}, true},
		{tree{"cp_config": tree{"anything": 1}}, true},
		{tree{"cuda_graph_config": tree{"anything": 1}}, false},
		{tree{"scheduler_config": tree{"waiting_queue_policy": "lifo"}}, false},
	} {
		if rej := checkKeys(e, tt.content, ""); (rej == nil) != tt.ok {
			t.Errorf("%v: %v", tt.content, rej)
		}
	}
}

func TestParseText(t *testing.T) {
	for text, want := range map[string]string{
		"vllm serve M -tp 2": "vllm serve M -tp 2",
		"cat > trtllm.yaml <<'EOF'\nstream_interval: 3\nEOF\ntrtllm-serve M --config trtllm.yaml --port 9":                 "cat > trtllm.yaml <<'EOF'\nstream_interval: 3\nEOF\ntrtllm-serve M --extra_llm_api_options trtllm.yaml --port 9",
		"\ncat > trtllm.yaml <<'EOF'\r\nstream_interval: 3\r\nEOF\r\ntrtllm-serve M --config trtllm.yaml \\\n --tp_size 2": "cat > trtllm.yaml <<'EOF'\nstream_interval: 3\nEOF\ntrtllm-serve M --tp_size 2 --extra_llm_api_options trtllm.yaml",
		"cat > other.yaml <<'EOF'\nstream_interval: 3\nEOF\ntrtllm-serve M --config trtllm.yaml":                           "trtllm-serve M --extra_llm_api_options trtllm.yaml",
	} {
		c, err := ParseText(text)
		if err != nil || c.String() != want {
			t.Errorf("%q:\n%s\n%v", text, c, err)
		}
	}
	for _, text := range []string{"cat > trtllm.yaml", "cat > f <<'EOF'\nx", "cat > trtllm.yaml <<'EOF'\nstream_interval: [\nEOF\ntrtllm-serve M --config trtllm.yaml", "trtllm-serve M | tee"} {
		if c, err := ParseText(text); err == nil {
			t.Errorf("%q is %s", text, c)
		}
	}
}
