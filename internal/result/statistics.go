package result

import (
	"slices"
	"strings"

	"perflab/internal/stat"
)

// confidence of the intervals.
const confidence = 0.95

// statistics are figures by metric name, with the samples behind those of a
// family and their 95 % intervals.
type statistics struct {
	Figures   map[string]float64
	Samples   map[string]int
	Intervals map[string][2]float64

	Bounds      map[string][2]float64 // the least and the most of what late reads leave open
	Approximate map[string]float64    // by what share a figure may be off; one that is not here is exact
	OverCalls   map[string]float64    // see Summary.OverCalls

	doubts      map[string]*stat.Doubts // by family
	percentiles []float64               // of each family
}

// newStatistics makes an empty set, with the percentiles every summary has and
// those asked for.
func newStatistics(extra []float64) statistics {
	p := slices.Concat(defaultPercentiles, extra)
	slices.Sort(p)
	return statistics{
		Figures: map[string]float64{}, Samples: map[string]int{}, Intervals: map[string][2]float64{},
		Approximate: map[string]float64{}, OverCalls: map[string]float64{},
		percentiles: slices.Compact(p),
	}
}

// addDistribution sets the statistics of one family from its samples, and their
// intervals: of order statistics and Student's for one sample a call, by the
// variance between calls for pooled ones, which ends divide. Sums over sorted
// values do not depend on the order of the calls.
func (t *statistics) addDistribution(name string, x []float64, ends []int) {
	if len(x) == 0 {
		return
	}
	sorted := x
	if ends != nil {
		sorted = slices.Clone(x)
	}
	if !slices.IsSorted(sorted) {
		stat.Sort(sorted)
	}
	pooled := stat.Clusters{Samples: x, Ends: ends}
	figure := func(stat string) string { return stat + "_" + name + "_ms" }
	interval := func(stat string, lo, hi float64, ok bool) {
		if ok {
			t.Intervals[figure(stat)] = [2]float64{lo, hi}
		}
	}
	quantile := func(name string, p float64) {
		t.Figures[figure(name)] = stat.Quantile(sorted, p/100)
		if ends != nil {
			lo, hi, ok := pooled.QuantileCI(sorted, p/100, confidence)
			interval(name, lo, hi, ok)
			return
		}
		t.addOverCalls(figure(name), p, func(q float64) float64 { return stat.Quantile(sorted, q) })
		lo, hi, ok := stat.QuantileCI(sorted, p/100, confidence)
		interval(name, lo, hi, ok)
	}
	t.Samples[name] = len(x)
	mean, std := stat.Mean(sorted), stat.StdDev(sorted)
	t.Figures[figure("mean")], t.Figures[figure("std")] = mean, std
	lo, hi, ok := stat.MeanCI(mean, std, len(x), confidence)
	if ends != nil {
		lo, hi, ok = pooled.MeanCI(mean, confidence)
	}
	lo, hi = meanInterval(mean, (hi-lo)/2, sorted[0])
	interval("mean", lo, hi, ok)
	t.Figures[figure("min")] = sorted[0]
	t.Figures[figure("max")] = sorted[len(sorted)-1]
	for _, p := range t.percentiles {
		quantile(PercentileName(p), p)
	}
	if t.doubts[name] != nil {
		all := &stat.Sketch{}
		for _, v := range sorted {
			all.Add(v)
		}
		t.addBounds(name, all, ends != nil)
	}
	t.copyFigure(figure("p50"), figure("median"))
}

// meanInterval is the interval of a mean of times, which are not negative unless the
// least of them says so.
func meanInterval(mean, half, least float64) (lo, hi float64) {
	if least < 0 {
		return mean - half, mean + half
	}
	return stat.Positive(mean, half)
}

// copyFigure gives a figure, with its interval, a second name.
func (t *statistics) copyFigure(from, to string) {
	if v, ok := t.Figures[from]; ok {
		t.Figures[to] = v
	}
	if v, ok := t.Intervals[from]; ok {
		t.Intervals[to] = v
	}
	if v, ok := t.Approximate[from]; ok {
		t.Approximate[to] = v
	}
	if v, ok := t.OverCalls[from]; ok {
		t.OverCalls[to] = v
	}
	if v, ok := t.Bounds[from]; ok {
		t.setBound(to, v)
	}
}

// copyFamily gives one family the figures of another.
func (t *statistics) copyFamily(from, to string) {
	if _, ok := t.Samples[from]; !ok {
		return
	}
	t.Samples[to] = t.Samples[from]
	for _, s := range familyStats {
		t.copyFigure(s.name+"_"+from+"_ms", s.name+"_"+to+"_ms")
	}
	for _, p := range t.percentiles {
		t.copyFigure(PercentileName(p)+"_"+from+"_ms", PercentileName(p)+"_"+to+"_ms")
	}
}

// forget drops the figures of a family.
func (t *statistics) forget(family string) {
	delete(t.Samples, family)
	suffix := "_" + family + "_ms"
	for figure := range t.Figures {
		if stat, ok := strings.CutSuffix(figure, suffix); ok && !strings.Contains(stat, "_") {
			delete(t.Figures, figure)
			delete(t.Intervals, figure)
			delete(t.Approximate, figure)
			delete(t.OverCalls, figure)
			delete(t.Bounds, figure)
		}
	}
}
