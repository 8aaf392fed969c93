package logs

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/engine"
)

const (
	vllmPrefix   = "\x1b[1;36m(EngineCore_0 pid=271)\x1b[0;0m INFO 11-21 00:00:00 [file.py:1] "
	vllmError    = "(EngineCore_0 pid=271) ERROR 11-21 00:00:00 [core.py:708] "
	sglangPrefix = "[2026-11-21 00:00:00 TP0] "
	trtllmPrefix = "[11/21/2026-00:00:00] [TRT-LLM] [RANK 0] [I] "
	trtllmCpp    = "[TensorRT-LLM][INFO] "
	llamaPrefix  = "0.01.234.567 I "
)

// TestFactLines: every line that the engines print about themselves, by version,
// and what is read from it.
func TestFactLines(t *testing.T) {
	type values = map[string]float64
	for _, tt := range []struct {
		engine, line string
		want         Facts
	}{
		{"vllm", "(APIServer pid=1) INFO 11-21 00:00:00 [api_server.py:1839] vLLM API server version 0.11.0", Facts{Version: "0.11.0"}},
		{"vllm", vllmPrefix + "Initializing a V1 LLM engine (v0.17.1) with config: model='Qwen/Qwen3-8B'", Facts{Version: "0.17.1"}},
		{"vllm", vllmPrefix + "Starting vLLM API server 0 on http://0.0.0.0:8000", Facts{Address: "http://0.0.0.0:8000"}},
		{"vllm", vllmPrefix + "Starting vLLM server on http://0.0.0.0:8000", Facts{Address: "http://0.0.0.0:8000"}},
		{"vllm", "\x1b[32mINFO\x1b[0m:     Application startup complete.", Facts{Ready: true}},
		{"vllm", vllmPrefix + "Loading weights took 10.31 seconds", Facts{Values: values{"weights_seconds": 10.31}}},
		{"vllm", vllmPrefix + "Model loading took 61.0347 GiB and 11.024 seconds", Facts{Values: values{"model_gib": 61.0347, "load_seconds": 11.024}}},
		{"vllm", "(Worker_TP1 pid=9) INFO 11-21 00:00:00 [gpu_model_runner.py:3] Model loading took 15.2683 GiB memory and 9.5 seconds", Facts{Values: values{"model_gib": 15.2683, "load_seconds": 9.5}}},
		{"vllm", vllmPrefix + "Available KV cache memory: 8.47 GiB", Facts{Values: values{"kv_gib": 8.47}}},
		{"vllm", vllmPrefix + "Available KV cache memory: -1.20 GiB", Facts{Values: values{"kv_gib": -1.2}}},
		{"vllm", vllmPrefix + "GPU KV cache size: 1,034,688 tokens", Facts{Values: values{"kv_tokens": 1034688}}},
		{"vllm", "(EngineCore pid=3) INFO 11-23 00:00:00 [kv_cache_utils.py:2327] CPU KV cache size: 131,072 tokens, Maximum concurrency for 2,048 tokens per request: 64.00x",
			Facts{Values: values{"kv_tokens": 131072, "concurrency_len": 2048, "max_concurrency": 64}}}, // one line from 0.32 on
		{"vllm", "(Worker pid=3) INFO 11-23 00:00:00 [cpu_worker.py:260] Explicitly set (1.0/23.53) GiB for KV cache on node 0.", Facts{Values: values{"kv_gib": 1, "device_gib": 23.53}}},
		{"vllm", "(Worker pid=3) INFO 11-23 00:00:00 [cpu_worker.py:260] Auto set (8.12/23.53) GiB for KV cache on node 0, with 9.41 GiB requested memory for the worker. 1.29 GiB memory was consumed by non-kv usages.",
			Facts{Values: values{"kv_gib": 8.12, "device_gib": 23.53}}},
		{"vllm", "(APIServer pid=1) INFO 11-23 00:00:00 [loggers.py:330] Engine 000: Avg prompt throughput: 1234.5 tokens/s, Avg generation throughput: 99.0 tokens/s, Running: 8 reqs, Waiting: 1 reqs, CPU KV cache usage: 2.1%, Prefix cache hit rate: 0.0%",
			Facts{Values: values{"running_peak": 8, "waiting_peak": 1, "kv_usage_peak": 0.021}}},
		{"vllm", vllmPrefix + "Maximum concurrency for 40,960 tokens per request: 25.26x", Facts{Values: values{"concurrency_len": 40960, "max_concurrency": 25.26}}},
		{"vllm", vllmPrefix + "Dynamo bytecode transform time: 7.58 s", Facts{Values: values{"dynamo_seconds": 7.58}}},
		{"vllm", vllmPrefix + "torch.compile takes 37.83 s in total", Facts{Values: values{"compile_seconds": 37.83}}},
		{"vllm", vllmPrefix + "torch.compile and initial profiling run took 41.02 s in total", Facts{Values: values{"compile_seconds": 41.02}}},
		{"vllm", vllmPrefix + "torch.compile took 12.5 s in total", Facts{Values: values{"compile_seconds": 12.5}}},
		{"vllm", vllmPrefix + "torch.compile and initial profiling/warmup run together took 13.5 s in total", Facts{Values: values{"compile_seconds": 13.5}}},
		{"vllm", vllmPrefix + "Compiling a graph for dynamic shape takes 30.25 s", Facts{Values: values{"compile_seconds": 30.25}}},
		{"vllm", vllmPrefix + "Compiling a graph for compile range (1, 8192) takes 31.5 s", Facts{Values: values{"compile_seconds": 31.5}}},
		{"vllm", vllmPrefix + "Directly load the compiled graph(s) for dynamic shape from the cache, took 3.5 s", Facts{Values: values{"compile_seconds": 3.5}}},
		{"vllm", vllmPrefix + "Graph capturing finished in 21 secs, took 0.69 GiB", Facts{Values: values{"graph_seconds": 21, "graph_gib": 0.69}}},
		{"vllm", vllmPrefix + "Estimated CUDA graph memory: 1.02 GiB total", Facts{Values: values{"graph_gib": 1.02}}},
		{"vllm", vllmPrefix + "init engine (profile, create kv cache, warmup model) took 83.54 seconds", Facts{Values: values{"init_seconds": 83.54}}},
		{"vllm", vllmPrefix + "init engine (profile, create kv cache, warmup model) took 60.10 s (compilation: 41.02 s)", Facts{Values: values{"init_seconds": 60.1, "compile_seconds": 41.02}}},
		{"vllm", vllmPrefix + "Chunked prefill is enabled with max_num_batched_tokens=8192.", Facts{Values: values{"max_num_batched_tokens": 8192}}},
		{"vllm", "(APIServer pid=1) INFO 11-21 00:00:00 [loggers.py:123] Engine 000: Avg prompt throughput: 1234.5 tokens/s, Avg generation throughput: 99.0 tokens/s, Running: 210 reqs, Waiting: 14 reqs, GPU KV cache usage: 87.5%, Prefix cache hit rate: 0.0%",
			Facts{Values: values{"running_peak": 210, "waiting_peak": 14, "kv_usage_peak": 0.875}}},
		{"vllm", "SpecDecoding metrics: Mean acceptance length: 2.41, Accepted throughput: 5.00 tokens/s", Facts{Values: values{"accept_length": 2.41}}},

		{"vllm", "INFO 11-20 10:00:00 [serve.py:1] vLLM server version 0.33.0, serving model Qwen/Qwen3-8B", Facts{Version: "0.33.0"}},
		{"sglang", "The server is fired up and ready to roll!", Facts{Ready: true}},
		{"sglang", sglangPrefix + "max_total_num_tokens=434231, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=2714, context_len=40960, available_gpu_mem=9.59 GB",
			Facts{Values: values{"kv_tokens": 434231, "max_num_batched_tokens": 8192, "max_prefill_tokens": 16384, "max_num_seqs": 2714, "max_model_len": 40960, "free_gib": 9.59}}},
		{"sglang", sglangPrefix + "max_total_num_tokens=434231, chunked_prefill_size=-1, max_prefill_tokens=16384, max_running_requests=2714, context_len=40960, available_cpu_mem=9.59 GB",
			Facts{Values: values{"kv_tokens": 434231, "max_prefill_tokens": 16384, "max_num_seqs": 2714, "max_model_len": 40960, "free_gib": 9.59}}},
		{"sglang", sglangPrefix + "Init torch distributed ends. mem usage=0.00 GB", Facts{}},
		{"sglang", sglangPrefix + "Init torch distributed ends. elapsed=2.15 s, mem usage=1.20 GB", Facts{Values: values{"comm_seconds": 2.15}}},
		// SGLang 0.5.23 on a CPU, whose server_args are a dictionary.
		{"sglang", "[2026-11-23 16:21:16] Init parallel ends. elapsed=0.14 s", Facts{Values: values{"comm_seconds": 0.14}}},
		{"sglang", "[2026-11-23 16:19:27] server_args={'model_path': 'model', 'enable_tf32_matmul': False, 'mem_fraction_static': 0.716, 'max_running_requests': None, 'chunked_prefill_size': 4096}", Facts{Values: values{"memory_share": 0.716}}},
		{"sglang", "[2026-11-23 16:21:22] Load weight end. elapsed=0.27 s, type=LlamaForCausalLM, avail mem=18.97 GB, mem usage=0.00 GB.", Facts{Values: values{"load_seconds": 0.27, "model_gib": 0}}},
		{"sglang", "[2026-11-23 16:21:24] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 65536, K size: 0.25 GB, V size: 0.25 GB", Facts{Values: values{"kv_tokens": 65536, "kv_gib": 0.5}}},
		{"sglang", "[2026-11-23 16:27:58] Decode batch, #running-req: 7, #token: 1949, token usage: 0.03, cpu graph: False, gen throughput (token/s): 14.06, #queue-req: 0",
			Facts{Values: values{"running_peak": 7, "kv_usage_peak": 0.03, "waiting_peak": 0}}},
		{"sglang", sglangPrefix + "Load weight begin. avail mem=78.50 GB", Facts{Values: values{"start_gib": 78.5}}},
		{"sglang", sglangPrefix + "Load weight end. type=Qwen3ForCausalLM, dtype=torch.bfloat16, avail mem=17.27 GB, mem usage=61.23 GB.", Facts{Values: values{"model_gib": 61.23}}},
		{"sglang", sglangPrefix + "Load weight end. elapsed=12.75 s, type=Qwen3ForCausalLM, quant=fp8, avail mem=46.90 GB, mem usage=31.60 GB.", Facts{Values: values{"load_seconds": 12.75, "model_gib": 31.6}}},
		{"sglang", sglangPrefix + "KV Cache is allocated. #tokens: 34231, K size: 4.25 GB, V size: 4.25 GB", Facts{Values: values{"kv_tokens": 34231, "kv_gib": 8.5}}},
		{"sglang", sglangPrefix + "KV Cache is allocated. dtype: torch.float8_e4m3fn, #tokens: 34231, K size: 2.25 GB, V size: 2.25 GB", Facts{Values: values{"kv_tokens": 34231, "kv_gib": 4.5}}},
		{"sglang", sglangPrefix + "Init parallel ends. elapsed=2.15 s", Facts{Values: values{"comm_seconds": 2.15}}},
		{"sglang", sglangPrefix + "MHA KV pool is reserved. dtype: torch.bfloat16, #tokens: 34231, K size: 4.25 GB, V size: 4.25 GB", Facts{Values: values{"kv_tokens": 34231, "kv_gib": 8.5}}},
		{"sglang", sglangPrefix + "Post-capture KV sizing: KV cache allocated. dtype: torch.bfloat16, #tokens: 500000, KV size: 32.75 GB, avail mem=3.21 GB", Facts{Values: values{"kv_tokens": 500000, "kv_gib": 32.75}}},
		{"sglang", sglangPrefix + "Capture decode CUDA graph begin. backend=full, num_tokens_per_req=1, avail mem=9.11 GB", Facts{Values: values{"free_gib": 9.11}}},
		{"sglang", sglangPrefix + "KV Cache is allocated. #tokens: 500000, KV size: 32.75 GB", Facts{Values: values{"kv_tokens": 500000, "kv_gib": 32.75}}},
		{"sglang", sglangPrefix + "Memory pool end. avail mem=12.28 GB", Facts{Values: values{"free_gib": 12.28}}},
		{"sglang", sglangPrefix + "Capture cuda graph begin. This can take up to several minutes. avail mem=12.21 GB", Facts{Values: values{"free_gib": 12.21}}},
		{"sglang", sglangPrefix + "Capture cuda graph end. Time elapsed: 9.81 s. mem usage=2.09 GB. avail mem=10.12 GB.", Facts{Values: values{"graph_seconds": 9.81, "graph_gib": 2.09}}},
		{"sglang", sglangPrefix + "Capture target decode CUDA graph end. elapsed=6.50 s, mem usage=1.25 GB, avail mem=10.10 GB.", Facts{Values: values{"graph_seconds": 6.5, "graph_gib": 1.25}}},
		{"sglang", sglangPrefix + "Decode batch, #running-req: 64, #token: 50000, token usage: 0.75, accept len: 2.50, accept rate: 0.62, cuda graph: True, gen throughput (token/s): 2110.25, #queue-req: 3, ",
			Facts{Values: values{"running_peak": 64, "kv_usage_peak": 0.75, "accept_length": 2.5, "waiting_peak": 3}}},
		{"sglang", sglangPrefix + "Decode batch [17], #running-req: 2, #full token: 100, full token usage: 0.10, mamba num: 2, mamba usage: 0.20, cuda graph: False, gen throughput (token/s): 5.0, #queue-req: 0, ",
			Facts{Values: values{"running_peak": 2, "kv_usage_peak": 0.1, "waiting_peak": 0}}},
		{"sglang", sglangPrefix + "KV cache pool is full. Retract requests. #retracted_reqs: 4, #new_token_ratio: 0.5 -> 0.8", Facts{Values: values{"retractions": 4}}},

		{"trtllm", "INFO:     Uvicorn running on http://localhost:8000 (Press CTRL+C to quit)", Facts{Ready: true, Address: "http://localhost:8000"}},
		{"trtllm", "INFO:     Application startup complete.", Facts{Ready: true}},
		{"trtllm", trtllmPrefix + "Server is ready to accept requests", Facts{Ready: true}},
		{"trtllm", "[TensorRT-LLM] TensorRT LLM version: 1.1.0", Facts{Version: "1.1.0"}},
		{"trtllm", trtllmPrefix + "Peak memory during memory usage profiling (torch + non-torch): 66.25 GiB, available KV cache memory when calculating max tokens: 11.50 GiB, fraction is set 0.9, kv size is 262144. device total memory 79.19 GiB",
			Facts{Values: values{"peak_gib": 66.25, "kv_gib": 11.5, "memory_share": 0.9, "kv_bytes_per_token": 262144, "device_gib": 79.19}}},
		{"trtllm", trtllmPrefix + "Peak memory during memory usage profiling (torch + non-torch): 66.25 GiB, available KV cache memory when calculating max tokens: 11.50 GiB", Facts{Values: values{"peak_gib": 66.25, "kv_gib": 11.5}}},
		{"trtllm", trtllmCpp + "[MemUsageChange] Allocated 10.34 GiB for max tokens in paged KV cache (42368).", Facts{Values: values{"kv_gib": 10.34, "kv_tokens": 42368}}},
		{"trtllm", trtllmPrefix + "max_seq_len=40960, max_num_requests=2048, max_num_tokens=8192, max_batch_size=2048", Facts{Values: values{"max_model_len": 40960, "max_num_seqs": 2048, "max_num_batched_tokens": 8192}}},
		{"trtllm", trtllmCpp + "Max KV cache pages per sequence: 1280", Facts{Values: values{"sequence_blocks": 1280}}},
		{"trtllm", trtllmCpp + "Max KV cache blocks per sequence: 1280 [window size=40960]", Facts{Values: values{"sequence_blocks": 1280}}},
		{"trtllm", trtllmPrefix + "iter = 300, global_rank = 0, rank = 0, currank_total_requests = 16/16, host_step_time = 12.25ms, num_scheduled_requests: 16, states = {}", Facts{Values: values{"running_peak": 16}}},
		{"trtllm", trtllmPrefix + "Running CUDA graph warmup/capture for 34 batch sizes", Facts{Values: values{"graph_sizes": 34}}},

		{"llamacpp", llamaPrefix + "main: server is listening on http://127.0.0.1:8080", Facts{Ready: true, Address: "http://127.0.0.1:8080"}},
		{"llamacpp", "main: model loaded", Facts{Ready: true}},
		{"llamacpp", "srv    load_model: loading model 'tiny.gguf'", Facts{}},
		{"llamacpp", "build: 6789 (571d0d54) with cc (Debian 12.2.0) for x86_64-linux-gnu", Facts{Version: "6789"}},
		{"llamacpp", "srv    load_model: initializing, n_slots = 4, n_ctx_slot = 2048, kv_unified = 'false'", Facts{Values: values{"slots": 4, "slot_context": 2048}}},
		{"llamacpp", "llama_context: n_ctx         = 8192", Facts{Values: values{"context": 8192}}},
		{"llamacpp", "llama_context: n_ctx_seq     = 2048", Facts{Values: values{"slot_context": 2048}}},
		{"llamacpp", "llama_kv_cache: size =  448.00 MiB (  4096 cells,  28 layers,  4/4 seqs), K (f16):  224.00 MiB, V (f16):  224.00 MiB", Facts{Values: values{"kv_gib": 0.4375, "kv_cells": 4096, "kv_tokens": 16384}}},
		{"llamacpp", "llama_kv_cache: size =  448.00 MiB ( 16384 cells,  28 layers,  4/1 seqs), K (f16):  224.00 MiB, V (f16):  224.00 MiB", Facts{Values: values{"kv_gib": 0.4375, "kv_cells": 16384, "kv_tokens": 16384}}},
		{"llamacpp", "llama_kv_cache:        CPU KV buffer size =   448.00 MiB", Facts{}},
		{"llamacpp", "llama_context:        CPU compute buffer size =   512.00 MiB", Facts{Values: values{"compute_gib": 0.5}}},
	} {
		if tt.want.Values == nil {
			tt.want.Values = values{}
		}
		got := Read(tt.engine, "first line\n"+tt.line+"\r\nlast line")
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %q (-want +got):\n%s", tt.engine, tt.line, diff)
		}
	}
}

