package result

import (
	"cmp"
	"slices"
	"time"
)

// event is output tokens that came in one read.
type event struct {
	at     time.Duration
	tokens float64
}

// window is the steady part of a run: the client neither fills the server nor
// drains it between the first end of a call and the last sending.
type window struct {
	from, to time.Duration // from < at <= to is inside
	ends     int           // calls that ended inside
	inflight float64       // mean calls in flight
	stream   float64       // mean seconds from Sent to End of the calls that ended inside
	ok       bool
}

// minEnds is the least number of calls that must end in the steady window for
// its rates to be given.
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
	if !r.steady.ok {
		return
	}
	tokens, prompts := 0.0, 0
	for _, e := range events {
		if r.steady.contains(e.at) {
			tokens += e.tokens
		}
	}
	for _, c := range r.ok {
		first, ok := c.FirstToken()
		if !ok {
			first, ok = c.last()
		}
		if ok && r.steady.contains(first) {
			p, _ := c.Input()
			prompts += p
		}
	}
	s := r.steady.seconds()
	r.figures["steady_duration"] = s
	r.figures["steady_request_throughput"] = float64(r.steady.ends) / s
	if !r.pooled() {
		r.figures["steady_output_throughput"] = tokens / s
	}
	r.figures["steady_total_token_throughput"] = (tokens + float64(prompts)) / s
}

// tokenEvents returns the reads of all calls in the order of time, the tokens
// of a call scaled to sum to its n.
func tokenEvents(calls []*Call) []event {
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
	slices.SortFunc(events, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.tokens, b.tokens))
	})
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
	sent := make([]time.Duration, len(calls))
	end := make([]time.Duration, len(calls))
	for i, c := range calls {
		sent[i], end[i] = c.Sent, c.End
	}
	slices.Sort(sent)
	slices.Sort(end)
	most, ended := 0, 0
	for i, s := range sent {
		for end[ended] <= s && ended < i {
			ended++
		}
		most = max(most, i+1-ended)
	}
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
