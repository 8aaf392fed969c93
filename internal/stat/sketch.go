package stat

import (
	"iter"
	"math"
	"slices"
)

// Sketch counts values in buckets no wider than 2^-14 of the value, so that it
// holds any number of them in a few MB. Number, mean, standard deviation, least
// and greatest are exact; a quantile is off by SketchError of its value at most.
// The zero value is empty. Its fields are exported so that it can be stored.
type Sketch struct {
	N        int
	Min, Max float64
	Pivot    float64    // what the sums are of differences from, so that no digits cancel
	Sum      [2]float64 // of differences, and what its rounding lost
	Squares  [2]float64
	Pages    map[uint16][]uint64 // counts of the buckets of one power of two

	last     []uint64 // the page that was counted in before
	lastPage uint16
}

const (
	sketchBits = 14 // of the mantissa that tell buckets apart
	pageSize   = 1 << sketchBits
)

// SketchError is how far a quantile may be off, as a share of its value: half a
// bucket.
const SketchError = 1.0 / (2 * pageSize)

// Add counts a value.
func (s *Sketch) Add(v float64) { s.AddN(v, 1) }

// AddN counts a value n times.
func (s *Sketch) AddN(v float64, n int) {
	if n <= 0 || math.IsNaN(v) {
		return
	}
	if s.N == 0 {
		s.Min, s.Max, s.Pivot, s.Pages = v, v, v, map[uint16][]uint64{}
	}
	s.N += n
	s.Min, s.Max = min(s.Min, v), max(s.Max, v)
	d := v - s.Pivot
	addTo(&s.Sum, float64(n)*d)
	addTo(&s.Squares, float64(n)*d*d)
	page, i := sketchBucket(v)
	if s.last == nil || page != s.lastPage {
		if s.Pages[page] == nil {
			s.Pages[page] = make([]uint64, pageSize)
		}
		s.last, s.lastPage = s.Pages[page], page
	}
	s.last[i] += uint64(n)
}

// addTo adds to a sum and keeps what rounding loses.
func addTo(sum *[2]float64, v float64) {
	t := Total{sum[0], sum[1]}
	t.Add(v)
	sum[0], sum[1] = t.sum, t.c
}

// sketchBucket is the place of a value: the order of places is that of values.
func sketchBucket(v float64) (page uint16, i int) {
	b := math.Float64bits(v)
	if b>>63 != 0 {
		b = ^b
	} else {
		b |= 1 << 63
	}
	b >>= 52 - sketchBits
	return uint16(b >> sketchBits), int(b & (pageSize - 1))
}

// sketchValue is the middle of a bucket; of the one around 0 it is 0.
func sketchValue(page uint16, i int) float64 {
	b := (uint64(page)<<sketchBits|uint64(i))<<(52-sketchBits) | 1<<(52-sketchBits-1)
	if b>>63 != 0 {
		b &^= 1 << 63
	} else {
		b = ^b
	}
	v := math.Float64frombits(b)
	if math.Abs(v) < 1e-300 {
		return 0
	}
	return v
}

// Mean returns the mean; NaN of no values.
func (s *Sketch) Mean() float64 {
	return s.Pivot + (s.Sum[0]+s.Sum[1])/float64(s.N)
}

// StdDev returns the population standard deviation.
func (s *Sketch) StdDev() float64 {
	n := float64(s.N)
	d := (s.Sum[0] + s.Sum[1]) / n
	return math.Sqrt(max(0, (s.Squares[0]+s.Squares[1])/n-d*d))
}

// Quantile returns the q-quantile (0..1) as the function does: by linear
// interpolation between order statistics; NaN of no values.
func (s *Sketch) Quantile(q float64) float64 {
	rank := float64(s.N-1) * min(max(q, 0), 1)
	i := int(rank)
	v := s.AtRanks(i, i+1)
	return v[0] + (rank-float64(i))*(v[1]-v[0])
}

// AtRanks returns the values of these ranks, from 0 on and ascending, the greatest
// for those beyond the end; NaN of no values.
func (s *Sketch) AtRanks(ranks ...int) []float64 {
	out := make([]float64, len(ranks))
	below, next := 0, 0
	for _, page := range s.pages() {
		for i, n := range s.Pages[page] {
			below += int(n)
			for ; n > 0 && next < len(ranks) && ranks[next] < below; next++ {
				out[next] = min(max(sketchValue(page, i), s.Min), s.Max)
			}
		}
	}
	for ; next < len(ranks); next++ {
		out[next] = s.Max
	}
	for i, r := range ranks {
		switch {
		case s.N == 0:
			out[i] = math.NaN()
		case r <= 0:
			out[i] = s.Min
		case r >= s.N-1:
			out[i] = s.Max
		}
	}
	return out
}

