package result

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
)

// gib is a GiB in bytes.
const gib = 1 << 30

// telemetryScalars are the rows of the metric table that readings and a price give.
func telemetryScalars() []Metric {
	const covered = "; absent unless readings cover 90 % of the window"
	return []Metric{
		{Name: "mean_running_requests", Label: "Mean requests running", Unit: "requests", Section: sectionTelemetry, Decimals: 2,
			Doc: "Requests that the engine computed at a time, by its own metrics, summed over the replicas" + covered + ".", Formula: "sum over replicas of mean over W of running"},
		{Name: "max_running_requests", Label: "Peak requests running", Unit: "requests", Section: sectionTelemetry,
			Doc: "The most requests running at one reading.", Formula: "max over W of the sum over replicas of running"},
		{Name: "mean_waiting_requests", Label: "Mean requests waiting", Unit: "requests", Section: sectionTelemetry, Better: Lower, Decimals: 2,
			Doc: "Requests that waited in the engine's queue, as mean_running_requests.", Formula: "sum over replicas of mean over W of waiting"},
		{Name: "max_waiting_requests", Label: "Peak requests waiting", Unit: "requests", Section: sectionTelemetry, Better: Lower,
			Doc: "The most requests waiting at one reading.", Formula: "max over W of the sum over replicas of waiting"},
		{Name: "mean_engine_queue_ms", Label: "Mean time in the engine's queue (ms)", Unit: "ms", Section: sectionTelemetry, Better: Lower, Decimals: 2,
			Doc: "Time that a request waited in the engine before it was computed, by the engine's counters over the run; absent where it has none.", Formula: "growth of queue_seconds / growth of queued"},
		{Name: "mean_kv_usage", Label: "Mean KV cache use", Unit: "ratio", Section: sectionTelemetry, Decimals: 4,
			Doc: "Share of the KV cache in use, averaged over the replicas" + covered + ".", Formula: "mean over replicas and W of kv_usage"},
		{Name: "max_kv_usage", Label: "Peak KV cache use", Unit: "ratio", Section: sectionTelemetry, Decimals: 4,
			Doc: "The highest reading of any replica.", Formula: "max over replicas and W of kv_usage"},
		{Name: "preemptions", Label: "Preemptions", Unit: "requests", Section: sectionTelemetry, Better: Lower,
			Doc: "Requests that the engine took the KV cache from again, over the whole run.", Formula: "growth of preemptions"},
		{Name: "prefix_hit_ratio", Label: "Prefix cache hits", Unit: "ratio", Section: sectionTelemetry, Decimals: 4,
			Doc: "Share of the prompt tokens looked up in the prefix cache that were found there, by the engine's counters over the whole run.", Formula: "growth of prefix_hits / growth of prefix_queries"},
		{Name: "acceptance_length", Label: "Acceptance length", Unit: "tokens", Section: sectionTelemetry, Better: Higher, Decimals: 2,
			Doc: "Tokens that a step of speculation yields, the model's own among them: by the engine's counters over the whole run, else the mean of what it says; absent without speculation.", Formula: "1 + growth of spec_accepted / growth of spec_drafts"},

		{Name: "gpus", Label: "GPUs read", Unit: "devices", Section: sectionTelemetry,
			Doc: "Devices that were read, idle ones among them: what is given per GPU or summed over GPUs is of these.", Formula: "count of devices with readings"},
		{Name: "mean_gpu_utilization", Label: "Mean GPU utilisation", Unit: "ratio", Section: sectionTelemetry, Decimals: 4,
			Doc: "Share of the time in which a kernel ran, whatever part of the device it filled, averaged over the GPUs" + covered + ".", Formula: "mean over GPUs and W of gpu_utilization"},
		{Name: "max_gpu_utilization", Label: "Peak GPU utilisation", Unit: "ratio", Section: sectionTelemetry, Decimals: 4,
			Doc: "The highest reading of any GPU.", Formula: "max over GPUs and W of gpu_utilization"},
		{Name: "max_gpu_memory_gib", Label: "Peak GPU memory (GiB)", Unit: "GiB", Section: sectionTelemetry, Decimals: 2,
			Doc: "The most memory in use on one GPU, by whatever program.", Formula: "max over GPUs and W of memory_used_bytes / 2^30"},
		{Name: "throttled_ratio", Label: "GPU time held back", Unit: "ratio", Section: sectionTelemetry, Better: Lower, Decimals: 4,
			Doc: "Share of the readings of GPUs at which heat, the power limit or the hardware lowered clocks; absent where the driver does not say.", Formula: "readings in W with a throttle gauge at 1 / readings in W"},
		{Name: "mean_gpu_power_w", Label: "Mean power per GPU (W)", Unit: "W", Section: sectionTelemetry, Decimals: 2,
			Doc: "Power of a board, averaged over the GPUs" + covered + ".", Formula: "mean over GPUs and W of power_w"},
		{Name: "energy_j", Label: "Energy of the GPUs (J)", Unit: "J", Section: sectionTelemetry, Decimals: 2,
			Doc: "Energy of all GPUs that were read, over the window: the trapezoid rule over their power, what no reading covers filled by the mean; absent unless readings cover 90 % of the window for each of them. Hosts, fans and networks are not in it.", Formula: "E = sum over GPUs of mean over W of power_w * W"},
		{Name: "energy_per_output_token_j", Label: "Energy per output token (J)", Unit: "J", Section: sectionTelemetry, Better: Lower, Decimals: 4,
			Doc: "Energy of the window by the output tokens stamped in it.", Formula: "E / output tokens in W"},
		{Name: "energy_per_token_j", Label: "Energy per token (J)", Unit: "J", Section: sectionTelemetry, Better: Lower, Decimals: 4,
			Doc: "Energy of the window by the output tokens in it and the prompts whose first token was.", Formula: "E / (output tokens + prompts in W)"},
		{Name: "output_tokens_per_s_per_w", Label: "Output tokens per second per watt", Unit: "tok/s/W", Section: sectionTelemetry, Better: Higher, Decimals: 4,
			Doc: "Output token throughput of the window by the power of all GPUs, which is output tokens per joule.", Formula: "output tokens in W / E"},

		{Name: "mean_host_cpu", Label: "Mean host CPU", Unit: "ratio", Section: sectionTelemetry, Decimals: 4,
			Doc: "Share of the processors' time in use, averaged over the machines that were read; the load generator's is in it where it runs on one of them" + covered + ".", Formula: "mean over hosts and W of cpu_utilization"},
		{Name: "max_host_memory_gib", Label: "Peak host memory (GiB)", Unit: "GiB", Section: sectionTelemetry, Decimals: 2,
			Doc: "The most memory in use on one machine.", Formula: "max over hosts and W of memory_used_bytes / 2^30"},

		{Name: "cost_per_million_output_tokens", Label: "Cost per million output tokens", Unit: "price", Section: sectionTelemetry, Better: Lower, Decimals: 4,
			Doc: "What a million output tokens cost at the price of the deployment, in its currency, at the throughput of the whole run; absent without a price.", Formula: "price per hour / 3600 * D / sum of n * 10^6"},
		{Name: "cost_per_million_tokens", Label: "Cost per million tokens", Unit: "price", Section: sectionTelemetry, Better: Lower, Decimals: 4,
			Doc: "What a million tokens, of input and output together, cost at the price of the deployment, in its currency, at the throughput of the whole run; absent without a price.", Formula: "price per hour / 3600 * D / (sum of p + sum of n) * 10^6"},
	}
}

