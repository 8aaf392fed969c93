package logs

import "perflab/internal/engine"

// signature is a line by which an engine, or what it runs on, says what went wrong.
type signature struct {
	class  string
	expr   string   // RE2, found within a line
	keys   []string // one of them is in every such line; none: what expr begins with
	weak   bool     // a line that a good start may print too, or that only tells of a failure further up
	advice string   // instead of the class's; $1 is what expr captured
	set    func(groups []string) map[string]string
	change func(f *Failure, c engine.Command) map[string]string
}

// signaturesByEngine are the lines of each engine.
func signaturesByEngine() map[string][]signature {
	return map[string][]signature{"vllm": vllmSignatures(), "sglang": sglangSignatures(), "trtllm": trtllmSignatures(), "llamacpp": llamacppSignatures()}
}

// commonSignatures are texts of PyTorch, argparse, Hugging Face, NCCL and of code that
// engines share. Of two that match a line the first counts.
func commonSignatures() []signature {
	return []signature{
		{class: oomStart, expr: `torch\.(?:cuda\.)?OutOfMemoryError|(?:CUDA|HIP) out of memory|CUDA error: out of memory|Cuda failure (?:\d+ )?'out of memory'`,
			keys: []string{"OutOfMemoryError", "out of memory"}, change: lessMemory},
		{class: "fp8-block", expr: `(.*)= (\d+) is not divisible by weight quantization block_([nk]) = (\d+)`, keys: []string{"is not divisible by weight quantization"},
			advice: "a rank's part of $2 is not whole FP8 blocks of $4: use expert_parallel, or a smaller tp", change: wholeBlocks},
		{class: "divide", expr: `(\d+) is not divisible by (\d+)`, keys: []string{"is not divisible by"}, advice: "$1 does not divide by $2: use a tp that divides it", change: halfTP},
		{class: "quantization", expr: `Cannot find the config file for|Quantization method specified in the model config|Unknown quantization method`,
			keys: []string{"Cannot find the config file for", "Quantization method specified", "Unknown quantization method"}, set: unset(engine.Quantization)},
		{class: "speculative", expr: `Unsupported speculative method|without speculative model|num_speculative_tokens is required`,
			keys: []string{"Unsupported speculative method", "without speculative model", "num_speculative_tokens is required"}, set: unset(engine.Speculative)},
		{class: "value", expr: `Input should be |validation errors? for \w+`, keys: []string{"Input should be ", "validation error"}},
		{class: "kernel", expr: `requires compute capability|no kernel image is available for execution|is not supported for the current GPU|not supported in this architecture|` +
			`quantization is currently not supported in|Found no NVIDIA driver`,
			keys: []string{"requires compute capability", "no kernel image is available", "is not supported for the current GPU", "not supported in this architecture",
				"quantization is currently not supported in", "Found no NVIDIA driver"}},
		{class: "architecture", expr: `Model architectures? .+ not supported|does not recognize this architecture|unknown model architecture`,
			keys: []string{"Model architecture", "does not recognize this architecture", "unknown model architecture"}},
		{class: "gpus", expr: `CUDA error: invalid device ordinal`},
		{class: "host-cache", expr: `Not enough host memory available\. Requesting ([\d.]+) GB but only have ([\d.]+) GB free`, advice: "of $1 GB for the host cache $2 GB are free: use a smaller host_cache"},
		{class: "flag", expr: `error: (?:unrecognized arguments: (.+)|ambiguous option.*)`, keys: []string{"error: unrecognized arguments", "error: ambiguous option"}},
		{class: "value", expr: `error: (?:argument (\S+): (?:invalid (?:choice|\S+ value): '?([^' ]+))?|the following arguments are required).*`,
			keys: []string{"error: argument ", "error: the following arguments are required"}},
	}
}

