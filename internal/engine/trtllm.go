package engine

import "strings"

// trtllm is TensorRT-LLM with the PyTorch backend, the flags of 1.0 to 1.3 and the
// defaults of 1.1 and 1.2. What its command line
// has no flag for stands in a YAML file.
func trtllm() *Engine {
	return &Engine{
		Name: "trtllm", Title: "TensorRT-LLM", Health: "/health", DefaultHost: "localhost", DefaultPort: 8000, MetricsPath: "/prometheus/metrics",
		launch: []string{"trtllm-serve"}, hostFlag: "--host", portFlag: "--port",
		cli:  cli{prog: "trtllm-serve serve", usage: "Usage: trtllm-serve serve [OPTIONS] MODEL\nTry 'trtllm-serve serve --help' for help.\n", click: true},
		file: &configFile{name: "trtllm.yaml", flag: "--extra_llm_api_options", model: "TorchLlmArgs"},
		Params: []Param{
			{Name: TP, Flags: []string{"--tp_size", "--tensor_parallel_size"}, Key: "tensor_parallel_size", Kind: Int, Default: "1", Min: 1, Ladder: []string{"1", "2", "4", "8"},
				Doc: "GPUs that split each layer; must divide the attention heads."},
			{Name: PP, Flags: []string{"--pp_size", "--pipeline_parallel_size"}, Key: "pipeline_parallel_size", Kind: Int, Default: "1", Min: 1, Ladder: []string{"1", "2"},
				Doc: "Stages that split the layers."},
			{Name: DP, Kind: Int, Default: "1", Doc: "TensorRT-LLM has no data-parallel copies; use replicas."},
			{Name: ExpertParallel, Flags: []string{"--ep_size", "--moe_expert_parallel_size"}, Key: "moe_expert_parallel_size", Kind: Bool, Ranks: true, Default: "false",
				Ladder: []string{"true"}, Doc: "Gives out whole experts over the ranks instead of slicing each."},
			{Name: MaxNumSeqs, Flags: []string{"--max_batch_size"}, Key: "max_batch_size", Kind: Int, Default: "2048", Min: 1,
				Ladder: []string{"64", "128", "256", "512", "1024", "2048"}, Doc: "Requests in one iteration at most."},
			{Name: MaxBatched, Flags: []string{"--max_num_tokens"}, Key: "max_num_tokens", Kind: Int, Default: "8192", Min: 1, Ladder: []string{"2048", "4096", "8192", "16384", "32768"},
				Doc: "Tokens of one iteration at most; a prompt must fit in it unless prefill is chunked."},
			{Name: MaxModelLen, Flags: []string{"--max_seq_len"}, Key: "max_seq_len", Kind: Int, Min: 1, Doc: "Longest prompt plus output; unset: the model's."},
			{Name: MemoryShare, Flags: []string{"--kv_cache_free_gpu_memory_fraction", "--free_gpu_memory_fraction"}, Key: kvFraction, Kind: Float, Default: "0.9", Min: 0.01, Max: 1,
				Ladder: []string{"0.80", "0.85", "0.90", "0.95"}, Doc: "Share for the KV cache of the memory that weights and activations leave."},
			{Name: KVDtype, Flags: []string{"--kv_cache_dtype"}, Key: kvDtypeKey, Kind: Choice, Default: "auto", Ladder: []string{"auto", "fp8"},
				Doc: "Storage of keys and values; before 1.3 set by the configuration file."},
			{Name: Quantization, Kind: String, Doc: "The checkpoint's."},
			{Name: PrefixCaching, Key: "kv_cache_config.enable_block_reuse", Kind: Bool, Default: "true", Ladder: []string{"true", "false"},
				Doc: "Reuses KV blocks of shared prefixes."},
			{Name: ChunkedPrefill, Flags: []string{"--enable_chunked_prefill"}, Key: "enable_chunked_prefill", Kind: Bool, Default: "false", Ladder: []string{"true"},
				Doc: "Splits prompts over iterations."},
			{Name: Speculative, Key: specSection, Kind: String, Ladder: []string{"mtp:1", "mtp:3"}, Doc: "METHOD:K[:DRAFT MODEL] by mtp, eagle3, ngram or draft_model."},
			{Name: GraphMax, Key: graphMaxKey, Kind: Int, Min: 1, Ladder: []string{"256", "512"},
				Doc: "Largest captured decode batch, smaller ones padded to the next size; unset: 128, without padding."},
			{Name: Eager, Key: graphSection, Kind: Bool, Default: "false", Doc: "Turns CUDA graphs off."},
			{Name: PerfMode, Kind: String, Default: "balanced", Doc: "TensorRT-LLM has no performance modes."},
			{Name: BlockSize, Key: "kv_cache_config.tokens_per_block", Kind: Int, Default: "32", Min: 1, Ladder: []string{"32", "64"}, Doc: "Tokens per KV block."},
			{Name: AttentionDP, Flags: []string{"--enable_attention_dp"}, Key: "enable_attention_dp", Kind: Bool, Default: "false", Ladder: []string{"true"},
				Doc: "Each rank attends to requests of its own; max_num_seqs is then a rank's."},
			{Name: MoEBackend, Key: "moe_config.backend", Kind: Choice, Default: "auto", Spell: uppercase("auto", "cutlass", "cutedsl", "trtllm", "deepgemm", "wideep", "triton", "vanilla", "marlin"),
				Ladder: []string{"cutlass", "trtllm", "deepgemm"}, Doc: "Kernels of the routed experts."},
			{Name: StreamInterval, Key: "stream_interval", Kind: Int, Default: "1", Min: 1, Doc: "Tokens between two messages of a stream."},
			{Name: Overlap, Key: overlapKey, Kind: Bool, Default: "true", Doc: "Schedules an iteration while the one before it runs."},
			{Name: HostCache, Key: hostBytesKey, Kind: Float, Default: "0", Ladder: []string{"32", "64", "128"},
				Doc: "GiB of host memory that keep KV blocks, of all ranks together; the file has bytes of a rank."},
			{Name: CapacityPolicy, Key: policyKey, Kind: Choice, Default: "guaranteed_no_evict",
				Spell: uppercase("guaranteed_no_evict", "max_utilization", "static_batch"), Ladder: []string{"max_utilization"},
				Doc: "guaranteed_no_evict admits a request when all its tokens have room; max_utilization evicts when they have not."},
		},
		Metrics: trtllmMetrics(),
	}
}

