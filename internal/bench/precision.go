package bench

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"

	"perflab/internal/field"
	"perflab/internal/load"
	"perflab/internal/result"
	"perflab/internal/stat"
	"perflab/internal/workload"
)

// steadyPrefix begins the names of figures of the steady part of a run: runs that ended after
// different numbers of requests compare by these alone, since filling and draining the server
// is more of a short run than of a long one.
const steadyPrefix = "steady_"

// steadyRates are the figures of a steady window that requests have a part in each.
var steadyRates = []string{steadyPrefix + "output_throughput", steadyPrefix + "total_token_throughput", steadyPrefix + "request_throughput"}

// steadyLatency stands where no rate can be watched: a load with a rate has that of its arrivals.
const steadyLatency = "mean_" + steadyPrefix + "e2el_ms"

// UntilMetric is the figure that a workload's until_precision is of: the one it names, else the
// throughput of a closed loop, or the mean time of the requests that come at a rate.
func UntilMetric(w workload.Spec) string {
	if w.Rate.Inf() {
		return cmp.Or(w.UntilMetric, steadyRates[0])
	}
	return cmp.Or(w.UntilMetric, steadyLatency)
}

// WatchedFigure says what keeps a figure from being watched while a run goes on, nil for nothing.
func WatchedFigure(name string, w workload.Spec) error {
	m, err := result.Lookup(name)
	if err != nil {
		return err
	}
	base, steady := strings.CutPrefix(m.Family, steadyPrefix)
	q, isQuantile := result.Percentile(m.Name)
	switch {
	case slices.Contains(steadyRates, m.Name) && !w.Rate.Inf():
		return fmt.Errorf("%s is that of the arrivals where requests come at a rate: use %s", m.Name, steadyLatency)
	case slices.Contains(steadyRates, m.Name), steady && base != "" && (m.Stat == "mean" || m.Stat == "median" || isQuantile && q > 0 && q < 100):
		return nil
	}
	return fmt.Errorf("%s cannot be watched request by request over the steady part of a run, by which runs of different lengths compare: use %s, or mean_, median_ or a percentile of %sttft_ms, %[3]stpot_ms or %[3]se2el_ms",
		m.Name, strings.Join(steadyRates, ", "), steadyPrefix)
}

// checkPrecision says what is wrong with how a run is to end.
func (s Spec) checkPrecision() error {
	w := s.Workload
	if w.UntilPrecision == "" {
		return nil
	}
	if err := WatchedFigure(UntilMetric(w), w); err != nil {
		return field.Errorf("until_metric", "%v", err)
	}
	return nil
}

// watched is a run whose figure is looked at as its calls end.
type watched struct {
	metric   result.Metric
	watch    stat.Watch
	value    func(*result.Call) (y, x float64, ok bool)
	rate     float64    // requests/s; 0: a closed loop
	inFlight stat.Total // seconds, of all calls
	calls    int
	enough   atomic.Bool
}

// watch prepares to look at the figure of a workload; nil where its run ends without.
func watch(w workload.Spec) *watched {
	asked, _ := w.UntilPrecision.Value() // Validate has seen the error
	if asked == 0 {
		return nil
	}
	m, _ := result.Lookup(UntilMetric(w)) // likewise
	v := &watched{metric: m, watch: stat.Watch{Figure: m.Name, Within: asked, Together: w.MaxConcurrency}}
	if !w.Rate.Inf() {
		v.rate, v.watch.Together = float64(w.Rate), 1
	}
	const room = 1 << 16 // grown beyond
	v.watch.Reserve(min(cmp.Or(w.NumPrompts, room), room))
	v.watch.Rate = m.Family == ""
	switch {
	case m.Family != "":
		v.ofFamily(w)
	case m.Name == steadyPrefix+"request_throughput":
		v.value = func(c *result.Call) (y, x float64, ok bool) { return 1, inFlight(c), true }
	default:
		total := m.Name == steadyPrefix+"total_token_throughput"
		v.value = func(c *result.Call) (y, x float64, ok bool) {
			n, _ := c.Output()
			if total {
				p, _ := c.Input()
				n += p
			}
			return float64(n), inFlight(c), true
		}
	}
	return v
}

// ofFamily watches a latency of the calls.
func (v *watched) ofFamily(w workload.Spec) {
	sample := new(result.CallSet).Sampler(result.Header{Limit: w.MaxConcurrency}, result.Options{}, strings.TrimPrefix(v.metric.Family, steadyPrefix))
	if p, ok := result.Percentile(v.metric.Name); ok {
		v.watch.Quantile = p / 100
	} else if v.metric.Stat == "median" {
		v.watch.Quantile = 0.5
	}
	room := make([]float64, 0, 1)
	v.value = func(c *result.Call) (y, x float64, ok bool) {
		if room = sample(c, room[:0]); len(room) == 0 {
			return 0, 0, false
		}
		return room[0], 1, true
	}
}

// inFlight is how long a call was under way, in seconds. The tokens of calls by the time that they
// were under way is throughput by the calls under way, of which a closed loop always has as many
// (Little's law): the one is known as well as the other.
func inFlight(c *result.Call) float64 { return (c.End - c.Sent).Seconds() }

// add takes a call that has ended, on the goroutine that collects them.
func (v *watched) add(c *result.Call) {
	if v == nil || !c.OK() || v.enough.Load() { // the server drains: those are of fewer together
		return
	}
	y, x, ok := v.value(c)
	if !ok {
		return
	}
	v.calls++
	if v.rate > 0 { // by Little's law so many are under way together
		v.inFlight.Add(inFlight(c))
		v.watch.Together = max(1, int(math.Ceil(v.rate*v.inFlight.Sum()/float64(v.calls))))
	}
	if v.watch.Add(y, x) {
		v.enough.Store(true)
	}
}

// options let a load end when enough is known.
func (v *watched) options(o load.Options) load.Options {
	if v != nil {
		o.Enough = &v.enough
	}
	return o
}

// found is what is known of the figure at the end of the run; nil where nobody looked.
func (v *watched) found() *stat.Watched {
	if v == nil {
		return nil
	}
	f := v.watch.Found()
	return &f
}
