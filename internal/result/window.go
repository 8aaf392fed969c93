package result

import (
	"slices"
	"time"

	"perflab/internal/gauge"
)

// Event is something counted that came at one instant, as output tokens.
type Event struct {
	At     time.Duration
	Tokens float64
}

// span is when a call was in flight: From <= t < To.
type span struct{ From, To time.Duration }

// Window is a part of a run.
type Window struct {
	gauge.Span
	Ends     int     // calls that ended inside
	InFlight float64 // of the steady window: mean calls in flight
	CallTime float64 // of the steady window: mean seconds from Sent to End of the calls that ended inside
	OK       bool    // there is such a part

	slack time.Duration // how much longer it may be, of one found in bins
}

// minEnds is the least number of calls that must end in a window for its rates
// to be given.
const minEnds = 10

// sweep tells of every change in the number of spans that hold an instant; one
// that ends as another begins does not overlap it, and an empty one holds none.
func sweep(spans []span, tell func(at time.Duration, before, now int)) {
	from, to := make([]time.Duration, 0, len(spans)), make([]time.Duration, 0, len(spans))
	for _, s := range spans {
		if s.From < s.To {
			from, to = append(from, s.From), append(to, s.To)
		}
	}
	slices.Sort(from)
	slices.Sort(to)
	begun, ended := 0, 0
	for ended < len(to) {
		before := begun - ended
		if begun < len(from) && from[begun] < to[ended] {
			begun++
			tell(from[begun-1], before, before+1)
			continue
		}
		ended++
		tell(to[ended-1], before, before-1)
	}
}

// peak returns the most tokens in any (t-width, t].
func peak(events []Event, width time.Duration) float64 {
	most, sum, tail := 0.0, 0.0, 0
	for _, e := range events {
		for events[tail].At <= e.At-width {
			sum -= events[tail].Tokens
			tail++
		}
		sum += e.Tokens
		most = max(most, sum)
	}
	return most
}

// maxSpans returns the most spans that hold one instant.
func maxSpans(spans []span) int {
	most := 0
	sweep(spans, func(_ time.Duration, _, now int) { most = max(most, now) })
	return most
}
