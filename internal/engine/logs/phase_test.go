package logs

import "testing"

func TestPhase(t *testing.T) {
	for _, c := range []struct{ engine, line, phase string }{
		{"vllm", "(EngineCore_0 pid=1) INFO 11-21 00:00:00 [gpu_model_runner.py:1] Starting to load model Qwen/Qwen3-32B...", loading},
		{"vllm", "Loading safetensors checkpoint shards:  48% Completed | 12/25 [01:03<01:10,  5.4s/it]", loading},
		{"vllm", "INFO 11-21 00:00:00 [backends.py:1] Dynamo bytecode transform time: 12.1 s", compiling},
		{"vllm", "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  31%|███       | 21/67 [00:02<00:05,  8.4it/s]", capturing},
		{"vllm", "(APIServer pid=1) WARNING 11-23 00:00:00 [vllm.py:1703] Enforce eager set, disabling torch.compile, CUDAGraphs, and JIT kernel warmup.", ""},
		{"vllm", "(Worker pid=3) INFO 11-23 00:00:00 [cpu_model_runner.py:87] Warming up model for the compilation...", "compiling"},
		{"vllm", "INFO 11-21 00:00:00 [shm_broadcast.py:1] No available shared memory broadcast block found in 60 seconds.", ""},
		{"sglang", "[2026-11-21 00:00:00 TP0] Load weight begin. avail mem=78.58 GB", loading},
		{"sglang", "[2026-11-21 00:00:00 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=9.63 GB", capturing},
		{"sglang", "Capturing batches (bs=160 avail_mem=9.53 GB):   0%|          | 0/23 [00:00<?, ?it/s]", capturing},
		{"sglang", "Fetching 17 files:  29%|██▉       | 5/17 [00:31<01:14,  6.2s/it]", downloading},
		{"sglang", "[2026-11-23 16:19:27] server_args={'model_path': 'model', 'skip_server_warmup': False, 'warmups': None, 'disable_flashinfer_autotune': False, 'enable_torch_compile': False}", ""},
		{"sglang", "[2026-11-23 16:21:24] Engine startup timings (s): load_weight=0.27, kv_cache_allocation=1.28, scheduler_e2e=8.64, cuda_graph={prefill=0.00, decode=0.00}, tokenizer_e2e=117.52", ""},
		{"trtllm", "Loading weights concurrently:  42%|████▏     | 120/284", loading},
		{"llamacpp", "load_tensors: loading model tensors, this can take a while... (mmap = true)", loading},
		{"llamacpp", "......................", loading},
		{"llamacpp", "main: server is listening on http://127.0.0.1:8080", ""},
	} {
		if phase, ok := Phase(c.engine, c.line); phase != c.phase || ok != (c.phase != "") {
			t.Errorf("%s: %q is %q, %v, want %q", c.engine, c.line, phase, ok, c.phase)
		}
	}
}
