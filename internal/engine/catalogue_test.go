package engine

import (
	"slices"
	"strings"
	"testing"
)

// TestCatalogue holds each engine's parameters against its list of flags and the
// canonical names.
func TestCatalogue(t *testing.T) {
	names := []string{TP, PP, DP, ExpertParallel, MaxNumSeqs, MaxBatched, MaxModelLen, MemoryShare, KVDtype, Quantization, PrefixCaching,
		ChunkedPrefill, Speculative, GraphMax, Eager, PerfMode, BlockSize, AttentionDP, MoEBackend, StreamInterval, Overlap, CapacityPolicy,
		MicroBatch, ContextSize, Threads, ThreadsBatch, FlashAttention, GPULayers, HostCache, HostCacheRatio, HostCachePolicy, HostCacheBackend, CacheEviction,
		CacheReuse, SlotSimilarity, Disaggregation}
	for _, e := range All() {
		table := flagTables()[e.Name]
		for _, name := range names {
			if err := KnownParam(name); err != nil {
				t.Error(err)
			}
			if _, ok := e.Param(name); !ok {
				t.Errorf("%s has no row for %s", e.Name, name)
			}
		}
		for i := range e.Params {
			p := &e.Params[i]
			if p.Doc == "" {
				t.Errorf("%s %s: no doc", e.Name, p.Name)
			}
			for _, f := range append(slices.Clone(p.Flags), p.Off...) {
				ref, ok := table[f]
				if !ok || ref.def == nil || ref.param != p {
					t.Errorf("%s %s: %s is not a flag of the engine", e.Name, p.Name, f)
				}
			}
			if _, ok := keyTables()[e.Name][p.Key]; p.Key != "" && (e.file == nil || !ok) {
				t.Errorf("%s %s: %s is no key of the engine's configuration file", e.Name, p.Name, p.Key)
			}
			for _, value := range p.Ladder {
				if _, err := New(e.Name, "M", map[string]string{p.Name: value}, nil); err != nil {
					t.Errorf("%s %s=%s of the ladder: %v", e.Name, p.Name, value, err)
				}
			}
		}
		for _, name := range []string{"running", "waiting", "kv_usage"} {
			if len(e.Metrics[name]) == 0 && !(e.Name == "llamacpp" && name == "kv_usage") {
				t.Errorf("%s publishes no %s", e.Name, name)
			}
		}
	}
}

func TestByName(t *testing.T) {
	for _, e := range All() {
		if got, err := ByName(e.Name); err != nil || got != e {
			t.Errorf("%s: %v %v", e.Name, got, err)
		}
	}
}

// tuned are the flags, and the keys of files, that guides to the engines' performance
// name: whoever tunes asks for them first.
var tuned = map[string]string{
	"vllm": `--tensor-parallel-size --pipeline-parallel-size --data-parallel-size --decode-context-parallel-size --prefill-context-parallel-size
		--enable-expert-parallel --all2all-backend --enable-eplb --enable-dbo --gpu-memory-utilization --kv-cache-memory-bytes --max-model-len --max-num-seqs
		--max-num-batched-tokens --performance-mode --kv-cache-dtype --quantization --enable-prefix-caching --mamba-cache-mode --speculative-config
		--async-scheduling --compilation-config --optimization-level --enforce-eager --cudagraph-capture-sizes --max-cudagraph-capture-size --attention-backend
		--scheduling-policy --max-num-partial-prefills --long-prefill-token-threshold --stream-interval --api-server-count --load-format
		--distributed-executor-backend --kv-offloading-size --kv-offloading-backend --nnodes --data-parallel-size-local
		--max-num-active-seqs --max-num-scheduled-tokens --prefill-schedule-interval --prefix-cache-retention-interval --watermark`,
	"sglang": `--tp-size --pp-size --dp-size --ep-size --enable-dp-attention --mem-fraction-static --max-running-requests --chunked-prefill-size
		--max-prefill-tokens --schedule-policy --schedule-conservativeness --cuda-graph-max-bs --cuda-graph-bs --disable-cuda-graph
		--disable-cuda-graph-padding --attention-backend --prefill-attention-backend --decode-attention-backend --kv-cache-dtype --moe-runner-backend
		--moe-a2a-backend --deepep-mode --enable-mixed-chunk --enable-two-batch-overlap --num-continuous-decode-steps --enable-torch-compile
		--disable-radix-cache --enable-hierarchical-cache --hicache-ratio --hicache-size --speculative-algorithm --speculative-num-steps
		--speculative-eagle-topk --speculative-num-draft-tokens --mamba-full-memory-ratio --mamba-ssm-dtype --mamba-scheduler-strategy --stream-interval
		--page-size --disable-overlap-schedule --nnodes --quantization --context-length --watchdog-timeout
		--cuda-graph-max-bs-decode --mamba-radix-cache-strategy --prefill-decode-interval`,
	"trtllm": `--backend --tensor_parallel_size --pipeline_parallel_size --moe_expert_parallel_size --context_parallel_size --max_batch_size --max_num_tokens
		--max_seq_len --free_gpu_memory_fraction --enable_chunked_prefill --num_postprocess_workers
		cuda_graph_config cuda_graph_config.enable_padding cuda_graph_config.max_batch_size cuda_graph_config.batch_sizes enable_attention_dp
		attention_dp_config.enable_balance attention_dp_config.batching_wait_iters attention_dp_config.timeout_iters moe_config.backend
		kv_cache_config.dtype kv_cache_config.enable_block_reuse kv_cache_config.free_gpu_memory_fraction kv_cache_config.tokens_per_block
		speculative_config.decoding_type speculative_config.num_nextn_predict_layers speculative_config.max_draft_len
		scheduler_config.capacity_scheduler_policy disable_overlap_scheduler stream_interval enable_iter_perf_stats return_perf_metrics`,
	"llamacpp": `--ctx-size --parallel --kv-unified --cont-batching --batch-size --ubatch-size --flash-attn --n-gpu-layers --split-mode --tensor-split
		--cache-type-k --cache-type-v --fit --fit-target --cpu-moe --n-cpu-moe --threads --threads-batch --cache-prompt --cache-reuse --cache-ram
		--model-draft --spec-draft-n-max --spec-type --lookup-cache-static --lookup-cache-dynamic --rpc --threads-http --metrics`,
}

// untried are flags that name things, or places where the engine runs: unset there is
// none, and which to try is the user's to know.
var untried = []string{"--tensor-split", "--n-cpu-moe", "--model-draft", "--lookup-cache-static", "--lookup-cache-dynamic", "--rpc", "--nnodes"}

// TestTuned: of a flag that is tuned the catalogue has what it is by default, what else
// to try or why nothing, and what to see it with.
func TestTuned(t *testing.T) {
	flagTables()
	for _, e := range All() {
		known := map[string]Flag{}
		for _, f := range slices.Concat(e.Flags(), e.Keys()) {
			known[f.Flag] = f
		}
		for name := range strings.FieldsSeq(tuned[e.Name]) {
			f, ok := known[name]
			if !ok {
				t.Errorf("%s has no %s", e.Name, name)
				continue
			}
			if !f.Relevant && f.Flag != "--metrics" && !strings.Contains(name, "perf_") {
				t.Errorf("%s %s is not said to bear on performance", e.Name, name)
			}
			if f.Default == "" && f.Note == "" && !slices.Contains(untried, name) {
				t.Errorf("%s %s: no default and no note of what it is without", e.Name, name)
			}
			if len(f.Try)+len(f.With) == 0 {
				t.Errorf("%s %s: nothing to try, and nothing that it interacts with", e.Name, name)
			}
		}
	}
}
