package verdict

import (
	"fmt"
	"math"

	"perflab/internal/result"
)

// Limits of what counts as a missed rate.
const (
	// keptUp is the share of the offered rate at which calls must end. The same
	// calls are counted when they come due and when they end, so chance in the
	// arrivals cancels; what is left is that latencies differ from call to call.
	keptUp = 0.95
	// grown is by how much the mean latency of the last third of a run is above
	// that of the first where the rate was missed: a few long calls stretch the
	// ends too, and leave it where it was.
	grown = 1.15
	// goesOn is the share of that growth which falls between the second and the
	// last third. A queue that grows has half of it there; a server that fills up at
	// the beginning of a run and then keeps up has none.
	goesOn = 0.2
	// leastPaced is how many calls it takes to judge a server: of fewer, thirds differ
	// by such shares by chance.
	leastPaced = 50
	// leastLimited is how many calls it takes to judge the concurrency limit, whose
	// waits are stamped and need no inference.
	leastLimited = 10
)

// cause is what kept a run below the rate that was offered.
type cause int

const (
	noCause cause = iota
	causeServer
	causeLimit
	causeClient
)

// pace is how a run kept up with its rate.
type pace struct {
	result.Pace
	offered, achieved float64 // 1/s, between the 10 % and the 90 % quantile, which leaves out filling and draining
	cause             cause
}

// paceOf finds whether a run kept up with its rate, and what hindered it: the part of
// the calls' time that grew most along the run. An engine that keeps requests waiting
// is full, whatever waits before it.
func paceOf(a *result.Analysis) pace {
	p := pace{Pace: a.Pace()}
	if p.DueSpan <= 0 || p.EndSpan <= 0 {
		return p
	}
	inner := 0.8 * float64(p.Calls-1)
	p.offered, p.achieved = inner/p.DueSpan, inner/p.EndSpan
	first, last := p.First.Total(), p.Last.Total()
	if p.achieved >= keptUp*p.offered || last < grown*first || last-p.Middle.Total() < goesOn*(last-first) {
		return p
	}
	grew := p.Last.Minus(p.First)
	if a.Header.Limit == 0 { // then nothing waits for a place
		grew.Late, grew.Waiting = grew.Late+grew.Waiting, math.Inf(-1)
	}
	switch max(grew.Server, grew.Waiting, grew.Late) {
	case grew.Waiting:
		if p.cause = causeLimit; engineFull(a) {
			p.cause = causeServer
		}
	case grew.Late:
		p.cause = causeClient
	default:
		p.cause = causeServer
	}
	return p
}

// String says how fast calls came and ended.
func (p pace) String() string {
	return fmt.Sprintf("%.2f req/s ended of %.2f req/s offered; mean latency %.3f s in the first third, %.3f s in the last", p.achieved, p.offered, p.First.Total(), p.Last.Total())
}

// rateChecks judge whether the rate that was asked for was reached, and name one
// cause where it was not: the server, the concurrency limit, or, in the check of the
// dispatch lag, the load generator.
func rateChecks(a *result.Analysis) []result.Check {
	if !a.Header.HasRate() {
		_, text := notJudged("there was no request rate")
		return []result.Check{{Name: result.CheckSaturation, Status: result.Sound, Text: text}}
	}
	p := paceOf(a)
	s, text := judgeServer(a, p)
	checks := []result.Check{{Name: result.CheckSaturation, Status: s, Text: text}}
	if a.Header.Limit > 0 && p.Calls >= leastLimited {
		s, text := judgeLimit(a, p)
		checks = append(checks, result.Check{Name: result.CheckLimit, Status: s, Text: text})
	}
	return checks
}

// judgeServer compares the rate at which calls came due with the rate at which
// they ended. A server that keeps up ends calls as fast as they come, one latency
// later.
func judgeServer(a *result.Analysis, p pace) (result.Status, string) {
	switch {
	case p.offered == 0:
		return notJudged("most requests were due at once")
	case p.cause == causeLimit && p.Calls >= leastLimited:
		return notJudged("the concurrency limit kept the rate down")
	case p.Calls < leastPaced:
		return notJudged(fmt.Sprintf("%d calls succeeded, it takes %d", p.Calls, leastPaced))
	case p.cause == causeClient:
		return notJudged("the load generator missed the rate, see dispatch_lag: " + p.String())
	case p.cause == causeServer && p.Last.Waiting > p.First.Waiting && a.Header.Limit > 0:
		return result.Noted, fmt.Sprintf("the server is saturated, and the concurrency limit of %d held calls back that it would have kept waiting: %s", a.Header.Limit, p)
	case p.cause == causeServer:
		return result.Noted, "the server is saturated, latency grows with the length of the run: " + p.String()
	}
	return result.Sound, p.String()
}

// judgeLimit judges what the concurrency limit did to the rate. By Little's law so
// many places, each held for so long, let their quotient through and no more.
func judgeLimit(a *result.Analysis, p pace) (result.Status, string) {
	places := a.Header.Limit
	text := fmt.Sprintf("%d of %d calls waited for one of %d places", a.Waited, p.Calls, places)
	if a.Waited > 0 {
		text += fmt.Sprintf(", %.3f s on average", a.Waiting.Seconds()/float64(a.Waited))
	}
	if p.cause != causeLimit {
		return result.Sound, text
	}
	if p.Calls == a.Completed { // conversations hold places between their turns too
		held := a.InPlaces.Seconds() / float64(p.Calls)
		text += fmt.Sprintf("; %d places held for %.3f s each let about %.2f req/s through", places, held, float64(places)/held)
	}
	return result.Noted, fmt.Sprintf("the concurrency limit of %d kept the rate down: %.2f req/s ended of %.2f req/s offered; %s: more places would show what the server can do",
		places, p.achieved, p.offered, text)
}
