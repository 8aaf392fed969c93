package stat

import (
	"errors"
	"math"
	"sort"
)

// Interval is an estimate with the ends of its interval.
type Interval struct{ Value, Low, High float64 }

// Why there is no interval.
var (
	ErrFewBlocks = errors.New("too few blocks of time have samples")
	ErrDrift     = errors.New("it drifts along the run, so that its blocks of time are not alike")
	ErrTail      = errors.New("too few independent samples lie beyond it")
	ErrNoRatio   = errors.New("a figure is not above zero")
	ErrOneEach   = errors.New("there is one figure on each side")
)

// MinBlocks is the least number of blocks that an interval is made of.
const MinBlocks = 10

// Blocks are samples in the order of time, cut into blocks of equal time:
// block i ends before Ends[i]. Samples of one block resemble each other, as the
// latencies of calls that met the same batch do, so the blocks count and not
// the samples.
//
// The method is that of batch means: a figure is a ratio of two sums over
// blocks, linearised, with Student's quantile for so many blocks. Neighbouring
// blocks are joined two by two until they are no more alike than chance makes
// them (the lag-1 correlation of their residuals, one-sided at 5 %), and what
// correlation is left widens the interval. Where it does not end before
// MinBlocks the figure drifts, as the TTFT of a burst or of an overloaded
// server does, and no interval can be had from one run.
//
// A bootstrap over blocks gives the same for means, takes thousands of passes,
// and for a quantile near the largest sample is far too narrow: it never draws
// what lies beyond.
type Blocks Clusters

// Mean returns the mean of all samples with its interval, and of how many
// blocks that is.
func (b Blocks) Mean(confidence float64) (_ Interval, blocks int, err error) {
	m := Mean(b.Samples)
	sums, counts := b.sums(func(x []float64) float64 { return Sum(x) })
	se, blocks, err := ratioError(sums, counts, m)
	if err != nil {
		return Interval{Value: m}, blocks, err
	}
	return aroundLog(m, se, studentQuantile((1+confidence)/2, float64(blocks-1))), blocks, nil
}

// Quantile returns the q-quantile of all samples, which sorted has in ascending
// order, by Woodruff's method: the share of samples up to the quantile gets an
// interval on the scale of its log odds, where it is nearly normal and cannot
// leave (0, 1), and the quantiles at its ends are the answer. There is none
// when so few independent samples lie beyond that no order statistic bounds the
// quantile.
func (b Blocks) Quantile(sorted []float64, q, confidence float64) (_ Interval, blocks int, err error) {
	at := Quantile(sorted, q)
	out := Interval{Value: at}
	if !(q > 0 && q < 1) {
		return out, 0, ErrTail
	}
	share := float64(sort.Search(len(sorted), func(i int) bool { return sorted[i] > at })) / float64(len(sorted))
	sums, counts := b.sums(func(x []float64) float64 {
		n := 0
		for _, v := range x {
			if v <= at {
				n++
			}
		}
		return float64(n)
	})
	se, blocks, err := ratioError(sums, counts, share)
	if err != nil {
		return out, blocks, err
	}
	independent := float64(len(sorted))
	if se > 0 {
		independent = min(independent, q*(1-q)/(se*se))
	}
	if math.Pow(max(q, 1-q), independent) > (1-confidence)/2 {
		return out, blocks, ErrTail
	}
	half := studentQuantile((1+confidence)/2, float64(blocks-1)) * se / (q * (1 - q))
	odds := math.Log(q / (1 - q))
	inverse := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	out.Low, out.High = Quantile(sorted, inverse(odds-half)), Quantile(sorted, inverse(odds+half))
	return out, blocks, nil
}

// sums applies of to the samples of each block and counts them.
func (b Blocks) sums(of func([]float64) float64) (sums, counts []float64) {
	from := 0
	for _, end := range b.Ends {
		x := b.Samples[from:end]
		sums, counts = append(sums, of(x)), append(counts, float64(len(x)))
		from = end
	}
	return sums, counts
}

// BlockRate returns the mean of what each block of equal time holds, with its
// interval: of a rate, in units a block.
func BlockRate(held []float64, confidence float64) (_ Interval, blocks int, err error) {
	m := Mean(held)
	ones := make([]float64, len(held))
	for i := range ones {
		ones[i] = 1
	}
	se, blocks, err := ratioError(held, ones, m)
	if err != nil {
		return Interval{Value: m}, blocks, err
	}
	return aroundLog(m, se, studentQuantile((1+confidence)/2, float64(blocks-1))), blocks, nil
}

