package engine

import (
	"errors"
	"math"
	"regexp"
	"strings"
	"testing"

	"perflab/internal/arch"
)

// resolve reads "GPUS x ACCELERATOR: COMMAND".
func resolve(t *testing.T, line string) (Config, error) {
	t.Helper()
	where, command, _ := strings.Cut(line, ": ")
	count, gpu, _ := strings.Cut(where, " x ")
	c, err := Parse(strings.Fields(command))
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
	return c.Resolve(m, a, len(count))
}

func mustResolve(t *testing.T, line string) Config {
	t.Helper()
	c, err := resolve(t, line)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return c
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
	q35   = "Qwen/Qwen3.5-35B-A3B"
)

// TestScheduling: what the schedulers and front ends of the engines do by default,
// and the flags that change it.
func TestScheduling(t *testing.T) {
	type policy struct {
		overlap, serial bool
		prefill         int
		conserve        float64
	}
	for line, want := range map[string]policy{
		one + h100 + v + q32 + "-FP8":                                                        {},
		one + h100 + v + q32 + "-FP8 --async-scheduling":                                     {overlap: true},
		one + h100 + v + q32 + "-FP8 --no-async-scheduling":                                  {},
		four + h100 + v + q32 + " -pp 4":                                                     {},
		one + h100 + sg + q32:                                                                {true, false, 16384, 1},
		one + h100 + sg + q32 + " --disable-overlap-schedule":                                {false, false, 16384, 1},
		one + h100 + sg + q32 + " --schedule-conservativeness 1.3 --max-prefill-tokens 4096": {true, false, 4096, 1.3},
		eight + h100 + sg + q235 + "-FP8 --tp 8 --ep-size 8 --dp 8 --enable-dp-attention":    {true, false, 16384, 0.3},
		one + " x h200" + sg + q35 + "-FP8 --speculative-algorithm NEXTN":                    {false, false, 16384, 1},
		one + h100 + trt + q32:                                                               {overlap: true, serial: true},
	} {
		c := mustResolve(t, line)
		if got := (policy{c.Overlap, c.Serial, c.PrefillTokens, c.Conserve}); got != want {
			t.Errorf("%s: %+v, want %+v", line, got, want)
		}
	}
}

// TestDefaults holds the resolved defaults against the engines' documented ones.
func TestDefaults(t *testing.T) {
	type limits struct {
		seqs, batched, maxLen int
		share                 float64
		block, graph          int
	}
	for line, want := range map[string]limits{
		one + h100 + v + q32 + "-FP8":                                                     {1024, 8192, 40960, 0.9, 16, 512},
		eight + a100 + v + q235 + " -tp 8":                                                {256, 2048, 262144, 0.9, 16, 512},
		one + " x l40s" + v + "Qwen/Qwen3-8B --max-num-seqs 64":                           {64, 2048, 40960, 0.9, 16, 128},
		one + " x h200" + v + q35 + "-FP8 --performance-mode throughput":                  {2048, 16384, 262144, 0.9, 1056, 512},
		one + " x h200" + v + q35 + "-FP8 --performance-mode throughput --max-num-seqs 9": {9, 16384, 262144, 0.9, 1056, 18},
		one + h100 + v + "Qwen/Qwen3-8B --max-num-batched-tokens 512":                     {512, 512, 40960, 0.9, 16, 512},
		one + h100 + v + "Qwen/Qwen3-8B --no-enable-chunked-prefill --enforce-eager":      {1024, 40960, 40960, 0.9, 16, 0},
		one + h100 + sg + q32:                        {2048, 8192, 40960, 0.834, 1, 256},
		four + h100 + sg + q32 + " --tp 4":           {4096, 8192, 40960, 0.823, 1, 512},
		one + " x rtx-4090" + sg + "Qwen/Qwen3-0.6B": {2161, 2048, 40960, 0.844, 1, 24},
		one + " x h200" + sg + q35 + "-FP8 --speculative-algorithm NEXTN --max-running-requests 64": {64, 8192, 262144, 0.892, 1, 256},
		one + h100 + trt + q32:                                   {2048, 8192, 40960, 0.9, 32, 128},
		one + h100 + trt + q32 + " --max_seq_len 4096":           {2048, 8192, 4096, 0.9, 32, 128},
		one + h100 + sg + q32 + "-FP8 --chunked-prefill-size -1": {2048, 16384, 40960, 0.683, 1, 256},
	} {
		c := mustResolve(t, line)
		if got := (limits{c.Seqs, c.Batched, c.MaxLen, c.MemoryShare, c.Block, c.GraphMax}); got != want {
			t.Errorf("%s: %+v, want %+v", line, got, want)
		}
	}
}