// TestFactsOfRanks: the smallest rank bounds the capacity, the slowest the time, and
// the last pool replaces the one that was made for a profile.
func TestFactsOfRanks(t *testing.T) {
	vllm := Read("vllm", strings.Join([]string{
		"(Worker_TP0 pid=1) INFO Model loading took 15.2 GiB and 9.0 seconds", "(Worker_TP1 pid=2) INFO Model loading took 15.1 GiB and 12.0 seconds",
		"(EngineCore_DP0 pid=3) INFO GPU KV cache size: 500,000 tokens", "(EngineCore_DP1 pid=4) INFO GPU KV cache size: 400,000 tokens",
		"Running: 5 reqs, Waiting: 0 reqs", "Running: 9 reqs, Waiting: 2 reqs", "Running: 1 reqs, Waiting: 0 reqs",
	}, "\n"))
	want := map[string]float64{"model_gib": 15.2, "load_seconds": 12, "kv_tokens": 400000, "running_peak": 9, "waiting_peak": 2}
	if diff := cmp.Diff(want, vllm.Values); diff != "" {
		t.Error(diff)
	}
	trt := Read("trtllm", "Allocated 30.00 GiB for max tokens in paged KV cache (90000).\nAllocated 10.00 GiB for max tokens in paged KV cache (30000).\n")
	if trt.Values["kv_tokens"] != 30000 || trt.Values["kv_gib"] != 10 {
		t.Errorf("%v", trt.Values)
	}
	sglang := Read("sglang", "#retracted_reqs: 4, \n#retracted_reqs: 3, \n")
	if v, ok := sglang.Value("retractions"); !ok || v != 7 {
		t.Errorf("%v", sglang.Values)
	}
	if v, ok := sglang.Value("kv_tokens"); ok {
		t.Errorf("a fact that no line has is %v", v)
	}
}

