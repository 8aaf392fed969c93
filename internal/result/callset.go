package result

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// CallSet is the calls of a run sorted out: those that figures are of, and what
// is to be said of the others. Its zero value is empty.
type CallSet struct {
	Tally
	Succeeded []*Call // with counts of tokens that can be; in the order of Add until Sort

	failed []span // when failed calls were in flight
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

// Sort puts the successful calls in the order of their index.
func (s *CallSet) Sort() {
	slices.SortStableFunc(s.Succeeded, func(a, b *Call) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Sent, b.Sent), cmp.Compare(a.End, b.End))
	})
}

// SteadyWindow finds the part of the run in which the client neither fills the
// server nor drains it: between the first end of a call and the last sending. A
// burst has none: everything is sent before the first call ends.
func (s *CallSet) SteadyWindow() Window {
	if len(s.Succeeded) == 0 {
		return Window{}
	}
	w := Window{From: s.Ended.First, To: s.Sent.Last}
	if w.To <= w.From {
		return Window{}
	}
	var inside, took time.Duration
	for _, c := range s.Succeeded {
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
	spans := slices.Clone(s.failed)
	for _, c := range s.Succeeded {
		spans = append(spans, span{c.Sent, c.End})
	}
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
	for _, c := range s.Succeeded {
		if w.Contains(c.End) {
			w.Ends++
		}
	}
	w.OK = reached && w.Ends >= minEnds
	return w
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
		w := c.weight()
		for _, k := range c.Chunks {
			tokens := float64(k.Tokens) * w
			if w == 0 { // usage alone knows: spread evenly
				n, _ := c.Output()
				tokens = float64(n) / float64(len(c.Chunks))
			}
			events = append(events, Event{k.At, tokens})
		}
	}
	return events
}
