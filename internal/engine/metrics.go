package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/prometheus"
)

// MeterKind says how a meter's readings are to be read.
type MeterKind string

// Kinds of meters.
const (
	Gauge   MeterKind = "gauge"   // as it is now
	Counter MeterKind = "counter" // since the engine started: only differences say something
)

// Meter is one quantity that engines publish while they serve, under the name that
// all engines share here.
type Meter struct {
	Name string
	Kind MeterKind
	Unit string // requests, tokens, steps, s, share (of 1)
	Mean bool   // the series of several copies are averaged; without it they are added up
	Doc  string
}

// Meters lists the common quantities. No engine publishes all of them.
func Meters() []Meter {
	return []Meter{
		{Name: "running", Kind: Gauge, Unit: "requests", Doc: "Requests that are being computed."},
		{Name: "waiting", Kind: Gauge, Unit: "requests", Doc: "Requests that wait for room."},
		{Name: "kv_usage", Kind: Gauge, Unit: "share", Mean: true, Doc: "Share of the KV cache in use."},
		{Name: "preemptions", Kind: Counter, Unit: "requests", Doc: "Requests that gave their KV cache up again for lack of room."},
		{Name: "prefix_queries", Kind: Counter, Unit: "tokens", Doc: "Prompt tokens looked up in the prefix cache."},
		{Name: "prefix_hits", Kind: Counter, Unit: "tokens", Doc: "Prompt tokens that were found there."},
		{Name: "prefix_share", Kind: Gauge, Unit: "share", Mean: true, Doc: "Share of the prompts found in the prefix cache, over the engine's own span of time."},
		{Name: "prompt_tokens", Kind: Counter, Unit: "tokens", Doc: "Prompt tokens; of llama.cpp only those computed, not those found in its cache."},
		{Name: "generation_tokens", Kind: Counter, Unit: "tokens", Doc: "Generated tokens."},
		{Name: "finished", Kind: Counter, Unit: "requests", Doc: "Requests that ended, whatever the reason."},
		{Name: "spec_drafts", Kind: Counter, Unit: "steps", Doc: "Guesses that the model verified."},
		{Name: "spec_draft_tokens", Kind: Counter, Unit: "tokens", Doc: "Tokens guessed in them."},
		{Name: "spec_accepted", Kind: Counter, Unit: "tokens", Doc: "Guessed tokens that were accepted."},
		{Name: "spec_length", Kind: Gauge, Unit: "tokens", Mean: true, Doc: "Tokens that a verified guess yields, the model's own among them, over the engine's own span of time."},
		{Name: "queue_seconds", Kind: Counter, Unit: "s", Doc: "Time that requests waited before they were computed, all together."},
		{Name: "queued", Kind: Counter, Unit: "requests", Doc: "Requests that queue_seconds is of."},
	}
}

// vllmMetrics are vLLM's names, of 0.6 to 0.24. It publishes them without being asked.
func vllmMetrics() map[string][]string {
	return map[string][]string{
		"running":           {"vllm:num_requests_running"},
		"waiting":           {"vllm:num_requests_waiting"},
		"kv_usage":          {"vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"}, // the latter up to 0.11
		"preemptions":       {"vllm:num_preemptions_total"},
		"prefix_queries":    {"vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"},
		"prefix_hits":       {"vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"},
		"prompt_tokens":     {"vllm:prompt_tokens_total"},
		"generation_tokens": {"vllm:generation_tokens_total"},
		"finished":          {"vllm:request_success_total"},
		"spec_drafts":       {"vllm:spec_decode_num_drafts_total"},
		"spec_draft_tokens": {"vllm:spec_decode_num_draft_tokens_total"},
		"spec_accepted":     {"vllm:spec_decode_num_accepted_tokens_total"},
		"queue_seconds":     {"vllm:request_queue_time_seconds_sum"},
		"queued":            {"vllm:request_queue_time_seconds_count"},
	}
}

