package engine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"perflab/internal/arch"
)

// flagRules check what depends on flags that no configuration holds, in the order in
// which the engines do.
func (r *resolver) flagRules() *Rejection {
	for _, rule := range map[string][]func(*resolver) *Rejection{
		"vllm":   {noExpertsRule, balanceRule, dualBatchRule, partialsRule, asyncRule, draftRanksRule, tellingRule, offloadRule},
		"sglang": {backendRule, treeRule, pipelineRule, twoBatchRule, ngramRule, radixRule},
		"trtllm": {moeRanksRule},
	}[r.cfg.Engine] {
		if rej := rule(r); rej != nil {
			return rej
		}
	}
	return nil
}

// on reports whether a switch without a canonical name was given, and not its opposite.
func (r *resolver) on(flag string) bool {
	value, given := r.cmd.extra(flag)
	return given && value != "false"
}

// noExpertsRule: there is nothing to give out, on one rank either.
func noExpertsRule(r *resolver) *Rejection {
	if !r.bool(ExpertParallel, false) || r.cfg.Model.MoE != nil {
		return nil
	}
	return &Rejection{Rule: "experts", Log: "ValueError: Number of experts in the model must be greater than 0 when expert parallelism is enabled.",
		Reason: fmt.Sprintf("%s has no experts to give out: leave expert_parallel off", r.cfg.Model.Name)}
}

// balanceRule: there is nothing to balance without experts on ranks of their own.
func balanceRule(r *resolver) *Rejection {
	c := r.cfg
	switch {
	case !r.on("--enable-eplb"):
		return nil
	case c.GPU.Platform == arch.CPU:
		return &Rejection{Rule: "platform", Log: "ValueError: Expert parallelism load balancing is only supported on CUDA devices or ROCm devices or XPU devices now.",
			Reason: fmt.Sprintf("vLLM balances experts on GPUs, and %s is none: leave --enable-eplb off", c.GPU.Title)}
	case c.EP > 1:
		return nil
	}
	if !r.bool(ExpertParallel, false) {
		return &Rejection{Rule: "experts", Log: "ValueError: enable_expert_parallel must be True to use EPLB.",
			Reason: fmt.Sprintf("--enable-eplb balances whole experts, and each of the %d ranks has a slice of every one: use expert_parallel or leave it off", c.TP*c.DP)}
	}
	pcp := c.GPUs / max(1, c.TP*c.PP*c.DP)
	if r.cmd.AtLeast("0.32") && pcp > 1 { // whose ranks share out experts too
		return nil
	}
	log := fmt.Sprintf("ValueError: EPLB requires tensor_parallel_size or data_parallel_size to be greater than 1, but got TP=%d,DP=%d.", c.TP, c.DP)
	if r.cmd.AtLeast("0.32") {
		log = fmt.Sprintf("ValueError: EPLB requires tensor, prefill-context, or data parallelism, but got TP=%d, PCP=%d, DP=%d.", c.TP, max(1, pcp), c.DP)
	}
	return &Rejection{Rule: "experts", Log: log,
		Reason: fmt.Sprintf("--enable-eplb balances experts over ranks, and tp %d x dp %d is one: use more ranks or leave it off", c.TP, c.DP)}
}

// dualBatchRule: two half batches hide only what DeepEP's kernels send.
func dualBatchRule(r *resolver) *Rejection {
	if !r.on("--enable-dbo") || r.cfg.GPU.Platform == arch.CPU { // where vLLM leaves it off
		return nil
	}
	backend := cmp.Or(r.cfg.AllToAll, envOf(r.cmd.Env, "VLLM_ALL2ALL_BACKEND"), "allgather_reducescatter")
	if !slices.Contains([]string{"allgather_reducescatter", "naive", "pplx"}, backend) {
		return nil
	}
	return &Rejection{Rule: "conflict",
		Reason: fmt.Sprintf("--enable-dbo overlaps the sending of 2 half batches, which all2all backend %s cannot do: use --all2all-backend deepep_low_latency or deepep_high_throughput, or leave it off", backend),
		Log: fmt.Sprintf("ValueError: Microbatching currently only supports the deepep_low_latency and deepep_high_throughput all2all backend. %s is not supported. "+
			"To fix use --all2all-backend=deepep_low_latency or --all2all-backend=deepep_high_throughput and install the DeepEP kernels.", backend)}
}

// partialsRule: vLLM's engine has one prompt in parts at a time, as its sources and
// users say up to 0.24.
func partialsRule(r *resolver) *Rejection {
	if r.cmd.AtLeast("0.25") {
		return nil
	}
	for _, flag := range []string{"--max-num-partial-prefills", "--max-long-partial-prefills"} {
		if n := r.extraInt(flag, 1); n != 1 {
			return &Rejection{Rule: "value", Log: "NotImplementedError: Concurrent Partial Prefill is not supported. We recommend to remove Concurrent Partial Prefill from your config.",
				Reason: fmt.Sprintf("%s %d asks for several prompts in parts at once, and vLLM has 1: leave it out", flag, n)}
		}
	}
	return nil
}

