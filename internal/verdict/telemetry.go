package verdict

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"perflab/internal/gauge"
	"perflab/internal/result"
)

// judgeReadings says what was read beside the run, and what was not.
func judgeReadings(a *result.Analysis) (result.Status, string) {
	counts, missing := map[string]int{}, []string{}
	for _, x := range a.Telemetry.Readings {
		if x.Error != "" {
			missing = append(missing, strings.TrimSpace(x.Source+" "+x.Node)+": "+x.Error)
		} else {
			counts[x.Source]++
		}
	}
	var parts []string
	for _, s := range []string{gauge.SourceEngine, gauge.SourcePrefill, gauge.SourceGPU, gauge.SourceHost} {
		if counts[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d of %s", counts[s], s))
		}
	}
	text := "no readings beside the calls"
	if len(parts) > 0 {
		name := "the run"
		if a.Telemetry.Steady {
			name = "the steady window"
		}
		text = fmt.Sprintf("readings beside the calls, %s; figures of them are over %s of %s", strings.Join(parts, ", "), name, result.SpanText(a.Telemetry.Window.To-a.Telemetry.Window.From))
	}
	for _, g := range []struct{ source, gauge string }{{gauge.SourceEngine, "running"}, {gauge.SourceGPU, gauge.GPUUtilization}, {gauge.SourceHost, gauge.CPUUtilization}} {
		for _, k := range a.Telemetry.Tracks(g.source, g.gauge) {
			if _, ok := k.Mean(a.Telemetry.Window); !ok {
				_, covered := k.Over(a.Telemetry.Window)
				text += fmt.Sprintf("; no means of %s, those of one cover %.0f %% of it", g.source, 100*covered)
				break
			}
		}
	}
	if why := a.Telemetry.NoEnergy(); why != "" {
		text += "; no energy, " + why
	}
	if len(missing) > 0 {
		text += "; not read, " + strings.Join(missing, "; ")
	}
	return result.Sound, text
}

// throttleCauses are the gauges that say why clocks were lowered. To be at the power
// limit is how a loaded GPU runs; heat and the hardware's own brake are a fault of
// the machine, and another one would be faster.
var throttleCauses = []struct {
	gauge, name string
	fault       bool
}{
	{gauge.ThrottleThermal, "heat", true},
	{gauge.ThrottleHW, "the hardware", true},
	{gauge.ThrottlePower, "the power limit", false},
}

// judgeThrottled judges whether the GPUs ran at the clocks they can.
func judgeThrottled(a *result.Analysis) (result.Status, string) {
	const fault, limit = 0.01, 0.05 // shares of the readings
	status := result.Sound
	var parts []string
	for _, cause := range throttleCauses {
		share, _ := a.Telemetry.Share(cause.gauge)
		if share == 0 {
			continue
		}
		parts = append(parts, fmt.Sprintf("%.1f %% by %s", 100*share, cause.name))
		switch {
		case cause.fault && share >= fault:
			status = result.Noted
		case share >= limit && status == result.Sound:
			status = result.Remark
		}
	}
	if len(parts) == 0 {
		return result.Sound, "no GPU was held back by heat, power or its hardware"
	}
	text := "share of the GPUs' time in which clocks were held back: " + strings.Join(parts, ", ")
	if status == result.Noted {
		text = "throttled, a cooler machine would be faster: " + text
	}
	return status, text
}

// Limits of what counts as idle.
const (
	idleGPU         = 0.01 // utilisation of a device that took no part
	busyGPU         = 0.10 // of one that somebody else uses
	settleTime      = time.Second
	minIdleReadings = 3 // readings while the engine had nothing to do
)

// judgeDevices looks for GPUs that took no part, and for GPUs that somebody else
// used: busy for seconds in which the engine had no request.
func judgeDevices(a *result.Analysis) (result.Status, string) {
	use := a.Telemetry.Tracks(gauge.SourceGPU, gauge.GPUUtilization)
	if len(use) == 0 {
		return notJudged("the driver does not tell how much the GPUs are used")
	}
	idle := idleSpans(a.Telemetry)
	var spare, shared []string
	for _, k := range use {
		if most, ok := k.Max(a.Telemetry.Window); ok && most < idleGPU {
			spare = append(spare, k.GPU())
		}
		sum, n := 0.0, 0
		for i, at := range k.At {
			if slices.ContainsFunc(idle, func(w gauge.Span) bool { return at-settleTime > w.From && at <= w.To }) {
				sum, n = sum+k.Values[i], n+1
			}
		}
		if n >= minIdleReadings && sum/float64(n) >= busyGPU {
			shared = append(shared, fmt.Sprintf("%s %.0f %%", k.GPU(), 100*sum/float64(n)))
		}
	}
	switch {
	case len(shared) > 0:
		return result.Noted, "another program uses the GPUs, they were busy while the engine had no request: " + strings.Join(shared, ", ")
	case len(spare) > 0:
		return result.Remark, fmt.Sprintf("%d of %d GPUs that were read took no part and are in power, energy and means: %s", len(spare), len(use), strings.Join(spare, ", "))
	}
	if text := hostBound(a); text != "" {
		return result.Remark, text
	}
	return result.Sound, fmt.Sprintf("each of %d GPUs was used", len(use))
}

