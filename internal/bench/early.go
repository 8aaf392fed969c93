package bench

import (
	"fmt"
	"math"
	"sync/atomic"

	"perflab/internal/load"
	"perflab/internal/result"
)

// Early has a run end before all of its requests are sent, once it is sure how it will be judged.
//
// That it misses is certain and no estimate: so many calls are beyond a bound already that no end
// of the others keeps the percentile, or the mean, of all within it. The figures of the run then
// miss too, for a part of the rest is not sent.
//
// That it meets is a sequential test of Wald's: each bound on a percentile allows a share of calls
// beyond it, and the run ends where so few are that the calls are 1/meetError times likelier under a
// meetShare of that share than under all of it. By Ville's inequality a load with the share that is
// allowed or a larger one is taken to meet with at most the chance meetError, whenever it is looked
// at, if its calls are independent. Near saturation they are not. So Meet is for loads that will be
// looked at again.
type Early struct {
	SLOs      []result.SLO
	MaxErrors float64 // share of calls that may fail
	Least     int     // calls before it may meet
	Meet      bool    // it may end where it surely meets
}

const (
	meetError = 0.01
	meetShare = 0.2
)

// Why a run ended early.
const (
	surelyMisses = "surely misses"
	surelyMeets  = "surely meets"
)

// early is such a run.
type early struct {
	rules   Early
	planned int
	bounds  []*earlyBound
	unknown bool // a bound is of no share of calls: only the end tells that it is met
	calls   int  // that have ended
	failed  int
	why     string // it ended; "": not early
	enough  atomic.Bool
}

// earlyBound is an upper bound on a percentile or on the mean of what each call has one of.
type earlyBound struct {
	slo    result.SLO
	sample func(*result.Call, []float64) []float64
	room   []float64
	p      float64 // of the percentile, 0 to 1; 0: the mean
	n      int     // calls with a sample
	beyond int
	sum    float64
	likely float64 // logarithm of the likelihood ratio
}

// begin prepares to look at a run of so many requests; nil where nobody asks.
func (e *Early) begin(planned int, h result.Header, o result.Options) *early {
	if e == nil || planned == 0 {
		return nil
	}
	out := &early{rules: *e, planned: planned}
	for _, slo := range e.SLOs {
		if b := newEarlyBound(slo, h, o); b != nil {
			out.bounds = append(out.bounds, b)
			out.unknown = out.unknown || b.p == 0
		} else {
			out.unknown = true
		}
	}
	return out
}

// newEarlyBound is nil for a bound that a call says nothing of as it ends: one on a rate, on gaps, of
// which a call has many, or on the steady part, which is known in the end.
func newEarlyBound(slo result.SLO, h result.Header, o result.Options) *earlyBound {
	m, err := result.Lookup(slo.Metric)
	if err != nil || slo.Op != "<=" {
		return nil
	}
	switch m.Family {
	case "ttft", "e2el", "ttft_due", "e2el_due", "tpot":
	default:
		return nil
	}
	b := &earlyBound{slo: slo, room: make([]float64, 0, 1), sample: new(result.CallSet).Sampler(h, o, m.Family)}
	p, isPercentile := result.Percentile(m.Name)
	switch {
	case m.Stat == "mean":
	case m.Stat == "median":
		b.p = 0.5
	case isPercentile && p > 0 && p < 100:
		b.p = p / 100
	default:
		return nil
	}
	return b
}

// add takes a call that has ended, on the goroutine that collects them.
func (e *early) add(c *result.Call) {
	if e == nil || e.why != "" {
		return // those that are under way still end
	}
	e.calls++
	if !c.OK() {
		e.failed++
	}
	meets := e.rules.Meet && !e.unknown && e.failed == 0 && e.calls >= e.rules.Least
	misses := float64(e.failed) > e.rules.MaxErrors*float64(e.planned)
	for _, b := range e.bounds {
		if c.OK() {
			b.add(c)
		}
		misses = misses || b.misses(e.planned)
		meets = meets && b.n == e.calls && b.likely >= -math.Log(meetError/float64(len(e.bounds)))
	}
	switch {
	case misses:
		e.why = surelyMisses
	case meets:
		e.why = surelyMeets
	default:
		return
	}
	e.enough.Store(true)
}

func (b *earlyBound) add(c *result.Call) {
	if b.room = b.sample(c, b.room[:0]); len(b.room) == 0 {
		return
	}
	v := b.room[0]
	b.n++
	b.sum += v
	allowed := 1 - b.p
	if b.slo.Holds(v) {
		b.likely += math.Log((1 - meetShare*allowed) / (1 - allowed))
		return
	}
	b.beyond++
	b.likely += math.Log(meetShare)
}

// misses reports whether the figure of so many calls at most is beyond the bound whatever those
// that are not known yet have: of n ascending values the percentile is no lower than number
// (n-1)p of them, see stat.Quantile, so it is where so many are beyond that this one is.
func (b *earlyBound) misses(planned int) bool {
	if b.p == 0 {
		return !b.slo.Holds(b.sum / float64(planned)) // what is to come is not negative
	}
	return b.beyond >= planned-int(float64(planned-1)*b.p)
}

// options let a load end when its verdict is sure.
func (e *early) options(o load.Options) load.Options {
	if e != nil {
		o.Enough = &e.enough
	}
	return o
}

// ended says why the run ended early; "" where it did not, or where its last call told.
func (e *early) ended() string {
	if e == nil || e.why == "" || e.calls == e.planned {
		return ""
	}
	return fmt.Sprintf("%s after %d of %d calls", e.why, e.calls, e.planned)
}

// burstRequests is how many calls the burst of a search sends at once: seconds of work for most
// servers, and enough that they are batched.
const burstRequests = 32
