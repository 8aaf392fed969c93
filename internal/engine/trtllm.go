package engine

import "fmt"

// trtllm is TensorRT-LLM 1.1 to 1.2 with the PyTorch backend. What only its
// YAML file sets is here as a fixed parameter.
func trtllm() *Engine {
	return &Engine{
		Name: "trtllm", Title: "TensorRT-LLM", Health: "/health", DefaultHost: "localhost", DefaultPort: 8000, MetricsPath: "/prometheus/metrics",
		launch: []string{"trtllm-serve"}, hostFlag: "--host", portFlag: "--port",
		cli: cli{prog: "trtllm-serve serve", usage: "Usage: trtllm-serve serve [OPTIONS] MODEL\nTry 'trtllm-serve serve --help' for help.\n", click: true},
		Params: []Param{
			{Name: TP, Flags: []string{"--tp_size", "--tensor_parallel_size"}, Kind: Int, Default: "1", Min: 1, Ladder: []string{"1", "2", "4", "8"},
				Doc: "GPUs that split each layer; must divide the attention heads."},
			{Name: PP, Flags: []string{"--pp_size", "--pipeline_parallel_size"}, Kind: Int, Default: "1", Min: 1, Ladder: []string{"1", "2"},
				Doc: "Stages that split the layers."},
			{Name: DP, Kind: Int, Default: "1", Doc: "TensorRT-LLM has no data-parallel copies; use replicas."},
			{Name: ExpertParallel, Flags: []string{"--ep_size", "--moe_expert_parallel_size"}, Kind: Bool, Ranks: true, Default: "false",
				Ladder: []string{"true"}, Doc: "Gives out whole experts over the ranks instead of slicing each."},
			{Name: MaxNumSeqs, Flags: []string{"--max_batch_size"}, Kind: Int, Default: "2048", Min: 1, Ladder: []string{"64", "128", "256", "512", "1024", "2048"},
				Doc: "Requests in one iteration at most."},
			{Name: MaxBatched, Flags: []string{"--max_num_tokens"}, Kind: Int, Default: "8192", Min: 1, Ladder: []string{"2048", "4096", "8192", "16384"},
				Doc: "Tokens of one iteration at most; a prompt must fit in it unless prefill is chunked."},
			{Name: MaxModelLen, Flags: []string{"--max_seq_len"}, Kind: Int, Min: 1, Doc: "Longest prompt plus output; unset: the model's."},
			{Name: MemoryShare, Flags: []string{"--kv_cache_free_gpu_memory_fraction", "--free_gpu_memory_fraction"}, Kind: Float, Default: "0.9", Min: 0.01, Max: 1,
				Ladder: []string{"0.80", "0.85", "0.90", "0.95"}, Doc: "Share for the KV cache of the memory that weights and activations leave."},
			{Name: KVDtype, Flags: []string{"--kv_cache_dtype"}, Kind: Choice, Default: "auto", Ladder: []string{"auto", "fp8"}, Since: "1.2", Doc: "Storage of keys and values."},
			{Name: Quantization, Kind: String, Doc: "The checkpoint's."},
			{Name: PrefixCaching, Kind: Bool, Default: "true", Doc: "kv_cache_config.enable_block_reuse of the configuration file."},
			{Name: ChunkedPrefill, Flags: []string{"--enable_chunked_prefill"}, Kind: Bool, Default: "false", Ladder: []string{"true"}, Doc: "Splits prompts over iterations."},
			{Name: Speculative, Kind: String, Doc: "speculative_config of the configuration file."},
			{Name: GraphMax, Kind: Int, Default: "128", Doc: "cuda_graph_config.max_batch_size of the configuration file."},
			{Name: Eager, Kind: Bool, Default: "false", Doc: "cuda_graph_config of the configuration file."},
			{Name: PerfMode, Kind: String, Default: "balanced", Doc: "TensorRT-LLM has no performance modes."},
			{Name: BlockSize, Kind: Int, Default: "32", Doc: "kv_cache_config.tokens_per_block of the configuration file."},
		},
		Metrics:    trtllmMetrics(),
		signatures: trtllmSignatures(),
	}
}

func resolveTRTLLM(r *resolver) {
	c := r.cfg
	c.ShareOfFree, c.Reserve, c.Prefix, c.Serial = true, true, true, true
	c.Overlap = c.Spec == ""
	c.MemoryShare = r.float(MemoryShare, 0.9)
	c.Seqs = r.int(MaxNumSeqs, 2048)
	c.Batched = r.int(MaxBatched, 8192)
	c.Chunked = r.bool(ChunkedPrefill, false)
	c.Block = 32
	c.GraphMax = 128
	c.EP = r.ranks(ExpertParallel)
	c.GPUs = c.TP * c.PP
}

// poolTRTLLM is the share of what weights, libraries and the peak of a profiled
// forward leave free.
func poolTRTLLM(c *Config) int64 {
	free := c.deviceBytes() - c.weightBytes() - c.activationBytes() - c.libraryBytes() - c.graphBytes()
	return int64(c.MemoryShare * float64(free))
}

func startupTRTLLM(c *Config) []string {
	tokens, _ := c.KVTokens()
	peak := c.weightBytes() + c.activationBytes() + c.libraryBytes()
	perToken := c.Model.KVBytesPerTokenRank(c.KVBytes, c.TP, c.PP)
	return []string{
		fmt.Sprintf("[TRT-LLM] [RANK 0] [I] max_seq_len=%d, max_num_requests=%d, max_num_tokens=%d", c.MaxLen, c.Seqs, c.Batched),
		fmt.Sprintf("[TRT-LLM] [RANK 0] [I] Peak memory during memory usage profiling (torch + non-torch): %.2f GiB, available KV cache memory when calculating max tokens: %.2f GiB, fraction is set %v, kv size is %d. device total memory %.2f GiB",
			gib(peak), gib(c.KVPoolBytes()), c.MemoryShare, perToken, c.GPU.MemoryGiB),
		fmt.Sprintf("[TensorRT-LLM][INFO] Max KV cache blocks per sequence: %d [window size=%d]", (c.MaxLen+c.Block-1)/c.Block, c.MaxLen),
		fmt.Sprintf("[TensorRT-LLM][INFO] Allocated %.2f GiB for max tokens in paged KV cache (%d).", gib(c.KVPoolBytes()), tokens),
		"INFO:     Application startup complete.",
		fmt.Sprintf("INFO:     Uvicorn running on http://%s:%d (Press CTRL+C to quit)", c.Host, c.Port),
	}
}
