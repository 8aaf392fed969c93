package result

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// track is one gauge of one device, replica or machine over time.
type track struct {
	node  string
	index int
	at    []time.Duration
	v     []float64
}

// Figures are made of readings where these cover most of a window, with so many in
// it at least: of two readings around a short run nobody knows what was between.
const (
	minCovered  = 0.9
	minReadings = 3
)

// gapFactor is how many times their usual distance two readings may be apart for
// the time between them to count as covered.
const gapFactor = 3

// telemetry is the readings of a run as figures and checks use them.
type telemetry struct {
	readings []Reading // in the order of time
	at       window    // what figures are of: the steady window, else the run
	steady   bool
}

func (r *run) telemetry() telemetry {
	t := telemetry{readings: slices.Clone(r.o.Readings)}
	slices.SortStableFunc(t.readings, func(a, b Reading) int { return cmp.Compare(a.At, b.At) })
	switch {
	case r.steady.ok:
		t.at, t.steady = r.steady, true
	case len(r.ok) > 0:
		t.at = window{from: r.ok[0].Sent, to: r.end, ok: true}
		for _, c := range r.ok {
			t.at.from = min(t.at.from, c.Sent)
		}
	}
	return t
}

// tracks returns a gauge of a source, one track for each device, replica or machine
// that tells it, in their order.
func (t telemetry) tracks(source, gauge string) []track {
	return tracks(t.readings, source, gauge)
}

func tracks(readings []Reading, source, gauge string) []track {
	var out []track
	for _, x := range readings {
		v, ok := x.Values[gauge]
		if x.Source != source || !ok {
			continue
		}
		i := slices.IndexFunc(out, func(k track) bool { return k.node == x.Node && k.index == x.Index })
		if i < 0 {
			i, out = len(out), append(out, track{node: x.Node, index: x.Index})
		}
		out[i].at, out[i].v = append(out[i].at, x.At), append(out[i].v, v)
	}
	slices.SortFunc(out, func(a, b track) int { return cmp.Or(cmp.Compare(a.node, b.node), a.index-b.index) })
	return out
}

// maxGap is how far apart two readings may be for the time between them to count.
func (k track) maxGap() time.Duration {
	gaps := make([]time.Duration, 0, len(k.at))
	for i := 1; i < len(k.at); i++ {
		gaps = append(gaps, k.at[i]-k.at[i-1])
	}
	if len(gaps) == 0 {
		return 0
	}
	slices.Sort(gaps)
	return gapFactor * gaps[len(gaps)/2]
}

// over returns the mean of the track over a window, straight lines between the
// readings, and the share of the window that readings cover.
func (k track) over(w window) (mean, covered float64) {
	most, sum, span := k.maxGap(), 0.0, time.Duration(0)
	for i := 1; i < len(k.at); i++ {
		a, b := k.at[i-1], k.at[i]
		from, to := max(a, w.from), min(b, w.to)
		if b-a > most || from >= to {
			continue
		}
		line := func(at time.Duration) float64 {
			return k.v[i-1] + (k.v[i]-k.v[i-1])*float64(at-a)/float64(b-a)
		}
		sum += (line(from) + line(to)) / 2 * (to - from).Seconds()
		span += to - from
	}
	if span == 0 {
		return 0, 0
	}
	return sum / span.Seconds(), float64(span) / float64(w.to-w.from)
}

// mean is the mean over a window; ok is false where readings are too few for one.
func (k track) mean(w window) (v float64, ok bool) {
	n := 0
	for _, at := range k.at {
		if w.contains(at) {
			n++
		}
	}
	v, covered := k.over(w)
	return v, w.ok && n >= minReadings && covered >= minCovered
}

// means adds the means of tracks up and counts them; ok is false where one of them
// has none.
func means(all []track, w window) (sum float64, n int, ok bool) {
	for _, k := range all {
		v, ok := k.mean(w)
		if !ok {
			return 0, len(all), false
		}
		sum += v
	}
	return sum, len(all), len(all) > 0
}

// highest is the largest reading within a window, over all tracks.
func highest(all []track, w window) (v float64, ok bool) {
	for _, k := range all {
		for i, at := range k.at {
			if w.contains(at) && (!ok || k.v[i] > v) {
				v, ok = k.v[i], true
			}
		}
	}
	return v, ok
}

// highestSum is the largest sum over tracks within a window, each track keeping
// its last reading until the next.
func highestSum(all []track, w window) (v float64, ok bool) {
	type change struct {
		at    time.Duration
		track int
		v     float64
	}
	var changes []change
	for i, k := range all {
		for j, at := range k.at {
			changes = append(changes, change{at, i, k.v[j]})
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	last, sum := make([]float64, len(all)), 0.0
	for i, c := range changes {
		sum += c.v - last[c.track]
		last[c.track] = c.v
		same := i+1 < len(changes) && changes[i+1].at == c.at
		if w.contains(c.at) && !same && (!ok || sum > v) {
			v, ok = sum, true
		}
	}
	return v, ok
}

// growth is how much a counter grew over the readings, a restart of the source
// counted as one from zero; ok is false where the readings do not hold the run, from
// its first sending to its last end.
func (k track) growth(from, to time.Duration) (v float64, ok bool) {
	n := len(k.at)
	if n < 2 || k.at[0] > from || k.at[n-1] < to-k.maxGap() {
		return 0, false
	}
	for i := 1; i < n; i++ {
		if d := k.v[i] - k.v[i-1]; d >= 0 {
			v += d
		} else {
			v += k.v[i]
		}
	}
	return v, true
}

// growths adds up how much the counters of all tracks grew.
func growths(all []track, from, to time.Duration) (sum float64, ok bool) {
	for _, k := range all {
		v, ok := k.growth(from, to)
		if !ok {
			return 0, false
		}
		sum += v
	}
	return sum, len(all) > 0
}

// Moment is a gauge at one instant over all devices, replicas or machines that tell
// it, each at its last reading so far.
type Moment struct {
	At             time.Duration
	Sum, Low, High float64
	N              int // how many
}

// Course returns the moments of a gauge in the order of time, one an instant at
// which any of them was read.
func Course(readings []Reading, source, gauge string) []Moment {
	var out []Moment
	type place struct {
		node  string
		index int
	}
	last := map[place]float64{}
	for _, x := range slices.SortedStableFunc(slices.Values(readings), func(a, b Reading) int { return cmp.Compare(a.At, b.At) }) {
		v, ok := x.Values[gauge]
		if x.Source != source || !ok {
			continue
		}
		last[place{x.Node, x.Index}] = v
		all := slices.Sorted(maps.Values(last)) // sums of floats depend on the order
		m := Moment{At: x.At, Low: all[0], High: all[len(all)-1], N: len(all)}
		for _, v := range all {
			m.Sum += v
		}
		if n := len(out); n > 0 && out[n-1].At == m.At {
			out[n-1] = m
			continue
		}
		out = append(out, m)
	}
	return out
}
