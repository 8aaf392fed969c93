package result

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"perflab/internal/stat"
)

// Better is the direction in which a metric improves.
type Better int

// Directions.
const (
	Neither Better = 0
	Higher  Better = 1
	Lower   Better = -1
)

// String returns "higher", "lower" or "".
func (b Better) String() string {
	switch b {
	case Higher:
		return "higher"
	case Lower:
		return "lower"
	}
	return ""
}

// Metric is one row of the metric table: every place that names, prints,
// scales or explains a figure takes it from here.
type Metric struct {
	Name     string // key in JSON, SLOs and objectives: "p99_ttft_ms"
	Label    string // in the block: "P99 TTFT (ms)"
	Unit     string // "ms", "tok/s", "req/s", "s", "tokens", "requests", "chunks", "ratio"
	Section  string // of the block: "", "Time to First Token", ...
	Family   string // of a statistic over samples, "ttft"; "" for a scalar
	Stat     string // of a family: "mean", "p99", ...
	Better   Better
	Decimals int
	Doc      string // one sentence
	Formula  string
}

// Sections of scalars. The block prints the first; vLLM's layout has no place
// for the others.
const (
	SectionRun     = ""
	sectionSteady  = "Steady window"
	sectionFull    = "Full load"
	sectionStream  = "Stream"
	sectionClient  = "Load generator"
	SectionSuccess = "Success"
	sectionCache   = "Prefix cache"

	sectionTelemetry = "Telemetry"
	sectionGPU       = "Per GPU"
	sectionSearch    = "Search"
)

// scalars returns the figures of a run that are one number, in the block's
// order first.
func scalars() []Metric {
	return slices.Concat(callScalars(), gpuScalars(), searchScalars(), telemetryScalars())
}

