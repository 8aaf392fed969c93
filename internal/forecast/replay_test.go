package forecast

import (
	"math"
	"testing"
	"time"

	"perflab/internal/sim"
)

// TestEngineFigures: of replicas in pools the figures of an engine are those of decode
// engines, and prefill engines have their own.
func TestEngineFigures(t *testing.T) {
	const s = time.Second
	whole := sim.Stats{RunningTime: 40 * s, WaitingTime: 10 * s, KVTime: 2 * s, PeakRunning: 8, PeakKV: 0.5, Preemptions: 3}
	apart := sim.Stats{RunningTime: 99 * s, Pools: &sim.Pools{
		Prefills: 1, Decodes: 2,
		Prefill: sim.Stats{RunningTime: 5 * s, WaitingTime: 30 * s, PeakKV: 0.9},
		Decode:  sim.Stats{RunningTime: 80 * s, WaitingTime: 20 * s, KVTime: 8 * s, PeakRunning: 8, PeakKV: 0.5, Preemptions: 3},
	}}
	for _, tt := range []struct {
		stats []sim.Stats
		want  map[string]float64
	}{
		{[]sim.Stats{whole, whole}, map[string]float64{"mean_running_requests": 8, "mean_waiting_requests": 2, "mean_kv_usage": 0.2, "max_running_requests": 16, "max_kv_usage": 0.5, "preemptions": 6}},
		{[]sim.Stats{apart, apart}, map[string]float64{
			"mean_running_requests": 16, "mean_waiting_requests": 4, "mean_kv_usage": 0.4, "max_running_requests": 32, "max_kv_usage": 0.5, "preemptions": 6,
			"mean_prefill_running_requests": 1, "mean_prefill_waiting_requests": 6, "max_prefill_kv_usage": 0.9,
		}},
	} {
		got := engineFigures(tt.stats, 10*s)
		for name, want := range tt.want {
			if math.Abs(got[name]-want) > 1e-9 {
				t.Errorf("%s is %v, want %v", name, got[name], want)
			}
		}
		if _, has := got["max_prefill_kv_usage"]; has != (tt.stats[0].Pools != nil) {
			t.Errorf("figures of prefill engines: %v", has)
		}
	}
}
