package engine

// vllm is vLLM with the flags of 0.11 to 0.33 and the defaults of 0.11 to 0.33; without
// a version those of 0.11.
func vllm() *Engine {
	return &Engine{
		Name: "vllm", Title: "vLLM", Health: "/health", DefaultHost: "0.0.0.0", DefaultPort: 8000, MetricsPath: "/metrics",
		launch: []string{"vllm", "serve"}, hostFlag: "--host", portFlag: "--port", defModel: "Qwen/Qwen3-0.6B",
		cli: cli{prog: "vllm serve", usage: "usage: vllm serve [model_tag] [options]", underscores: true, suffixes: true},
		Params: []Param{
			{Name: TP, Flags: []string{"-tp", "--tensor-parallel-size"}, Kind: Int, Default: "1", Min: 1, Ladder: []string{"1", "2", "4", "8"},
				Doc: "GPUs that split each layer; must divide the attention heads."},
			{Name: PP, Flags: []string{"-pp", "--pipeline-parallel-size"}, Kind: Int, Default: "1", Min: 1, Ladder: []string{"1", "2"},
				Doc: "Stages that split the layers."},
			{Name: DP, Flags: []string{"-dp", "--data-parallel-size"}, Kind: Int, Default: "1", Min: 1, Ladder: []string{"1", "2", "4", "8"},
				Doc: "Engine copies behind one front end; experts are shared among them."},
			{Name: ExpertParallel, Flags: []string{"--enable-expert-parallel", "-ep"}, Off: []string{"--no-enable-expert-parallel"}, Kind: Bool, Default: "false",
				Ladder: []string{"true"}, Doc: "Gives out whole experts over tp*dp ranks instead of slicing each."},
			{Name: MaxNumSeqs, Flags: []string{"--max-num-seqs"}, Kind: Int, Min: 1, Ladder: []string{"64", "128", "256", "512", "1024"},
				Doc: "Sequences in one step at most; unset: 1024 on devices of 70 GiB and more that are not A100, else 256; on a CPU 128 a rank."},
			{Name: MaxBatched, Flags: []string{"--max-num-batched-tokens"}, Kind: Int, Min: 1, Ladder: []string{"2048", "4096", "8192", "16384", "32768"},
				Doc: "Tokens of one step at most; unset: 8192 on devices of 70 GiB and more that are not A100, else 2048; from 0.28 16384 on those of 160 GiB."},
			{Name: MaxModelLen, Flags: []string{"--max-model-len"}, Kind: String, Ladder: []string{"auto"}, Doc: "Longest prompt plus output; unset: the model's; auto: what fits."},
			{Name: MemoryShare, Flags: []string{"--gpu-memory-utilization"}, Kind: Float, Min: 0.01, Max: 1, Ladder: []string{"0.85", "0.90", "0.92", "0.95"},
				Doc: "Share of the device that weights, activations and KV cache may take; unset: 0.90 (0.92 from 0.20)."},
			{Name: KVDtype, Flags: []string{"--kv-cache-dtype"}, Kind: Choice, Default: "auto", Ladder: []string{"auto", "fp8"}, Doc: "Storage of keys and values."},
			{Name: Quantization, Flags: []string{"--quantization", "-q"}, Kind: String, Ladder: []string{"fp8"}, Doc: "Weight quantisation; unset: the checkpoint's."},
			{Name: PrefixCaching, Flags: []string{"--enable-prefix-caching"}, Off: []string{"--no-enable-prefix-caching"}, Kind: Bool,
				Ladder: []string{"true", "false"}, Doc: "Reuses KV blocks of shared prefixes; unset: on, with linear attention from 0.26."},
			{Name: ChunkedPrefill, Flags: []string{"--enable-chunked-prefill"}, Off: []string{"--no-enable-chunked-prefill"}, Kind: Bool, Default: "true",
				Doc: "Splits prompts over steps."},
			{Name: Speculative, Flags: []string{"--speculative-config", "-sc"}, Kind: JSON, Ladder: []string{"mtp:1", "mtp:2", "mtp:3"}, Doc: "METHOD:K[:DRAFT MODEL]; K tokens are guessed a step."},
			{Name: GraphMax, Flags: []string{"--max-cudagraph-capture-size"}, Kind: Int, Min: 1, Ladder: []string{"256", "512", "1024"},
				Doc: "Largest captured batch; unset: min(2*max_num_seqs*(1+K), 512)."},
			{Name: Eager, Flags: []string{"--enforce-eager"}, Off: []string{"--no-enforce-eager"}, Kind: Bool, Default: "false", Doc: "Turns CUDA graphs off."},
			{Name: PerfMode, Flags: []string{"--performance-mode"}, Kind: Choice, Default: "balanced", Ladder: []string{"interactivity", "throughput"},
				Doc: "throughput doubles both batch limits where unset; interactivity captures more small graphs."},
			{Name: BlockSize, Flags: []string{"--block-size"}, Kind: Int, Min: 1, Ladder: []string{"16", "32"}, Doc: "Tokens per KV block; unset: 16 (128 on a CPU or NPU), with linear attention what holds a layer's state."},
			{Name: AttentionDP, Kind: Bool, Default: "false", Doc: "In vLLM data_parallel copies with expert_parallel do this."},
			{Name: MoEBackend, Flags: []string{"--moe-backend"}, Kind: Choice, Default: "auto", Doc: "Kernels of the routed experts."},
			{Name: StreamInterval, Flags: []string{"--stream-interval"}, Kind: Int, Default: "1", Min: 1, Doc: "Tokens between two messages of a stream."},
			{Name: Overlap, Flags: []string{"--async-scheduling"}, Off: []string{"--no-async-scheduling"}, Kind: Bool, Ladder: []string{"true", "false"},
				Doc: "Schedules a step while the one before it runs; unset: on from 0.14."},
			{Name: CapacityPolicy, Kind: Choice, Default: "max_utilization", Doc: "vLLM admits what has room now and evicts when there is none."},
			{Name: HostCache, Flags: []string{"--kv-offloading-size"}, Kind: Float, Default: "0", Min: 0.001, Ladder: []string{"32", "64", "128"},
				Doc: "GiB of host memory that keep KV blocks, of all tensor-parallel ranks together; unset: none."},
			{Name: HostCacheBackend, Flags: []string{"--kv-offloading-backend"}, Kind: Choice, Default: "native", Ladder: []string{"native", lmcache},
				Doc: "What keeps the blocks of host_cache: vLLM itself, or a server of LMCache that has its own size."},
			{Name: Disaggregation, Derived: true, Kind: String, Default: NoPools, Ladder: []string{"1:1", "2:1", "1:2"},
				Doc: "P:D prefill and decode engines of a replica behind a router, KV by NIXL; each has its own tp GPUs."},
		},
		Metrics: vllmMetrics(),
	}
}

