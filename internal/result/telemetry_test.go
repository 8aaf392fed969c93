package result

import (
	"math"
	"strings"
	"testing"
	"time"

	"perflab/internal/gauge"
	"perflab/internal/price"
)

// reading is one with a value or more.
func reading(at time.Duration, source string, index int, values map[string]float64) gauge.Reading {
	return gauge.Reading{At: at, Source: source, Index: index, Values: values}
}

// readingsOfAll are readings of every gauge, counters growing by 10 each.
func readingsOfAll(from, to, every time.Duration) []gauge.Reading {
	var out []gauge.Reading
	for i, at := 0, from; at <= to; i, at = i+1, at+every {
		for _, source := range []string{gauge.SourceEngine, gauge.SourcePrefill, gauge.SourceGPU, gauge.SourceHost} {
			r := reading(at, source, 0, map[string]float64{})
			for _, g := range gauges() {
				if g.Source != source && (source != gauge.SourcePrefill || g.Source != gauge.SourceEngine) {
					continue
				}
				r.Values[g.Name] = 0.5
				if strings.HasPrefix(g.Name, "kv_") && g.Unit == "tokens" {
					r.Values[g.Name] = map[string]float64{"kv_tokens": 4096, "kv_block": 16}[g.Name]
				}
				if g.Counter {
					r.Values[g.Name] = float64(10 * i)
				}
			}
			out = append(out, r)
		}
	}
	return out
}

// series is one gauge at instants a second apart from the first on.
func series(source, name string, index int, first time.Duration, v ...float64) []gauge.Reading {
	var out []gauge.Reading
	for i, x := range v {
		out = append(out, reading(first+time.Duration(i)*time.Second, source, index, map[string]float64{name: x}))
	}
	return out
}

// burstOf is n calls that are all in flight from 0 to 10 s, of 10 output tokens each:
// a run without a steady window, whose readings are judged over all of it.
func burstOf(n int) []Call {
	var calls []Call
	for i := range n {
		c := Call{Index: i, End: 10 * time.Second, Usage: &Usage{Prompt: 90, Completion: 10}}
		for k := range 10 {
			c.Chunks = append(c.Chunks, Chunk{At: time.Duration(k+1) * time.Second, Tokens: 1, Read: int32(k)})
		}
		calls = append(calls, c)
	}
	return calls
}

func TestEnergyIsTheTrapezoidOverAllGPUs(t *testing.T) {
	// GPU 0 climbs from 100 W to 300 W over the run, GPU 1 stays at 50 W.
	var climb, flat []float64
	for i := range 11 {
		climb, flat = append(climb, 100+20*float64(i)), append(flat, 50)
	}
	readings := append(series(gauge.SourceGPU, gauge.GPUPower, 0, 0, climb...), series(gauge.SourceGPU, gauge.GPUPower, 1, 0, flat...)...)
	s := summarize(t, Header{}, Options{Readings: readings}, burstOf(10)) // 100 output and 900 input tokens
	for name, want := range map[string]float64{
		"gpus": 2, "mean_gpu_power_w": 125, "energy_j": 2500, "energy_per_output_token_j": 25, "energy_per_token_j": 2.5, "output_tokens_per_s_per_w": 0.04,
	} {
		if got, ok := s.Figures[name]; !ok || math.Abs(got-want) > 1e-9*want {
			t.Errorf("%s = %v, %v, want %v", name, got, ok, want)
		}
	}
}

// TestSteadyEnergy: of a run with a steady window energy and tokens are of that
// window alone.
func TestSteadyEnergy(t *testing.T) {
	calls := steady(300, 10*msec)
	power := []gauge.Reading{}
	for at := -time.Second; at <= 5*time.Second; at += 50 * msec {
		power = append(power, reading(at, gauge.SourceGPU, 0, map[string]float64{gauge.GPUPower: 200}))
	}
	s := summarize(t, Header{Rate: 100}, Options{Readings: power}, calls)
	w := s.Figures["steady_duration"]
	if got, want := s.Figures["energy_j"], 200*w; math.Abs(got-want) > 1e-6 {
		t.Errorf("energy %v J of a window of %v s at 200 W, want %v", got, w, want)
	}
	if got, want := s.Figures["output_tokens_per_s_per_w"], s.Figures["steady_output_throughput"]/200; math.Abs(got-want) > 1e-9 {
		t.Errorf("tok/s/W = %v, want the steady throughput by 200 W, %v", got, want)
	}
}

func TestEngineFigures(t *testing.T) {
	var readings []gauge.Reading
	add := func(r []gauge.Reading) { readings = append(readings, r...) }
	add(series(gauge.SourceEngine, "running", 0, -time.Second, 0, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 0))
	add(series(gauge.SourceEngine, "running", 1, -time.Second, 0, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 0))
	add(series(gauge.SourceEngine, "waiting", 0, -time.Second, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0))
	// A counter that begins anew when its engine does: 3 before, 2 after.
	add(series(gauge.SourceEngine, "preemptions", 0, -time.Second, 10, 10, 12, 13, 0, 1, 2, 2, 2, 2, 2, 2, 2))
	add(series(gauge.SourceEngine, "spec_drafts", 0, -time.Second, 0, 0, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 20))
	add(series(gauge.SourceEngine, "spec_accepted", 0, -time.Second, 5, 5, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 35))
	// Not read before the run: what it grew by is not known.
	add(series(gauge.SourceEngine, "prefix_queries", 0, time.Second, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110))
	add(series(gauge.SourceEngine, "prefix_hits", 0, time.Second, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11))
	s := summarize(t, Header{}, Options{Readings: readings}, burstOf(10))
	for name, want := range map[string]float64{
		"mean_running_requests": 6, "max_running_requests": 6, "mean_waiting_requests": 0.6, "max_waiting_requests": 6,
		"preemptions": 5, "acceptance_length": 2.5,
	} {
		if got, ok := s.Figures[name]; !ok || math.Abs(got-want) > 1e-9 {
			t.Errorf("%s = %v, %v, want %v", name, got, ok, want)
		}
	}
	for _, name := range []string{"prefix_hit_ratio", "mean_kv_usage", "gpus", "mean_host_cpu", "energy_j", "throttled_ratio"} {
		if v, ok := s.Figures[name]; ok {
			t.Errorf("%s = %v without data", name, v)
		}
	}
}

func TestCost(t *testing.T) {
	s := summarize(t, Header{}, Options{Price: price.Hourly{PerHour: 36, Currency: "EUR"}}, burstOf(10)) // 0.1 for 100 output, 900 input tokens
	if got := s.Figures["cost_per_million_output_tokens"]; math.Abs(got-1000) > 1e-9 {
		t.Errorf("output tokens cost %v, want 1000", got)
	}
	if got := s.Figures["cost_per_million_tokens"]; math.Abs(got-100) > 1e-9 || s.Currency != "EUR" {
		t.Errorf("tokens cost %v %s, want 100 EUR", got, s.Currency)
	}
}
