package sim

import (
	"cmp"
	"fmt"
	"strconv"

	"perflab/internal/engine"
)

// thousands prints n with commas.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// startup is the lines that the engine prints while it starts, without
// timestamps, in its own words and with the configuration's numbers.
func startup(c engine.Config) []string {
	switch c.Engine {
	case "vllm":
		return startupVLLM(&c)
	case "sglang":
		return startupSGLang(&c)
	case "trtllm":
		return startupTRTLLM(&c)
	}
	return nil
}

// loadBytesPerSecond is how fast a rank is said to read weights.
const loadBytesPerSecond = 2e9

func gib(bytes int64) float64 { return float64(bytes) / (1 << 30) }

func startupSGLang(c *engine.Config) []string {
	m := c.Memory()
	tokens, _ := c.KVTokens()
	gb := func(bytes int64) float64 { return gib(bytes) } // SGLang calls 2^30 bytes a GB
	left := m.Device - m.Library
	seconds := float64(m.Weights) / loadBytesPerSecond
	half := gb(m.KV) / 2
	lines := []string{
		fmt.Sprintf("[TP0] Init torch distributed ends. elapsed=1.00 s, mem usage=%.2f GB", gb(m.Library)),
		fmt.Sprintf("[TP0] Load weight begin. avail mem=%.2f GB", gb(left)),
		fmt.Sprintf("[TP0] Load weight end. elapsed=%.2f s, type=Model, dtype=torch.bfloat16, avail mem=%.2f GB, mem usage=%.2f GB.", seconds, gb(left-m.Weights), gb(m.Weights)),
		fmt.Sprintf("[TP0] KV Cache is allocated. #tokens: %d, K size: %.2f GB, V size: %.2f GB", tokens, half, half),
	}
	left -= m.Weights + m.KV
	lines = append(lines, fmt.Sprintf("[TP0] Memory pool end. avail mem=%.2f GB", gb(left)))
	if c.GraphMax > 0 {
		left -= m.Graphs
		lines = append(lines, fmt.Sprintf("[TP0] Capture cuda graph end. Time elapsed: %.2f s. mem usage=%.2f GB. avail mem=%.2f GB.", 2+float64(c.GraphMax)/32, gb(m.Graphs), gb(left)))
	}
	chunk := c.Batched
	if !c.Chunked {
		chunk = -1
	}
	return append(lines,
		fmt.Sprintf("[TP0] max_total_num_tokens=%d, chunked_prefill_size=%d, max_prefill_tokens=%d, max_running_requests=%d, context_len=%d, available_gpu_mem=%.2f GB",
			tokens, chunk, c.PrefillTokens, c.Seqs, c.MaxLen, gb(left)),
		"INFO:     Application startup complete.",
		"The server is fired up and ready to roll!")
}

func startupTRTLLM(c *engine.Config) []string {
	m := c.Memory()
	tokens, _ := c.KVTokens()
	peak := m.Weights + m.Activation + m.Library
	perToken := c.Model.KVBytesPerTokenRank(c.KVBytes, c.TP, c.PP)
	return []string{
		fmt.Sprintf("[TRT-LLM] [RANK 0] [I] max_seq_len=%d, max_num_requests=%d, max_num_tokens=%d", c.MaxLen, c.Seqs, c.Batched),
		fmt.Sprintf("[TRT-LLM] [RANK 0] [I] Peak memory during memory usage profiling (torch + non-torch): %.2f GiB, available KV cache memory when calculating max tokens: %.2f GiB, fraction is set %v, kv size is %d. device total memory %.2f GiB",
			gib(peak), gib(m.KV), c.MemoryShare, perToken, c.GPU.MemoryGiB),
		fmt.Sprintf("[TensorRT-LLM][INFO] Max KV cache blocks per sequence: %d [window size=%d]", (c.MaxLen+c.Block-1)/c.Block, c.MaxLen),
		fmt.Sprintf("[TensorRT-LLM][INFO] Allocated %.2f GiB for max tokens in paged KV cache (%d).", gib(m.KV), tokens),
		"INFO:     Application startup complete.",
		fmt.Sprintf("INFO:     Uvicorn running on http://%s:%d (Press CTRL+C to quit)", c.Host, c.Port),
	}
}

func startupVLLM(c *engine.Config) []string {
	m := c.Memory()
	tokens, _ := c.KVTokens()
	weights := float64(m.Weights)
	lines := []string{
		fmt.Sprintf("INFO [scheduler.py] Chunked prefill is enabled with max_num_batched_tokens=%d.", c.Batched),
		fmt.Sprintf("INFO [default_loader.py] Loading weights took %.2f seconds", weights/loadBytesPerSecond),
		fmt.Sprintf("INFO [gpu_model_runner.py] Model loading took %.4f GiB memory and %.6f seconds", gib(m.Weights), weights/loadBytesPerSecond+0.5),
		fmt.Sprintf("INFO [gpu_worker.py] Available KV cache memory: %.2f GiB", gib(m.KV)),
		fmt.Sprintf("INFO [kv_cache_utils.py] GPU KV cache size: %s tokens", thousands(tokens)),
		fmt.Sprintf("INFO [kv_cache_utils.py] Maximum concurrency for %s tokens per request: %.2fx", thousands(c.MaxLen), c.Concurrency()),
	}
	if !c.Chunked {
		lines = lines[1:]
	}
	if c.GraphMax > 0 {
		lines = append(lines, fmt.Sprintf("INFO [gpu_model_runner.py] Graph capturing finished in %d secs, took %.2f GiB", 2+c.GraphMax/64, gib(m.Graphs)))
	}
	return append(lines,
		fmt.Sprintf("INFO [core.py] init engine (profile, create kv cache, warmup model) took %.2f seconds", 5+weights/loadBytesPerSecond/10),
		fmt.Sprintf("INFO [api_server.py] Starting vLLM API server 0 on http://%s:%d", cmp.Or(c.Host, "0.0.0.0"), c.Port),
		"INFO:     Application startup complete.")
}
