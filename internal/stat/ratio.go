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
	ErrDrift     = errors.New("the difference between the runs drifts, or wanders too slowly for runs so short")
	ErrTail      = errors.New("too few independent samples lie beyond it")
	ErrNoRatio   = errors.New("a figure is not above zero")
	ErrOneEach   = errors.New("there is one figure on each side")
)

// MinBlocks is the least number of blocks that an interval is made of.
const MinBlocks = 10

// unseen is by how much the spread of paired blocks is taken to be more than it
// is: neighbours that are alike by less than chance would make them are taken
// for independent, and runs whose blocks happen to be alike get no interval, so
// that those which do look calmer than they are. In simulations of a saturated
// server whose speed wanders, 1.38 was needed for the figure that needed most.
const unseen = 1.4

// Blocks are samples in the order of a run, cut into blocks: block i ends before
// Ends[i]. Samples of one block resemble each other, as the latencies of calls
// that met the same batch do, so the blocks count and not the samples.
//
// Two runs are compared block by block, each with the one at the same place of
// the other run: what the two share (the requests and their arrivals where they
// were the same, and the filling and the draining of the server always) is then
// no noise of their ratio. The spread of the pairs' differences, linearised, is
// its error, with Student's quantile for so many pairs. Neighbouring pairs are
// joined two by two until they are neither more nor less alike than chance
// makes them (lag-1 correlation, 5 % on a side), and what likeness is left
// widens the interval. Where it does not end before MinBlocks the difference
// drifts, as the TTFT of an overloaded server does, and no interval can be had
// from one run.
//
// The interval errs on the wide side. In 300 simulated pairs of equal runs (a
// closed loop of 1,000 requests on a saturated server whose speed wanders) it
// held the truth in 94 to 98 % of those in which there was one, by figure, and a
// throughput lower by 10 % was shown in more than nine of ten. Runs of only
// some ten times the time in which the speed wanders mostly have no interval, and
// those given hold the truth less often: make runs longer, or several.
//
// A bootstrap over blocks gives the same for means, takes thousands of passes,
// and for a quantile near the largest sample is far too narrow: it never draws
// what lies beyond.
type Blocks Clusters

// Estimate is a figure of one run as it is compared with that of another.
type Estimate struct {
	Value     float64
	down, up  float64   // how far its own interval reaches, in logarithms
	influence []float64 // by how much each block moves the logarithm
}

// Mean estimates the mean of all samples.
func (b Blocks) Mean(confidence float64) (Estimate, error) {
	sums, counts := b.sums(Sum)
	return linear(sums, counts, Mean(b.Samples), confidence)
}

// BlockRate estimates the mean of what each block of equal time holds.
func BlockRate(held []float64, confidence float64) (Estimate, error) {
	ones := make([]float64, len(held))
	for i := range ones {
		ones[i] = 1
	}
	return linear(held, ones, Mean(held), confidence)
}

// linear estimates a ratio of two sums over blocks.
func linear(sums, counts []float64, ratio, confidence float64) (Estimate, error) {
	e := Estimate{Value: ratio}
	if !(ratio > 0) {
		return e, ErrNoRatio
	}
	if e.influence = influence(sums, counts, ratio); e.influence == nil {
		return e, ErrFewBlocks
	}
	for i := range e.influence {
		e.influence[i] /= ratio
	}
	se, n, err := blockError(e.influence, false)
	if err != nil {
		return e, err
	}
	e.down = StudentQuantile((1+confidence)/2, float64(n-1)) * se
	e.up = e.down
	return e, nil
}

// Quantile estimates the q-quantile of all samples, which sorted has in
// ascending order, by Woodruff's method: the share of samples up to the quantile
// gets an interval on the scale of its log odds, where it is nearly normal and
// cannot leave (0, 1), and the quantiles at its ends are the answer. There is
// none when so few independent samples lie beyond that no order statistic bounds
// the quantile.
func (b Blocks) Quantile(sorted []float64, q, confidence float64) (Estimate, error) {
	at := Quantile(sorted, q)
	e := Estimate{Value: at}
	if !(q > 0 && q < 1) {
		return e, ErrTail
	}
	share := float64(sort.Search(len(sorted), func(i int) bool { return sorted[i] > at })) / float64(len(sorted))
	sums, counts := b.upTo(at)
	if e.influence = influence(sums, counts, share); e.influence == nil {
		return e, ErrFewBlocks
	}
	se, n, err := blockError(e.influence, false)
	if err != nil {
		return e, err
	}
	independent := min(float64(len(sorted)), effective(e.influence, q))
	if beyond := min(q, 1-q) * float64(len(sorted)); beyond < 4*float64(len(b.Ends)) {
		// So few hardly show how alike neighbours are: the middle does.
		middle := Quantile(sorted, 0.5)
		sums, counts := b.upTo(middle)
		independent = min(independent, effective(influence(sums, counts, Sum(sums)/Sum(counts)), 0.5))
	}
	if math.Pow(max(q, 1-q), independent) > (1-confidence)/2 {
		return e, ErrTail
	}
	reach := StudentQuantile((1+confidence)/2, float64(n-1)) * se
	half := reach / (q * (1 - q))
	odds := math.Log(q / (1 - q))
	inverse := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	low, high := Quantile(sorted, inverse(odds-half)), Quantile(sorted, inverse(odds+half))
	if !(low > 0) {
		return e, ErrNoRatio
	}
	e.down, e.up = math.Log(at/low), math.Log(high/at)
	slope := 0.0 // of the logarithm by the share; more samples below mean a lower quantile
	if reach > 0 {
		slope = -(e.down + e.up) / (2 * reach)
	}
	for i := range e.influence {
		e.influence[i] *= slope
	}
	return e, nil
}

