package stat

import "math"

// MeanCI returns Student's interval, at the given confidence, for the mean of
// n independent values whose mean and population standard deviation (StdDev)
// are given. ok is false for fewer than two.
func MeanCI(mean, std float64, n int, confidence float64) (lo, hi float64, ok bool) {
	if n < 2 {
		return math.NaN(), math.NaN(), false
	}
	free := float64(n - 1)
	half := StudentQuantile((1+confidence)/2, free) * std / math.Sqrt(free)
	return mean - half, mean + half, true
}

// Positive turns mean ± half, the interval of the mean of a quantity that cannot be
// negative, into one on the scale of logarithms, where half is half/mean to first
// order: mean·e^(±half/mean). Near the mean the two agree; far from it this one ends above
// zero, and reaches further up, as such quantities do. Zeros alone have themselves.
func Positive(mean, half float64) (lo, hi float64) {
	if !(mean > 0) {
		return mean - half, mean + half
	}
	return mean * math.Exp(-half/mean), mean * math.Exp(half/mean)
}

// Proportion does the same for a share of a whole, on the scale of its log odds: the
// interval ends between 0 and 1.
func Proportion(mean, half float64) (lo, hi float64) {
	if !(mean > 0 && mean < 1) {
		return max(0, mean-half), min(1, mean+half)
	}
	odds, reach := math.Log(mean/(1-mean)), half/(mean*(1-mean))
	share := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	return share(odds - reach), share(odds + reach)
}

// Clusters are samples that came in groups, as the gaps between a call's
// tokens do: those of a group resemble each other, so it is the groups that
// count when an interval is made, and not their samples. Group i ends before
// Ends[i]; a group may be empty.
type Clusters struct {
	Samples []float64
	Ends    []int
}

// MeanCI returns an interval for the mean of all samples, which is given, from
// the variance between groups (the mean is a ratio of two sums over groups,
// linearised). ok is false for fewer than two groups.
func (c Clusters) MeanCI(mean, confidence float64) (lo, hi float64, ok bool) {
	half, ok := c.half(confidence, func(x []float64) float64 { return Sum(x) - mean*float64(len(x)) })
	if !ok {
		return math.NaN(), math.NaN(), false
	}
	return mean - half, mean + half, true
}

// QuantileCI returns Woodruff's interval for the q-quantile of all samples:
// the share of samples up to the quantile gets an interval from the variance
// between groups, and the quantiles at its ends are the answer. sorted are the
// samples in ascending order. ok is false when an end of the share's interval
// would lie beyond all samples, and for fewer groups than QuantileCI needs
// samples: a group's may all be alike, and the variance between a few groups,
// of which one holds the tail, comes out far too small.
func (c Clusters) QuantileCI(sorted []float64, q, confidence float64) (lo, hi float64, ok bool) {
	if math.Pow(max(q, 1-q), float64(c.groups())) > (1-confidence)/2 {
		return math.NaN(), math.NaN(), false
	}
	half, ok := c.shareHalf(Quantile(sorted, q), confidence)
	if !ok || q-half <= 0 || q+half >= 1 {
		return math.NaN(), math.NaN(), false
	}
	return Quantile(sorted, q-half), Quantile(sorted, q+half), true
}

// shareHalf returns half the width of the interval of the share of samples up to a
// value.
func (c Clusters) shareHalf(at, confidence float64) (float64, bool) {
	upTo := func(x []float64) float64 {
		n := 0
		for _, v := range x {
			if v <= at {
				n++
			}
		}
		return float64(n)
	}
	share := upTo(c.Samples) / float64(len(c.Samples))
	return c.half(confidence, func(x []float64) float64 { return upTo(x) - share*float64(len(x)) })
}

// groups returns how many groups have samples.
func (c Clusters) groups() int {
	n, from := 0, 0
	for _, end := range c.Ends {
		if end > from {
			n++
		}
		from = end
	}
	return n
}

// half returns half the width of the interval of a ratio to the number of
// samples, of which residual gives the deviation that a group contributes.
func (c Clusters) half(confidence float64, residual func([]float64) float64) (float64, bool) {
	from := 0
	var squares Total
	for _, end := range c.Ends {
		if end > from {
			r := residual(c.Samples[from:end])
			squares.Add(r * r)
		}
		from = end
	}
	groups := c.groups()
	if groups < 2 {
		return math.NaN(), false
	}
	g := float64(groups)
	variance := g / (g - 1) * squares.Sum()
	return StudentQuantile((1+confidence)/2, g-1) * math.Sqrt(variance) / float64(len(c.Samples)), true
}
