package advice

import (
	"strings"
	"testing"

	"perflab/internal/arch"
	"perflab/internal/engine"
)

// resolve reads "GPUS x ACCELERATOR: COMMAND".
func resolve(t *testing.T, line string) engine.Config {
	t.Helper()
	where, command, _ := strings.Cut(line, ": ")
	count, gpu, _ := strings.Cut(where, " x ")
	c, err := engine.Parse(strings.Fields(command))
	if err != nil {
		t.Fatal(err)
	}
	m, err := arch.LookupModel(c.Model)
	if err != nil {
		t.Fatal(err)
	}
	a, err := arch.LookupAccelerator(gpu)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := c.Resolve(m, a, len(count))
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return cfg
}

const (
	one   = "i"
	four  = "iiii"
	eight = "iiiiiiii"
	many  = eight + eight + eight + eight
	sg    = ": python3 -m sglang.launch_server --model-path "
	trt   = ": trtllm-serve "
	v     = ": vllm serve "
	h100  = " x h100-sxm"
	a100  = " x a100-sxm-80"
	q32   = "Qwen/Qwen3-32B"
	q235  = "Qwen/Qwen3-235B-A22B-Instruct-2507"
)

// TestRemarks: one configuration per remark, which the engine takes, and the sentence
// with its numbers.
func TestRemarks(t *testing.T) {
	const r1 = "deepseek-ai/DeepSeek-V3"
	for _, tt := range []struct{ line, want string }{
		{eight + a100 + v + q235 + " -tp 8", "4 KV heads over tp 8: each is kept 2 times, and a token takes as much of each rank's cache as with tp 4"},
		{eight + " x h200" + sg + r1 + " --tp 8", "each of the 8 tensor-parallel ranks keeps the whole compressed KV cache: data-parallel attention (attention_dp with dp 8)"},
		{four + h100 + v + "Qwen/Qwen3-8B -dp 4", "dp 4 of a model without experts: 4 replicas do the same"},
		{four + h100 + sg + q32 + " --tp 4 --dp 4 --enable-dp-attention", "data-parallel attention over 4 groups is made for models with experts"},
		{four + h100 + sg + q32 + " --tp 4 --ep 4", "has no experts to give out: expert_parallel has no effect"},
		{many + h100 + v + q235 + "-FP8 -tp 4 -dp 6 -ep", "128 experts over 24 ranks: some ranks hold 6 and others 5"},
		{four + h100 + v + q235 + "-FP8 -tp 4 --all2all-backend deepep_low_latency", "deepep_low_latency has no effect without expert_parallel"},
		{one + h100 + v + "Qwen/Qwen3-8B --kv-offloading-size 8", "the host cache holds 58240 tokens, no more than the "},
		{four + a100 + v + q235 + "-FP8 -tp 4", "NVIDIA A100 SXM 80GB has no fp8 arithmetic, which begins with compute capability 8.9"},
		{one + h100 + v + "Qwen/Qwen3-8B --enforce-eager", "CUDA graphs are off"},
		{one + h100 + sg + "Qwen/Qwen3-8B --cuda-graph-max-bs 64 --max-running-requests 128", "graphs cover decode batches of up to 64 requests and max_num_seqs 128 allows 128"},
		{one + h100 + v + "Qwen/Qwen3-8B --max-cudagraph-capture-size 64 --max-num-seqs 32" + ` -sc {"method":"ngram","num_speculative_tokens":3}`, "up to 64 tokens and max_num_seqs 32 allows 128"},
		{one + h100 + v + "Qwen/Qwen3-8B --max-num-batched-tokens 512 --max-num-seqs 256" + ` -sc {"method":"ngram","num_speculative_tokens":3}`, "512 is less than max_num_seqs 256 x 4 tokens of a guess = 1024"},
		{four + h100 + sg + q32 + " --tp 4 --page-size 64 --speculative-algorithm EAGLE3 --speculative-draft-model-path d --speculative-num-steps 3 --speculative-eagle-topk 4 --speculative-num-draft-tokens 16",
			"guesses of 4 candidates a step with pages of 64 tokens: earlier versions refuse them"},
		{one + h100 + v + "Qwen/Qwen3-8B --max-num-seqs 16 --max-cudagraph-capture-size 512", "graphs of up to 512 tokens are captured and max_num_seqs 16 allows 16"},
		{one + h100 + v + "Qwen/Qwen3-8B --gpu-memory-utilization 0.99", "gpu_memory_utilization 0.99 leaves 0.8 GiB beside weights and KV cache, and graphs take about 1.0"},
		{eight + " x h200" + sg + r1 + " --tp 8 --ep 8 --mem-fraction-static 0.97 --chunked-prefill-size 32768", "gpu_memory_utilization 0.97 leaves 4.2 GiB beside weights and KV cache, and the largest step and graphs take about "},
		{eight + h100 + sg + q235 + "-FP8 --tp 8 --moe-a2a-backend deepep --max-running-requests 512", "max_num_seqs 512 lets a rank decode 512 tokens at once, and DeepEP sends 128"},
		{one + h100 + v + "Qwen/Qwen3-8B --load-format dummy", "the weights are made up: figures are of the arithmetic alone"},
		{four + h100 + v + q235 + "-FP8 -tp 4 --load-format dummy", "what is routed to which expert"},
		{one + h100 + sg + "Qwen/Qwen3-8B --stream-interval 10", "a message for every 10 tokens"},
		{one + h100 + sg + q32 + " --mem-fraction-static 0.8", "the KV cache holds "},
		{one + h100 + trt + q32, "prompts over max_num_batched_tokens 8192 are refused, though max_model_len is 40960: use chunked_prefill"},
		{one + h100 + trt + "Qwen/Qwen3-8B --max_batch_size 2048 --max_num_tokens 1000", "max_num_batched_tokens 1000 is less than max_num_seqs 2048, and each request needs a token an iteration, and max_num_batched_tokens 1000 is not a multiple of the 32 tokens of a KV block"},
	} {
		c := resolve(t, tt.line)
		if got := strings.Join(Of(c), "\n"); !strings.Contains(got, tt.want) {
			t.Errorf("%s: remarks are\n%s\nwant %s", tt.line, got, tt.want)
		}
	}
	for _, line := range []string{
		one + h100 + sg + q32 + "-FP8 --max-running-requests 256", eight + h100 + sg + q235 + "-FP8 --tp 8 --ep 8 --dp 8 --enable-dp-attention", // whose ranks have all heads
		eight + h100 + sg + q235 + "-FP8 --tp 8 --moe-a2a-backend deepep --deepep-mode normal --dp 2 --enable-dp-attention",
		one + h100 + v + "Qwen/Qwen3-8B-FP8", four + a100 + v + q32 + " -tp 4", eight + h100 + v + q235 + "-FP8 -tp 8 -ep --kv-cache-dtype fp8 -tp 4"} {
		if got := Of(resolve(t, line)); len(got) > 0 {
			t.Errorf("%s: nothing is unwise about it, yet: %s", line, strings.Join(got, "; "))
		}
	}
}
