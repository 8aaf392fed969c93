package result

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// telemetryChecks are the checks of a run that has readings, in the order of the
// verdict; one without has none of them.
func (r *run) telemetryChecks() []check {
	if len(r.t.readings) == 0 {
		return nil
	}
	all := []check{{"telemetry", r.judgeReadings}}
	if _, _, told := r.t.throttled(); told {
		all = append(all, check{"throttled", r.judgeThrottled})
	}
	if r.t.devices() > 0 {
		all = append(all, check{"gpus", r.judgeDevices})
	}
	if _, ok := r.figures["mean_running_requests"]; ok {
		all = append(all, check{"headroom", r.judgeHeadroom})
	}
	return all
}

// judgeReadings says what was read beside the run, and what was not.
func (r *run) judgeReadings() (Status, string) {
	counts, missing := map[string]int{}, []string{}
	for _, x := range r.t.readings {
		if x.Error != "" {
			missing = append(missing, strings.TrimSpace(x.Source+" "+x.Node)+": "+x.Error)
		} else {
			counts[x.Source]++
		}
	}
	var parts []string
	for _, s := range []string{SourceEngine, SourceGPU, SourceHost} {
		if counts[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d of %s", counts[s], s))
		}
	}
	text := "no readings beside the calls"
	if len(parts) > 0 {
		name := "the run"
		if r.t.steady {
			name = "the steady window"
		}
		text = fmt.Sprintf("readings beside the calls, %s; figures of them are over %s of %s", strings.Join(parts, ", "), name, seconds(r.t.at.to-r.t.at.from))
	}
	for _, g := range []struct{ source, gauge string }{{SourceEngine, "running"}, {SourceGPU, GPUUtilization}, {SourceHost, CPUUtilization}} {
		for _, k := range r.t.tracks(g.source, g.gauge) {
			if _, ok := k.mean(r.t.at); !ok {
				_, covered := k.over(r.t.at)
				text += fmt.Sprintf("; no means of %s, those of one cover %.0f %% of it", g.source, 100*covered)
				break
			}
		}
	}
	if why := r.t.noEnergy(); why != "" {
		text += "; no energy, " + why
	}
	if len(missing) > 0 {
		text += "; not read, " + strings.Join(missing, "; ")
	}
	return Sound, text
}

// noEnergy says why GPUs were read and no energy is given; "" where it is, or where
// none was.
func (t telemetry) noEnergy() string {
	n := t.devices()
	if n == 0 {
		return ""
	}
	power := t.tracks(SourceGPU, GPUPower)
	if len(power) < n {
		return fmt.Sprintf("%d of %d GPUs do not tell their power", n-len(power), n)
	}
	for _, k := range power {
		if _, ok := k.mean(t.at); !ok {
			_, covered := k.over(t.at)
			return fmt.Sprintf("readings of the power of %s cover %.0f %% of the window and it takes %.0f %%, with %d readings at least", k.gpu(), 100*covered, 100*minCovered, minReadings)
		}
	}
	return ""
}

// gpu names the device that a track is of.
func (k track) gpu() string {
	if k.node != "" {
		return fmt.Sprintf("GPU %d of %s", k.index, k.node)
	}
	return fmt.Sprintf("GPU %d", k.index)
}

// throttles are the gauges that say why clocks were lowered. To be at the power
// limit is how a loaded GPU runs; heat and the hardware's own brake are a fault of
// the machine, and another one would be faster.
var throttles = []struct {
	gauge, why string
	fault      bool
}{
	{ThrottleThermal, "heat", true},
	{ThrottleHW, "the hardware", true},
	{ThrottlePower, "the power limit", false},
}

// throttled is the share of GPU readings in the window at which clocks were lowered,
// in all and by each of throttles; told is false where no driver says.
func (t telemetry) throttled() (share float64, by []float64, told bool) {
	by = make([]float64, len(throttles))
	n, any := 0, 0
	for _, x := range t.readings {
		if _, ok := x.Values[ThrottlePower]; x.Source != SourceGPU || !ok || !t.at.contains(x.At) {
			continue
		}
		n++
		held := false
		for i, k := range throttles {
			if x.Values[k.gauge] > 0 {
				by[i]++
				held = true
			}
		}
		if held {
			any++
		}
	}
	if n == 0 {
		return 0, nil, false
	}
	for i := range by {
		by[i] /= float64(n)
	}
	return float64(any) / float64(n), by, true
}

// judgeThrottled judges whether the GPUs ran at the clocks they can.
func (r *run) judgeThrottled() (Status, string) {
	const fault, limit = 0.01, 0.05 // shares of the readings
	_, by, _ := r.t.throttled()
	status := Sound
	var parts []string
	for i, k := range throttles {
		if by[i] == 0 {
			continue
		}
		parts = append(parts, fmt.Sprintf("%.1f %% by %s", 100*by[i], k.why))
		switch {
		case k.fault && by[i] >= fault:
			status = Noted
		case by[i] >= limit && status == Sound:
			status = Remark
		}
	}
	if len(parts) == 0 {
		return Sound, "no GPU was held back by heat, power or its hardware"
	}
	text := "share of the GPUs' time in which clocks were held back: " + strings.Join(parts, ", ")
	if status == Noted {
		text = "throttled, a cooler machine would be faster: " + text
	}
	return status, text
}

