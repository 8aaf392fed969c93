package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The wanted values are numpy.percentile's defaults.
func TestQuantile(t *testing.T) {
	for _, test := range []struct {
		x    []float64
		q    float64
		want float64
	}{
		{[]float64{15, 20, 35, 40, 50}, 0.40, 29},
		{[]float64{15, 20, 35, 40, 50}, 0.05, 16},
		{[]float64{15, 20, 35, 40, 50}, 0.30, 23},
		{[]float64{1, 2, 3, 4}, 0.50, 2.5},
		{[]float64{1, 2, 3, 4}, 0.75, 3.25},
		{[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 0.99, 9.91},
		{[]float64{1, 2}, 0, 1},
		{[]float64{1, 2}, 1, 2},
		{[]float64{1, 2}, 1.5, 2},
		{[]float64{1, 2}, -1, 1},
		{[]float64{7}, 0.99, 7},
	} {
		if got := Quantile(test.x, test.q); math.Abs(got-test.want) > 1e-12 {
			t.Errorf("Quantile(%v, %v) = %v, want %v", test.x, test.q, got, test.want)
		}
	}
	if got := Quantile(nil, 0.5); !math.IsNaN(got) {
		t.Errorf("Quantile of nothing = %v, want NaN", got)
	}
}

func TestStdDev(t *testing.T) {
	if got := StdDev([]float64{2, 4, 4, 4, 5, 5, 7, 9}); got != 2 {
		t.Errorf("StdDev = %v, want 2, the population's", got)
	}
	if got := Mean(nil); !math.IsNaN(got) {
		t.Errorf("Mean of nothing = %v, want NaN", got)
	}
}

// TestPooled: squares lie about the mean of each group, and a group of one says nothing of the spread.
func TestPooled(t *testing.T) {
	squares, free, n := Pooled(map[string][]float64{"pair": {1, 3}, "three": {5, 5, 8}, "one": {100}})
	if math.Abs(squares-(2+6)) > 1e-12 || free != 1+2 || n != 5 {
		t.Errorf("squares %v with %v degrees of freedom of %d values, want 8, 3 and 5", squares, free, n)
	}
}

func TestSumDoesNotDependOnOrder(t *testing.T) {
	if got := Sum([]float64{1, 1e100, 1, -1e100}); got != 2 {
		t.Errorf("Sum = %v, want 2", got)
	}
	rng := Stream(1, "order")
	x := make([]float64, 10000)
	for i := range x {
		x[i] = math.Exp(20 * rng.NormFloat64())
	}
	want := Sum(x)
	for range 20 {
		rng.Shuffle(len(x), func(i, j int) { x[i], x[j] = x[j], x[i] })
		if got := Sum(x); got != want {
			t.Fatalf("Sum of the same terms in another order = %v, want %v", got, want)
		}
	}
}

// A 95 % interval holds the true quantile in 93 to 97 % of draws. The levels
// an interval of order statistics can reach are discrete and it takes the next
// one above, so the sample is large enough for them to be dense.
func TestQuantileCICovers(t *testing.T) {
	t.Parallel()
	const draws, n = 2000, 600
	for _, q := range []float64{0.5, 0.9} {
		rng := Stream(7, "coverage")
		held := 0
		x := make([]float64, n)
		for range draws {
			for i := range x {
				x[i] = rng.Float64() // uniform: the true quantile is q
			}
			slices.Sort(x)
			lo, hi, ok := QuantileCI(x, q, 0.95)
			if !ok {
				t.Fatalf("no interval for q %v of %d", q, n)
			}
			if lo <= q && q < hi {
				held++
			}
		}
		if share := float64(held) / draws; share < 0.93 || share > 0.97 {
			t.Errorf("the 95 %% interval of the %v quantile holds it in %.1f %% of draws", q, 100*share)
		}
	}
}

func TestQuantileCINeedsSamples(t *testing.T) {
	x := make([]float64, 100)
	for i := range x {
		x[i] = float64(i)
	}
	if lo, hi, ok := QuantileCI(x, 0.99, 0.95); ok {
		t.Errorf("100 samples give an interval for p99: %v to %v", lo, hi)
	}
	lo, hi, ok := QuantileCI(x, 0.5, 0.95)
	if !ok || lo != 39 || hi != 60 {
		t.Errorf("interval of the median of 0..99 is %v to %v, %v; binomial tables say ranks 40 and 61", lo, hi, ok)
	}
}

func TestStreams(t *testing.T) {
	first := func(r *rand.Rand) (v [4]uint64) {
		for i := range v {
			v[i] = r.Uint64()
		}
		return v
	}
	arrivals := first(Stream(1, "arrivals"))
	if again := first(Stream(1, "arrivals")); again != arrivals {
		t.Error("the same seed and purpose give another stream")
	}
	if other := first(Stream(1, "lengths")); other == arrivals {
		t.Error("two purposes share a stream")
	}
	if other := first(Stream(2, "arrivals")); other == arrivals {
		t.Error("two seeds share a stream")
	}
	// Independence: the correlation of two streams is within 4/sqrt(n) of 0.
	const n = 20000
	a, b, sum := Stream(1, "arrivals"), Stream(1, "lengths"), 0.0
	for range n {
		sum += (a.Float64() - 0.5) * (b.Float64() - 0.5) * 12
	}
	if r := sum / n; math.Abs(r) > 4/math.Sqrt(n) {
		t.Errorf("streams of two purposes correlate by %v", r)
	}
}

func TestMinSamples(t *testing.T) {
	for q, want := range map[float64]int{0.5: 7, 0.9: 44, 0.1: 44, 0.95: 90, 0.99: 459, 0.999: 4603, 1: math.MaxInt, 0: math.MaxInt} {
		if got := MinSamples(q); got != want {
			t.Errorf("MinSamples(%v) = %d, want %d", q, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"same", "SAME", 0}, {"kitten", "sitting", 3}, {"sharegpt", "shargpt", 1}, {"ab", "ba", 2},
	} {
		if got := Distance(tt.a, tt.b); got != tt.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
		if got := Distance(tt.b, tt.a); got != tt.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", tt.b, tt.a, got, tt.want)
		}
	}
}
