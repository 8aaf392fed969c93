// Package advice says what is unwise about configurations that an engine takes: legal, and
// rarely wanted. It does no I/O.
//
//	for _, sentence := range advice.Of(cfg) {
//		fmt.Println(sentence)
//	}
//
// It is apart from engine, whose rules say what an engine refuses.
package advice

import (
	"fmt"
	"strings"

	"perflab/internal/arch"
	"perflab/internal/engine"
)

// Of says of a configuration that the engine takes what is unwise about it, a
// sentence each. None of them keeps it from being started.
func Of(c engine.Config) []string {
	var list []string
	if e, err := engine.ByName(c.Engine); err != nil || e.MeasuredOnly {
		return nil // Command.Remarks has those of its command
	}
	for _, remark := range []func(*engine.Config) string{
		copiesRemark, latentRemark, denseCopiesRemark, dpAttentionRemark, expertsRemark, allToAllRemark, widenedRemark,
		dispatchRemark, eagerRemark, graphsRemark, guessesRemark, treeRemark, roomRemark, poolRemark, longPromptRemark, iterationRemark,
		dummyRemark, intervalRemark, hostCacheRemark,
	} {
		if text := remark(&c); text != "" {
			list = append(list, text+".")
		}
	}
	return list
}

// copiesRemark: ranks beyond the KV heads keep copies of them.
func copiesRemark(c *engine.Config) string {
	kv, tp := c.Model.KVHeads, c.AttentionTP()
	if c.Model.MLA != nil || kv == 0 || tp <= kv || c.ContextP > 1 {
		return ""
	}
	return fmt.Sprintf("%d KV heads over tp %d: each is kept %d times, and a token takes as much of each rank's cache as with tp %d", kv, tp, tp/kv, kv)
}

