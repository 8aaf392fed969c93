package bench

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"perflab/internal/result"
	"perflab/internal/stat"
	"perflab/internal/workload"
)

// FindMaxOptions bound a search.
type FindMaxOptions struct {
	Axis      string  // rate or concurrency
	From      float64 // lowest load; 0: where to begin is found by a burst
	To        float64 // highest load; 0: none
	Precision float64 // width of the bracket that is narrow enough, as a share of its lower end
	Points    int     // runs at most
	Requests  int     // of a point at least
	Seconds   float64 // that a point sends for at least
	Turns     float64 // requests of a session, where the load counts sessions; 0: requests stand alone

	Early *Early // how points may end before; nil: none does
}

// FindMax looks for the highest load that meets every bound: it doubles the
// load until one is missed, halves the bracket until it is narrow, and
// measures its lower end again with a fresh seed. A load that misses once has
// missed. Without a lowest load it begins where a burst suggests, and halves the load
// while it misses. It is a pure state machine over the points it is told.
type FindMax struct {
	start     float64 // load to begin at; 0: the burst is still to be made
	o         FindMaxOptions
	current   Load
	tests     []loadTest
	runs      int
	repeating bool // the last point was void: once more
	stop      *Stop
	rising    bool // the last doubling of the concurrency brought throughput
	stepsDown int  // times that the edge missed when tested again
}

// loadTest is what is known of one load.
type loadTest struct {
	load     float64
	met      int // times
	missed   string
	capped   bool // by the concurrency limit
	achieved float64
}

// NewFindMax returns a search that begins at o.From.
func NewFindMax(o FindMaxOptions) *FindMax {
	f := &FindMax{o: o, start: o.From, rising: true}
	if o.From == 0 && o.Turns > 0 && o.Axis == AxisConcurrency {
		f.start = sessionStart // a burst of sessions tells of their first requests alone
		if o.To > 0 {
			f.start = min(f.start, o.To)
		}
	}
	return f
}

// TurnsPerSession is how many requests a session of the workload has on average; 0 where requests stand
// alone, or it cannot be opened, which the run says.
func TurnsPerSession(s workload.Spec) float64 {
	if s = s.Defaults(); !s.CountsSessions() {
		return 0
	}
	s.Tokenizer, s.Duration, s.NumPrompts = "", "", 0
	w, err := workload.Open(s.Defaults())
	if err != nil || w.Len() == 0 {
		return 0
	}
	sessions := 0
	for range w.All() {
		sessions++
	}
	return float64(w.Len()) / float64(sessions)
}

// MinRequests is how many requests a point needs for the percentiles that
// bounds are on, at least 100.
func MinRequests(slos []result.SLO) int {
	n := leastRequests
	for _, slo := range slos {
		if p, ok := result.Percentile(slo.Metric); ok && p > 0 && p < 100 {
			n = max(n, stat.MinSamples(p/100))
		}
	}
	return n
}

// Ask returns the next load to measure; false when the search has ended.
func (f *FindMax) Ask() (Step, bool) {
	if f.stop == nil && !f.repeating {
		f.next()
	}
	if f.stop == nil && f.runs >= f.o.Points {
		f.end(StopBudget, "budget of points: %d runs were made", f.runs)
	}
	if f.stop != nil {
		return Step{}, false
	}
	if f.current.Axis == Throughput {
		return Step{Load: f.current, Requests: burstRequests}, true
	}
	return Step{Load: f.current, Requests: f.requests(f.current.Value), Early: f.early()}, true
}

// early is how the point may end before all of its requests: where it meets only while the bracket
// is wide and the load was not measured before, since the edge is to be known by a whole run. Of sessions none
// does: their first requests are not like their later ones.
func (f *FindMax) early() *Early {
	if f.o.Early == nil || f.o.Turns > 0 {
		return nil
	}
	e := *f.o.Early
	lo, hi := f.bracket()
	wide := hi == nil || hi.load > f.current.Value*(1+wideBracket*f.o.Precision)
	e.Least, e.Meet = f.o.Requests, wide && f.test(f.current.Value) == nil && (lo == nil || lo.load < f.current.Value)
	return &e
}

// test is what is known of a load; nil: nothing.
func (f *FindMax) test(load float64) *loadTest {
	if i := slices.IndexFunc(f.tests, func(t loadTest) bool { return t.load == load }); i >= 0 {
		return &f.tests[i]
	}
	return nil
}

