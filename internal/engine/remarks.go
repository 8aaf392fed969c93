package engine

import (
	"fmt"
	"strings"

	"perflab/internal/arch"
)

// Remarks says of a configuration that the engine takes what is unwise about it, a
// sentence each. None of them keeps it from being started.
func (c Config) Remarks() []string {
	var list []string
	if e, err := ByName(c.Engine); err != nil || e.MeasuredOnly {
		return nil // Command.Remarks has those of its command
	}
	for _, remark := range []func(*Config) string{
		copiesRemark, latentRemark, denseCopiesRemark, dpAttentionRemark, expertsRemark, allToAllRemark, widenedRemark,
		dispatchRemark, eagerRemark, graphsRemark, guessesRemark, treeRemark, roomRemark, poolRemark, longPromptRemark, iterationRemark,
		dummyRemark, intervalRemark,
	} {
		if text := remark(&c); text != "" {
			list = append(list, text+".")
		}
	}
	return list
}

// copiesRemark: ranks beyond the KV heads keep copies of them.
func copiesRemark(c *Config) string {
	kv, tp := c.Model.KVHeads, c.attentionTP()
	if c.Model.MLA != nil || kv == 0 || tp <= kv || c.ContextP > 1 {
		return ""
	}
	return fmt.Sprintf("%d KV heads over tp %d: each is kept %d times, and a token takes as much of each rank's cache as with tp %d", kv, tp, tp/kv, kv)
}

// latentRemark: what MLA keeps of a token is not split over heads.
func latentRemark(c *Config) string {
	if c.Model.MLA == nil || c.TP < 2 || c.AttentionDP > 1 || c.ContextP > 1 {
		return ""
	}
	text := fmt.Sprintf("each of the %d tensor-parallel ranks keeps the whole compressed KV cache", c.TP)
	if c.Engine == "sglang" {
		text += fmt.Sprintf(": data-parallel attention (attention_dp with dp %d) keeps each token once", c.TP)
	}
	return text
}

// denseCopiesRemark: without experts to share, copies behind one front end are replicas.
func denseCopiesRemark(c *Config) string {
	if c.DP < 2 || c.Model.MoE != nil || c.AttentionDP > 1 {
		return ""
	}
	return fmt.Sprintf("dp %d of a model without experts: %d replicas do the same without a common front end and without waiting for each other", c.DP, c.DP)
}

// dpAttentionRemark: what data-parallel attention is made for, and what turns it off.
func dpAttentionRemark(c *Config) string {
	if c.AttentionDP < 2 || c.Model.MoE != nil || c.Model.MLA != nil {
		return ""
	}
	return fmt.Sprintf("data-parallel attention over %d groups is made for models with experts or a compressed KV cache, and %s has neither", c.AttentionDP, c.Model.Name)
}

// expertsRemark: expert parallelism that does nothing, or gives out unevenly.
func expertsRemark(c *Config) string {
	moe := c.Model.MoE
	switch {
	case c.EP < 2:
		return ""
	case moe == nil:
		return fmt.Sprintf("%s has no experts to give out: expert_parallel has no effect", c.Model.Name)
	case moe.Experts%c.EP != 0:
		return fmt.Sprintf("%d experts over %d ranks: some ranks hold %d and others %d, and all wait for the fullest", moe.Experts, c.EP, moe.Experts/c.EP+1, moe.Experts/c.EP)
	}
	return ""
}

// allToAllRemark: a way to reach experts on other ranks, with none there.
func allToAllRemark(c *Config) string {
	if c.EP > 1 || c.AllToAll == "" || c.AllToAll == "none" {
		return ""
	}
	return fmt.Sprintf("%s has no effect without expert_parallel: every rank holds a slice of every expert", c.AllToAll)
}

// widenedRemark: formats that the device has no arithmetic for.
func widenedRemark(c *Config) string {
	f := c.Model.ExpertFormat()
	need := map[arch.Format]string{arch.FP8: "8.9", arch.NVFP4: "10.0"}[f]
	if !c.WeightOnly || need == "" {
		return ""
	}
	return fmt.Sprintf("%s has no %s arithmetic, which begins with compute capability %s: the weights take less memory and are multiplied in 16 bit", c.GPU.Title, f, need)
}

// dispatchRemark: DeepEP's kernels for decoding send so many tokens at once and no more.
func dispatchRemark(c *Config) string {
	batch := c.Seqs * max(1, 1+c.SpecTokens) / max(1, c.AttentionDP)
	if c.Dispatch == 0 || batch <= c.Dispatch {
		return ""
	}
	return fmt.Sprintf("max_num_seqs %d lets a rank decode %d tokens at once, and DeepEP sends %d: lower it, or raise SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK", c.Seqs, batch, c.Dispatch)
}

// eagerRemark: a GPU without graphs.
func eagerRemark(c *Config) string {
	if c.GraphMax > 0 || c.GPU.Platform == arch.CPU {
		return ""
	}
	return "CUDA graphs are off: steps of small batches wait for their launches, of small models several times as long as with graphs"
}

// hiddenLaunches is the decode batch above which a step's arithmetic is taken to
// hide what launching it costs; engines capture none larger by themselves.
const hiddenLaunches = 512

