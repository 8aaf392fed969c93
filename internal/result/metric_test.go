package result

import (
	"strings"
	"testing"
)

func TestLookup(t *testing.T) {
	for name, want := range map[string]string{
		"total_token_throughput":  "total_token_throughput",
		"total_throughput":        "total_token_throughput",
		"max_request_concurrency": "max_concurrency",
		"mean_latency":            "mean_e2el_ms",
		"p95_latency":             "p95_e2el_ms",
		"median_e2e":              "median_e2el_ms",
		"mean_e2e_latency_ms":     "mean_e2el_ms",
		"e2el":                    "",
		"p99_ttft":                "p99_ttft_ms",
		" P99_TTFT_MS ":           "p99_ttft_ms",
		"p99.9_itl_ms":            "p99.9_itl_ms",
		"p99.0_itl_ms":            "p99_itl_ms",
		"max_ttft_due":            "max_ttft_due_ms",
		"p50_dispatch_lag_ms":     "p50_dispatch_lag_ms",
		"p101_ttft_ms":            "",
		"p_ttft_ms":               "",
		"p1e1_ttft_ms":            "",
		"p9.9.9_ttft_ms":          "",
		"mean_duration":           "",
		"":                        "",
	} {
		m, err := Lookup(name)
		if m.Name != want || (err == nil) != (want != "") {
			t.Errorf("Lookup(%q) = %q, %v; want %q", name, m.Name, err, want)
		}
	}
}

func TestLookupErrors(t *testing.T) {
	for name, want := range map[string]string{
		"p99_tftt_ms":            "did you mean p99_ttft_ms?",
		"p99_tftt":               "did you mean p99_ttft_ms?",
		"":                       "write it as p99_ttft_ms",
		"colour":                 "write it as p99_ttft_ms",
		"total_token_throughptu": "did you mean total_token_throughput?",
		"ttft_ms":                "needs a statistic: mean_ttft_ms, median_ttft_ms, p99_ttft_ms",
		"tpot":                   "needs a statistic",
	} {
		if _, err := Lookup(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Lookup(%q): %v, want it to say %q", name, err, want)
		}
	}
}

func TestPercentile(t *testing.T) {
	if p, ok := Percentile("p99.9_latency"); !ok || p != 99.9 {
		t.Errorf("Percentile(p99.9_latency) = %v, %v", p, ok)
	}
	for _, name := range []string{"mean_ttft_ms", "duration", "nonsense"} {
		if p, ok := Percentile(name); ok {
			t.Errorf("Percentile(%s) = %v", name, p)
		}
	}
}

// Every row is complete, found by its name, and named once.
func TestMetricTable(t *testing.T) {
	seen := map[string]bool{}
	labels := map[string]string{}
	for _, m := range Metrics() {
		if seen[m.Name] {
			t.Errorf("%s is in the table twice", m.Name)
		}
		seen[m.Name] = true
		if other, ok := labels[m.Label]; ok {
			t.Errorf("%s and %s are both labelled %q", m.Name, other, m.Label)
		}
		labels[m.Label] = m.Name
		if m.Label == "" || m.Unit == "" || m.Doc == "" || m.Formula == "" {
			t.Errorf("%s lacks a label, unit, doc or formula: %+v", m.Name, m)
		}
		if got, err := Lookup(m.Name); err != nil || got != m {
			t.Errorf("Lookup(%s) = %+v, %v", m.Name, got, err)
		}
	}
}
