package result

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"time"

	"perflab/internal/gauge"
)

// CallSet is the calls of a run sorted out: those that figures are of, and what
// is to be said of the others. Its zero value is empty.
type CallSet struct {
	Tally
	Succeeded []*Call // with counts of tokens that can be; some of them in a large run

	failed []span // when failed calls were in flight
	rows   *rows  // of a large run; see Accumulator
	large  *large
}

// NewCallSet sorts calls out.
func NewCallSet(calls []Call) *CallSet {
	s := &CallSet{}
	for i := range calls {
		s.Add(&calls[i])
	}
	return s
}

// Add takes one call in. The set keeps the pointer.
func (s *CallSet) Add(c *Call) {
	fixed := s.Tally.add(c)
	if !c.OK() {
		s.failed = append(s.failed, span{max(c.Sent, c.Ready), c.End})
		return
	}
	s.Succeeded = append(s.Succeeded, fixed)
}

// compareIndex orders calls by their index.
func compareIndex(a, b *Call) int {
	return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Sent, b.Sent), cmp.Compare(a.End, b.End))
}

// sort puts the successful calls in the order of their index.
func (s *CallSet) sort() { slices.SortStableFunc(s.Succeeded, compareIndex) }

// each yields the successful calls, of a large run without all of their streams but
// the first chunk and the last. They are not to be kept. A run without rows has none.
func (s *CallSet) each() iter.Seq[*Call] {
	switch {
	case s.rows != nil:
		return s.rows.all()
	case s.large != nil:
		panic("result: the calls of this run are not at hand")
	}
	return slices.Values(s.Succeeded)
}

// binned reports whether the calls are in bins and sketches alone.
func (s *CallSet) binned() bool { return s.large != nil && s.rows == nil }

// SteadyWindow finds the part of the run in which the client neither fills the
// server nor drains it: between the first end of a call and the last sending. A
// burst has none: everything is sent before the first call ends.
func (s *CallSet) SteadyWindow() Window {
	if s.Completed == 0 {
		return Window{}
	}
	w := Window{Span: gauge.Span{From: s.Ended.First, To: s.Sent.Last}}
	if w.To <= w.From {
		return Window{}
	}
	if s.binned() {
		return s.steadyFlow(w)
	}
	var inside, took time.Duration
	for c := range s.each() {
		inside += max(0, min(c.End, w.To)-max(c.Sent, w.From))
		if w.Contains(c.End) {
			w.Ends++
			took += c.End - c.Sent
		}
	}
	if w.Ends < minEnds {
		return Window{}
	}
	w.OK = true
	w.InFlight = float64(inside) / float64(w.To-w.From)
	w.CallTime = took.Seconds() / float64(w.Ends)
	return w
}

// fullShare is the share of the concurrency limit that must be in flight for a
// closed loop to be under full load.
const fullShare = 0.95

// FullLoad finds the time from the first to the last instant at which a closed
// loop of so many calls was under full load. Dips between them, as between one
// call's end and the next one's sending, belong to it. Calls that fail hold a
// place as well.
func (s *CallSet) FullLoad(limit int) Window {
	need := int(math.Ceil(fullShare * float64(limit)))
	if need == 0 {
		return Window{}
	}
	if s.binned() {
		var w Window
		w.From, w.To, w.slack, w.OK = s.large.Flow.Full(need)
		n, _, _ := s.large.Flow.Ended(w.From, w.To)
		w.Ends = int(n)
		w.OK = w.OK && w.Ends >= minEnds
		return w
	}
	spans := slices.Concat(s.failed, s.spans())
	var w Window
	reached := false
	sweep(spans, func(at time.Duration, before, now int) {
		if now >= need && !reached {
			w.From, reached = at, true
		}
		if before >= need && now < need {
			w.To = at
		}
	})
	for c := range s.each() {
		if w.Contains(c.End) {
			w.Ends++
		}
	}
	w.OK = reached && w.Ends >= minEnds
	return w
}

// spans are when the successful calls were in flight.
func (s *CallSet) spans() []span {
	spans := make([]span, 0, s.Completed)
	for c := range s.each() {
		spans = append(spans, span{c.Sent, c.End})
	}
	return spans
}

// TokenEvents returns the chunks of the successful calls, call by call, with the
// tokens of a call scaled to sum to its n.
func (s *CallSet) TokenEvents() []Event {
	size := 0
	for _, c := range s.Succeeded {
		size += len(c.Chunks)
	}
	events := make([]Event, 0, size)
	for _, c := range s.Succeeded {
		for e := range c.tokenEvents() {
			events = append(events, e)
		}
	}
	return events
}

// tokenEvents yields the chunks of the call with its tokens spread over them.
func (c *Call) tokenEvents() iter.Seq[Event] {
	return func(yield func(Event) bool) {
		first, each := c.spread()
		even := 0.0
		if first == 0 { // nothing counted: spread evenly
			n, _ := c.Output()
			even = float64(n) / float64(len(c.Chunks))
		}
		for i, k := range c.Chunks {
			tokens := even + float64(k.Tokens)*each
			if i == 0 {
				tokens = even + first
			}
			if !yield(Event{k.At, tokens}) {
				return
			}
		}
	}
}
