package stat

import (
	"cmp"
	"math"
	"slices"
)

// fewValues is below how many values sorting by comparison is faster.
const fewValues = 1 << 12

// Sort sorts values in ascending order, as slices.Sort does, but in time
// linear in their number: a run may have tens of millions.
func Sort(x []float64) {
	if len(x) < fewValues {
		slices.Sort(x)
		return
	}
	SortBy(x, func(v float64) uint64 {
		b := math.Float64bits(v)
		if b>>63 != 0 {
			return ^b
		}
		return b | 1<<63
	})
}

// SortBy sorts stably by an ascending key.
func SortBy[T any](x []T, key func(T) uint64) {
	const digits, bits, mask = 6, 11, 1<<11 - 1 // 6 x 11 >= 64
	if len(x) < fewValues {
		slices.SortStableFunc(x, func(a, b T) int { return cmp.Compare(key(a), key(b)) })
		return
	}
	var counts [digits][1 << bits]int
	for _, v := range x {
		k := key(v)
		for d := range digits {
			counts[d][k>>(bits*d)&mask]++
		}
	}
	from, to := x, make([]T, len(x))
	for d := range digits {
		count := &counts[d]
		if count[key(x[0])>>(bits*d)&mask] == len(x) {
			continue // all share the digit
		}
		at := 0
		for i, n := range count {
			count[i], at = at, at+n
		}
		for _, v := range from {
			digit := key(v) >> (bits * d) & mask
			to[count[digit]] = v
			count[digit]++
		}
		from, to = to, from
	}
	if &from[0] != &x[0] {
		copy(x, from)
	}
}
