package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/arch"
)

// Resolve fills in every default for a model on gpus devices of kind g, or says
// by a *Rejection why the engine would refuse to start. Other errors mean that
// the command cannot be resolved at all.
func (c Command) Resolve(m arch.Model, g arch.Accelerator, gpus int) (Config, error) {
	if c.Pools().Split() {
		return c.resolvePools(gpus, func(one Command) (Config, error) { return one.Resolve(m, g, gpus) })
	}
	e, err := ByName(c.Engine)
	if err != nil {
		return Config{}, err
	}
	if rej := c.Fit(); rej != nil {
		return Config{}, rej
	}
	if err := c.Modelled(); err != nil {
		return Config{}, err
	}
	if !g.Known() {
		return Config{}, fmt.Errorf("nothing is known of %s but that it is there: what %s would do needs a device with figures, see perflab sim --list", g.Title, e.Title)
	}
	return c.resolve(e, m, g, gpus)
}

// Outlined reports whether of the engine on such a device nothing can be predicted:
// its commands are outlined, started and measured.
func (e *Engine) Outlined(g arch.Accelerator) bool { return e.MeasuredOnly || !g.Known() }

// Outline is what a command says where nothing can be predicted of it: of an engine that
// is measured only, limits, name and address, and the devices that one copy occupies of
// those there are, without a model; of vLLM and SGLang on a device without figures, all that does
// not follow from the device's memory. A broken rule is a *Rejection.
func (c Command) Outline(m arch.Model, g arch.Accelerator, devices int) (Config, error) {
	if c.Pools().Split() {
		return c.resolvePools(devices, func(one Command) (Config, error) { return one.Outline(m, g, devices) })
	}
	e, err := ByName(c.Engine)
	switch {
	case err != nil:
		return Config{}, err
	case e.MeasuredOnly:
		return llamaServer{c}.outline(e, g, devices)
	case e.Name == "trtllm" || g.Known():
		return c.Resolve(m, g, devices)
	}
	if rej := c.Fit(); rej != nil {
		return Config{}, rej
	}
	return c.resolve(e, m, g, devices)
}

// resolve is Resolve of a command that its version has all flags of. What follows from
// the device's memory is left out where that is not known.
func (c Command) resolve(e *Engine, m arch.Model, g arch.Accelerator, gpus int) (Config, error) {
	cfg := Config{Engine: c.Engine, Model: m, GPU: g, EP: 1, Host: cmp.Or(c.Host, e.DefaultHost), Port: cmp.Or(c.Port, e.DefaultPort)}
	r := &resolver{engine: e, cmd: c, cfg: &cfg}
	r.common()
	if r.err != nil {
		return Config{}, r.err
	}
	switch e.Name {
	case "vllm":
		resolveVLLM(r)
	case "sglang":
		resolveSGLang(r)
	case "trtllm":
		resolveTRTLLM(r)
	}
	if r.bool(Eager, false) {
		cfg.GraphMax, cfg.PromptGraphs = 0, 0
	}
	r.space()
	cfg.align()
	r.tiers()
	if r.err != nil {
		return Config{}, r.err
	}
	for _, rule := range rules() {
		if rej := rule(&cfg, gpus); rej != nil {
			return Config{}, rej
		}
	}
	if rej := r.flagRules(); rej != nil {
		return Config{}, rej
	}
	if r.text(MaxModelLen) == "auto" && (g.Known() || cfg.KVSpace > 0) {
		cfg.MaxLen = cfg.fitLen(cfg.MaxLen)
	}
	if rej := memoryRule(&cfg); rej != nil {
		return Config{}, rej
	}
	return cfg, nil
}

// common resolves what every engine has alike.
func (r *resolver) common() {
	c := r.cfg
	r.ranges()
	c.TP, c.PP, c.DP = r.int(TP, 1), r.int(PP, 1), r.int(DP, 1)
	c.GPUs = r.cmd.World()
	c.MaxLen = c.Model.MaxLen
	if r.text(MaxModelLen) != "auto" {
		c.MaxLen = r.int(MaxModelLen, c.Model.MaxLen)
		r.atLeastOne(MaxModelLen, c.MaxLen)
	}
	c.KVBytes = r.kvBytes()
	c.ServedName = r.cmd.Model
	for _, flag := range []string{"--served-model-name", "--served_model_name"} {
		if names, _ := r.cmd.extraValues(flag); len(names) > 0 && names[0] != "" {
			c.ServedName, c.Aliases = names[0], names[1:]
		}
	}
	r.quantise()
	r.speculate()
	r.further()
	c.WeightOnly = widened(c.Model.ExpertFormat(), c.GPU)
}

// space reads a size of the KV cache given by hand: of vLLM's flag in bytes, on a
// CPU of its environment in GiB. Unset it is 4 GiB on a CPU, half of a NUMA node's
// memory from 0.13, and what the memory share leaves from 0.20, as on a GPU.
func (r *resolver) space() {
	if r.cmd.Engine != "vllm" {
		return
	}
	if v, given := r.cmd.extra("--kv-cache-memory-bytes"); given {
		n, ok := r.engine.cli.int(v)
		if !ok || n < 1 {
			r.outside("kv_cache_memory_bytes", "of at least 1", v)
		}
		r.cfg.KVSpace = int64(n)
	}
	if r.cfg.GPU.Platform != arch.CPU {
		return
	}
	for _, e := range r.cmd.Env {
		if v, ok := strings.CutPrefix(e, "VLLM_CPU_KVCACHE_SPACE="); ok {
			n, err := strconv.ParseInt(v, 10, 32)
			if err != nil || n < 1 {
				r.outside("VLLM_CPU_KVCACHE_SPACE", "of at least 1", v)
			}
			r.cfg.KVSpace = n * gibibyte
		}
	}
	switch {
	case r.cfg.KVSpace > 0 || r.cmd.AtLeast("0.20"):
	case r.cmd.AtLeast("0.13"):
		r.cfg.KVSpace = r.cfg.deviceBytes() / 2
	default:
		r.cfg.KVSpace = 4 * gibibyte
	}
}

