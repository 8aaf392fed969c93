// Package clock says how far the clock of another machine is from ours, and how far
// off that may be, by messages that went there and back.
//
//	var t clock.Track
//	t.Add(clock.Exchange{T1: asked, T2: heard, T3: answered, T4: back})
//	offset, bound, ok := t.At(start) // the other clock shows start + offset, to within bound
//
// One exchange says that the offset is ((T2-T1)+(T3-T4))/2, to within half of the time
// that its two messages took, (T4-T1)-(T3-T2): a message takes no less than no time, and
// of the rest nobody knows how it was divided between the two ways. That is all that is
// assumed of a network. It is why a bound of half the round trip cannot be wrong, however
// unlike the ways there and back are, and an estimate can be wrong by as much.
//
// Exchanges bound the offset at other instants too, since a clock drifts: by no more than
// MaxDrift for each second between. What all exchanges leave open at an instant is the bound
// there, so that a quick exchange makes up for slow ones around it. The estimate within
// it is the line through the quickest exchanges.
//
// Invariants: the truth lies within the bound, for clocks that run evenly to within
// MaxDrift; where no offset is in keeping with all exchanges, a clock stepped or ran
// unevenly, and there is no estimate at all. A step that is smaller than what two
// exchanges leave open cannot be told from their delays, and is not found.
//
// Deliberately absent: clocks, messages, and any hope that the ways there and back take
// equally long.
package clock

import (
	"math"
	"time"
)

// MaxDrift is by how much two clocks may run apart, in parts per million: quartz is good
// for 100 where it is hot or old, and two of them may err in opposite directions.
const MaxDrift = 200

// farthest is the farthest from its base that a clock may show, 18 years: sums of such
// readings do not overflow.
const farthest = time.Duration(1 << 59)

// Exchange is a message to an agent and its answer, by the clocks of both, each since an
// instant of its own that does not change.
type Exchange struct {
	T1 time.Duration `json:"t1_ns"` // sent, by the leader's clock
	T2 time.Duration `json:"t2_ns"` // received, by the agent's clock
	T3 time.Duration `json:"t3_ns"` // answered, by the agent's clock
	T4 time.Duration `json:"t4_ns"` // the answer received, by the leader's clock
}

// Offset is the agent's clock less the leader's, if both messages took equally long.
func (e Exchange) Offset() time.Duration { return ((e.T2 - e.T1) + (e.T3 - e.T4)) / 2 }

// RoundTrip is how long the two messages took together.
func (e Exchange) RoundTrip() time.Duration { return (e.T4 - e.T1) - (e.T3 - e.T2) }

// Bound is how far Offset may be from the truth.
func (e Exchange) Bound() time.Duration { return (e.RoundTrip() + 1) / 2 }

// middle is the instant of the leader's clock in the middle of the exchange.
func (e Exchange) middle() time.Duration { return e.T1 + (e.T4-e.T1)/2 }

// sane reports whether the readings can be those of two clocks.
func (e Exchange) sane() bool {
	for _, t := range []time.Duration{e.T1, e.T2, e.T3, e.T4} {
		if t < -farthest || t > farthest {
			return false
		}
	}
	return e.T4 >= e.T1 && e.T3 >= e.T2
}

// most is the largest offset at the instant T1 that the exchange allows: the message did
// not arrive before it was sent.
func (e Exchange) most() time.Duration { return e.T2 - e.T1 }

// least is the smallest offset at the instant T4: nor did the answer.
func (e Exchange) least() time.Duration { return e.T3 - e.T4 }

// Track is what exchanges with one agent say of its clock. The zero Track has none. It is
// not for use by several goroutines at once.
type Track struct {
	all     []Exchange
	stepped bool
	line    line
	fitted  bool // line is of all exchanges
}

// Add takes an exchange, whenever it was.
func (t *Track) Add(e Exchange) {
	t.fitted = false
	if !e.sane() {
		t.stepped = true
		return
	}
	t.all = append(t.all, e)
	for _, o := range t.all {
		if apart(o, e) || apart(e, o) {
			t.stepped = true
		}
	}
}

// apart reports whether a's upper limit and b's lower one exclude each other. Between the
// two instants at which they hold their sum widens by the drift over that time, and
// outside by more, so that they do there if they do anywhere.
func apart(a, b Exchange) bool { return b.least()-a.most() > drift(b.T4-a.T1) }

// drift is by how much the clocks may have run apart in a time.
func drift(d time.Duration) time.Duration {
	return time.Duration(math.Ceil(MaxDrift * 1e-6 * math.Abs(float64(d))))
}

// At returns how far the agent's clock is ahead of the leader's at an instant of the
// leader's, and how far off that may be. It is not ok where there was no exchange, and
// where the exchanges exclude each other.
func (t *Track) At(leader time.Duration) (offset, bound time.Duration, ok bool) {
	if t.stepped || len(t.all) == 0 || leader < -farthest || leader > farthest {
		return 0, 0, false
	}
	most, least := time.Duration(math.MaxInt64), time.Duration(math.MinInt64)
	for _, e := range t.all {
		most = min(most, e.most()+drift(leader-e.T1))
		least = max(least, e.least()-drift(leader-e.T4))
	}
	if !t.fitted {
		t.line, t.fitted = fit(t.all), true
	}
	offset = min(max(t.line.at(leader), least), most)
	return offset, max(most-offset, offset-least), true
}

// Fit is what a Track comes to.
type Fit struct {
	At        time.Duration // the instant of the leader's clock at which the offset is known best
	Offset    time.Duration // of the agent's clock then: agent = leader + offset
	Bound     time.Duration // how far off that may be
	DriftPPM  float64       // how much faster the agent's clock runs, in parts per million; 0: too few exchanges to say
	Exchanges int
	Least     time.Duration // the least that both messages of an exchange took
	Stepped   bool          // the exchanges exclude each other: a clock stepped, or ran unevenly, and nothing of the above but the count is known
}

// Fit returns what all exchanges come to.
func (t *Track) Fit() Fit {
	f := Fit{Exchanges: len(t.all), Stepped: t.stepped}
	if t.stepped || len(t.all) == 0 {
		return f
	}
	best := t.all[0]
	for _, e := range t.all[1:] {
		if e.RoundTrip() < best.RoundTrip() {
			best = e
		}
	}
	f.At, f.Least = best.middle(), best.RoundTrip()
	f.Offset, f.Bound, _ = t.At(f.At)
	f.DriftPPM = t.line.slope * 1e6
	return f
}
