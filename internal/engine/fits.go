package engine

import "fmt"

// Fits holds a workload's longest request against what the configuration serves: by
// its prompt and output together, and not by means, as one request that is refused
// spoils a run. Nil says that it is served. The log line is a request's: the engine
// itself starts and goes on.
func (c Config) Fits(prompt, output int) *Rejection {
	total := prompt + output
	reject := func(rule, log, format string, args ...any) *Rejection {
		return &Rejection{Rule: rule, Log: log, Reason: fmt.Sprintf(format, args...)}
	}
	if c.Engine == "llamacpp" {
		return c.fitsSlot(prompt, output)
	}
	if c.Prefill != nil {
		if rej := c.Prefill.Fits(prompt, 1); rej != nil {
			rej.Reason = PrefillPool + " engines: " + rej.Reason
			return rej
		}
	}
	if c.MaxLen > 0 && total > c.MaxLen {
		return reject("request-len", c.longLog(prompt, output),
			"a request of %d prompt and %d output tokens is %d tokens long, over max_model_len %d: raise max_model_len or shorten the workload", prompt, output, total, c.MaxLen)
	}
	if c.Engine == "trtllm" && !c.Chunked && prompt > c.Batched {
		return reject("prompt-len", fmt.Sprintf("The sum of prompt length (%d.0), query length (0) should not exceed max_num_tokens (%d)", prompt, c.Batched),
			"a prompt of %d tokens is over max_num_batched_tokens %d while prefill is not chunked: use chunked_prefill or max_num_batched_tokens %d", prompt, c.Batched, roundUp(prompt, max(c.Block, 1)))
	}
	if tokens, err := c.KVTokens(); err == nil && !c.Holds(prompt) {
		return reject("request-kv", fmt.Sprintf("Input length (%d tokens) exceeds the maximum allowed length (%d tokens). Use a shorter input or enable --allow-auto-truncate.", prompt, tokens),
			"a prompt of %d tokens is more than the %d that the KV cache holds: use more memory, more GPUs or an FP8 cache", prompt, tokens)
	}
	return nil
}

// fitsSlot is Fits for llama.cpp, which refuses a prompt that fills a slot's context, and
// ends an answer, without an error, where it is full: fewer tokens than were asked for.
func (c Config) fitsSlot(prompt, output int) *Rejection {
	const remedy = "raise context_size, use fewer slots or shorten the workload"
	switch {
	case c.MaxLen == 0:
		return nil
	case prompt >= c.MaxLen:
		return &Rejection{Rule: "request-len", Log: c.longLog(prompt, output),
			Reason: fmt.Sprintf("a prompt of %d tokens does not fit into the %d of a slot: %s", prompt, c.MaxLen, remedy)}
	case prompt+output <= c.MaxLen:
		return nil
	}
	return &Rejection{Rule: "request-len", Log: c.longLog(prompt, output),
		Reason: fmt.Sprintf("after a prompt of %d tokens llama-server cuts an answer of %d short, for a slot holds %d: %s", prompt, output, c.MaxLen, remedy)}
}

// holds reports whether the KV cache has room for one sequence of n tokens.
func (c Config) Holds(n int) bool {
	blocks, err := c.KVBlocks()
	return err == nil && c.Layout().SeqBlocks(n) <= blocks
}

// longLog is what the engine answers to a request over its length.
func (c Config) longLog(prompt, output int) string {
	switch c.Engine {
	case "sglang":
		return fmt.Sprintf("Requested token count exceeds the model's maximum context length of %d tokens. You requested a total of %d tokens: %d tokens from the input messages and %d tokens for the completion.", c.MaxLen, prompt+output, prompt, output)
	case "llamacpp":
		return fmt.Sprintf("request (%d tokens) exceeds the available context size (%d tokens), try increasing it", prompt, c.MaxLen)
	case "trtllm":
		return fmt.Sprintf("The sum of prompt length (%d.0), query length (0) and max_tokens (%d) should not exceed max_seq_len (%d)", prompt, output, c.MaxLen)
	}
	return fmt.Sprintf("This model's maximum context length is %d tokens. However, you requested %d tokens (%d in the messages, %d in the completion).", c.MaxLen, prompt+output, prompt, output)
}
