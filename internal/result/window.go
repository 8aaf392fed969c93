package result

import (
	"math"
	"slices"
	"time"

	"perflab/internal/stat"
)

// event is output tokens that came in one read.
type event struct {
	at     time.Duration
	tokens float64
}

// span is when a call was in flight: from <= t < to.
type span struct{ from, to time.Duration }

// window is a part of a run, such as the steady one: the client neither fills
// the server nor drains it between the first end of a call and the last
// sending.
type window struct {
	from, to time.Duration // from < at <= to is inside
	ends     int           // calls that ended inside
	inflight float64       // mean calls in flight
	stream   float64       // mean seconds from Sent to End of the calls that ended inside
	ok       bool
}

// minEnds is the least number of calls that must end in a window for its rates
// to be given.
const minEnds = 10

func (w window) contains(at time.Duration) bool { return w.from < at && at <= w.to }

// seconds is the window's length.
func (w window) seconds() float64 { return (w.to - w.from).Seconds() }

// flow sets the figures that depend on when tokens came and calls overlapped.
func (r *run) flow() {
	if len(r.ok) == 0 {
		return
	}
	r.figures["max_concurrent_requests"] = float64(maxInFlight(r.ok))
	events := tokenEvents(r.ok)
	r.peak = peak(events, time.Second)
	if mean, ok := r.figures["output_throughput"]; ok && len(events) > 0 {
		r.figures["max_output_tokens_per_s"] = max(r.peak, mean)
	}
	r.steady = steadyWindow(r.ok)
	r.rates("steady", r.steady, events)
	r.rates("full_load", r.fullLoad(), events)
}

// rates sets the figures of a window.
func (r *run) rates(name string, w window, events []event) {
	if !w.ok {
		return
	}
	var tokens stat.Total
	for _, e := range events {
		if w.contains(e.at) {
			tokens.Add(e.tokens)
		}
	}
	prompts := 0
	for _, c := range r.ok {
		first, ok := c.FirstToken()
		if !ok {
			first, ok = c.last()
		}
		if ok && w.contains(first) {
			p, _ := c.Input()
			prompts += p
		}
	}
	s, sum := w.seconds(), tokens.Sum()
	r.figures[name+"_duration"] = s
	r.figures[name+"_request_throughput"] = float64(w.ends) / s
	if !r.pooled() {
		r.figures[name+"_output_throughput"] = sum / s
	}
	r.figures[name+"_total_token_throughput"] = (sum + float64(prompts)) / s
}

// fullShare is the share of the concurrency limit that must be in flight for a
// closed loop to be under full load.
const fullShare = 0.95

// fullLoad finds the time from the first to the last instant at which a closed
// loop was under full load. Dips between them, as between one call's end and
// the next one's sending, belong to it. Calls that fail hold a place as well.
func (r *run) fullLoad() window {
	need := int(math.Ceil(fullShare * float64(r.h.Limit)))
	if need == 0 {
		return window{}
	}
	spans := slices.Clone(r.failed)
	for _, c := range r.ok {
		spans = append(spans, span{c.Sent, c.End})
	}
	var w window
	reached := false
	sweep(spans, func(at time.Duration, before, now int) {
		if now >= need && !reached {
			w.from, reached = at, true
		}
		if before >= need && now < need {
			w.to = at
		}
	})
	for _, c := range r.ok {
		if w.contains(c.End) {
			w.ends++
		}
	}
	w.ok = reached && w.ends >= minEnds
	return w
}

// sweep tells of every change in the number of spans that hold an instant; one
// that ends as another begins does not overlap it, and an empty one holds none.
func sweep(spans []span, tell func(at time.Duration, before, now int)) {
	from, to := make([]time.Duration, 0, len(spans)), make([]time.Duration, 0, len(spans))
	for _, s := range spans {
		if s.from < s.to {
			from, to = append(from, s.from), append(to, s.to)
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

// tokenEvents returns the reads of all calls in the order of time, the tokens
// of a call scaled to sum to its n.
func tokenEvents(calls []*Call) []event {
	events := tokensByCall(calls)
	// Of one instant in the order of the calls, which is that of their index.
	stat.SortBy(events, func(e event) uint64 { return uint64(e.at) ^ 1<<63 })
	return events
}

// tokensByCall is tokenEvents, call by call.
func tokensByCall(calls []*Call) []event {
	size := 0
	for _, c := range calls {
		size += len(c.Chunks)
	}
	events := make([]event, 0, size)
	for _, c := range calls {
		w := c.weight()
		for _, k := range c.Chunks {
			tokens := float64(k.Tokens) * w
			if w == 0 { // usage alone knows: spread evenly
				n, _ := c.Output()
				tokens = float64(n) / float64(len(c.Chunks))
			}
			events = append(events, event{k.At, tokens})
		}
	}
	return events
}

// peak returns the most tokens in any (t-width, t].
func peak(events []event, width time.Duration) float64 {
	most, sum, tail := 0.0, 0.0, 0
	for _, e := range events {
		for events[tail].at <= e.at-width {
			sum -= events[tail].tokens
			tail++
		}
		sum += e.tokens
		most = max(most, sum)
	}
	return most
}

// maxInFlight returns the most calls with Sent <= t < End at one instant.
func maxInFlight(calls []*Call) int {
	spans := make([]span, len(calls))
	for i, c := range calls {
		spans[i] = span{c.Sent, c.End}
	}
	return maxSpans(spans)
}

// maxSpans returns the most spans that hold one instant.
func maxSpans(spans []span) int {
	most := 0
	sweep(spans, func(_ time.Duration, _, now int) { most = max(most, now) })
	return most
}

// steadyWindow finds the steady window of a run. A burst has none: everything
// is sent before the first call ends.
func steadyWindow(calls []*Call) window {
	w := window{from: calls[0].End, to: calls[0].Sent}
	for _, c := range calls {
		w.from, w.to = min(w.from, c.End), max(w.to, c.Sent)
	}
	if w.to <= w.from {
		return window{}
	}
	var inside, stream time.Duration
	for _, c := range calls {
		inside += max(0, min(c.End, w.to)-max(c.Sent, w.from))
		if w.contains(c.End) {
			w.ends++
			stream += c.End - c.Sent
		}
	}
	if w.ends < minEnds {
		return window{}
	}
	w.ok = true
	w.inflight = float64(inside) / float64(w.to-w.from)
	w.stream = stream.Seconds() / float64(w.ends)
	return w
}
