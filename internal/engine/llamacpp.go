package engine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/arch"
)

// llamacpp is llama.cpp's llama-server, of summer and autumn 2026. Its models are GGUF
// files, or repositories of them. perflab checks its commands and starts them; the
// simulator has no model of it.
func llamacpp() *Engine {
	return &Engine{
		Name: "llamacpp", Title: "llama.cpp", Health: "/health", DefaultHost: "127.0.0.1", DefaultPort: 8080, MetricsPath: "/metrics",
		MetricsFlag: "--metrics", MeasuredOnly: true,
		launch: []string{"llama-server"}, modelFlag: "-m", hostFlag: "--host", portFlag: "--port",
		cli:     cli{prog: "llama-server", usage: "usage: llama-server -m FILE.gguf [options]", plain: true},
		Params:  llamacppParams(),
		Metrics: llamacppMetrics(),
	}
}

// llamacppParams leave out what llama.cpp has nothing of.
func llamacppParams() []Param {
	kv := []string{"f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"}
	return []Param{
		{Name: TP, Kind: Int, Default: "1", Doc: "llama-server takes every device that it sees; --split-mode says how it spreads over them."},
		{Name: PP, Kind: Int, Default: "1", Doc: "--split-mode layer, the default with several devices, puts layers one behind another."},
		{Name: DP, Kind: Int, Default: "1", Doc: "llama.cpp has no data-parallel copies; use replicas."},
		{Name: ExpertParallel, Kind: Bool, Default: "false", Doc: "llama.cpp does not give out experts over devices; --n-cpu-moe leaves some to the CPU."},
		{Name: MaxNumSeqs, Flags: []string{"-np", "--parallel"}, Kind: Int, Max: 256, Ladder: []string{"1", "2", "4", "8", "16", "32"},
			Doc: "Slots: requests decoded together at most. They divide the context. Unset: 4, which share it."},
		{Name: MaxBatched, Flags: []string{"-b", "--batch-size"}, Kind: Int, Default: "2048", Min: 1, Ladder: []string{"512", "1024", "2048", "4096"},
			Doc: "Tokens handed over at once: those of all slots that decode, and prompts as far as there is room."},
		{Name: MicroBatch, Flags: []string{"-ub", "--ubatch-size"}, Kind: Int, Default: "512", Min: 1, Ladder: []string{"128", "256", "512", "1024", "2048", "4096"},
			Doc: "Tokens computed at once; a batch is cut into such parts. Larger is faster for prompts and takes memory."},
		{Name: MaxModelLen, Derived: true, Kind: Int, Min: 1, Doc: "Longest prompt plus output: with it -c is so much for each slot."},
		{Name: ContextSize, Flags: []string{"-c", "--ctx-size"}, Kind: Int,
			Doc: "Tokens of the KV cache, divided among the slots unless it is unified; unset or 0: the model's, less where memory is short."},
		{Name: Threads, Flags: []string{"-t", "--threads"}, Kind: Int, Ladder: []string{"1", "2", "4", "8", "16", "32"},
			Doc: "Threads that generate; unset: by the host's cores."},
		{Name: ThreadsBatch, Flags: []string{"-tb", "--threads-batch"}, Kind: Int, Ladder: []string{"1", "2", "4", "8", "16", "32"},
			Doc: "Threads that compute prompts and batches; unset: as many as generate."},
		{Name: FlashAttention, Flags: []string{"-fa", "--flash-attn"}, Kind: Choice, Default: "auto", Choices: []string{"on", "off", "auto"},
			Ladder: []string{"on", "off"}, Doc: "Fused attention; a quantised cache of values needs it."},
		{Name: KVDtype, Flags: []string{"-ctk", "--cache-type-k"}, Kind: Choice, Default: "f16", Choices: kv, Spell: map[string]string{"auto": "f16"},
			Ladder: []string{"f16", "q8_0", "q4_0"}, Doc: "Storage of keys and of values, -ctk and -ctv alike."},
		{Name: GPULayers, Flags: []string{"-ngl", "--gpu-layers", "--n-gpu-layers"}, Kind: String, Ladder: []string{"0", "all"},
			Doc: "Layers on GPUs: a number, all, or auto (the default), which is as many as fit."},
		{Name: PrefixCaching, Flags: []string{"--cache-prompt"}, Off: []string{"--no-cache-prompt"}, Kind: Bool, Default: "true", Ladder: []string{"true", "false"},
			Doc: "Reuses what a slot, or the cache in host memory, still has of a prompt."},
		{Name: ChunkedPrefill, Kind: Bool, Default: "true", Doc: "Prompts are always split over batches."},
		{Name: Speculative, Flags: []string{"--spec-type"}, Kind: String, Ladder: []string{"ngram:16"},
			Doc: "METHOD:K[:DRAFT MODEL] with draft_model, eagle3, dflash, mtp or ngram."},
		{Name: Quantization, Kind: String, Doc: "The GGUF file's: name another file as the model."},
		{Name: Eager, Kind: Bool, Default: "false", Doc: "No flag turns CUDA graphs off."},
		{Name: PerfMode, Kind: String, Default: "balanced", Doc: "llama.cpp has no performance modes."},
	}
}

