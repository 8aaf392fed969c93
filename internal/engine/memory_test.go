package engine

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func kvTokens(t *testing.T, c Config) int {
	t.Helper()
	n, err := c.KVTokens()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestPublishedCaches compares with what published runs show of the cache's size.
func TestPublishedCaches(t *testing.T) {
	// The 16-bit run held 8 sequences of 4200 and 16 of 2100 tokens, not 9 and 17.
	if n := kvTokens(t, mustResolve(t, one+h100+v+q32+" --max-model-len 32768")); n < 8*4200 || n >= 17*2100 {
		t.Errorf("vLLM holds %d tokens, want 33600 to 35700", n)
	}
	// SGLang peaked at about 58 running ShareGPT requests of some 330 tokens.
	if n := kvTokens(t, mustResolve(t, one+h100+sg+q32)); n < 17000 || n > 23000 {
		t.Errorf("SGLang holds %d tokens, want about 20 thousand", n)
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

func TestHybridState(t *testing.T) {
	c := mustResolve(t, one+" x h200"+v+q35+"-FP8")
	if got := c.StateTokens(); got != 3072 { // 62.9 MB of state by 20 KiB a token
		t.Errorf("a state takes %d tokens, want 3072", got)
	}
	if got := mustResolve(t, one+h100+v+q32+"-FP8").StateTokens(); got != 0 {
		t.Errorf("a model without linear attention has states of %d tokens", got)
	}
	s := mustResolve(t, one+" x h200"+sg+q35+"-FP8")
	if s.StateTokens() != 0 || s.Seqs < 220 || s.Seqs > 270 { // 246 were seen
		t.Errorf("SGLang runs %d requests with states of %d tokens, want about 246 and 0", s.Seqs, s.StateTokens())
	}
}

// TestStartupLog: the lines match the expressions that read real engines' logs, and
// carry the configuration's numbers.
func TestStartupLog(t *testing.T) {
	for line, exprs := range map[string][]string{
		one + h100 + v + q32 + "-FP8": {
			`Chunked prefill is enabled with max_num_batched_tokens=(8192)`,
			`Loading weights took ([\d.]+) seconds`,
			`Model loading took (31\.\d+) GiB(?: memory)? and ([\d.]+) seconds`,
			`Available KV cache memory: (-?[\d.]+) GiB`,
			`GPU KV cache size: (TOKENS) tokens`,
			`Maximum concurrency for (40,960) tokens per request: ([\d.]+)x`,
			`Graph capturing finished in (\d+) secs, took (-?[\d.]+) GiB`,
			`init engine \(profile, create kv cache, warmup model\) took ([\d.]+) s(?:econds)?`,
			`Starting vLLM API server (\d+) on (\S+:8000)`,
			`Application startup complete`,
		},
		one + h100 + sg + q32 + "-FP8": {
			`Init torch distributed ends\.(?: elapsed=([\d.]+) s,)? mem usage=([\d.]+) GB`,
			`Load weight begin\. avail mem=([\d.]+) GB`,
			`Load weight end\.(?: elapsed=([\d.]+) s,)? type=(\w+), .*avail mem=([\d.]+) GB, mem usage=([\d.]+) GB`,
			`KV Cache is allocated\.(?: dtype: (\S+),)? #tokens: (TOKENS), K size: ([\d.]+) GB, V size: ([\d.]+) GB`,
			`Memory pool end\. avail mem=([\d.]+) GB`,
			`Capture (?:cuda|cpu|npu) graph end\. Time elapsed: ([\d.]+) s\. `,
			`max_total_num_tokens=(TOKENS), chunked_prefill_size=(8192), max_prefill_tokens=(\d+), max_running_requests=(\d+), context_len=(40960), available_(gpu|cpu)_mem=([\d.]+) GB`,
			`The server is fired up and ready to roll!`,
		},
		one + h100 + trt + q32 + "-FP8": {
			`max_seq_len=(40960), max_num_requests=(2048), max_num_tokens=(8192)`,
			`Peak memory during memory usage profiling \(torch \+ non-torch\): ([\d.]+) GiB, available KV cache memory when calculating max tokens: ([\d.]+) GiB(?:, fraction is set (0\.9))?(?:, kv size (?:per token )?is (262144))?`,
			`device total memory ([\d.]+) GiB`,
			`Max KV cache (?:pages|blocks) per sequence: (1280)`,
			`Allocated ([\d.]+) GiB for max tokens in paged KV cache \((TOKENS)\)`,
			`Application startup complete|Uvicorn running on`,
		},
	} {
		c := mustResolve(t, line)
		log := strings.Join(c.StartupLog(), "\n")
		for _, expr := range exprs {
			n := kvTokens(t, c)
			tokens := "(?:" + strconv.Itoa(n) + "|" + thousands(n) + ")"
			if !regexp.MustCompile(strings.ReplaceAll(expr, "TOKENS", tokens)).MatchString(log) {
				t.Errorf("%s: no line matches %s in\n%s", line, expr, log)
			}
		}
		if e, _ := ByName(c.Engine); e != nil {
			if reason, refused := e.Refusal(log); refused {
				t.Errorf("%s: a good start reads as refusal: %s", line, reason)
			}
		}
	}
}

func TestRefusal(t *testing.T) {
	for _, tt := range []struct{ engine, log, want string }{
		{"vllm", "(EngineCore_0 pid=7) ERROR 11-21 00:00:00 [core.py:700] EngineCore failed to start.\n(EngineCore_0 pid=7) ValueError: No available memory for the cache blocks. Try x\nRuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n",
			"ValueError: No available memory for the cache blocks. Try x"},
		{"vllm", "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_0': 1}", "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_0': 1}"},
		{"vllm", "torch.OutOfMemoryError: CUDA out of memory. Tried\nValueError: 3 is not divisible by 2", "torch.OutOfMemoryError: CUDA out of memory. Tried"},
		{"sglang", "[2026-11-21 00:00:00 TP0] Scheduler hit an exception: Traceback\n[2026-11-21 00:00:00 TP0] Capture cuda graph failed: no room\n", "Capture cuda graph failed: no room"},
		{"trtllm", "Usage: x\n\nError: No such option: --foo\n", "Error: No such option: --foo"},
		{"vllm", "vllm serve: error: unrecognized arguments: --foo", "vllm serve: error: unrecognized arguments: --foo"},
	} {
		e, err := ByName(tt.engine)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := e.Refusal(tt.log); !ok || got != tt.want {
			t.Errorf("%s: %q, %v; want %q", tt.engine, got, ok, tt.want)
		}
	}
	e, _ := ByName("vllm")
	for _, log := range []string{
		"", "INFO Application startup complete", "OSError: [Errno 98] Address already in use",
		"ValueError: Free memory on device cuda:0 (10.1/79.2 GiB) on startup is less than desired GPU memory utilization (0.9, 71.3 GiB).", // another process holds it
	} {
		if reason, ok := e.Refusal(log); ok {
			t.Errorf("%q reads as refusal: %s", log, reason)
		}
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 34688: "34,688", 1234567: "1,234,567"} {
		if got := thousands(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