// callScalars are those that the calls give.
func callScalars() []Metric {
	return []Metric{
		{Name: "completed", Label: "Successful requests", Unit: "requests", Better: Higher,
			Doc: "Calls that succeeded.", Formula: "count of calls without a failure class"},
		{Name: "failed", Label: "Failed requests", Unit: "requests", Better: Lower,
			Doc: "Calls that failed; they enter no latency, token or throughput figure.", Formula: "count of calls with a failure class"},
		{Name: "max_concurrency", Label: "Maximum request concurrency", Unit: "requests",
			Doc: "The concurrency limit of the workload; absent without one.", Formula: "as configured"},
		{Name: "request_rate", Label: "Request rate configured (RPS)", Unit: "req/s", Decimals: 2,
			Doc: "The request rate of the workload, for a trace or a ramp its mean; absent when all requests are due at once.", Formula: "as configured, or (requests - 1) / last Due"},
		{Name: "duration", Label: "Benchmark duration (s)", Unit: "s", Better: Lower, Decimals: 2,
			Doc: "Wall time of the run with its drain, failed calls included.", Formula: "D = max End - min(Due, Sent)"},
		{Name: "total_input_tokens", Label: "Total input tokens", Unit: "tokens",
			Doc: "Prompt tokens of the successful calls: the server's usage where given, else the workload's count.", Formula: "sum of p"},
		{Name: "total_output_tokens", Label: "Total generated tokens", Unit: "tokens",
			Doc: "Output tokens of the successful calls: the server's usage where given, else the run's tokenizer over the text, else the tokens counted in the stream; the verdict's tokens check says which.", Formula: "sum of n"},
		{Name: "request_throughput", Label: "Request throughput (req/s)", Unit: "req/s", Better: Higher, Decimals: 2,
			Doc: "Successful calls per second of the run.", Formula: "completed / D"},
		{Name: "request_goodput", Label: "Request goodput (req/s)", Unit: "req/s", Better: Higher, Decimals: 2,
			Doc: "Successful calls that met every goodput bound, per second of the run; absent without bounds.", Formula: "good / D"},
		{Name: "output_throughput", Label: "Output token throughput (tok/s)", Unit: "tok/s", Better: Higher, Decimals: 2,
			Doc: "Output tokens per second of the run.", Formula: "sum of n / D"},
		{Name: "max_output_tokens_per_s", Label: "Peak output token throughput (tok/s)", Unit: "tok/s", Better: Higher, Decimals: 2,
			Doc:     "Output tokens of the busiest second, a sliding window of 1 s over the chunk stamps with a call's n spread over its chunks; never below the mean, which is the answer for a run shorter than the window.",
			Formula: "max(max over t of tokens in (t - 1 s, t], sum of n / D)"},
		{Name: "max_concurrent_requests", Label: "Peak concurrent requests", Unit: "requests", Decimals: 2,
			Doc: "Most successful calls in flight at one instant; a call that ends as another is sent does not overlap it.", Formula: "max over t of calls with Sent <= t < End"},
		{Name: "total_token_throughput", Label: "Total token throughput (tok/s)", Unit: "tok/s", Better: Higher, Decimals: 2,
			Doc: "Input and output tokens per second of the run.", Formula: "(sum of p + sum of n) / D"},

		{Name: "success_rate", Label: "Success rate", Unit: "ratio", Section: SectionSuccess, Better: Higher, Decimals: 4,
			Doc: "Share of the calls that succeeded.", Formula: "completed / (completed + failed)"},
		{Name: "goodput_ratio", Label: "Goodput ratio", Unit: "ratio", Section: SectionSuccess, Better: Higher, Decimals: 4,
			Doc: "Share of all calls, failed ones included, that met every goodput bound; absent without bounds.", Formula: "good / (completed + failed)"},

		{Name: "steady_duration", Label: "Steady window (s)", Unit: "s", Section: sectionSteady, Decimals: 2,
			Doc:     "Length of the steady window, in which the client neither fills the server nor drains it: from the first end of a call to the last sending; absent when fewer than 10 calls end in it, as in a burst.",
			Formula: "W = max Sent - min End"},
		{Name: "steady_request_throughput", Label: "Steady request throughput (req/s)", Unit: "req/s", Section: sectionSteady, Better: Higher, Decimals: 2,
			Doc: "Calls that ended in the steady window, per second of it.", Formula: "ends in window / W"},
		{Name: "steady_output_throughput", Label: "Steady output token throughput (tok/s)", Unit: "tok/s", Section: sectionSteady, Better: Higher, Decimals: 2,
			Doc: "Output tokens stamped in the steady window, per second of it.", Formula: "tokens in window / W"},
		{Name: "steady_total_token_throughput", Label: "Steady total token throughput (tok/s)", Unit: "tok/s", Section: sectionSteady, Better: Higher, Decimals: 2,
			Doc: "Output tokens stamped in the steady window and the prompts whose first token was, per second of it.", Formula: "(tokens + prompts in window) / W"},
		{Name: "drain_s", Label: "Drain (s)", Unit: "s", Section: sectionSteady, Decimals: 2,
			Doc: "Time from the last sending to the end of the run.", Formula: "max End - max Sent"},

		{Name: "full_load_duration", Label: "Full load (s)", Unit: "s", Section: sectionFull, Decimals: 2,
			Doc:     "For a closed loop, the length of the time under full load: from the first to the last instant at which 95 % of the concurrency limit were in flight, failed calls included; absent when fewer than 10 calls end in it.",
			Formula: "F = last - first instant with in flight >= 0.95 limit"},
		{Name: "full_load_request_throughput", Label: "Full load request throughput (req/s)", Unit: "req/s", Section: sectionFull, Better: Higher, Decimals: 2,
			Doc: "Calls that ended under full load, per second of it.", Formula: "ends under full load / F"},
		{Name: "full_load_output_throughput", Label: "Full load output token throughput (tok/s)", Unit: "tok/s", Section: sectionFull, Better: Higher, Decimals: 2,
			Doc: "Output tokens stamped under full load, per second of it.", Formula: "tokens under full load / F"},
		{Name: "full_load_total_token_throughput", Label: "Full load total token throughput (tok/s)", Unit: "tok/s", Section: sectionFull, Better: Higher, Decimals: 2,
			Doc: "Output tokens stamped under full load and the prompts whose first token was, per second of it.", Formula: "(tokens + prompts under full load) / F"},

		{Name: "total_cached_tokens", Label: "Total cached input tokens", Unit: "tokens", Section: sectionCache,
			Doc:     "Prompt tokens of the successful calls that the server says it found in its prefix cache; absent when it tells of none.",
			Formula: "sum of cached tokens by usage"},

		{Name: "tokens_per_chunk", Label: "Tokens per chunk", Unit: "tokens", Section: sectionStream, Decimals: 2,
			Doc: "Output tokens per chunk of the streams; above 1 with speculation or a stream interval, or when tokens are not streamed.", Formula: "sum of n / chunks"},
		{Name: "tokens_per_read", Label: "Tokens per read", Unit: "tokens", Section: sectionStream, Decimals: 2,
			Doc: "Output tokens per read of the client that brought any.", Formula: "sum of n / (chunks - merged_chunks)"},
		{Name: "merged_chunks", Label: "Chunks merged by reads", Unit: "chunks", Section: sectionClient,
			Doc:     "Chunks that came in one read with the chunk before them, or in one packet; they have no gap of their own and stay out of the inter-token latencies.",
			Formula: "count of chunks with their predecessor's read or stamp"},
		{Name: "new_connections", Label: "New connections", Unit: "requests", Section: sectionClient,
			Doc: "Successful calls for which a connection had to be opened; its time is in connect and in no latency counted from the sending; absent when the calls do not tell, as predicted ones.", Formula: "count of calls with a new connection"},
	}
}

