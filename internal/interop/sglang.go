package interop

import (
	"fmt"
	"slices"

	"perflab/internal/result"
)

// knowsSGLang knows a line of sglang.bench_serving by the keys that vLLM's
// client does not have.
func knowsSGLang(o object) bool {
	return o.has("duration", "completed") &&
		(o.has("total_output_tokens_retokenized") || o.has("server_info") || o.has("total_throughput") || o.has("random_range_ratio", "dataset_name"))
}

// sglangConfig are the keys that say what was run.
var sglangConfig = []string{
	"tag", "sharegpt_output_len", "random_input_len", "random_output_len", "random_range_ratio", "server_info", "goodput_slos_ms",
}

// sglangLists are the keys that hold a value a request. There is no instant
// among them, so they make no calls.
var sglangLists = []string{"input_lens", "output_lens", "ttfts", "itls", "generated_texts", "errors", "cached_tokens", "cached_tokens_details"}

// readSGLang reads one line of sglang.bench_serving.
func readSGLang(o object) ([]Run, []Fault) {
	r := newReading(o, "sglang.bench_serving", FormatSGLang)
	r.run.Defs = map[string]result.Definition{
		"ttft": result.FirstText, "tpot": result.DecodePerToken, "itl": sglangGaps(o), "e2el": result.StreamEnd,
		"max_output_tokens_per_s": result.MessageBuckets, "max_concurrent_requests": result.SecondBuckets,
	}
	h := &r.run.Header
	for _, m := range o.members {
		switch {
		case m.key == "backend":
			h.Backend = textOf(m)
		case m.key == "dataset_name":
			h.Workload = textOf(m)
			r.label(result.LabelDataset, m)
		case m.key == "request_rate":
			r.rate(m)
		case m.key == "max_concurrency":
			r.limit(m)
		case m.key == "slo_attainment":
			r.figure("goodput_ratio", m.key, m, 1)
		case slices.Contains(sglangConfig, m.key):
			r.label(m.key, m)
		case slices.Contains(sglangLists, m.key):
			if m.key == "input_lens" {
				h.Requests = length(m)
			}
			if kind(m.raw) == "a list" {
				r.run.Other = append(r.run.Other, Pair{m.key, fmt.Sprintf("a list of %d", length(m)), m.line})
			}
		default:
			r.sglangMember(m)
		}
		if m.key == "server_info" {
			r.sglangServer(m)
		}
	}
	return r.done()
}

// sglangMember takes a figure, or what else the line has.
func (r *reading) sglangMember(m member) {
	_, err := result.Lookup(m.key)
	switch {
	case err == nil:
		r.figure(m.key, m.key, m, 1)
	case kind(m.raw) == "text":
		r.label(m.key, m)
	default:
		r.other(m.key, m)
	}
}

// sglangServer takes what the server says of itself.
func (r *reading) sglangServer(info member) {
	for _, key := range []string{"served_model_name", "model_path"} {
		if m, ok := at(info, key); ok && kind(m.raw) == "text" {
			r.run.Header.Model = plain(m.raw)
			r.labels()[result.LabelEngine] = "sglang"
		}
	}
	if m, ok := at(info, "version"); ok && kind(m.raw) == "text" {
		r.labels()[result.LabelEngineVersion] = plain(m.raw)
	}
}

// sglangGaps returns how the line's inter-token latencies were made. On the
// native API a chunk's gap is split over its tokens, and so it is on the
// others when the server speculates.
func sglangGaps(o object) result.Definition {
	backend, _ := o.fields["backend"]
	accepted, err := jsonNumber(o.fields["accept_length"])
	switch name := plain(backend); {
	case name == "sglang" || name == "sglang-native":
		return result.TokenGapMean
	case (name == "sglang-oai" || name == "sglang-oai-chat") && err == nil && accepted > 0:
		return result.TokenGapMean
	}
	return result.ChunkGap
}
