package engine

import (
	"errors"
	"strings"
	"testing"

	"perflab/internal/arch"
)

// TestWidthRule: a feed-forward that a tp of the heads does not divide.
func TestWidthRule(t *testing.T) {
	c := Config{Engine: "vllm", TP: 6, PP: 1, DP: 1, EP: 1, GPU: arch.Accelerator{MemoryGiB: 80},
		Model: arch.Model{Name: "m", Layers: 2, Heads: 12, KVHeads: 6, HeadDim: 64, Hidden: 768, FFN: 2000, Vocab: 100, Format: arch.BF16}}
	r := widthRule(&c, 8)
	if r == nil || r.Rule != "divide" || r.Reason != "intermediate_size of 2000 cannot be divided over 6 ranks: use tp 2" || r.Log != "AssertionError: 2000 is not divisible by 6" {
		t.Errorf("%+v", r)
	}
	c.Engine, c.Model.MoE, c.Model.FFN = "sglang", &arch.MoE{Experts: 6, Active: 2, Hidden: 1000}, 0
	r = widthRule(&c, 8)
	if r == nil || !strings.Contains(r.Log, "moe_intermediate_size 1000 must be divisible by moe_tp_size (6)") {
		t.Errorf("%+v", r)
	}
	c.TP = 2
	if r := widthRule(&c, 8); r != nil {
		t.Errorf("%+v", r)
	}
}

// TestFitsSlot: llama.cpp takes what fits into a slot's part of the context.
func TestFitsSlot(t *testing.T) {
	for _, tt := range []struct {
		line           string
		prompt, output int
		reason         string
	}{
		{"llama-server -m m.gguf -c 4096 -np 4", 1000, 24, ""},
		{"llama-server -m m.gguf -c 4096 -np 4", 1000, 25, "after a prompt of 1000 tokens llama-server cuts an answer of 25 short, for a slot holds 1024: raise context_size"},
		{"llama-server -m m.gguf -c 4096 -np 4", 1024, 0, "a prompt of 1024 tokens does not fit into the 1024 of a slot"},
		{"llama-server -m m.gguf -c 4096 -np 4 -kvu", 1024, 1, ""},
		{"llama-server -m m.gguf", 100000, 1, ""}, // the model's own length, which is in its file
	} {
		cmd, err := ParseText(tt.line)
		if err != nil {
			t.Fatal(err)
		}
		gpu, err := arch.LookupAccelerator("cpu")
		if err != nil {
			t.Fatal(err)
		}
		c, err := cmd.Outline(arch.Model{}, gpu, 1)
		if err != nil {
			t.Fatal(err)
		}
		r := c.Fits(tt.prompt, tt.output)
		switch {
		case r == nil && tt.reason == "":
		case r == nil || tt.reason == "" || !strings.Contains(r.Reason, tt.reason):
			t.Errorf("%s with %d+%d: %+v, want %q", tt.line, tt.prompt, tt.output, r, tt.reason)
		default:
			e, _ := ByName(c.Engine)
			if class, ok := ClassOf(e.Name, "srv    send_error: task id = 188, error: "+r.Log+"\n"); !ok || class != "request" {
				t.Errorf("%q is diagnosed as %q", r.Log, class)
			}
		}
	}
}

// TestFitsPools: both pools must serve a request, prefill engines its prompt and one token.
func TestFitsPools(t *testing.T) {
	decode := mustResolve(t, one+h100+v+"Qwen/Qwen3-8B --max-model-len 4096")
	prefill := decode
	prefill.MaxLen, decode.Prefill = 2000, &prefill
	if r := decode.Fits(1999, 2000); r != nil {
		t.Error(r)
	}
	if r := decode.Fits(2000, 10); r == nil || r.Rule != "request-len" || !strings.HasPrefix(r.Reason, "prefill engines: a request of 2000 prompt and 1 output tokens") {
		t.Errorf("%+v", r)
	}
	if r := decode.Fits(1000, 4000); r == nil || !strings.HasPrefix(r.Reason, "a request of 1000") {
		t.Errorf("%+v", r)
	}
}