// Limits of what counts as idle.
const (
	idleGPU   = 0.01 // utilisation of a device that took no part
	busyGPU   = 0.10 // of one that somebody else uses
	settle    = time.Second
	leastIdle = 3 // readings while the engine had nothing to do
)

// judgeDevices looks for GPUs that took no part, and for GPUs that somebody else
// used: busy for seconds in which the engine had no request.
func (r *run) judgeDevices() (Status, string) {
	use := r.t.tracks(SourceGPU, GPUUtilization)
	if len(use) == 0 {
		return not("the driver does not tell how much the GPUs are used")
	}
	idle := r.t.idleSpans()
	var spare, shared []string
	for _, k := range use {
		if most, ok := highest([]track{k}, r.t.at); ok && most < idleGPU {
			spare = append(spare, k.gpu())
		}
		sum, n := 0.0, 0
		for i, at := range k.at {
			if slices.ContainsFunc(idle, func(w window) bool { return at-settle > w.from && at <= w.to }) {
				sum, n = sum+k.v[i], n+1
			}
		}
		if n >= leastIdle && sum/float64(n) >= busyGPU {
			shared = append(shared, fmt.Sprintf("%s %.0f %%", k.gpu(), 100*sum/float64(n)))
		}
	}
	switch {
	case len(shared) > 0:
		return Noted, "another program uses the GPUs, they were busy while the engine had no request: " + strings.Join(shared, ", ")
	case len(spare) > 0:
		return Remark, fmt.Sprintf("%d of %d GPUs that were read took no part and are in power, energy and means: %s", len(spare), len(use), strings.Join(spare, ", "))
	}
	return Sound, fmt.Sprintf("each of %d GPUs was used", len(use))
}

// idleSpans are the times between readings at whose both ends no replica had a
// request, and over which none generated a token.
func (t telemetry) idleSpans() []window {
	generated := t.tracks(SourceEngine, "generation_tokens")
	running, waiting := t.tracks(SourceEngine, "running"), t.tracks(SourceEngine, "waiting")
	if len(generated) != 1 || len(running) != 1 || len(waiting) != 1 ||
		!slices.Equal(generated[0].at, running[0].at) || !slices.Equal(generated[0].at, waiting[0].at) {
		return nil // of several replicas readings are not of one instant
	}
	var out []window
	g := generated[0]
	for i := 1; i < len(g.at); i++ {
		if g.v[i] != g.v[i-1] || running[0].v[i-1]+running[0].v[i]+waiting[0].v[i-1]+waiting[0].v[i] != 0 {
			continue
		}
		if n := len(out); n > 0 && out[n-1].to == g.at[i-1] {
			out[n-1].to = g.at[i]
			continue
		}
		out = append(out, window{from: g.at[i-1], to: g.at[i]})
	}
	return out
}

// judgeHeadroom says whether the engine was ever full: a run that left it room does
// not show what it can do, and one that kept requests waiting shows its limit.
func (r *run) judgeHeadroom() (Status, string) {
	const roomy = 0.5
	f := r.figures
	running, waiting, most := f["mean_running_requests"], f["mean_waiting_requests"], f["max_waiting_requests"]
	text := fmt.Sprintf("%.2f requests running and %.2f waiting in the engine on average", running, waiting)
	kv, told := f["max_kv_usage"]
	if told {
		text += fmt.Sprintf(", KV cache at most %.0f %% in use", 100*kv)
	}
	if n, ok := f["preemptions"]; ok {
		text += fmt.Sprintf(", %.0f preemptions", n)
	}
	_, hasWaiting := f["max_waiting_requests"]
	switch {
	case !hasWaiting:
		return not("the engine does not tell how many requests wait: " + text)
	case most == 0 && told && kv < roomy:
		return Remark, fmt.Sprintf("the engine never had requests waiting and used at most %.0f %% of its KV cache, more load would fit: %s", 100*kv, text)
	case f["preemptions"] > 0:
		return Remark, "the engine ran out of KV cache and computed requests again: " + text
	case waiting >= 1 && waiting > 0.1*running && (r.closed() || !r.burst()):
		return Remark, "the engine was full and kept requests waiting: " + text
	}
	return Sound, text
}

// starved says that the server had nothing to do while the client was late, which
// settles who held the run up; "" where readings do not say so.
func (r *run) starved() string {
	const few, little = 0.5, 0.1
	var parts []string
	running, ok := r.figures["mean_running_requests"]
	if held := running + r.figures["mean_waiting_requests"]; ok && held < few {
		parts = append(parts, fmt.Sprintf("%.2f requests in the engine on average", held))
	}
	if use, ok := r.figures["mean_gpu_utilization"]; ok && use < little {
		parts = append(parts, fmt.Sprintf("GPUs %.0f %% used", 100*use))
	}
	if len(parts) == 0 {
		return ""
	}
	return "; client-bound, the server was idle meanwhile (" + strings.Join(parts, ", ") + ")"
}