// sglangMetrics are SGLang's names, published where it was started with
// --enable-metrics. What it found in its prefix cache is there from the first hit on.
func sglangMetrics() map[string][]string {
	return map[string][]string{
		"running":           {"sglang:num_running_reqs"},
		"waiting":           {"sglang:num_queue_reqs"},
		"kv_usage":          {"sglang:token_usage"},
		"preemptions":       {"sglang:num_retracted_requests_total", "sglang:num_retracted_reqs_total"},
		"prefix_queries":    {"sglang:prompt_tokens_total"},
		"prefix_hits":       {"sglang:cached_tokens_total"},
		"prefix_share":      {"sglang:cache_hit_rate"},
		"prompt_tokens":     {"sglang:prompt_tokens_total"},
		"generation_tokens": {"sglang:generation_tokens_total"},
		"finished":          {"sglang:num_requests_total"},
		"spec_drafts":       {"sglang:spec_verify_calls_total"},
		"spec_length":       {"sglang:spec_accept_length"},
		"queue_seconds":     {"sglang:queue_time_seconds_sum"},
		"queued":            {"sglang:queue_time_seconds_count"},
	}
}

// trtllmMetrics are TensorRT-LLM's names at /prometheus/metrics. What is counted by
// iteration is there with enable_iter_perf_stats, what is counted by request with
// return_perf_metrics, both of its configuration file. Its JSON at /metrics is
// another thing: see IterationSamples.
func trtllmMetrics() map[string][]string {
	return map[string][]string{
		"running":           {"trtllm_num_requests_running"},
		"waiting":           {"trtllm_num_requests_waiting"},
		"kv_usage":          {"trtllm_kv_cache_utilization"},
		"prefix_queries":    {"trtllm_prompt_tokens_total"},
		"prefix_hits":       {"trtllm_prompt_cached_tokens_total"},
		"prefix_share":      {"trtllm_kv_cache_hit_rate"},
		"prompt_tokens":     {"trtllm_prompt_tokens_total"},
		"generation_tokens": {"trtllm_generation_tokens_total"},
		"finished":          {"trtllm_request_success_total"},
		"spec_draft_tokens": {"trtllm_spec_decode_num_draft_tokens_total"},
		"spec_accepted":     {"trtllm_spec_decode_num_accepted_tokens_total"},
		"spec_length":       {"trtllm_spec_decode_acceptance_length"},
		"queue_seconds":     {"trtllm_request_queue_time_seconds_sum"},
		"queued":            {"trtllm_request_queue_time_seconds_count"},
	}
}

// llamacppMetrics are llama-server's names, published where it was started with
// --metrics. A name with + is the sum of two: what it computed and what it found.
func llamacppMetrics() map[string][]string {
	return map[string][]string{
		"running":           {"llamacpp:requests_processing"},
		"waiting":           {"llamacpp:requests_deferred"},
		"kv_usage":          {"llamacpp:kv_cache_usage_ratio"}, // gone from recent builds
		"prefix_queries":    {"llamacpp:prompt_tokens_total+llamacpp:prompt_tokens_cached_total"},
		"prefix_hits":       {"llamacpp:prompt_tokens_cached_total"},
		"prompt_tokens":     {"llamacpp:prompt_tokens_total"},
		"generation_tokens": {"llamacpp:tokens_predicted_total"},
		"spec_drafts":       {"llamacpp:spec_decode_num_drafts_total"},
		"spec_draft_tokens": {"llamacpp:spec_decode_num_draft_tokens_total"},
		"spec_accepted":     {"llamacpp:spec_decode_num_accepted_tokens_total"},
	}
}

// rankLabels tell apart ranks of one copy, which repeat what the copy does; other
// labels tell apart copies, finish reasons or sources.
var rankLabels = []string{"tp_rank", "pp_rank", "moe_ep_rank", "pid"}

