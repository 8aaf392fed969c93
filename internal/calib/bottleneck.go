package calib

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"perflab/internal/arch"
	"perflab/internal/engine"
	"perflab/internal/sim"
)

// Bottleneck is what holds the load back.
type Bottleneck struct {
	Name  string  `json:"name"`  // stable: see Bottlenecks
	Share float64 `json:"share"` // of the time; of the capacity for offered_load under a rate
	Text  string  `json:"text"`  // one sentence with the numbers and what to try
}

// Names of bottlenecks: what requests wait for, then the terms of a step.
const (
	OfferedLoad = "offered_load"
	FrontEnd    = "front_end"
	KVBlocks    = "kv_blocks"
	RunLimit    = "run_limit"
	StepTokens  = "step_tokens"
	Weights     = "weights"
	Arithmetic  = "arithmetic"
	ExpertReads = "expert_reads"
	Experts     = "experts"
	KVReads     = "kv_reads"
	Attention   = "attention"
	Collectives = "collectives"
	Elementwise = "elementwise"
	Host        = "host"
	Launches    = "launches"
	Drafting    = "drafting"
	Fetching    = "fetching"
)

// Bottlenecks lists their names, those of a replica of several engines first.
var Bottlenecks = []string{
	PrefillEngines, DecodeEngines, KVTransfer,
	OfferedLoad, FrontEnd, KVBlocks, RunLimit, StepTokens,
	Weights, Arithmetic, ExpertReads, Experts, KVReads, Attention, Collectives, Elementwise, Host, Launches, Drafting, Fetching,
}

// Shares of the time from which something is named as what holds the load back.
const (
	idleShare  = 0.3  // nothing to do
	stallShare = 0.25 // no step runs, for the front end
	waitShare  = 0.5  // some request waits for room
)

// sharedTermShare is how much of a step must be terms that a larger batch spreads
// over more tokens, for more room for requests to help.
const sharedTermShare = 0.3

// term is a part of the steps.
type term struct {
	name, doing string
	took        time.Duration
	shared      bool // once a step, however many tokens
}

// terms are the parts of steps, in the order of Bottlenecks.
func terms(t sim.Times) []term {
	return []term{
		{Weights, "reading dense weights", t.Weights, true},
		{Arithmetic, "multiplying by dense weights", t.Arithmetic, false},
		{ExpertReads, "reading the experts' weights", t.ExpertReads, true},
		{Experts, "multiplying by the experts' weights", t.Experts, false},
		{KVReads, "reading the KV cache", t.KV, false},
		{Attention, "attention of prompts", t.Attention, false},
		{Collectives, "exchange between GPUs", t.Collectives, false},
		{Elementwise, "elementwise work", t.Elementwise, false},
		{Host, "host work between kernels", t.Host, true},
		{Launches, "launching kernels one by one", t.Launches, true},
		{Drafting, "drafting tokens", t.Drafting, false},
		{Fetching, "copying KV blocks from and to the host", t.Fetching, false},
	}
}

// StepSeconds are the times of steps by their terms' names.
func StepSeconds(t sim.Times) map[string]float64 {
	out := map[string]float64{}
	for _, x := range terms(t) {
		out[x.name] = x.took.Seconds()
	}
	return out
}

// WaitSeconds are the times that requests waited, by what for; "idle" is the
// time in which there was none. The transfer of KV caches is there where some moved.
func WaitSeconds(w sim.Waits) map[string]float64 {
	out := map[string]float64{
		KVBlocks: w.KV.Seconds(), RunLimit: w.Seqs.Seconds(), StepTokens: w.Tokens.Seconds(),
		FrontEnd: w.FrontEnd.Seconds(), "idle": w.Idle.Seconds(),
	}
	if w.Transfer > 0 {
		out[KVTransfer] = w.Transfer.Seconds()
	}
	return out
}

