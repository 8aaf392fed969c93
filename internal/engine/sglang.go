package engine

import (
	"fmt"
	"slices"

	"perflab/internal/arch"
)

// sglang is SGLang with the flags of 0.5.5 to 0.5.17 and the defaults of 0.5.5 to 0.5.9.
func sglang() *Engine {
	return &Engine{
		Name: "sglang", Title: "SGLang", Health: "/health", DefaultHost: "127.0.0.1", DefaultPort: 30000, MetricsPath: "/metrics", MetricsFlag: "--enable-metrics",
		launch: []string{"python3", "-m", "sglang.launch_server"}, modelFlag: "--model-path", hostFlag: "--host", portFlag: "--port",
		cli: cli{prog: "launch_server.py", usage: "usage: launch_server.py [-h] --model-path MODEL_PATH [options]", underscores: true},
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
			{Name: GraphMax, Flags: []string{"--cuda-graph-max-bs"}, Kind: Int, Min: 1, Ladder: []string{"256", "512"}, Doc: "Largest captured decode batch; unset: by device memory and tp."},
			{Name: Eager, Flags: []string{"--disable-cuda-graph"}, Kind: Bool, Default: "false", Doc: "Turns CUDA graphs off."},
			{Name: PerfMode, Kind: String, Default: "balanced", Doc: "SGLang has no performance modes."},
			{Name: BlockSize, Flags: []string{"--page-size"}, Kind: Int, Default: "1", Min: 1, Ladder: []string{"1", "16", "64"}, Doc: "Tokens per KV page."},
			{Name: AttentionDP, Flags: []string{"--enable-dp-attention"}, Kind: Bool, Default: "false", Ladder: []string{"true"},
				Doc: "Each of dp groups of ranks attends to requests of its own; dp must divide tp."},
			{Name: MoEBackend, Flags: []string{"--moe-runner-backend"}, Kind: Choice, Default: "auto", Doc: "Kernels of the routed experts."},
			{Name: StreamInterval, Flags: []string{"--stream-interval"}, Kind: Int, Default: "1", Min: 1, Doc: "Tokens between two messages of a stream."},
			{Name: Overlap, Off: []string{"--disable-overlap-schedule"}, Kind: Bool, Default: "true", Doc: "Schedules a step while the one before it runs."},
			{Name: CapacityPolicy, Kind: Choice, Default: "max_utilization", Doc: "SGLang keeps a share of room free (--schedule-conservativeness) and retracts when there is none."},
		},
		Metrics: sglangMetrics(),
	}
}

// resolveSGLang fills in the defaults by device memory, and the share of static
// memory that is left when activations and graphs have their reserve:
//
//	share = (M - reserve)/M,  reserve = 512 + 1.5*max(chunk, 2048) + 2*graphs + 1024*tp*pp/8 MiB
//
// with at least 10240 MiB of reserve above 60 GiB.
func resolveSGLang(r *resolver) {
	c := r.cfg
	c.PrefillOnly = true
	chunk, graph := sglangBySize(c.GPU.MemoryGiB*1024, c.TP)
	page := 1
	if c.GPU.Platform == arch.NPU {
		chunk, graph = r.sglangNPU()
		page = 128
	}
	c.Prefix = r.bool(PrefixCaching, true)
	c.Chunked = r.bool(ChunkedPrefill, true)
	c.Batched = r.int(MaxBatched, chunk)
	c.Prefill = r.extraInt("--max-prefill-tokens", 16384)
	if !c.Chunked {
		c.Batched = c.Prefill
	}
	c.Conserve = r.extraFloat("--schedule-conservativeness", 1)
	linear := c.Model.Linear != nil
	if linear && c.Spec != "" {
		c.Prefix = false // states of guessed tokens cannot be shared
	}
	// Classic speculation verifies before it schedules, pipelines and shared states of
	// linear attention wait for a step's end.
	c.Overlap = !r.flag("--disable-overlap-schedule") && c.Spec == "" && c.PP == 1 && !(linear && c.Prefix)
	c.Block = r.page(r.int(BlockSize, page))
	c.GraphMax = r.int(GraphMax, graph)
	c.EP = r.ranks(ExpertParallel)
	if slices.Contains(wholeExperts, c.AllToAll) {
		c.EP = c.TP
	}
	mib := c.GPU.MemoryGiB * 1024
	reserve := 512 + 1.5*float64(max(c.Batched, 2048)) + 2*float64(c.GraphMax) + 1024*float64(c.TP*c.PP)/8
	dpAttention := r.flag("--enable-dp-attention")
	if dpAttention {
		reserve += 3 * float64(c.GraphMax*c.DP)
		if c.GraphMax > 300 {
			reserve += 1.5 * float64(c.GraphMax*c.DP)
		}
	}
	if mib > 60*1024 {
		reserve = max(reserve, 10240)
	}
	if c.Spec != "" && c.Spec != "ngram" {
		reserve += 2048
	}
	c.MemoryShare = r.float(MemoryShare, float64(int((mib-reserve)/mib*1000+0.5))/1000)
	if dpAttention { // data-parallel attention lives inside the tensor-parallel ranks
		c.DP = 1
		c.Conserve *= 0.3
	}
	running := sglangRunning(c)
	if c.Spec != "" {
		running = 48
	}
	c.Seqs = r.int(MaxNumSeqs, running)
}