// asyncRule: a step that begins before the last one's tokens are known cannot look
// them up on the host. From 0.33 on the runner that GPUs have by default looks n-grams up
// where they are.
func asyncRule(r *resolver) *Rejection {
	c := r.cfg
	if !r.bool(Overlap, false) || !slices.Contains([]string{"ngram", "suffix", "medusa", "mlp_speculator", "custom_class"}, c.Spec) {
		return nil
	}
	rule, log := "speculative", "ValueError: Currently, async scheduling is only supported with EAGLE/MTP/Draft Model kind of speculative decoding"
	if r.cmd.AtLeast("0.33") {
		older := c.GPU.Platform == arch.CPU || envOf(r.cmd.Env, "VLLM_USE_V2_MODEL_RUNNER") == "0"
		if c.Spec == "ngram" && !older {
			return nil
		}
		rule, log = "conflict", fmt.Sprintf("ValueError: Async scheduling is not supported by the V1 model runner with %s-based speculative decoding.", c.Spec)
	}
	return &Rejection{Rule: rule, Log: log,
		Reason: fmt.Sprintf("guesses of %d tokens by %s need the tokens of the step before, which overlap_scheduling does not wait for: leave one of them off", c.SpecTokens, c.Spec)}
}

// ngramRule: SGLang looks n-grams up on GPUs, and from 0.5.16 on on a CPU too.
func ngramRule(r *resolver) *Rejection {
	c := r.cfg
	if c.Spec != "ngram" || c.GPU.SM > 0 || c.GPU.Platform == arch.ROCm || c.GPU.Platform == arch.CPU && r.cmd.AtLeast("0.5.16") {
		return nil
	}
	return &Rejection{Rule: "speculative", Log: "ValueError: Ngram speculative decoding only supports CUDA device.",
		Reason: fmt.Sprintf("speculation by ngram runs on GPUs only, and %s is none: use mtp or eagle3, or leave speculation off", c.GPU.Title)}
}

// draftRanksRule: a draft model runs on one rank or on all.
func draftRanksRule(r *resolver) *Rejection {
	s, err := parseSpec(r.text(Speculative))
	if err != nil || s.raw == "" {
		return nil
	}
	var given struct {
		Ranks int `json:"draft_tensor_parallel_size"`
	}
	if err := json.Unmarshal([]byte(s.raw), &given); err != nil || given.Ranks == 0 || given.Ranks == 1 || given.Ranks == r.cfg.TP {
		return nil
	}
	return &Rejection{Rule: "draft", Log: fmt.Sprintf("ValueError: speculative_draft_tensor_parallel_size=%d cannot be other value than 1 or target model tensor_parallel_size", given.Ranks),
		Reason: fmt.Sprintf("draft_tensor_parallel_size %d is neither 1 nor tp %d: use one of them", given.Ranks, r.cfg.TP)}
}

// tellingRule: answers can tell of speculation only where there is some.
func tellingRule(r *resolver) *Rejection {
	const flag = "--per-request-spec-decode-metrics"
	if told, _ := r.cmd.extra(flag); told == "" || told == "none" || r.text(Speculative) != "" {
		return nil
	}
	return &Rejection{Rule: "speculative", Log: "ValueError: " + flag + " requires speculative decoding to be enabled (via --speculative-config).",
		Reason: flag + " tells what came of guesses, and 0 tokens are guessed: leave it out or set speculative"}
}

// attentionBackend is SGLang's kernel for decoding, by the first flag that names one.
func (r *resolver) attentionBackend() string {
	decode, _ := r.cmd.extra("--decode-attention-backend")
	both, _ := r.cmd.extra("--attention-backend")
	return cmp.Or(decode, both)
}

// backendPages are the page sizes that SGLang's kernels take. With another one it takes
// the last of them.
var backendPages = map[string][]int{
	"flashmla": {64}, "cutlass_mla": {128}, "trtllm_mla": {32, 64}, "tokenspeed_mla": {32, 64}, "cutedsl_mla": {32, 64}, "trtllm_mha": {16, 32, 64},
}

// page is the size of a page that the attention kernel makes of the one asked for.
func (r *resolver) page(size int) int {
	if pages := backendPages[r.attentionBackend()]; pages != nil && !slices.Contains(pages, size) {
		return pages[len(pages)-1]
	}
	return size
}

