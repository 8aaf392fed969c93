package verdict

import (
	"slices"
	"strings"
	"testing"
	"time"

	"perflab/internal/gauge"
	"perflab/internal/result"
)

// reading is one with a value or more.
func reading(at time.Duration, source string, index int, values map[string]float64) gauge.Reading {
	return gauge.Reading{At: at, Source: source, Index: index, Values: values}
}

// burstOf is n calls that are all in flight from 0 to 10 s, of 10 output tokens each:
// a run without a steady window, whose readings are judged over all of it.
func burstOf(n int) []result.Call {
	var calls []result.Call
	for i := range n {
		c := result.Call{Index: i, End: 10 * time.Second, Usage: &result.Usage{Prompt: 90, Completion: 10}}
		for k := range 10 {
			c.Chunks = append(c.Chunks, result.Chunk{At: time.Duration(k+1) * time.Second, Tokens: 1, Read: int32(k)})
		}
		calls = append(calls, c)
	}
	return calls
}

// gpuReadings are a GPU's over the run of burstOf, with more gauges from one on.
func gpuReadings(n int, more func(i int, v map[string]float64)) []gauge.Reading {
	var out []gauge.Reading
	for i := range n {
		v := map[string]float64{gauge.GPUUtilization: 0.9, gauge.ThrottlePower: 0, gauge.ThrottleThermal: 0, gauge.ThrottleHW: 0}
		if more != nil {
			more(i, v)
		}
		out = append(out, reading(time.Duration(i)*100*msec, gauge.SourceGPU, 0, v))
	}
	return out
}

func TestTelemetryChecks(t *testing.T) {
	engine := func(running, waiting, kv float64) []gauge.Reading {
		var out []gauge.Reading
		for i := -1; i <= 21; i++ {
			out = append(out, reading(time.Duration(i)*500*msec, gauge.SourceEngine, 0, map[string]float64{"running": running, "waiting": waiting, "kv_usage": kv, "preemptions": 0}))
		}
		return out
	}
	for name, test := range map[string]struct {
		readings []gauge.Reading
		header   result.Header
		check    string
		status   result.Status
		text     string
	}{
		"cool":         {gpuReadings(101, nil), result.Header{}, "throttled", result.Sound, "no GPU was held back"},
		"power limit":  {gpuReadings(101, func(i int, v map[string]float64) { v[gauge.ThrottlePower] = float64(i % 2) }), result.Header{}, "throttled", result.Remark, "50.0 % by the power limit"},
		"hot":          {gpuReadings(101, func(i int, v map[string]float64) { v[gauge.ThrottleThermal] = float64(i / 50 % 2) }), result.Header{}, "throttled", result.Noted, "throttled, a cooler machine would be faster: share of the GPUs' time in which clocks were held back: 50.0 % by heat"},
		"used":         {gpuReadings(101, nil), result.Header{}, "gpus", result.Sound, "each of 1 GPUs was used"},
		"spare":        {gpuReadings(101, func(_ int, v map[string]float64) { v[gauge.GPUUtilization] = 0 }), result.Header{}, "gpus", result.Remark, "1 of 1 GPUs that were read took no part and are in power, energy and means: GPU 0"},
		"host bound":   {append(engine(31.6, 0, 0.4), gpuReadings(101, func(_ int, v map[string]float64) { v[gauge.GPUUtilization] = 0.45 })...), result.Header{}, "gpus", result.Remark, "the GPUs worked 45 % of the time while 31.6 requests were running on average"},
		"few requests": {append(engine(1, 0, 0.4), gpuReadings(101, func(_ int, v map[string]float64) { v[gauge.GPUUtilization] = 0.45 })...), result.Header{}, "gpus", result.Sound, "each of 1 GPUs was used"},
		"well used":    {append(engine(31.6, 0, 0.4), gpuReadings(101, nil)...), result.Header{}, "gpus", result.Sound, "each of 1 GPUs was used"},
		"room":         {engine(3, 0, 0.31), result.Header{}, "headroom", result.Remark, "never had requests waiting and used at most 31 % of its KV cache, more load would fit"},
		"in between":   {engine(3, 0, 0.8), result.Header{}, "headroom", result.Sound, "3.00 requests running"},
		"queue":        {engine(3, 4, 0.9), result.Header{Limit: 9}, "headroom", result.Remark, "the engine was full and kept requests waiting"},
		"burst queues": {engine(3, 4, 0.9), result.Header{}, "headroom", result.Sound, "4.00 waiting"},
	} {
		s := summarize(t, test.header, result.Options{Readings: test.readings}, burstOf(10))
		c, ok := s.Verdict.Check(test.check)
		if !ok || c.Status != test.status || !strings.Contains(c.Text, test.text) {
			t.Errorf("%s: %s is %v, %s %q, want %s %q", name, test.check, ok, c.Status, c.Text, test.status, test.text)
		}
	}
	s := summarize(t, result.Header{}, result.Options{}, burstOf(10))
	for _, name := range []string{"telemetry", "throttled", "gpus", "headroom"} {
		if c, ok := s.Verdict.Check(name); ok {
			t.Errorf("a run without readings has the check %s: %s", name, c.Text)
		}
	}
}

