// Package engine is the catalogue of inference engines as data, and what follows from it
// by arithmetic. It does no I/O.
//
//   - Commands: parsed and printed (Parse, New, Command), with the configuration file that
//     belongs to them (Files, WithFile), in the flags of each version (Engine.Flags, Keys,
//     Command.Fit) or of an installed engine by its own --help (ParseHelp, Command.Help).
//   - Configurations: a command with every default filled in for a model and devices, or
//     the Rejection of the rule that it breaks (Command.Resolve); what it takes of memory,
//     and which requests it serves (Config.Fits).
//   - The names of their metrics (Engine.Metrics).
//
// How a command spans machines is package cluster's, what an engine's log says package
// logs', what it publishes while it serves package meters'.
//
//	cmd, err := engine.Parse([]string{"vllm", "serve", "Qwen/Qwen3-32B", "-tp", "4"})
//	cfg, err := cmd.Resolve(model, gpu, 8)  // cfg.TP == 4, cfg.Seqs == 1024
//	fmt.Println(cmd)                        // vllm serve Qwen/Qwen3-32B -tp 4
//
// Invariants: what Parse accepts prints to a line that parses to the same command;
// every configuration that Resolve returns passes all rules; every Rejection says in one
// sentence with numbers what is wrong and what to do, and the log line of one of a command
// is found by logs.Diagnose with its class. Parse passes the flags of any known
// version; Argv prints the spellings of Command.Help or Version, and Resolve refuses what
// that one does not have. NewOpen passes flags that no known version has, too. An engine that the simulator has no model of
// (MeasuredOnly) is checked and outlined where another is resolved. Deliberately absent:
// abbreviated flags, and rules that need more than command, model and devices, such as
// whether a draft model matches.
package engine

import "perflab/internal/arch"

// Canonical parameter names, the same for every engine. A study file and the
// tuner speak these; each engine's Param says how it spells them.
const (
	TP               = "tp"
	PP               = "pp"
	DP               = "dp"
	ExpertParallel   = "expert_parallel"        // bool; SGLang and TensorRT-LLM: ep_size = tp
	MaxNumSeqs       = "max_num_seqs"           // running requests at once
	MaxBatched       = "max_num_batched_tokens" // tokens per step (SGLang: chunked prefill size)
	MaxModelLen      = "max_model_len"
	MemoryShare      = "gpu_memory_utilization" // share of device memory, in the engine's own meaning
	KVDtype          = "kv_cache_dtype"         // auto, fp8
	Quantization     = "quantization"
	PrefixCaching    = "prefix_caching"  // bool
	ChunkedPrefill   = "chunked_prefill" // bool
	Speculative      = "speculative"     // "METHOD:K", e.g. "mtp:1", "eagle3:3"
	GraphMax         = "max_cudagraph_capture_size"
	Eager            = "enforce_eager" // bool
	PerfMode         = "performance_mode"
	BlockSize        = "block_size"
	AttentionDP      = "attention_dp"       // bool; each rank attends to sequences of its own, experts are shared
	MoEBackend       = "moe_backend"        // kernels of the routed experts, by the engine's own name
	StreamInterval   = "stream_interval"    // tokens between messages of a stream
	Overlap          = "overlap_scheduling" // bool; a step is scheduled while the one before it runs
	CapacityPolicy   = "capacity_policy"    // TensorRT-LLM: guaranteed_no_evict, max_utilization
	MicroBatch       = "micro_batch"        // tokens computed at once, of those of a step (llama.cpp)
	ContextSize      = "context_size"       // tokens of all slots together (llama.cpp)
	Threads          = "threads"            // that generate (llama.cpp)
	ThreadsBatch     = "threads_batch"      // that compute prompts (llama.cpp)
	FlashAttention   = "flash_attention"    // on, off, auto (llama.cpp)
	GPULayers        = "gpu_layers"         // layers on GPUs, of a model that is else on the CPU (llama.cpp)
	HostCache        = "host_cache"         // GiB of host memory for KV that devices give up, of all ranks of a copy; SGLang counts GB
	HostCacheRatio   = "host_cache_ratio"   // the same over the devices' KV cache (SGLang)
	HostCachePolicy  = "host_cache_policy"  // when KV is written there (SGLang)
	HostCacheBackend = "host_cache_backend" // what keeps it (vLLM): native, lmcache
	CacheEviction    = "cache_eviction"     // which prefixes are given up first (SGLang)
	CacheReuse       = "cache_reuse"        // tokens of a moved piece that are worth reusing (llama.cpp)
	SlotSimilarity   = "slot_similarity"    // share of a prompt that must agree with a slot's (llama.cpp)
	Disaggregation   = "disaggregation"     // prefill and decode engines of a replica, "2:1"; "none": each engine does both
)

