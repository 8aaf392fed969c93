package stat

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// coverage is the share of draws that hold, with a check that it lies where an
// exact 95 % interval's must.
func coverage(t *testing.T, what string, draws int, held func() bool) {
	t.Helper()
	covers(t, what, draws, 0.97, held)
}

// covers is coverage of an interval that may be somewhat too wide.
func covers(t *testing.T, what string, draws int, most float64, held func() bool) {
	t.Helper()
	n := 0
	for range draws {
		if held() {
			n++
		}
	}
	share := float64(n) / float64(draws)
	t.Logf("%s: %.1f %%", what, 100*share)
	if share < 0.93 || share > most {
		t.Errorf("%s: the 95 %% interval holds the truth in %.1f %% of %d draws", what, 100*share, draws)
	}
}

// Runs of one mean, in unequal numbers and with unequal spread.
func TestRatioOfRunsCovers(t *testing.T) {
	t.Parallel()
	rng := Stream(11, "runs")
	draw := func(n int, mean, sd float64) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = math.Exp(math.Log(mean) + sd*rng.NormFloat64())
		}
		return x
	}
	for _, c := range []struct {
		what   string
		na, nb int
		sa, sb float64
	}{{"3 and 3 runs", 3, 3, 0.02, 0.02}, {"5 and 10, other spread", 5, 10, 0.01, 0.05}, {"6 and 1", 6, 1, 0.03, 0.03}, {"1 and 4", 1, 4, 0.03, 0.03}} {
		coverage(t, c.what, 2000, func() bool {
			r, err := RatioOfRuns(draw(c.na, 100, c.sa), draw(c.nb, 130, c.sb), 0.95)
			return err == nil && r.Low <= 1.3 && 1.3 <= r.High
		})
	}
}

// Welch's interval of a textbook case: a = (3.0, 3.1, 2.9), b = (2.0, 2.3,
// 2.2, 2.1) as logarithms, so that the difference is -0.85, the error
// sqrt(0.01/3 + 0.016667/4) = 0.0866, df 4.98 and t 2.574.
func TestRatioOfRuns(t *testing.T) {
	exp := func(x ...float64) []float64 {
		for i := range x {
			x[i] = math.Exp(x[i])
		}
		return x
	}
	r, err := RatioOfRuns(exp(3.0, 3.1, 2.9), exp(2.0, 2.3, 2.2, 2.1), 0.95)
	if err != nil || math.Abs(math.Log(r.Value)+0.85) > 1e-12 || math.Abs(math.Log(r.Low)+1.0729) > 5e-4 || math.Abs(math.Log(r.High)+0.6271) > 5e-4 {
		t.Errorf("%v %v %v, %v", math.Log(r.Value), math.Log(r.Low), math.Log(r.High), err)
	}
	if _, err := RatioOfRuns([]float64{1}, []float64{2}, 0.95); !errors.Is(err, ErrOneEach) {
		t.Errorf("one each: %v", err)
	}
	for _, bad := range [][]float64{nil, {0, 1}, {-1}, {math.NaN(), 1}, {math.Inf(1), 2}} {
		if _, err := RatioOfRuns(bad, []float64{1, 2}, 0.95); !errors.Is(err, ErrNoRatio) {
			t.Errorf("%v: %v", bad, err)
		}
	}
	same, err := RatioOfRuns([]float64{2, 2}, []float64{3, 3}, 0.95)
	if err != nil || same.Low != same.High || math.Abs(same.Value-1.5) > 1e-12 {
		t.Errorf("runs without spread: %v, %v", same, err)
	}
}

// correlated draws n latencies whose level wanders: a stationary AR(1) with a
// correlation time of tau samples besides the noise of each.
func correlated(rng *rand.Rand, n int, tau float64) []float64 {
	x := make([]float64, n)
	rho := math.Exp(-1 / tau)
	level := rng.NormFloat64()
	for i := range x {
		level = rho*level + math.Sqrt(1-rho*rho)*rng.NormFloat64()
		x[i] = math.Exp(0.2*level + 0.3*rng.NormFloat64())
	}
	return x
}

