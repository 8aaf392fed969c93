package result

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"perflab/internal/stat"
)

// Metrics returns the metric table: all scalars, then mean, median, std, min,
// max and the percentiles every summary has, for each family. Other
// percentiles are found by Lookup.
func Metrics() []Metric {
	table := scalars()
	for _, f := range families() {
		for _, s := range familyStats {
			table = append(table, f.metric(s.name))
		}
		for _, p := range defaultPercentiles {
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
		if slices.ContainsFunc(familyStats, func(s struct{ name, label, doc string }) bool { return s.name == stat }) {
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
