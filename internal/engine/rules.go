package engine

import (
	"fmt"
	"slices"
	"strconv"

	"perflab/internal/arch"
)

// rules are the checks an engine makes before it loads weights, in the order in
// which it makes them. Memory comes last and apart, as it needs a length.
func rules() []func(c *Config, gpus int) *Rejection {
	return []func(*Config, int) *Rejection{
		platformRule, gpuRule, layerRule, dpAttentionRule, contextRule, headRule, kvHeadRule, expertRule, widthRule, fp8BlockRule, quantGroupRule,
		computeRule, lengthRule, limitRule, pageRule, specRule, graphRule, hostRule,
	}
}

func gpuRule(c *Config, gpus int) *Rejection {
	if max(c.GPUs, c.TP, c.PP, c.DP) <= gpus { // the product of absurd ones overflows
		return nil
	}
	log := "torch.AcceleratorError: CUDA error: invalid device ordinal"
	if c.Engine == "vllm" {
		log = fmt.Sprintf("ValueError: World size (%d) is larger than the number of available GPUs (%d) in this node.", c.GPUs, gpus)
	}
	sizes := fmt.Sprintf("tp %d x pp %d x dp %d", c.TP, c.PP, c.DP)
	if n := c.GPUs / max(1, c.TP*c.PP*c.DP); n > 1 {
		sizes += fmt.Sprintf(" x context parallel %d", n)
	}
	return &Rejection{Rule: "gpus", Log: log,
		Reason: fmt.Sprintf("the configuration takes %d GPUs (%s), and there are %d: use a smaller tp, pp or dp", c.GPUs, sizes, gpus)}
}

func layerRule(c *Config, _ int) *Rejection {
	if c.PP <= c.Model.Layers {
		return nil
	}
	return &Rejection{Rule: "layers", Log: fmt.Sprintf("ValueError: %d is not divisible by %d", c.Model.Layers, c.PP),
		Reason: fmt.Sprintf("%d layers cannot be split over %d pipeline stages: use pp of at most %d", c.Model.Layers, c.PP, c.Model.Layers)}
}

func headRule(c *Config, _ int) *Rejection {
	if c.Model.Heads%c.AttentionTP() == 0 {
		return nil
	}
	log := map[string]string{
		"vllm":   fmt.Sprintf("Value error, Total number of attention heads (%d) must be divisible by tensor parallel size (%d).", c.Model.Heads, c.TP),
		"sglang": fmt.Sprintf("AssertionError: %d is not divisible by %d", c.Model.Heads, c.TP),
		"trtllm": fmt.Sprintf("AssertionError: num_attention_heads (%d) must be divisible by tp_size (%d)", c.Model.Heads, c.TP),
	}[c.Engine]
	return &Rejection{Rule: "heads", Log: log,
		Reason: fmt.Sprintf("%d attention heads cannot be divided over tp %d%s", c.Model.Heads, c.TP, c.otherTP())}
}

// kvHeadRule: KV heads are split over the ranks, or each is copied to a whole number of them.
func kvHeadRule(c *Config, _ int) *Rejection {
	kv := c.Model.KVHeads
	if kvHeadsFit(c.Model, c.AttentionTP()) {
		return nil
	}
	return &Rejection{Rule: "kv-heads", Log: fmt.Sprintf("AssertionError: %d is not divisible by %d", max(kv, c.TP), min(kv, c.TP)),
		Reason: fmt.Sprintf("%d KV heads can neither be divided over tp %d nor copied evenly%s", kv, c.TP, c.otherTP())}
}

func kvHeadsFit(m arch.Model, tp int) bool {
	return m.MLA != nil || m.KVHeads%tp == 0 || tp%m.KVHeads == 0
}

func expertRule(c *Config, _ int) *Rejection {
	if c.EP <= 1 {
		return nil
	}
	moe := c.Model.MoE
	reject := func(log, format string, args ...any) *Rejection {
		return &Rejection{Rule: "experts", Reason: fmt.Sprintf(format, args...), Log: log}
	}
	switch {
	case moe == nil: // it has no effect, or noExpertsRule refuses it
		return nil
	case moe.Experts < c.EP:
		return reject(fmt.Sprintf("ValueError: %d is not divisible by %d", moe.Experts, c.EP),
			"%d experts cannot be given out over %d ranks: use at most %d", moe.Experts, c.EP, moe.Experts)
	case moe.Experts%c.EP != 0 && c.Engine != "vllm": // which gives some ranks one more
		return reject(fmt.Sprintf("ValueError: %d is not divisible by %d", moe.Experts, c.EP),
			"%d experts cannot be given out evenly over %d ranks: use a number of ranks that divides them", moe.Experts, c.EP)
	case c.Engine == "sglang" && c.TP%c.EP != 0:
		return reject(fmt.Sprintf("AssertionError: tp_size %d must be divisible by ep_size %d", c.TP, c.EP),
			"expert_parallel %d must divide tp %d: use true, which takes all %[2]d ranks", c.EP, c.TP)
	case c.Engine == "trtllm" && c.TP%c.EP != 0:
		return reject(fmt.Sprintf("ValueError: moe_tp_size * moe_ep_size (%d) must equal to tp_size %d", c.EP, c.TP),
			"expert_parallel %d must divide tp %d: use true, which takes all %[2]d ranks", c.EP, c.TP)
	}
	return nil
}

