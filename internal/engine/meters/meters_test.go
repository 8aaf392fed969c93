package meters

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/engine"
	"perflab/internal/prometheus"
)

const (
	vllm011Page = `
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 12.0
vllm:num_requests_running{engine="1",model_name="m"} 10.0
vllm:num_requests_waiting{engine="0",model_name="m"} 3.0
vllm:num_requests_waiting{engine="1",model_name="m"} 0.0
vllm:gpu_cache_usage_perc{engine="0",model_name="m"} 0.5
vllm:gpu_cache_usage_perc{engine="1",model_name="m"} 0.25
vllm:num_preemptions_total{engine="0",model_name="m"} 2.0
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 1000.0
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 250.0
vllm:external_prefix_cache_queries_total{engine="0",model_name="m"} 750.0
vllm:external_prefix_cache_hits_total{engine="0",model_name="m"} 125.0
vllm:request_success_total{engine="0",finished_reason="stop",model_name="m"} 5.0
vllm:request_success_total{engine="0",finished_reason="length",model_name="m"} 7.0
vllm:request_queue_time_seconds_bucket{engine="0",le="0.3",model_name="m"} 11.0
vllm:request_queue_time_seconds_count{engine="0",model_name="m"} 12.0
vllm:request_queue_time_seconds_sum{engine="0",model_name="m"} 1.5
vllm:spec_decode_num_drafts_total{engine="0",model_name="m"} 100.0
vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="m"} 300.0
vllm:spec_decode_num_accepted_tokens_total{engine="0",model_name="m"} 210.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="0"} 90.0
vllm:cache_config_info{block_size="16",engine="0",num_cpu_blocks="None",num_gpu_blocks="1000"} 1.0
vllm:cache_config_info{block_size="16",engine="1",num_cpu_blocks="None",num_gpu_blocks="800"} 1.0
python_gc_collections_total{generation="0"} 88.0
`
	sglangPage = `
sglang:num_running_reqs{dp_rank="0",engine_type="unified",model_name="m",pp_rank="0",tp_rank="0"} 8.0
sglang:num_running_reqs{dp_rank="0",engine_type="unified",model_name="m",pp_rank="0",tp_rank="1"} 8.0
sglang:num_running_reqs{dp_rank="1",engine_type="unified",model_name="m",pp_rank="0",tp_rank="2"} 5.0
sglang:token_usage{dp_rank="0",model_name="m",tp_rank="0"} 0.9
sglang:token_usage{dp_rank="1",model_name="m",tp_rank="2"} 0.7
sglang:num_queue_reqs{model_name="m",tp_rank="0"} 1.0
sglang:spec_accept_length{model_name="m",tp_rank="0"} 2.5
sglang:cache_hit_rate{model_name="m",tp_rank="0"} nan
sglang:max_total_num_tokens{model_name="m",tp_rank="0"} 4096.0
sglang:cache_config_info{model_name="m",num_pages="4096",page_size="1"} 1.0
sglang:prompt_tokens_total{model_name="m"} 800.0
sglang:cached_tokens_total{cache_source="device",model_name="m"} 60.0
sglang:cached_tokens_total{cache_source="host",model_name="m"} 40.0
`
	trtllmPage = `
trtllm_request_success_total{engine_type="trtllm",finished_reason="length",model_name="m"} 4.0
trtllm_num_requests_running{engine_type="trtllm",model_name="m"} 2.0
trtllm_num_requests_waiting{engine_type="trtllm",model_name="m"} 0.0
trtllm_kv_cache_utilization{engine_type="trtllm",model_name="m"} 0.125
trtllm_kv_cache_hit_rate{engine_type="trtllm",model_name="m"} 0.5
`
	llamacppPage = `
# HELP llamacpp:prompt_tokens_total Number of prompt tokens processed.
# TYPE llamacpp:prompt_tokens_total counter
llamacpp:prompt_tokens_total 512
llamacpp:prompt_seconds_total 3.5
llamacpp:tokens_predicted_total 128
llamacpp:n_decode_total 140
llamacpp:n_busy_slots_per_decode 1.5
llamacpp:requests_processing 2
llamacpp:requests_deferred 1
`
)

