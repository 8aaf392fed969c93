package load

import (
	"math"
	"runtime/metrics"
	"testing"
	"time"
)

func TestWaits(t *testing.T) {
	h := func(counts ...uint64) *metrics.Float64Histogram {
		return &metrics.Float64Histogram{Counts: counts, Buckets: []float64{0, 0.001, 0.002, 0.004, math.Inf(1)}}
	}
	w := since(h(5, 5, 5, 0), h(55, 45, 14, 1))
	for q, want := range map[float64]time.Duration{0: time.Millisecond, 0.5: time.Millisecond, 0.51: 2 * time.Millisecond, 0.95: 4 * time.Millisecond, 1: 4 * time.Millisecond} {
		if got := w.quantile(q); got != want {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	if got := since(h(1, 1, 1, 1), h(1, 1, 1, 1)).quantile(0.5); got != 0 {
		t.Errorf("no wait has the median %v", got)
	}
}

func TestUsageKnowsTheProcess(t *testing.T) {
	u := StartUsage()
	for end := time.Now().Add(20 * time.Millisecond); time.Now().Before(end); {
	}
	c := u.Stop()
	if c.Wall < 20*time.Millisecond || c.CPU <= 0 || c.CPUs < 1 || c.Procs < 1 {
		t.Errorf("%+v", c)
	}
}