// backendRule: kernels that are made for some compute capabilities.
func backendRule(r *resolver) *Rejection {
	g := r.cfg.GPU
	have := fmt.Sprintf("%d.%d", g.SM/10, g.SM%10)
	switch backend := r.attentionBackend(); {
	case g.SM == 0:
		return nil
	case strings.HasPrefix(backend, "trtllm_m") && g.SM < 100:
		return &Rejection{Rule: "compute", Log: fmt.Sprintf("ValueError: %s backend is only supported on Blackwell GPUs (SM100). Please use a different backend.", strings.ToUpper(strings.Replace(backend, "_", " ", 1))),
			Reason: fmt.Sprintf("attention backend %s needs compute capability 10.0, and %s has %s: leave the backend to SGLang", backend, g.Title, have)}
	case backend == "fa3" && (g.SM < 80 || g.SM >= 100 || g.SM < 90 && r.cfg.Model.MLA != nil):
		return &Rejection{Rule: "compute", Log: "AssertionError: FlashAttention v3 Backend requires SM>=80 and SM<=90. Please use `--attention-backend flashinfer`.",
			Reason: fmt.Sprintf("attention backend fa3 needs compute capability 9.0, or 8.x but for a compressed KV cache, and %s has %s: use flashinfer", g.Title, have)}
	}
	return nil
}

// treeRule: which kernels take guesses that branch.
func treeRule(r *resolver) *Rejection {
	c, backend := r.cfg, r.attentionBackend()
	reject := func(log, format string, args ...any) *Rejection {
		return &Rejection{Rule: "speculative", Log: log, Reason: fmt.Sprintf(format, args...)}
	}
	switch {
	case c.SpecTree < 2:
		return nil
	case backend == "trtllm_mha":
		return reject("ValueError: trtllm_mha backend only supports topk = 1 for speculative decoding.",
			"attention backend trtllm_mha takes guesses of 1 candidate a step, and not of %d: use one candidate or another backend", c.SpecTree)
	case backend != "" && c.Block > 1 && !slices.Contains([]string{"flashinfer", "fa3", "triton"}, backend):
		return reject(fmt.Sprintf("ValueError: speculative_eagle_topk(%d) > 1 with page_size(%d) > 1 is unstable and produces incorrect results for paged attention backends. This combination is only supported for the 'flashinfer' backend.", c.SpecTree, c.Block),
			"guesses of %d candidates a step need pages of 1 token with attention backend %s, and they are of %d: use one candidate, block_size 1 or backend flashinfer", c.SpecTree, backend, c.Block)
	}
	return nil
}

// pipelineRule: SGLang's stages do not hand guesses on.
func pipelineRule(r *resolver) *Rejection {
	c := r.cfg
	if mode, _ := r.cmd.extra("--disaggregation-mode"); c.Spec == "" || c.PP < 2 || mode == "prefill" {
		return nil
	}
	return &Rejection{Rule: "speculative", Log: "AssertionError: Pipeline parallelism is not compatible with overlap schedule, speculative decoding, mixed chunked prefill.",
		Reason: fmt.Sprintf("speculation does not go with %d pipeline stages in SGLang: use pp 1 or leave speculation off", c.PP)}
}

// twoBatchRule: two half batches hide the sending of tokens to experts; newer versions
// let them hide that of data-parallel attention too.
func twoBatchRule(r *resolver) *Rejection {
	c := r.cfg
	sends := c.AllToAll != "" && c.AllToAll != "none"
	if !r.on("--enable-two-batch-overlap") || sends || r.on("--enable-dp-attention") && r.cmd.AtLeast("0.5.10") {
		return nil
	}
	return &Rejection{Rule: "conflict", Log: "ValueError: When enabling two batch overlap, moe_a2a_backend cannot be 'none'.",
		Reason: fmt.Sprintf("--enable-two-batch-overlap hides the sending of tokens to experts on the %d ranks, and none are sent: use --moe-a2a-backend deepep or leave it off", c.TP)}
}

// moeRanksRule: the ranks that slice experts times those that share them out are all.
func moeRanksRule(r *resolver) *Rejection {
	c := r.cfg
	slices := int(r.fileNumber("moe_tensor_parallel_size"))
	if slices < 1 || slices*max(c.EP, 1) == c.TP {
		return nil
	}
	return &Rejection{Rule: "experts", Log: fmt.Sprintf("ValueError: moe_tp_size * moe_ep_size (%d) must equal to tp_size %d", slices*max(c.EP, 1), c.TP),
		Reason: fmt.Sprintf("moe_tensor_parallel_size %d x expert_parallel %d = %d is not tp %d: leave it out, which makes it %d", slices, max(c.EP, 1), slices*max(c.EP, 1), c.TP, max(1, c.TP/max(c.EP, 1)))}
}
