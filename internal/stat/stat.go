// Package stat holds pure functions over numbers: quantiles and means with
// their intervals, named random streams, the random numbers of Python programs,
// and the distance between names.
//
//	s := slices.Sorted(slices.Values(latencies))
//	p99 := stat.Quantile(s, 0.99)
//	lo, hi, ok := stat.QuantileCI(s, 0.99, 0.95)
//
// Invariants: nothing here reads a clock, draws from a global source, or
// changes its arguments. Percentiles are never averaged.
package stat

import (
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
)

// Stream returns the random stream named purpose of a seed. Each purpose has
// its own stream, so a new draw for one never shifts another's.
func Stream(seed uint64, purpose string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(purpose)) // never fails
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// Mean returns the arithmetic mean; NaN for no values.
func Mean(x []float64) float64 {
	return Sum(x) / float64(len(x))
}

// Sum adds with Neumaier's compensation, so that a million small terms keep
// their digits and the order of the terms does not show.
func Sum(x []float64) float64 {
	var t Total
	for _, v := range x {
		t.Add(v)
	}
	return t.Sum()
}

// Total is a sum that grows, compensated as Sum's.
type Total struct{ sum, c float64 }

// Add adds a term.
func (t *Total) Add(v float64) {
	sum := t.sum + v
	if math.Abs(t.sum) >= math.Abs(v) {
		t.c += (t.sum - sum) + v
	} else {
		t.c += (v - sum) + t.sum
	}
	t.sum = sum
}

// Sum returns the sum so far.
func (t *Total) Sum() float64 { return t.sum + t.c }

// StdDev returns the population standard deviation (divisor n, as numpy's
// default and so as the field's clients print it); NaN for no values.
func StdDev(x []float64) float64 {
	m := Mean(x)
	var squares Total
	for _, v := range x {
		squares.Add((v - m) * (v - m))
	}
	return math.Sqrt(squares.Sum() / float64(len(x)))
}

// Pooled returns the sum of the squares by which values lie from the mean of their group, its degrees of freedom, and of
// how many values it is: those of groups of more than one. Groups are added in the order of their names.
func Pooled(groups map[string][]float64) (squares, free float64, n int) {
	for _, k := range slices.Sorted(maps.Keys(groups)) {
		if g := groups[k]; len(g) > 1 {
			sd := StdDev(g)
			squares += sd * sd * float64(len(g))
			free += float64(len(g) - 1)
			n += len(g)
		}
	}
	return squares, free, n
}

// Quantile returns the q-quantile (0..1) of ascending values by linear
// interpolation between order statistics: h = (n-1)q, numpy's default and
// R's type 7. NaN for no values.
func Quantile(sorted []float64, q float64) float64 {
	n := len(sorted)
	if n == 0 || math.IsNaN(q) {
		return math.NaN()
	}
	h := float64(n-1) * min(max(q, 0), 1)
	i := int(h)
	if i+1 >= n {
		return sorted[n-1]
	}
	// v[i] + f*(v[i+1]-v[i]) is exact at both ends and monotone in f.
	return sorted[i] + (h-float64(i))*(sorted[i+1]-sorted[i])
}

// QuantileCI returns a distribution-free interval for the q-quantile at the
// given confidence, from order statistics: the ranks l < u with
// P(l <= Binomial(n, q) < u) >= confidence. ok is false when n is too small
// for both ends to exist.
func QuantileCI(sorted []float64, q, confidence float64) (lo, hi float64, ok bool) {
	l, u, ok := quantileRanks(len(sorted), q, confidence)
	if !ok {
		return math.NaN(), math.NaN(), false
	}
	return sorted[l-1], sorted[u-1], true
}

// quantileRanks are the ranks of that interval among n values, from 1 on.
func quantileRanks(n int, q, confidence float64) (l, u int, ok bool) {
	if n == 0 || q <= 0 || q >= 1 {
		return 0, 0, false
	}
	tail := (1 - confidence) / 2
	// l: largest rank with P(B < l) <= tail; u: smallest with P(B >= u) <= tail.
	// What lies 12 standard deviations below the mean adds nothing a float holds.
	mean := float64(n) * q
	first := max(0, int(mean-12*math.Sqrt(mean*(1-q))-12))
	cum, pmf := 0.0, binomialPMF(n, first, q) // P(B <= k-1), P(B = k)
	for k := first; k <= n; k++ {
		if cum <= tail {
			l = k
		}
		if 1-cum <= tail {
			u = k
			break
		}
		cum += pmf
		pmf *= float64(n-k) / float64(k+1) * q / (1 - q)
	}
	return l, u, l >= 1 && u >= 1 && u <= n
}

func binomialPMF(n, k int, p float64) float64 {
	ln := func(x int) float64 { v, _ := math.Lgamma(float64(x) + 1); return v }
	return math.Exp(ln(n) - ln(k) - ln(n-k) + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
}

// MinSamples returns how many samples a q-quantile needs before its estimate
// is worth printing without a mark: the smallest n for which the upper end of
// the 99 % order-statistic interval exists, n = ceil(ln 0.01 / ln q) for the
// upper half (90 % -> 44, 95 % -> 90, 99 % -> 459).
func MinSamples(q float64) int {
	if q < 0.5 {
		q = 1 - q
	}
	if q >= 1 {
		return math.MaxInt
	}
	return int(math.Ceil(math.Log(0.01) / math.Log(q)))
}
