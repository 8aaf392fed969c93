package gauge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Track is one gauge of one device, replica or machine over time.
type Track struct {
	Node   string
	Index  int
	At     []time.Duration
	Values []float64
}

// Tracks are those of one gauge.
type Tracks []Track

// Span is a part of a run.
type Span struct {
	From, To time.Duration // From < at <= To is inside
}

// Contains reports whether an instant is inside.
func (s Span) Contains(at time.Duration) bool { return s.From < at && at <= s.To }

// Seconds is the span's length.
func (s Span) Seconds() float64 { return (s.To - s.From).Seconds() }

// Figures are made of readings where these cover most of a window, with so many in
// it at least: of two readings around a short run nobody knows what was between.
const (
	minCovered  = 0.9
	minReadings = 3
)

// gapFactor is how many times their usual distance two readings may be apart for
// the time between them to count as covered.
const gapFactor = 3

// Telemetry is the readings of a run as figures and checks use them.
type Telemetry struct {
	Readings []Reading // in the order of time
	Window   Span      // what figures are of: the steady window, else the run
	Steady   bool
}

// NoEnergy says why GPUs were read and no energy is given; "" where it is, or where
// none was read.
func (t Telemetry) NoEnergy() string {
	n := t.Devices()
	if n == 0 {
		return ""
	}
	power := t.Tracks(SourceGPU, GPUPower)
	if len(power) < n {
		return fmt.Sprintf("%d of %d GPUs do not tell their power", n-len(power), n)
	}
	for _, k := range power {
		if _, ok := k.Mean(t.Window); !ok {
			_, covered := k.Over(t.Window)
			return fmt.Sprintf("readings of the power of %s cover %.0f %% of the window and it takes %.0f %%, with %d readings at least", k.GPU(), 100*covered, 100*minCovered, minReadings)
		}
	}
	return ""
}

// Tracks returns a gauge of a source, one track for each device, replica or machine
// that tells it, in their order.
func (t Telemetry) Tracks(source, name string) Tracks {
	var out Tracks
	for _, x := range t.Readings {
		v, ok := x.Values[name]
		if x.Source != source || !ok {
			continue
		}
		i := slices.IndexFunc(out, func(k Track) bool { return k.Node == x.Node && k.Index == x.Index })
		if i < 0 {
			i, out = len(out), append(out, Track{Node: x.Node, Index: x.Index})
		}
		out[i].At, out[i].Values = append(out[i].At, x.At), append(out[i].Values, v)
	}
	slices.SortFunc(out, func(a, b Track) int { return cmp.Or(cmp.Compare(a.Node, b.Node), a.Index-b.Index) })
	return out
}

// Share is the share of the GPU readings in the window at which any of these gauges
// is above 0; ok is false where no reading tells the first of them.
func (t Telemetry) Share(gauges ...string) (share float64, ok bool) {
	n, above := 0, 0
	for _, x := range t.Readings {
		if _, has := x.Values[gauges[0]]; x.Source != SourceGPU || !has || !t.Window.Contains(x.At) {
			continue
		}
		n++
		if slices.ContainsFunc(gauges, func(g string) bool { return x.Values[g] > 0 }) {
			above++
		}
	}
	return float64(above) / float64(max(1, n)), n > 0
}

// Devices counts the GPUs that were read.
func (t Telemetry) Devices() int {
	seen := map[string]bool{}
	for _, x := range t.Readings {
		if x.Source == SourceGPU && x.Error == "" {
			seen[x.Node+"/"+strconv.Itoa(x.Index)] = true
		}
	}
	return len(seen)
}

// GPU names the device that the track is of.
func (k Track) GPU() string {
	if k.Node != "" {
		return fmt.Sprintf("GPU %d of %s", k.Index, k.Node)
	}
	return fmt.Sprintf("GPU %d", k.Index)
}

// maxGap is how far apart two readings may be for the time between them to count.
func (k Track) maxGap() time.Duration {
	gaps := make([]time.Duration, 0, len(k.At))
	for i := 1; i < len(k.At); i++ {
		gaps = append(gaps, k.At[i]-k.At[i-1])
	}
	if len(gaps) == 0 {
		return 0
	}
	slices.Sort(gaps)
	return gapFactor * gaps[len(gaps)/2]
}

