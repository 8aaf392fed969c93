package verdict

import (
	"cmp"
	"fmt"
	"time"

	"perflab/internal/result"
)

// voidLagFactor is how many times its limit the dispatch lag may be before the run
// is void: latencies count from the sending, so a little lag shifts arrivals
// and falsifies no latency, but a client that is late by far offered another
// load than was asked for.
const voidLagFactor = 10

// lateLimit is how late the client may be at the 99th percentile, in ms: 1 ms
// or 1 % of the median TTFT, whichever is more. When all requests are due at
// once it is 50 ms or 5 %, because writing a thousand requests takes time that
// no client can save.
func lateLimit(a *result.Analysis) float64 {
	if burst(a) {
		return max(50, 0.05*answerMS(a))
	}
	return paceLimit(a)
}

// paceLimit is lateLimit where requests follow each other.
func paceLimit(a *result.Analysis) float64 { return max(1, 0.01*answerMS(a)) }

// emptyShare is the share of a closed loop's places that the client left empty: the
// time that calls were late, of that and the time that they took. Throughput
// is too low by as much.
func emptyShare(a *result.Analysis) float64 {
	lag := a.LagFromDue
	if a.Header.Limit > 0 {
		lag = a.LagFromReady
	}
	return lag.Seconds() / max(1e-9, (lag+a.InCalls).Seconds())
}

// emptyShareLimit is the share that is worth a note.
const emptyShareLimit = 0.02

// answerMS is the latency that the client's own delays are measured against:
// the median to the first token, or to the end where there is none.
func answerMS(a *result.Analysis) float64 {
	return cmp.Or(a.Figures["median_ttft_ms"], a.Figures["median_e2el_ms"])
}

// judgeLag judges whether the client was on time.
func judgeLag(a *result.Analysis) (result.Status, string) {
	lag, ok := a.Figures["p99_dispatch_lag_ms"]
	if !ok {
		return notJudged("no call was sent")
	}
	if idle := emptyShare(a); closed(a) && idle > emptyShareLimit {
		status, what := result.Noted, "the load generator left places of the closed loop empty"
		if idle > voidLagFactor*emptyShareLimit {
			status, what = result.Voided, "client-bound, the load generator left places of the closed loop empty"
		}
		return status, fmt.Sprintf("%s for %.1f %% of the time, throughput is too low by as much: dispatch lag p99 %.3f ms (void above %.0f %%)", what, 100*idle, lag, 100*voidLagFactor*emptyShareLimit) + serverIdleNote(a)
	}
	limit := lateLimit(a)
	if lag > limit {
		status, what := result.Noted, "the load generator was late"
		if lag > voidLagFactor*limit {
			status, what = result.Voided, "client-bound, the load generator was late"
		}
		return status, fmt.Sprintf("%s: dispatch lag p99 %.3f ms is above %.3f ms (void above %.3f ms)", what, lag, limit, voidLagFactor*limit) + serverIdleNote(a)
	}
	return result.Sound, fmt.Sprintf("dispatch lag p50 %.3f ms, p99 %.3f ms, allowed %.3f ms", a.Figures["p50_dispatch_lag_ms"], lag, limit)
}

// noClient says why there is nothing to judge the client by.
func noClient(a *result.Analysis) string {
	if a.Header.Predicted {
		return "predicted, no client ran"
	}
	return "the run left no record of its client"
}

// judgeCPU judges how much of the processors that the client may use it used:
// above 90 % its own queueing is in every figure.
func judgeCPU(a *result.Analysis) (result.Status, string) {
	if a.Client == nil {
		return notJudged(noClient(a))
	}
	share, ok := a.Client.Busy()
	if !ok {
		return notJudged(noClient(a))
	}
	text := fmt.Sprintf("the load generator used %.0f %% of its %d processors", 100*share, a.Client.Processors())
	switch {
	case share > 0.9:
		return result.Voided, "client-bound, it measured itself: " + text + serverIdleNote(a)
	case share > 0.75:
		return result.Noted, text + ": use more of them or less load" + serverIdleNote(a)
	}
	return result.Sound, text
}

// stampedByKernel reports whether no wait of the client is in a stamp. What its waits do all the
// same has checks of its own: reads that were late, and the dispatch lag.
func stampedByKernel(a *result.Analysis) bool {
	return a.Header.Clock == result.ClockKernel && a.Header.LateReads
}