// splits are the widths that tensor parallelism cuts: dense and shared
// feed-forwards by tp, routed experts by what expert parallelism leaves of it.
func (c *Config) splits() []split {
	m := c.Model
	s := []split{{"attention output", m.Heads * m.HeadDim, c.AttentionTP()}}
	if m.FFN > 0 && m.DenseLayers() > 0 {
		s = append(s, split{"intermediate_size", m.FFN, c.TP})
	}
	if m.MoE != nil {
		moeTP := max(1, c.TP/max(c.EP, 1))
		s = append(s, split{routedWidth, m.MoE.Hidden, moeTP})
		if m.MoE.SharedDim > 0 {
			s = append(s, split{"shared expert", m.MoE.SharedDim, c.TP})
		}
	}
	return s
}

const routedWidth = "moe_intermediate_size"

type split struct {
	what  string
	width int
	ways  int
}

// uneven finds the first width whose share is not whole blocks.
func (c *Config) uneven(block int) (split, bool) {
	for _, s := range c.splits() {
		if s.ways > 1 && s.width%(s.ways*block) != 0 {
			return s, true
		}
	}
	return split{}, false
}

// widthRule: a rank holds whole columns.
func widthRule(c *Config, _ int) *Rejection {
	s, ok := c.uneven(1)
	if !ok {
		return nil
	}
	log := fmt.Sprintf("AssertionError: %d is not divisible by %d", s.width, s.ways)
	if c.Engine == "sglang" && s.what == routedWidth {
		log = fmt.Sprintf("ValueError: moe_intermediate_size %d must be divisible by moe_tp_size (%d) which is tp_size (%d) divided by moe_ep_size (%d).", s.width, s.ways, c.TP, c.EP)
	}
	return &Rejection{Rule: "divide", Log: log,
		Reason: fmt.Sprintf("%s of %d cannot be divided over %d ranks%s", s.what, s.width, s.ways, c.otherTP())}
}

// fp8BlockRule: FP8 scales belong to blocks, which a rank must hold whole.
func fp8BlockRule(c *Config, _ int) *Rejection {
	block := c.Model.QuantBlock
	if c.Model.Format != arch.FP8 || block <= 1 {
		return nil
	}
	s, ok := c.uneven(block)
	if !ok {
		return nil
	}
	log := fmt.Sprintf("ValueError: The output_size of gate's and up's weight = %d is not divisible by weight quantization block_n = %d.", s.width/s.ways, block)
	if c.Engine == "sglang" && s.what == routedWidth {
		log = fmt.Sprintf("ValueError: For quantized MoE models, please make sure (moe_intermediate_size=%d / moe_tp_size=%d) %% weight_block_size_n=%d == 0 where moe_tp_size is equal to tp_size (%d) divided by ep_size (%d). You can fix this by setting arguments `--tp` and `--ep` correctly.",
			s.width, s.ways, block, c.TP, c.EP)
	}
	return &Rejection{Rule: "fp8-block", Log: log,
		Reason: fmt.Sprintf("%s %d / tp %d = %s is not divisible by the FP8 block of %d%s", s.what, s.width, s.ways, s.part(), block, c.otherSplit(s))}
}

// quantGroupRule: AWQ and GPTQ scale groups of 128, NVFP4 groups of 16 inputs.
func quantGroupRule(c *Config, _ int) *Rejection {
	group := quantGroups[c.Model.Format]
	if group == 0 {
		return nil
	}
	s, ok := c.uneven(group)
	if !ok {
		return nil
	}
	return &Rejection{Rule: "quant-group",
		Reason: fmt.Sprintf("%s %d / tp %d = %s is not divisible by the %s group of %d%s", s.what, s.width, s.ways, s.part(), c.Model.Format, group, c.otherSplit(s)),
		Log:    fmt.Sprintf("ValueError: The input size %d is not aligned with the quantized weight shape. This can be caused by too large tensor parallel size: %d is not divisible by %d", s.width/s.ways, s.width/s.ways, group)}
}

