package result

import (
	"cmp"
	"slices"
	"strings"

	"perflab/internal/gauge"
)

// addSurroundings sets the figures of readings, of the price and of the number of GPUs.
func (a *Analysis) addSurroundings() {
	a.addCost()
	a.addPerGPU()
	if len(a.Options.Readings) == 0 || a.Completed == 0 {
		return
	}
	a.Telemetry = a.newTelemetry()
	a.addEngineFigures()
	a.addDeviceFigures()
	a.addEnergy()
}

// addCost sets what tokens cost at the run's price.
func (a *Analysis) addCost() {
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

// addPerGPU sets the figures per GPU, where their number is known.
func (a *Analysis) addPerGPU() {
	if a.Options.GPUs <= 0 {
		return
	}
	for _, m := range gpuScalars() {
		if v, ok := a.Figures[strings.TrimSuffix(m.Name, perGPU)]; ok {
			a.Figures[m.Name] = v / float64(a.Options.GPUs)
		}
	}
}

func (a *Analysis) newTelemetry() gauge.Telemetry {
	t := gauge.Telemetry{Readings: slices.Clone(a.Options.Readings), Window: gauge.Span{From: a.Sent.First, To: a.End}}
	slices.SortStableFunc(t.Readings, func(a, b gauge.Reading) int { return cmp.Compare(a.At, b.At) })
	if a.Steady.OK {
		t.Window, t.Steady = a.Steady.Span, true
	}
	return t
}

// gib is a GiB in bytes.
const gib = 1 << 30

func (a *Analysis) addEngineFigures() {
	t := a.Telemetry
	for _, g := range []string{"running", "waiting"} {
		all := t.Tracks(gauge.SourceEngine, g)
		sum, _, ok := all.SumOfMeans(t.Window)
		a.setIf("mean_"+g+"_requests", sum, ok)
		most, has := all.MaxSum(t.Window)
		a.setIf("max_"+g+"_requests", most, ok && has)
	}
	kv := t.Tracks(gauge.SourceEngine, "kv_usage")
	sum, n, ok := kv.SumOfMeans(t.Window)
	a.setIf("mean_kv_usage", sum/float64(n), ok)
	most, has := kv.Max(t.Window)
	a.setIf("max_kv_usage", most, ok && has)

	a.addPrefillFigures()
	grown := func(source, name string) (float64, bool) {
		return t.Tracks(source, name).SumOfGrowths(gauge.Span{From: a.Sent.First, To: a.End})
	}
	ratio := func(source, over, under string) (float64, bool) {
		a, ok := grown(source, over)
		b, has := grown(source, under)
		return a / b, ok && has && b > 0
	}
	v, ok := grown(gauge.SourceEngine, "preemptions")
	a.setIf("preemptions", v, ok)
	v, ok = ratio(prompts(t), "prefix_hits", "prefix_queries")
	a.setIf("prefix_hit_ratio", v, ok)
	v, ok = ratio(prompts(t), "queue_seconds", "queued")
	a.setIf("mean_engine_queue_ms", 1000*v, ok)
	if v, ok = ratio(gauge.SourceEngine, "spec_accepted", "spec_drafts"); ok {
		a.setIf("acceptance_length", 1+v, ok)
		return
	}
	said := t.Tracks(gauge.SourceEngine, "spec_length")
	sum, n, ok = said.SumOfMeans(t.Window)
	a.setIf("acceptance_length", sum/float64(n), ok && sum > 0)
}

// prompts is the source of readings of the engines that compute prompts.
func prompts(t gauge.Telemetry) string {
	if len(t.Tracks(gauge.SourcePrefill, "running")) > 0 {
		return gauge.SourcePrefill
	}
	return gauge.SourceEngine
}

// addPrefillFigures sets those of engines that only compute prompts, where there are such.
func (a *Analysis) addPrefillFigures() {
	t := a.Telemetry
	for _, g := range []string{"running", "waiting"} {
		sum, _, ok := t.Tracks(gauge.SourcePrefill, g).SumOfMeans(t.Window)
		a.setIf("mean_prefill_"+g+"_requests", sum, ok)
	}
	most, has := t.Tracks(gauge.SourcePrefill, "kv_usage").Max(t.Window)
	a.setIf("max_prefill_kv_usage", most, has)
}

func (a *Analysis) addDeviceFigures() {
	t := a.Telemetry
	use := t.Tracks(gauge.SourceGPU, gauge.GPUUtilization)
	if n := t.Devices(); n > 0 {
		a.Figures["gpus"] = float64(n)
	}
	sum, n, ok := use.SumOfMeans(t.Window)
	a.setIf("mean_gpu_utilization", sum/float64(n), ok)
	most, has := use.Max(t.Window)
	a.setIf("max_gpu_utilization", most, ok && has)
	most, has = t.Tracks(gauge.SourceGPU, gauge.MemoryUsed).Max(t.Window)
	a.setIf("max_gpu_memory_gib", most/gib, has)
	sum, n, ok = t.Tracks(gauge.SourceGPU, gauge.GPUPower).SumOfMeans(t.Window)
	a.setIf("mean_gpu_power_w", sum/float64(n), ok)
	share, ok := t.Share(gauge.ThrottlePower, gauge.ThrottleThermal, gauge.ThrottleHW)
	a.setIf("throttled_ratio", share, ok)

	sum, n, ok = t.Tracks(gauge.SourceHost, gauge.CPUUtilization).SumOfMeans(t.Window)
	a.setIf("mean_host_cpu", sum/float64(n), ok)
	most, has = t.Tracks(gauge.SourceHost, gauge.MemoryUsed).Max(t.Window)
	a.setIf("max_host_memory_gib", most/gib, has)
}

// addEnergy sets energy and what is made of it: of power that every GPU told.
func (a *Analysis) addEnergy() {
	t := a.Telemetry
	power := t.Tracks(gauge.SourceGPU, gauge.GPUPower)
	watts, n, ok := power.SumOfMeans(t.Window)
	if !ok || n < t.Devices() {
		return
	}
	seconds := t.Window.Seconds()
	joules := watts * seconds
	a.setIf("energy_j", joules, true)
	output, total := float64(a.OutputTokens), float64(a.OutputTokens+a.InputTokens)
	if t.Steady {
		output = a.Figures["steady_output_throughput"] * seconds
		total = a.Figures["steady_total_token_throughput"] * seconds
	}
	if joules <= 0 {
		return
	}
	a.setIf("energy_per_output_token_j", joules/output, output > 0)
	a.setIf("output_tokens_per_s_per_w", output/joules, output > 0)
	a.setIf("energy_per_token_j", joules/total, total > 0)
}
