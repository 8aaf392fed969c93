package mlperf

import (
	"fmt"
	"math"
	"slices"
)

// How many concurrencies a curve has.
const (
	LeastPoints = 7
	MostPoints  = 32
)

// DefaultCMin is the lowest concurrency of a proposed curve: a whole pass over a data set at
// concurrency 1 takes days on most systems.
const DefaultCMin = 16

// Propose returns seven concurrencies that cover the regions between these two: the lowest, two in
// each region, and the highest, which is the Offline result too.
func Propose(cMax, cMin int) ([]int, error) {
	r, err := RegionsOf(cMax, cMin)
	if err != nil {
		return nil, err
	}
	out := []int{cMin}
	for _, s := range []Span{r.Low, r.Medium, r.High} {
		if s.To < s.From {
			return nil, tooClose(cMax, cMin)
		}
		out = append(out, between(s), s.To)
	}
	slices.Sort(out)
	if out = fill(slices.Compact(out)); len(out) < LeastPoints {
		return nil, tooClose(cMax, cMin)
	}
	return out, nil
}

func tooClose(cMax, cMin int) error {
	return fmt.Errorf("between the concurrencies %d and %d there is no room for the %d points and three regions of a curve: take a lower lowest one, or a higher highest one", cMin, cMax, LeastPoints)
}

// between is the middle of a span on a logarithmic axis.
func between(s Span) int {
	return min(s.To, max(s.From, int(math.Round(math.Sqrt(float64(s.From)*float64(s.To))))))
}

// fill adds concurrencies in the widest gaps, where narrow regions gave too few.
func fill(list []int) []int {
	for len(list) < LeastPoints {
		at, widest := 0, 1
		for i := 1; i < len(list); i++ {
			if gap := list[i] - list[i-1]; gap > widest {
				at, widest = i, gap
			}
		}
		if at == 0 {
			return list
		}
		list = slices.Insert(list, at, list[at-1]+widest/2)
	}
	return list
}
