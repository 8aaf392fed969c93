package drift

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestRefused holds the ranks against tables of the test of Mann and Whitney: the largest U
// that is refused at 5 %, two-sided.
func TestRefused(t *testing.T) {
	for _, tt := range []struct{ n, m, want int }{
		{3, 3, -1}, {1, 19, -1}, {4, 4, 0}, {5, 5, 2}, {8, 8, 13}, {10, 10, 23}, {3, 10, 3}, {20, 20, 127}, {5, 12, 11},
	} {
		if got := refused(tt.n, tt.m); got != tt.want {
			t.Errorf("%d and %d points: %d, want %d", tt.n, tt.m, got, tt.want)
		}
	}
	if exact, near := refused(20, 20), int(math.Floor(200-1.96*math.Sqrt(400*41/12.0)))-1; exact-near > 1 || near-exact > 1 {
		t.Errorf("20 and 20 points: %d counted, %d by the normal distribution", exact, near)
	}
}

// The interval of a relative change holds the truth about as often as it says.
func TestRelativeInterval(t *testing.T) {
	for _, sizes := range [][2]int{{6, 6}, {20, 8}, {60, 60}} {
		held := share(500, func(_ int, r *rand.Rand) bool {
			side := func(n int, middle float64) []float64 {
				x := make([]float64, n)
				for i := range x {
					x[i] = middle * math.Exp(0.03*heavy(r))
				}
				return x
			}
			_, v := relative(side(sizes[0], 100), side(sizes[1], 110))
			return v != nil && v.Low <= 0.1 && v.High >= 0.1
		})
		if held < 92 || held > 99 {
			t.Errorf("%v points: it holds the truth in %.1f %%", sizes, held)
		}
	}
}

func TestRelative(t *testing.T) {
	for _, tt := range []struct {
		name          string
		before, after []float64
		want          float64 // NaN: none
		bounded       bool
	}{
		{"ratios", []float64{100, 100, 100, 100}, []float64{110, 110, 110, 110}, 0.1, true},
		{"too few for an interval", []float64{100, 100, 100}, []float64{110, 110, 110}, 0.1, false},
		{"from negative values", []float64{-10, -10, -10, -10}, []float64{-5, -5, -5, -5}, 0.5, true},
		{"to zero", []float64{4, 4, 4, 4}, []float64{0, 0, 0, 0}, -1, true},
		{"from zero", []float64{0, 0, 0, 0}, []float64{4, 4, 4, 4}, math.NaN(), false},
	} {
		r, v := relative(tt.before, tt.after)
		if math.IsNaN(tt.want) != (r == nil) || r != nil && math.Abs(*r-tt.want) > 1e-12 || (v != nil) != tt.bounded {
			t.Errorf("%s: %v, %v", tt.name, r, v)
		}
	}
}