func TestResolvedPolicies(t *testing.T) {
	vllm, sglang, trtllm := mustResolve(t, one+h100+v+q32+"-FP8"), mustResolve(t, one+h100+sg+q32+"-FP8"), mustResolve(t, one+h100+trt+q32+"-FP8")
	for name, c := range map[string][4]bool{ // prefix, chunked, reserve, prefill first
		"vllm": {vllm.Prefix, vllm.Chunked, vllm.Reserve, vllm.PrefillOnly}, "sglang": {sglang.Prefix, sglang.Chunked, sglang.Reserve, sglang.PrefillOnly},
		"trtllm": {trtllm.Prefix, trtllm.Chunked, trtllm.Reserve, trtllm.PrefillOnly},
	} {
		want := map[string][4]bool{"vllm": {true, true, false, false}, "sglang": {true, true, false, true}, "trtllm": {true, false, true, false}}[name]
		if c != want {
			t.Errorf("%s: %v, want %v", name, c, want)
		}
	}
	if !trtllm.ShareOfFree || vllm.ShareOfFree || sglang.ShareOfFree {
		t.Error("only TensorRT-LLM's share is of free memory")
	}
	if c := mustResolve(t, one+" x h200"+v+q35+"-FP8"); c.Prefix {
		t.Error("vLLM leaves prefix caching off for models with linear attention")
	}
	if c := mustResolve(t, four+a100+v+q235+"-FP8 -tp 4"); !c.WeightOnly || c.Model.QuantBlock != 128 {
		t.Errorf("FP8 on an A100 is weight-only in vLLM: %+v", c)
	}
	if c := mustResolve(t, one+h100+v+"Qwen/Qwen3-14B -q fp8"); c.Model.Format != arch.FP8 || c.WeightOnly {
		t.Errorf("quantised on loading: %s", c.Model.Format)
	}
	c := mustResolve(t, eight+h100+v+q235+"-FP8 -tp 2 -dp 4 -ep --port 9000 --served-model-name big other")
	if c.GPUs != 8 || c.EP != 8 || c.TP != 2 || c.DP != 4 || c.Port != 9000 || c.Host != "0.0.0.0" || c.ServedName != "big" || len(c.Aliases) != 1 || c.Aliases[0] != "other" {
		t.Errorf("%+v", c)
	}
	if c := mustResolve(t, eight+h100+sg+q235+"-FP8 --tp 8 --ep 8 --dp 8 --enable-dp-attention"); c.GPUs != 8 || c.EP != 8 || c.DP != 1 {
		t.Errorf("data-parallel attention takes no more devices: %d x %d", c.GPUs, c.DP)
	}
	if c := mustResolve(t, eight+h100+trt+q235+"-FP8 --tp_size 4 --ep_size 2"); c.GPUs != 4 || c.EP != 2 || c.Replicas(9) != 2 {
		t.Errorf("GPUs %d, EP %d, replicas %d", c.GPUs, c.EP, c.Replicas(9))
	}
	if c := mustResolve(t, one+" x h200"+v+q35+`-FP8 -sc {"method":"mtp","num_speculative_tokens":2}`); c.Spec != "mtp" || c.SpecTokens != 2 {
		t.Errorf("speculation %s %d", c.Spec, c.SpecTokens)
	}
}

// wayOut is how every rejection ends: what to do, behind a colon.
var wayOut = regexp.MustCompile(`(: (use|leave|raise|name|write|set|no smaller tp)|, use) `)

// nameless are rules about names of things, which have no numbers.
var nameless = map[string]bool{"quantization": true, "platform": true}

