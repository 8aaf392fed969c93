package engine

import "strings"

// llamacpp is llama.cpp's llama-server, of July to October 2026. Its models are GGUF
// files, or repositories of them. perflab checks its commands and starts them; the
// simulator has no model of it.
func llamacpp() *Engine {
	return &Engine{
		Name: "llamacpp", Title: "llama.cpp", Health: "/health", DefaultHost: "127.0.0.1", DefaultPort: 9931, MetricsPath: "/metrics", // port 8080 before build b11521
		MetricsFlag: "--metrics", MeasuredOnly: true,
		launch: []string{"llama-server"}, modelFlag: "-m", hostFlag: "--host", portFlag: "--port",
		cli:     cli{prog: "llama-server", usage: "usage: llama-server -m FILE.gguf [options]", plain: true},
		Params:  llamacppParams(),
		Metrics: llamacppMetrics(),
	}
}

// llamacppParams leave out what llama.cpp has nothing of.
func llamacppParams() []Param {
	kv := []string{"f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"}
	return []Param{
		{Name: TP, Kind: Int, Default: "1", Doc: "llama-server takes every device that it sees; --split-mode says how it spreads over them."},
		{Name: PP, Kind: Int, Default: "1", Doc: "--split-mode layer, the default with several devices, puts layers one behind another."},
		{Name: DP, Kind: Int, Default: "1", Doc: "llama.cpp has no data-parallel copies; use replicas."},
		{Name: ExpertParallel, Kind: Bool, Default: "false", Doc: "llama.cpp does not give out experts over devices; --n-cpu-moe leaves some to the CPU."},
		{Name: MaxNumSeqs, Flags: []string{"-np", "--parallel"}, Kind: Int, Max: 256, Ladder: []string{"1", "2", "4", "8", "16", "32"},
			Doc: "Slots: requests decoded together at most. They divide the context. Unset: 4, which share it."},
		{Name: MaxBatched, Flags: []string{"-b", "--batch-size"}, Kind: Int, Default: "2048", Min: 1, Ladder: []string{"512", "1024", "2048", "4096"},
			Doc: "Tokens handed over at once: those of all slots that decode, and prompts as far as there is room."},
		{Name: MicroBatch, Flags: []string{"-ub", "--ubatch-size"}, Kind: Int, Default: "512", Min: 1, Ladder: []string{"128", "256", "512", "1024", "2048", "4096"},
			Doc: "Tokens computed at once; a batch is cut into such parts. Larger is faster for prompts and takes memory."},
		{Name: MaxModelLen, Derived: true, Kind: Int, Min: 1, Doc: "Longest prompt plus output: with it -c is so much for each slot."},
		{Name: ContextSize, Flags: []string{"-c", "--ctx-size"}, Kind: Int,
			Doc: "Tokens of the KV cache, divided among the slots unless it is unified; unset or 0: the model's, less where memory is short."},
		{Name: Threads, Flags: []string{"-t", "--threads"}, Kind: Int, Ladder: []string{"1", "2", "4", "8", "16", "32"},
			Doc: "Threads that generate; unset: by the host's cores."},
		{Name: ThreadsBatch, Flags: []string{"-tb", "--threads-batch"}, Kind: Int, Ladder: []string{"1", "2", "4", "8", "16", "32"},
			Doc: "Threads that compute prompts and batches; unset: as many as generate."},
		{Name: FlashAttention, Flags: []string{"-fa", "--flash-attn"}, Kind: Choice, Default: "auto", Choices: []string{"on", "off", "auto"},
			Ladder: []string{"on", "off"}, Doc: "Fused attention; a quantised cache of values needs it."},
		{Name: KVDtype, Flags: []string{"-ctk", "--cache-type-k"}, Kind: Choice, Default: "f16", Choices: kv, Spell: map[string]string{"auto": "f16"},
			Ladder: []string{"f16", "q8_0", "q4_0"}, Doc: "Storage of keys and of values, -ctk and -ctv alike."},
		{Name: GPULayers, Flags: []string{"-ngl", "--gpu-layers", "--n-gpu-layers"}, Kind: String, Ladder: []string{"0", "all"},
			Doc: "Layers on GPUs: a number, all, or auto (the default), which is as many as fit."},
		{Name: PrefixCaching, Flags: []string{"--cache-prompt"}, Off: []string{"--no-cache-prompt"}, Kind: Bool, Default: "true", Ladder: []string{"true", "false"},
			Doc: "Reuses what a slot, or the cache in host memory, still has of a prompt."},
		{Name: HostCache, Flags: []string{"-cram", "--cache-ram"}, Kind: Float, Default: "8", Min: -1, Ladder: []string{"8", "32"},
			Doc: "GiB of host memory for prompts of the past; -1: no limit."},
		{Name: CacheReuse, Flags: []string{"--cache-reuse"}, Kind: Int, Default: "0", Ladder: []string{"0", "256"},
			Doc: "Tokens of a piece that stands elsewhere in a prompt now and is worth reusing; 0: beginnings only."},
		{Name: SlotSimilarity, Flags: []string{"-sps", "--slot-prompt-similarity"}, Kind: Float, Default: "0.1", Max: 1, Ladder: []string{"0.1", "0.5"},
			Doc: "Share of a prompt that must agree with what a slot holds to be given that slot."},
		{Name: ChunkedPrefill, Kind: Bool, Default: "true", Doc: "Prompts are always split over batches."},
		{Name: Speculative, Flags: []string{"--spec-type"}, Kind: String, Ladder: []string{"ngram:16"},
			Doc: "METHOD:K[:DRAFT MODEL] with draft_model, eagle3, dflash, mtp or ngram."},
		{Name: Quantization, Kind: String, Doc: "The GGUF file's: name another file as the model."},
		{Name: Eager, Kind: Bool, Default: "false", Doc: "No flag turns CUDA graphs off."},
		{Name: PerfMode, Kind: String, Default: "balanced", Doc: "llama.cpp has no performance modes."},
	}
}

// llamacppMetrics are llama-server's names, published where it was started with
// --metrics. A name with + is the sum of two: what it computed and what it found.
func llamacppMetrics() map[string][]string {
	return map[string][]string{
		"running":           {"llamacpp:requests_processing"},
		"waiting":           {"llamacpp:requests_deferred"},
		"kv_usage":          {"llamacpp:kv_cache_usage_ratio"}, // gone from recent builds
		"prefix_queries":    {"llamacpp:prompt_tokens_total+llamacpp:prompt_tokens_cached_total"},
		"prefix_hits":       {"llamacpp:prompt_tokens_cached_total"},
		"prompt_tokens":     {"llamacpp:prompt_tokens_total"},
		"generation_tokens": {"llamacpp:tokens_predicted_total"},
		"spec_drafts":       {"llamacpp:spec_decode_num_drafts_total"},
		"spec_draft_tokens": {"llamacpp:spec_decode_num_draft_tokens_total"},
		"spec_accepted":     {"llamacpp:spec_decode_num_accepted_tokens_total"},
	}
}

// isGGUF tells a model's file from a repository. Parse and Argv keep to it.
func isGGUF(model string) bool {
	return strings.HasSuffix(strings.ToLower(model), ".gguf") || strings.HasPrefix(model, "/") || strings.HasPrefix(model, ".")
}