// hostSignatures are failures of machine, network and files, which say nothing of the
// configuration, and such as leave it open.
func hostSignatures() []signature {
	return []signature{
		{class: "busy-gpu", expr: `devices are busy or unavailable|Error in memory profiling\. Initial free memory`, keys: []string{"devices are busy or unavailable", "Error in memory profiling."}},
		{class: "port", expr: `[Aa]ddress already in use|[Pp]ort (\d+) is already in use|couldn't bind HTTP server socket`,
			keys: []string{"ddress already in use", "is already in use", "couldn't bind HTTP server socket"}},
		{class: "comm", expr: `NCCL error|nccl(?:System|Remote|Internal|UnhandledCuda)Error|Dist(?:Backend|Network|Store)Error|Watchdog caught collective operation timeout|connectFullMesh failed`,
			keys: []string{"NCCL error", "ncclSystemError", "ncclRemoteError", "ncclInternalError", "ncclUnhandledCudaError", "DistBackendError", "DistNetworkError", "DistStoreError",
				"Watchdog caught collective", "connectFullMesh failed"}},
		{class: "model", expr: `RepositoryNotFoundError|RevisionNotFoundError|GatedRepoError|is not a valid model identifier|access (?:a )?gated repo|Can't load the configuration of|` +
			`Cannot find any model weights with|40[134] Client Error|No such file or directory: '[^']*(?:config\.json|\.safetensors|\.gguf)|failed to open GGUF file`,
			keys: []string{"RepositoryNotFoundError", "RevisionNotFoundError", "GatedRepoError", "is not a valid model identifier", "gated repo", "Can't load the configuration of",
				"Cannot find any model weights", "Client Error", "No such file or directory: '", "failed to open GGUF file"}},
		{class: "disk", expr: `No space left on device|Disk quota exceeded|ot enough free disk space`, keys: []string{"No space left on device", "Disk quota exceeded", "ot enough free disk space"}},
		{class: offline, expr: `LocalEntryNotFoundError|OfflineModeIsEnabled|offline mode is enabled|and couldn't find (?:it|them) in the cached files|outgoing traffic has been disabled`,
			keys: []string{"LocalEntryNotFoundError", "OfflineModeIsEnabled", "offline mode is enabled", "in the cached files", "outgoing traffic has been disabled"}},
		{class: "download", expr: `Max retries exceeded with url|Consistency check failed|[Cc]ouldn't connect to 'https?://|50[0234] Server Error|Temporary failure in name resolution`,
			keys: []string{"Max retries exceeded with url", "Consistency check failed", "ouldn't connect to 'http", "Server Error", "Temporary failure in name resolution"}},
		{class: "driver", expr: `CUDA driver version is insufficient|NVIDIA driver on your system is too old|could not select device driver|nvidia-container-cli: |libcuda\.so\.1: cannot open|` +
			`Failed to initialize NVML|system not yet initialized|uncorrectable ECC error|has fallen off the bus`,
			keys: []string{"CUDA driver version is insufficient", "NVIDIA driver on your system", "could not select device driver", "nvidia-container-cli: ", "libcuda.so.1: cannot open",
				"Failed to initialize NVML", "system not yet initialized", "uncorrectable ECC error", "has fallen off the bus"}},
		{class: "host-memory", expr: `DefaultCPUAllocator: |std::bad_alloc|Cannot allocate memory|memory usage threshold`,
			keys: []string{"DefaultCPUAllocator: ", "std::bad_alloc", "Cannot allocate memory", "memory usage threshold"}},
		{class: "hang", expr: `Watchdog timeout|RPC call to \w+ timed out|Hang detected`, keys: []string{"Watchdog timeout", "RPC call to ", "Hang detected"}},
		{class: "hang", weak: true, expr: `No available shared memory broadcast block found`}, // which a long compilation prints too
		{class: "crash", expr: `illegal memory access|device-side assert triggered|unspecified launch failure|misaligned address|Segmentation fault|Fatal Python error|GGML_ASSERT\(|terminate called after throwing`,
			keys: []string{"illegal memory access", "device-side assert triggered", "unspecified launch failure", "misaligned address", "Segmentation fault", "Fatal Python error", "GGML_ASSERT(",
				"terminate called after throwing"}},
	}
}