// Metrics returns the metric table: all scalars, then mean, median, std, min,
// max and the percentiles every summary has, for each family. Other
// percentiles are found by Lookup.
func Metrics() []Metric {
	table := scalars()
	for _, f := range families() {
		for _, s := range stats {
			table = append(table, f.metric(s.name))
		}
		for _, p := range percentiles {
			table = append(table, f.metric(PercentileName(p)))
		}
	}
	return table
}

// byName finds the rows of the table; it is made once, because readers of
// files look names up by the thousand.
var byName = sync.OnceValue(func() map[string]Metric {
	rows := map[string]Metric{}
	for _, m := range Metrics() {
		rows[m.Name] = m
	}
	return rows
})

// aliases are other spellings in use; each maps a whole name, or with a
// leading * what follows the statistic.
var aliases = map[string]string{
	"total_throughput":         "total_token_throughput",
	"peak_output_throughput":   "max_output_tokens_per_s",
	"goodput":                  "request_goodput",
	"max_request_concurrency":  "max_concurrency",
	"*latency":                 "e2el_ms",
	"*latency_ms":              "e2el_ms",
	"*e2e":                     "e2el_ms",
	"*e2e_ms":                  "e2el_ms",
	"*e2e_latency":             "e2el_ms",
	"*e2e_latency_ms":          "e2el_ms",
	"*e2el_including_queue":    "e2el_due_ms",
	"*e2el_including_queue_ms": "e2el_due_ms",
}

// Lookup finds a metric by name or alias: total_token_throughput, mean_latency
// (= mean_e2el_ms), p99.9_itl_ms, p99_ttft (= p99_ttft_ms). The error names
// the nearest known metric, if one is near.
func Lookup(name string) (Metric, error) {
	key := strings.ToLower(strings.TrimSpace(name))
	if full, ok := aliases[key]; ok {
		key = full
	}
	if m, ok := byName()[key]; ok {
		return m, nil
	}
	stat, rest, _ := strings.Cut(key, "_")
	if full, ok := aliases["*"+rest]; ok {
		rest = full
	}
	rest = strings.TrimSuffix(rest, "_ms")
	for _, f := range families() {
		if strings.TrimSuffix(key, "_ms") == f.name {
			return Metric{}, fmt.Errorf("metric %q needs a statistic: mean_%s_ms, median_%s_ms, p99_%s_ms", name, f.name, f.name, f.name)
		}
		if f.name != rest {
			continue
		}
		if slices.ContainsFunc(stats, func(s struct{ name, label, doc string }) bool { return s.name == stat }) {
			return f.metric(stat), nil
		}
		if p, ok := percentile(stat); ok {
			return f.metric(PercentileName(p)), nil
		}
	}
	if near, ok := nearest(key); ok {
		return Metric{}, fmt.Errorf("unknown metric %q: did you mean %s?", name, near)
	}
	return Metric{}, fmt.Errorf("unknown metric %q: write it as p99_ttft_ms, mean_tpot_ms or output_throughput (docs/metrics.md lists all)", name)
}

// Percentile returns the percentile in percent that a name asks for: 99.9 of
// "p99.9_itl_ms". A caller passes it on in Options.Percentiles.
func Percentile(name string) (p float64, ok bool) {
	m, err := Lookup(name)
	if err != nil {
		return 0, false
	}
	return percentile(m.Stat)
}

// percentile parses "p99", "p99.9".
func percentile(stat string) (float64, bool) {
	digits, ok := strings.CutPrefix(stat, "p")
	if !ok || strings.Trim(digits, "0123456789.") != "" {
		return 0, false
	}
	p, err := strconv.ParseFloat(digits, 64)
	return p, err == nil && p <= 100
}

// PercentileName returns "p99.9" of 99.9.
func PercentileName(p float64) string { return "p" + strconv.FormatFloat(p, 'f', -1, 64) }

// nearest returns the known name with the smallest edit distance; ok is false
// where even that is another word.
func nearest(name string) (best string, ok bool) {
	name = strings.TrimSuffix(name, "_ms")
	least := 1 + len(name)/3
	for _, m := range Metrics() {
		if d := stat.Distance(name, strings.TrimSuffix(m.Name, "_ms")); d <= least && (!ok || d < least) {
			best, least, ok = m.Name, d, true
		}
	}
	return best, ok
}