// graphsRemark: batches that are larger than the largest graph. vLLM counts tokens.
func graphsRemark(c *Config) string {
	batch, unit := c.Seqs, "requests"
	if c.Engine == "vllm" {
		batch, unit = c.Seqs*(1+c.SpecTokens), "tokens"
	}
	switch {
	case c.GraphMax > 2*batch && c.Engine == "vllm": // which doubles the batch by itself; others leave the rest out
		return fmt.Sprintf("graphs of up to %d tokens are captured and max_num_seqs %d allows %d: the larger ones take memory and time at the start, and never run", c.GraphMax, c.Seqs, batch)
	case c.GraphMax == 0 || c.GraphMax >= min(batch, hiddenLaunches):
		return ""
	}
	return fmt.Sprintf("graphs cover decode batches of up to %d %s and max_num_seqs %d allows %d: raise max_cudagraph_capture_size to the batch you expect", c.GraphMax, unit, c.Seqs, batch)
}

// guessesRemark: a full batch needs room for every guess.
func guessesRemark(c *Config) string {
	need := c.Seqs * (1 + c.SpecTokens)
	if c.SpecTokens == 0 || c.Batched >= need || c.Engine == "sglang" {
		return ""
	}
	return fmt.Sprintf("max_num_batched_tokens %d is less than max_num_seqs %d x %d tokens of a guess = %d: a full batch leaves guesses out", c.Batched, c.Seqs, 1+c.SpecTokens, need)
}

// treeRemark: SGLang before 0.5.7 takes branching guesses with one backend only.
func treeRemark(c *Config) string {
	if c.Engine != "sglang" || c.SpecTree < 2 || c.Block < 2 {
		return ""
	}
	return fmt.Sprintf("guesses of %d candidates a step with pages of %d tokens: earlier versions refuse them but for attention backend flashinfer", c.SpecTree, c.Block)
}

// roomRemark: what is not in the share of memory must have room beside it: graphs, and
// in SGLang the largest step.
func roomRemark(c *Config) string {
	room, need, what := c.deviceBytes(), c.graphBytes(), "graphs take"
	switch {
	case c.KVSpace > 0 || c.GPU.SM == 0:
		return ""
	case c.Engine == "vllm":
		room -= int64(c.MemoryShare * float64(room))
	case c.Engine == "sglang":
		room -= c.libraryBytes()
		room -= int64(c.MemoryShare * float64(room))
		need, what = need+c.activationBytes(), "the largest step and graphs take"
	default:
		return ""
	}
	if room >= need {
		return ""
	}
	return fmt.Sprintf("gpu_memory_utilization %v leaves %.1f GiB beside weights and KV cache, and %s about %.1f: memory may run out, at the start or under load", c.MemoryShare, gib(room), what, gib(need))
}

// poolRemark: engines that start with a cache for less than one longest sequence.
func poolRemark(c *Config) string {
	tokens, err := c.KVTokens()
	if err != nil || c.holds(c.MaxLen) {
		return ""
	}
	return fmt.Sprintf("the KV cache holds %d tokens, fewer than max_model_len %d: requests that long cannot be served", tokens, c.MaxLen)
}

// longPromptRemark: prompts that must be computed in one iteration.
func longPromptRemark(c *Config) string {
	if c.Engine != "trtllm" || c.Chunked || c.Batched >= c.MaxLen {
		return ""
	}
	return fmt.Sprintf("prompts over max_num_batched_tokens %d are refused, though max_model_len is %d: use chunked_prefill", c.Batched, c.MaxLen)
}

// iterationRemark: TensorRT-LLM's limits that do not fit each other.
func iterationRemark(c *Config) string {
	if c.Engine != "trtllm" {
		return ""
	}
	var parts []string
	if c.Batched < c.Seqs {
		parts = append(parts, fmt.Sprintf("max_num_batched_tokens %d is less than max_num_seqs %d, and each request needs a token an iteration", c.Batched, c.Seqs))
	}
	if c.Block > 0 && c.Batched%c.Block != 0 {
		parts = append(parts, fmt.Sprintf("max_num_batched_tokens %d is not a multiple of the %d tokens of a KV block", c.Batched, c.Block))
	}
	return strings.Join(parts, ", and ")
}

// dummyRemark: made-up weights answer nothing.
func dummyRemark(c *Config) string {
	switch {
	case !c.Dummy:
		return ""
	case c.Model.MoE != nil || c.Spec != "":
		return "the weights are made up: what is routed to which expert, and how many guesses are accepted, is not what the model does, and figures depend on it"
	}
	return "the weights are made up: figures are of the arithmetic alone, and answers end by chance"
}

// intervalRemark: tokens that come several at a time.
func intervalRemark(c *Config) string {
	if c.Interval < 2 {
		return ""
	}
	return fmt.Sprintf("streams have a message for every %d tokens: times between tokens (ITL) are those between messages", c.Interval)
}

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
	if c.MaxLen > 0 && total > c.MaxLen {
		return reject("request-len", c.longLog(prompt, output),
			"a request of %d prompt and %d output tokens is %d tokens long, over max_model_len %d: raise max_model_len or shorten the workload", prompt, output, total, c.MaxLen)
	}
	if c.Engine == "trtllm" && !c.Chunked && prompt > c.Batched {
		return reject("prompt-len", fmt.Sprintf("The sum of prompt length (%d.0), query length (0) should not exceed max_num_tokens (%d)", prompt, c.Batched),
			"a prompt of %d tokens is over max_num_batched_tokens %d while prefill is not chunked: use chunked_prefill or max_num_batched_tokens %d", prompt, c.Batched, roundUp(prompt, max(c.Block, 1)))
	}
	if tokens, err := c.KVTokens(); err == nil && !c.holds(prompt) {
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
func (c *Config) holds(n int) bool {
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