// llamacppAutoSlots is how many slots share the context where their number is not given.
const llamacppAutoSlots = 4

// isGGUF tells a model's file from a repository. Parse and Argv keep to it.
func isGGUF(model string) bool {
	return strings.HasSuffix(strings.ToLower(model), ".gguf") || strings.HasPrefix(model, "/") || strings.HasPrefix(model, ".")
}

// llamacppSpell is a parameter as llama-server's flags.
func (c Command) llamacppSpell(e *Engine, p *Param, value string) ([]string, error) {
	switch {
	case p.Name == MaxModelLen:
		return c.llamacppContext(value)
	case p.fixed():
		return nil, e.lacks(p, value)
	case p.Kind == Bool:
		return p.switchArgs(value)
	}
	value = cmp.Or(p.Spell[value], value)
	if p.Name == KVDtype {
		return []string{"-ctk", value, "-ctv", value}, nil
	}
	return []string{p.Flags[0], value}, nil
}

// llamacppContext gives every slot a context of so many tokens.
func (c Command) llamacppContext(length string) ([]string, error) {
	if given := c.Params[ContextSize]; given != "" && given != "0" {
		return nil, &Rejection{Rule: "context", Log: "error: invalid argument: --max-model-len",
			Reason: fmt.Sprintf("%s=%s and %s=%s both set the context of llama.cpp: give one of them", MaxModelLen, length, ContextSize, given)}
	}
	n, err := strconv.Atoi(length)
	if err != nil || n < 1 {
		return nil, fmt.Errorf("parameter %s=%q: not a number of tokens", MaxModelLen, length)
	}
	slots, _ := c.llamacppSlots()
	return []string{"-c", strconv.Itoa(n * slots)}, nil
}

// llamacppSlots is the number of slots, and whether they share one context.
func (c Command) llamacppSlots() (slots int, unified bool) {
	slots = c.number(MaxNumSeqs, 0)
	if slots <= 0 {
		return llamacppAutoSlots, true
	}
	value, given := c.extra("--kv-unified")
	return slots, given && value != "false"
}

// SlotContext is how many tokens a request may have, prompt and output, as far as the
// command tells; 0 where the model's own context decides. llama-server rounds up to
// whole 256.
func (c Command) SlotContext() int {
	size := c.number(ContextSize, 0)
	if c.Engine != "llamacpp" || size <= 0 {
		return 0
	}
	slots, unified := c.llamacppSlots()
	size = roundUp(size, 256)
	if unified {
		if limit, err := strconv.Atoi(c.Flag("--kv-unified-per-slot")); err == nil && limit > 0 {
			return min(size, limit)
		}
		return size
	}
	return roundUp(size/slots, 256)
}

// Check is the rules that need neither model nor device, for an engine that is
// measured only. It is nil for the others: Resolve has their rules.
func (c Command) Check() *Rejection {
	if c.Engine != "llamacpp" {
		return nil
	}
	for _, rule := range []func() *Rejection{c.llamacppLimits, c.llamacppCache, c.llamacppDraft} {
		if r := rule(); r != nil {
			return r
		}
	}
	return nil
}

// llamacppLimits: it aborts without a batch, or with a negative context, and has
// sequence numbers for 256 slots.
func (c Command) llamacppLimits() *Rejection {
	if n := c.number(MaxNumSeqs, 1); n > 256 {
		return &Rejection{Rule: "slots", Log: "llama_init_from_model: failed to initialize the context: n_seq_max must be <= 256",
			Reason: fmt.Sprintf("max_num_seqs %d is more than the 256 slots that llama-server can have: use at most 256", n)}
	}
	aborts := "llama-context.cpp:2273: GGML_ASSERT(n_outputs_max <= cparams.n_outputs_max) failed"
	for _, name := range []string{MaxBatched, MicroBatch} {
		if n := c.number(name, 1); n < 1 {
			return &Rejection{Rule: "value", Log: aborts, Reason: fmt.Sprintf("llama.cpp does not take %s=%d: use a value of at least 1", name, n)}
		}
	}
	if n := c.number(ContextSize, 0); n < 0 {
		return &Rejection{Rule: "value", Log: aborts, Reason: fmt.Sprintf("llama.cpp does not take context_size=%d: use a value of at least 0, which is the model's", n)}
	}
	return nil
}

