package stat

import (
	"math"
	"testing"
)

// TestStudentQuantiles: the half width over s/√n is the tables' t quantile.
func TestStudentQuantiles(t *testing.T) {
	for _, tt := range []struct {
		n          int
		confidence float64
		want       float64 // t quantile
	}{
		{2, 0.95, 12.7062}, {3, 0.95, 4.30265}, {5, 0.95, 2.77645}, {10, 0.95, 2.26216}, {31, 0.95, 2.04227}, {5, 0.99, 4.60409}, {1001, 0.95, 1.96234},
	} {
		x := make([]float64, tt.n)
		for i := range x {
			x[i] = float64(i)
		}
		lo, hi, ok := MeanCI(Mean(x), StdDev(x), tt.n, tt.confidence)
		n := float64(tt.n)
		s := math.Sqrt(n * (n + 1) / 12) // of 0..n-1, divisor n-1
		if got := (hi - lo) / 2 / (s / math.Sqrt(n)); !ok || math.Abs(got-tt.want) > 1e-4 {
			t.Errorf("n %d at %g: t = %.5f (%v), want %.5f", tt.n, tt.confidence, got, ok, tt.want)
		}
		if mid := (lo + hi) / 2; math.Abs(mid-(n-1)/2) > 1e-9 {
			t.Errorf("n %d: the interval is about %g", tt.n, mid)
		}
	}
}

// TestPositive: an interval of what cannot be negative ends above zero, has the mean in
// it, is Student's near the mean, and holds the truth as often as it says also where
// values are skewed and few.
func TestPositive(t *testing.T) {
	lo, hi, _ := MeanCI(353, 30, 2, 0.95) // two runs of 323 and 383
	if lo > 0 {
		t.Fatalf("Student's interval begins at %g: nothing to mend", lo)
	}
	if low, high := Positive(353, (hi-lo)/2); math.Abs(low-119.9) > 0.1 || math.Abs(high-1039.3) > 0.1 {
		t.Errorf("two runs of 323 and 383: %.2f to %.2f", low, high)
	}
	if low, high := Positive(100, 0.5); math.Abs(low-99.5) > 0.002 || math.Abs(high-100.5) > 0.002 {
		t.Errorf("100 ± 0.5: %g to %g", low, high)
	}
	if low, high := Positive(0, 0); low != 0 || high != 0 {
		t.Errorf("zeros: %g to %g", low, high)
	}
	if low, high := Proportion(0.98, 0.05); low <= 0.75 || low >= 0.95 || high <= 0.99 || high >= 1 {
		t.Errorf("0.98 ± 0.05: %g to %g", low, high)
	}
	if low, high := Proportion(1, 0); low != 1 || high != 1 {
		t.Errorf("all: %g to %g", low, high)
	}
	const draws, n, sigma = 2000, 5, 0.3
	rng := Stream(11, "coverage of a positive mean")
	held := 0
	x := make([]float64, n)
	for range draws {
		for i := range x {
			x[i] = math.Exp(sigma * rng.NormFloat64())
		}
		lo, hi, _ := MeanCI(Mean(x), StdDev(x), n, 0.95)
		lo, hi = Positive(Mean(x), (hi-lo)/2)
		if truth := math.Exp(sigma * sigma / 2); lo <= truth && truth <= hi {
			held++
		}
	}
	if share := float64(held) / draws; share < 0.93 || share > 0.97 {
		t.Errorf("the 95 %% interval holds the mean in %.1f %% of draws", 100*share)
	}
}
