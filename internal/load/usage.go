package load

import (
	"runtime"
	"runtime/debug"
	"time"

	"perflab/internal/result"
)

// Usage samples what this process uses from an instant on.
type Usage struct {
	start time.Time
	cpu   time.Duration
	gc    debug.GCStats
}

// StartUsage takes the first sample.
func StartUsage() *Usage {
	u := &Usage{cpu: processCPU()}
	debug.ReadGCStats(&u.gc)
	u.start = time.Now()
	return u
}

// Stop takes the second sample and tells the difference. Of a run with more
// garbage collections than the runtime remembers, 256, the longest pause is
// that of the last ones.
func (u *Usage) Stop() result.Client {
	c := result.Client{Wall: time.Since(u.start), CPU: processCPU() - u.cpu, Procs: runtime.GOMAXPROCS(0)}
	var now debug.GCStats
	debug.ReadGCStats(&now)
	c.GCPause = now.PauseTotal - u.gc.PauseTotal
	for _, p := range now.Pause[:min(int(now.NumGC-u.gc.NumGC), len(now.Pause))] {
		c.GCMax = max(c.GCMax, p)
	}
	return c
}