// sessionStart is how many sessions at a time a search without a lowest load begins with.
const sessionStart = 4

// wideBracket is how far below the lowest load that missed, in brackets that are narrow enough, a
// point may end as soon as it surely meets. lowestShare is the share of where a search without a
// lowest load begins at which it ends downwards.
const (
	wideBracket = 4
	lowestShare = 1.0 / 256
)

// next chooses a load or ends the search.
func (f *FindMax) next() {
	lo, hi := f.bracket()
	switch {
	case f.start == 0:
		f.current = Load{Axis: Throughput}
	case len(f.tests) == 0:
		f.propose(f.start)
	case lo == nil && f.lower(hi.load) > 0:
		f.propose(f.lower(hi.load))
	case lo == nil:
		f.end(StopLowest, "the lowest load misses already: %s", f.describe(hi))
	case lo.met < 2 && f.o.Points-f.runs == 1: // the last run is for the edge
		f.propose(lo.load)
	case hi == nil && f.rising && lo.load != f.o.To:
		next := lo.load * 2
		if f.o.To > 0 {
			next = min(next, f.o.To)
		}
		f.propose(next)
	case hi != nil && f.wide(lo.load, hi.load):
		f.propose(f.middle(lo.load, hi.load))
	case lo.met < 2:
		f.propose(lo.load)
	case hi != nil:
		f.end(StopBracket, "bracket closed: %s, %s", f.describe(lo), f.describe(hi))
	case lo.load == f.o.To:
		f.end(StopUpper, "upper limit reached: %s", f.describe(lo))
	default:
		f.end(StopPlateau, "plateau: %s, and it gives less than %.0f %% more throughput than the load before it", f.describe(lo), 100*leastGain)
	}
}

// lower is the load to try where one misses and none met; 0 where there is none.
func (f *FindMax) lower(missed float64) float64 {
	next := digits3(missed / 2)
	if f.o.Axis == AxisConcurrency {
		next = math.Floor(missed / 2)
	}
	if f.o.From > 0 || next < f.start*lowestShare {
		return 0
	}
	return next
}

// burst takes the burst: by its throughput a rate begins, and a concurrency with half of its
// calls where they met what is asked, else with an eighth. Void or not: it enters no conclusion.
func (f *FindMax) burst(p Point) {
	switch {
	case f.o.Axis == AxisConcurrency && len(p.Missed) == 0:
		f.start = burstRequests / 2
	case f.o.Axis == AxisConcurrency:
		f.start = burstRequests / 8
	default:
		f.start = 1
		if p.Achieved > 0 {
			f.start = digits2(p.Achieved)
		}
	}
	if f.o.To > 0 {
		f.start = min(f.start, f.o.To)
	}
}

func (f *FindMax) propose(load float64) { f.current = Load{f.o.Axis, load} }

func (f *FindMax) end(code, format string, args ...any) {
	f.stop = &Stop{code, fmt.Sprintf(format, args...)}
}

// bracket is the lowest load that missed and the highest below it that met;
// nil for none. What met above a load that missed met by luck.
func (f *FindMax) bracket() (lo, hi *loadTest) {
	for i := range f.tests {
		if t := &f.tests[i]; t.missed != "" && (hi == nil || t.load < hi.load) {
			hi = t
		}
	}
	for i := range f.tests {
		if t := &f.tests[i]; t.missed == "" && (hi == nil || t.load < hi.load) && (lo == nil || t.load > lo.load) {
			lo = t
		}
	}
	return lo, hi
}

// Missed is the lowest load that missed; 0 for none.
func (f *FindMax) Missed() float64 {
	if _, hi := f.bracket(); hi != nil {
		return hi.load
	}
	return 0
}

// Precision is the width of the bracket at which the search ends.
func (f *FindMax) Precision() float64 { return f.o.Precision }

// wide reports whether a load may still be found between two.
func (f *FindMax) wide(lo, hi float64) bool {
	if f.o.Axis == AxisConcurrency && hi-lo <= 1 {
		return false
	}
	return hi-lo > f.o.Precision*lo*(1+1e-9)
}

// middle halves a bracket, in round numbers where they lie inside it.
func (f *FindMax) middle(lo, hi float64) float64 {
	mid := (lo + hi) / 2
	if f.o.Axis == AxisConcurrency {
		return math.Floor(mid)
	}
	if r := digits3(mid); r > lo && r < hi {
		return r
	}
	return mid
}

