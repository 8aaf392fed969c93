package result

import (
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"

	"perflab/internal/stat"
)

// Precision returns the lines that stand between a block and its verdict: for
// each latency that the block shows, its 95 % interval, the samples behind it,
// a mark where these are fewer than the percentile needs, and how far a figure may be
// off of a run so long that not every call was kept. It is empty for
// a summary without samples. The block's own lines, which tools parse, are not
// repeated: no line here has their colon.
func Precision(s Summary, st Style) string {
	st = st.WithDefaults()
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, name := range st.sections(&s) {
		f, ok := familyOf(name)
		if n := s.Samples[name]; ok && n > 0 {
			for _, stat := range st.shown() {
				writePrecision(w, s, f.metric(stat), n)
			}
		}
	}
	for _, m := range scalars() {
		if bound := s.Within(m.Name); bound != "" && m.Section == sectionRun {
			label, _, _ := strings.Cut(m.Label, " (")
			fmt.Fprintf(w, "  %s\t%s %s\t%s, counted in bins of time\n", label, strconv.FormatFloat(s.Figures[m.Name], 'f', m.Decimals, 64), m.Unit, bound)
		}
	}
	w.Flush() // into a strings.Builder, which never fails
	if b.Len() == 0 {
		return ""
	}
	return "Precision (95 % intervals, from the calls of this run alone)\n" + b.String()
}

func writePrecision(w *tabwriter.Writer, s Summary, m Metric, n int) {
	v, ok := s.Figures[m.Name]
	if !ok {
		return
	}
	number := func(v float64) string { return strconv.FormatFloat(v, 'f', m.Decimals, 64) }
	interval := "[no interval]"
	if i, ok := s.Intervals[m.Name]; ok {
		interval = "[" + number(i[0]) + ", " + number(i[1]) + "]"
	}
	few := ""
	if p, ok := percentile(m.Stat); ok && p > 0 && p < 100 {
		if need := stat.MinSamples(p / 100); n < need {
			few = fmt.Sprintf(", few for %s, which needs %d", strings.ToUpper(m.Stat), need)
		}
	}
	late := ""
	if low, high, share, ok := s.Doubt(m.Name); ok && share > Doubtful {
		late = fmt.Sprintf(", late reads leave it open from %s to %s", number(low), number(high))
	}
	within := ""
	if text := s.Within(m.Name); text != "" {
		within = ", " + text
	}
	label := strings.Replace(Label(m, &s), " (ms)", "", 1)
	fmt.Fprintf(w, "  %s\t%s %s\t%s\tn=%d%s%s%s\n", label, number(v), m.Unit, interval, n, few, late, within)
}

// Within says how far a figure of a very long run may be off, "within 0.0031 %"; "" of
// one that is exact.
func (s Summary) Within(name string) string {
	bound := s.Approximate[name]
	if bound <= 0 {
		return ""
	}
	return fmt.Sprintf("within %.2g %%", 100*bound)
}

// TelemetryRow is a line of what was read beside a run: a figure, or a mean with its peak.
type TelemetryRow struct{ Label, Value string }

// TelemetryRows are the summary's figures of readings, of the price and per GPU, as a reader takes
// them in; none where it has none.
func TelemetryRows(s Summary) []TelemetryRow {
	var rows []TelemetryRow
	figure := func(name string) (m Metric, text string, ok bool) {
		m = byName()[name]
		v, ok := s.Figures[name]
		switch {
		case !ok:
			return m, "", false
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
func TelemetryTitle(s Summary) string {
	title := "Per GPU"
	for _, m := range telemetryScalars() {
		switch _, ok := s.Figures[m.Name]; {
		case ok && m.Unit == "price":
			title = "Cost"
		case ok:
			return "Telemetry"
		}
	}
	return title
}

// TelemetryText returns the lines that stand between a block and its verdict, "" for
// none. As in Precision no line has a colon, which tools look for.
func TelemetryText(s Summary) string {
	rows := TelemetryRows(s)
	if len(rows) == 0 {
		return ""
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintf(w, "  %s\t%s\n", row.Label, row.Value)
	}
	w.Flush() // into a strings.Builder, which never fails
	return TelemetryTitle(s) + "\n" + b.String()
}