// quantGroups are how many inputs share a scale in formats that have groups.
var quantGroups = map[arch.Format]int{arch.INT4: 128, arch.NVFP4: 16}

// part is what a rank holds of a width.
func (s split) part() string {
	return strconv.FormatFloat(float64(s.width)/float64(s.ways), 'f', -1, 64)
}

// otherSplit names what would divide a width: expert parallelism, where that keeps
// experts whole and breaks no rule, and the largest smaller tp.
func (c *Config) otherSplit(s split) string {
	whole := *c
	whole.EP = c.TP
	if c.Engine == "vllm" {
		whole.EP = c.TP * c.DP
	}
	switch tp := c.smallerTP(); {
	case s.what != routedWidth || c.EP > 1 || !whole.divides():
		return c.otherTP()
	case tp == 0:
		return ": use expert_parallel"
	default:
		return fmt.Sprintf(": use expert_parallel or tp %d", tp)
	}
}

func (c *Config) otherTP() string {
	if tp := c.smallerTP(); tp > 0 {
		return fmt.Sprintf(": use tp %d", tp)
	}
	return ": no smaller tp divides it and has room for the weights, use another checkpoint or more pipeline stages"
}

// smallerTP is the largest smaller tp that breaks no rule of division and has room
// for the weights; 0 where there is none.
func (c *Config) smallerTP() int {
	for tp := c.TP - 1; tp > 0; tp-- {
		other := *c
		other.TP = tp
		if c.EP > 1 { // whether by a switch or a number, its ranks go along with tp
			other.EP = max(1, c.EP*tp/c.TP)
		}
		if other.divides() && (!c.GPU.Known() || other.weightBytes()+other.libraryBytes() <= other.deviceBytes()) {
			return tp
		}
	}
	return 0
}

// divides reports whether all that tensor parallelism cuts comes out whole.
func (c *Config) divides() bool {
	block := max(1, quantGroups[c.Model.Format])
	if c.Model.Format == arch.FP8 {
		block = max(1, c.Model.QuantBlock)
	}
	_, odd := c.uneven(block)
	return c.TP%max(1, c.AttentionDP) == 0 && c.Model.Heads%c.AttentionTP() == 0 && kvHeadsFit(c.Model, c.AttentionTP()) && !odd
}

// platformRule: TensorRT-LLM runs on NVIDIA's devices alone, and vLLM knows formats
// by the platform.
func platformRule(c *Config, _ int) *Rejection {
	if c.GPU.SM > 0 {
		return nil
	}
	f := c.Model.Format
	switch {
	case c.Engine == "trtllm":
		return &Rejection{Rule: "platform", Log: "RuntimeError: Found no NVIDIA driver on your system.",
			Reason: fmt.Sprintf("TensorRT-LLM runs on NVIDIA GPUs, and %s is none: use vLLM or SGLang", c.GPU.Title)}
	case c.Engine == "vllm" && slices.Contains(unknownFormats[c.GPU.Platform], f):
		return &Rejection{Rule: "platform", Log: fmt.Sprintf("ValueError: %s quantization is currently not supported in %s.", f, c.GPU.Platform),
			Reason: fmt.Sprintf("vLLM has no %s kernels for %s: use a 16-bit checkpoint", f, c.GPU.Title)}
	}
	return nil
}

// unknownFormats are the weight formats that vLLM's platforms leave out of their lists, and
// on a CPU those that it has no kernels for: a launch with FP8 ends while it loads.
var unknownFormats = map[arch.Platform][]arch.Format{
	arch.ROCm: {arch.NVFP4},
	arch.NPU:  {arch.FP8, arch.NVFP4, arch.MXFP4, arch.INT4},
	arch.CPU:  {arch.FP8, arch.NVFP4, arch.MXFP4},
}

// computeRule: vLLM runs FP8 and NVFP4 checkpoints on older devices by widening
// the weights, SGLang FP8 ones on a CPU; otherwise SGLang and TensorRT-LLM do not start.
func computeRule(c *Config, _ int) *Rejection {
	f := c.Model.Format
	if c.Engine == "vllm" || !c.WeightOnly || f != arch.FP8 && f != arch.NVFP4 || c.GPU.Platform == arch.CPU && f == arch.FP8 {
		return nil
	}
	need := map[arch.Format]string{arch.FP8: "8.9", arch.NVFP4: "10.0"}[f]
	have := fmt.Sprintf("%d.%d", c.GPU.SM/10, c.GPU.SM%10)
	if c.GPU.SM == 0 {
		have = "none"
	}
	log := fmt.Sprintf("RuntimeError: %s quantization requires compute capability %s or newer, found %s", f, need, have)
	if c.Engine == "sglang" && f == arch.FP8 {
		log = "ValueError: type fp8e4nv not supported in this architecture. The supported fp8 dtypes are ('fp8e4b15', 'fp8e5')"
	}
	return &Rejection{Rule: "compute", Log: log,
		Reason: fmt.Sprintf("%s weights need compute capability %s in %s, and %s has %s: use a 16-bit or 4-bit integer checkpoint, or vLLM", f, need, c.Engine, c.GPU.Title, have)}
}

