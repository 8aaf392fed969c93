package engine

import (
	"cmp"
	"fmt"
	"strings"

	"perflab/internal/arch"
)

// vllm is vLLM with the flags of 0.11 to 0.23 and the defaults of 0.11 to 0.33; without
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
		},
		Metrics: vllmMetrics(),
	}
}

// resolveVLLM fills in the defaults of the API server.
func resolveVLLM(r *resolver) {
	c := r.cfg
	seqs, batched := r.vllmLimits()
	if r.text(PerfMode) == "throughput" {
		seqs, batched = 2*seqs, 2*batched
	}
	share, block := 0.90, 16
	if r.cmd.AtLeast("0.20") {
		share = 0.92
	}
	if c.GPU.Platform == arch.CPU || c.GPU.Platform == arch.NPU {
		block = 128
	}
	c.MemoryShare = r.float(MemoryShare, share)
	c.Block = r.int(BlockSize, block)
	c.Prefix = r.bool(PrefixCaching, c.Model.Linear == nil || r.cmd.AtLeast("0.26"))
	c.Chunked = r.bool(ChunkedPrefill, true)
	if !c.Chunked {
		batched = max(batched, c.MaxLen)
	}
	c.Batched = r.int(MaxBatched, batched)
	c.Seqs = r.int(MaxNumSeqs, min(seqs, c.Batched))
	if r.bool(ExpertParallel, false) {
		c.EP = c.TP * c.DP
	}
	// The default since 0.14, but for pipelines. Speculation is taken to wait for
	// what was accepted.
	async := r.bool(Overlap, r.cmd.AtLeast("0.14"))
	c.Overlap = async && c.PP == 1 && c.Spec == "" && c.GPU.Platform != arch.CPU
	c.Chunks = r.cmd.AtLeast("0.14") && !strings.HasPrefix(c.Spec, "eagle")
	graph := min(2*c.Seqs*(1+c.SpecTokens), 512, c.Batched)
	c.GraphMax = r.int(GraphMax, graph)
	if c.GPU.Platform == arch.CPU {
		c.GraphMax = 0
	}
}

// vllmLimits are the API server's default limits of sequences and tokens in a step.
// Three devices do not get what their memory would give them: the A100, by name; a
// GB10, whose memory NVML does not tell (vllm-project/vllm pull request 57378
// measures it), and since 0.33 by name; an NPU, whose platform does not tell it.
func (r *resolver) vllmLimits() (seqs, batched int) {
	g := r.cfg.GPU
	switch {
	case g.Platform == arch.CPU:
		return 128 * r.cfg.TP * r.cfg.PP, 2048 * r.cfg.TP * r.cfg.PP
	case g.Platform == arch.NPU || g.MemoryGiB < 70 || g.Name == "gb10" || strings.HasPrefix(g.Name, "a100"):
		return 256, 2048
	case g.MemoryGiB >= 160 && r.cmd.AtLeast("0.28"):
		return 1024, 16384
	}
	return 1024, 8192
}

// poolVLLM is what the share of the device leaves after weights, the peak of a
// profiled step, and what libraries hold outside PyTorch. CUDA graphs are not
// in the share: they come from the rest.
func poolVLLM(c *Config) int64 {
	return int64(c.MemoryShare*float64(c.deviceBytes())) - c.weightBytes() - c.activationBytes() - c.libraryBytes()
}

func startupVLLM(c *Config) []string {
	tokens, _ := c.KVTokens()
	weights := float64(c.weightBytes())
	lines := []string{
		fmt.Sprintf("INFO [scheduler.py] Chunked prefill is enabled with max_num_batched_tokens=%d.", c.Batched),
		fmt.Sprintf("INFO [default_loader.py] Loading weights took %.2f seconds", weights/loadBytesPerSecond),
		fmt.Sprintf("INFO [gpu_model_runner.py] Model loading took %.4f GiB memory and %.6f seconds", gib(c.weightBytes()), weights/loadBytesPerSecond+0.5),
		fmt.Sprintf("INFO [gpu_worker.py] Available KV cache memory: %.2f GiB", gib(c.KVPoolBytes())),
		fmt.Sprintf("INFO [kv_cache_utils.py] GPU KV cache size: %s tokens", thousands(tokens)),
		fmt.Sprintf("INFO [kv_cache_utils.py] Maximum concurrency for %s tokens per request: %.2fx", thousands(c.MaxLen), c.concurrency()),
	}
	if !c.Chunked {
		lines = lines[1:]
	}
	if c.GraphMax > 0 {
		lines = append(lines, fmt.Sprintf("INFO [gpu_model_runner.py] Graph capturing finished in %d secs, took %.2f GiB", 2+c.GraphMax/64, gib(c.graphBytes())))
	}
	return append(lines,
		fmt.Sprintf("INFO [core.py] init engine (profile, create kv cache, warmup model) took %.2f seconds", 5+weights/loadBytesPerSecond/10),
		fmt.Sprintf("INFO [api_server.py] Starting vLLM API server 0 on http://%s:%d", cmp.Or(c.Host, "0.0.0.0"), c.Port),
		"INFO:     Application startup complete.")
}
