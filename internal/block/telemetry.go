package block

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/gauge"
	"perflab/internal/result"
)

// TelemetryRow is a line of what was read beside a run: a figure, or a mean with its peak.
type TelemetryRow struct{ Label, Value string }

// TelemetryRows are the summary's figures of readings, of the price and per GPU, as a reader takes
// them in; none where it has none.
func TelemetryRows(s result.Summary) []TelemetryRow {
	var rows []TelemetryRow
	figure := func(name string) (m result.Metric, text string, ok bool) {
		v, ok := s.Figures[name]
		if !ok {
			return m, "", false
		}
		m, _ = result.Lookup(name) // a name of the list below
		switch {
		case m.Unit == "ratio":
			return m, fmt.Sprintf("%.1f %%", 100*v), true
		case m.Unit == "price":
			return m, strings.TrimSpace(strconv.FormatFloat(v, 'f', m.Decimals, 64) + " " + s.Currency), true
		}
		return m, strconv.FormatFloat(v, 'f', m.Decimals, 64) + " " + m.Unit, true
	}
	for _, row := range []struct{ label, mean, peak string }{
		{"Requests running", "mean_running_requests", "max_running_requests"},
		{"Requests waiting", "mean_waiting_requests", "max_waiting_requests"},
		{"", "mean_engine_queue_ms", ""},
		{"KV cache in use", "mean_kv_usage", "max_kv_usage"},
		{"", "preemptions", ""}, {"", "prefix_hit_ratio", ""}, {"", "acceptance_length", ""}, {"", "gpus", ""},
		{"GPU utilisation", "mean_gpu_utilization", "max_gpu_utilization"},
		{"", "max_gpu_memory_gib", ""}, {"", "throttled_ratio", ""}, {"", "mean_gpu_power_w", ""},
		{"", "energy_j", ""}, {"", "energy_per_output_token_j", ""}, {"", "energy_per_token_j", ""}, {"", "output_tokens_per_s_per_w", ""},
		{"", "mean_host_cpu", ""}, {"", "max_host_memory_gib", ""},
		{"", "cost_per_million_output_tokens", ""}, {"", "cost_per_million_tokens", ""},
		{"", "request_throughput_per_gpu", ""}, {"", "output_throughput_per_gpu", ""}, {"", "total_token_throughput_per_gpu", ""},
	} {
		m, text, ok := figure(row.mean)
		if !ok {
			continue
		}
		if _, peak, ok := figure(row.peak); ok {
			text = "mean " + text + ", peak " + peak
		}
		label := row.label
		if label == "" {
			label, _, _ = strings.Cut(m.Label, " (")
		}
		rows = append(rows, TelemetryRow{label, text})
	}
	return rows
}

// TelemetryTitle is what to put above the rows: Cost, or Per GPU, where there is
// nothing else.
func TelemetryTitle(s result.Summary) string {
	title := "Per GPU"
	for _, m := range result.Metrics() {
		if _, ok := s.Figures[m.Name]; !ok {
			continue
		}
		switch needs := m.Needs(); {
		case slices.Contains(needs, result.NeedPrice):
			title = "Cost"
		case slices.ContainsFunc(needs, gauge.IsSource):
			return "Telemetry"
		}
	}
	return title
}

// Telemetry returns the lines that stand between a block and its verdict, "" for
// none. As in Precision no line has a colon, which tools look for.
func Telemetry(s result.Summary) string { return lines(TelemetryTitle(s), TelemetryRows(s)) }
