package engine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"perflab/internal/arch"
)

// Check is the rules that need neither model nor device, for an engine that is
// measured only. It is nil for the others: Resolve has their rules.
func (c Command) Check() *Rejection {
	if c.Engine != "llamacpp" {
		return nil
	}
	s := llamaServer{c}
	for _, rule := range []func() *Rejection{s.limits, s.cache, s.draft} {
		if r := rule(); r != nil {
			return r
		}
	}
	return nil
}

// llamaServer is a command as llama-server takes it, or does not.
type llamaServer struct{ Command }

// limits: it aborts without a batch, or with a negative context, and has
// sequence numbers for 256 slots.
func (c llamaServer) limits() *Rejection {
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

// cache: only fused attention reads quantised values.
func (c llamaServer) cache() *Rejection {
	values := cmp.Or(c.Flag("--cache-type-v"), c.Params[KVDtype])
	if c.Params[FlashAttention] != "off" || !strings.Contains(values, "q") {
		return nil
	}
	return &Rejection{Rule: "kv-dtype", Log: "llama_init_from_model: quantized V cache requires flash_attn to be enabled",
		Reason: fmt.Sprintf("a cache of values in %s needs flash attention, which is off: set flash_attention to on or auto, or keep values in f16", values)}
}

// draft: without its draft model llama-server starts, and does not speculate.
func (c llamaServer) draft() *Rejection {
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

// outline is what a command of llama-server says without a model. MaxLen is 0
// where the model decides.
func (c llamaServer) outline(e *Engine, g arch.Accelerator, devices int) (Config, error) {
	if r := cmp.Or(c.Fit(), c.Check()); r != nil {
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
