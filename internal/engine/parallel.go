package engine

import (
	"fmt"
	"slices"
	"strconv"

	"perflab/internal/engine/nested"
)

// further reads flags without a canonical name that rules depend on.
func (r *resolver) further() {
	c := r.cfg
	c.AttentionDP, c.ContextP = 1, 1
	c.Interval = r.int(StreamInterval, 1)
	format, _ := r.cmd.extra("--load-format")
	if v, ok := nested.At(r.cmd.File, "load_format"); ok {
		format = nested.Text(v)
	}
	c.Dummy = format == "dummy"
	switch c.Engine {
	case "vllm":
		c.ContextP = r.extraInt("--decode-context-parallel-size", 1)
		c.AllToAll, _ = r.cmd.extra("--all2all-backend")
	case "sglang":
		c.ContextP = r.extraInt("--dcp-size", 1)
		c.AllToAll, _ = r.cmd.extra("--moe-a2a-backend")
		if r.flag("--enable-dp-attention") {
			c.AttentionDP = r.int(DP, 1)
		}
		if mode, _ := r.cmd.extra("--deepep-mode"); c.AllToAll == "deepep" && mode != "normal" {
			c.Dispatch = 128
			if n, err := strconv.Atoi(envOf(r.cmd.Env, "SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK")); err == nil && n > 0 {
				c.Dispatch = n
			}
		}
	case "trtllm":
		if r.bool(AttentionDP, false) {
			c.AttentionDP = c.TP
		}
	}
}

// AttentionTP is how many ranks split the attention of a request.
func (c Config) AttentionTP() int { return max(1, c.TP/max(1, c.AttentionDP)) }

// wholeExperts are the ways of SGLang to reach experts that make every rank an
// expert-parallel one, whatever --ep-size says.
var wholeExperts = []string{"deepep", "mooncake", "ascend_fuseep"}

// dpAttentionRule: the tensor-parallel ranks of SGLang fall into groups of one size.
func dpAttentionRule(c *Config, _ int) *Rejection {
	if c.Engine != "sglang" || c.AttentionDP < 2 || c.TP%c.AttentionDP == 0 {
		return nil
	}
	return &Rejection{Rule: "dp-attention", Log: "assert self.tp_size % self.dp_size == 0",
		Reason: fmt.Sprintf("tp %d does not fall into %d groups of data-parallel attention: use a dp that divides tp", c.TP, c.AttentionDP)}
}

// contextRule: the ranks that share a sequence's cache are tensor-parallel ones.
func contextRule(c *Config, _ int) *Rejection {
	switch kv := c.Model.KVHeads; {
	case c.Engine != "vllm" || c.ContextP < 2:
		return nil
	case c.TP%c.ContextP == 0 && c.Model.MLA == nil && c.TP <= kv:
		return &Rejection{Rule: "context-parallel",
			Log:    fmt.Sprintf("ValueError: Decode context parallelism for GQA/MQA requires `--tensor-parallel-size` (%d) to be greater than the model's total number of KV heads (%d). Increase `--tensor-parallel-size` or set `--decode-context-parallel-size 1`.", c.TP, kv),
			Reason: fmt.Sprintf("decode context parallelism shares out the copies of KV heads, and tp %d keeps no copies of %d heads: use a tp above %[2]d, or leave it off", c.TP, kv)}
	case c.TP%c.ContextP == 0 && c.Model.MLA == nil && c.ContextP > c.TP/kv:
		return &Rejection{Rule: "context-parallel",
			Log:    fmt.Sprintf("ValueError: `--decode-context-parallel-size` (%d) exceeds the maximum supported value (%d) for `--tensor-parallel-size` (%d) and %d model KV heads.", c.ContextP, c.TP/kv, c.TP, kv),
			Reason: fmt.Sprintf("tp %d keeps each of %d KV heads %d times, and decode context parallelism shares them out over %d ranks: use at most %[3]d", c.TP, kv, c.TP/kv, c.ContextP)}
	case c.TP%c.ContextP == 0:
		return nil
	}
	return &Rejection{Rule: "context-parallel", Log: fmt.Sprintf("ValueError: tp_size=%d must be divisible by dcp_size=%d.", c.TP, c.ContextP),
		Reason: fmt.Sprintf("tp %d is not a multiple of the %d ranks of decode context parallelism: use a number that divides it", c.TP, c.ContextP)}
}

// specRule: what SGLang's ways of guessing do not go with.
func specRule(c *Config, _ int) *Rejection {
	if c.Engine != "sglang" || c.Spec == "" {
		return nil
	}
	reject := func(log, format string, args ...any) *Rejection {
		return &Rejection{Rule: "speculative", Log: log, Reason: fmt.Sprintf(format, args...)}
	}
	switch {
	case c.AttentionDP > 1 && slices.Contains([]string{"ngram", "standalone"}, c.Spec):
		return reject(fmt.Sprintf("ValueError: Currently %s speculative decoding does not support dp attention.", c.Spec),
			"speculation by %s does not go with data-parallel attention over %d groups: use mtp or eagle3, or leave one of them off", c.Spec, c.AttentionDP)
	}
	return nil
}

// pageRule: a chunk of SGLang is whole pages. Groups of data-parallel attention share
// the chunk.
func pageRule(c *Config, _ int) *Rejection {
	if c.Engine != "sglang" || !c.Chunked {
		return nil
	}
	chunk := c.Batched / max(1, c.AttentionDP)
	if chunk%max(c.Block, 1) == 0 {
		return nil
	}
	return &Rejection{Rule: "pages", Log: "AssertionError: chunked_prefill_size must be divisible by page_size",
		Reason: fmt.Sprintf("a chunk of %d tokens is not a whole number of pages of %d: use max_num_batched_tokens %d", chunk, c.Block, max(1, chunk/c.Block)*c.Block*max(1, c.AttentionDP))}
}

// graphRule: vLLM's graphs for decoding hold whole guesses of 1+k tokens.
func graphRule(c *Config, _ int) *Rejection {
	if c.Engine != "vllm" || c.GraphMax == 0 || c.SpecTokens == 0 || c.GraphMax > c.SpecTokens {
		return nil
	}
	return &Rejection{Rule: "graphs",
		Reason: fmt.Sprintf("graphs of up to %d tokens hold no guess of %d tokens and the one before them: use max_cudagraph_capture_size %d or more", c.GraphMax, c.SpecTokens, c.SpecTokens+1),
		Log: fmt.Sprintf("ValueError: No valid cudagraph sizes after rounding to multiple of %d (num_speculative_tokens + 1 or tp if sequence parallelism is enabled) please adjust num_speculative_tokens (%d) or max_cudagraph_capture_size (%d)",
			c.SpecTokens+1, c.SpecTokens, c.GraphMax)}
}