func (s *Sketch) pages() []uint16 {
	all := make([]uint16, 0, len(s.Pages))
	for page := range s.Pages {
		all = append(all, page)
	}
	slices.Sort(all)
	return all
}

// Clone returns a copy that shares nothing.
func (s *Sketch) Clone() *Sketch {
	out := *s
	out.last = nil
	out.Pages = make(map[uint16][]uint64, len(s.Pages))
	for page, counts := range s.Pages {
		out.Pages[page] = slices.Clone(counts)
	}
	return &out
}

// QuantileCI returns the interval of QuantileCI for the q-quantile.
func (s *Sketch) QuantileCI(q, confidence float64) (lo, hi float64, ok bool) {
	l, u, ok := quantileRanks(s.N, q, confidence)
	if !ok {
		return math.NaN(), math.NaN(), false
	}
	x := s.AtRanks(l-1, u-1)
	return x[0], x[1], true
}

// SampledClusters is what an interval needs of samples that came in groups and are
// in a Sketch: sums over all groups, and some of the groups whole.
type SampledClusters struct {
	All    *Sketch
	Groups int        // with samples
	Sums   [3]float64 // over groups: sum of samples squared, times their number, their number squared; less Pivot
	Some   Clusters
}

// AddGroup takes the samples of a group into the sums, which are of differences
// from the sketch's pivot; the sketch must have them already.
func (c *SampledClusters) AddGroup(sum float64, n int) {
	if n == 0 {
		return
	}
	k := float64(n)
	s := sum - c.All.Pivot*k
	c.Groups++
	c.Sums[0] += s * s
	c.Sums[1] += s * k
	c.Sums[2] += k * k
}

// MeanCI is that of Clusters, of all groups.
func (c *SampledClusters) MeanCI(confidence float64) (lo, hi float64, ok bool) {
	if c.Groups < 2 {
		return math.NaN(), math.NaN(), false
	}
	mean, g := c.All.Mean(), float64(c.Groups)
	d := mean - c.All.Pivot
	squares := max(0, c.Sums[0]-2*d*c.Sums[1]+d*d*c.Sums[2])
	half := StudentQuantile((1+confidence)/2, g-1) * math.Sqrt(g/(g-1)*squares) / float64(c.All.N)
	return mean - half, mean + half, true
}

// QuantileCI is that of Clusters. The variance between groups is that of the
// groups that are there whole, for as many groups as there are.
func (c *SampledClusters) QuantileCI(q, confidence float64) (lo, hi float64, ok bool) {
	some := c.Some.groups()
	if some < 2 || math.Pow(max(q, 1-q), float64(c.Groups)) > (1-confidence)/2 {
		return math.NaN(), math.NaN(), false
	}
	half, ok := c.Some.shareHalf(c.All.Quantile(q), confidence)
	half *= math.Sqrt(float64(some) / float64(c.Groups))
	if !ok || q-half <= 0 || q+half >= 1 {
		return math.NaN(), math.NaN(), false
	}
	return c.All.Quantile(q - half), c.All.Quantile(q + half), true
}

// All yields the values in ascending order, each with how often it is there.
func (s *Sketch) All() iter.Seq2[float64, int] {
	return func(yield func(float64, int) bool) {
		for _, page := range s.pages() {
			for i, n := range s.Pages[page] {
				if n > 0 && !yield(min(max(sketchValue(page, i), s.Min), s.Max), int(n)) {
					return
				}
			}
		}
	}
}

// Replace returns a sketch with the values of others in the place of those of without,
// which s must have; nil stands for none. It tells quantiles and the number
// alone.
func (s *Sketch) Replace(without *Sketch, with ...*Sketch) *Sketch {
	out := s.Clone()
	if out.Pages == nil {
		out.Pages = map[uint16][]uint64{}
	}
	if without != nil {
		out.N -= without.N
		for page, counts := range without.Pages {
			for i, n := range counts {
				if n > 0 {
					out.Pages[page][i] -= n
				}
			}
		}
	}
	for _, o := range with {
		out.N += o.N
		for page, counts := range o.Pages {
			if out.Pages[page] == nil {
				out.Pages[page] = make([]uint64, pageSize)
			}
			for i, n := range counts {
				out.Pages[page][i] += n
			}
		}
	}
	out.Min, out.Max = math.Inf(-1), math.Inf(1)
	low, high := math.NaN(), math.NaN()
	for v := range out.All() {
		if high = v; math.IsNaN(low) {
			low = v
		}
	}
	out.Min, out.Max = low, high
	return out
}
