package stat

import (
	"math"
	"slices"
	"sort"
)

// Doubts are what is not known of samples that were taken: those that may be others than they were taken for, and
// those that may be missing. They are counted in sketches, so that they take no more room the more they are.
type Doubts struct {
	Taken, Low, High Sketch  // samples, with the least and the most that they can be
	Hidden           Sketch  // the most that each missing sample can be; its least is 0
	Least, Most      float64 // of samples whose sum is known apart: by how much it can be off, below and above
}

// Add notes a sample that was taken, with the least and the most that it can be.
func (d *Doubts) Add(taken, low, high float64) {
	d.Taken.Add(taken)
	d.Low.Add(max(0, low))
	d.High.Add(high)
}

// Hide notes n samples that may be missing and of which the k-th longest, k from
// first on, takes its k-th part of all at most, and none more than most.
func (d *Doubts) Hide(all, most float64, first, n int) {
	for k := first; k < first+n; k++ {
		d.Hidden.Add(min(all/float64(k), most))
	}
}

// SketchBlur is how far apart two values of one bucket of a sketch are, as a share: by so much bounds
// are widened, that they stay bounds.
const SketchBlur = 4 * SketchError

// Mean returns the least and the most that a mean over n samples can be. The sum of
// pooled samples is known apart from what happened before the first and after the
// last of a call, so that only their number is open.
func (d *Doubts) Mean(mean float64, n int, pooled bool) (low, high float64) {
	sum, count := mean*float64(n), float64(n)
	low = sum - d.Least
	high = (sum + d.Most) / count
	if !pooled {
		total := func(s *Sketch) float64 {
			if s.N == 0 {
				return 0
			}
			return s.Mean() * float64(s.N)
		}
		low = sum + total(&d.Low) - total(&d.Taken)
		high = d.highestMean(sum+total(&d.High)-total(&d.Taken), count)
	}
	return max(0, low) / (count + float64(d.Hidden.N)), high
}

// equals are samples of one value.
type equals struct {
	value float64
	n     int
}

func listed(s *Sketch) []equals {
	var all []equals
	for v, n := range s.All() {
		all = append(all, equals{v, n})
	}
	return all
}

// highestMean is the most that the mean of samples with this sum can be with some of those that
// may be missing.
func (d *Doubts) highestMean(sum, count float64) float64 {
	most := sum / count
	for _, h := range slices.Backward(listed(&d.Hidden)) {
		sum, count = sum+h.value*(1+SketchBlur)*float64(h.n), count+float64(h.n)
		most = max(most, sum/count)
	}
	return most
}

// replaced returns the samples with the least of each that is in doubt and every one that may be
// missing, and with the most of each and none that may be missing.
func (d *Doubts) replaced(samples *Sketch) (least, most *Sketch) {
	zeros := &Sketch{}
	zeros.AddN(0, d.Hidden.N)
	return samples.Replace(&d.Taken, &d.Low, zeros), samples.Replace(&d.Taken, &d.High)
}

// Quantiles returns the least and the most that a quantile of the samples can be.
func (d *Doubts) Quantiles(samples *Sketch) func(p float64) (low, high float64) {
	least, most := d.replaced(samples)
	all, hidden := listed(most), listed(&d.Hidden)
	return func(p float64) (low, high float64) {
		high = most.Quantile(p)
		if len(hidden) > 0 {
			high = highest(all, hidden, p)
		}
		return least.Quantile(p) * (1 - SketchBlur), high * (1 + SketchBlur)
	}
}

// highest is the most that the p-quantile of samples can be with some of those hidden; both ascend.
// Those above the quantile raise it: the order statistic at or above it grows
// with them, the longest first, and then falls.
func highest(samples, hidden []equals, p float64) float64 {
	with := func(from int) float64 {
		n := 0
		for _, all := range [][]equals{samples, hidden[from:]} {
			for _, x := range all {
				n += x.n
			}
		}
		k := int(math.Ceil(p * float64(n-1)))
		for i, j := 0, from; ; {
			var x equals
			if j == len(hidden) || i < len(samples) && samples[i].value <= hidden[j].value {
				x = samples[i]
				i++
			} else {
				x = hidden[j]
				j++
			}
			if k -= x.n; k < 0 {
				return x.value
			}
		}
	}
	first := sort.Search(len(hidden), func(i int) bool { return hidden[i].value >= with(i+1) })
	return with(first)
}
