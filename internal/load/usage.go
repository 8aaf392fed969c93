package load

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"perflab/internal/result"
)

// Usage samples what this process uses from an instant on.
type Usage struct {
	start time.Time
	cpu   time.Duration
	gc    debug.GCStats
	sched *metrics.Float64Histogram // waits of goroutines for a processor
	ticks machineTicks
}

// StartUsage takes the first sample.
func StartUsage() *Usage {
	u := &Usage{cpu: processCPU(), sched: schedLatencies(), ticks: readTicks()}
	debug.ReadGCStats(&u.gc)
	u.start = time.Now()
	return u
}

// Stop takes the second sample and tells the difference. Of a run with more
// garbage collections than the runtime remembers, 256, the longest pause is
// that of the last ones.
func (u *Usage) Stop() result.Client {
	c := result.Client{
		Wall: time.Since(u.start), CPU: processCPU() - u.cpu, Procs: runtime.GOMAXPROCS(0), CPUs: processors(), Memory: peakMemory(),
		Stolen: readTicks().stolen(u.ticks),
	}
	var now debug.GCStats
	debug.ReadGCStats(&now)
	c.GCPause = now.PauseTotal - u.gc.PauseTotal
	for _, p := range now.Pause[:min(int(now.NumGC-u.gc.NumGC), len(now.Pause))] {
		c.GCMax = max(c.GCMax, p)
	}
	waits := since(u.sched, schedLatencies())
	c.SchedP50, c.SchedP99, c.SchedMax = waits.quantile(0.5), waits.quantile(0.99), waits.quantile(1)
	return c
}

func schedLatencies() *metrics.Float64Histogram {
	s := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindFloat64Histogram {
		return nil
	}
	return s[0].Value.Float64Histogram()
}

// waits is a histogram of durations: counts[i] of them lie below bounds[i+1].
type waits struct {
	counts []uint64
	bounds []float64 // seconds
}

// since is what the later histogram has more than the earlier one.
func since(before, now *metrics.Float64Histogram) waits {
	if before == nil || now == nil || len(before.Counts) != len(now.Counts) {
		return waits{}
	}
	w := waits{counts: make([]uint64, len(now.Counts)), bounds: now.Buckets}
	for i := range w.counts {
		w.counts[i] = now.Counts[i] - before.Counts[i]
	}
	return w
}

// quantile is an upper bound: that of the bucket which holds the q-th wait. 0:
// there was none.
func (w waits) quantile(q float64) time.Duration {
	total := uint64(0)
	for _, n := range w.counts {
		total += n
	}
	if total == 0 {
		return 0
	}
	rank := max(1, uint64(math.Ceil(q*float64(total))))
	for i, n := range w.counts {
		if n >= rank {
			upper := w.bounds[i+1]
			if math.IsInf(upper, 1) {
				upper = w.bounds[i]
			}
			return time.Duration(upper * float64(time.Second))
		}
		rank -= n
	}
	return 0
}
