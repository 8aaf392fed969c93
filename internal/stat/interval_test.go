package stat

import (
	"math"
	"slices"
	"testing"
)

// The tabled 97.5 % quantiles of Student's distribution.
func TestStudentT(t *testing.T) {
	for nu, want := range map[float64]float64{1: 12.7062, 2: 4.3027, 3: 3.1824, 5: 2.5706, 10: 2.2281, 30: 2.0423, 1000: 1.9623} {
		if got := StudentQuantile(0.975, nu); math.Abs(got/want-1) > 2e-3 {
			t.Errorf("with %v degrees of freedom %v, tables say %v", nu, got, want)
		}
	}
	for _, p := range []float64{0.51, 0.9, 0.975, 0.9999, 1 - 1e-7} { // in closed form
		a := 2*p - 1
		for nu, want := range map[float64]float64{1: math.Tan(math.Pi * a / 2), 2: a * math.Sqrt(2/(1-a*a))} {
			if got := StudentQuantile(p, nu); math.Abs(got/want-1) > 1e-8 {
				t.Errorf("with %v degrees of freedom the %v-quantile is %v, want %v", nu, p, got, want)
			}
		}
	}
}

func TestMeanCICovers(t *testing.T) {
	const draws, n = 2000, 30
	rng := Stream(3, "coverage of a mean")
	held := 0
	x := make([]float64, n)
	for range draws {
		for i := range x {
			x[i] = rng.NormFloat64()
		}
		lo, hi, ok := MeanCI(Mean(x), StdDev(x), n, 0.95)
		if !ok {
			t.Fatal("no interval")
		}
		if lo <= 0 && 0 <= hi {
			held++
		}
	}
	if share := float64(held) / draws; share < 0.93 || share > 0.97 {
		t.Errorf("the 95 %% interval of a mean holds it in %.1f %% of draws", 100*share)
	}
	if _, _, ok := MeanCI(1, 0, 1, 0.95); ok {
		t.Error("one value gives an interval")
	}
}

// groups draws samples in groups of 1 to 10 that share an offset as large as
// what is within them, so that treating samples as independent would give
// intervals that are far too narrow.
func groups(n int, draw func() float64, size func(int) int) Clusters {
	var c Clusters
	for range n {
		offset := draw()
		for range 1 + size(10) {
			c.Samples = append(c.Samples, offset+draw())
		}
		c.Ends = append(c.Ends, len(c.Samples))
	}
	return c
}

// The sum of two standard normal values has quantiles known in advance.
func TestClustersCover(t *testing.T) {
	t.Parallel()
	const draws, n = 2000, 80
	truth := func(q float64) float64 { return math.Sqrt2 * math.Sqrt2 * math.Erfinv(2*q-1) }
	rng := Stream(5, "coverage in groups")
	held := map[string]int{}
	naive := 0
	for range draws {
		c := groups(n, rng.NormFloat64, rng.IntN)
		sorted := slices.Clone(c.Samples)
		Sort(sorted)
		lo, hi, ok := c.MeanCI(Mean(c.Samples), 0.95)
		if ok && lo <= 0 && 0 <= hi {
			held["mean"]++
		}
		for name, q := range map[string]float64{"median": 0.5, "p90": 0.9} {
			if lo, hi, ok := c.QuantileCI(sorted, q, 0.95); ok && lo <= truth(q) && truth(q) <= hi {
				held[name]++
			}
		}
		if lo, hi, ok := QuantileCI(sorted, 0.5, 0.95); ok && lo <= 0 && 0 <= hi {
			naive++
		}
	}
	for _, name := range []string{"mean", "median", "p90"} {
		if share := float64(held[name]) / draws; share < 0.93 || share > 0.97 {
			t.Errorf("the 95 %% interval of the %s holds it in %.1f %% of draws", name, 100*share)
		}
	}
	if share := float64(naive) / draws; share > 0.8 {
		t.Errorf("an interval that takes samples as independent covers %.1f %% here: the test shows nothing", 100*share)
	}
}

