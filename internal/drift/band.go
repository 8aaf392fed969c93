package drift

import (
	"cmp"
	"math"
	"slices"
)

const (
	threshold    = 3.0  // standard deviations from the median to the edge of a band of many points
	fewestBefore = 6    // points that give a band
	mostBefore   = 30   // points that the rolling median looks back
	next         = 3    // points whose median is held against the band
	short        = 12   // points below which every place is looked at in this way
	fewForMAD    = 10   // points below which their own intervals bound the noise from below
	normal975    = 1.96 // quantile of the standard normal
)

// shifts adds the changes that a band shows: in a short series in every segment, in a long
// one among the newest points, which E-divisive cannot tell from chance yet.
func shifts(s series, cuts []cut, o Options) []cut {
	n := len(s.x)
	e := ends(cuts, n)
	all := slices.Clone(cuts)
	for i, from := range e[:len(e)-1] {
		to, first := e[i+1], from
		if n >= short {
			first = n - 2*next
		}
		all = append(all, s.shifts(from, to, first, o.Least)...)
	}
	slices.SortFunc(all, func(a, b cut) int { return cmp.Compare(a.at, b.at) })
	return all
}

// shifts are the changes within a segment, none before the place first. After each, the band
// begins anew.
func (s series) shifts(from, to, first int, least float64) []cut {
	var all []cut
	for i := max(from+fewestBefore, first); i < to; i++ {
		if !s.shifted(from, i, to, least) {
			continue
		}
		at := placed(s.x, max(from, i-mostBefore), i, i+next, min(to, i+2*next))
		all = append(all, cut{at: at, method: Band})
		from, i = at, at+fewestBefore-1
	}
	return all
}

// shifted says whether the points from at on lie outside of the band of those before: their
// median, or, of the newest one or two of the series, all. So one outlier is no shift, unless
// it is the newest point.
func (s series) shifted(from, at, to int, least float64) bool {
	from = max(from, at-mostBefore)
	m := median(s.x[from:at])
	reach := max(s.reach(from, at), least*math.Abs(m))
	after := s.x[at:min(at+next, to)]
	if len(after) == next {
		return math.Abs(median(after)-m) > reach
	}
	above, below := true, true
	for _, v := range after {
		above, below = above && v-m > reach, below && m-v > reach
	}
	return to == len(s.x) && (above || below)
}

// placed is the place from first on and before last where the medians of both sides, which
// begin at from and end before to, leave the least distances.
func placed(x []float64, from, first, last, to int) int {
	best, least := 0, math.Inf(1)
	for i := max(first, from+1); i < min(last, to); i++ {
		if d := distances(x[from:i]) + distances(x[i:to]); d < least {
			best, least = i, d
		}
	}
	return best
}

// reach is how far the edges of the band of some points are from their median. The fewer points,
// the less their MAD knows of the noise, and the wider the band: so wide that a next normal
// value lies outside of it in about one case of a hundred, and beyond 20 points in fewer.
func (s series) reach(from, to int) float64 {
	return threshold * (1 + 4.5/float64(to-from-2)) * s.noise(from, to)
}

// noise is the standard deviation of some points as their MAD tells it. Of a few points, which
// may agree by chance, it is at least that of a single point by its own interval.
func (s series) noise(from, to int) float64 {
	x := s.x[from:to]
	noise := deviation(x)
	if len(x) >= fewForMAD {
		return noise
	}
	var own []float64
	for _, v := range s.own[from:to] {
		if !math.IsNaN(v) {
			own = append(own, v)
		}
	}
	if len(own) == 0 {
		return noise
	}
	return max(noise, median(own))
}

// fewMAD are the factors by which the MAD of so few points is too small, from two points on
// (Croux and Rousseeuw 1992).
var fewMAD = []float64{1.196, 1.495, 1.363, 1.206, 1.200, 1.140, 1.129, 1.107}

// deviation is the standard deviation of normal values of this MAD.
func deviation(x []float64) float64 {
	n := len(x)
	if n < 2 {
		return 0
	}
	factor := float64(n) / (float64(n) - 0.8)
	if n-2 < len(fewMAD) {
		factor = fewMAD[n-2]
	}
	m := median(x)
	away := make([]float64, n)
	for i, v := range x {
		away[i] = math.Abs(v - m)
	}
	return 1.4826 * factor * median(away)
}

// distances is the sum of the distances from the median.
func distances(x []float64) (sum float64) {
	m := median(x)
	for _, v := range x {
		sum += math.Abs(v - m)
	}
	return sum
}
