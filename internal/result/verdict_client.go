package result

import (
	"cmp"
	"fmt"
	"time"
)

// lagVoid is how many times its limit the dispatch lag may be before the run
// is void: latencies count from the sending, so a little lag shifts arrivals
// and falsifies no latency, but a client that is late by far offered another
// load than was asked for.
const lagVoid = 10

// lateLimit is how late the client may be at the 99th percentile, in ms: 1 ms
// or 1 % of the median TTFT, whichever is more. When all requests are due at
// once it is 50 ms or 5 %, because writing a thousand requests takes time that
// no client can save.
func (r *run) lateLimit() float64 {
	if r.burst() {
		return max(50, 0.05*r.answerMS())
	}
	return r.paceLimit()
}

// paceLimit is lateLimit where requests follow each other.
func (r *run) paceLimit() float64 { return max(1, 0.01*r.answerMS()) }

// closed reports whether calls wait for each other's places and for nothing
// else: all were due at once and more than the limit lets through.
func (r *run) closed() bool { return r.h.Limit > 0 && r.h.Limit < r.total && r.burst() }

// idle is the share of a closed loop's places that the client left empty: the
// time that calls were late, of that and the time that they took. Throughput
// is too low by as much.
func (r *run) idle() float64 {
	var lag, took time.Duration
	for _, c := range r.ok {
		lag, took = lag+max(0, c.Lag(r.h.Limit)), took+c.Dial+c.End-c.Sent
	}
	return lag.Seconds() / max(1e-9, (lag+took).Seconds())
}

// idleLimit is the share that is worth a note.
const idleLimit = 0.02

// answerMS is the latency that the client's own delays are measured against:
// the median to the first token, or to the end where there is none.
func (r *run) answerMS() float64 {
	return cmp.Or(r.figures["median_ttft_ms"], r.figures["median_e2el_ms"])
}

// judgeLag judges whether the client was on time.
func (r *run) judgeLag() (Status, string) {
	lag, ok := r.figures["p99_dispatch_lag_ms"]
	if !ok {
		return not("no call was sent")
	}
	if idle := r.idle(); r.closed() && idle > idleLimit {
		status, what := Noted, "the load generator left places of the closed loop empty"
		if idle > lagVoid*idleLimit {
			status, what = Voided, "client-bound, the load generator left places of the closed loop empty"
		}
		return status, fmt.Sprintf("%s for %.1f %% of the time, throughput is too low by as much: dispatch lag p99 %.3f ms (void above %.0f %%)", what, 100*idle, lag, 100*lagVoid*idleLimit) + r.starved()
	}
	limit := r.lateLimit()
	if lag > limit {
		status, what := Noted, "the load generator was late"
		if lag > lagVoid*limit {
			status, what = Voided, "client-bound, the load generator was late"
		}
		return status, fmt.Sprintf("%s: dispatch lag p99 %.3f ms is above %.3f ms (void above %.3f ms)", what, lag, limit, lagVoid*limit) + r.starved()
	}
	return Sound, fmt.Sprintf("dispatch lag p50 %.3f ms, p99 %.3f ms, allowed %.3f ms", r.figures["p50_dispatch_lag_ms"], lag, limit)
}

// noClient says why there is nothing to judge the client by.
func (r *run) noClient() string {
	if r.h.Predicted {
		return "predicted, no client ran"
	}
	return "the run left no record of its client"
}

// judgeCPU judges how much of the processors that the client may use it used:
// above 90 % its own queueing is in every figure.
func (r *run) judgeCPU() (Status, string) {
	if r.c == nil || r.c.Wall <= 0 || r.c.Procs <= 0 {
		return not(r.noClient())
	}
	procs := r.c.Procs
	if r.c.CPUs > 0 {
		procs = min(procs, r.c.CPUs)
	}
	share := float64(r.c.CPU) / (float64(r.c.Wall) * float64(procs))
	text := fmt.Sprintf("the load generator used %.0f %% of its %d processors", 100*share, procs)
	switch {
	case share > 0.9:
		return Voided, "client-bound, it measured itself: " + text + r.starved()
	case share > 0.75:
		return Noted, text + ": use more of them or less load" + r.starved()
	}
	return Sound, text
}

// judgeScheduler judges how long the client's goroutines waited for a
// processor, by the limits of the dispatch lag; those of a burst only where
// most of the run is one. What the kernel stamps does not depend on it, so it
// voids only figures of the process's own stamps.
func (r *run) judgeScheduler() (Status, string) {
	if r.c == nil || r.c.SchedP99 == 0 {
		return not("no scheduler latencies were taken")
	}
	p99, limit := ms(r.c.SchedP99), r.lateLimit()
	if r.closed() {
		limit = r.paceLimit()
	}
	text := fmt.Sprintf("scheduler latency of the load generator p50 %.3f ms, p99 %.3f ms, max %.3f ms, allowed %.3f ms", ms(r.c.SchedP50), p99, ms(r.c.SchedMax), limit)
	switch {
	case p99 > lagVoid*limit && r.h.Clock != ClockKernel:
		return Voided, "client-bound, its goroutines waited for a processor: " + text
	case p99 > limit:
		return Noted, "the load generator's goroutines waited for a processor: " + text
	}
	return Sound, text
}

// judgeStolen judges what the machine's host took away.
func (r *run) judgeStolen() (Status, string) {
	if r.c == nil {
		return not(r.noClient())
	}
	const most = 0.02
	text := fmt.Sprintf("the host took %.1f %% of the machine's processor time away", 100*r.c.Stolen)
	if r.c.Stolen > most {
		return Noted, text + ": the load generator, and a server beside it, were stopped at times"
	}
	return Sound, text
}

// selfCheckText says how far this client was from a server's truth where that
// was measured, and when.
func selfCheckText(k *SelfCheck) string {
	return fmt.Sprintf("the client's own errors on this machine: stamps %.4g us late (p99 %.4g us) at %.0f events/s, mean TTFT %+.3f ms and p99 ITL %+.3f ms with %d streams at once, requests %.4g us late (p99 %.4g us); selfcheck of %s",
		k.ArrivalP50, k.ArrivalP99, k.EventRate, k.TTFTError, k.ITLError, k.Streams, k.SendP50, k.SendP99, k.Taken.Format(time.DateOnly))
}

// judgeClock says who took the stamps.
func (r *run) judgeClock() (Status, string) {
	switch r.h.Clock {
	case ClockKernel:
		reads, coarse := 0, 0
		for _, c := range r.ok {
			reads, coarse = reads+c.Reads, coarse+c.Coarse
		}
		const most = 0.01
		if float64(coarse) > most*float64(reads) {
			return Noted, fmt.Sprintf("%d of %d reads have no stamp of the kernel's, and are later by what the process needed to wake up", coarse, reads)
		}
		return Sound, fmt.Sprintf("the kernel stamped %d of %d reads when they arrived", reads-coarse, reads)
	case ClockMonotonic:
		return Remark, "stamps were taken by this process when a read returned, so its own waits for a processor are in them"
	}
	return not("the run does not say who took its stamps")
}

func (r *run) judgeGC() (Status, string) {
	if r.c == nil {
		return not(r.noClient())
	}
	limit := max(5, 0.05*r.answerMS())
	text := fmt.Sprintf("longest garbage collection pause %.3f ms, allowed %.3f ms", ms(r.c.GCMax), limit)
	if ms(r.c.GCMax) > limit {
		return Noted, text
	}
	return Sound, text
}
