package stat

import (
	"maps"
	"math/bits"
	"slices"
	"sync/atomic"
)

// Histogram counts values of at least 0 in buckets whose width is at most 1/32
// of their value, so that a quantile is at most about 1.6 % off. It is for what
// is watched while it happens; figures of a result come from the values
// themselves. The zero value is empty; all methods may be called at once.
type Histogram struct {
	counts [histBuckets]atomic.Uint64
	total  atomic.Uint64
	sum    atomic.Uint64
}

const (
	histBits    = 5 // of a value behind its first one that tell buckets apart
	histBuckets = (64 - histBits + 1) << histBits
)

// Add counts a value; a negative one as 0.
func (h *Histogram) Add(v int64) {
	u := uint64(max(v, 0))
	h.counts[histBucket(u)].Add(1)
	h.total.Add(1)
	h.sum.Add(u)
}

// Total returns how many values were added, and their sum.
func (h *Histogram) Total() (n, sum uint64) { return h.total.Load(), h.sum.Load() }

// Quantile returns the middle of the bucket that holds the q-th of the values;
// false: there are none.
func (h *Histogram) Quantile(q float64) (v float64, ok bool) {
	total := h.total.Load()
	if total == 0 {
		return 0, false
	}
	rank := min(uint64(q*float64(total)), total-1)
	last := 0
	for i := range h.counts {
		n := h.counts[i].Load()
		if n > 0 {
			last = i
		}
		if n > rank {
			break
		}
		rank -= n
	}
	from, width := histRange(last)
	return float64(from) + float64(width-1)/2, true
}

// Below returns how many values lie in buckets that end at or below v.
func (h *Histogram) Below(v int64) (n uint64) {
	for i := range h.counts {
		from, width := histRange(i)
		if from+width-1 > uint64(max(v, 0)) {
			break
		}
		n += h.counts[i].Load()
	}
	return n
}

// histBucket: values below 32 have a bucket each; from there every power of two
// has 32.
func histBucket(u uint64) int {
	if u < 1<<histBits {
		return int(u)
	}
	shift := bits.Len64(u) - 1 - histBits
	return (shift+1)<<histBits + int(u>>shift)&(1<<histBits-1)
}

func histRange(i int) (from, width uint64) {
	if i < 1<<histBits {
		return uint64(i), 1
	}
	shift := i>>histBits - 1
	return (1<<histBits + uint64(i)&(1<<histBits-1)) << shift, 1 << shift
}

// Buckets is a Histogram for one goroutine that can be stored, and takes no room for buckets in
// which there is nothing.
type Buckets map[int]uint64

// Add counts a value; a negative one as 0.
func (b Buckets) Add(v int64) { b[histBucket(uint64(max(v, 0)))]++ }

// Quantile is Histogram.Quantile.
func (b Buckets) Quantile(q float64) (v float64, ok bool) {
	total := uint64(0)
	for _, n := range b {
		total += n
	}
	if total == 0 {
		return 0, false
	}
	rank := min(uint64(q*float64(total)), total-1)
	for _, i := range slices.Sorted(maps.Keys(b)) {
		if b[i] > rank {
			from, width := histRange(i)
			return float64(from) + float64(width-1)/2, true
		}
		rank -= b[i]
	}
	panic("stat: buckets hold fewer values than they sum to")
}