// upTo counts the samples of each block that are at most at, and all.
func (b Blocks) upTo(at float64) (sums, counts []float64) {
	return b.sums(func(x []float64) float64 {
		n := 0
		for _, v := range x {
			if v <= at {
				n++
			}
		}
		return float64(n)
	})
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

// influence is by how much each block moves ratio = sum of sums / sum of counts,
// nil where too few hold samples.
func influence(sums, counts []float64, ratio float64) []float64 {
	total, held := Sum(counts), 0
	out := make([]float64, len(sums))
	for i := range out {
		if counts[i] > 0 {
			held++
		}
		out[i] = (sums[i] - ratio*counts[i]) / total
	}
	if held < MinBlocks {
		return nil
	}
	return out
}

// blockError returns the standard error of a sum of the influences of blocks in
// the order of time, and of how many joined ones that is. What drifts is an
// error where strict says so.
func blockError(x []float64, strict bool) (se float64, blocks int, err error) {
	for {
		n := len(x)
		if n < MinBlocks {
			return 0, n, ErrFewBlocks
		}
		var squares, products Total
		for i, v := range x {
			squares.Add(v * v)
			if i > 0 {
				products.Add(v * x[i-1])
			}
		}
		alike := 0.0
		if squares.Sum() > 0 {
			alike = products.Sum() / squares.Sum()
		}
		if chance := 1.645 / math.Sqrt(float64(n)); math.Abs(alike) > chance && n/2 >= MinBlocks {
			x = joined(x)
			continue
		} else if alike > chance && strict {
			return 0, n, ErrDrift
		}
		g := float64(n)
		left := max(0, alike+1/g) // residuals of a mean are by 1/n too unlike
		return math.Sqrt(g / (g - 1) * squares.Sum() * (1 + left) / (1 - left)), n, nil
	}
}

// effective is how many independent samples would let a share of them vary as
// blocks do, at the length of blocks at which that is least.
func effective(x []float64, share float64) float64 {
	least := math.Inf(1)
	for ; len(x) >= MinBlocks; x = joined(x) {
		var squares Total
		for _, v := range x {
			squares.Add(v * v)
		}
		n := float64(len(x))
		if v := n / (n - 1) * squares.Sum(); v > 0 {
			least = min(least, share*(1-share)/v)
		}
	}
	return least
}

// joined adds neighbours two by two; an odd last one joins the pair before it.
func joined(x []float64) []float64 {
	out := make([]float64, len(x)/2)
	for i, v := range x {
		out[min(i/2, len(out)-1)] += v
	}
	return out
}

// Ratio returns b/a with its interval, and of how many pairs of blocks that is.
// The intervals of both, each found without the other, add as squares on the
// scale of logarithms, side by side, so that uneven ends stay uneven (MOVER);
// the spread of the paired blocks says how long the whole is.
func Ratio(a, b Estimate, confidence float64) (_ Interval, pairs int, err error) {
	if len(a.influence) != len(b.influence) {
		return Interval{}, 0, ErrFewBlocks
	}
	d := make([]float64, len(a.influence))
	for i := range d {
		d[i] = b.influence[i] - a.influence[i]
	}
	se, n, err := blockError(d, true)
	if err != nil {
		return Interval{}, n, err
	}
	down, up := math.Hypot(b.down, a.up), math.Hypot(b.up, a.down)
	if apart := math.Hypot(b.down+b.up, a.down+a.up) / 2; apart > 0 {
		scale := unseen * StudentQuantile((1+confidence)/2, float64(n-1)) * se / apart
		down, up = down*scale, up*scale
	}
	r := b.Value / a.Value
	return Interval{r, r * math.Exp(-down), r * math.Exp(up)}, n, nil
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
	half := StudentQuantile((1+confidence)/2, df) * math.Sqrt(square)
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