// TestFactRows: every name has a kind, rows come in the order of kinds, and facts
// survive JSON.
func TestFactRows(t *testing.T) {
	kinds := map[string]bool{}
	for _, k := range FactKinds() {
		if kinds[k.Name] || k.Doc == "" {
			t.Errorf("kind %+v", k)
		}
		kinds[k.Name] = true
	}
	printed := map[string]bool{"kv_tokens": true} // of llama.cpp, by its streams
	for engine, lines := range factLines() {
		for _, l := range lines {
			for _, name := range l.names {
				if printed[name] = true; name != "" && !kinds[name] {
					t.Errorf("%s: no kind is called %s", engine, name)
				}
			}
		}
	}
	for name := range kinds {
		if !printed[name] {
			t.Errorf("no engine prints %s", name)
		}
	}
	f := Read("vllm", "Loading weights took 2.00 seconds\nGPU KV cache size: 100 tokens\nApplication startup complete.\n")
	rows := f.Rows()
	if len(rows) != 2 || rows[0].Name != "kv_tokens" || rows[0].Unit != "tokens" || rows[0].Value != 100 || rows[1].Name != "weights_seconds" || rows[1].Unit != "s" {
		t.Errorf("%+v", rows)
	}
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var back Facts
	if err := json.Unmarshal(text, &back); err != nil || cmp.Diff(f, back) != "" {
		t.Errorf("%s: %v %s", text, err, cmp.Diff(f, back))
	}
}

