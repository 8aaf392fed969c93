package engine

// sglang is SGLang with the flags of 0.5.5 to 0.5.23. Its defaults were held against its own
// code at 0.5.23 on a CPU (TestRealSGLang), and read at 0.5.5 to 0.5.9 elsewhere.
func sglang() *Engine {
	return &Engine{
		Name: "sglang", Title: "SGLang", Health: "/health", DefaultHost: "127.0.0.1", DefaultPort: 30000, MetricsPath: "/metrics", MetricsFlag: "--enable-metrics",
		launch: []string{"python3", "-m", "sglang.launch_server"}, modelFlag: "--model-path", hostFlag: "--host", portFlag: "--port",
		cli: cli{prog: "launch_server.py", usage: "usage: launch_server.py [-h] --model-path MODEL_PATH [options]"},
		Params: []Param{
			{Name: TP, Flags: []string{"--tp-size", "--tensor-parallel-size", "--tp"}, Kind: Int, Default: "1", Min: 1, Ladder: []string{"1", "2", "4", "8"},
				Doc: "GPUs that split each layer; must divide the attention heads."},
			{Name: PP, Flags: []string{"--pp-size", "--pipeline-parallel-size", "--pp"}, Kind: Int, Default: "1", Min: 1, Ladder: []string{"1", "2"},
				Doc: "Stages that split the layers."},
			{Name: DP, Flags: []string{"--dp-size", "--data-parallel-size", "--dp"}, Kind: Int, Default: "1", Min: 1, Ladder: []string{"1", "2", "4", "8"},
				Doc: "Engine copies behind one front end."},
			{Name: ExpertParallel, Flags: []string{"--ep-size", "--expert-parallel-size", "--ep"}, Kind: Bool, Ranks: true, Default: "false",
				Ladder: []string{"true"}, Doc: "Gives out whole experts over the ranks instead of slicing each."},
			{Name: MaxNumSeqs, Flags: []string{"--max-running-requests"}, Kind: Int, Min: 1, Ladder: []string{"64", "128", "256", "512", "1024", "2048"},
				Doc: "Requests decoded together at most; unset: from the size of the KV pool, 48 with speculation."},
			{Name: MaxBatched, Flags: []string{"--chunked-prefill-size"}, Kind: Int, Min: 1, Ladder: []string{"4096", "8192", "16384"},
				Doc: "Prompt tokens of one prefill step; unset: by device memory, 8192 at 80 GB."},
			{Name: MaxModelLen, Flags: []string{"--context-length"}, Kind: Int, Min: 1, Doc: "Longest prompt plus output; unset: the model's."},
			{Name: MemoryShare, Flags: []string{"--mem-fraction-static"}, Kind: Float, Min: 0.01, Max: 1, Ladder: []string{"0.80", "0.85", "0.88", "0.90", "0.94"},
				Doc: "Share of the device for weights and KV pool; unset: what activations and graphs leave, 0.84 at 80 GB."},
			{Name: KVDtype, Flags: []string{"--kv-cache-dtype"}, Kind: Choice, Default: "auto", Spell: map[string]string{"fp8": "fp8_e4m3"},
				Ladder: []string{"auto", "fp8"}, Doc: "Storage of keys and values."},
			{Name: Quantization, Flags: []string{"--quantization"}, Kind: Choice, Ladder: []string{"fp8"}, Doc: "Weight quantisation; unset: the checkpoint's."},
			{Name: PrefixCaching, Off: []string{"--disable-radix-cache"}, Kind: Bool, Default: "true", Ladder: []string{"true", "false"},
				Doc: "Reuses the KV cache of shared prefixes."},
			{Name: ChunkedPrefill, OffArgs: []string{"--chunked-prefill-size", "-1"}, Kind: Bool, Default: "true", Doc: "Splits prompts over steps; off is a chunk size of -1."},
			{Name: Speculative, Flags: []string{"--speculative-algorithm"}, Kind: String, Ladder: []string{"mtp:1", "mtp:3"},
				Doc: "METHOD:K[:DRAFT MODEL]; K steps of one candidate each."},
			{Name: GraphMax, Flags: []string{"--cuda-graph-max-bs-decode", "--cuda-graph-max-bs"}, Kind: Int, Min: 1, Ladder: []string{"256", "512"}, Doc: "Largest captured decode batch; unset: by device memory and tp."},
			{Name: Eager, Flags: []string{"--disable-cuda-graph"}, All: []string{"--disable-decode-cuda-graph", "--disable-prefill-cuda-graph"}, Kind: Bool, Default: "false", Doc: "Turns CUDA graphs off."},
			{Name: PerfMode, Kind: String, Default: "balanced", Doc: "SGLang has no performance modes."},
			{Name: BlockSize, Flags: []string{"--page-size"}, Kind: Int, Min: 1, Ladder: []string{"1", "16", "64"}, Doc: "Tokens per KV page; unset: 1, or what the attention kernel takes."},
			{Name: AttentionDP, Flags: []string{"--enable-dp-attention"}, Kind: Bool, Default: "false", Ladder: []string{"true"},
				Doc: "Each of dp groups of ranks attends to requests of its own; dp must divide tp. Up to 0.5.21 beside --dp-size, then in its place: --attn-dp-size."},
			{Name: MoEBackend, Flags: []string{"--moe-runner-backend"}, Kind: Choice, Default: "auto", Doc: "Kernels of the routed experts."},
			{Name: StreamInterval, Flags: []string{"--stream-interval"}, Kind: Int, Default: "1", Min: 1, Doc: "Tokens between two messages of a stream."},
			{Name: Overlap, Off: []string{"--disable-overlap-schedule"}, Kind: Bool, Default: "true", Doc: "Schedules a step while the one before it runs."},
			{Name: CapacityPolicy, Kind: Choice, Default: "max_utilization", Doc: "SGLang keeps a share of room free (--schedule-conservativeness) and retracts when there is none."},
			{Name: HostCache, Flags: []string{"--hicache-size"}, Kind: Float, Default: "0", Ladder: []string{"32", "64", "128"},
				Doc: "GB of host memory that keep KV, of all ranks together, with --enable-hierarchical-cache; a whole number for each rank."},
			{Name: HostCacheRatio, Flags: []string{"--hicache-ratio"}, Kind: Float, Min: 0.01, Ladder: []string{"2", "4"},
				Doc: "The same as a multiple of the devices' KV cache; host_cache wins over it."},
			{Name: HostCachePolicy, Flags: []string{"--hicache-write-policy"}, Kind: Choice, Default: "write_through", Ladder: []string{"write_through", "write_back"},
				Doc: "When KV is written to the host: once computed, once used again (write_through_selective), or when the device gives it up."},
			{Name: CacheEviction, Flags: []string{"--radix-eviction-policy"}, Kind: Choice, Default: "lru", Ladder: []string{"lru", "lfu"},
				Doc: "Which prefixes are given up first."},
			{Name: Disaggregation, Derived: true, Kind: String, Default: NoPools, Ladder: []string{"1:1", "2:1", "1:2"},
				Doc: "P:D prefill and decode engines of a replica behind a router, KV by SGLang's transfer backend; each has its own tp GPUs."},
		},
		Metrics: sglangMetrics(),
	}
}