func vllmSignatures() []signature {
	return append([]signature{
		{class: "kv-memory", expr: `No available memory for the cache blocks`, change: moreMemory},
		{class: "kv-memory", expr: `max seq len \((\d+)\), \(?([\d.]+) GiB KV cache is needed, which is larger than the available KV cache memory \(([\d.]+) GiB\)(?:.*estimated maximum model length is (\d+))?`,
			advice: "a sequence of $1 tokens needs $2 GiB of KV cache and there are $3: use the max_model_len that the engine names, more memory or more GPUs", set: fittingLen(4)},
		{class: "kv-memory", expr: `the estimated maximum model length is (\d+)`, advice: "use max_model_len of at most $1", set: fittingLen(1)},
		{class: oomStart, expr: `CUDA out of memory occurred when warming up (sampler|pooler) with (\d+) dummy requests`,
			advice: "the $1 has no room for $2 requests: use half of them for max_num_seqs, or a lower gpu_memory_utilization", set: half(engine.MaxNumSeqs, 2)},
		{class: "busy-gpu", expr: `Free memory on device (?:(\S+) )?\(([\d.]+)/([\d.]+) GiB\) on startup is less than (?:desired GPU memory utilization|the engine's budget after excluding external process's weights) \(([\d.]+), ([\d.]+) GiB\)`,
			advice: "$2 of $3 GiB are free before the start: end what else holds the device, or take one that is free"},
		{class: "node-memory", expr: `Available memory on node \d+ \(([\d.]+)/([\d.]+) GiB\) on startup is less than desired CPU memory utilization \(([\d.]+), ([\d.]+) GiB\)`,
			advice: "$4 GiB are asked for and $1 of $2 are free: use a lower gpu_memory_utilization, or give the KV cache a size of its own by VLLM_CPU_KVCACHE_SPACE, in GiB", set: shareOfNode},
		{class: "node-memory", expr: `Available memory on node \d+ \(([\d.]+)/([\d.]+) GiB\) on kv cache allocation is less than requested memory for kv \((-[\d.]+|0\.0+)/[\d.]+ GiB\)`,
			advice: "the engine alone takes more than its share of the host's $2 GiB: use a higher gpu_memory_utilization, or give the KV cache a size of its own by VLLM_CPU_KVCACHE_SPACE, in GiB", change: moreMemory},
		{class: "node-memory", expr: `Available memory on node \d+ \(([\d.]+)/([\d.]+) GiB\) on kv cache allocation is less than requested memory for kv \(([\d.]+)/([\d.]+) GiB\)`,
			advice: "a KV cache of $3 GiB is asked for and $1 of $2 are free: use a lower gpu_memory_utilization, or give the KV cache a size of its own by VLLM_CPU_KVCACHE_SPACE, in GiB", set: shareOfNode},
		{class: "node-memory", expr: `Available memory on node \d+ \(([\d.]+)/([\d.]+) GiB\) on kv cache allocation is less than requested memory for kv \(([\d.]+) GiB\)`,
			advice: "a KV cache of $3 GiB is asked for and $1 of $2 are free: use a smaller VLLM_CPU_KVCACHE_SPACE or --kv-cache-memory-bytes"},
		{class: "kernel", expr: `_C::(\w+)\(\) expected at most 0 argument\(s\)`, keys: []string{"expected at most 0 argument(s)"}, advice: "this build has no kernel $1: leave quantization out, or use another build"},
		{class: "heads", expr: `Total number of attention heads \((\d+)\) must be divisible by tensor parallel size \((\d+)\)`,
			advice: "$1 attention heads do not divide by tp $2: use a tp that divides them", set: dividingTP},
		{class: "limits", expr: `max_num_batched_tokens \((\d+)\) must be greater than or equal to max_num_seqs \((\d+)\)`,
			advice: "each of $2 sequences needs a token a step: use max_num_batched_tokens of at least $2", set: take(engine.MaxBatched, 2)},
		{class: "limits", expr: `max_num_batched_tokens \((\d+)\) is smaller than max_model_len \((\d+)\)`,
			advice: "a prompt of $2 tokens does not fit into a step of $1: use chunked_prefill", set: always(engine.ChunkedPrefill, "true")},
		{class: "length", expr: `User-specified max_model_len \((\d+)\) is greater than the derived max_model_len(?: \(max_position_embeddings=(\d+))?`,
			advice: "the model was not made for $1 tokens: use a smaller max_model_len", set: take(engine.MaxModelLen, 2)},
		{class: "gpus", expr: `World size \((\d+)\) is larger than the number of available GPUs \((\d+)\)`, advice: "the configuration takes $1 GPUs and there are $2: use a smaller tp, pp or dp"},
		{class: "experts", expr: `Number of experts in the model must be greater than 0 when expert parallelism is enabled`, set: always(engine.ExpertParallel, "false")},
		{class: "host-cache", expr: `Insufficient space in (\S+) for CPU KV offload.*: (\d+) MiB required, (\d+) MiB free`, keys: []string{"Insufficient space in "},
			advice: "$1 has $3 MiB free, and host_cache takes $2 there: use a smaller one, or give containers ipc: host or a larger shm_size"},
		{class: "kernel", expr: `CPU Offloading is currently only supported on`, advice: "KV caches are offloaded from GPUs: leave host_cache out", set: unset(engine.HostCache)},
		{class: "experts", expr: `Expert parallelism load balancing is only supported on`, advice: "leave --enable-eplb off on this platform"},
		{class: "divide", expr: `Decode context parallelism for GQA/MQA requires .*--tensor-parallel-size. \((\d+)\) to be greater than the model's total number of KV heads \((\d+)\)`,
			advice: "tp $1 keeps no copies of $2 KV heads: use a tp above $2, or leave --decode-context-parallel-size off"},
		{class: "divide", expr: `decode-context-parallel-size. \((\d+)\) exceeds the maximum supported value \((\d+)\)`, advice: "use --decode-context-parallel-size of at most $2, not $1"},
		{class: "experts", expr: `enable_expert_parallel must be True to use EPLB`, set: always(engine.ExpertParallel, "true")},
		{class: "experts", expr: `EPLB requires tensor_parallel_size or data_parallel_size|EPLB requires tensor, prefill-context, or data parallelism`,
			keys: []string{"EPLB requires tensor"}, advice: "experts are balanced over ranks, and there is one: leave --enable-eplb off"},
		{class: "conflict", expr: `Microbatching currently only supports the`, advice: "use --all2all-backend deepep_low_latency or deepep_high_throughput, or leave --enable-dbo off"},
		{class: "value", expr: `Concurrent Partial Prefill is not supported`, advice: "leave --max-num-partial-prefills and --max-long-partial-prefills out"},
		{class: "speculative", expr: `async scheduling is only supported with (.+) kind of speculative decoding`, advice: "leave overlap_scheduling off, or guess by $1", set: always(engine.Overlap, "false")},
		{class: "conflict", expr: `Async scheduling is not supported by the V1 model runner with (.+)\.`, advice: "leave overlap_scheduling off, or leave out $1", set: always(engine.Overlap, "false")},
		{class: "speculative", expr: `draft_tensor_parallel_size=(\d+) cannot be other value than 1`, advice: "a draft model runs on 1 rank or on all, not on $1"},
		{class: "speculative", expr: `--per-request-spec-decode-metrics requires speculative decoding`, advice: "leave --per-request-spec-decode-metrics out, or set speculative"},
		{class: "divide", expr: `tp_size=(\d+) must be divisible by dcp_size=(\d+)`, advice: "tp $1 is not a multiple of the $2 ranks of decode context parallelism"},
		{class: "graph", expr: `No valid cudagraph sizes after rounding to multiple of (\d+)`, advice: "graphs must hold guesses of $1 tokens: use max_cudagraph_capture_size of at least $1", set: take(engine.GraphMax, 1)},
		{class: "request", expr: `This model's maximum context length is (\d+) tokens`, advice: "a request is longer than max_model_len $1: raise it, or shorten the workload"},
		{class: "start", weak: true, expr: `EngineCore (failed to start|encountered a fatal error|encountered an issue)`},
		{class: "start", weak: true, expr: `Engine core initialization failed\. See root cause above\.(?: Failed core proc\(s\): (.*))?`},
	}, append(commonSignatures(), hostSignatures()...)...)
}

