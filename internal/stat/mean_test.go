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