// TestOthersOnTheGPU: what is busy for seconds in which the engine has nothing to do
// works for somebody else.
func TestOthersOnTheGPU(t *testing.T) {
	var readings []gauge.Reading
	for i := -10; i <= 10; i++ {
		v := map[string]float64{"running": 0, "waiting": 0, "generation_tokens": 0}
		if i > 0 {
			v = map[string]float64{"running": 5, "waiting": 0, "generation_tokens": float64(10 * i)}
		}
		at := time.Duration(i) * time.Second
		readings = append(readings, reading(at, gauge.SourceEngine, 0, v), reading(at, gauge.SourceGPU, 0, map[string]float64{gauge.GPUUtilization: 0.6}))
	}
	s := summarize(t, result.Header{}, result.Options{Readings: readings}, burstOf(10))
	if c, _ := s.Verdict.Check("gpus"); c.Status != result.Noted || !strings.Contains(c.Text, "GPU 0 60 %") {
		t.Errorf("gpus is %s %q", c.Status, c.Text)
	}
}

// TestStarved: a client that was late while the server was idle is to blame.
func TestStarved(t *testing.T) {
	calls := steady(300, 10*msec)
	for i := range calls {
		c := &calls[i]
		c.Sent += 5 * msec
	}
	var idle []gauge.Reading
	for at := -time.Second; at <= 5*time.Second; at += 50 * msec {
		idle = append(idle, reading(at, gauge.SourceEngine, 0, map[string]float64{"running": 0.2, "waiting": 0}))
	}
	const said = "client-bound, the server was idle meanwhile (0.20 requests in the engine on average)"
	for _, with := range []bool{false, true} {
		o := result.Options{}
		if with {
			o.Readings = idle
		}
		s := summarize(t, result.Header{Rate: 100}, o, calls)
		if c, _ := s.Verdict.Check("dispatch_lag"); c.Status != result.Noted || strings.Contains(c.Text, said) != with {
			t.Errorf("readings %v: dispatch_lag is %s %q", with, c.Status, c.Text)
		}
	}
}

// series is one gauge at instants a second apart from the first on.
func series(source, name string, index int, first time.Duration, v ...float64) []gauge.Reading {
	var out []gauge.Reading
	for i, x := range v {
		out = append(out, reading(first+time.Duration(i)*time.Second, source, index, map[string]float64{name: x}))
	}
	return out
}

func TestNoEnergyWithoutReadings(t *testing.T) {
	whole := series(gauge.SourceGPU, gauge.GPUPower, 0, 0, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100)
	for name, test := range map[string]struct {
		readings []gauge.Reading
		why      string // in the check, "" for an energy
	}{
		"whole":          {whole, ""},
		"nine tenths":    {whole[1:], ""},
		"half":           {whole[5:], "cover 50 % of the window"},
		"a hole":         {append(slices.Clone(whole[:3]), whole[8:]...), "cover 40 % of the window"},
		"two only":       {append(slices.Clone(whole[:1]), whole[10]), "with 3 readings at least"},
		"one GPU silent": {append(slices.Clone(whole), series(gauge.SourceGPU, gauge.GPUUtilization, 1, 0, 1, 1, 1)...), "1 of 2 GPUs do not tell their power"},
	} {
		s := summarize(t, result.Header{}, result.Options{Readings: test.readings}, burstOf(10))
		_, ok := s.Figures["energy_j"]
		c, _ := s.Verdict.Check("telemetry")
		if ok != (test.why == "") || !strings.Contains(c.Text, test.why) || ok == strings.Contains(c.Text, "no energy") {
			t.Errorf("%s: energy %v, check %q, want %q", name, ok, c.Text, test.why)
		}
	}
}
