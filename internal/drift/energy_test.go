package drift

import (
	"math"
	"math/rand/v2"
	"testing"

	"perflab/internal/stat"
)

// direct is the statistic of a cut by its definition.
func direct(x []float64, at int) float64 {
	mean := func(a, b []float64, pairs float64) float64 {
		var sum float64
		for _, v := range a {
			for _, w := range b {
				sum += math.Abs(v - w)
			}
		}
		return sum / pairs
	}
	a, b := x[:at], x[at:]
	n, m := float64(len(a)), float64(len(b))
	return n * m / (n + m) * (2*mean(a, b, n*m) - mean(a, a, n*(n-1)) - mean(b, b, m*(m-1)))
}

// Both ways of computing the statistic give what its definition gives, for any order.
func TestStatistic(t *testing.T) {
	for seed := range uint64(30) {
		r := stat.Stream(seed, "drift test")
		n := 6 + r.IntN(44)
		x := make([]float64, n)
		for i := range x {
			x[i] = math.Round(r.NormFloat64()*4) + 1000 // with ties
		}
		e := newEnergy(x)
		order := r.Perm(n)
		mixed := make([]float64, n)
		for i, rank := range order {
			mixed[i] = e.sorted[rank]
		}
		want := math.Inf(-1)
		for at := minSize; at <= n-minSize; at++ {
			want = max(want, direct(mixed, at))
		}
		for name, of := range map[string]func([]int) (float64, int){"whole": e.whole, "window": e.window} {
			q, at := of(order)
			if math.Abs(q-want) > 1e-9*max(1, math.Abs(want)) || math.Abs(direct(mixed, at)-q) > 1e-9*max(1, math.Abs(want)) {
				t.Errorf("seed %d, %s: %v at %d, want %v", seed, name, q, at, want)
			}
		}
	}
}

// The share of strong cuts among random orders is the chance that the test finds one: with a
// level of 20 %, about that many histories of noise have a cut.
func TestLevel(t *testing.T) {
	got := share(400, func(i int, r *rand.Rand) bool {
		x := make([]float64, 30)
		for j := range x {
			x[j] = heavy(r)
		}
		return split(x, 0, Options{Level: 0.2, Seed: uint64(i)}) != nil
	})
	if got < 14 || got > 26 { // three standard errors
		t.Errorf("cuts in %.1f %% of the histories, want about 20", got)
	}
}