// loadedRun is what a bottleneck follows from: a replayed run, and the load that
// was offered.
type loadedRun struct {
	config       engine.Config
	stats        sim.Stats
	rate         float64 // requests/s offered; 0: all at once
	utilisation  float64 // see Prediction
	frontEndRate float64 // requests/s that a replica's front end lets through
}

// bottleneck names what holds the load back: that the load asks for no more,
// the front end, room for requests where more of them would help, else the
// largest term of the steps. It is empty where no step ran.
func (r *loadedRun) bottleneck() Bottleneck {
	s := r.stats
	var busy, shared time.Duration
	all := terms(s.Times)
	for _, t := range all {
		busy += t.took
		if t.shared {
			shared += t.took
		}
	}
	if busy <= 0 {
		return Bottleneck{}
	}
	span := busy + s.Waits.FrontEnd + s.Waits.Idle
	if s.Pools != nil {
		span = s.Pools.Elapsed * time.Duration(s.Pools.Replicas)
	}
	of := func(d, whole time.Duration) float64 { return float64(d) / float64(whole) }
	slices.SortStableFunc(all, func(x, y term) int { return cmp.Compare(y.took, x.took) })
	most, next := all[0], all[1]
	largest := fmt.Sprintf("%s takes %.0f %% of the steps", most.doing, 100*of(most.took, busy))
	if of(most.took, busy) < 0.5 {
		largest += fmt.Sprintf(" and %s %.0f %%", next.doing, 100*of(next.took, busy))
	}

	if idle := of(s.Waits.Idle, span); idle >= idleShare {
		return Bottleneck{OfferedLoad, idle, fmt.Sprintf("The load: the server has nothing to do for %.0f %% of the time; in the rest %s. Offer more, or use fewer GPUs.", 100*idle, largest)}
	}
	if stalled := of(s.Waits.FrontEnd, span); stalled >= stallShare {
		return Bottleneck{FrontEnd, stalled, fmt.Sprintf("The front end: for %.0f %% of the time no step runs because requests are being read and tokenised, %.0f a second at most. %s.", 100*stalled, r.frontEndRate, r.helpFrontEnd())}
	}
	if u := r.utilisation; u > 0 && u < saturationShare {
		return Bottleneck{OfferedLoad, u, fmt.Sprintf("The load: a rate of %.3g/s is %.0f %% of what the server takes when such requests come at once, and %s. Offer more, or use fewer GPUs.", r.rate, 100*u, largest)}
	}
	if s.Pools != nil {
		return r.disaggregated()
	}
	fixed := of(shared, busy)
	if fixed >= sharedTermShare {
		if b, ok := r.room(span, fixed); ok {
			return b
		}
	}
	share := of(most.took, busy)
	return Bottleneck{most.name, share, fmt.Sprintf("%s. %s.", sentence(largest), r.help(most.name, fixed))}
}

// room is what requests wait for most of the time, if anything.
func (r *loadedRun) room(span time.Duration, fixed float64) (Bottleneck, bool) {
	w, cfg := r.stats.Waits, r.config
	for _, x := range []struct {
		name            string
		took            time.Duration
		what, wait, try string
	}{
		{KVBlocks, w.KV, "The KV cache", "requests wait for blocks of it", sentence(r.helpKV())},
		{RunLimit, w.Seqs, "The limit on running requests", "some wait for a place", fmt.Sprintf("Raise max_num_seqs above %d", cfg.Seqs)},
		{StepTokens, w.Tokens, "The limit on tokens of a step", "prompts wait for the next one", fmt.Sprintf("Raise max_num_batched_tokens above %d", cfg.Batched)},
	} {
		if share := float64(x.took) / float64(span); share >= waitShare {
			return Bottleneck{x.name, share, fmt.Sprintf("%s: for %.0f %% of the time %s, while %.0f %% of the steps (reading weights, host work) takes no longer for a larger batch. %s.",
				x.what, 100*share, x.wait, 100*fixed, x.try)}, true
		}
	}
	return Bottleneck{}, false
}