// hostBound says that the GPUs had nothing to do for much of the time although the engine always
// had requests for them; "" where they worked, where there were so few requests that none may have
// been there, and where that is not known.
func hostBound(a *result.Analysis) string {
	const often, enough = 0.6, 4 // requests of each GPU
	use, ok := a.Figures["mean_gpu_utilization"]
	running, known := a.Figures["mean_running_requests"]
	if !ok || !known || use >= often || running < enough*float64(a.Telemetry.Devices()) {
		return ""
	}
	return fmt.Sprintf("the GPUs worked %.0f %% of the time while %.1f requests were running on average: the engine's own work on the host's processors, such as sampling and scheduling, holds it back", 100*use, running)
}

// idleSpans are the times between readings at whose both ends no replica had a
// request, and over which none generated a token.
func idleSpans(t gauge.Telemetry) []gauge.Span {
	generated := t.Tracks(gauge.SourceEngine, "generation_tokens")
	running, waiting := t.Tracks(gauge.SourceEngine, "running"), t.Tracks(gauge.SourceEngine, "waiting")
	if len(generated) != 1 || len(running) != 1 || len(waiting) != 1 ||
		!slices.Equal(generated[0].At, running[0].At) || !slices.Equal(generated[0].At, waiting[0].At) {
		return nil // of several replicas readings are not of one instant
	}
	var out []gauge.Span
	at, tokens := generated[0].At, generated[0].Values
	held := func(i int) float64 { return running[0].Values[i] + waiting[0].Values[i] }
	for i := 1; i < len(at); i++ {
		if tokens[i] != tokens[i-1] || held(i-1)+held(i) != 0 {
			continue
		}
		if n := len(out); n > 0 && out[n-1].To == at[i-1] {
			out[n-1].To = at[i]
			continue
		}
		out = append(out, gauge.Span{From: at[i-1], To: at[i]})
	}
	return out
}

// judgeHeadroom says whether the engine was ever full: a run that left it room does
// not show what it can do, and one that kept requests waiting shows its limit.
func judgeHeadroom(a *result.Analysis) (result.Status, string) {
	const roomy = 0.5
	f := a.Figures
	running, waiting, most := f["mean_running_requests"], f["mean_waiting_requests"], f["max_waiting_requests"]
	text := fmt.Sprintf("%.2f requests running and %.2f waiting in the engine on average", running, waiting)
	kv, hasKV := f["max_kv_usage"]
	if hasKV {
		text += fmt.Sprintf(", KV cache at most %.0f %% in use", 100*kv)
	}
	if n, ok := f["preemptions"]; ok {
		text += fmt.Sprintf(", %.0f preemptions", n)
	}
	_, hasWaiting := f["max_waiting_requests"]
	switch {
	case !hasWaiting:
		return notJudged("the engine does not tell how many requests wait: " + text)
	case most == 0 && hasKV && kv < roomy:
		return result.Remark, fmt.Sprintf("the engine never had requests waiting and used at most %.0f %% of its KV cache, more load would fit: %s", 100*kv, text)
	case f["preemptions"] > 0:
		return result.Remark, "the engine ran out of KV cache and computed requests again: " + text
	case engineFull(a):
		return result.Remark, "the engine was full and kept requests waiting: " + text
	}
	return result.Sound, text
}

// engineFull reports whether the engine kept requests waiting because it had no room
// for them: more waited than ran, or for longer than a request waits anyway. One that
// comes while a step runs waits for the next, and a long prompt for a few.
func engineFull(a *result.Analysis) bool {
	const few, share, steps = 1, 0.1, 5
	f := a.Figures
	running := f["mean_running_requests"]
	waiting, ok := f["mean_waiting_requests"]
	if !ok || waiting < few || waiting <= share*running || burst(a) && !closed(a) {
		return false
	}
	wait := 1e3 * waiting / f["request_throughput"] // ms, by Little's law
	return waiting > running || wait > steps*f["mean_tpot_ms"]
}

// serverIdleNote says that the server had nothing to do while the client was late, which
// settles who held the run up; "" where readings do not say so.
func serverIdleNote(a *result.Analysis) string {
	const few, little = 0.5, 0.1
	var parts []string
	running, ok := a.Figures["mean_running_requests"]
	if held := running + a.Figures["mean_waiting_requests"]; ok && held < few {
		parts = append(parts, fmt.Sprintf("%.2f requests in the engine on average", held))
	}
	if use, ok := a.Figures["mean_gpu_utilization"]; ok && use < little {
		parts = append(parts, fmt.Sprintf("GPUs %.0f %% used", 100*use))
	}
	if len(parts) == 0 {
		return ""
	}
	return "; client-bound, the server was idle meanwhile (" + strings.Join(parts, ", ") + ")"
}