// Over returns the mean of the track over a window, straight lines between the
// readings, and the share of the window that readings cover.
func (k Track) Over(w Span) (mean, covered float64) {
	most, sum, span := k.maxGap(), 0.0, time.Duration(0)
	for i := 1; i < len(k.At); i++ {
		a, b := k.At[i-1], k.At[i]
		from, to := max(a, w.From), min(b, w.To)
		if b-a > most || from >= to {
			continue
		}
		line := func(at time.Duration) float64 {
			return k.Values[i-1] + (k.Values[i]-k.Values[i-1])*float64(at-a)/float64(b-a)
		}
		sum += (line(from) + line(to)) / 2 * (to - from).Seconds()
		span += to - from
	}
	if span == 0 {
		return 0, 0
	}
	return sum / span.Seconds(), float64(span) / float64(w.To-w.From)
}

// Mean is the mean over a window; ok is false where readings are too few for one.
func (k Track) Mean(w Span) (v float64, ok bool) {
	n := 0
	for _, at := range k.At {
		if w.Contains(at) {
			n++
		}
	}
	v, covered := k.Over(w)
	return v, n >= minReadings && covered >= minCovered
}

// SumOfMeans adds the means of tracks up and counts them; ok is false where one of them
// has none.
func (all Tracks) SumOfMeans(w Span) (sum float64, n int, ok bool) {
	for _, k := range all {
		v, ok := k.Mean(w)
		if !ok {
			return 0, len(all), false
		}
		sum += v
	}
	return sum, len(all), len(all) > 0
}

// Max is the largest reading within a window.
func (k Track) Max(w Span) (v float64, ok bool) {
	for i, at := range k.At {
		if w.Contains(at) && (!ok || k.Values[i] > v) {
			v, ok = k.Values[i], true
		}
	}
	return v, ok
}

// Max is the largest reading within a window, over all tracks.
func (all Tracks) Max(w Span) (v float64, ok bool) {
	for _, k := range all {
		if x, has := k.Max(w); has && (!ok || x > v) {
			v, ok = x, true
		}
	}
	return v, ok
}

// MaxSum is the largest sum over tracks within a window, each track keeping
// its last reading until the next.
func (all Tracks) MaxSum(w Span) (v float64, ok bool) {
	type change struct {
		at    time.Duration
		track int
		v     float64
	}
	var changes []change
	for i, k := range all {
		for j, at := range k.At {
			changes = append(changes, change{at, i, k.Values[j]})
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	last, sum := make([]float64, len(all)), 0.0
	for i, c := range changes {
		sum += c.v - last[c.track]
		last[c.track] = c.v
		same := i+1 < len(changes) && changes[i+1].at == c.at
		if w.Contains(c.at) && !same && (!ok || sum > v) {
			v, ok = sum, true
		}
	}
	return v, ok
}

// growth is how much a counter grew over the readings, a restart of the source
// counted as one from zero; ok is false where the readings do not hold all of the span.
func (k Track) growth(over Span) (v float64, ok bool) {
	n := len(k.At)
	if n < 2 || k.At[0] > over.From || k.At[n-1] < over.To-k.maxGap() {
		return 0, false
	}
	for i := 1; i < n; i++ {
		if d := k.Values[i] - k.Values[i-1]; d >= 0 {
			v += d
		} else {
			v += k.Values[i]
		}
	}
	return v, true
}

// SumOfGrowths adds up how much the counters of all tracks grew.
func (all Tracks) SumOfGrowths(over Span) (sum float64, ok bool) {
	for _, k := range all {
		v, ok := k.growth(over)
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

// Series returns the moments of a gauge in the order of time, one an instant at
// which any of them was read.
func Series(readings []Reading, source, name string) []Moment {
	var out []Moment
	type place struct {
		node  string
		index int
	}
	last := map[place]float64{}
	for _, x := range slices.SortedStableFunc(slices.Values(readings), func(a, b Reading) int { return cmp.Compare(a.At, b.At) }) {
		v, ok := x.Values[name]
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