// help says what to try against a term of the steps, for this configuration;
// fixed is the share of the steps that a larger batch shares.
func (r *loadedRun) help(name string, fixed float64) string {
	cfg := r.config
	wide := cfg.Model.Format == arch.BF16
	switch name {
	case Weights, ExpertReads:
		return r.helpReads(wide)
	case Arithmetic, Experts:
		batch := fmt.Sprintf("a larger batch shares no more than the %.0f %% that are reading weights and host work", 100*fixed)
		if fixed < sharedTermShare {
			batch = "a larger batch does not help"
		}
		if wide && cfg.GPU.FP8TFLOPS > 0 {
			return "FP8 weights multiply faster here; " + batch
		}
		return "More GPUs help; " + batch
	case KVReads:
		switch {
		case cfg.KVBytes == 2:
			return "An FP8 KV cache (kv_cache_dtype=fp8) halves it; shorter contexts help too"
		case cfg.TP < cfg.Model.KVHeads:
			return "A larger tp splits the cache over more GPUs; shorter contexts help too"
		}
		return "Shorter contexts help, or further replicas"
	case Attention:
		if !cfg.Prefix {
			return "Prefix caching saves what prompts share; it grows with the square of their length"
		}
		return "It grows with the square of the prompts' length; more GPUs split it"
	case Collectives:
		return "A smaller tp with further replicas exchanges less, a faster link takes less time"
	case Elementwise:
		return "tp does not split it: further replicas do"
	case Drafting:
		return "Draft fewer tokens, or none at this batch size"
	case Fetching:
		return "An FP8 KV cache (kv_cache_dtype=fp8) halves what is copied; more devices share it"
	}
	switch {
	case cfg.GraphMax == 0:
		return "Captured graphs (enforce_eager off) save most of it; a larger batch shares it"
	case name == Launches && cfg.PromptGraphs == 0:
		return "Graphs of this version are of decode steps only: a step with prompts costs as much for one short prompt as for several; let more prompts come together"
	case name == Launches:
		return fmt.Sprintf("Graphs cover steps of up to %d tokens: raise max_cudagraph_capture_size to the prompts that come alone; a larger batch shares it", cfg.GraphMax)
	}
	return "A larger batch shares it between more requests: allow or send more at once"
}

// helpReads is for reading weights, which a larger batch shares.
func (r *loadedRun) helpReads(wide bool) string {
	cfg, s := r.config, r.stats
	how := "a larger batch shares each read: send more requests at once"
	switch {
	case s.PeakKV > 0.95:
		how = "a larger batch shares each read, but the KV cache is full: " + r.helpKV()
	case s.PeakRunning >= cfg.Seqs:
		how = fmt.Sprintf("a larger batch shares each read: raise max_num_seqs above %d", cfg.Seqs)
	}
	if wide {
		how += "; FP8 weights halve what is read"
	}
	return sentence(how)
}

func (r *loadedRun) helpKV() string {
	cfg := r.config
	var try []string
	if cfg.KVBytes == 2 {
		try = append(try, "an FP8 KV cache (kv_cache_dtype=fp8) holds twice as much")
	}
	if cfg.MemoryShare < 0.95 {
		try = append(try, fmt.Sprintf("a gpu_memory_utilization above %g makes room", math.Round(cfg.MemoryShare*1000)/1000))
	}
	if cfg.Model.Format == arch.BF16 {
		try = append(try, "FP8 weights make room")
	}
	try = append(try, "a larger tp leaves more memory beside the weights")
	return strings.Join(try[:min(3, len(try))], ", ")
}

func (r *loadedRun) helpFrontEnd() string {
	if r.config.Engine == "vllm" {
		return "Give it more processes (--api-server-count), or use further replicas"
	}
	return "Use further replicas"
}

// sentence begins s with a capital letter.
func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
