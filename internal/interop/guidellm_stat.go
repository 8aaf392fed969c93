package interop

import (
	"cmp"
	"math"
	"slices"
)

// weighed is a value and how much it counts; of an event, its time in seconds
// and how many there were.
type weighed struct{ v, w float64 }

// guideDist is a distribution as guidellm writes it.
type guideDist struct {
	Mean        float64          `json:"mean"`
	Median      float64          `json:"median"`
	Mode        float64          `json:"mode"`
	Variance    float64          `json:"variance"`
	Std         float64          `json:"std_dev"`
	Min         float64          `json:"min"`
	Max         float64          `json:"max"`
	Count       int              `json:"count"`
	Sum         float64          `json:"total_sum"`
	Percentiles guidePercentiles `json:"percentiles"`
	PDF         any              `json:"pdf"`
}

type guidePercentiles struct {
	P001 float64 `json:"p001"`
	P01  float64 `json:"p01"`
	P05  float64 `json:"p05"`
	P10  float64 `json:"p10"`
	P25  float64 `json:"p25"`
	P50  float64 `json:"p50"`
	P75  float64 `json:"p75"`
	P90  float64 `json:"p90"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
}

// guideEpsilon is the least weight and the least duration.
const guideEpsilon = 1e-6

// ofValues is the distribution of values by their weights. Percentiles are
// values that are there: the first at which the weights up to it reach the
// share. A negative count stands for the sum of the weights.
func ofValues(x []weighed, count int) guideDist {
	total := 0.0
	for _, e := range x {
		total += e.w
	}
	if count < 0 {
		count = int(math.RoundToEven(total))
	}
	x = guideMerged(x, 0)
	x = slices.DeleteFunc(x, func(e weighed) bool { return e.w <= 0 })
	d := guideDist{Count: count}
	if len(x) == 0 {
		return d
	}
	if total <= guideEpsilon {
		for i := range x {
			x[i].w = 1
		}
		total = float64(len(x))
	}
	best := 0
	for i := range x {
		x[i].w /= total
		d.Mean += x[i].v * x[i].w
		if x[i].w > x[best].w {
			best = i
		}
	}
	for _, e := range x {
		d.Variance += (e.v - d.Mean) * (e.v - d.Mean) * e.w
	}
	d.Mode, d.Std, d.Sum = x[best].v, math.Sqrt(d.Variance), d.Mean*float64(count)
	d.Min, d.Max = x[0].v, x[len(x)-1].v
	d.Percentiles.set(x)
	d.Median = d.Percentiles.P50
	return d
}

// set takes the percentiles of sorted values whose weights sum to 1.
func (p *guidePercentiles) set(x []weighed) {
	cum := make([]float64, len(x))
	sum := 0.0
	for i, e := range x {
		sum += e.w
		cum[i] = sum
	}
	at := func(share float64) float64 {
		i, _ := slices.BinarySearch(cum, share)
		return x[min(i, len(x)-1)].v
	}
	*p = guidePercentiles{at(0.001), at(0.01), at(0.05), at(0.1), at(0.25), at(0.5), at(0.75), at(0.9), at(0.95), at(0.99), at(0.999)}
}

// guideMerged sorts by value and makes one of those that are at most gap after the
// first of them.
func guideMerged(x []weighed, gap float64) []weighed {
	x = slices.Clone(x)
	slices.SortStableFunc(x, func(a, b weighed) int { return cmp.Compare(a.v, b.v) })
	var out []weighed
	for _, e := range x {
		if n := len(out); n > 0 && e.v <= out[n-1].v+gap {
			out[n-1].w += e.w
			continue
		}
		out = append(out, e)
	}
	return out
}

// guideGap is how near events count as one, in seconds.
const guideGap = 1e-4

// ofRates is the distribution over time of the rate of events: that of each is
// over half the way to its neighbours.
func ofRates(events []weighed, from, to float64) guideDist {
	x := []weighed{{from, 0}}
	for _, e := range events {
		if e.v >= from && e.v <= to {
			x = append(x, e)
		}
	}
	x = guideMerged(guideMerged(append(x, weighed{to, 0}), 0), guideGap)
	if len(x) <= 1 {
		return ofValues(nil, len(x))
	}
	rates := make([]weighed, len(x))
	sum := 0.0
	for i, e := range x {
		lo, hi := e.v, e.v
		if i > 0 {
			lo = (x[i-1].v + e.v) / 2
		}
		if i < len(x)-1 {
			hi = (e.v + x[i+1].v) / 2
		}
		d := hi - lo
		if i == len(x)-1 {
			d = max(d, guideEpsilon)
		}
		rates[i] = weighed{e.w / d, d}
		sum += e.w
	}
	return ofValues(rates, int(math.RoundToEven(sum)))
}

// ofOverlap is the distribution over time of how many spans overlap.
func ofOverlap(spans []weighed, from, to float64) guideDist {
	var x []weighed
	for _, s := range spans { // v: its start, w: its end
		x = append(x, weighed{s.v, 1}, weighed{s.w, -1})
	}
	count := len(spans)
	if count == 0 {
		return ofValues(nil, 0)
	}
	x = append(guideMerged(guideMerged(x, 0), guideGap), weighed{to, 0})
	if x[0].v > from {
		x = slices.Insert(x, 0, weighed{from, 0})
	}
	level := 0.0
	var levels []weighed
	for i := range len(x) - 1 {
		level += x[i].w
		levels = append(levels, weighed{max(0, level), max(0, x[i+1].v-x[i].v)})
	}
	return ofValues(levels, count)
}
