package load

import (
	"math"
	"os"
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

	servers []string
	waits   result.Waits
	engines processTimes
}

// StartUsage takes the first sample. Servers are the addresses of the targets, "host:port":
// what listens there on this machine is the engine.
func StartUsage(servers ...string) *Usage {
	u := &Usage{servers: servers, engines: engineTimes(servers)}
	u.sched, u.waits, u.cpu, u.ticks = schedLatencies(), waits(os.Getpid()), processCPU(), readTicks()
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
	c.Machine = u.machine(c.CPU)
	c.SchedP50, c.SchedP99, c.SchedMax = waits.quantile(0.5), waits.quantile(0.99), waits.quantile(1)
	return c
}

// machine says who used the processors since the first sample; nil: that is not known here.
func (u *Usage) machine(own time.Duration) *result.Machine {
	now := readTicks()
	if now.all <= u.ticks.all {
		return nil
	}
	span := func(ticks uint64) time.Duration { return time.Duration(ticks) * tick }
	engines := engineTimes(u.servers)
	m := &result.Machine{
		CPUs: now.cpus, Time: span(now.all - u.ticks.all), Idle: span(now.idle - u.ticks.idle), Stolen: span(now.steal - u.ticks.steal),
		Client: own, Here: engines.here, Processes: len(engines.used),
		ClientWaits: waits(os.Getpid()).Since(u.waits),
	}
	for pid, used := range engines.used {
		m.Engine += max(0, used-u.engines.used[pid])
		w := engines.waits[pid].Since(u.engines.waits[pid])
		m.EngineWaits.Time, m.EngineWaits.Runs = m.EngineWaits.Time+w.Time, m.EngineWaits.Runs+w.Runs
	}
	return m
}

func schedLatencies() *metrics.Float64Histogram {
	s := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindFloat64Histogram {
		return nil
	}
	return s[0].Value.Float64Histogram()
}

// histogram is one of durations: counts[i] of them lie below bounds[i+1].
type histogram struct {
	counts []uint64
	bounds []float64 // seconds
}

// since is what the later histogram has more than the earlier one.
func since(before, now *metrics.Float64Histogram) histogram {
	if before == nil || now == nil || len(before.Counts) != len(now.Counts) {
		return histogram{}
	}
	w := histogram{counts: make([]uint64, len(now.Counts)), bounds: now.Buckets}
	for i := range w.counts {
		w.counts[i] = now.Counts[i] - before.Counts[i]
	}
	return w
}

// quantile is an upper bound: that of the bucket which holds the q-th wait. 0:
// there was none.
func (w histogram) quantile(q float64) time.Duration {
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
