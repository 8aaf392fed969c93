package clock

import (
	"math"
	"slices"
	"time"
)

// line is an offset that grows evenly: offset + slope·(t - from), over instants of the
// leader's clock. The offset is kept whole, since a float64 of nanoseconds has none left
// for those of clocks whose bases are months apart.
type line struct {
	from   time.Duration
	base   time.Duration
	offset float64 // beyond base, ns
	slope  float64
}

func (l line) at(t time.Duration) time.Duration {
	return l.base + time.Duration(math.Round(l.offset+l.slope*float64(t-l.from)))
}

// parts of the time, from each of which the quickest exchange is taken: the quickest of all may
// stand close together, as before a load that then fills the network, and say nothing of
// the drift.
const parts = 32

// usualDrift is how much clocks usually drift, as a standard deviation. It keeps the slope
// near none where exchanges are too close together to tell: those of one second, 20 us
// uncertain each, would else say anything between -40 and 40 ppm.
const usualDrift = 30e-6

// fit puts a line through the quickest exchanges: by weighted least squares, an exchange
// counting by 1/σ², and the slope having a prior of 0 ± usualDrift.
func fit(all []Exchange) line {
	points := quickest(all)
	weight := weights(points)
	l := line{from: points[0].middle(), base: points[0].Offset()}
	var n, x, y float64 // sums of weights, and weighted ones
	for _, e := range points {
		w := weight(e)
		n += w
		x += w * float64(e.middle()-l.from)
		y += w * float64(e.Offset()-l.base)
	}
	x, y = x/n, y/n
	var xx, xy float64
	for _, e := range points {
		w, dx := weight(e), float64(e.middle()-l.from)-x
		xx += w * dx * dx
		xy += w * dx * (float64(e.Offset()-l.base) - y)
	}
	l.slope = min(max(xy/(xx+1/(usualDrift*usualDrift)), -MaxDrift*1e-6), MaxDrift*1e-6)
	l.offset = y - l.slope*x
	return l
}

// weights returns 1/σ² of exchanges, in 1/ns². What all of them took bends no line; σ is
// half of what one took beyond the quickest, but no less than that of the median: of that
// one nobody knows that it was not held up.
func weights(points []Exchange) func(Exchange) float64 {
	var trips []time.Duration
	for _, e := range points {
		trips = append(trips, e.RoundTrip())
	}
	slices.Sort(trips)
	least := trips[0]
	usual := max(trips[len(trips)/2]-least, time.Microsecond)
	return func(e Exchange) float64 {
		sigma := float64(max(e.RoundTrip()-least, usual)) / 2
		return 1 / (sigma * sigma)
	}
}

// quickest are the exchanges of least round trip of each part of the time, in its order.
func quickest(all []Exchange) []Exchange {
	first, last := all[0].middle(), all[0].middle()
	for _, e := range all {
		first, last = min(first, e.middle()), max(last, e.middle())
	}
	of := make([]*Exchange, parts)
	for i := range all {
		e := &all[i]
		k := 0
		if last > first {
			k = min(parts-1, int(parts*(float64(e.middle()-first)/float64(last-first))))
		}
		if of[k] == nil || e.RoundTrip() < of[k].RoundTrip() {
			of[k] = e
		}
	}
	var out []Exchange
	for _, e := range slices.DeleteFunc(of, func(e *Exchange) bool { return e == nil }) {
		out = append(out, *e)
	}
	return out
}