// TestFits: the longest request of a workload decides.
func TestFits(t *testing.T) {
	for _, tt := range []struct {
		line           string
		prompt, output int
		rule, reason   string
	}{
		{one + h100 + v + "Qwen/Qwen3-8B --max-model-len 4096", 3072, 1024, "", ""},
		{one + h100 + v + "Qwen/Qwen3-8B --max-model-len 4096", 3072, 1025, "request-len", "3072 prompt and 1025 output tokens is 4097 tokens long, over max_model_len 4096"},
		{one + h100 + sg + "Qwen/Qwen3-8B --context-length 4096", 4000, 200, "request-len", "over max_model_len 4096"},
		{one + h100 + trt + "Qwen/Qwen3-8B --max_seq_len 16384 --max_num_tokens 8192", 9000, 100, "prompt-len", "9000 tokens is over max_num_batched_tokens 8192 while prefill is not chunked: use chunked_prefill or max_num_batched_tokens 9024"},
		{one + h100 + trt + "Qwen/Qwen3-8B --max_seq_len 16384 --max_num_tokens 8192 --enable_chunked_prefill", 9000, 100, "", ""},
		{one + h100 + trt + "Qwen/Qwen3-8B --max_seq_len 4096", 4096, 1, "request-len", "4097 tokens long"},
		{one + h100 + sg + q32 + " --mem-fraction-static 0.8", 10000, 10, "request-kv", "a prompt of 10000 tokens is more than the "},
	} {
		r := mustResolve(t, tt.line).Fits(tt.prompt, tt.output)
		switch {
		case r == nil && tt.rule == "":
		case r == nil || r.Rule != tt.rule || !strings.Contains(r.Reason, tt.reason):
			t.Errorf("%s with %d+%d: %+v, want %s: %s", tt.line, tt.prompt, tt.output, r, tt.rule, tt.reason)
		default:
			c := mustResolve(t, tt.line)
			e, _ := ByName(c.Engine)
			if class, ok := ClassOf(e.Name, "INFO up\n"+r.Log+"\n"); !ok || class != "request" {
				t.Errorf("%s: %q is diagnosed as %q", tt.line, r.Log, class)
			}
			if reason, refused := RefusalOf(e.Name, r.Log); refused {
				t.Errorf("a request that is refused reads as a configuration that is: %s", reason)
			}
		}
	}
}

// TestRulesByVersion: what newer releases refuse otherwise than the oldest, in their words.
func TestRulesByVersion(t *testing.T) {
	const guesses = ` --async-scheduling -sc {"method":"ngram","num_speculative_tokens":5}`
	for _, tt := range []struct{ version, line, rule, log string }{ // rule "": it passes
		{"0.31", one + h100 + v + "openai/gpt-oss-20b --enable-eplb -ep", "experts", "EPLB requires tensor_parallel_size or"},
		{"0.33.0", one + h100 + v + "openai/gpt-oss-20b --enable-eplb -ep", "experts", "EPLB requires tensor, prefill-context, or data parallelism, but got TP=1, PCP=1, DP=1."},
		{"0.32", one + h100 + v + "Qwen/Qwen3-8B" + guesses, "speculative", "async scheduling is only supported with"},
		{"0.33", one + h100 + v + "Qwen/Qwen3-8B" + guesses, "", ""},
		{"0.33", one + h100 + ": VLLM_USE_V2_MODEL_RUNNER=0 vllm serve Qwen/Qwen3-8B" + guesses, "conflict", "not supported by the V1 model runner with ngram-based speculative decoding."},
		{"0.33", one + h100 + v + "Qwen/Qwen3-8B" + strings.Replace(guesses, "ngram", "suffix", 1), "conflict", "with suffix-based speculative decoding."},
	} {
		hardware, words, _ := strings.Cut(tt.line, ": ")
		cmd, err := Parse(strings.Fields(words))
		if err != nil {
			t.Fatal(err)
		}
		cmd.Version = tt.version
		m, err := arch.LookupModel(cmd.Model)
		if err != nil {
			t.Fatal(err)
		}
		g, err := arch.LookupAccelerator(strings.TrimLeft(hardware, "i x"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = cmd.Resolve(m, g, 1)
		r, refused := errors.AsType[*Rejection](err)
		if refused != (tt.rule != "") || err != nil && (r.Rule != tt.rule || !strings.Contains(r.Log, tt.log)) {
			t.Errorf("%s %s: %v %+v, want %s: %s", tt.version, tt.line, err, r, tt.rule, tt.log)
			continue
		}
		if !refused {
			continue
		}
		if class, ok := ClassOf("vllm", r.Log); !ok || class != tt.rule {
			t.Errorf("%q is of class %q", r.Log, class)
		}
	}
}