// longLog is about size bytes of a log of an engine under load.
func longLog(size int) string {
	head := "INFO GPU KV cache size: 100 tokens\nmax_total_num_tokens=434231, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=2714, context_len=40960, available_gpu_mem=9.59 GB\n"
	const line = "[2026-11-21 00:00:00 TP0] Decode batch, #running-req: 64, #token: 50000, token usage: 0.75, cuda graph: True, gen throughput (token/s): 2110.25, #queue-req: 3, \n" +
		"INFO:     127.0.0.1:55230 - \"POST /v1/completions HTTP/1.1\" 200 OK\n"
	return head + strings.Repeat(line, size/len(line)) + "torch.OutOfMemoryError: CUDA out of memory.\n"
}

func BenchmarkFacts(b *testing.B) {
	log := longLog(16 << 20)
	for _, e := range engine.All() {
		b.Run(e.Name, func(b *testing.B) {
			b.SetBytes(int64(len(log)))
			for b.Loop() {
				Read(e.Name, log)
			}
		})
	}
}

func BenchmarkDiagnose(b *testing.B) {
	log := longLog(16 << 20)
	for _, e := range engine.All() {
		b.Run(e.Name, func(b *testing.B) {
			b.SetBytes(int64(len(log)))
			for b.Loop() {
				Diagnose(e.Name, log)
			}
		})
	}
}