// measured sets the figures of readings, of the price and of the number of GPUs.
func (a *Analysis) measured() {
	a.cost()
	a.perGPU()
	if len(a.Options.Readings) == 0 || len(a.Succeeded) == 0 {
		return
	}
	a.Telemetry = a.telemetry()
	a.engineFigures()
	a.deviceFigures()
	a.energy()
}

// cost sets what tokens cost at the run's price.
func (a *Analysis) cost() {
	d, hourly := a.Figures["duration"], a.Options.Price.PerHour
	if hourly <= 0 || d <= 0 {
		return
	}
	spent := hourly / 3600 * d * 1e6
	if a.OutputTokens > 0 {
		a.Figures["cost_per_million_output_tokens"] = spent / float64(a.OutputTokens)
	}
	if a.OutputTokens+a.InputTokens > 0 {
		a.Figures["cost_per_million_tokens"] = spent / float64(a.OutputTokens+a.InputTokens)
	}
}

// set sets a figure where there is one.
func (a *Analysis) set(name string, v float64, ok bool) {
	if ok && !math.IsNaN(v) && !math.IsInf(v, 0) {
		a.Figures[name] = v
	}
}

func (a *Analysis) engineFigures() {
	t := a.Telemetry
	for _, g := range []string{"running", "waiting"} {
		all := t.Tracks(SourceEngine, g)
		sum, _, ok := means(all, t.Window)
		a.set("mean_"+g+"_requests", sum, ok)
		most, has := highestSum(all, t.Window)
		a.set("max_"+g+"_requests", most, ok && has)
	}
	kv := t.Tracks(SourceEngine, "kv_usage")
	sum, n, ok := means(kv, t.Window)
	a.set("mean_kv_usage", sum/float64(n), ok)
	most, has := highest(kv, t.Window)
	a.set("max_kv_usage", most, ok && has)

	grown := func(name string) (float64, bool) {
		return growths(t.Tracks(SourceEngine, name), a.firstSent(), a.End)
	}
	ratio := func(over, under string) (float64, bool) {
		a, ok := grown(over)
		b, has := grown(under)
		return a / b, ok && has && b > 0
	}
	v, ok := grown("preemptions")
	a.set("preemptions", v, ok)
	v, ok = ratio("prefix_hits", "prefix_queries")
	a.set("prefix_hit_ratio", v, ok)
	v, ok = ratio("queue_seconds", "queued")
	a.set("mean_engine_queue_ms", 1000*v, ok)
	if v, ok = ratio("spec_accepted", "spec_drafts"); ok {
		a.set("acceptance_length", 1+v, ok)
		return
	}
	said := t.Tracks(SourceEngine, "spec_length")
	sum, n, ok = means(said, t.Window)
	a.set("acceptance_length", sum/float64(n), ok && sum > 0)
}