// requests is how many a point sends: as many as its percentiles need, and for
// as long as was asked. How fast a concurrency is answered is guessed from the
// loads below it.
func (f *FindMax) requests(load float64) int {
	turns := max(1, f.o.Turns)
	least := int(math.Ceil(float64(f.o.Requests) / turns)) // sessions where these are counted
	if f.o.Axis == AxisConcurrency {
		rate := 0.0
		for _, t := range f.tests {
			rate = max(rate, t.achieved*max(1, load/t.load))
		}
		rounds := 4 * load
		if f.o.Turns > 0 {
			rounds = 2 * load
		}
		return max(least, int(rounds), int(math.Ceil(rate*f.o.Seconds/turns)))
	}
	return max(least, int(math.Ceil(load*f.o.Seconds)))
}

// Tell takes the point of the last step in.
func (f *FindMax) Tell(p Point) {
	f.runs++
	if p.Partial {
		return // the series ends here
	}
	if p.Load.Axis == Throughput {
		f.burst(p)
		return
	}
	if !p.Judged() {
		f.void(p)
		return
	}
	f.repeating = false
	t := f.test(p.Load.Value)
	if t == nil {
		f.rising = f.gain(p)
		f.tests = append(f.tests, loadTest{load: p.Load.Value, achieved: p.Achieved})
		t = &f.tests[len(f.tests)-1]
	}
	why := slices.Clone(p.Missed)
	if p.Saturated && f.o.Axis == AxisRate {
		why = append(why, fmt.Sprintf("saturated: %s req/s achieved of %s offered", rounded(p.Achieved), rounded(p.Offered)))
	}
	if p.Capped && f.o.Axis == AxisRate {
		t.capped = true
		why = append(why, fmt.Sprintf("held back by the concurrency limit: %s req/s achieved of %s offered", rounded(p.Achieved), rounded(p.Offered)))
	}
	if len(why) == 0 {
		t.met++
		return
	}
	t.missed = strings.Join(why, ", ")
	if t.met > 0 {
		t.missed += fmt.Sprintf(" when tested again after it had met %s", times(t.met))
		f.stepsDown++
	}
}

// gain reports whether a new concurrency brought throughput over the highest
// one below it. Of a rate, saturation is the test; and how many sessions meet the bounds does not depend on what
// they achieve.
func (f *FindMax) gain(p Point) bool {
	var below *loadTest
	for i := range f.tests {
		if t := &f.tests[i]; t.load < p.Load.Value && (below == nil || t.load > below.load) {
			below = t
		}
	}
	if f.o.Axis != AxisConcurrency || f.o.Turns > 0 || below == nil {
		return true
	}
	return p.Achieved >= (1+leastGain)*below.achieved
}

// void has a point measured once more, and ends the search at the second.
func (f *FindMax) void(p Point) {
	if !f.repeating {
		f.repeating = true
		return
	}
	code, what := StopVoid, "the measurement is void"
	if clientBound(p.Summary.Verdict) {
		code, what = StopClient, "client-bound"
	}
	f.end(code, "%s at %s, twice in a row: %s", what, p.Load, p.Summary.Verdict.Why())
}

// clientBound reports whether the load generator is what made a run void.
func clientBound(v result.Verdict) bool {
	for _, name := range []string{"dispatch_lag", "client_cpu", "merged"} {
		if c, ok := v.Check(name); ok && c.Status == result.Voided {
			return true
		}
	}
	return false
}

// describe is what is known of a load: "11.2 met", "11.8 missed p99_ttft_ms 512 > 500".
func (f *FindMax) describe(t *loadTest) string {
	if t.missed != "" {
		return Short(t.load) + " missed " + t.missed
	}
	return Short(t.load) + " met"
}

// Conclude returns why the search ended and the highest load that met, nil for
// none.
func (f *FindMax) Conclude() (Stop, *Max) {
	s := Stop{StopInterrupted, "the search was stopped"}
	if f.stop != nil {
		s = *f.stop
	}
	lo, hi := f.bracket()
	if lo == nil {
		return s, nil
	}
	return s, &Max{Load: Load{f.o.Axis, lo.load}, Missed: f.Missed(), Tested: lo.met, AtLeast: s.Code != StopBracket, Stepped: f.stepsDown, Capped: hi != nil && hi.capped}
}
