package result

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// CallSet is the calls of a run sorted out: those that figures are of, and what
// is to be said of the others. Its zero value is empty.
type CallSet struct {
	Succeeded   []*Call // with counts of tokens that can be; in the order of Add until Sort
	Total       int     // calls of any outcome
	Failures    map[Class]int
	FirstFailed map[Class]*Call // of each class, by index
	NewFields   map[string]int  // growing fields of deltas that we do not know -> calls
	BadCounts   []int           // indices of calls whose count of tokens cannot be

	Start, End time.Duration // over all calls: the first due or sent, the last end

	lastSent  time.Duration
	failed    []span // when failed calls were in flight
	simulated bool   // a server said that it is a simulator
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
	first := c.Due
	if c.OK() {
		first = min(first, c.Sent)
	}
	if s.Total == 0 {
		s.Start, s.End, s.lastSent = first, c.End, c.Sent
	}
	s.Total++
	s.Start, s.End, s.lastSent = min(s.Start, first), max(s.End, c.End), max(s.lastSent, c.Sent)
	s.simulated = s.simulated || c.Sim
	if c.Field != "" {
		if s.NewFields == nil {
			s.NewFields = map[string]int{}
		}
		s.NewFields[c.Field]++
	}
	if !c.OK() {
		s.addFailed(c)
		return
	}
	c, ok := c.Plausible()
	if !ok {
		s.BadCounts = append(s.BadCounts, c.Index)
	}
	s.Succeeded = append(s.Succeeded, c)
}

func (s *CallSet) addFailed(c *Call) {
	if s.Failures == nil {
		s.Failures, s.FirstFailed = map[Class]int{}, map[Class]*Call{}
	}
	s.Failures[c.Class]++
	if first := s.FirstFailed[c.Class]; first == nil || c.Index < first.Index {
		s.FirstFailed[c.Class] = c
	}
	s.failed = append(s.failed, span{max(c.Sent, c.Ready), c.End})
}

// FailureText says in a sentence how many calls failed and why, with one error of
// the most frequent class; "" where none did.
func (s *CallSet) FailureText() string {
	if len(s.Failures) == 0 {
		return ""
	}
	classes := slices.SortedFunc(maps.Keys(s.Failures), func(a, b Class) int {
		return cmp.Or(cmp.Compare(s.Failures[b], s.Failures[a]), cmp.Compare(a, b))
	})
	parts := make([]string, len(classes))
	for i, class := range classes {
		parts[i] = fmt.Sprintf("%s %d", class, s.Failures[class])
	}
	text := fmt.Sprintf("%d of %d calls failed (%s) and are in no latency or throughput figure",
		s.Total-len(s.Succeeded), s.Total, strings.Join(parts, ", "))
	if first := s.FirstFailed[classes[0]]; first.Error != "" {
		text += fmt.Sprintf("; call %d: %s", first.Index, first.Error)
	}
	return text
}

// Sort puts the successful calls in the order of their index.
func (s *CallSet) Sort() {
	slices.SortStableFunc(s.Succeeded, func(a, b *Call) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Sent, b.Sent), cmp.Compare(a.End, b.End))
	})
}

// Pooling reports whether calls succeeded and none of them generated a token, as
// with an API for embeddings: then there are no figures of output.
func (s *CallSet) Pooling() bool {
	return len(s.Succeeded) > 0 && !slices.ContainsFunc(s.Succeeded, func(c *Call) bool {
		n, _ := c.Output()
		return n > 0 || len(c.Chunks) > 0
	})
}

// firstSent is when the first successful call was sent.
func (s *CallSet) firstSent() time.Duration {
	first := s.Succeeded[0].Sent
	for _, c := range s.Succeeded {
		first = min(first, c.Sent)
	}
	return first
}

// SteadyWindow finds the part of the run in which the client neither fills the
// server nor drains it: between the first end of a call and the last sending. A
// burst has none: everything is sent before the first call ends.
func (s *CallSet) SteadyWindow() Window {
	if len(s.Succeeded) == 0 {
		return Window{}
	}
	w := Window{From: s.Succeeded[0].End, To: s.Succeeded[0].Sent}
	for _, c := range s.Succeeded {
		w.From, w.To = min(w.From, c.End), max(w.To, c.Sent)
	}
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