// cut makes k blocks of equal length of samples.
func cut(x []float64, k int) Blocks {
	b := Blocks{Samples: x}
	for i := range k {
		b.Ends = append(b.Ends, (i+1)*len(x)/k)
	}
	return b
}

// Two runs of one server, of stationary and autocorrelated latencies: the
// interval of the ratio of means and of quantiles holds 1 in 93 % or more of
// draws, and so an A/A comparison seldom shows a difference.
func TestBlocksCover(t *testing.T) {
	t.Parallel()
	const n, q50, q95 = 800, 0.5, 0.95
	for _, tau := range []float64{0.1, 8} {
		rng := Stream(5, "blocks")
		type tally struct{ held, made int }
		var counts [4]tally
		const draws = 2000
		for range draws {
			var one [4][2]Estimate
			var errs [4][2]error
			for side := range 2 {
				x := correlated(rng, n, tau)
				b, sorted := cut(x, 40), slices.Sorted(slices.Values(x))
				one[0][side], errs[0][side] = b.Mean(0.95)
				one[1][side], errs[1][side] = b.Quantile(sorted, q50, 0.95)
				one[2][side], errs[2][side] = b.Quantile(sorted, q95, 0.95)
				held := make([]float64, 40)
				for i := range held {
					held[i] = Sum(x[i*n/40 : (i+1)*n/40])
				}
				one[3][side], errs[3][side] = BlockRate(held, 0.95)
			}
			for i := range one {
				r, _, err := Ratio(one[i][0], one[i][1], 0.95)
				if errs[i][0] != nil || errs[i][1] != nil || err != nil {
					continue
				}
				counts[i].made++
				if r.Low <= 1 && 1 <= r.High {
					counts[i].held++
				}
			}
		}
		for i, what := range []string{"mean", "median", "p95", "rate"} {
			c := counts[i]
			if made := float64(c.made) / draws; made < 0.95 {
				t.Errorf("tau %v: the %s has an interval in %.1f %% of draws", tau, what, 100*made)
			}
			left := c.held
			covers(t, what, c.made, 1, func() bool { left--; return left >= 0 })
		}
	}
}

