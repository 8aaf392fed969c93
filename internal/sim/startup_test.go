package sim

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"perflab/internal/arch"
	"perflab/internal/engine"
	"perflab/internal/engine/logs"
)

// resolved is what a command runs with on one H100.
func resolved(t *testing.T, line string) engine.Config {
	t.Helper()
	c, err := engine.Parse(strings.Fields(line))
	if err != nil {
		t.Fatal(err)
	}
	m, err := arch.LookupModel(c.Model)
	if err != nil {
		t.Fatal(err)
	}
	gpu, err := arch.LookupAccelerator("h100-sxm")
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := c.Resolve(m, gpu, 1)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return cfg
}

// TestStartupLog: the lines match the expressions that read real engines' logs, and
// carry the configuration's numbers.
func TestStartupLog(t *testing.T) {
	for line, exprs := range map[string][]string{
		"vllm serve Qwen/Qwen3-32B-FP8": {
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
		"python3 -m sglang.launch_server --model-path Qwen/Qwen3-32B-FP8": {
			`Init torch distributed ends\.(?: elapsed=([\d.]+) s,)? mem usage=([\d.]+) GB`,
			`Load weight begin\. avail mem=([\d.]+) GB`,
			`Load weight end\.(?: elapsed=([\d.]+) s,)? type=(\w+), .*avail mem=([\d.]+) GB, mem usage=([\d.]+) GB`,
			`KV Cache is allocated\.(?: dtype: (\S+),)? #tokens: (TOKENS), K size: ([\d.]+) GB, V size: ([\d.]+) GB`,
			`Memory pool end\. avail mem=([\d.]+) GB`,
			`Capture (?:cuda|cpu|npu) graph end\. Time elapsed: ([\d.]+) s\. `,
			`max_total_num_tokens=(TOKENS), chunked_prefill_size=(8192), max_prefill_tokens=(\d+), max_running_requests=(\d+), context_len=(40960), available_(gpu|cpu)_mem=([\d.]+) GB`,
			`The server is fired up and ready to roll!`,
		},
		"trtllm-serve Qwen/Qwen3-32B-FP8": {
			`max_seq_len=(40960), max_num_requests=(2048), max_num_tokens=(8192)`,
			`Peak memory during memory usage profiling \(torch \+ non-torch\): ([\d.]+) GiB, available KV cache memory when calculating max tokens: ([\d.]+) GiB(?:, fraction is set (0\.9))?(?:, kv size (?:per token )?is (262144))?`,
			`device total memory ([\d.]+) GiB`,
			`Max KV cache (?:pages|blocks) per sequence: (1280)`,
			`Allocated ([\d.]+) GiB for max tokens in paged KV cache \((TOKENS)\)`,
			`Application startup complete|Uvicorn running on`,
		},
	} {
		c := resolved(t, line)
		log := strings.Join(startup(c), "\n")
		for _, expr := range exprs {
			n, err := c.KVTokens()
			if err != nil {
				t.Fatal(err)
			}
			tokens := "(?:" + strconv.Itoa(n) + "|" + thousands(n) + ")"
			if !regexp.MustCompile(strings.ReplaceAll(expr, "TOKENS", tokens)).MatchString(log) {
				t.Errorf("%s: no line matches %s in\n%s", line, expr, log)
			}
		}
		if failure, failed := logs.Diagnose(c.Engine, log); failed {
			t.Errorf("%s: a good start reads as a failure: %+v", line, failure)
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

// TestStartupFacts: of the lines that the simulator prints, the configuration's own
// numbers come back.
func TestStartupFacts(t *testing.T) {
	m, err := arch.LookupModel("Qwen/Qwen3-32B-FP8")
	if err != nil {
		t.Fatal(err)
	}
	gpu, err := arch.LookupAccelerator("h100-sxm")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"vllm", "sglang", "trtllm"} {
		c, err := engine.Command{Engine: name, Model: m.Name}.Resolve(m, gpu, 1)
		if err != nil {
			t.Fatal(err)
		}
		tokens, err := c.KVTokens()
		f := logs.Read(c.Engine, strings.Join(startup(c), "\n"))
		if err != nil || !f.Ready || f.Values["kv_tokens"] != float64(tokens) || f.Values["max_num_batched_tokens"] != float64(c.Batched) {
			t.Errorf("%s: %+v, %v", name, f, err)
		}
	}
}