// TestRules: one configuration per rule, refused by that rule with the numbers in
// the sentence; the engine's own line is found to be a refusal.
func TestRules(t *testing.T) {
	for _, tt := range []struct{ line, rule, reason, log string }{
		{one + h100 + v + q32 + " -tp 2", "gpus", "takes 2 GPUs", "World size (2) is larger than the number of available GPUs (1)"},
		{eight + h100 + v + q235 + " -tp 8 --enable-eplb", "experts", "each of the 8 ranks has a slice of every one: use expert_parallel", "must be True to use EPLB"},
		{one + h100 + v + "openai/gpt-oss-20b --enable-eplb -ep", "experts", "tp 1 x dp 1 is one: use more ranks", "EPLB requires tensor_parallel_size"},
		{eight + h100 + v + q235 + " -tp 4 -dp 2 -ep --enable-dbo", "conflict", "2 half batches, which all2all backend allgather_reducescatter cannot do: use --all2all-backend deepep_low_latency", "Microbatching currently only supports"},
		{one + h100 + v + "Qwen/Qwen3-8B --max-num-partial-prefills 4", "value", "--max-num-partial-prefills 4 asks for several prompts in parts at once, and vLLM has 1: leave it out", "Concurrent Partial Prefill is not supported"},
		{one + h100 + v + "Qwen/Qwen3-8B --async-scheduling" + ` -sc {"method":"ngram","num_speculative_tokens":5}`, "speculative", "guesses of 5 tokens by ngram need the tokens of the step before", "async scheduling is only supported with"},
		{four + h100 + v + "Qwen/Qwen3-8B -tp 4" + ` -sc {"method":"eagle3","num_speculative_tokens":3,"model":"d","draft_tensor_parallel_size":2}`, "draft", "draft_tensor_parallel_size 2 is neither 1 nor tp 4: use one of them", "cannot be other value than 1"},
		{one + h100 + v + "Qwen/Qwen3-8B --per-request-spec-decode-metrics summary", "speculative", "0 tokens are guessed: leave it out", "requires speculative decoding to be enabled"},
		{eight + h100 + sg + q235 + " --tp 8 --enable-two-batch-overlap", "conflict", "experts on the 8 ranks, and none are sent: use --moe-a2a-backend deepep", "When enabling two batch overlap"},
		{eight + h100 + sg + q235 + " --tp 8 --attention-backend trtllm_mha", "compute", "trtllm_mha needs compute capability 10.0, and NVIDIA H100 SXM has 9.0: leave the backend to SGLang", "TRTLLM MHA backend is only supported on Blackwell GPUs"},
		{eight + " x b200" + sg + q235 + " --tp 8 --attention-backend fa3", "compute", "fa3 needs compute capability 9.0", "FlashAttention v3 Backend requires"},
		{eight + " x b200" + sg + q235 + " --tp 4 --decode-attention-backend trtllm_mha --speculative-algorithm EAGLE3 --speculative-draft-model-path d --speculative-num-steps 3 --speculative-eagle-topk 4 --speculative-num-draft-tokens 16",
			"speculative", "takes guesses of 1 candidate a step, and not of 4: use one candidate", "only supports topk = 1"},
		{eight + h100 + sg + "deepseek-ai/DeepSeek-V3 --tp 8 --attention-backend flashmla --chunked-prefill-size 1000", "pages", "1000 tokens is not a whole number of pages of 64", "must be divisible by page_size"},
		{four + h100 + sg + "nvidia/Llama-3.3-70B-Instruct-NVFP4 --tp 4", "compute", "nvfp4 weights need compute capability 10.0", "requires compute capability 10.0"},
		{eight + h100 + v + "MiniMaxAI/MiniMax-M2 -tp 8", "fp8-block", "moe_intermediate_size 1536 / tp 8 = 192 is not divisible by the FP8 block of 128", "block_n = 128"},
		{eight + h100 + v + "Qwen/Qwen3-Coder-480B-A35B-Instruct-FP8 -tp 8", "fp8-block", "moe_intermediate_size 2560 / tp 8 = 320 is not divisible by the FP8 block of 128", "block_n = 128"},
		{four + h100 + v + "Qwen/Qwen3-8B -tp 2 -pcp 4", "gpus", "takes 8 GPUs (tp 2 x pp 1 x dp 1 x context parallel 4), and there are 4: use a smaller tp, pp or dp", "World size (8)"},
		{one + h100 + sg + q32 + " --tp 2", "gpus", "takes 2 GPUs", "invalid device ordinal"},
		{eight + h100 + v + "meta-llama/Llama-3.1-8B -pp 8 -tp 3", "gpus", "takes 24 GPUs", "World size (24)"},
		{many + h100 + v + "Qwen/Qwen3-0.6B -pp 30", "layers", "28 layers cannot be split over 30", "28 is not divisible by 30"},
		{eight + eight + many + many + many + many + h100 + v + q235 + "-FP8 -tp 4 -dp 36 -ep", "experts", "128 experts cannot be given out over 144 ranks: use at most 128", "128 is not divisible by 144"},
		{many + h100 + sg + q235 + " --tp 6 --ep 6", "heads", "64 attention heads cannot be divided over tp 6: no smaller tp divides it", "64 is not divisible by 6"},
		{"iiiii" + h100 + sg + "zai-org/GLM-4.5-Air --tp 3 --ep 3", "kv-heads", "8 KV heads can neither be divided over tp 3", "8 is not divisible by 3"},
		{eight + h100 + v + "Qwen/Qwen3-14B -tp 6", "heads", "40 attention heads cannot be divided over tp 6: use tp 4", "Total number of attention heads (40) must be divisible by tensor parallel size (6)"},
		{eight + h100 + sg + "Qwen/Qwen3-14B --tp 6", "heads", "40 attention heads", "40 is not divisible by 6"},
		{eight + h100 + v + "GLM-4.5-Air -tp 6", "kv-heads", "8 KV heads", "8 is not divisible by 6"},
		{eight + h100 + v + q32 + " -tp 8 -ep", "experts", "has no experts", "Number of experts in the model must be greater than 0"},
		{eight + h100 + sg + q235 + "-FP8 --tp 4 --ep 8", "experts", "must divide tp 4", "tp_size 4 must be divisible by ep_size 8"},
		{eight + h100 + trt + q235 + "-FP8 --tp_size 4 --ep_size 8", "experts", "must divide tp 4", "must equal to tp_size 4"},
		{eight + a100 + v + q235 + "-FP8 -tp 8", "fp8-block", "moe_intermediate_size 1536 / tp 8 = 192 is not divisible by the FP8 block of 128: use expert_parallel or tp 4", "= 192 is not divisible by weight quantization block_n = 128"},
		{eight + h100 + sg + q235 + "-FP8 --tp 8", "fp8-block", "use expert_parallel or tp 4", "(moe_intermediate_size=1536 / moe_tp_size=8) % weight_block_size_n=128 == 0"},
		{eight + h100 + v + q235 + "-AWQ -tp 8", "quant-group", "192 is not divisible by the int4 group of 128: use expert_parallel or tp 4", "192 is not divisible by 128"},
		{eight + h100 + sg + q235 + "-FP8 --tp 8 --dp 3 --enable-dp-attention", "dp-attention", "tp 8 does not fall into 3 groups", "self.tp_size % self.dp_size == 0"},
		{eight + h100 + v + q235 + "-FP8 -tp 4 -dcp 2", "context-parallel", "tp 4 keeps no copies of 4 heads", "Decode context parallelism for GQA/MQA requires"},
		{eight + h100 + v + q235 + "-FP8 -tp 8 -dcp 4 --enable-expert-parallel", "context-parallel", "keeps each of 4 KV heads 2 times", "exceeds the maximum supported value (2)"},
		{one + h100 + v + q32 + " --enable-expert-parallel", "experts", "has no experts to give out", "Number of experts in the model must be greater than 0"},
		{one + h100 + v + q32 + ` -sc {"method":"ngram","num_speculative_tokens":0,"prompt_lookup_max":4}`, "value", "from 1 to", "Input should be"},
		{eight + h100 + v + q235 + "-FP8 -tp 4 -dcp 3", "context-parallel", "tp 4 is not a multiple of the 3 ranks", "tp_size=4 must be divisible by dcp_size=3"},
		{eight + h100 + sg + q235 + " --tp 8 --dp 8 --enable-dp-attention --speculative-algorithm NGRAM --speculative-num-draft-tokens 4", "speculative", "ngram does not go with data-parallel attention over 8 groups", "does not support dp attention"},
		{eight + h100 + sg + q235 + " --tp 8 --dp 8 --enable-dp-attention --speculative-algorithm STANDALONE --speculative-draft-model-path d", "speculative", "standalone does not go", "does not support dp attention"},
		{one + " x ascend-910b" + sg + "Qwen/Qwen3-8B --speculative-algorithm NGRAM --speculative-num-draft-tokens 4", "speculative", "ngram runs on GPUs only", "only supports CUDA device"},
		{four + h100 + sg + q32 + " --tp 2 --pp-size 2 --speculative-algorithm NGRAM --speculative-num-draft-tokens 4", "speculative", "does not go with 2 pipeline stages", "Pipeline parallelism is not compatible"},
		{four + h100 + sg + q32 + " --tp 4 --page-size 64 --attention-backend flashmla --speculative-algorithm EAGLE3 --speculative-draft-model-path d --speculative-num-steps 3 --speculative-eagle-topk 4 --speculative-num-draft-tokens 16",
			"speculative", "4 candidates a step need pages of 1 token with attention backend flashmla, and they are of 64", "is unstable and produces incorrect results"},
		{one + h100 + sg + "Qwen/Qwen3-8B --chunked-prefill-size 1000 --page-size 64", "pages", "1000 tokens is not a whole number of pages of 64: use max_num_batched_tokens 960", "must be divisible by page_size"},
		{one + h100 + v + "Qwen/Qwen3-8B --max-cudagraph-capture-size 4" + ` -sc {"method":"ngram","num_speculative_tokens":5}`, "graphs", "use max_cudagraph_capture_size 6 or more", "No valid cudagraph sizes after rounding to multiple of 6"},
		{four + a100 + sg + q235 + "-FP8 --tp 4", "compute", "8.9", "fp8e4nv not supported"},
		{one + a100 + trt + q32 + "-FP8", "compute", "A100 SXM 80GB has 8.0", "requires compute capability 8.9"},
		{one + " x xeon-8480" + v + "Qwen/Qwen3-8B --kv-offloading-size 8", "platform", "Intel Xeon Platinum 8480", "CPU Offloading is currently only supported"},
		{one + h100 + v + "Qwen/Qwen3-8B --kv-offloading-size 0", "value", "host_cache=0: use a value of at least 0.001", "Input should be of at least 0.001"},
		{one + h100 + sg + "Qwen/Qwen3-8B --enable-hierarchical-cache --disable-radix-cache", "conflict", "prefix_caching is off", "are mutually exclusive"},
		{one + " x mi300x" + trt + q32, "platform", "AMD Instinct MI300X is none", "Found no NVIDIA driver"},
		{one + " x mi300x" + v + "nvidia/Llama-3.3-70B-Instruct-NVFP4", "platform", "no nvfp4 kernels for AMD", "nvfp4 quantization is currently not supported in rocm"},
		{one + " x ascend-910b" + v + "Qwen/Qwen3-8B-FP8", "platform", "no fp8 kernels for Huawei", "fp8 quantization is currently not supported in npu"},
		{one + " x xeon-8480" + v + "openai/gpt-oss-20b", "platform", "no mxfp4 kernels for Intel", "mxfp4 quantization is currently not supported in cpu"},
		{one + " x ascend-910b" + sg + "Qwen/Qwen3-8B-FP8", "compute", "Huawei Ascend 910B 64GB has none", "fp8e4nv not supported"},
		{"iii x mi300x" + v + "Qwen/Qwen3-8B -tp 3", "heads", "32 attention heads", "divisible by tensor parallel size (3)"},
		{one + " x xeon-8480" + v + "Qwen/Qwen3-8B", "kv-memory", "needs 5.62 GiB of KV cache and 4.00 GiB are left", "larger than the available KV cache memory (4.00 GiB)"},
		{one + h100 + v + "Qwen/Qwen3-8B --kv-cache-memory-bytes 0", "value", "at least 1", "Input should be"},
		{one + h100 + v + "Qwen/Qwen3-8B --max-model-len 65536", "max-len", "65536 is more than the 40960", "User-specified max_model_len (65536) is greater"},
		{one + h100 + sg + "Qwen/Qwen3-8B --context-length 65536", "max-len", "65536", "User-specified context_length (65536)"},
		{one + h100 + v + "Qwen/Qwen3-8B --max-num-seqs 512 --max-num-batched-tokens 256", "limits", "max_num_batched_tokens 256 is less than max_num_seqs 512", "max_num_batched_tokens (256) must be greater than or equal to max_num_seqs (512)"},
		{one + h100 + v + "Qwen/Qwen3-8B --no-enable-chunked-prefill --max-num-batched-tokens 2048", "limits", "40960", "max_num_batched_tokens (2048) is smaller than max_model_len (40960)"},
		{one + h100 + v + q32 + ` -sc {"method":"mtp","num_speculative_tokens":1}`, "mtp", "ships no multi-token-prediction", "Unsupported speculative method"},
		{one + h100 + v + q32 + ` -sc {"method":"eagle3","num_speculative_tokens":1}`, "draft", "needs a draft model", "without speculative model"},
		{one + h100 + v + q235, "weights", "437.9 GiB per GPU", "CUDA out of memory"},
		{one + h100 + v + q32 + " --gpu-memory-utilization 0.75", "memory", "leave no KV cache", "No available memory for the cache blocks"},
		{one + h100 + sg + q32 + " --mem-fraction-static 0.7", "memory", "leave no KV cache", "Not enough memory. Please try to increase --mem-fraction-static. Current value: mem_fraction_static=0.7"},
		{one + h100 + v + q32, "kv-memory", "needs 10.00 GiB of KV cache and 8.47 GiB are left: use max_model_len of at most 34688", "the estimated maximum model length is 34688"},
		{one + h100 + v + "Qwen/Qwen3-8B --gpu-memory-utilization 1.5", "value", "from 0.01 to 1", "Input should be"},
		{one + h100 + v + "Qwen/Qwen3-8B -tp 0", "value", "at least 1", "Input should be"},
		{one + h100 + v + "Qwen/Qwen3-8B --max-model-len 0", "value", "max_model_len=0: use a value of at least 1", "Input should be"},
		{one + h100 + sg + "Qwen/Qwen3-8B --mem-fraction-static nan", "value", "from 0.01 to 1", "Input should be"},
		{eight + h100 + sg + q235 + "-FP8 --tp 4 --ep -3", "value", "expert_parallel=-3: use a value of at least 1", "Input should be"},
		{one + h100 + v + q32 + ` -sc {"method":"ngram","num_speculative_tokens":-5}`, "value", "from 1 to 40960 tokens a step", "Input should be"},
		{one + h100 + v + q32 + ` -sc {"method":"ngram","num_speculative_tokens":9223372036854775807}`, "value", "from 1 to 40960 tokens a step", "Input should be"},
		{eight + h100 + v + "Qwen/Qwen3-8B -tp 4 -dp 4611686018427387904", "gpus", "dp 4611686018427387904", "World size"},
		{one + h100 + v + "Qwen/Qwen3-8B --quantization awq", "quantization", "not a checkpoint of quantization awq", "Cannot find the config file for awq"},
		{one + h100 + v + "Qwen/Qwen3-8B-FP8 --quantization awq", "quantization", "does not go with quantization awq", "does not match the quantization method"},
	} {
		_, err := resolve(t, tt.line)
		r, ok := errors.AsType[*Rejection](err)
		if !ok || r.Rule != tt.rule || !strings.Contains(r.Reason, tt.reason) || !strings.Contains(r.Log, tt.log) {
			t.Errorf("%s:\n  %v\n  %+v\nwant %s: %s: %s", tt.line, err, r, tt.rule, tt.reason, tt.log)
			continue
		}
		if !wayOut.MatchString(r.Reason) || !strings.ContainsAny(r.Reason, "0123456789") && !nameless[r.Rule] {
			t.Errorf("%s: %q does not say with numbers what is wrong and what to do", tt.rule, r.Reason)
		}
		c, _ := Parse(strings.Fields(strings.SplitN(tt.line, ": ", 2)[1]))
		e, _ := ByName(c.Engine)
		log := "INFO starting\n\x1b[31mERROR\x1b[0m 11-21 00:00:00 [core.py:1] " + r.Log + "\nsome trailer\n"
		if reason, ok := RefusalOf(e.Name, log); !ok || reason != r.Log {
			t.Errorf("%s: Refusal = %q, %v; want %q", tt.rule, reason, ok, r.Log)
		}
	}
}