func (a *Analysis) deviceFigures() {
	t := a.Telemetry
	use := t.Tracks(SourceGPU, GPUUtilization)
	if n := t.Devices(); n > 0 {
		a.Figures["gpus"] = float64(n)
	}
	sum, n, ok := means(use, t.Window)
	a.set("mean_gpu_utilization", sum/float64(n), ok)
	most, has := highest(use, t.Window)
	a.set("max_gpu_utilization", most, ok && has)
	most, has = highest(t.Tracks(SourceGPU, MemoryUsed), t.Window)
	a.set("max_gpu_memory_gib", most/gib, has)
	sum, n, ok = means(t.Tracks(SourceGPU, GPUPower), t.Window)
	a.set("mean_gpu_power_w", sum/float64(n), ok)
	share, ok := t.Share(ThrottlePower, ThrottleThermal, ThrottleHW)
	a.set("throttled_ratio", share, ok)

	sum, n, ok = means(t.Tracks(SourceHost, CPUUtilization), t.Window)
	a.set("mean_host_cpu", sum/float64(n), ok)
	most, has = highest(t.Tracks(SourceHost, MemoryUsed), t.Window)
	a.set("max_host_memory_gib", most/gib, has)
}

// energy sets energy and what is made of it: of power that every GPU told.
func (a *Analysis) energy() {
	t := a.Telemetry
	power := t.Tracks(SourceGPU, GPUPower)
	watts, n, ok := means(power, t.Window)
	if !ok || n < t.Devices() {
		return
	}
	seconds := t.Window.Seconds()
	joules := watts * seconds
	a.set("energy_j", joules, true)
	output, total := float64(a.OutputTokens), float64(a.OutputTokens+a.InputTokens)
	if t.Steady {
		output = a.Figures["steady_output_throughput"] * seconds
		total = a.Figures["steady_total_token_throughput"] * seconds
	}
	if joules <= 0 {
		return
	}
	a.set("energy_per_output_token_j", joules/output, output > 0)
	a.set("output_tokens_per_s_per_w", output/joules, output > 0)
	a.set("energy_per_token_j", joules/total, total > 0)
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