// vllmMetrics are vLLM's names, of 0.6 to 0.33. It publishes them without being asked.
func vllmMetrics() map[string][]string {
	return map[string][]string{
		"running":           {"vllm:num_requests_running"},
		"waiting":           {"vllm:num_requests_waiting"},
		"kv_usage":          {"vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"}, // the latter up to 0.11
		"preemptions":       {"vllm:num_preemptions_total"},
		"prefix_queries":    {"vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"},
		"prefix_hits":       {"vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"},
		"host_queries":      {"vllm:external_prefix_cache_queries_total"},
		"host_hits":         {"vllm:external_prefix_cache_hits_total"},
		"prompt_tokens":     {"vllm:prompt_tokens_total"},
		"generation_tokens": {"vllm:generation_tokens_total"},
		"finished":          {"vllm:request_success_total"},
		"spec_drafts":       {"vllm:spec_decode_num_drafts_total"},
		"spec_draft_tokens": {"vllm:spec_decode_num_draft_tokens_total"},
		"spec_accepted":     {"vllm:spec_decode_num_accepted_tokens_total"},
		"queue_seconds":     {"vllm:request_queue_time_seconds_sum"},
		"queued":            {"vllm:request_queue_time_seconds_count"},
		"kv_tokens":         {"vllm:cache_config_info[num_gpu_blocks*block_size]"},
		"kv_block":          {"vllm:cache_config_info[block_size]"},
	}
}