// TestRulesPass: configurations near a rule that the engines do start.
func TestRulesPass(t *testing.T) {
	for _, line := range []string{
		eight + a100 + v + q235 + "-FP8 -tp 8 --enable-expert-parallel",
		four + a100 + v + q235 + "-FP8 -tp 4",
		eight + a100 + v + q235 + " -tp 8", // 4 KV heads, each on two ranks
		eight + h100 + sg + q235 + "-FP8 --tp 8 --ep 8",
		one + h100 + v + q32 + " --max-model-len 32768",
		one + h100 + v + q32 + " --max-model-len auto",
		one + h100 + trt + q32,
		one + h100 + sg + q32,
		one + h100 + v + "Qwen/Qwen3-8B --max-num-seqs 256 --max-num-batched-tokens 256",
		one + " x mi300x" + v + q32 + "-FP8",
		one + " x mi300x" + sg + q32 + "-FP8",
		one + " x mi300x" + v + "gpt-oss-120b",
		one + " x ascend-910b" + v + "Qwen/Qwen3-8B",
		one + " x xeon-8480" + v + "Qwen/Qwen3-8B --max-model-len 16384",
		one + " x xeon-8480" + v + "Qwen/Qwen3-8B-AWQ --max-model-len 16384",
		one + " x xeon-8480" + sg + "Qwen/Qwen3-8B-FP8",
		one + " x l4" + v + "Qwen/Qwen3-8B-FP8 --max-model-len 16384",
		one + " x b200" + v + "gpt-oss-120b",
		many + h100 + v + q235 + "-FP8 -tp 4 -dp 6 -ep", // 128 experts over 24 ranks: some hold one more
		eight + h100 + sg + q32 + " --tp 8 --ep 8",      // no experts, no effect
		eight + h100 + sg + q235 + "-FP8 --tp 8 --moe-a2a-backend deepep",
		eight + h100 + sg + q235 + "-FP8 --tp 8 --ep 8 --dp 4 --enable-dp-attention",
		eight + h100 + v + q235 + "-FP8 -tp 8 -dcp 2 --enable-expert-parallel",
		eight + eight + h100 + sg + "meta-llama/Llama-4-Scout-17B-16E-Instruct --tp 16 --dp 16 --enable-dp-attention", // 40 heads, all on each rank
		eight + eight + h100 + trt + "meta-llama/Llama-4-Scout-17B-16E-Instruct --tp_size 16 --ep_size 16 --enable_attention_dp",
		eight + h100 + v + q235 + "-FP8 -tp 8 -ep --enable-eplb",
		eight + h100 + v + q235 + "-FP8 -tp 4 -dp 2 -ep --enable-dbo --all2all-backend deepep_low_latency",
		"iiii" + h100 + v + "Qwen/Qwen3-8B --async-scheduling -tp 4" + ` -sc {"method":"eagle3","num_speculative_tokens":3,"model":"d","draft_tensor_parallel_size":4}`,
		eight + h100 + sg + q235 + "-FP8 --tp 8 --moe-a2a-backend deepep --enable-two-batch-overlap",
		eight + " x b200" + sg + q235 + "-FP8 --tp 8 --ep 8 --attention-backend trtllm_mha --page-size 16",
		four + " x a100-sxm-80" + sg + q32 + " --tp 4 --attention-backend fa3",
		one + h100 + v + "Qwen/Qwen3-8B --max-cudagraph-capture-size 8" + ` -sc {"method":"ngram","num_speculative_tokens":5}`,
		one + h100 + v + "Qwen/Qwen3-8B --enforce-eager" + ` -sc {"method":"ngram","num_speculative_tokens":5}`,
		one + h100 + sg + "Qwen/Qwen3-8B --chunked-prefill-size -1 --page-size 48",
		one + " x h200" + sg + q35 + "-FP8 --speculative-algorithm EAGLE --speculative-num-steps 1 --speculative-eagle-topk 1 --speculative-num-draft-tokens 2", // its own heads
	} {
		if _, err := resolve(t, line); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	if c := mustResolve(t, one+h100+v+q32+" --max-model-len auto"); c.MaxLen != 34688 {
		t.Errorf("auto length = %d", c.MaxLen)
	}
	_, err := resolve(t, one+h100+v+"Qwen/Qwen3-8B --kv-cache-dtype nvfp4")
	if err == nil || !strings.Contains(err.Error(), "not modelled") {
		t.Errorf("KV format that is not modelled: %v", err)
	}
}

// TestBackendPages: kernels of SGLang that take pages of some sizes only.
func TestBackendPages(t *testing.T) {
	for flags, want := range map[string]int{
		"": 1, " --page-size 16": 16, " --attention-backend flashinfer": 1, " --attention-backend flashmla": 64, " --attention-backend flashmla --page-size 16": 64,
		" --attention-backend triton --decode-attention-backend cutlass_mla": 128, " --attention-backend trtllm_mha": 64, " --attention-backend trtllm_mha --page-size 16": 16,
	} {
		if c := mustResolve(t, eight+" x b200"+sg+"Qwen/Qwen3-8B"+flags); c.Block != want {
			t.Errorf("%q: pages of %d tokens, want %d", flags, c.Block, want)
		}
	}
}

// TestFlagRuleVersions: rules that newer versions have not.
func TestFlagRuleVersions(t *testing.T) {
	for _, tt := range []struct{ version, line string }{
		{"0.25.0", one + h100 + v + "Qwen/Qwen3-8B --max-num-partial-prefills 4"},
		{"0.5.17", eight + h100 + sg + q235 + "-FP8 --tp 8 --ep 8 --dp 8 --enable-dp-attention --enable-two-batch-overlap"},
	} {
		versioned(t, tt.version, tt.line)
		if _, err := resolve(t, tt.line); err == nil {
			t.Errorf("%s passes without a version, which is the oldest", tt.line)
		}
	}
}

// TestWidened: units decide, not the maker.
func TestWidened(t *testing.T) {
	for line, want := range map[string]bool{
		one + " x mi300x" + v + q32 + "-FP8":                                  false,
		one + " x mi300x" + v + "gpt-oss-120b":                                true,
		one + a100 + v + "Qwen/Qwen3-8B-FP8":                                  true,
		one + " x gb10" + v + "nvidia/Qwen3-8B-NVFP4":                         false,
		one + " x h200" + v + "nvidia/Qwen3-8B-NVFP4":                         true,
		one + " x b200" + v + "gpt-oss-120b":                                  false,
		one + " x gb10" + v + "gpt-oss-120b":                                  true,
		one + " x xeon-8480" + v + "Qwen/Qwen3-8B --max-model-len 4096":       false,
		one + " x mi300x" + v + "Qwen/Qwen3-8B-AWQ":                           true,
		one + " x xeon-8480" + sg + "Qwen/Qwen3-8B-FP8 --context-length 4096": true,
	} {
		if c := mustResolve(t, line); c.WeightOnly != want {
			t.Errorf("%s: widened %v", line, c.WeightOnly)
		}
	}
	c, err := Parse(strings.Fields("VLLM_CPU_KVCACHE_SPACE=40 vllm serve Qwen/Qwen3-8B"))
	if err != nil {
		t.Fatal(err)
	}
	m, _ := arch.LookupModel("Qwen/Qwen3-8B")
	g, _ := arch.LookupAccelerator("xeon-8480")
	if cfg, err := c.Resolve(m, g, 1); err != nil || cfg.KVPoolBytes() != 40*gibibyte {
		t.Errorf("KV cache of a CPU by its environment: %d bytes, %v", cfg.KVPoolBytes(), err)
	}
}

// TestSpark: the published commands of eight models on four nodes all start; Scout at
// a length that its 48 layers' caches have room for, which at its own 10 million tokens
// they have not.
func TestSpark(t *testing.T) {
	for _, m := range []string{
		"Qwen/Qwen3-VL-32B-Instruct-FP8", "Qwen/Qwen3-VL-235B-A22B-Instruct-FP8", "QuantTrio/Qwen3-VL-235B-A22B-Instruct-AWQ", "GPT-OSS-20B", "GPT-OSS-120B",
		"zai-org/GLM-4.6-FP8", "nvidia/Llama-4-Scout-17B-16E-Instruct-NVFP4 --max-model-len 1000000", "nvidia/Llama-3.3-70B-Instruct-NVFP4",
	} {
		c := mustResolve(t, four+" x gb10"+v+m+" --host 0.0.0.0 --trust_remote_code --gpu-memory-utilization 0.8 -pp 1 -tp 4 --distributed-executor-backend ray --load-format fastsafetensors --kv-cache-dtype fp8")
		if c.GPUs != 4 || c.KVBytes != 1 || c.Host != "0.0.0.0" {
			t.Errorf("%s: %+v", m, c)
		}
	}
}

// TestVersion: a version, where it is known, decides defaults that have changed.
func TestVersion(t *testing.T) {
	for version, want := range map[string]struct {
		overlap bool
		share   float64
	}{
		"": {false, 0.90}, "0.11.0": {false, 0.90}, "0.17.1": {true, 0.90}, "0.19.1": {true, 0.90},
		"v0.20.0rc1": {true, 0.92}, "0.33.0": {true, 0.92}, "nightly": {false, 0.90}, "1": {false, 0.90},
	} {
		cfg := versioned(t, version, one+" x h200"+v+q32)
		if cfg.Overlap != want.overlap || cfg.MemoryShare != want.share {
			t.Errorf("version %q: overlap %v, share %v, want %+v", version, cfg.Overlap, cfg.MemoryShare, want)
		}
	}
}

// TestPromptGraphs: which steps with prompts are launched at once, by engine and version.
func TestPromptGraphs(t *testing.T) {
	const sglang = "1 x h200: python3 -m sglang.launch_server --model-path Qwen/Qwen3-32B --chunked-prefill-size 4096"
	for _, c := range []struct {
		version, line string
		want          int
	}{
		{"0.11.0", one + " x h200" + v + q32, 512},
		{"0.17.1", one + " x h200" + v + q32 + " --max-cudagraph-capture-size 2048", 2048},
		{"0.11.0", one + " x h200" + v + q32 + " --enforce-eager", 0},
		{"0.11.0", one + " x h200" + v + "openai/gpt-oss-20b", 1024},
		{"0.5.9", sglang, 0},
		{"0.5.9", sglang + " --enable-piecewise-cuda-graph", 4096},
		{"0.5.10", sglang, 4096},
		{"0.5.10", sglang + " --disable-piecewise-cuda-graph", 0},
		{"0.5.23", sglang + " --cuda-graph-backend-prefill disabled", 0},
		{"0.5.23", sglang + " --cuda-graph-backend-prefill full", 4096},
		{"0.5.23", sglang + " --disable-cuda-graph", 0},
		{"1.2.0", "1 x h200: trtllm-serve Qwen/Qwen3-32B", 0},
	} {
		if got := versioned(t, c.version, c.line).PromptGraphs; got != c.want {
			t.Errorf("%s, %s: graphs cover prompts of %d tokens, want %d", c.version, c.line, got, c.want)
		}
	}
}

// versioned resolves "GPUS x ACCELERATOR: COMMAND" as a version of its engine.
func versioned(t *testing.T, version, line string) Config {
	t.Helper()
	where, command, _ := strings.Cut(line, ": ")
	count, gpu, _ := strings.Cut(where, " x ")
	c, err := Parse(strings.Fields(command))
	if err != nil {
		t.Fatal(err)
	}
	c.Version = version
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
		t.Fatalf("%s of %s: %v", line, version, err)
	}
	return cfg
}