// Command is one engine's serving command, taken apart. Parse and Argv are
// inverse up to the spelling and order of flags, but for what stands in a file (see
// Files); String adds environment, address and that file.
type Command struct {
	Engine  string            `json:"engine"`            // vllm, sglang, trtllm, llamacpp
	Model   string            `json:"model"`             // repository id or path
	Version string            `json:"version,omitempty"` // of the engine, where known: decides defaults; "": the oldest that the catalogue knows
	Params  map[string]string `json:"params,omitempty"`  // canonical name -> value, as given; New leaves out what is the default
	Extra   []string          `json:"extra,omitempty"`   // flags known to the engine without a canonical name, kept verbatim; see Unmodelled
	Unread  []string          `json:"unread,omitempty"`  // flags that the catalogue does not have, with their values, kept verbatim; see Unknown
	// File is what of the engine's configuration file no parameter says, nested, in
	// values as JSON has them. FilePath is a configuration file that was named and
	// whose content is not known: see WithFile.
	File     map[string]any `json:"file,omitempty"`
	FilePath string         `json:"file_path,omitempty"`
	Prefill  PoolUse        `json:"prefill,omitzero"` // of engines that only compute prompts, where Disaggregation has some
	Decode   PoolUse        `json:"decode,omitzero"`  // of those that only generate
	Router   []string       `json:"router,omitempty"` // further flags of the router before them
	Env      []string       `json:"env,omitempty"`    // KEY=value, printed before the command
	Host     string         `json:"host,omitempty"`   // as given; "" for the engine's default
	Port     int            `json:"port,omitempty"`   // as given; 0 for the engine's default
	Help     *Help          `json:"-"`                // of the installed engine, where it was asked: what it lists outranks what is known of Version
}

// Config is a command with every default resolved for a model and hardware:
// what the engine would really run with. The simulator is built from it.
type Config struct {
	Engine        string
	Generation    string // of its version: the first one that works in another way beside the device; "" for those before
	Model         arch.Model
	GPU           arch.Accelerator
	TP, PP, DP    int
	EP            int     // expert-parallel ranks, 1 for none
	AttentionDP   int     // groups of the tensor-parallel ranks that attend to requests of their own; 1 for none
	ContextP      int     // decode context-parallel ranks that share a sequence's KV cache, 1 for none
	AllToAll      string  // how tokens reach experts on other ranks, as given
	Prefills      int     // engines of a replica that only compute prompts; 0 where each engine does both
	Decodes       int     // engines of it that only generate, with the KV cache of the first
	Prefill       *Config // of an engine that computes prompts, where there are some; the rest is that of one that generates
	GPUs          int     // devices the command occupies: Command.World
	Seqs          int     // running requests at most
	Batched       int     // tokens per step at most
	MaxLen        int
	MemoryShare   float64
	ShareOfFree   bool    // MemoryShare is of the memory left after weights (TensorRT-LLM)
	KVBytes       int     // bytes per KV element: 2, or 1 with an FP8 cache
	KVSpace       int64   // bytes of KV cache on a rank as given, 0 for what MemoryShare leaves
	Block         int     // tokens per KV block
	Prefix        bool    // prefix cache
	Tiers         []Tier  // what keeps blocks that the devices give up, the nearest first
	Chunks        bool    // layers that attend in chunks give up the blocks behind their chunk (vLLM)
	Chunked       bool    // chunked prefill
	Reserve       bool    // a request is admitted only with room for all its tokens (TensorRT-LLM)
	PrefillOnly   bool    // prefill batches come first and alone (SGLang)
	PrefillTokens int     // prompt tokens of such a batch at most, but for a first prompt (SGLang)
	Conserve      float64 // how much room is kept for running requests, 1 by default (SGLang)
	Overlap       bool    // a step is scheduled while the one before it runs, from what was known when that began
	Serial        bool    // the front end passes requests on one by one
	Spec          string  // speculation method, "" for none
	SpecTokens    int
	SpecTree      int   // candidates that a guess branches into a step, 0 or 1 for a chain (SGLang)
	SpecVerify    int   // tokens of a tree of guesses that the model verifies for a sequence, 0 for a chain's (SGLang)
	WeightOnly    bool  // weights are widened before they are multiplied: saves memory, not arithmetic (Marlin)
	GraphMax      int   // largest captured decode batch; 0 when eager
	PromptGraphs  int   // tokens of a step with prompts that captured graphs cover; 0 for none
	Graphs        []int // sizes that a decode batch is padded to, ascending; nil for the engine's usual way
	Dummy         bool  // weights are made up on loading
	Interval      int   // tokens between two messages of a stream
	Dispatch      int   // requests of a rank whose tokens reach experts in one go, 0 for no limit (SGLang's DeepEP)
	ServedName    string
	Aliases       []string // further names that clients may use
	Host          string
	Port          int
}

// Rejection is a configuration that the engine would refuse, known before
// paying for a launch.
type Rejection struct {
	Rule   string // stable name of the rule, e.g. "fp8-block"
	Reason string // one sentence with the numbers in it
	Log    string // the engine's own kind of error line
}

func (r *Rejection) Error() string { return r.Reason }