// noStamp says so.
const noStamp = "; it is in no stamp, which the kernel takes, and what it delayed is in the dispatch lag and the late reads"

// judgeScheduler judges how long the client's goroutines waited for a
// processor, by the limits of the dispatch lag; those of a burst only where
// most of the run is one. Where the kernel takes the stamps the waits move no
// figure by themselves.
func judgeScheduler(a *result.Analysis) (result.Status, string) {
	if a.Client == nil || a.Client.SchedP99 == 0 {
		return notJudged("no scheduler latencies were taken")
	}
	p99, limit := milliseconds(a.Client.SchedP99), lateLimit(a)
	if closed(a) {
		limit = paceLimit(a)
	}
	text := fmt.Sprintf("scheduler latency of the load generator p50 %.3f ms, p99 %.3f ms, max %.3f ms", milliseconds(a.Client.SchedP50), p99, milliseconds(a.Client.SchedMax))
	if stampedByKernel(a) {
		return result.Sound, text + noStamp
	}
	text += fmt.Sprintf(", allowed %.3f ms", limit)
	switch {
	case p99 > voidLagFactor*limit && a.Header.Clock != result.ClockKernel:
		return result.Voided, "client-bound, its goroutines waited for a processor: " + text
	case p99 > limit:
		return result.Noted, "the load generator's goroutines waited for a processor: " + text
	}
	return result.Sound, text
}

// judgeStolen judges what the machine's host took away. A stop delays what falls into it by as long
// as it lasts, the kernel's stamps too; that no goroutine waited long says that
// stops were short. So many of the latencies, a share as large as what was
// stolen, are longer by such a wait at most: that is nothing where it moves their
// mean by less than a figure's doubt, and none of them far.
func judgeStolen(a *result.Analysis) (result.Status, string) {
	if a.Client == nil {
		return notJudged(noClient(a))
	}
	share, stop := a.Client.Stolen, milliseconds(a.Client.SchedMax)
	text := fmt.Sprintf("the host took %.1f %% of the machine's processor time away", 100*share)
	if share <= result.Doubtful {
		return result.Sound, text
	}
	if stampedByKernel(a) && stop > 0 && share*stop <= result.Doubtful*answerMS(a) && stop <= result.Hopeless*answerMS(a) {
		return result.Sound, text + fmt.Sprintf(", and no goroutine of the load generator waited longer than %.3f ms: the mean latency is off by %.3f ms at most", stop, share*stop)
	}
	return result.Noted, text + ": the load generator, and a server beside it, were stopped at times"
}

// selfCheckText says how far this client was from a server's truth where that
// was measured, and when.
func selfCheckText(k *result.SelfCheck) string {
	return fmt.Sprintf("the client's own errors on this machine: stamps %.4g us late (p99 %.4g us) at %.0f events/s, mean TTFT %+.3f ms and p99 ITL %+.3f ms with %d streams at once, requests %.4g us late (p99 %.4g us); selfcheck of %s",
		k.ArrivalP50, k.ArrivalP99, k.EventRate, k.TTFTError, k.ITLError, k.Streams, k.SendP50, k.SendP99, k.Taken.Format(time.DateOnly))
}

// judgeClock says who took the stamps.
func judgeClock(a *result.Analysis) (result.Status, string) {
	switch a.Header.Clock {
	case result.ClockKernel:
		reads, coarse := a.Reads, a.Coarse
		const most = 0.01
		if float64(coarse) > most*float64(reads) {
			return result.Noted, fmt.Sprintf("%d of %d reads have no stamp of the kernel's, and are later by what the process needed to wake up", coarse, reads)
		}
		return result.Sound, fmt.Sprintf("the kernel stamped %d of %d reads when they arrived", reads-coarse, reads)
	case result.ClockMonotonic:
		return result.Remark, "stamps were taken by this process when a read returned, so its own waits for a processor are in them"
	}
	return notJudged("the run does not say who took its stamps")
}

func judgeGC(a *result.Analysis) (result.Status, string) {
	if a.Client == nil {
		return notJudged(noClient(a))
	}
	limit := max(5, 0.05*answerMS(a))
	text := fmt.Sprintf("longest garbage collection pause %.3f ms", milliseconds(a.Client.GCMax))
	if stampedByKernel(a) {
		return result.Sound, text + noStamp
	}
	text += fmt.Sprintf(", allowed %.3f ms", limit)
	if milliseconds(a.Client.GCMax) > limit {
		return result.Noted, text
	}
	return result.Sound, text
}