// TestDeviceDefaults: the limits by device and version, each with where the engine's
// source settles it. Files are of the released wheels.
func TestDeviceDefaults(t *testing.T) {
	type limits struct{ seqs, batched, block, graph int }
	const q8, len4 = "Qwen/Qwen3-8B", " --max-model-len 4096"
	for _, tt := range []struct {
		version, line string
		want          limits
	}{
		// vllm/engine/arg_utils.py, get_batch_defaults (0.11.0: _set_default_args, line 1590).
		{"0.11.0", one + h100 + v + q8, limits{1024, 8192, 16, 512}},
		{"0.11.0", one + " x mi300x" + v + q8, limits{1024, 8192, 16, 512}},
		{"0.27.1", one + " x b200" + v + q8, limits{1024, 8192, 16, 512}},
		// Line 2730 of 0.30.0: the largest devices from 160 GiB, an A100 not among them.
		{"0.28.0", one + " x b200" + v + q8, limits{1024, 16384, 16, 512}},
		{"0.28.0", one + " x mi300x" + v + q8, limits{1024, 16384, 16, 512}},
		{"0.33.0", one + " x h200" + v + q8, limits{1024, 8192, 16, 512}},
		{"0.33.0", one + " x a100-sxm-80" + v + q8, limits{256, 2048, 16, 512}},
		{"0.17.0", one + " x a100-pcie-80" + v + q8, limits{256, 2048, 16, 512}},
		{"0.17.0", one + " x a800-sxm-80" + v + q8, limits{1024, 8192, 16, 512}}, // its name has no "a100"
		{"0.17.0", one + " x rtx-pro-6000" + v + q8, limits{1024, 8192, 16, 512}},
		// NVML refuses a GB10's memory, which counts as none; is_gb10 of 0.33.0 keeps that.
		{"0.11.0", one + " x gb10" + v + q8, limits{256, 2048, 16, 512}},
		{"0.33.0", one + " x gb10" + v + q8, limits{256, 2048, 16, 512}},
		// The limits of a CPU count its ranks; vllm/platforms/cpu.py, check_and_update_config:
		// blocks of 128 tokens and no captured graphs.
		{"0.11.0", one + " x xeon-8480" + v + q8 + len4, limits{128, 2048, 128, 0}},
		{"0.33.0", one + one + " x xeon-8480" + v + q8 + len4 + " -tp 2", limits{256, 4096, 128, 0}},
		// vllm/platforms/interface.py, get_device_total_memory: not implemented by the plug-in
		// for NPUs, so none; vllm_ascend/platform.py, check_and_update_config: blocks of 128.
		{"0.11.0", one + " x ascend-910b" + v + q8, limits{256, 2048, 128, 512}},
		// sglang/srt/server_args.py, _handle_gpu_memory_settings (0.5.5 line 665, 0.5.9 line 911).
		{"0.5.9", one + " x b200" + sg + q8, limits{4096, 16384, 1, 512}},
		{"0.5.9", one + " x mi300x" + sg + q8, limits{4096, 16384, 1, 512}},
		{"0.5.9", one + " x gb10" + sg + q8, limits{4096, 8192, 1, 256}},
		{"0.5.9", one + " x xeon-8480" + sg + q8, limits{4096, 16384, 1, 512}}, // memory of a NUMA node
		// sglang/srt/arg_groups/memory_hook.py from 0.5.20, between 20 and 35 GiB.
		{"0.5.19", one + " x l4" + sg + "Qwen/Qwen3-0.6B", limits{2048, 2048, 1, 24}},
		{"0.5.23", one + " x l4" + sg + "Qwen/Qwen3-0.6B", limits{2048, 4096, 1, 48}},
		{"0.5.5", one + " x ascend-910b" + sg + "Qwen/Qwen3-0.6B", limits{2048, 32768, 128, 64}},
		// sglang/srt/hardware_backend/npu/utils.py, set_default_server_args, from 0.5.7.
		{"0.5.9", one + " x ascend-910b" + sg + q8, limits{2979, 8192, 128, 64}},
		{"0.5.9", four + " x ascend-910b" + sg + q8 + " --tp 4", limits{4096, 8192, 128, 256}},
		// server_args.py, _handle_speculative_decoding (0.5.5 line 1533, 0.5.9 line 2342).
		{"0.5.9", one + " x h200" + sg + q35 + "-FP8 --speculative-algorithm NEXTN", limits{48, 8192, 1, 256}},
	} {
		c := versioned(t, tt.version, tt.line)
		if got := (limits{c.Seqs, c.Batched, c.Block, c.GraphMax}); got != tt.want {
			t.Errorf("%s of %s: %+v, want %+v", tt.line, tt.version, got, tt.want)
		}
	}
}