func sglangSignatures() []signature {
	return append([]signature{
		{class: "kv-memory", expr: `Not enough memory\. Please try to increase --mem-fraction-static\.(?: +Current value: .*mem_fraction_static=([\d.]+))?`, change: moreMemory},
		{class: oomGraph, expr: `Capture (?:cuda graph|CPU graph|prefill CUDA graph) failed: (.*out of memory.*)`, keys: []string{"graph failed: "}, change: lessMemory},
		{class: "graph", expr: `Capture (?:cuda graph|CPU graph|prefill CUDA graph) failed: (.*)`, keys: []string{"graph failed: "}, set: always(engine.Eager, "true")},
		{class: "busy-gpu", expr: `The memory capacity is unbalanced`},
		{class: "experts", expr: `tp_size (\d+) must be divisible by (?:moe_)?ep_size (\d+)`, advice: "tp $1 is not a multiple of $2 expert-parallel ranks: use expert_parallel true", set: always(engine.ExpertParallel, "true")},
		{class: "experts", expr: `moe_intermediate_size (\d+) must be divisible by moe_tp_size \((\d+)\)`,
			advice: "experts of width $1 do not divide by $2: use expert_parallel, which keeps them whole", set: always(engine.ExpertParallel, "true")},
		{class: "fp8-block", expr: `moe_intermediate_size=(\d+) / moe_tp_size=(\d+)\) % weight_block_size_n=(\d+) == 0`,
			advice: "experts of width $1 over $2 ranks are not whole FP8 blocks of $3: use expert_parallel, or a smaller tp", set: always(engine.ExpertParallel, "true")},
		{class: "length", weak: true, expr: `Warning: .*context_length \((\d+)\) is greater than the derived context_length(?: \((\d+)\))?`, keys: []string{"is greater than the derived context_length"}, // SGLang serves all the same
			advice: "the model was not made for $1 tokens, and answers beyond $2 are not to be trusted: use a smaller max_model_len", set: take(engine.MaxModelLen, 2)},
		{class: "length", expr: `Error: .*context_length \((\d+)\) is greater than the derived context_length(?: \((\d+)\))?`, keys: []string{"is greater than the derived context_length"},
			advice: "the model was not made for $1 tokens: use a smaller max_model_len", set: take(engine.MaxModelLen, 2)},
		{class: "divide", expr: `self\.tp_size % self\.dp_size == 0|cfg\.tp_size % cfg\.attn_dp_size == 0|tp_size must be divisible by attn_dp_size`,
			keys: []string{"self.tp_size % self.dp_size == 0", "cfg.tp_size % cfg.attn_dp_size == 0", "tp_size must be divisible by attn_dp_size"}, advice: "the ranks do not fall into dp groups of data-parallel attention: use a dp that divides tp"},
		{class: "conflict", expr: `enable-hierarchical-cache and disable-radix-cache are mutually exclusive`, advice: "a host cache keeps what the prefix cache gives up: use prefix_caching, or no host_cache",
			set: unset(engine.PrefixCaching)},
		{class: "conflict", expr: `When enabling two batch overlap`, advice: "use --moe-a2a-backend deepep, or leave --enable-two-batch-overlap off"},
		{class: "kernel", expr: `FlashAttention v3 Backend requires SM|backend is only supported on Blackwell`, keys: []string{"FlashAttention v3 Backend requires", "is only supported on Blackwell"},
			advice: "leave --attention-backend to SGLang"},
		{class: "limits", expr: `chunked_prefill_size must be divisible by page_size`},
		{class: "speculative", expr: `speculative decoding does not support|Ngram speculative decoding only supports|Pipeline parallelism is not compatible with|is unstable and produces incorrect results|` +
			`only supports topk = 1`,
			keys: []string{"speculative decoding does not support", "Ngram speculative decoding only", "Pipeline parallelism is not compatible with", "is unstable and produces incorrect results", "only supports topk = 1"},
			set:  unset(engine.Speculative)},
		{class: "gpus", expr: `total number of ranks \(dp_size \* tp_size \* pp_size = (\d+)\) should be smaller than or equal to number of numa node on the machine (\d+)`,
			advice: "$1 ranks on a CPU want as many NUMA nodes, and there are $2: use fewer ranks, or say their cores with SGLANG_CPU_OMP_THREADS_BIND"},
		{class: "speculative", expr: `Unknown speculative algorithm name: (\S+)`, advice: "this SGLang has no speculation by $1", set: unset(engine.Speculative)},
		{class: "value", weak: true, expr: `ZeroDivisionError: integer (?:division or )?modulo by zero`, keys: []string{"modulo by zero"}, advice: "a size is 0, such as that of a page: see the command"},
		{class: "request", expr: `Requested token count exceeds the model's maximum context length of (\d+) tokens|exceeds the maximum allowed length \((\d+) tokens\)`,
			keys: []string{"Requested token count exceeds", "exceeds the maximum allowed length"}},
		{class: "start", weak: true, expr: `Scheduler hit an exception: `},
	}, append(commonSignatures(), hostSignatures()...)...)
}

