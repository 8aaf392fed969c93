package engine

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"perflab/internal/arch"
)

func kvTokens(t *testing.T, c Config) int {
	t.Helper()
	n, err := c.KVTokens()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestPublishedCaches compares with what published runs of vLLM 0.11 and SGLang 0.5.5 show of the
// cache's size: the sequences decoding at once, which is peak output tokens/s times
// median time between tokens, where the burst of equal prompts fills the cache. A
// decoding sequence holds its prompt and half of its output on the average.
func TestPublishedCaches(t *testing.T) {
	const oss, a3b = "openai/gpt-oss-120b --max-model-len 32768", " --max-model-len 32768"
	for _, tt := range []struct {
		line      string
		tokens    int // prompt and half the output
		sequences float64
	}{
		// The H100's page prints no length, but the same model's page for an A100 prints
		// 32768 in one place and none in another for one server: both hold less than the
		// model's own 40960 tokens, for which vLLM would not start.
		{one + h100 + v + q32 + a3b, 4100, 8.1},
		{one + h100 + v + q32 + a3b, 2050, 16.1},
		{one + h100 + v + q32 + a3b, 32050, 1},
		{one + a100 + v + q32 + a3b, 4100, 9.3},
		{one + a100 + v + q32 + a3b, 2050, 19.6},
		{eight + h100 + v + q235 + " -tp 8", 4100, 73.9},
		{eight + h100 + v + q235 + " -tp 8", 2050, 144.5},
		{four + h100 + v + q235 + "-FP8 -tp 4 --max-num-batched-tokens 16384", 4100, 74.5},
		{four + h100 + v + q235 + "-FP8 -tp 4 --max-num-batched-tokens 16384", 2050, 146},
		{one + h100 + v + "Qwen/Qwen3-14B", 32050, 8.3},
		{one + h100 + v + "Qwen/Qwen3-14B", 4100, 67.5},
		{one + h100 + v + "Qwen/Qwen3-14B", 2050, 133},
		{eight + " x h200" + v + "deepseek-ai/DeepSeek-R1-0528 -tp 8", 4100, 169.1}, // a latent cache, whole on every rank
		{one + h100 + sg + "Qwen/Qwen3-14B-FP8", 32050, 10.3},
		{one + h100 + sg + "Qwen/Qwen3-14B-FP8", 4100, 81.6},
		{one + h100 + sg + "Qwen/Qwen3-14B-FP8", 2050, 160.7},
		// Half the layers see 128 tokens: with all layers' caches in full it were half as many.
		{one + a100 + v + oss, 4100, 32.1},
		{one + a100 + v + oss, 2050, 59.5},
		{one + a100 + v + oss, 32050, 4.0},
	} {
		c := mustResolve(t, tt.line)
		blocks, err := c.KVBlocks()
		if err != nil {
			t.Fatal(err)
		}
		got := float64(blocks) / float64(c.Layout().SeqBlocks(tt.tokens))
		if diff := math.Abs(got - tt.sequences); diff > 0.07*tt.sequences && diff > 0.6 {
			t.Errorf("%s: %.1f sequences of %d tokens, %.1f were seen", tt.line, got, tt.tokens, tt.sequences)
		}
	}
	// SGLang peaked at about 58 running ShareGPT requests of some 330 tokens.
	if n := kvTokens(t, mustResolve(t, one+h100+sg+q32)); n < 17000 || n > 23000 {
		t.Errorf("SGLang holds %d tokens, want about 20 thousand", n)
	}
	// vLLM issue 21348: 367,404 tokens.
	if n := kvTokens(t, mustResolve(t, four+h100+sg+q235+"-FP8 --tp 4 --mem-fraction-static 0.93")); math.Abs(float64(n)/367404-1) > 0.1 {
		t.Errorf("SGLang holds %d tokens, 367404 were seen", n)
	}
}

// TestPrintedCaches holds what follows from a given size of the cache against lines
// that vLLM printed: how long a sequence fits, how many of the longest, blocks of
// hybrid models.
func TestPrintedCaches(t *testing.T) {
	gib := func(n float64) string {
		return " --kv-cache-memory-bytes " + strconv.FormatInt(int64(n*gibibyte), 10)
	}
	for _, tt := range []struct {
		line        string
		maxLen      int
		block       int
		tokens      int     // 0: not printed
		concurrency float64 // 0: not printed
	}{
		// vllm recipes, pull request 12: with 48.66 and 55.65 GiB the estimated maximum
		// lengths were 205728 and 235296 of 262144; the second digits allow one block more or less.
		{eight + " x h20" + v + "Qwen/Qwen3-Coder-480B-A35B-Instruct-FP8 -dp 8 -ep --max-model-len auto" + gib(48.66), 205728, 16, 0, 0},
		{eight + " x h20" + v + "Qwen/Qwen3-Coder-480B-A35B-Instruct-FP8 -dp 8 -ep --max-model-len auto" + gib(55.65), 235296, 16, 0, 0},
		// vllm issue 34076 (a stage of 16 of 48 layers, 4 KV heads): 3.18 GiB for 34736 tokens of 96 KiB.
		{one + h100 + v + "Qwen/Qwen3-Coder-30B-A3B-Instruct-FP8 --max-model-len auto" + gib(3.18), 34736, 16, 0, 0},
		// Logs of Qwen3.5 on ROCm (35B): attention block of 1056 tokens in 16 bit; the 27B's
		// is 784 tokens, and 1568 with an FP8 cache; Qwen3.5-9B's is 528, and 1056 in FP8.
		{one + " x mi300x" + v + q35 + " --max-model-len 8192", 8192, 1056, 0, 0},
		{one + h100 + v + "Qwen/Qwen3.5-27B --max-model-len 8192", 8192, 784, 0, 0},
		{one + h100 + v + "Qwen/Qwen3.5-27B --max-model-len 8192 --kv-cache-dtype fp8", 8192, 1568, 0, 0},
		{one + h100 + v + "Qwen/Qwen3.5-9B --max-model-len 8192", 8192, 528, 0, 0},
		{one + h100 + v + "Qwen/Qwen3.5-9B --max-model-len 8192 --kv-cache-dtype fp8", 8192, 1056, 0, 0},
		// club-3090 issues 612 and 652, the 35B with an FP8 cache and prefix caching: 5.98 GiB
		// hold 4.33 sequences of 131072 tokens, 6.01 GiB 4.35.
		{one + h100 + v + q35 + "-FP8 --max-model-len 131072 --kv-cache-dtype fp8 --enable-prefix-caching" + gib(5.98), 131072, 2096, 0, 4.33},
		{one + h100 + v + q35 + "-FP8 --max-model-len 131072 --kv-cache-dtype fp8 --enable-prefix-caching" + gib(6.01), 131072, 2096, 0, 4.35},
		// A published log of the 122B: 24.05 GiB print 482,080 tokens and 6.42 sequences of 262144
		// with drafting by MTP; its backend wanted blocks in multiples of 32 tokens.
		{four + h100 + v + "Qwen/Qwen3.5-122B-A10B-FP8 -pp 1 -tp 1 --kv-cache-dtype fp8 --enable-prefix-caching --block-size 4192 -sc {\"method\":\"mtp\",\"num_speculative_tokens\":1}" + gib(24.05), 262144, 4192, 482080, 6.42},
	} {
		c, err := resolve(t, strings.ReplaceAll(tt.line, h100, " x b200")) // room for the weights
		if err != nil {
			t.Errorf("%s: %v", tt.line, err)
			continue
		}
		if d := c.MaxLen - tt.maxLen; d < -32 || d > 32 || c.Block != tt.block {
			t.Errorf("%s: length %d in blocks of %d, want %d in %d", tt.line, c.MaxLen, c.Block, tt.maxLen, tt.block)
		}
		if n := kvTokens(t, c); tt.tokens != 0 && n != tt.tokens {
			t.Errorf("%s: %d tokens, want %d", tt.line, n, tt.tokens)
		}
		if got := c.Concurrency(); tt.concurrency != 0 && math.Abs(got-tt.concurrency) > 0.0051 {
			t.Errorf("%s: %.3f sequences, want %.2f", tt.line, got, tt.concurrency)
		}
	}
}

// TestWeightPadding: what vLLM's logs say gpt-oss-120b takes, with the Triton kernels
// of Hopper and the Marlin kernels before it (issues 33155 and 23278).
func TestWeightPadding(t *testing.T) {
	for line, want := range map[string]float64{
		one + h100 + v + "openai/gpt-oss-120b --max-model-len 32768": 64.38,
		one + a100 + v + "openai/gpt-oss-120b --max-model-len 32768": 65.97,
		one + " x h200" + sg + "openai/gpt-oss-120b":                 60.7,
	} {
		if got := gib(mustResolve(t, line).weightBytes()); math.Abs(got/want-1) > 0.003 {
			t.Errorf("%s: weights of %.2f GiB, want %.2f", line, got, want)
		}
	}
}

// TestLayout: groups of layers as vLLM forms them, and what a sequence holds.
func TestLayout(t *testing.T) {
	b200 := one + " x b200"
	for _, tt := range []struct {
		line                string
		full, window, state int
		tokens, blocks      int
	}{
		{b200 + v + q32, 1, 0, 0, 4100, 257},
		{b200 + v + "gpt-oss-120b", 1, 1, 0, 4100, 257 + 9}, // 18 and 18 layers, windows of 128
		{b200 + v + "gpt-oss-120b", 1, 1, 0, 40, 3 + 3},
		{b200 + v + "google/gemma-3-27b-it", 1, 6, 0, 4100, 257 + 6*65}, // 10 and 52 layers, windows of 1024
		{b200 + v + "Llama-4-Scout-FP8 --max-model-len 100000", 1, 0, 0, 16384, 1024},
		{b200 + v + q35, 1, 0, 3, 2000, 2 + 3}, // 10 and 30 layers, blocks of 1056
		{b200 + v + q35 + ` --enable-prefix-caching -sc {"method":"mtp","num_speculative_tokens":2}`, 1, 0, 3, 2000, 2 + 3*4},
		{b200 + sg + "gpt-oss-120b", 1, 0, 0, 4100, 4100},
		{b200 + trt + "gpt-oss-120b", 1, 0, 0, 4100, 129},
		{b200 + trt + q35, 1, 0, 1, 320, 10 + 96}, // blocks of 32 tokens of 20 KiB for 62.9 MB of state
	} {
		l := mustResolve(t, tt.line).Layout()
		if l.Full != tt.full || l.Window != tt.window || l.State != tt.state || l.SeqBlocks(tt.tokens) != tt.blocks {
			t.Errorf("%s: %+v, %d blocks for %d tokens; want %d, %d, %d groups and %d", tt.line, l, l.SeqBlocks(tt.tokens), tt.tokens, tt.full, tt.window, tt.state, tt.blocks)
		}
		if side := l.SideBlocks(tt.tokens); side != tt.blocks-ceil(tt.tokens, l.Block) {
			t.Errorf("%s: %d blocks beside", tt.line, side)
		}
	}
	// Nearly as many of both kinds form groups of the larger, with one layer's room unused.
	near := Config{Engine: "vllm", TP: 1, PP: 1, Block: 16, KVBytes: 2, Model: arch.Model{Layers: 25, WindowLayers: 12, Window: 128, KVHeads: 1, HeadDim: 64}}
	if l := near.Layout(); l.Full != 1 || l.Window != 1 || l.Page != 16*256*13 {
		t.Errorf("13 full and 12 window layers: %+v", l)
	}
	// SGLang gives windows a pool of 0.8 times the tokens.
	c := mustResolve(t, b200+sg+"gpt-oss-120b")
	if want := float64(c.KVPoolBytes()) / (2048 * (18 + 0.8*18)); math.Abs(float64(kvTokens(t, c))/want-1) > 0.001 {
		t.Errorf("SGLang holds %d tokens, want %.0f", kvTokens(t, c), want)
	}
}

func TestKVArithmetic(t *testing.T) {
	base := mustResolve(t, one+h100+v+q32+"-FP8")
	blocks, err := base.KVBlocks()
	if tokens := kvTokens(t, base); err != nil || tokens != blocks*16 || int64(tokens)*262144 > base.KVPoolBytes() || int64(tokens+16)*262144 <= base.KVPoolBytes() {
		t.Errorf("%d tokens in %d blocks do not fill a pool of %d bytes", tokens, blocks, base.KVPoolBytes())
	}
	wide := mustResolve(t, one+h100+v+q32+"-FP8 --kv-cache-dtype fp8")
	if got, want := kvTokens(t, wide), 2*kvTokens(t, base); got < want || got > want+32 {
		t.Errorf("an FP8 cache holds %d tokens, want twice: %d", got, want)
	}
	last := 0
	for _, share := range []string{"0.80", "0.85", "0.90", "0.95"} {
		n := kvTokens(t, mustResolve(t, one+h100+v+q32+"-FP8 --gpu-memory-utilization "+share))
		if n <= last {
			t.Errorf("share %s holds %d tokens, not more than %d", share, n, last)
		}
		last = n
	}
	if n := kvTokens(t, mustResolve(t, one+h100+v+q32+"-FP8 --max-num-batched-tokens 32768")); n >= kvTokens(t, base) {
		t.Errorf("larger steps leave %d tokens, not less than %d", n, kvTokens(t, base))
	}
}

// TestHybridRunning: SGLang's limit by its pool of states; 246 requests were seen.
func TestHybridRunning(t *testing.T) {
	if s := mustResolve(t, one+" x h200"+sg+q35+"-FP8"); s.Layout().SideBlocks(1000) != 0 || s.Seqs < 220 || s.Seqs > 270 {
		t.Errorf("SGLang runs %d requests with %d blocks beside, want about 246 and 0", s.Seqs, s.Layout().SideBlocks(1000))
	}
}

// TestCPUCache: the KV cache of vLLM on a CPU of 256 GiB, unset. vllm/platforms/cpu.py,
// get_device_total_memory, to 0.19; vllm/v1/worker/cpu_worker.py, __init__, from 0.20.
func TestCPUCache(t *testing.T) {
	for version, want := range map[string]float64{"0.12.0": 4, "0.13.0": 128, "0.19.0": 128, "0.20.0": 0.92*256 - 15.3 - 1.4} {
		c := versioned(t, version, one+" x xeon-8480"+v+"Qwen/Qwen3-8B --max-model-len 4096")
		if got := gib(c.KVPoolBytes()); math.Abs(got-want) > 1 {
			t.Errorf("%s: %.1f GiB, want %.1f", version, got, want)
		}
	}
}

// TestChunkedLayers: vllm/v1/core/kv_cache_utils.py. To 0.13 get_kv_cache_configs asks for
// one sequence before it makes all layers alike, so that Llama 4's chunked ones count a
// chunk each, and a context of ten million tokens starts though a third of it fits. From
// 0.14 chunks are kept apart, VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE in
// vllm/envs.py.
func TestChunkedLayers(t *testing.T) {
	line := four + " x gb10" + v + "nvidia/Llama-4-Scout-17B-16E-Instruct-NVFP4 -tp 4 --gpu-memory-utilization 0.8 --kv-cache-dtype fp8"
	for version, want := range map[string]struct{ full, window int }{"": {1, 0}, "0.13.0": {1, 0}, "0.14.0": {1, 3}} {
		c := versioned(t, version, line)
		if l := c.Layout(); c.MaxLen != 10485760 || l.Full != want.full || l.Window != want.window {
			t.Errorf("%q: length %d, %+v", version, c.MaxLen, l)
		}
		if need := gib(c.needBytes(c.MaxLen)); math.Abs(need-60.2) > 0.1 {
			t.Errorf("%q asks for %.1f GiB", version, need)
		}
	}
	// vllm/config/vllm.py keeps chunks with full layers when a draft model reads along.
	drafted := versioned(t, "0.14.0", line+` -sc {"method":"eagle3","num_speculative_tokens":1,"model":"draft"} --max-model-len 100000`)
	if l := drafted.Layout(); l.Window != 0 {
		t.Errorf("with a draft model: %+v", l)
	}
	old, apart := versioned(t, "", line), versioned(t, "0.14.0", line)
	if a, b := old.Concurrency(), apart.Concurrency(); a < 0.3 || a > 0.36 || b < 1.2 || b > 1.5 {
		t.Errorf("%.2f and %.2f sequences fit", a, b)
	}
}