// TestAttentionShare: sglang/srt/server_args.py, _handle_gpu_memory_settings, keeps 4.5 MiB
// for each captured request of each data-parallel rank, 3 where no more than 300 are captured.
func TestAttentionShare(t *testing.T) {
	line := eight + h100 + sg + q235 + "-FP8 --tp 8 --ep 8 --dp 8 --enable-dp-attention"
	for flags, reserved := range map[string]float64{"": 14848 + 4.5*512*8, " --cuda-graph-max-bs 256": 14336 + 3*256*8} {
		c := mustResolve(t, line+flags)
		mib := c.GPU.MemoryGiB * 1024
		if want := 1 - reserved/mib; math.Abs(c.MemoryShare-want) > 0.001 {
			t.Errorf("%s: share %v, want %.3f", flags, c.MemoryShare, want)
		}
	}
}

// TestHybridDefaults: prefix cache and overlap of models with linear attention.
func TestHybridDefaults(t *testing.T) {
	h200 := one + " x h200"
	for _, tt := range []struct {
		version, line   string
		prefix, overlap bool
	}{
		// vllm/config/model.py, is_prefix_caching_supported.
		{"0.25.0", h200 + v + q35, false, true},
		{"0.26.0", h200 + v + q35, true, true},
		// sglang/srt/server_args.py of 0.5.9, _handle_mamba_radix_cache (line 1699): states are
		// kept at a step's end, which an overlapped scheduler has passed.
		{"0.5.9", h200 + sg + q35, true, false},
		{"0.5.9", h200 + sg + q35 + " --disable-radix-cache", false, true},
		{"0.5.9", h200 + sg + q35 + " --speculative-algorithm NEXTN", false, false},
		{"0.5.9", h200 + sg + "Qwen/Qwen3-8B", true, true},
		// The same file, _handle_pipeline_parallelism.
		{"0.5.9", four + " x h200" + sg + "Qwen/Qwen3-8B --pp-size 4", true, false},
		// vllm/platforms/cpu.py from 0.14: a CPU does not schedule ahead.
		{"0.17.0", one + " x xeon-8480" + v + "Qwen/Qwen3-8B", true, false},
	} {
		if c := versioned(t, tt.version, tt.line); c.Prefix != tt.prefix || c.Overlap != tt.overlap {
			t.Errorf("%s of %s: prefix cache %v, overlap %v", tt.line, tt.version, c.Prefix, c.Overlap)
		}
	}
}