func trtllmSignatures() []signature {
	return append([]signature{
		{class: oomStart, expr: `cudaMalloc.*out of memory|\[TensorRT-LLM\]\[ERROR\].*out of memory`, keys: []string{"out of memory"}, change: lessMemory},
		{class: "experts", expr: `num_slots. \((\d+)\) must be divisible by .ep_size. \((\d+)\)`, advice: "$1 expert slots do not divide by $2 expert-parallel ranks"},
		{class: "experts", expr: `moe_tp_size \* moe_ep_size .*must equal`, set: always(engine.ExpertParallel, "true")},
		{class: "heads", expr: `num_attention_heads \((\d+)\) must be divisible by tp_size \((\d+)\)`, advice: "$1 attention heads do not divide by tp $2: use a tp that divides them", set: dividingTP},
		{class: "flag", expr: `Error: (?:No such option: (\S+)|Missing argument .*|Option \S+ requires an argument.*|Got unexpected extra argument.*)`,
			keys: []string{"Error: No such option", "Error: Missing argument", "Error: Option ", "Error: Got unexpected"}},
		{class: "value", expr: `Error: Invalid value for '?([^':]+)'?(?:: (.*))?`},
		{class: "file", expr: `Extra inputs are not permitted`},
		{class: "value", weak: true, expr: `Value error, (.*)`},
		{class: "request", expr: `prompt length \(?([\d.]+)\)?.* should not exceed (?:max_num_tokens|max_seq_len) \(?(\d+)`,
			advice: "a prompt of $1 tokens is over the limit of $2: use chunked_prefill, or raise max_num_batched_tokens or max_model_len", set: always(engine.ChunkedPrefill, "true")},
		{class: "limits", weak: true, expr: `max_batch_size \[(\d+)\] should be less than or equal to max_num_tokens \[(\d+)\]`,
			advice: "an iteration of $2 tokens has no token for each of $1 requests: use max_num_batched_tokens of at least $1", set: take(engine.MaxBatched, 1)},
	}, append(commonSignatures(), hostSignatures()...)...)
}

