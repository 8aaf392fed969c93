package logs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/engine"
)

func TestFailureLines(t *testing.T) {
	type change = map[string]string
	for _, tt := range []struct {
		engine, line, class, advice string
		repair                      change
	}{
		{"vllm", vllmError + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.16 GiB. GPU 0 has a total capacity of 79.19 GiB of which 588.06 MiB is free.", "oom-start", "lower gpu_memory_utilization", nil},
		{"vllm", "torch.cuda.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB.", "oom-start", "more GPUs", nil},
		{"vllm", vllmError + "RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests. Please try lowering `max_num_seqs` or `gpu_memory_utilization` when initializing the engine.",
			"oom-start", "no room for 1024 requests", change{engine.MaxNumSeqs: "512"}},
		{"vllm", "ValueError: Free memory on device (10.19/79.19 GiB) on startup is less than desired GPU memory utilization (0.9, 71.27 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
			"busy-gpu", "10.19 of 79.19 GiB are free", nil},
		{"vllm", vllmError + "ValueError: Free memory on device cuda:3 (10.19/79.19 GiB) on startup is less than desired GPU memory utilization (0.92, 72.86 GiB).", "busy-gpu", "10.19 of 79.19", nil},
		{"vllm", "(Worker pid=3) ERROR 11-23 00:00:00 [multiproc_executor.py:1] ValueError: Available memory on node 0 (16.41/23.53 GiB) on startup is less than desired CPU memory utilization (0.92, 21.65 GiB). On the CPU backend, the `--gpu-memory-utilization` flag",
			"node-memory", "21.65 GiB are asked for and 16.41 of 23.53 are free", change{engine.MemoryShare: "0.64"}},
		{"vllm", "ValueError: Available memory on node 0 (0.41/23.53 GiB) on startup is less than desired CPU memory utilization (0.92, 21.65 GiB).", "node-memory", "VLLM_CPU_KVCACHE_SPACE", nil},
		{"vllm", "ValueError: Available memory on node 0 (3.5/23.53 GiB) on kv cache allocation is less than requested memory for kv (8.0 GiB). Decrease --kv-cache-memory-bytes,", "node-memory", "use a smaller VLLM_CPU_KVCACHE_SPACE", nil},
		{"vllm", "ValueError: Available memory on node 0 (12.0/23.53 GiB) on kv cache allocation is less than requested memory for kv (15.1/16.47 GiB). Reduce CPU memory", "node-memory", "lower gpu_memory_utilization", change{engine.MemoryShare: "0.45"}},
		{"vllm", "ValueError: Available memory on node 0 (20.0/23.53 GiB) on kv cache allocation is less than requested memory for kv (-0.31/0.47 GiB). Reduce CPU memory", "node-memory", "higher gpu_memory_utilization", nil},
		{"vllm", vllmError + "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.", "kv-memory", "higher gpu_memory_utilization", nil},
		{"vllm", "ValueError: To serve at least one request with the models's max seq len (40960), (10.00 GiB KV cache is needed, which is larger than the available KV cache memory (8.47 GiB). Based on the available memory, the estimated maximum model length is 34690. Try increasing",
			"kv-memory", "40960 tokens needs 10.00 GiB of KV cache and there are 8.47", change{engine.MaxModelLen: "34688"}},
		{"vllm", "ValueError: To serve at least one request with the model's max seq len (40960), (10.00 GiB KV cache is needed, which is larger than the available KV cache memory (0.01 GiB).", "kv-memory", "more GPUs", nil},
		{"vllm", "Based on the available memory, the estimated maximum model length is 12345.", "kv-memory", "at most 12345", change{engine.MaxModelLen: "12336"}},
		{"vllm", "Value error, Total number of attention heads (40) must be divisible by tensor parallel size (6). [type=value_error]", "heads", "40 attention heads do not divide by tp 6", change{engine.TP: "4"}},
		{"vllm", vllmError + "ValueError: The output_size of gate's and up's weight = 192 is not divisible by weight quantization block_n = 128.", "fp8-block", "part of 192 is not whole FP8 blocks of 128", nil},
		{"vllm", "ValueError: Weight input_size_per_partition = 192 is not divisible by weight quantization block_k = 128.", "fp8-block", "192", nil},
		{"vllm", "AssertionError: 40 is not divisible by 3", "divide", "40 does not divide by 3", nil},
		{"vllm", "ValueError: max_num_batched_tokens (256) must be greater than or equal to max_num_seqs (512).", "limits", "at least 512", change{engine.MaxBatched: "512"}},
		{"vllm", "ValueError: max_num_batched_tokens (2048) is smaller than max_model_len (40960). This effectively limits", "limits", "use chunked_prefill", change{engine.ChunkedPrefill: "true"}},
		{"vllm", "ValueError: User-specified max_model_len (65536) is greater than the derived max_model_len (max_position_embeddings=40960 or model_max_length=None in model's config.json).", "length", "not made for 65536", change{engine.MaxModelLen: "40960"}},
		{"vllm", "ValueError: No valid cudagraph sizes after rounding to multiple of 6 (num_speculative_tokens + 1 or tp", "graph", "at least 6", change{engine.GraphMax: "6"}},
		{"vllm", "ValueError: World size (8) is larger than the number of available GPUs (4) in this node.", "gpus", "takes 8 GPUs and there are 4", nil},
		{"vllm", "  Value error, Expert parallelism load balancing is only supported on CUDA devices or ROCm devices or XPU devices now. [type=value_error", "experts", "leave --enable-eplb off", nil},
		{"vllm", "  Value error, Decode context parallelism for GQA/MQA requires `--tensor-parallel-size` (2) to be greater than the model's total number of KV heads (4). Increase `--tensor-parallel-size` or", "divide", "tp 2 keeps no copies of 4 KV heads", nil},
		{"vllm", "  Value error, `--decode-context-parallel-size` (4) exceeds the maximum supported value (2) for `--tensor-parallel-size` (8) and 4 model KV heads.", "divide", "at most 2, not 4", nil},
		{"vllm", "(Worker pid=4051) ERROR 11-23 04:41:39 [multiproc_executor.py:953] RuntimeError: _C::static_scaled_fp8_quant() expected at most 0 argument(s) but received 4 argument(s). Declaration: _C::static_scaled_fp8_quant() -> ()",
			"kernel", "no kernel static_scaled_fp8_quant", nil},
		{"vllm", vllmError + "EngineCore failed to start.", "start", "before this line", nil},
		{"vllm", "EngineCore encountered a fatal error.", "start", "", nil},
		{"vllm", "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.", "start", "", nil},
		{"vllm", "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_0': 1}", "start", "", nil},
		{"vllm", "vllm: error: unrecognized arguments: --nope 3", "flag", "this one lacks the flag", nil},
		{"vllm", "vllm serve: error: argument --kv-cache-dtype: invalid choice: 'fp9' (choose from 'auto', 'fp8')", "value", "--help", nil},
		{"vllm", "api_server.py: error: argument --max-num-seqs: invalid int value: 'many'", "value", "", nil},
		{"vllm", "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig", "value", "", nil},
		{"vllm", "ValueError: The quantization method fp8 is not supported for the current GPU. Minimum capability: 89. Current capability: 75.", "kernel", "another checkpoint format", nil},
		{"vllm", "torch.AcceleratorError: CUDA error: no kernel image is available for execution on the device", "kernel", "", nil},
		{"vllm", "ValueError: Model architectures ['FooForCausalLM'] are not supported for now.", "architecture", "newer version", nil},
		{"vllm", "ValueError: Quantization method specified in the model config (fp8) does not match the quantization method specified in the `quantization` argument (awq).", "quantization", "", change{engine.Quantization: ""}},

		{"sglang", sglangPrefix + "Scheduler hit an exception: Traceback (most recent call last):", "start", "", nil},
		{"sglang", "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.", "kv-memory", "", nil},
		{"sglang", "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. Current value: self.server_args.mem_fraction_static=0.7", "kv-memory", "", nil},
		{"sglang", "Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 20.00 MiB.", "oom-graph", "smaller max_cudagraph_capture_size", nil},
		{"sglang", "Exception: Capture prefill CUDA graph failed: CUDA out of memory.", "oom-graph", "", nil},
		{"sglang", "Exception: Capture CPU graph failed: unsupported operator", "graph", "", change{engine.Eager: "true"}},
		{"sglang", "ValueError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes. pre_model_load_memory=20.1", "busy-gpu", "end what else holds", nil},
		{"sglang", "AssertionError: tp_size 4 must be divisible by ep_size 8", "experts", "tp 4 is not a multiple of 8", change{engine.ExpertParallel: "true"}},
		{"sglang", "AssertionError: tp_size 4 must be divisible by moe_ep_size 8", "experts", "", change{engine.ExpertParallel: "true"}},
		{"sglang", "ValueError: moe_intermediate_size 1536 must be divisible by moe_tp_size (5) which is tp_size (5) divided by moe_ep_size (1).", "experts", "width 1536 do not divide by 5", change{engine.ExpertParallel: "true"}},
		{"sglang", "ValueError: For quantized MoE models, please make sure (moe_intermediate_size=1536 / moe_tp_size=8) % weight_block_size_n=128 == 0 where moe_tp_size is equal", "fp8-block", "width 1536 over 8 ranks", change{engine.ExpertParallel: "true"}},
		{"sglang", sglangPrefix + "ValueError: Weight output_partition_size = 192 is not divisible by weight quantization block_n = 128.", "fp8-block", "", nil},
		{"sglang", "AssertionError: 40 is not divisible by 6", "divide", "", nil},
		{"sglang", "AssertionError: chunked_prefill_size must be divisible by page_size", "limits", "", nil},
		{"sglang", "ValueError: Currently ngram speculative decoding does not support dp attention.", "speculative", "", change{engine.Speculative: ""}},
		{"sglang", "launch_server.py: error: unrecognized arguments: --nope", "flag", "", nil},
		{"sglang", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 8.00 GiB.", "oom-start", "", nil},
		{"sglang", sglangPrefix + "Watchdog timeout (self.watchdog_timeout=300)", "hang", "once more", nil},
		{"sglang", "OSError: [Errno 98] Port 30000 is already in use", "port", "", nil},

		{"trtllm", "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB", "oom-start", "", nil},
		{"trtllm", "[TensorRT-LLM][ERROR] tensorrt_llm::common::TllmException: CUDA runtime error in cudaMallocAsync: out of memory", "oom-start", "", nil},
		{"trtllm", "[TensorRT-LLM][ERROR] 2: [defaultAllocator.cpp::allocate::31] Error Code 2: OutOfMemory (Requested size was 123; out of memory)", "oom-start", "", nil},
		{"trtllm", "[TRT-LLM] [E] The sum of prompt length (9000.0), query length (0) should not exceed max_num_tokens (8192)", "request", "9000.0 tokens is over the limit of 8192", change{engine.ChunkedPrefill: "true"}},
		{"trtllm", "prompt length 9000 should not exceed max_num_tokens 8192", "request", "", change{engine.ChunkedPrefill: "true"}},
		{"trtllm", "[TRT-LLM] [W] max_batch_size [2048] should be less than or equal to max_num_tokens [1024]", "limits", "at least 2048", change{engine.MaxBatched: "2048"}},
		{"trtllm", "ValueError: `num_slots` (130) must be divisible by `ep_size` (8)", "experts", "130 expert slots", nil},
		{"trtllm", "Error: No such option: --nope", "flag", "", nil},
		{"trtllm", "Error: Invalid value for '--tp_size': 'two' is not a valid integer.", "value", "", nil},
		{"trtllm", "  Extra inputs are not permitted [type=extra_forbidden, input_value=1, input_type=int]", "file", "line before", nil},

		{"llamacpp", llamaPrefix + "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 8192.00 MiB on device 0: cudaMalloc failed: out of memory", "oom-start", "device 0 has no 8192.00 MiB left", nil},
		{"llamacpp", "llama_init_from_model: failed to initialize the context: failed to allocate buffer for kv cache", "kv-memory", "smaller context", nil},
		{"llamacpp", "graph_reserve: failed to allocate compute pp buffers", "oom-start", "", nil},
		{"llamacpp", "graph_reserve: failed to allocate compute buffers", "oom-start", "", nil},
		{"llamacpp", "common_fit_params: failed to fit params to free device memory: n_gpu_layers already set by user to 99, abort", "oom-start", "", nil},
		{"vllm", "  Value error, enable_expert_parallel must be True to use EPLB. [type=value_error, input_value=ArgsKwargs(())]", "experts", "", change{engine.ExpertParallel: "true"}},
		{"vllm", "  Value error, EPLB requires tensor_parallel_size or data_parallel_size to be greater than 1, but got TP=1,DP=1.", "experts", "leave --enable-eplb off", nil},
		{"vllm", "  Value error, Async scheduling is not supported by the V1 model runner with pipeline parallelism.", "conflict", "leave out pipeline parallelism", change{engine.Overlap: "false"}},
		{"sglang", "AssertionError: tp_size must be divisible by attn_dp_size * attn_cp_size", "divide", "use a dp that divides tp", nil},
		{"sglang", "[2026-11-20 10:00:00] Warning: User-specified context_length (65536) is greater than the derived context_length (40960). This may lead to incorrect model outputs or CUDA errors.", "length", "answers beyond 40960 are not to be trusted", change{engine.MaxModelLen: "40960"}},
		{"sglang", "ValueError: Target model's context_length (65536) is greater than the derived context_length (40960).", "length", "not made for 65536 tokens", change{engine.MaxModelLen: "40960"}},
		{"vllm", "  Value error, EPLB requires tensor, prefill-context, or data parallelism, but got TP=1, PCP=1, DP=1.", "experts", "leave --enable-eplb off", nil},
		{"vllm", vllmError + "ValueError: Free memory on device cuda:3 (10.19/79.19 GiB) on startup is less than the engine's budget after excluding external process's weights (0.92, 72.86 GiB).", "busy-gpu", "10.19 of 79.19", nil},
		{"vllm", "ValueError: Microbatching currently only supports the deepep_low_latency and deepep_high_throughput all2all backend. naive is not supported.", "conflict", "--all2all-backend deepep_low_latency", nil},
		{"vllm", "NotImplementedError: Concurrent Partial Prefill is not supported. We recommend to remove Concurrent Partial Prefill from your config.", "value", "leave --max-num-partial-prefills", nil},
		{"vllm", "ValueError: Currently, async scheduling is only supported with EAGLE/MTP/Draft Model/NGram GPU/DSpark kind of speculative decoding", "speculative",
			"or guess by EAGLE/MTP/Draft Model/NGram GPU/DSpark", change{engine.Overlap: "false"}},
		{"vllm", "ValueError: --per-request-spec-decode-metrics requires speculative decoding to be enabled (via --speculative-config).", "speculative", "or set speculative", nil},
		{"vllm", "ValueError: speculative_draft_tensor_parallel_size=2 cannot be other value than 1 or target model tensor_parallel_size", "speculative", "not on 2", nil},
		{"vllm", "RuntimeError: Insufficient space in /dev/shm for CPU KV offload shared region in /dev/shm: 32768 MiB required, 15900 MiB free. Increase /dev/shm (e.g. --shm-size or --ipc=host).", "host-cache", "/dev/shm has 15900 MiB free, and host_cache takes 32768 there", nil},
		{"sglang", "ValueError: Not enough host memory available. Requesting 64.00 GB but only have 40.20 GB free. Please reduce the size of the hierarchical cache.", "host-cache", "of 64.00 GB for the host cache 40.20 GB are free", nil},
		{"sglang", "ValueError: When enabling two batch overlap without an EP a2a backend (moe_a2a_backend='none'), --enable-dp-attention is required", "conflict", "--moe-a2a-backend deepep", nil},
		{"sglang", "AssertionError: FlashAttention v3 Backend requires SM>=80 and SM<=90. Please use `--attention-backend flashinfer`.", "kernel", "leave --attention-backend", nil},
		{"sglang", "ValueError: TRTLLM MLA backend is only supported on Blackwell GPUs (SM100). Please use a different backend.", "kernel", "leave --attention-backend", nil},
		{"sglang", "ValueError: trtllm_mha backend only supports topk = 1 for speculative decoding.", "speculative", "", change{engine.Speculative: ""}},
		{"sglang", "ValueError: Unknown speculative algorithm name: NOPE", "speculative", "no speculation by NOPE", change{engine.Speculative: ""}},
		{"sglang", "    assert cfg.tp_size % cfg.attn_dp_size == 0\nAssertionError", "divide", "a dp that divides tp", nil},
		{"sglang", "AssertionError: SGLANG_CPU_OMP_THREADS_BIND is not set, in this case, the total number of ranks (dp_size * tp_size * pp_size = 3) should be smaller than or equal to number of numa node on the machine 1.", "gpus",
			"3 ranks on a CPU want as many NUMA nodes, and there are 1", nil},
		{"sglang", "ZeroDivisionError: integer modulo by zero", "value", "a size is 0", nil},
		{"llamacpp", "srv    load_model: failed to load model, '/models/x.gguf'", "model", "", nil},
		{"llamacpp", "main: exiting due to model loading error", "model", "", nil},
		{"llamacpp", "common_init_from_params: failed to create context with model '/models/x.gguf'", "start", "", nil},
		{"llamacpp", "error: invalid argument: --nope", "flag", "", nil},
		{"llamacpp", `error while handling argument "-c": stoi`, "value", "-c does not take this value: stoi", nil},
		{"llamacpp", "gguf_init_from_file: failed to open GGUF file '/models/x.gguf'", "model", "", nil},
		{"llamacpp", "llama_model_load: error loading model: error loading model architecture: unknown model architecture: 'foo'", "architecture", "", nil},
		{"llamacpp", "start: couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 8080", "port", "", nil},
		{"llamacpp", "/src/ggml/src/ggml.c:3100: GGML_ASSERT(ggml_can_mul_mat(a, b)) failed", "crash", "", nil},

		{"vllm", "torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:94, unhandled system error, NCCL version 2.27.3", "comm", "NCCL_DEBUG=INFO", nil},
		{"vllm", "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.", "comm", "", nil},
		{"sglang", "[rank1]:[E1121 00:00:00.000 ProcessGroupNCCL.cpp:685] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1)", "comm", "", nil},
		{"vllm", "OSError: meta-llama/Nope is not a local folder and is not a valid model identifier listed on 'https://huggingface.co/models'", "model", "access rights", nil},
		{"vllm", "huggingface_hub.errors.GatedRepoError: 401 Client Error. (Request ID: Root=1)", "model", "", nil},
		{"sglang", "FileNotFoundError: [Errno 2] No such file or directory: '/models/x/config.json'", "model", "", nil},
		{"vllm", "OSError: [Errno 28] No space left on device", "disk", "make room", nil},
		{"vllm", "huggingface_hub.errors.LocalEntryNotFoundError: Cannot find the requested files in the disk cache and outgoing traffic has been disabled.", "offline", "without HF_HUB_OFFLINE", nil},
		{"sglang", "OSError: We couldn't connect to 'https://hub' to load the files, and couldn't find them in the cached files.", "offline", "download them beforehand", nil},
		{"vllm", "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='hub', port=443): Max retries exceeded with url: /api\nLocalEntryNotFoundError: we cannot find the requested files in the local cache.", "offline", "", nil},
		{"vllm", "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='hub', port=443): Max retries exceeded with url: /api", "download", "", nil},
		{"trtllm", "RuntimeError: The NVIDIA driver on your system is too old (found version 11040).", "driver", "", nil},
		{"vllm", "RuntimeError: [enforce fail at alloc_cpu.cpp:118] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes.", "host-memory", "", nil},
		{"vllm", "torch.AcceleratorError: CUDA error: an illegal memory access was encountered", "crash", "", nil},
		{"vllm", "RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable\nCUDA error: all CUDA-capable devices are busy or unavailable", "busy-gpu", "", nil},
		{"vllm", vllmPrefix + "No available shared memory broadcast block found in 60 seconds.", "hang", "", nil},
	} {
		f, ok := Diagnose(tt.engine, "INFO starting\n"+tt.line+"\nlast line\n")
		if !ok || f.Class != tt.class || !strings.Contains(f.Advice, tt.advice) || cmp.Diff(tt.repair, f.Repair) != "" {
			t.Errorf("%s: %q\n  %v %+v\nwant %s: %s, %v", tt.engine, tt.line, ok, f, tt.class, tt.advice, tt.repair)
			continue
		}
		if strings.ContainsAny(f.Line, "\x1b") || strings.HasPrefix(f.Line, "(Eng") || strings.HasPrefix(f.Line, "[2026") {
			t.Errorf("%q keeps its prefix", f.Line)
		}
		if f.Lasting != (f.Class == "model" || f.Class == "offline") {
			t.Errorf("%s: lasting %v", f.Class, f.Lasting)
		}
		if f.Infra != classes()[f.Class].again() {
			t.Errorf("%s: infra %v", f.Class, f.Infra)
		}
	}
}

// TestFailureClasses: signatures keep to the list, each class of it is found by some
// signature, and has words and a kind.
func TestFailureClasses(t *testing.T) {
	used := map[string]bool{oomLoad: true} // by its place in the log
	for _, list := range [][]signature{vllmSignatures(), sglangSignatures(), trtllmSignatures(), llamacppSignatures()} {
		for i, s := range list {
			if used[s.class] = true; classes()[s.class].Name == "" {
				t.Errorf("%s: class %q is not on the list", s.expr, s.class)
			}
			for _, key := range compileSignatures(list).patterns[i].keys {
				if len(key) < 8 {
					t.Errorf("%s: %q is too short a text to look for", s.expr, key)
				}
			}
		}
	}
	for _, c := range FailureClasses() {
		if !used[c.Name] || c.Doc == "" || c.Advice == "" || c.Kind != Refused && c.Kind != Infrastructure && c.Kind != Unclear {
			t.Errorf("class %+v", c)
		}
	}
}

// TestFirstCause: a stated cause counts before what follows from it, whatever the
// order, and source lines of a traceback do not count.
func TestFirstCause(t *testing.T) {
	for _, tt := range []struct{ engine, log, class, line string }{
		{"vllm", vllmError + "EngineCore failed to start.\n" + vllmError + "    raise ValueError(\"No available memory for the cache blocks. \"\n" +
			vllmError + "ValueError: No available memory for the cache blocks. Try x\nRuntimeError: Engine core initialization failed. See root cause above.\n",
			"kv-memory", "ValueError: No available memory for the cache blocks. Try x"},
		{"vllm", "DistBackendError: NCCL error in: x\n(Worker_TP1 pid=3) torch.OutOfMemoryError: CUDA out of memory. Tried\n", "oom-start", "torch.OutOfMemoryError: CUDA out of memory. Tried"},
		{"vllm", "ValueError: Free memory on device (1.0/79.2 GiB) on startup is less than desired GPU memory utilization (0.9, 71.3 GiB).\nRuntimeError: Engine core initialization failed. See root cause above.\n",
			"busy-gpu", "ValueError: Free memory on device (1.0/79.2 GiB) on startup is less than desired GPU memory utilization (0.9, 71.3 GiB)."},
		{"vllm", "INFO 11-23 04:11:18 [shm_broadcast.py:871] No available shared memory broadcast block found in 60 seconds. This typically happens when some processes are hanging or doing some time-consuming work (e.g. compilation\nterminate called after throwing an instance of 'std::bad_alloc'\n",
			"host-memory", "terminate called after throwing an instance of 'std::bad_alloc'"}, // the compilation took its time, and then had no memory
		{"vllm", "INFO:     Application startup complete.\nRunning: 5 reqs\ntorch.OutOfMemoryError: CUDA out of memory. Tried\n", "oom-load", "torch.OutOfMemoryError: CUDA out of memory. Tried"},
		{"vllm", "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  10%\ntorch.OutOfMemoryError: CUDA out of memory. Tried\n", "oom-graph", "torch.OutOfMemoryError: CUDA out of memory. Tried"},
		{"vllm", "Capturing CUDA graphs (decode, FULL): 100%\nGraph capturing finished in 3 secs, took 0.50 GiB\nCUDA out of memory. Tried\n", "oom-start", "CUDA out of memory. Tried"},
		{"sglang", sglangPrefix + "Capture target decode CUDA graph begin. avail mem=9.0 GB\n" + sglangPrefix + "torch.OutOfMemoryError: CUDA out of memory.\n", "oom-graph", "torch.OutOfMemoryError: CUDA out of memory."},
		{"sglang", sglangPrefix + "Capture cuda graph begin. This can take\n" + sglangPrefix + "Capture cuda graph end. Time elapsed: 3 s.\nCUDA out of memory. Tried\n", "oom-start", "CUDA out of memory. Tried"},
		{"llamacpp", "main: exiting due to model loading error\nllama: failed to open GGUF file 'x'\n", "model", "llama: failed to open GGUF file 'x'"},
	} {
		f, ok := Diagnose(tt.engine, tt.log)
		if !ok || f.Class != tt.class || f.Line != tt.line {
			t.Errorf("%q: %v %s %q, want %s %q", tt.log, ok, f.Class, f.Line, tt.class, tt.line)
		}
	}
	if f, ok := Diagnose("vllm", "INFO all is well\nApplication startup complete.\n"); ok {
		t.Errorf("a good log is diagnosed: %+v", f)
	}
	if f, ok := Diagnose("vllm", "ValueError: No available memory for the cache blocks. Try x"); !ok || f.Class != "kv-memory" {
		t.Errorf("%v %+v", ok, f)
	}
	for log, want := range map[string]bool{ // a crash, a busy device and a missing model say nothing about the configuration
		"CUDA error: an illegal memory access was encountered":                                        false,
		"CUDA error: an illegal memory access was encountered\nEngineCore encountered a fatal error.": true,
		"GatedRepoError: 401 Client Error\nEngineCore failed to start.":                               false,
		"ValueError: Free memory on device (1.0/79.2 GiB) on startup is less than desired GPU memory utilization (0.9, 71.3 GiB).\nEngine core initialization failed. See root cause above. x": false,
	} {
		if reason, ok := refusal("vllm", log); ok != want {
			t.Errorf("%q: refusal %v %q", log, ok, reason)
		}
	}
}

// TestRepairFor: steps from what the command has.
func TestRepairFor(t *testing.T) {
	type params = map[string]string
	const oom, fp8 = "torch.OutOfMemoryError: CUDA out of memory.\n", "The output_size of gate's and up's weight = 192 is not divisible by weight quantization block_n = 128."
	for _, tt := range []struct {
		engine, log string
		command     engine.Command
		want        params
	}{
		{"vllm", oom, engine.Command{Engine: "vllm"}, params{engine.MemoryShare: "0.85"}},
		{"vllm", oom, engine.Command{Engine: "vllm", Version: "0.20.1"}, params{engine.MemoryShare: "0.87"}},
		{"vllm", oom, engine.Command{Engine: "vllm", Params: params{engine.MemoryShare: "0.95"}}, params{engine.MemoryShare: "0.9"}},
		{"vllm", oom, engine.Command{Engine: "vllm", Params: params{engine.MemoryShare: "0.3"}}, nil},
		{"sglang", oom, engine.Command{Engine: "sglang"}, nil},
		{"sglang", "server_args=ServerArgs(model_path='m', mem_fraction_static=0.834, tp_size=1)\n" + oom, engine.Command{Engine: "sglang"}, params{engine.MemoryShare: "0.784"}},
		{"sglang", "server_args={'model_path': 'm', 'mem_fraction_static': 0.834, 'tp_size': 1}\n" + oom, engine.Command{Engine: "sglang"}, params{engine.MemoryShare: "0.784"}},
		{"trtllm", oom, engine.Command{Engine: "trtllm"}, params{engine.MemoryShare: "0.85"}},
		{"vllm", "No available memory for the cache blocks", engine.Command{Engine: "vllm"}, params{engine.MemoryShare: "0.95"}},
		{"vllm", "No available memory for the cache blocks", engine.Command{Engine: "vllm", Params: params{engine.MemoryShare: "0.95"}}, nil},
		{"vllm", "No available memory for the cache blocks", engine.Command{Engine: "vllm", Params: params{engine.MemoryShare: "0.97"}}, nil},
		{"vllm", fp8, engine.Command{Engine: "vllm", Params: params{engine.TP: "8"}}, params{engine.ExpertParallel: "true"}},
		{"vllm", fp8, engine.Command{Engine: "vllm", Params: params{engine.TP: "8", engine.ExpertParallel: "true"}}, params{engine.TP: "4"}},
		{"vllm", "Weight output_partition_size = 192 is not divisible by weight quantization block_n = 128.", engine.Command{Engine: "vllm", Params: params{engine.TP: "8"}}, params{engine.TP: "4"}},
		{"vllm", "AssertionError: 100 is not divisible by 8", engine.Command{Engine: "vllm", Params: params{engine.TP: "8"}}, params{engine.TP: "4"}},
		{"vllm", "AssertionError: 100 is not divisible by 8", engine.Command{Engine: "vllm", Params: params{engine.TP: "2"}}, nil},
		{"vllm", "the estimated maximum model length is 12345", engine.Command{Engine: "vllm"}, params{engine.MaxModelLen: "12336"}},
		{"llamacpp", "allocating 10.00 MiB on device 0: cudaMalloc failed: out of memory", engine.Command{Engine: "llamacpp", Params: params{engine.MaxModelLen: "8192"}}, params{engine.MaxModelLen: "4096"}},
		{"llamacpp", "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 524288.00 MiB on device 0: cudaMalloc failed: out of memory", engine.Command{Engine: "llamacpp", Params: params{engine.ContextSize: "4194304", engine.GPULayers: "all"}}, params{engine.ContextSize: "2097152"}},
		{"llamacpp", "allocating 10.00 MiB on device 0: cudaMalloc failed: out of memory", engine.Command{Engine: "llamacpp", Params: params{engine.MaxNumSeqs: "4"}}, params{engine.MaxNumSeqs: "2"}},
	} {
		f, ok := Diagnose(tt.engine, tt.log)
		if !ok {
			t.Errorf("%q: no failure", tt.log)
			continue
		}
		if diff := cmp.Diff(tt.want, f.RepairFor(tt.command)); diff != "" {
			t.Errorf("%s %q with %v: %s", tt.engine, tt.log, tt.command.Params, diff)
		}
	}
	f, _ := Diagnose("vllm", "the estimated maximum model length is 12345")
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var back Failure
	if err := json.Unmarshal(text, &back); err != nil || back.RepairFor(engine.Command{})[engine.MaxModelLen] != "12336" {
		t.Errorf("%s: %v, %+v", text, err, back)
	}
}

// refusal finds in a log the first sign that the engine could not start with its
// configuration, and returns that line without colours and prefix. A line that
// only reports a failure further up counts when there is no other. That another process
// holds a device, or a file is missing, says nothing about the configuration.
func refusal(engineName, log string) (reason string, ok bool) {
	for _, f := range compiledSignatures()[engineName].find(log) {
		switch classes()[f.sig.class].Kind {
		case Infrastructure:
			return "", false
		case Refused:
			return f.line, true
		}
	}
	return "", false
}

func TestRefusal(t *testing.T) {
	for _, tt := range []struct{ engine, log, want string }{
		{"vllm", "(EngineCore_0 pid=7) ERROR 11-21 00:00:00 [core.py:700] EngineCore failed to start.\n(EngineCore_0 pid=7) ValueError: No available memory for the cache blocks. Try x\nRuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n",
			"ValueError: No available memory for the cache blocks. Try x"},
		{"vllm", "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_0': 1}", "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_0': 1}"},
		{"vllm", "torch.OutOfMemoryError: CUDA out of memory. Tried\nValueError: 3 is not divisible by 2", "torch.OutOfMemoryError: CUDA out of memory. Tried"},
		{"sglang", "[2026-11-21 00:00:00 TP0] Scheduler hit an exception: Traceback\n[2026-11-21 00:00:00 TP0] Capture cuda graph failed: no room\n", "Capture cuda graph failed: no room"},
		{"trtllm", "Usage: x\n\nError: No such option: --foo\n", "Error: No such option: --foo"},
		{"vllm", "vllm serve: error: unrecognized arguments: --foo", "vllm serve: error: unrecognized arguments: --foo"},
	} {
		if got, ok := refusal(tt.engine, tt.log); !ok || got != tt.want {
			t.Errorf("%s: %q, %v; want %q", tt.engine, got, ok, tt.want)
		}
	}
	for _, log := range []string{
		"", "INFO Application startup complete", "OSError: [Errno 98] Address already in use",
		"ValueError: Free memory on device cuda:0 (10.1/79.2 GiB) on startup is less than desired GPU memory utilization (0.9, 71.3 GiB).", // another process holds it
	} {
		if reason, ok := refusal("vllm", log); ok {
			t.Errorf("%q reads as refusal: %s", log, reason)
		}
	}
}

// What a real server says when it refuses is found in its log; what is no fault of the
// configuration, and a good start, are not.
func TestLlamacppRefusal(t *testing.T) {
	want := map[string]string{
		"refused-flag.log":        "error: invalid argument: --max-num-seqs",
		"refused-value.log":       `error while handling argument "-np": stoi`,
		"refused-cache-type.log":  `error while handling argument "-ctk": Unsupported cache type: q3`,
		"refused-flash.log":       `error while handling argument "-fa": error: unknown value for --flash-attn: 'maybe'`,
		"refused-slots-0.log":     `error while handling argument "-np": error: invalid value for n_parallel`,
		"refused-no-value.log":    `error while handling argument "-c": expected value for argument`,
		"refused-removed.log":     `error while handling argument "--draft-max": the argument has been removed. use --spec-draft-n-max or --spec-ngram-mod-n-max`,
		"refused-v-cache.log":     "llama_init_from_model: quantized V cache requires flash_attn to be enabled",
		"refused-context.log":     "ggml_aligned_malloc: insufficient memory (attempted to allocate 781250.00 MB)",
		"refused-cuda-memory.log": "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 524288.00 MiB on device 0: cudaMalloc failed: out of memory",
		"refused-slots.log":       "llama_init_from_model: failed to initialize the context: n_seq_max must be <= 256",
		"refused-batch.log":       "src/llama-context.cpp:2273: GGML_ASSERT(n_outputs_max <= cparams.n_outputs_max) failed",
		"broken-no-model.log":     "",
		"broken-no-gguf.log":      "",
		"broken-port.log":         "",
		"start.log":               "",
		"start-verbose.log":       "",
	}
	files, err := filepath.Glob("../testdata/llamacpp/*.log")
	if err != nil || len(files) != len(want) {
		t.Fatalf("%d recordings, want %d: %v", len(files), len(want), err)
	}
	for name, reason := range want {
		got, ok := refusal("llamacpp", recordedLog(t, name))
		if got != reason || ok != (reason != "") {
			t.Errorf("%s: %q %v, want %q", name, got, ok, reason)
		}
	}
}

// recordedLog is a log of a real llama-server.
func recordedLog(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "testdata", "llamacpp", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