// TestOutlineOnHost: of vLLM on a host of any kind all is known that does not follow
// from its memory, and its rules hold.
func TestOutlineOnHost(t *testing.T) {
	host, err := arch.LookupAccelerator("cpu")
	if err != nil {
		t.Fatal(err)
	}
	m, err := arch.LookupModel("Qwen/Qwen3-0.6B")
	if err != nil {
		t.Fatal(err)
	}
	outline := func(line string) (Config, error) {
		t.Helper()
		c, err := ParseText(line)
		if err != nil {
			t.Fatal(err)
		}
		c.Version = "0.32.0"
		return c.Outline(m, host, 1)
	}
	c, err := outline("vllm serve Qwen/Qwen3-0.6B --max-model-len 2048")
	if err != nil || c.Seqs != 128 || c.Batched != 2048 || c.MaxLen != 2048 || c.Block != 128 || c.GraphMax != 0 || c.Overlap || c.KVSpace != 0 {
		t.Errorf("%+v: %v", c, err)
	}
	if c, err := outline("VLLM_CPU_KVCACHE_SPACE=1 vllm serve Qwen/Qwen3-0.6B --max-model-len auto"); err != nil || c.MaxLen != 9344 {
		t.Errorf("1 GiB holds %d tokens: %v", c.MaxLen, err)
	}
	for line, want := range map[string]string{
		"VLLM_CPU_KVCACHE_SPACE=1 vllm serve Qwen/Qwen3-0.6B": "kv-memory",
		"vllm serve Qwen/Qwen3-0.6B -tp 2":                    "gpus",
		"vllm serve Qwen/Qwen3-0.6B --max-num-seqs 4096":      "limits",
		"vllm serve Qwen/Qwen3-0.6B --max-model-len 99999":    "max-len",
	} {
		_, err := outline(line)
		if r, ok := errors.AsType[*Rejection](err); !ok || r.Rule != want {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
	for _, line := range []string{"vllm serve Qwen/Qwen3-0.6B", "python3 -m sglang.launch_server --model-path Qwen/Qwen3-0.6B"} {
		c, err := ParseText(line)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Resolve(m, host, 1); err == nil || !strings.Contains(err.Error(), "nothing is known of CPU of the host") {
			t.Errorf("%s is predicted on a host of any kind: %v", line, err)
		}
	}
	// What follows from the device's memory is not known, and nothing is read into it.
	cmd, err := ParseText("python3 -m sglang.launch_server --model-path Qwen/Qwen3-0.6B --context-length 2048 --speculative-algorithm NGRAM")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Version = "0.5.23"
	if c, err = cmd.Outline(m, host, 1); err != nil || c.MaxLen != 2048 || c.Batched != 0 || c.MemoryShare != 0 || c.GraphMax != 0 || c.Seqs != 48 || c.Overlap || !c.Chunked {
		t.Errorf("%+v: %v", c, err)
	}
	cmd.Version = "0.5.15"
	if _, err := cmd.Outline(m, host, 1); err == nil || !strings.Contains(err.Error(), "ngram runs on GPUs only") {
		t.Errorf("SGLang 0.5.15 guesses n-grams on a CPU: %v", err)
	}
}