// llamacppSignatures are those of llama.cpp's llama-server.
func llamacppSignatures() []signature {
	return append([]signature{
		{class: oomStart, expr: `allocating ([\d.]+) MiB on device (\d+): cudaMalloc failed: (.*)`, advice: "device $2 has no $1 MiB left: use a smaller context, fewer slots or fewer layers on the GPU", change: lessContext},
		{class: oomStart, expr: `insufficient memory \(attempted to allocate`, advice: "use a smaller context, fewer slots or a smaller micro-batch", change: lessContext},
		{class: "kv-memory", expr: `failed to allocate buffer for kv cache`, advice: "use a smaller context, or fewer slots", change: lessContext},
		{class: oomStart, expr: `failed to allocate (?:compute (?:pp |tg )?buffers|\S+ buffer of size)`, keys: []string{"failed to allocate"}, advice: "use a smaller context, fewer slots or a smaller micro-batch", change: lessContext},
		{class: oomStart, weak: true, expr: `failed to fit params to free device memory: (.*)`, advice: "use a smaller context, or fewer layers on the GPU", change: lessContext},
		{class: "flag", expr: `error: invalid argument: (\S+)`},
		{class: "value", expr: `error while handling argument "([^"]+)": (.*)`, advice: "$1 does not take this value: $2"},
		{class: "limits", expr: `quantized V cache requires flash_attn to be enabled`, advice: "use flash_attention on, or a KV cache of f16"},
		{class: "limits", expr: `([KV]) cache type (\S+) with block size (\d+) does not divide`, keys: []string{"cache type "}, advice: "heads of this model are not whole blocks of $3: use another kv_cache_dtype"},
		{class: "limits", expr: `n_seq_max must be <= (\d+)`, advice: "use max_num_seqs of at most $1", set: take(engine.MaxNumSeqs, 1)},
		{class: "speculative", expr: `requires a draft context`, advice: "name a draft model, or leave speculation off"},
		{class: "value", expr: `llama-context\.cpp:\d+: GGML_ASSERT\(n_.*\) failed`, keys: []string{"GGML_ASSERT(n_"}, advice: "a size is outside what llama.cpp was written for: see the command"},
		{class: "crash", expr: `GGML_ASSERT\(.*\) failed`, advice: "a value may be outside what llama.cpp was written for: see the command"},
		{class: "request", expr: `request \((\d+) tokens\) exceeds the available context size \((\d+) tokens\)`, keys: []string{"exceeds the available context size"},
			advice: "a prompt of $1 tokens does not fit into the $2 of a slot: raise context_size, or use fewer slots"},
		{class: "model", weak: true, expr: `failed to load model,? '([^']+)'|exiting due to model loading error`, keys: []string{"failed to load model", "exiting due to model loading error"}},
		{class: "start", weak: true, expr: `failed to create context with model '([^']+)'`},
	}, append(commonSignatures(), hostSignatures()...)...)
}
