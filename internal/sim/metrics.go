package sim

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// meters are what the server observes beyond the core's counters.
type meters struct {
	behind, worst  time.Duration // lateness of the last step, and the largest
	ttft, itl, e2e histogram
}

func (m *meters) init() {
	m.ttft.bounds = []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
	m.itl.bounds = []float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	m.e2e.bounds = []float64{.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
	for _, h := range []*histogram{&m.ttft, &m.itl, &m.e2e} {
		h.counts = make([]int, len(h.bounds))
	}
}

// observe counts output of a stream before st.last moves to it.
func (m *meters) observe(st *stream, p Progress) {
	if st.last == st.arrive {
		m.ttft.add((p.At - st.arrive).Seconds())
	} else {
		m.itl.add((p.At - st.last).Seconds())
	}
	if p.Done {
		m.e2e.add((p.At - st.arrive).Seconds())
	}
}

type histogram struct {
	bounds []float64
	counts []int // at most bounds[i] and more than bounds[i-1]
	n      int
	sum    float64
}

func (h *histogram) add(v float64) {
	h.n++
	h.sum += v
	for i, b := range h.bounds {
		if v <= b {
			h.counts[i]++
			return
		}
	}
}

func (h *histogram) write(w io.Writer, name, labels string) {
	fmt.Fprintf(w, "# TYPE %s histogram\n", name)
	sum := 0
	for i, b := range h.bounds {
		sum += h.counts[i]
		fmt.Fprintf(w, "%s_bucket{%s,le=\"%g\"} %d\n", name, labels, b, sum)
	}
	fmt.Fprintf(w, "%s_bucket{%s,le=\"+Inf\"} %d\n%s_count{%s} %d\n%s_sum{%s} %g\n", name, labels, h.n, name, labels, h.n, name, labels, h.sum)
}

// exported is the table of metrics: one row a quantity, under the name each
// engine gives it; an engine without the name does not export it.
var exported = []struct {
	vllm, sglang, trtllm string // names
	kind                 string
	value                func(Stats) float64
}{
	{"vllm:num_requests_running", "sglang:num_running_reqs", "trtllm_num_requests_running", "gauge", func(s Stats) float64 { return float64(s.Running) }},
	{"vllm:num_requests_waiting", "sglang:num_queue_reqs", "trtllm_num_requests_waiting", "gauge", func(s Stats) float64 { return float64(s.Waiting) }},
	{"vllm:kv_cache_usage_perc", "sglang:token_usage", "trtllm_kv_cache_utilization", "gauge", func(s Stats) float64 { return s.KVUsage }},
	{"vllm:num_preemptions_total", "sglang:num_retracted_reqs_total", "", "counter", func(s Stats) float64 { return float64(s.Preemptions) }},
	{"vllm:prefix_cache_queries_total", "", "", "counter", func(s Stats) float64 { return float64(s.PrefixQueries) }},
	{"vllm:prefix_cache_hits_total", "sglang:cached_tokens_total", "", "counter", func(s Stats) float64 { return float64(s.PrefixHits) }},
	{"", "sglang:cache_hit_rate", "trtllm_kv_cache_hit_rate", "gauge", func(s Stats) float64 { return share(s.PrefixHits+s.HostHits(), s.PrefixQueries) }},
	{"vllm:prompt_tokens_total", "sglang:prompt_tokens_total", "", "counter", func(s Stats) float64 { return float64(s.PromptTokens) }},
	{"vllm:generation_tokens_total", "sglang:generation_tokens_total", "", "counter", func(s Stats) float64 { return float64(s.GenerationTokens) }},
	{"vllm:request_success_total", "sglang:num_requests_total", "trtllm_request_success_total", "counter", func(s Stats) float64 { return float64(s.Finished) }},
	{"vllm:spec_decode_num_drafts_total", "", "", "counter", func(s Stats) float64 { return float64(s.Drafts) }},
	{"vllm:spec_decode_num_draft_tokens_total", "", "", "counter", func(s Stats) float64 { return float64(s.Drafted) }},
	{"vllm:spec_decode_num_accepted_tokens_total", "", "", "counter", func(s Stats) float64 { return float64(s.Accepted) }},
	{"", "sglang:spec_accept_length", "", "gauge", func(s Stats) float64 { return 1 + share(s.Accepted, s.Drafts) }},
}

// metrics answers in Prometheus text under the engine's own names, and under
// ours what only a simulator has.
func (s *Server) metrics(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	st := s.core.Stats()
	var b strings.Builder
	prefix, labels := "vllm:", fmt.Sprintf("engine=\"0\",model_name=%q", s.name)
	switch s.cfg.Engine {
	case "sglang":
		prefix, labels = "sglang:", fmt.Sprintf("engine_type=\"unified\",model_name=%q,tp_rank=\"0\"", s.name)
	case "trtllm":
		prefix, labels = "trtllm_", fmt.Sprintf("engine_type=\"trtllm\",model_name=%q", s.name)
	}
	for _, m := range exported {
		name := map[string]string{"vllm:": m.vllm, "sglang:": m.sglang, "trtllm_": m.trtllm}[prefix]
		if name == "" || strings.Contains(name, "spec_") && s.cfg.Spec == "" || name == "sglang:cached_tokens_total" && len(st.Tiers) > 0 {
			continue
		}
		fmt.Fprintf(&b, "# TYPE %s %s\n%s{%s} %g\n", name, m.kind, name, labels, m.value(st))
	}
	if len(st.Tiers) > 0 {
		writeTiers(&b, s.cfg.Engine, labels, st)
	}
	s.meters.ttft.write(&b, prefix+"time_to_first_token_seconds", labels)
	s.meters.itl.write(&b, prefix+"inter_token_latency_seconds", labels)
	s.meters.e2e.write(&b, prefix+"e2e_request_latency_seconds", labels)
	if prefix == "vllm:" {
		fmt.Fprintf(&b, "# TYPE vllm:cache_config_info gauge\nvllm:cache_config_info{block_size=\"%d\",num_gpu_blocks=\"%d\",%s} 1\n", s.cfg.Block, st.KVBlocks, labels)
	}
	fmt.Fprintf(&b, "# HELP perflab_sim_behind_seconds Lateness of the last step against the simulated engine's schedule.\n# TYPE perflab_sim_behind_seconds gauge\nperflab_sim_behind_seconds %g\n", s.meters.behind.Seconds())
	fmt.Fprintf(&b, "# TYPE perflab_sim_behind_max_seconds gauge\nperflab_sim_behind_max_seconds %g\n", max(0, s.meters.worst.Seconds()))
	if st.Pools != nil {
		st.Pools.write(&b)
	}
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	io.WriteString(w, b.String()) // the client may be gone
}

// writeTiers gives what memories below the devices' KV cache had, under the names of vLLM
// (0.33; what it copies is counted by its own connector alone) and SGLang (0.5.23). TensorRT-LLM's rate of hits has them in it.
func writeTiers(w io.Writer, engineName, labels string, s Stats) {
	type sample struct {
		name, kind, more string
		value            float64
	}
	host := s.Tiers[0]
	loading, storing := host.Loading, host.Storing
	for _, t := range s.Tiers[1:] {
		loading, storing = loading+t.Loading, storing+t.Storing
	}
	var all []sample
	switch engineName {
	case "vllm":
		all = []sample{
			{"vllm:external_prefix_cache_queries_total", "counter", "", float64(host.Queries)},
			{"vllm:external_prefix_cache_hits_total", "counter", "", float64(s.HostHits())},
			{"vllm:prompt_tokens_cached_by_source_total", "counter", `source="device"`, float64(s.PrefixHits)},
		}
		for _, t := range s.Tiers {
			all = append(all, sample{"vllm:prompt_tokens_cached_by_source_total", "counter", fmt.Sprintf("source=%q", t.Name), float64(t.Hits)})
		}
		all = append(all,
			sample{"vllm:kv_offload_load_bytes_total", "counter", "", float64(host.LoadedBytes)}, sample{"vllm:kv_offload_load_time_total", "counter", "", loading.Seconds()},
			sample{"vllm:kv_offload_store_bytes_total", "counter", "", float64(host.StoredBytes)}, sample{"vllm:kv_offload_store_time_total", "counter", "", storing.Seconds()})
	case "sglang":
		all = []sample{
			{"sglang:cached_tokens_total", "counter", `cache_source="device"`, float64(s.PrefixHits)},
			{"sglang:cached_tokens_total", "counter", `cache_source="host"`, float64(s.HostHits())},
			{"sglang:load_back_tokens_total", "counter", `pool="kv"`, float64(host.Loaded)},
			{"sglang:hicache_backup_tokens_total", "counter", `pool="kv"`, float64(host.Stored)},
			{"sglang:hicache_host_used_tokens", "gauge", "", float64(host.Used)},
			{"sglang:hicache_host_total_tokens", "gauge", "", float64(host.Room)},
		}
	}
	last := ""
	for _, m := range all {
		if m.name != last {
			fmt.Fprintf(w, "# TYPE %s %s\n", m.name, m.kind)
		}
		last = m.name
		if m.more != "" {
			m.more = "," + m.more
		}
		fmt.Fprintf(w, "%s{%s%s} %g\n", m.name, labels, m.more, m.value)
	}
}

// write gives each pool of a group by itself, and what moves between them, under our own
// names: the engine's are of the group, in which a token and a request count once.
func (p *Pools) write(w io.Writer) {
	for _, m := range []struct {
		name, kind string
		value      func(Stats) float64
	}{
		{"running", "gauge", func(s Stats) float64 { return float64(s.Running) }},
		{"waiting", "gauge", func(s Stats) float64 { return float64(s.Waiting) }},
		{"kv_usage", "gauge", func(s Stats) float64 { return s.KVUsage }},
		{"busy_seconds_total", "counter", func(s Stats) float64 { return s.Busy.Seconds() }},
	} {
		fmt.Fprintf(w, "# TYPE perflab_sim_pool_%s %s\n", m.name, m.kind)
		fmt.Fprintf(w, "perflab_sim_pool_%s{pool=\"prefill\"} %g\nperflab_sim_pool_%[1]s{pool=\"decode\"} %[3]g\n", m.name, m.value(p.Prefill), m.value(p.Decode))
	}
	for _, m := range []struct {
		name  string
		value float64
	}{{"", float64(p.Transfers)}, {"_bytes", float64(p.Moved)}, {"_seconds", p.Moving.Seconds()}} {
		fmt.Fprintf(w, "# TYPE perflab_sim_kv_transfer%s_total counter\nperflab_sim_kv_transfer%[1]s_total %[2]g\n", m.name, m.value)
	}
}