// trtllmMetrics are TensorRT-LLM's names at /prometheus/metrics. What is counted by
// iteration is there with enable_iter_perf_stats, what is counted by request with
// return_perf_metrics, both of its configuration file. Its JSON at /metrics is
// another thing: see meters.IterationSamples.
func trtllmMetrics() map[string][]string {
	return map[string][]string{
		"running":           {"trtllm_num_requests_running"},
		"waiting":           {"trtllm_num_requests_waiting"},
		"kv_usage":          {"trtllm_kv_cache_utilization"},
		"prefix_queries":    {"trtllm_prompt_tokens_total"},
		"prefix_hits":       {"trtllm_prompt_cached_tokens_total"},
		"prefix_share":      {"trtllm_kv_cache_hit_rate"},
		"prompt_tokens":     {"trtllm_prompt_tokens_total"},
		"generation_tokens": {"trtllm_generation_tokens_total"},
		"finished":          {"trtllm_request_success_total"},
		"spec_draft_tokens": {"trtllm_spec_decode_num_draft_tokens_total"},
		"spec_accepted":     {"trtllm_spec_decode_num_accepted_tokens_total"},
		"spec_length":       {"trtllm_spec_decode_acceptance_length"},
		"queue_seconds":     {"trtllm_request_queue_time_seconds_sum"},
		"queued":            {"trtllm_request_queue_time_seconds_count"},
	}
}

// Keys of the configuration file that are more than one parameter's value.
const (
	graphSection = "cuda_graph_config"
	graphMaxKey  = "cuda_graph_config.max_batch_size"
	graphSizes   = "cuda_graph_config.batch_sizes"
	graphPadding = "cuda_graph_config.enable_padding"
	specSection  = "speculative_config"
	kvFraction   = "kv_cache_config.free_gpu_memory_fraction"
	kvMaxTokens  = "kv_cache_config.max_tokens"
	kvMaxBytes   = "kv_cache_config.max_gpu_total_bytes"
	overlapKey   = "disable_overlap_scheduler"
	hostBytesKey = "kv_cache_config.host_cache_size"
	kvDtypeKey   = "kv_cache_config.dtype"
	policyKey    = "scheduler_config.capacity_scheduler_policy"
	chunkPolicy  = "scheduler_config.context_chunking_policy"
)

// uppercase maps names to the engine's spelling in capitals.
func uppercase(names ...string) map[string]string {
	out := map[string]string{}
	for _, n := range names {
		out[n] = strings.ToUpper(n)
	}
	return out
}
