package drift

import (
	"math"
	"slices"
)

// nearest is how many points on either side of a change tell its size: enough, and those
// closest to it.
const nearest = 100

// merge takes out the smallest change, by its share of the figure before, until all are as
// large as the least that is reported. Taking one out joins two segments, so that its
// neighbours are of another size then.
func merge(x []float64, cuts []cut, least float64) []cut {
	cuts = slices.Clone(cuts)
	sizes := make([]float64, len(cuts))
	size := func(i int) {
		if i >= 0 && i < len(cuts) {
			e := ends(cuts, len(x))
			sizes[i] = magnitude(x[e[i]:cuts[i].at], x[cuts[i].at:e[i+2]])
		}
	}
	for i := range cuts {
		size(i)
	}
	for len(cuts) > 0 {
		smallest := slices.Index(sizes, slices.Min(sizes))
		if sizes[smallest] >= least {
			break
		}
		cuts, sizes = slices.Delete(cuts, smallest, smallest+1), slices.Delete(sizes, smallest, smallest+1)
		size(smallest - 1)
		size(smallest)
	}
	return cuts
}

// magnitude is the size of a relative change; of one that has no relative size, as from zero,
// it is without bound, and of none at all zero. None is also what has an interval that holds
// zero: the points before and after may be unlike, as when they scatter more, and not moved.
func magnitude(before, after []float64) float64 {
	r, v := relative(before, after)
	switch {
	case v != nil && v.Low <= 0 && v.High >= 0:
		return 0
	case r != nil:
		return math.Abs(*r)
	case median(before) == median(after):
		return 0
	}
	return math.Inf(1)
}

// relative is the relative change from points before to points after, with its 95 % interval:
// the median of all ratios of one after to one before, less 1, and the ratios that the test of
// Mann and Whitney does not refuse (Hodges and Lehmann 1963). Where values are not all above
// zero it is that of differences, as a share of the size of the median before; nil where that is zero. Too
// few points have no interval.
func relative(before, after []float64) (*float64, *Interval) {
	before, after = before[max(0, len(before)-nearest):], after[:min(len(after), nearest)]
	base := math.Abs(median(before))
	ratios := slices.Min(before) > 0 && slices.Min(after) > 0
	if !ratios && base == 0 {
		return nil, nil
	}
	pairs := make([]float64, 0, len(before)*len(after))
	for _, b := range before {
		for _, a := range after {
			if ratios {
				pairs = append(pairs, a/b-1)
			} else {
				pairs = append(pairs, (a-b)/base)
			}
		}
	}
	slices.Sort(pairs)
	m := median(pairs)
	k := refused(len(before), len(after))
	if k < 0 {
		return &m, nil
	}
	return &m, &Interval{pairs[k], pairs[len(pairs)-1-k]}
}

// fewPairs is how many points, of both sides together, have their ranks counted exactly.
const fewPairs = 40

// refused is how many pairs at either end the test of Mann and Whitney refuses at 95 %; -1
// where the points are too few to refuse any, so that no pair bounds the change.
func refused(n, m int) int {
	if n+m > fewPairs {
		nm := float64(n) * float64(m)
		return int(math.Floor(nm/2-normal975*math.Sqrt(nm*float64(n+m+1)/12))) - 1
	}
	ways := rankSums(n, m)
	all := 0.0
	for _, w := range ways {
		all += w
	}
	k, below := -1, 0.0
	for u, w := range ways {
		if below += w; below > 0.025*all {
			break
		}
		k = u
	}
	return k
}

// rankSums counts the orders of n and m values by how many pairs have the second value
// first, without ties: the coefficients of the Gaussian binomial.
func rankSums(n, m int) []float64 {
	ways := make([]float64, n*m+1)
	ways[0] = 1
	for i := 1; i <= n; i++ { // times (1 - q^(m+i)) / (1 - q^i)
		for u := len(ways) - 1; u >= m+i; u-- {
			ways[u] -= ways[u-m-i]
		}
		for u := i; u < len(ways); u++ {
			ways[u] += ways[u-i]
		}
	}
	return ways
}