// sglangMetrics are SGLang's names, published where it was started with
// --enable-metrics. What it found in its prefix cache is there from the first hit on.
func sglangMetrics() map[string][]string {
	return map[string][]string{
		"running":           {"sglang:num_running_reqs"},
		"waiting":           {"sglang:num_queue_reqs"},
		"kv_usage":          {"sglang:token_usage"},
		"preemptions":       {"sglang:num_retracted_requests_total", "sglang:num_retracted_reqs_total"},
		"prefix_queries":    {"sglang:prompt_tokens_total"},
		"prefix_hits":       {"sglang:cached_tokens_total"},
		"host_hits":         {"sglang:cached_tokens_total{cache_source=host}+sglang:cached_tokens_total{cache_source=storage}", "sglang:cached_tokens_total{cache_source=host}"},
		"prefix_share":      {"sglang:cache_hit_rate"},
		"prompt_tokens":     {"sglang:prompt_tokens_total"},
		"generation_tokens": {"sglang:generation_tokens_total"},
		"finished":          {"sglang:num_requests_total"},
		"spec_drafts":       {"sglang:spec_verify_calls_total"},
		"spec_length":       {"sglang:spec_accept_length"},
		"queue_seconds":     {"sglang:queue_time_seconds_sum"},
		"queued":            {"sglang:queue_time_seconds_count"},
		"kv_tokens":         {"sglang:max_total_num_tokens"}, "kv_block": {"sglang:page_size", "sglang:cache_config_info[page_size]"},
	}
}