// ranges refuses values outside a parameter's limits, as the engine's own
// validation does.
func (r *resolver) ranges() {
	for i := range r.engine.Params {
		p := &r.engine.Params[i]
		v := r.text(p.Name)
		if v == "" || p.Kind != Int && p.Kind != Float {
			continue
		}
		f, err := strconv.ParseFloat(v, 64)
		if err != nil || !(f >= p.Min) || p.Max > 0 && f > p.Max { // not a number is in no range
			limit := fmt.Sprintf("of at least %v", p.Min)
			if p.Max > 0 {
				limit = fmt.Sprintf("from %v to %v", p.Min, p.Max)
			}
			r.outside(p.Name, limit, v)
		}
	}
}

func (r *resolver) kvBytes() int {
	v := r.text(KVDtype)
	switch {
	case v == "" || slices.Contains([]string{"auto", "float16", "bfloat16", "bf16"}, v):
		return 2
	case strings.HasPrefix(v, "fp8") && v != "fp8_ds_mla" || v == "int8_per_token_head":
		return 1
	}
	r.fail(fmt.Errorf("%s=%s is not modelled: use auto or fp8", KVDtype, v))
	return 2
}

// quantisations are the --quantization names that go with a checkpoint's format.
var quantisations = map[arch.Format][]string{
	arch.FP8:   {"fp8", "compressed-tensors", "modelopt", "modelopt_fp8", "w8a8_fp8", "fbgemm_fp8", "marlin"},
	arch.INT4:  {"awq", "awq_marlin", "gptq", "gptq_marlin", "marlin", "compressed-tensors", "moe_wna16", "auto-round"},
	arch.NVFP4: {"modelopt", "modelopt_fp4", "modelopt_mixed", "nvfp4", "compressed-tensors", "petit_nvfp4"},
	arch.MXFP4: {"mxfp4", "gpt_oss_mxfp4"},
}

// quantise applies --quantization: FP8 of a 16-bit checkpoint happens on loading,
// anything else must agree with the checkpoint.
func (r *resolver) quantise() {
	m, v := &r.cfg.Model, r.text(Quantization)
	switch {
	case v == "" || slices.Contains(quantisations[m.Format], v):
	case m.Format == arch.BF16 && (v == "fp8" || v == "w8a8_fp8"):
		m.Format, m.QuantBlock = arch.FP8, 0
	case m.Format == arch.BF16:
		r.fail(&Rejection{Rule: "quantization", Reason: fmt.Sprintf("%s is not a checkpoint of quantization %s: name one, or quantise by fp8 on loading", m.Name, v),
			Log: fmt.Sprintf("ValueError: Cannot find the config file for %s", v)})
	default:
		r.fail(&Rejection{Rule: "quantization", Reason: fmt.Sprintf("%s is stored in %s, which does not go with quantization %s: leave quantization out, or name another checkpoint", m.Name, m.Format, v),
			Log: fmt.Sprintf("ValueError: Quantization method specified in the model config (%s) does not match the quantization method specified in the `quantization` argument (%s).", m.Format, v)})
	}
}

// speculate reads the speculation setting and checks that the model can do it.
func (r *resolver) speculate() {
	v := r.text(Speculative)
	if v == "" {
		return
	}
	s, err := parseSpec(v)
	if err != nil {
		r.fail(err)
		return
	}
	c := r.cfg
	c.Spec, c.SpecTokens, c.SpecTree, c.SpecVerify = s.method, s.k, s.topK, s.verified()
	if s.auto {
		c.SpecTokens = 3 // SGLang's chain of 3 steps, 1 candidate, 4 tokens
	}
	switch {
	case c.SpecTokens < 1 && !s.open || c.SpecTokens > c.MaxLen:
		r.outside(Speculative, fmt.Sprintf("from 1 to %d tokens a step", c.MaxLen), v)
	case MTP(s.method) && !c.Model.HasMTP:
		r.fail(&Rejection{Rule: "mtp", Reason: fmt.Sprintf("%s ships no multi-token-prediction layers, which %s needs: use ngram or a draft model, or leave speculation off", c.Model.Name, v),
			Log: fmt.Sprintf("ValueError: Unsupported speculative method: '%s' for model %s", s.method, c.Model.Name)})
	case s.needsDraft() && s.draft == "" && !(c.Engine == "sglang" && s.method == "eagle" && c.Model.HasMTP): // its heads are the draft
		r.fail(&Rejection{Rule: "draft", Reason: fmt.Sprintf("speculative %s needs a draft model: write %s:%d:REPOSITORY", v, s.method, s.k),
			Log: "ValueError: num_speculative_tokens was provided but without speculative model."})
	}
}