// aroundLog is an interval that is symmetric on the scale of logarithms.
func aroundLog(v, se, t float64) Interval {
	f := math.Exp(t * se / math.Abs(v))
	if v == 0 || math.IsInf(f, 0) {
		return Interval{v, v - t*se, v + t*se}
	}
	return Interval{v, v / f, v * f}
}

// ratioError returns the standard error of ratio = sum of sums / sum of counts
// over blocks in the order of time.
func ratioError(sums, counts []float64, ratio float64) (se float64, blocks int, err error) {
	for {
		held := 0
		for _, n := range counts {
			if n > 0 {
				held++
			}
		}
		if held < MinBlocks {
			return 0, held, ErrFewBlocks
		}
		n := len(sums)
		residual := make([]float64, n)
		var squares, products, total Total
		for i := range residual {
			residual[i] = sums[i] - ratio*counts[i]
			squares.Add(residual[i] * residual[i])
			total.Add(counts[i])
			if i > 0 {
				products.Add(residual[i] * residual[i-1])
			}
		}
		correlation := 0.0
		if squares.Sum() > 0 {
			correlation = products.Sum() / squares.Sum()
		}
		if correlation > 1.645/math.Sqrt(float64(n)) {
			if n/2 < MinBlocks {
				return 0, n, ErrDrift
			}
			sums, counts = joined(sums), joined(counts)
			continue
		}
		g := float64(n)
		variance := g / (g - 1) * squares.Sum() * (1 + 2*max(0, correlation))
		return math.Sqrt(variance) / total.Sum(), held, nil
	}
}

// joined adds neighbours two by two; an odd last one joins the pair before it.
func joined(x []float64) []float64 {
	out := make([]float64, len(x)/2)
	for i, v := range x {
		out[min(i/2, len(out)-1)] += v
	}
	return out
}

// Ratio returns b/a with the interval that the intervals of both give, each
// found without the other: the differences on the scale of logarithms add as
// squares, side by side, so that uneven ends stay uneven (MOVER).
func Ratio(a, b Interval) (Interval, error) {
	if !(a.Low > 0 && b.Low > 0) {
		return Interval{}, ErrNoRatio
	}
	log := math.Log
	r := log(b.Value / a.Value)
	down := math.Hypot(log(b.Value/b.Low), log(a.High/a.Value))
	up := math.Hypot(log(b.High/b.Value), log(a.Value/a.Low))
	return Interval{math.Exp(r), math.Exp(r - down), math.Exp(r + up)}, nil
}

// RatioOfRuns returns the ratio of the geometric means of b and a, each the
// figures of several independent runs, with Welch's interval: Student's on the
// scale of logarithms, the degrees of freedom by Satterthwaite. One figure on a
// side has no spread of its own; it is given that of the other side.
func RatioOfRuns(a, b []float64, confidence float64) (Interval, error) {
	ma, va, ok := logMoments(a)
	mb, vb, okB := logMoments(b)
	if !ok || !okB {
		return Interval{}, ErrNoRatio
	}
	na, nb := float64(len(a)), float64(len(b))
	out := Interval{Value: math.Exp(mb - ma)}
	var square, df float64
	switch {
	case na < 2 && nb < 2:
		return out, ErrOneEach
	case na < 2:
		square, df = vb*(1+1/nb), nb-1
	case nb < 2:
		square, df = va*(1+1/na), na-1
	default:
		sa, sb := va/na, vb/nb
		square = sa + sb
		if df = na + nb - 2; square > 0 {
			df = square * square / (sa*sa/(na-1) + sb*sb/(nb-1))
		}
	}
	half := studentQuantile((1+confidence)/2, df) * math.Sqrt(square)
	out.Low, out.High = math.Exp(mb-ma-half), math.Exp(mb-ma+half)
	return out, nil
}

// logMoments returns the mean and the variance (divisor n-1) of logarithms; ok
// is false unless all values are above zero.
func logMoments(x []float64) (mean, variance float64, ok bool) {
	logs := make([]float64, len(x))
	for i, v := range x {
		if !(v > 0) || math.IsInf(v, 1) {
			return 0, 0, false
		}
		logs[i] = math.Log(v)
	}
	if len(x) == 0 {
		return 0, 0, false
	}
	mean = Mean(logs)
	if n := float64(len(x)); n > 1 {
		sd := StdDev(logs)
		variance = sd * sd * n / (n - 1)
	}
	return mean, variance, true
}