// lengthRule: a length over the model's own is refused by vLLM and SGLang; TensorRT-LLM takes it.
func lengthRule(c *Config, _ int) *Rejection {
	if c.MaxLen <= c.Model.MaxLen || c.Engine == "trtllm" {
		return nil
	}
	log := fmt.Sprintf("ValueError: User-specified max_model_len (%d) is greater than the derived max_model_len (max_position_embeddings=%d or model_max_length=None in model's config.json).", c.MaxLen, c.Model.MaxLen)
	if c.Engine == "sglang" {
		log = fmt.Sprintf("ValueError: User-specified context_length (%d) is greater than the derived context_length (%d).", c.MaxLen, c.Model.MaxLen)
	}
	return &Rejection{Rule: "max-len", Log: log,
		Reason: fmt.Sprintf("max_model_len %d is more than the %d that %s was made for: use at most that, or leave it out", c.MaxLen, c.Model.MaxLen, c.Model.Name)}
}

func limitRule(c *Config, _ int) *Rejection {
	if c.Engine != "vllm" {
		return nil
	}
	if c.Batched < c.Seqs {
		return &Rejection{Rule: "limits",
			Reason: fmt.Sprintf("max_num_batched_tokens %d is less than max_num_seqs %d, and each sequence needs a token a step: use at least as many tokens", c.Batched, c.Seqs),
			Log:    fmt.Sprintf("ValueError: max_num_batched_tokens (%d) must be greater than or equal to max_num_seqs (%d).", c.Batched, c.Seqs)}
	}
	if !c.Chunked && c.Batched < c.MaxLen {
		return &Rejection{Rule: "limits",
			Reason: fmt.Sprintf("max_num_batched_tokens %d is less than max_model_len %d while prefill is not chunked: use chunked_prefill, or at least %[2]d", c.Batched, c.MaxLen),
			Log:    fmt.Sprintf("ValueError: max_num_batched_tokens (%d) is smaller than max_model_len (%d). This effectively limits the maximum sequence length to max_num_batched_tokens.", c.Batched, c.MaxLen)}
	}
	return nil
}

// memoryRule: weights must fit, some cache must be left, and vLLM insists on room
// for one sequence of the longest length. SGLang and TensorRT-LLM start with less
// and refuse long requests later. Of a device without figures only a cache whose size was
// given is judged.
func memoryRule(c *Config) *Rejection {
	if !c.GPU.Known() && c.KVSpace == 0 {
		return nil
	}
	if c.GPU.Known() && c.weightBytes()+c.libraryBytes() > c.deviceBytes() {
		return &Rejection{Rule: "weights", Log: fmt.Sprintf("torch.OutOfMemoryError: CUDA out of memory. GPU 0 has a total capacity of %.2f GiB.", c.GPU.MemoryGiB),
			Reason: fmt.Sprintf("the weights take %.1f GiB per GPU and %s has %.1f: use more GPUs or a smaller format", gib(c.weightBytes()), c.GPU.Title, c.GPU.MemoryGiB)}
	}
	if _, err := c.KVBlocks(); err != nil {
		return noMemory(c)
	}
	need := c.needBytes(c.MaxLen)
	pool := c.KVPoolBytes()
	if c.Engine != "vllm" || need <= pool && c.MaxLen > 0 {
		return nil
	}
	fit := c.fitLen(c.MaxLen)
	return &Rejection{Rule: "kv-memory",
		Reason: fmt.Sprintf("one sequence of max_model_len %d needs %.2f GiB of KV cache and %.2f GiB are left: use max_model_len of at most %d, more memory or more GPUs", c.MaxLen, gib(need), gib(pool), fit),
		Log: fmt.Sprintf("ValueError: To serve at least one request with the models's max seq len (%d), (%.2f GiB KV cache is needed, which is larger than the available KV cache memory (%.2f GiB). Based on the available memory, the estimated maximum model length is %d. Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.",
			c.MaxLen, gib(need), gib(pool), fit)}
}
