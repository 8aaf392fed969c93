package result

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// addOverCalls sets a percentile of one sample a call over all calls, those that failed counting
// as endless: of the calls that succeeded it is the quantile p over their share. Where none
// failed, and beyond the share, there is none.
func (t *statistics) addOverCalls(figure string, p float64, quantile func(q float64) float64) {
	if rate := t.Figures["success_rate"]; rate > 0 && rate < 1 && p <= 100*rate {
		t.OverCalls[figure] = quantile(min(1, p/100/rate))
	}
}

// failedShare is the percentile that a figure is of, where calls failed and its samples are of
// single calls; else ok is false.
func (s Summary) failedShare(m Metric) (p float64, ok bool) {
	rate, known := s.Figures["success_rate"]
	f, of := familyOf(m.Family)
	if !known || rate >= 1 || !of || f.value == nil {
		return 0, false
	}
	if m.Stat == "median" {
		return 50, true
	}
	return percentile(m.Stat)
}

// judgeOver judges a percentile of a run in which calls failed: they are calls without an end.
func (o SLO) judgeOver(s Summary, m Metric, p float64) (met bool, why string) {
	v, rate := s.Figures[m.Name], s.Figures["success_rate"]
	failed := fmt.Sprintf("%.4g %% of all calls failed", 100*(1-rate))
	succeeded := Quantity(v, m.Unit) + " of the calls that succeeded"
	if 100*rate < p { // such a bound is met by what has no end
		return o.Op == ">=", fmt.Sprintf("%s: %s, %s, but %s and a call that fails never ends", o, metOrMissed(o.Op == ">="), succeeded, failed)
	}
	if all, ok := s.OverCalls[m.Name]; ok {
		met = o.Holds(all)
		return met, fmt.Sprintf("%s: %s, %s over all calls, of which failed ones never end (%s; %s)", o, metOrMissed(met), Quantity(all, m.Unit), failed, succeeded)
	}
	least, most := s.around(m, p, p/rate)
	switch holds := [2]bool{o.Holds(least), o.Holds(most)}; {
	case holds[0] && holds[1]:
		return true, fmt.Sprintf("%s: met, between %s and %s over all calls (%s; %s)", o, Quantity(least, m.Unit), Quantity(most, m.Unit), failed, succeeded)
	case !holds[0] && !holds[1]:
		return false, fmt.Sprintf("%s: missed, at least %s over all calls (%s)", o, Quantity(least, m.Unit), failed)
	}
	return false, fmt.Sprintf("%s: missed, as it cannot be known: %s, but %s, and without the calls it is not known what the percentile over all of them is", o, succeeded, failed)
}

// around are figures of the family between which its percentile q of the calls that succeeded
// lies, given that of p, which is less; most is infinite where there is none.
func (s Summary) around(m Metric, p, q float64) (least, most float64) {
	least, most = s.Figures[m.Name], math.Inf(1)
	for _, name := range slices.Sorted(maps.Keys(s.Figures)) {
		of, err := Lookup(name)
		if err != nil || of.Family != m.Family {
			continue
		}
		switch at, ok := percentile(of.Stat); {
		case of.Stat == "max" || ok && at >= q:
			most = min(most, s.Figures[name])
		case ok && at >= p:
			least = max(least, s.Figures[name])
		}
	}
	return least, most
}

// Judged are the figures that bounds are held against: percentiles of latencies of calls are those
// over all calls, and those without end are absent.
func (s Summary) Judged() map[string]float64 {
	rate, ok := s.Figures["success_rate"]
	if !ok || rate >= 1 {
		return s.Figures
	}
	out := maps.Clone(s.Figures)
	for name := range s.Figures {
		m, err := Lookup(name)
		p, of := s.failedShare(m)
		all, known := s.OverCalls[m.Name]
		switch {
		case err != nil || !of:
		case known:
			out[name] = all
		case 100*rate < p:
			delete(out, name)
		}
	}
	return out
}