func TestCommon(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want map[string]float64
	}{
		"vllm": {vllm011Page, map[string]float64{"running": 22, "waiting": 3, "kv_usage": 0.375, "preemptions": 2, "prefix_queries": 1000, "prefix_hits": 250, "host_queries": 750, "host_hits": 125,
			"finished": 12, "queue_seconds": 1.5, "queued": 12, "spec_drafts": 100, "spec_draft_tokens": 300, "spec_accepted": 210, "kv_tokens": 28800, "kv_block": 16}},
		"sglang": {sglangPage, map[string]float64{"running": 13, "waiting": 1, "kv_usage": 0.8, "spec_length": 2.5, "prompt_tokens": 800, "prefix_queries": 800, "prefix_hits": 100, "host_hits": 40, "kv_tokens": 4096, "kv_block": 1}},
		"trtllm": {trtllmPage, map[string]float64{"running": 2, "waiting": 0, "kv_usage": 0.125, "prefix_share": 0.5, "finished": 4}},
	} {
		samples := prometheus.Parse(tt.text, nil)
		e, ok := EngineOf(samples)
		if !ok || e.Name != name {
			t.Fatalf("the page of %s is taken for another's: %v", name, ok)
		}
		got := Common(e, samples)
		for key, v := range got {
			got[key] = math.Round(v*1e9) / 1e9
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if e, ok := EngineOf(prometheus.Parse("go_goroutines 7\nhttp_requests_total 1\n", nil)); ok {
		t.Errorf("a page of another program is taken for %s's", e.Name)
	}
}

// TestLlamaCppMetrics: without a counter of what its cache gave, prefix hits and
// queries are missing, not zero.
func TestLlamaCppMetrics(t *testing.T) {
	e, err := engine.ByName("llamacpp")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"running": 2, "waiting": 1, "prompt_tokens": 512, "generation_tokens": 128}
	if diff := cmp.Diff(want, Common(e, prometheus.Parse(llamacppPage, nil))); diff != "" {
		t.Error(diff)
	}
	got := Common(e, prometheus.Parse(llamacppPage+"llamacpp:prompt_tokens_cached_total 88\n", nil))
	if got["prefix_queries"] != 600 || got["prefix_hits"] != 88 {
		t.Errorf("with a counter of what the cache gave: %v", got)
	}
	if prefix(e) != "llamacpp:" {
		t.Error(prefix(e))
	}
}

// TestMeters: names are known on both sides, and the newest spelling wins.
func TestMeters(t *testing.T) {
	published := map[string]bool{}
	for _, e := range engine.All() {
		for name := range e.Metrics {
			published[name] = true
			if !slices.ContainsFunc(All(), func(m Meter) bool { return m.Name == name }) {
				t.Errorf("%s publishes %s, which no meter is called", e.Name, name)
			}
		}
	}
	for _, m := range All() {
		if m.Doc == "" || m.Unit == "" || m.Kind != Gauge && m.Kind != Counter || !published[m.Name] || m.Mean && m.Kind == Counter {
			t.Errorf("meter %+v", m)
		}
	}
	e, _ := engine.ByName("vllm")
	if got := Common(e, prometheus.Parse(`vllm:cache_config_info{block_size="16",num_gpu_blocks="None"} 1`+"\n", nil)); got["kv_block"] != 16 || len(got) != 1 {
		t.Errorf("a room that is not known yet: %v", got)
	}
	got := Common(e, prometheus.Parse("vllm:gpu_cache_usage_perc 0.1\nvllm:kv_cache_usage_perc 0.2\n", nil))
	if got["kv_usage"] != 0.2 {
		t.Errorf("both spellings: %v", got)
	}
}

func TestIterationSamples(t *testing.T) {
	const text = `[{"iter":0,"numActiveRequests":9},{"gpuMemUsage":56725504512,"iter":1,"iterLatencyMS":5.07,"kvCacheStats":{"allocTotalBlocks":3,` +
		`"cacheHitRate":0.25,"freeNumBlocks":75,"maxNumBlocks":100,"missedBlocks":3,"reusedBlocks":1,"tokensPerBlock":32,"usedNumBlocks":25},"numActiveRequests":2,"numQueuedRequests":1}]`
	samples, err := IterationSamples([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	e, ok := EngineOf(samples)
	if !ok || e.Name != "trtllm" {
		t.Fatalf("%v", e)
	}
	want := map[string]float64{"running": 2, "waiting": 1, "kv_usage": 0.25, "prefix_share": 0.25}
	if diff := cmp.Diff(want, Common(e, samples)); diff != "" {
		t.Error(diff)
	}
	if samples, err := IterationSamples([]byte("[]")); err != nil || len(samples) != 0 {
		t.Errorf("nothing since the last reading: %v, %v", samples, err)
	}
	if _, err := IterationSamples([]byte("# HELP x")); err == nil {
		t.Error("text reads as JSON")
	}
}

// FuzzIterationSamples: whatever a server calls its statistics, samples are numbers with a name.
func FuzzIterationSamples(f *testing.F) {
	f.Add([]byte(`[{"numActiveRequests":3,"numQueuedRequests":1,"kvCacheStats":{"usedNumBlocks":1,"maxNumBlocks":4,"cacheHitRate":0.5}}]`))
	f.Add([]byte(`[{"kvCacheStats":{"usedNumBlocks":1e308,"maxNumBlocks":1e-308}},null]`))
	f.Fuzz(func(t *testing.T, page []byte) {
		samples, err := IterationSamples(page)
		if err != nil {
			return
		}
		for _, s := range samples {
			if s.Name == "" || math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
				t.Errorf("%+v", s)
			}
		}
	})
}