// llamacppCache: only fused attention reads quantised values.
func (c Command) llamacppCache() *Rejection {
	values := cmp.Or(c.Flag("--cache-type-v"), c.Params[KVDtype])
	if c.Params[FlashAttention] != "off" || !strings.Contains(values, "q") {
		return nil
	}
	return &Rejection{Rule: "kv-dtype", Log: "llama_init_from_model: quantized V cache requires flash_attn to be enabled",
		Reason: fmt.Sprintf("a cache of values in %s needs flash attention, which is off: set flash_attention to on or auto, or keep values in f16", values)}
}

// llamacppDraft: without its draft model llama-server starts, and does not speculate.
func (c Command) llamacppDraft() *Rejection {
	s, err := parseSpec(c.Params[Speculative])
	if err != nil || s.draft != "" || !s.needsDraft() {
		return nil
	}
	return &Rejection{Rule: "draft", Log: fmt.Sprintf("failed to initialize speculative decoding context: %s requires a draft context", llamacppMethods[s.method]),
		Reason: fmt.Sprintf("speculative %s needs a draft model, without which llama-server does not speculate: write %s:%d:FILE.gguf", s, s.method, s.k)}
}

// ErrMeasuredOnly says that there is no model of an engine.
var ErrMeasuredOnly = errors.New("llama.cpp is not modelled: it can be started and measured (perflab bench, and tune with runtime kind process or existing), not simulated or predicted")

// Modelled is ErrMeasuredOnly where nothing can be simulated of the command's engine.
func (c Command) Modelled() error {
	if e, err := ByName(c.Engine); err != nil || !e.MeasuredOnly {
		return nil
	}
	return ErrMeasuredOnly
}

// Outline is what a command of an engine that is measured only says without a model:
// limits, name and address, and the devices that one copy occupies of those there are.
// MaxLen is 0 where the model decides. A broken rule is a *Rejection.
func (c Command) Outline(g arch.Accelerator, devices int) (Config, error) {
	e, err := ByName(c.Engine)
	if err != nil {
		return Config{}, err
	}
	if !e.MeasuredOnly {
		return Config{}, fmt.Errorf("%s resolves with a model", e.Title)
	}
	if r := c.Check(); r != nil {
		return Config{}, r
	}
	cfg := Config{
		Engine: c.Engine, GPU: g, TP: 1, PP: 1, DP: 1, EP: 1, GPUs: max(devices, 1),
		Batched: c.number(MaxBatched, 2048), MaxLen: c.SlotContext(), Prefix: c.Params[PrefixCaching] != "false", Chunked: true,
		ServedName: c.Model, Host: cmp.Or(c.Host, e.DefaultHost), Port: cmp.Or(c.Port, e.DefaultPort),
	}
	cfg.Seqs, _ = c.llamacppSlots()
	if c.Flag("--split-mode") == "none" {
		cfg.GPUs = 1
	}
	if names := strings.Split(c.Flag("--alias"), ","); names[0] != "" {
		slices.Sort(names) // llama-server keeps them as an ordered set and answers by the first
		cfg.ServedName, cfg.Aliases = names[0], names[1:]
	}
	return cfg, nil
}

// Remarks are what a reader of measured figures should know of the command on a host of
// so many cores (0: unknown). Nothing in them keeps the engine from running.
func (c Command) Remarks(cores int) []string {
	if c.Engine != "llamacpp" {
		return nil
	}
	var out []string
	if micro, batch := c.number(MicroBatch, 0), c.number(MaxBatched, 2048); micro > batch {
		out = append(out, fmt.Sprintf("micro_batch %d is more than max_num_batched_tokens %d: llama-server computes %[2]d tokens at once.", micro, batch))
	}
	for _, name := range []string{Threads, ThreadsBatch} {
		if n := c.number(name, 0); cores > 0 && n > cores {
			out = append(out, fmt.Sprintf("%s %d is more than the %d cores of this host: threads wait for one another.", name, n, cores))
		}
	}
	slots, unified := c.llamacppSlots()
	if size := c.number(ContextSize, 0); size > 0 && !unified && c.SlotContext() != size/slots {
		out = append(out, fmt.Sprintf("context_size %d over %d slots is rounded up to %d tokens each.", size, slots, c.SlotContext()))
	}
	return out
}