// sglangBySize is the default chunk and largest graph by device memory in MiB.
func sglangBySize(mib float64, tp int) (chunk, graph int) {
	pick := func(small, large int) int {
		if tp < 4 {
			return small
		}
		return large
	}
	switch {
	case mib < 20480:
		return 2048, 8
	case mib < 35840:
		return 2048, pick(24, 80)
	case mib < 61440:
		return 4096, pick(32, 160)
	case mib < 163840:
		return 8192, pick(256, 512)
	}
	return 16384, 512
}

// sglangNPU is the default chunk and largest graph on an Ascend of 64 GB, which 0.5.7
// changed.
func (r *resolver) sglangNPU() (chunk, graph int) {
	split := r.cfg.TP >= 4
	switch {
	case r.cmd.AtLeast("0.5.7") && split:
		return 8192, 256
	case r.cmd.AtLeast("0.5.7"):
		return 8192, 64
	case split:
		return 32768, 128
	}
	return 32768, 64
}

// sglangRunning is the default limit of running requests: 512 whole contexts'
// worth of the pool, between 2048 and 4096; models with linear attention
// also need a third of a state pool of their own for each.
func sglangRunning(c *Config) int {
	tokens, err := c.KVTokens()
	if err != nil {
		return 2048
	}
	n := min(max(int(float64(tokens)/float64(max(c.MaxLen, 1))*512), 2048), 4096)
	if state := c.Model.StateBytesRank(c.TP, c.PP); state > 0 {
		slots := sglangStatic(c) * sglangStateShare / (1 + sglangStateShare) / float64(state)
		if c.Prefix {
			slots /= 3
		}
		n = max(1, min(n, int(slots)))
	}
	return n
}

// sglangStateShare is state memory by KV memory, --mamba-full-memory-ratio.
const sglangStateShare = 0.9

// sglangStatic is the memory for KV pool and states, in bytes.
func sglangStatic(c *Config) float64 {
	return c.MemoryShare*float64(c.deviceBytes()-c.libraryBytes()) - float64(c.weightBytes())
}

func poolSGLang(c *Config) int64 {
	static := sglangStatic(c)
	if c.Model.Linear != nil {
		static /= 1 + sglangStateShare
	}
	return int64(static)
}

func startupSGLang(c *Config) []string {
	tokens, _ := c.KVTokens()
	gb := func(bytes int64) float64 { return gib(bytes) } // SGLang calls 2^30 bytes a GB
	left := c.deviceBytes() - c.libraryBytes()
	seconds := float64(c.weightBytes()) / loadBytesPerSecond
	half := gb(c.KVPoolBytes()) / 2
	lines := []string{
		fmt.Sprintf("[TP0] Init torch distributed ends. elapsed=1.00 s, mem usage=%.2f GB", gb(c.libraryBytes())),
		fmt.Sprintf("[TP0] Load weight begin. avail mem=%.2f GB", gb(left)),
		fmt.Sprintf("[TP0] Load weight end. elapsed=%.2f s, type=Model, dtype=torch.bfloat16, avail mem=%.2f GB, mem usage=%.2f GB.", seconds, gb(left-c.weightBytes()), gb(c.weightBytes())),
		fmt.Sprintf("[TP0] KV Cache is allocated. #tokens: %d, K size: %.2f GB, V size: %.2f GB", tokens, half, half),
	}
	left -= c.weightBytes() + c.KVPoolBytes()
	lines = append(lines, fmt.Sprintf("[TP0] Memory pool end. avail mem=%.2f GB", gb(left)))
	if c.GraphMax > 0 {
		left -= c.graphBytes()
		lines = append(lines, fmt.Sprintf("[TP0] Capture cuda graph end. Time elapsed: %.2f s. mem usage=%.2f GB. avail mem=%.2f GB.", 2+float64(c.GraphMax)/32, gb(c.graphBytes()), gb(left)))
	}
	chunk := c.Batched
	if !c.Chunked {
		chunk = -1
	}
	return append(lines,
		fmt.Sprintf("[TP0] max_total_num_tokens=%d, chunked_prefill_size=%d, max_prefill_tokens=%d, max_running_requests=%d, context_len=%d, available_gpu_mem=%.2f GB",
			tokens, chunk, c.Prefill, c.Seqs, c.MaxLen, gb(left)),
		"INFO:     Application startup complete.",
		"The server is fired up and ready to roll!")
}
