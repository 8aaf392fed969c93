package load

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"perflab/internal/proc"
	"perflab/internal/result"
)

// Usage samples what this process uses from an instant on.
type Usage struct {
	start time.Time
	cpu   time.Duration
	gc    debug.GCStats
	sched *metrics.Float64Histogram // waits of goroutines for a processor
	ticks proc.CPU

	waits   result.Waits
	engines engines
}

// StartUsage takes the first sample. Servers are the addresses of the targets, "host:port":
// what listens there on this machine is the engine.
func StartUsage(servers ...string) *Usage {
	u := findEngines(servers...)
	u.begin()
	return u
}

// findEngines does what of StartUsage takes long.
func findEngines(servers ...string) *Usage {
	return &Usage{engines: engines{ports: portsHere(servers)}.find()}
}

// begin takes the first sample. Finding the engines took time, in which they computed:
// what they used is read once more, beside the rest.
func (u *Usage) begin() {
	u.engines = u.engines.again()
	u.sched, u.waits, u.cpu, u.ticks = schedLatencies(), waits(os.Getpid()), processCPU(), proc.ReadCPU()
	debug.ReadGCStats(&u.gc)
	u.start = time.Now()
}

// Stop takes the second sample and tells the difference. Of a run with more
// garbage collections than the runtime remembers, 256, the longest pause is
// that of the last ones.
func (u *Usage) Stop() result.Client {
	c := result.Client{
		Wall: time.Since(u.start), CPU: processCPU() - u.cpu, Procs: runtime.GOMAXPROCS(0), CPUs: processors(), Memory: peakMemory(),
	}
	ticks := proc.ReadCPU()
	var now debug.GCStats
	debug.ReadGCStats(&now)
	c.GCPause = now.PauseTotal - u.gc.PauseTotal
	for _, p := range now.Pause[:min(int(now.NumGC-u.gc.NumGC), len(now.Pause))] {
		c.GCMax = max(c.GCMax, p)
	}
	waits := since(u.sched, schedLatencies())
	if c.Machine = u.machine(ticks, c.CPU); c.Machine != nil {
		c.Stolen = c.Machine.Share(c.Machine.Stolen)
	}
	c.SchedP50, c.SchedP99, c.SchedMax = waits.quantile(0.5), waits.quantile(0.99), waits.quantile(1)
	return c
}

// machine says who used the processors between the first sample and now; nil: that is not known here.
func (u *Usage) machine(now proc.CPU, own time.Duration) *result.Machine {
	spent, ok := now.Since(u.ticks)
	if !ok {
		return nil
	}
	e := u.engines.again()
	if e.lost() {
		e = u.engines.find().again()
	}
	used, waited := e.since(u.engines)
	return &result.Machine{
		CPUs: now.Count, Time: spent.All, Idle: spent.Idle, Stolen: spent.Stolen, Client: own, Here: len(e.ports) > 0,
		Processes: len(e.members), Engine: used, ClientWaits: waits(os.Getpid()).Since(u.waits), EngineWaits: waited,
	}
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