// latentRemark: what MLA keeps of a token is not split over heads.
func latentRemark(c *engine.Config) string {
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
func denseCopiesRemark(c *engine.Config) string {
	if c.DP < 2 || c.Model.MoE != nil || c.AttentionDP > 1 {
		return ""
	}
	return fmt.Sprintf("dp %d of a model without experts: %d replicas do the same without a common front end and without waiting for each other", c.DP, c.DP)
}

// dpAttentionRemark: what data-parallel attention is made for, and what turns it off.
func dpAttentionRemark(c *engine.Config) string {
	if c.AttentionDP < 2 || c.Model.MoE != nil || c.Model.MLA != nil {
		return ""
	}
	return fmt.Sprintf("data-parallel attention over %d groups is made for models with experts or a compressed KV cache, and %s has neither", c.AttentionDP, c.Model.Name)
}

// expertsRemark: expert parallelism that does nothing, or gives out unevenly.
func expertsRemark(c *engine.Config) string {
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
func allToAllRemark(c *engine.Config) string {
	if c.EP > 1 || c.AllToAll == "" || c.AllToAll == "none" {
		return ""
	}
	return fmt.Sprintf("%s has no effect without expert_parallel: every rank holds a slice of every expert", c.AllToAll)
}

// hostCacheRemark: what is written as soon as it is computed is in both, so that a host cache
// of less room has nothing that the devices have not.
func hostCacheRemark(c *engine.Config) string {
	if len(c.Tiers) == 0 || c.Tiers[0].WriteBack {
		return ""
	}
	near, err := c.KVBlocks()
	far := c.TierBlocks(c.Tiers[0])
	if err != nil || far > near/max(1, c.Layout().Groups()) {
		return ""
	}
	return fmt.Sprintf("the host cache holds %d tokens, no more than the %d of the devices' own, whose blocks it has too: use a larger host_cache", far*c.Block, near/max(1, c.Layout().Groups())*c.Block)
}

// widenedRemark: formats that the device has no arithmetic for.
func widenedRemark(c *engine.Config) string {
	f := c.Model.ExpertFormat()
	need := map[arch.Format]string{arch.FP8: "8.9", arch.NVFP4: "10.0"}[f]
	if !c.WeightOnly || need == "" {
		return ""
	}
	return fmt.Sprintf("%s has no %s arithmetic, which begins with compute capability %s: the weights take less memory and are multiplied in 16 bit", c.GPU.Title, f, need)
}

// dispatchRemark: DeepEP's kernels for decoding send so many tokens at once and no more.
func dispatchRemark(c *engine.Config) string {
	batch := c.Seqs * max(1, 1+c.SpecTokens) / max(1, c.AttentionDP)
	if c.Dispatch == 0 || batch <= c.Dispatch {
		return ""
	}
	return fmt.Sprintf("max_num_seqs %d lets a rank decode %d tokens at once, and DeepEP sends %d: lower it, or raise SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK", c.Seqs, batch, c.Dispatch)
}

// eagerRemark: a GPU without graphs.
func eagerRemark(c *engine.Config) string {
	if c.GraphMax > 0 || c.GPU.Platform == arch.CPU {
		return ""
	}
	return "CUDA graphs are off: steps of small batches wait for their launches, of small models several times as long as with graphs"
}

// hiddenLaunches is the decode batch above which a step's arithmetic is taken to
// hide what launching it costs; engines capture none larger by themselves.
const hiddenLaunches = 512

// graphsRemark: batches that are larger than the largest graph. vLLM counts tokens.
func graphsRemark(c *engine.Config) string {
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
func guessesRemark(c *engine.Config) string {
	need := c.Seqs * (1 + c.SpecTokens)
	if c.SpecTokens == 0 || c.Batched >= need || c.Engine == "sglang" {
		return ""
	}
	return fmt.Sprintf("max_num_batched_tokens %d is less than max_num_seqs %d x %d tokens of a guess = %d: a full batch leaves guesses out", c.Batched, c.Seqs, 1+c.SpecTokens, need)
}

// treeRemark: SGLang before 0.5.7 takes branching guesses with one backend only.
func treeRemark(c *engine.Config) string {
	if c.Engine != "sglang" || c.SpecTree < 2 || c.Block < 2 {
		return ""
	}
	return fmt.Sprintf("guesses of %d candidates a step with pages of %d tokens: earlier versions refuse them but for attention backend flashinfer", c.SpecTree, c.Block)
}

// roomRemark: what is not in the share of memory must have room beside it: graphs, and
// in SGLang the largest step.
func roomRemark(c *engine.Config) string {
	room, need, known := c.Beside()
	if !known || room >= need {
		return ""
	}
	what := "graphs take"
	if c.Engine == "sglang" {
		what = "the largest step and graphs take"
	}
	return fmt.Sprintf("gpu_memory_utilization %v leaves %.1f GiB beside weights and KV cache, and %s about %.1f: memory may run out, at the start or under load", c.MemoryShare, gib(room), what, gib(need))
}

func gib(bytes int64) float64 { return float64(bytes) / (1 << 30) }

// poolRemark: engines that start with a cache for less than one longest sequence.
func poolRemark(c *engine.Config) string {
	tokens, err := c.KVTokens()
	if err != nil || c.Holds(c.MaxLen) {
		return ""
	}
	return fmt.Sprintf("the KV cache holds %d tokens, fewer than max_model_len %d: requests that long cannot be served", tokens, c.MaxLen)
}

// longPromptRemark: prompts that must be computed in one iteration.
func longPromptRemark(c *engine.Config) string {
	if c.Engine != "trtllm" || c.Chunked || c.Batched >= c.MaxLen {
		return ""
	}
	return fmt.Sprintf("prompts over max_num_batched_tokens %d are refused, though max_model_len is %d: use chunked_prefill", c.Batched, c.MaxLen)
}

// iterationRemark: TensorRT-LLM's limits that do not fit each other.
func iterationRemark(c *engine.Config) string {
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
func dummyRemark(c *engine.Config) string {
	switch {
	case !c.Dummy:
		return ""
	case c.Model.MoE != nil || c.Spec != "":
		return "the weights are made up: what is routed to which expert, and how many guesses are accepted, is not what the model does, and figures depend on it"
	}
	return "the weights are made up: figures are of the arithmetic alone, and answers end by chance"
}

// intervalRemark: tokens that come several at a time.
func intervalRemark(c *engine.Config) string {
	if c.Interval < 2 {
		return ""
	}
	return fmt.Sprintf("streams have a message for every %d tokens: times between tokens (ITL) are those between messages", c.Interval)
}
