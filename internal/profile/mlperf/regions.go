// Package mlperf has the rules of MLPerf Endpoints 1.0 as data and arithmetic: which concurrencies a
// curve must have, for how long each is measured, what its figures are, and which rule a curve breaks.
//
//	r, err := mlperf.RegionsOf(1024, 16)
//	list, err := mlperf.Propose(1024, 16)
//
// Invariants: rules have the names that MLCommons' checker gives them, where it has one; a missing
// figure is missing; a curve of the short form, or of a simulator, is never valid.
//
// Absent: the files of a submission (profile/submission), and the run of a curve (bench).
package mlperf

import (
	"fmt"
	"math"
)

// Regions by their names in a submission, from low to high.
const (
	LowLatency = "low_latency"
	Low        = "low_concurrency"
	Medium     = "med_concurrency"
	High       = "high_concurrency"
	Margin     = "margin"
)

// UltraLow is the highest concurrency that counts as ultra low, and the highest C_min.
const UltraLow = 32

// Span is the concurrencies of a region, both ends among them; empty where To is below From.
type Span struct{ From, To int }

func (s Span) has(c int) bool { return s.From <= c && c <= s.To }

// Text is the span for a reader: "17 to 26".
func (s Span) Text() string {
	if s.To < s.From {
		return "no concurrency"
	}
	return fmt.Sprintf("%d to %d", s.From, s.To)
}

// Regions are the regions of a curve.
type Regions struct {
	CMin, CMax                           int
	LowLatency, Low, Medium, High, Above Span
}

// RegionsOf computes the regions of a curve of these lowest and highest supported concurrencies: three
// of equal width in the logarithm of the concurrency above C_min, rounded half to even.
func RegionsOf(cMax, cMin int) (Regions, error) {
	switch {
	case cMin < 1 || cMin > UltraLow:
		return Regions{}, fmt.Errorf("the lowest concurrency (C_min) is %d: it must be from 1 to %d", cMin, UltraLow)
	case cMax <= UltraLow:
		return Regions{}, fmt.Errorf("the highest supported concurrency (C_max) is %d: it must be above %d", cMax, UltraLow)
	}
	third := math.Log2(float64(cMax-cMin)) / 3
	low := int(math.RoundToEven(float64(cMin) + math.Exp2(third)))
	medium := int(math.RoundToEven(float64(cMin) + math.Exp2(2*third)))
	return Regions{
		CMin: cMin, CMax: cMax,
		LowLatency: Span{1, cMin}, Low: Span{cMin + 1, low}, Medium: Span{low + 1, medium}, High: Span{medium + 1, cMax},
		Above: Span{cMax + 1, int(math.Ceil(1.10 * float64(cMax)))},
	}, nil
}

// named are the regions in the order in which a concurrency is looked for.
func (r Regions) named() []struct {
	name string
	span Span
} {
	return []struct {
		name string
		span Span
	}{{LowLatency, r.LowLatency}, {Low, r.Low}, {Medium, r.Medium}, {High, r.High}, {Margin, r.Above}}
}

// Of is the region of a concurrency; "" for one beyond the margin.
func (r Regions) Of(concurrency int) string {
	for _, n := range r.named() {
		if n.span.has(concurrency) {
			return n.name
		}
	}
	return ""
}

// LowestOf is the C_min that follows from the points of a curve: their lowest concurrency, at most 32.
func LowestOf(concurrencies []int) int {
	lowest := UltraLow
	for _, c := range concurrencies {
		lowest = min(lowest, c)
	}
	return lowest
}