// TestEndlessLine: a log that is one line takes no longer than one of many.
func TestEndlessLine(t *testing.T) {
	e, _ := engine.ByName("sglang")
	log := strings.Repeat("Memory pool end. avail mem=5.25 GB, raise ValueError: Unsupported speculative method 100% ", 20_000)
	if f := Read(e.Name, log); f.Values["free_gib"] != 5.25 {
		t.Errorf("%v", f.Values)
	}
	if f, ok := Diagnose(e.Name, log); !ok || f.Class != "speculative" || len(f.Line) > 2*longestLine {
		t.Errorf("%v %s, a line of %d", ok, f.Class, len(f.Line))
	}
}

// TestScanner: it finds what strings.Index finds, at borders and overlaps too.
func TestScanner(t *testing.T) {
	keys := []string{"error: invalid", "invalid argument", "argument 7", "aaaa", "Running: "}
	var patterns []pattern
	for _, k := range keys {
		patterns = append(patterns, pattern{keys: []string{k}})
	}
	s := newScanner(patterns)
	for _, log := range []string{"", "a", "aaa", "aaaa", "aaaaaa", "error: invalid argument 7", "error: invali", "x\nRunning: 5\nRunning: ", "rror: invalid argument"} {
		want, got := map[string]int{}, map[string]int{}
		for _, k := range keys {
			for i := range log {
				if strings.HasPrefix(log[i:], k) {
					want[k]++
				}
			}
		}
		s.scan(log, func(p, from, to int) {
			if log[from:to] != keys[p] {
				t.Errorf("%q: %q at %d is not %q", log, log[from:to], from, keys[p])
			}
			got[keys[p]]++
		})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", log, diff)
		}
	}
}