// With as few groups as are enough for an interval, of very different sizes, it
// holds the truth nearly as often as it says: where it is given, and not by
// luck of a small variance.
func TestFewClustersCover(t *testing.T) {
	t.Parallel()
	const draws = 1000
	for q, n := range map[float64]int{0.5: 6, 0.9: 36, 0.95: 72} {
		rng := Stream(6, "few groups")
		given, held := 0, 0
		truth := 2 * math.Erfinv(2*q-1)
		for range draws {
			c := groups(n, rng.NormFloat64, func(int) int { return 5 + rng.IntN(60) })
			sorted := slices.Clone(c.Samples)
			Sort(sorted)
			if lo, hi, ok := c.QuantileCI(sorted, q, 0.95); ok {
				given++
				if lo <= truth && truth <= hi {
					held++
				}
			}
		}
		if share := float64(held) / float64(given); given < draws/2 || share < 0.88 {
			t.Errorf("q %v of %d groups: given in %d of %d draws, holds in %.1f %% of them", q, n, given, draws, 100*share)
		}
		c := groups(n-1, rng.NormFloat64, rng.IntN)
		if lo, hi, ok := c.QuantileCI(slices.Sorted(slices.Values(c.Samples)), q, 0.95); ok {
			t.Errorf("q %v of %d groups: %v to %v", q, n-1, lo, hi)
		}
	}
}

func TestClustersNeedGroups(t *testing.T) {
	one := Clusters{Samples: []float64{1, 2, 3}, Ends: []int{0, 3, 3}}
	if _, _, ok := one.MeanCI(2, 0.95); ok {
		t.Error("one group gives an interval of the mean")
	}
	few := Clusters{Samples: []float64{1, 2, 3, 4}, Ends: []int{2, 4}}
	if lo, hi, ok := few.QuantileCI(few.Samples, 0.99, 0.95); ok {
		t.Errorf("two groups give an interval of p99: %v to %v", lo, hi)
	}
	var same Clusters
	for range 6 {
		same.Samples = append(same.Samples, 5, 5)
		same.Ends = append(same.Ends, len(same.Samples), len(same.Samples))
	}
	if lo, hi, ok := same.QuantileCI(same.Samples, 0.5, 0.95); !ok || lo != 5 || hi != 5 {
		t.Errorf("equal samples: %v to %v, %v", lo, hi, ok)
	}
	same.Ends[0] = 0 // five groups, and the sixth is empty
	same.Ends[1] = 0
	if _, _, ok := same.QuantileCI(same.Samples, 0.5, 0.95); ok {
		t.Error("five groups give an interval of the median")
	}
}

// The ranks of a large sample are those of the normal approximation, and come
// fast though a binomial distribution of 10^6 stands behind them.
func TestQuantileCIOfMany(t *testing.T) {
	const n = 1_000_000
	x := make([]float64, n)
	for i := range x {
		x[i] = float64(i)
	}
	for _, q := range []float64{0.001, 0.5, 0.99} {
		half := 1.959964 * math.Sqrt(n*q*(1-q))
		lo, hi, ok := QuantileCI(x, q, 0.95)
		if !ok || math.Abs(lo-(n*q-half)) > 3 || math.Abs(hi-(n*q+half)) > 3 {
			t.Errorf("q %v: %v to %v, %v; want about %v to %v", q, lo, hi, ok, n*q-half, n*q+half)
		}
	}
}

func TestSort(t *testing.T) {
	rng := Stream(9, "sort")
	for _, n := range []int{0, 1, 2, 1000, 5000, 20000} {
		x := make([]float64, n)
		for i := range x {
			x[i] = math.Exp(10*rng.NormFloat64()) * float64(rng.IntN(3)-1)
		}
		want := slices.Clone(x)
		slices.Sort(want)
		if Sort(x); !slices.Equal(x, want) {
			t.Errorf("%d values are not sorted", n)
		}
	}
	type pair struct{ key, place int }
	pairs := make([]pair, 10000)
	for i := range pairs {
		pairs[i] = pair{rng.IntN(50), i}
	}
	SortBy(pairs, func(p pair) uint64 { return uint64(p.key) })
	if !slices.IsSortedFunc(pairs, func(a, b pair) int {
		if a.key != b.key {
			return a.key - b.key
		}
		return a.place - b.place
	}) {
		t.Error("pairs are not sorted stably")
	}
}