// What drifts or has too little gets no interval.
func TestBlocksRefuse(t *testing.T) {
	rng := Stream(3, "refuse")
	flat, ramp := make([]float64, 1000), make([]float64, 1000)
	for i := range ramp {
		flat[i] = 100 + 30*rng.NormFloat64()
		ramp[i] = 100 + float64(i) + 30*rng.NormFloat64()
	}
	mean := func(x []float64, k int) (Estimate, error) { return cut(x, k).Mean(0.95) }
	median := func(x []float64, k int) (Estimate, error) {
		return cut(x, k).Quantile(slices.Sorted(slices.Values(x)), 0.5, 0.95)
	}
	for what, of := range map[string]func([]float64, int) (Estimate, error){"mean": mean, "median": median} {
		a, errA := of(flat, 40)
		b, errB := of(ramp, 40)
		if _, _, err := Ratio(a, b, 0.95); errA != nil || err == nil || what == "mean" && (errB != nil || !errors.Is(err, ErrDrift)) {
			t.Errorf("the %s of a ramp: %v, %v, %v", what, errA, errB, err)
		}
	}
	x := correlated(rng, 200, 0.1)
	if _, err := cut(x, 40).Quantile(slices.Sorted(slices.Values(x)), 0.99, 0.95); !errors.Is(err, ErrTail) {
		t.Errorf("p99 of 200: %v", err)
	}
	if _, err := cut(x, 9).Mean(0.95); !errors.Is(err, ErrFewBlocks) {
		t.Errorf("9 blocks: %v", err)
	}
	if _, err := (Blocks{}).Mean(0.95); err == nil {
		t.Error("no block has an interval")
	}
	sparse := Blocks{Samples: x, Ends: append(make([]int, 39), len(x))}
	if _, err := sparse.Mean(0.95); !errors.Is(err, ErrFewBlocks) {
		t.Errorf("all in one block of 40: %v", err)
	}
	constant := cut(slices.Repeat([]float64{7}, 1000), 40)
	e, err := constant.Quantile(constant.Samples, 0.99, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	if r, blocks, err := Ratio(e, e, 0.95); err != nil || r != (Interval{1, 1, 1}) || blocks != 40 {
		t.Errorf("a constant: %v of %d, %v", r, blocks, err)
	}
	zero := cut(make([]float64, 1000), 40)
	if _, err := zero.Mean(0.95); !errors.Is(err, ErrNoRatio) {
		t.Errorf("all zero: %v", err)
	}
}

// A level that wanders more slowly than blocks are long is not taken for many
// independent samples: either there is no interval, or it is wide.
func TestBlocksSlowWander(t *testing.T) {
	t.Parallel()
	rng := Stream(9, "wander")
	made, held := 0, 0
	for range 1000 {
		a, errA := cut(correlated(rng, 1200, 60), 40).Mean(0.95)
		b, errB := cut(correlated(rng, 1200, 60), 40).Mean(0.95)
		r, _, err := Ratio(a, b, 0.95)
		if errA != nil || errB != nil || err != nil {
			continue
		}
		made++
		if r.Low <= 1 && 1 <= r.High {
			held++
		}
	}
	if share := float64(held) / float64(made); share < 0.90 {
		t.Errorf("a slow wander is held in %.1f %% of %d", 100*share, made)
	}
}

// Two runs of the same requests: what their lengths do to both is no noise of
// the ratio, so that a difference of 5 % in a mean and of 20 % in a p99 of 1,000
// is shown, and seldom one where there is none.
func TestPairedBlocks(t *testing.T) {
	const n, draws = 1000, 1000
	rng := Stream(7, "paired")
	estimate := func(x []float64, q float64) (Estimate, error) {
		if q == 0 {
			return cut(x, 40).Mean(0.95)
		}
		return cut(x, 40).Quantile(slices.Sorted(slices.Values(x)), q, 0.95)
	}
	for _, c := range []struct {
		what   string
		q      float64
		true   float64
		length float64 // sd of the logarithm of what both share
		least  float64 // share of draws in which the true ratio is shown
	}{{"mean, lengths of heavy tail", 0, 1.05, 1, 0.95}, {"mean, no lengths", 0, 1.05, 0, 0.95}, {"p99", 0.99, 1.2, 0.1, 0.9}} {
		shown, made := 0, 0
		held := func(ratio float64) bool {
			a, b := make([]float64, n), make([]float64, n)
			for i := range a {
				length := math.Exp(c.length * rng.NormFloat64())
				a[i], b[i] = length*math.Exp(0.1*rng.NormFloat64()), ratio*length*math.Exp(0.1*rng.NormFloat64())
			}
			x, errX := estimate(a, c.q)
			y, errY := estimate(b, c.q)
			r, _, err := Ratio(x, y, 0.95)
			if errors.Join(errX, errY, err) != nil {
				return true // made says how often
			}
			made++
			if r.Low > 1 || r.High < 1 {
				shown++
			}
			return r.Low <= ratio && ratio <= r.High
		}
		const most = 1 // it errs on the wide side
		covers(t, c.what+", equal", draws, most, func() bool { return held(1) })
		shown, made = 0, 0
		covers(t, c.what+", apart", draws, most, func() bool { return held(c.true) })
		if share := float64(shown) / draws; share < c.least || made < 0.95*draws {
			t.Errorf("%s: %.3fx is shown in %.1f %% of draws, of %d with an interval", c.what, c.true, 100*share, made)
		}
	}
}

func BenchmarkBlocksQuantile(b *testing.B) {
	x := correlated(Stream(1, "bench"), 1_000_000, 8)
	blocks, sorted := cut(x, 40), slices.Sorted(slices.Values(x))
	for b.Loop() {
		if _, err := blocks.Quantile(sorted, 0.99, 0.95); err != nil {
			b.Fatal(err)
		}
	}
}