// Common gives an engine's samples their common names. Series of ranks of one copy
// count once, by the largest of them; those of copies and of what else the labels
// tell apart are added up, or averaged where the meter says so. A quantity that is not
// among the samples, or is not a finite number, is missing.
func (e *Engine) Common(samples []prometheus.Sample) map[string]float64 {
	series := map[string]map[string]float64{} // name -> labels but the ranks -> largest
	for _, s := range samples {
		if math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
			continue
		}
		if series[s.Name] == nil {
			series[s.Name] = map[string]float64{}
		}
		key := copyOf(s.Labels)
		if have, ok := series[s.Name][key]; !ok || s.Value > have {
			series[s.Name][key] = s.Value
		}
	}
	common := map[string]float64{}
	for _, m := range Meters() {
		for _, spelled := range e.Metrics[m.Name] {
			if v, ok := combined(series, spelled, m.Mean); ok {
				common[m.Name] = v
				break
			}
		}
	}
	return common
}

// combined is the value of a name, or of the sum of names joined by +.
func combined(series map[string]map[string]float64, spelled string, mean bool) (total float64, ok bool) {
	for name := range strings.SplitSeq(spelled, "+") {
		copies := series[name]
		if len(copies) == 0 {
			return 0, false
		}
		sum := 0.0
		for _, key := range slices.Sorted(maps.Keys(copies)) { // in one order: sums of floats depend on it
			sum += copies[key]
		}
		if mean {
			sum /= float64(len(copies))
		}
		total += sum
	}
	return total, true
}

// copyOf is the labels without those of ranks, as one text.
func copyOf(labels map[string]string) string {
	parts := make([]string, 0, len(labels))
	for name, value := range labels {
		if !slices.Contains(rankLabels, name) {
			parts = append(parts, name+"="+strconv.Quote(value))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}

// OfMetrics tells which engine a page of metrics is from: the one that most of the
// samples' names are of, by the engine's own prefix. A router's page, or one of another
// program, is no engine's.
func OfMetrics(samples []prometheus.Sample) (*Engine, bool) {
	var best *Engine
	most := 0
	for _, e := range All() {
		n := 0
		for _, s := range samples {
			if p := e.metricPrefix(); p != "" && strings.HasPrefix(s.Name, p) {
				n++
			}
		}
		if n > most {
			best, most = e, n
		}
	}
	return best, best != nil
}

// metricPrefix is what every name of the engine begins with: "vllm:", "trtllm_".
func (e *Engine) metricPrefix() string {
	for _, name := range e.Metrics["running"] {
		if i := strings.IndexAny(name, ":_"); i > 0 {
			return name[:i+1]
		}
	}
	return ""
}

// IterationSamples reads TensorRT-LLM's own statistics, the JSON list at /metrics,
// as samples under its Prometheus names. Reading the page empties it, so that the
// gauges are those of the last iteration, and an empty list says nothing.
func IterationSamples(page []byte) ([]prometheus.Sample, error) {
	type cache struct {
		Used *float64 `json:"usedNumBlocks"`
		Most *float64 `json:"maxNumBlocks"`
		Hits *float64 `json:"cacheHitRate"`
	}
	var list []struct {
		Active *float64 `json:"numActiveRequests"`
		Queued *float64 `json:"numQueuedRequests"`
		Cache  *cache   `json:"kvCacheStats"`
	}
	if err := json.Unmarshal(page, &list); err != nil {
		return nil, fmt.Errorf("read TensorRT-LLM's iteration statistics: %w", err)
	}
	if len(list) == 0 {
		return nil, nil
	}
	last := list[len(list)-1]
	var samples []prometheus.Sample
	add := func(name string, v *float64) {
		if v != nil {
			samples = append(samples, prometheus.Sample{Name: name, Value: *v})
		}
	}
	add("trtllm_num_requests_running", last.Active)
	add("trtllm_num_requests_waiting", last.Queued)
	if c := last.Cache; c != nil {
		add("trtllm_kv_cache_hit_rate", c.Hits)
		if c.Used != nil && c.Most != nil && *c.Most > 0 {
			add("trtllm_kv_cache_utilization", new(*c.Used / *c.Most))
		}
	}
	return samples, nil
}
