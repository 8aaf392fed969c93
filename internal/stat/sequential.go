package stat

import (
	"math"
	"sync"
)

// sequential are the constants that were found: each takes milliseconds.
var sequential sync.Map // plan -> float64

type plan struct {
	least, most int
	confidence  float64
}

// SequentialConfidence is the confidence at which two configurations are to be
// compared when there are now launches of each, if the looks are after least, least+1 ...
// most launches of each and whoever looks may stop at any of them: all intervals then hold
// the truth together with the given confidence, so that the one at which it was stopped
// does (repeated confidence intervals; Jennison and Turnbull 1989). Of one look it is the
// confidence itself.
//
// It is found for a difference whose error is normal, by integrating from look to look
// (Armitage, McPherson and Rowe 1969), with critical values that fall as the fourth root of
// the launches (Wang and Tsiatis 1987): early looks, when few launches tell the spread, ask
// for more. For a few launches, whose spread is estimated with the difference, Student's
// quantile at the same level takes the place of the normal one.
func SequentialConfidence(least, most, now int, confidence float64) float64 {
	if most <= least {
		return confidence
	}
	now = max(least, min(now, most))
	key := plan{least, most, confidence}
	c, ok := sequential.Load(key)
	if !ok {
		alpha := 1 - confidence
		low, high := NormalQuantile(1-alpha/2), NormalQuantile(1-alpha/2/float64(most-least+1))
		for range 16 {
			if c := (low + high) / 2; crosses(c, least, most) > alpha {
				low = c
			} else {
				high = c
			}
		}
		c = high
		sequential.Store(key, c)
	}
	return 1 - math.Erfc(critical(c.(float64), now, most)/math.Sqrt2)
}

// fall is the power of the launches by which critical values fall.
const fall = 0.25

// critical is the critical value after n of most launches, where it is c after the last.
func critical(c float64, n, most int) float64 {
	return c * math.Pow(float64(n)/float64(most), -fall)
}

// NormalCDF is the distribution function of the standard normal.
func NormalCDF(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }

// NormalQuantile is the p-quantile of the standard normal.
func NormalQuantile(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }

// crosses is the chance that the sum of n normal numbers, for an n from least to most,
// is further from 0 than its critical value times sqrt(n).
func crosses(c float64, least, most int) float64 {
	upper := func(z float64) float64 { return NormalCDF(-z) }
	reach := func(n int) float64 { return critical(c, n, most) * math.Sqrt(float64(n)) }
	chance := 2 * upper(critical(c, least, most))
	// The density of the sum where it has not crossed, at even distances from 0 to the
	// bound: it is symmetric. Simpson's rule adds it up.
	const step = 0.35 // of the numbers' standard deviation, at most
	bound := reach(least)
	at := grid(bound, step)
	density := make([]float64, len(at))
	for i, s := range at {
		density[i] = math.Exp(-s*s/2/float64(least)) / math.Sqrt(2*math.Pi*float64(least))
	}
	for n := least + 1; n <= most; n++ {
		next := reach(n)
		chance += 2 * simpson(bound, len(at), func(i int) float64 { return density[i] * (upper(next-at[i]) + upper(next+at[i])) })
		to := grid(next, step)
		moved := make([]float64, len(to))
		for j, s := range to {
			moved[j] = simpson(bound, len(at), func(i int) float64 {
				near, far := s-at[i], s+at[i]
				return density[i] * (math.Exp(-near*near/2) + math.Exp(-far*far/2)) / math.Sqrt(2*math.Pi)
			})
		}
		bound, at, density = next, to, moved
	}
	return chance
}

// grid is an odd number of places from 0 to a bound.
func grid(bound, step float64) []float64 {
	n := 2 * int(math.Ceil(bound/step/2))
	out := make([]float64, n+1)
	for i := range out {
		out[i] = bound * float64(i) / float64(n)
	}
	return out
}

// simpson is the integral from 0 to a bound of what has the value f(i) at place i of n.
func simpson(bound float64, n int, f func(int) float64) float64 {
	sum := f(0) + f(n-1)
	for i := 1; i < n-1; i++ {
		sum += f(i) * float64(2+2*(i%2))
	}
	return sum * bound / float64(n-1) / 3
}
