// Package meters reads what engines publish about themselves while they serve, and gives it
// common names. Which names an engine uses is in its row of the catalogue (engine.Engine.Metrics).
// It does no I/O.
//
//	e, ok := meters.EngineOf(samples)
//	values := meters.Common(e, samples) // "running", "kv_usage", ...
//
// It is apart from engine, in which nothing depends on what is read while an engine runs.
package meters

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/engine"
	"perflab/internal/prometheus"
)

// Kind says how a meter's readings are to be read.
type Kind string

// Kinds of meters.
const (
	Gauge   Kind = "gauge"   // as it is now
	Counter Kind = "counter" // since the engine started: only differences say something
)

// Meter is one quantity that engines publish while they serve, under the name that
// all engines share here.
type Meter struct {
	Name string
	Kind Kind
	Unit string // requests, tokens, steps, s, share (of 1)
	Mean bool   // the series of several copies are averaged; without it they are added up
	Doc  string
}

// All lists the common quantities. No engine publishes all of them.
func All() []Meter {
	return []Meter{
		{Name: "running", Kind: Gauge, Unit: "requests", Doc: "Requests that are being computed."},
		{Name: "waiting", Kind: Gauge, Unit: "requests", Doc: "Requests that wait for room."},
		{Name: "kv_usage", Kind: Gauge, Unit: "share", Mean: true, Doc: "Share of the KV cache in use."},
		{Name: "preemptions", Kind: Counter, Unit: "requests", Doc: "Requests that gave their KV cache up again for lack of room."},
		{Name: "kv_tokens", Kind: Gauge, Unit: "tokens", Doc: "Room of the KV cache."},
		{Name: "kv_block", Kind: Gauge, Unit: "tokens", Mean: true, Doc: "Tokens of a block of the KV cache."},
		{Name: "prefix_queries", Kind: Counter, Unit: "tokens", Doc: "Prompt tokens looked up in the prefix cache."},
		{Name: "prefix_hits", Kind: Counter, Unit: "tokens", Doc: "Prompt tokens that were found there."},
		{Name: "host_queries", Kind: Counter, Unit: "tokens", Doc: "Prompt tokens, not found in the devices' cache, that were looked up in what lies below it: a host's memory, a disk, another machine."},
		{Name: "host_hits", Kind: Counter, Unit: "tokens", Doc: "Prompt tokens that were found there; of vLLM they are not in prefix_hits, of SGLang they are."},
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

// rankLabels tell apart ranks of one copy, which repeat what the copy does; other
// labels tell apart copies, finish reasons or sources.
var rankLabels = []string{"tp_rank", "pp_rank", "moe_ep_rank", "pid"}

// Common gives an engine's samples their common names. Series of ranks of one copy
// count once, by the largest of them; those of copies and of what else the labels
// tell apart are added up, or averaged where the meter says so. A quantity that is not
// among the samples, or is not a finite number, is missing.
func Common(e *engine.Engine, samples []prometheus.Sample) map[string]float64 {
	series := map[string]map[string]float64{} // name -> labels but the ranks -> largest
	for _, s := range slices.Concat(samples, labelled(e, samples)) {
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
	for _, m := range All() {
		for _, spelled := range e.Metrics[m.Name] {
			if v, ok := combined(series, spelled, m.Mean); ok {
				common[m.Name] = v
				break
			}
		}
	}
	return common
}

// labelled are samples whose value stands in labels: of "name[a*b]" the product of the labels a and b of name.
func labelled(e *engine.Engine, samples []prometheus.Sample) (out []prometheus.Sample) {
	for _, all := range e.Metrics {
		for _, spelled := range all {
			name, labels, ok := strings.Cut(strings.TrimSuffix(spelled, "]"), "[")
			if !ok {
				continue
			}
			for _, s := range samples {
				if s.Name != name {
					continue
				}
				v, err := 1.0, error(nil)
				for label := range strings.SplitSeq(labels, "*") {
					n, fault := strconv.ParseFloat(s.Labels[label], 64)
					v, err = v*n, errors.Join(err, fault)
				}
				if err == nil {
					out = append(out, prometheus.Sample{Name: spelled, Labels: map[string]string{"engine": s.Labels["engine"]}, Value: v})
				}
			}
		}
	}
	return out
}

// combined is the value of a name, or of the sum of names joined by +.
func combined(series map[string]map[string]float64, spelled string, mean bool) (total float64, ok bool) {
	for name := range strings.SplitSeq(spelled, "+") {
		copies := series[name]
		if base, label, ok := strings.Cut(strings.TrimSuffix(name, "}"), "{"); ok { // of the series with a label's value
			name, value, _ := strings.Cut(label, "=")
			copies = maps.Clone(series[base])
			maps.DeleteFunc(copies, func(key string, _ float64) bool {
				return !slices.Contains(strings.Split(key, ","), name+"="+strconv.Quote(value))
			})
		}
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

// EngineOf tells which engine a page of metrics is from: the one that most of the
// samples' names are of, by the engine's own prefix. A router's page, or one of another
// program, is no engine's.
func EngineOf(samples []prometheus.Sample) (*engine.Engine, bool) {
	var best *engine.Engine
	most := 0
	for _, e := range engine.All() {
		n := 0
		for _, s := range samples {
			if p := prefix(e); p != "" && strings.HasPrefix(s.Name, p) {
				n++
			}
		}
		if n > most {
			best, most = e, n
		}
	}
	return best, best != nil
}

// prefix is what every name of the engine begins with: "vllm:", "trtllm_".
func prefix(e *engine.Engine) string {
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
