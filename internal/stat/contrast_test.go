package stat

import (
	"errors"
	"math"
	"slices"
	"testing"
)

func TestStudentTail(t *testing.T) {
	closed := map[float64]func(x float64) float64{
		1: func(x float64) float64 { return 1 - 2*math.Atan(x)/math.Pi },
		2: func(x float64) float64 { return 2 / (2 + x*x + x*math.Sqrt(2+x*x)) },
		3: func(x float64) float64 {
			s := x / math.Sqrt(3)
			return 1 - 2/math.Pi*(s/(1+s*s)+math.Atan(s))
		},
		4: func(x float64) float64 {
			s := x * x / (4 + x*x)
			return 1 - math.Sqrt(s)*(3-s)/2
		},
	}
	for df, tail := range closed {
		for _, x := range []float64{0, 1e-6, 0.1, 0.5, 1, 2, 3.7, 10, 100} {
			if got, want := StudentTail(x, df), tail(x); math.Abs(got-want) > 1e-10 || got != StudentTail(-x, df) {
				t.Errorf("beyond %v with %v degrees of freedom: %v, want %v", x, df, got, want)
			}
		}
	}
	for _, df := range []float64{0.5, 1.7, 3.25, 6, 12.5, 100, 1e4} {
		for _, x := range []float64{0.3, 1, 2.5} {
			if got, want := StudentTail(x, df), 1-2*integral(x, df); math.Abs(got-want) > 1e-10 {
				t.Errorf("beyond %v with %v degrees of freedom: %v, the density's integral gives %v", x, df, got, want)
			}
		}
		for _, p := range []float64{0.6, 0.9, 0.975, 0.999} {
			if got := StudentTail(StudentQuantile(p, df), df); math.Abs(got-2*(1-p)) > 1e-10 {
				t.Errorf("beyond the %v-quantile with %v degrees of freedom: %v", p, df, got)
			}
		}
	}
	if got := StudentTail(1.959963984540054, math.Inf(1)); math.Abs(got-0.05) > 1e-12 {
		t.Errorf("the normal tail beyond 1.96 is %v", got)
	}
	for _, odd := range []float64{StudentTail(1, 0), StudentTail(math.NaN(), 3), StudentTail(1, math.NaN())} {
		if !math.IsNaN(odd) {
			t.Errorf("no tail, but %v", odd)
		}
	}
	if got := StudentTail(math.Inf(-1), 3); got != 0 {
		t.Errorf("beyond everything: %v", got)
	}
}

// integral of the density from 0 to x, by Simpson's rule.
func integral(x, df float64) float64 {
	top, _ := math.Lgamma((df + 1) / 2)
	half, _ := math.Lgamma(df / 2)
	density := func(t float64) float64 {
		return math.Exp(top-half-(df+1)/2*math.Log1p(t*t/df)) / math.Sqrt(df*math.Pi)
	}
	const n = 2000
	var sum Total
	for i := range n + 1 {
		weight := 2 + 2*float64(i%2)
		if i == 0 || i == n {
			weight = 1
		}
		sum.Add(weight * density(x*float64(i)/n))
	}
	return sum.Sum() * x / n / 3
}

var hole = math.NaN()

// Worked by hand: rounds lie 1 apart, b-a is 0.1, 0.3 and 0.2, so that the
// difference is 0.2 and its error sqrt(0.01/3), on 2 degrees.
func TestContrast(t *testing.T) {
	r := Rounds{{0, 0.1}, {1, 1.3}, {2, 2.2}}
	c, err := r.Contrast(0, 1, 0.95)
	se := math.Sqrt(0.01 / 3)
	half := StudentQuantile(0.975, 2) * se
	want := Contrast{Diff: 0.2, Low: 0.2 - half, High: 0.2 + half, SE: se, DF: 2, P: StudentTail(0.2/se, 2), SD: 0.1 / math.Sqrt2, N: 3}
	if err != nil || !near(c, want) {
		t.Errorf("%+v, %v, want %+v", c, err, want)
	}
	back, err := r.Contrast(1, 0, 0.95)
	want.Diff, want.Low, want.High = -want.Diff, -want.High, -want.Low
	if err != nil || !near(back, want) {
		t.Errorf("the other way %+v, %v", back, err)
	}
	if low, high := c.At(0.95); low != c.Low || high != c.High {
		t.Errorf("at 95 %% again %v %v", low, high)
	}
	if low, high := c.At(0.99); low >= c.Low || high <= c.High {
		t.Errorf("at 99 %% %v %v in %v %v", low, high, c.Low, c.High)
	}
}

func near(a, b Contrast) bool {
	x, y := []float64{a.Diff, a.Low, a.High, a.SE, a.DF, a.P, a.SD}, []float64{b.Diff, b.Low, b.High, b.SE, b.DF, b.P, b.SD}
	return a.N == b.N && slices.EqualFunc(x, y, func(a, b float64) bool { return math.Abs(a-b) < 1e-10 })
}

// TestContrastLeast: no other effects leave a smaller sum of squares, found here
// by turns (each column's and each row's mean in turn, until nothing moves),
// whatever cells are missing; the freedom is cells less parameters.
func TestContrastLeast(t *testing.T) {
	rng := Stream(5, "layouts")
	compared := 0
	for range 300 {
		rounds, columns := 2+rng.IntN(4), 2+rng.IntN(3)
		r := make(Rounds, rounds)
		for i := range r {
			r[i] = make([]float64, columns)
			for j := range r[i] {
				if r[i][j] = rng.NormFloat64(); rng.IntN(5) == 0 {
					r[i][j] = hole
				}
			}
		}
		c, err := r.Contrast(0, 1, 0.95)
		if err != nil {
			continue
		}
		compared++
		effects, squares := byTurns(r)
		if math.Abs(c.Diff-(effects[1]-effects[0])) > 1e-8 || math.Abs(c.SD*c.SD*c.DF-squares) > 1e-8 {
			t.Fatalf("%v: %+v, by turns %v and %v", r, c, effects[1]-effects[0], squares)
		}
		// The error of the difference, by what a unit of each cell moves it.
		var square float64
		for i := range r {
			for j := range r[i] {
				if !math.IsNaN(r[i][j]) {
					moved := slices.Clone(r)
					moved[i] = slices.Clone(r[i])
					moved[i][j]++
					d, _ := moved.Contrast(0, 1, 0.95)
					square += (d.Diff - c.Diff) * (d.Diff - c.Diff)
				}
			}
		}
		if math.Abs(c.SE-c.SD*math.Sqrt(square)) > 1e-8 {
			t.Fatalf("%v: error %v, cell by cell %v", r, c.SE, c.SD*math.Sqrt(square))
		}
	}
	if compared < 150 {
		t.Errorf("only %d layouts were compared", compared)
	}
}

func byTurns(r Rounds) (effects []float64, squares float64) {
	effects, rows := make([]float64, len(r[0])), make([]float64, len(r))
	turn := func(i, j int, into *float64) {
		var sum, n float64
		for a := range r {
			for b := range r[a] {
				if (i < 0 || a == i) && (j < 0 || b == j) && !math.IsNaN(r[a][b]) {
					sum += r[a][b] - rows[a] - effects[b]
					n++
				}
			}
		}
		if n > 0 {
			*into += sum / n
		}
	}
	for range 3000 {
		for i := range rows {
			turn(i, -1, &rows[i])
		}
		for j := range effects {
			turn(-1, j, &effects[j])
		}
	}
	for i := range r {
		for j, y := range r[i] {
			if e := y - rows[i] - effects[j]; !math.IsNaN(e) {
				squares += e * e
			}
		}
	}
	return effects, squares
}

func TestContrastRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		r    Rounds
		a, b int
		want error
	}{
		"nothing":               {nil, 0, 1, ErrNoCommonRound},
		"the same column":       {Rounds{{1, 2}, {1, 2}}, 1, 1, ErrNoCommonRound},
		"no such column":        {Rounds{{1, 2}, {1, 2}}, 0, 2, ErrNoCommonRound},
		"one round":             {Rounds{{1, 2}}, 0, 1, ErrNoSpread},
		"one round of three":    {Rounds{{1, 2, 3}}, 0, 1, ErrNoSpread},
		"never together":        {Rounds{{1, hole, 2}, {hole, 1, 2}, {1, hole, 2}}, 0, 1, ErrNoCommonRound},
		"one round has both":    {Rounds{{1, 2}, {1, hole}, {hole, 3}}, 0, 1, ErrNoSpread},
		"infinite is no figure": {Rounds{{1, 2}, {1, math.Inf(-1)}}, 0, 1, ErrNoSpread},
	} {
		if got, err := c.r.Contrast(c.a, c.b, 0.95); !errors.Is(err, c.want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	// Columns that share no round with a and b still tell about the spread.
	r := Rounds{{1, 2, hole, hole}, {hole, hole, 1, 2}, {hole, hole, 1, 2.2}}
	if c, err := r.Contrast(0, 1, 0.95); err != nil || c.DF != 1 || math.Abs(c.Diff-1) > 1e-12 || math.Abs(c.SD-0.1) > 1e-12 {
		t.Errorf("a layout of two parts: %+v, %v", c, err)
	}
}

// A simulator repeats its figures: a difference is then certain, and none is too.
func TestContrastWithoutNoise(t *testing.T) {
	r := Rounds{{0.1, 0.1, 0.3}, {0.1, 0.1, 0.3}, {0.1, 0.1, 0.3}}
	if c, err := r.Contrast(0, 1, 0.95); err != nil || c.Diff != 0 || c.P != 1 || c.SE != 0 || c.Low != 0 {
		t.Errorf("equal figures: %+v, %v", c, err)
	}
	if c, err := r.Contrast(0, 2, 0.95); err != nil || c.P != 0 || c.SE != 0 || math.Abs(c.Diff-0.2) > 1e-12 {
		t.Errorf("figures that repeat: %+v, %v", c, err)
	}
}

func TestContrastCovers(t *testing.T) {
	t.Parallel()
	rng := Stream(17, "rounds")
	const truth = 0.05
	draw := func(rounds int, drift float64, noise ...float64) Rounds {
		r := make(Rounds, rounds)
		for i := range r {
			common := drift * rng.NormFloat64()
			for j, sd := range noise {
				r[i] = append(r[i], truth*float64(j)+common+sd*rng.NormFloat64())
			}
		}
		return r
	}
	holds := func(r Rounds, a, b int) bool {
		c, err := r.Contrast(a, b, 0.95)
		true := truth * float64(b-a)
		return err == nil && c.Low <= true && true <= c.High
	}
	coverage(t, "3 rounds of 3", 2000, func() bool { return holds(draw(3, 0, 0.02, 0.02, 0.02), 0, 1) })
	coverage(t, "rounds that differ by five times the noise", 2000, func() bool { return holds(draw(3, 0.1, 0.02, 0.02, 0.02), 0, 2) })
	coverage(t, "one cell missing", 2000, func() bool {
		r := draw(3, 0.1, 0.02, 0.02, 0.02)
		r[rng.IntN(3)][rng.IntN(3)] = hole
		return holds(r, 0, 1)
	})
	share := func(a, b int, noise ...float64) float64 {
		held := 0
		for range 2000 {
			if holds(draw(3, 0.1, noise...), a, b) {
				held++
			}
		}
		return float64(held) / 2000
	}
	noisy, quiet := share(0, 1, 0.02, 0.08, 0.02), share(0, 1, 0.02, 0.02, 0.08)
	t.Logf("one column four times as noisy: %.1f %% where it is compared, %.1f %% where not", 100*noisy, 100*quiet)
	if noisy < 0.8 || noisy > 0.93 || quiet < 0.99 {
		t.Errorf("one column four times as noisy: %.3f where it is compared, %.3f where not: not as documented", noisy, quiet)
	}
}

// TestDetectable: four tests in five show the least detectable effect, nearly.
func TestDetectable(t *testing.T) {
	t.Parallel()
	if got, want := Detectable(0.02, 3, 4, 0.95, 0.8), 0.02*math.Sqrt(2.0/3)*(StudentQuantile(0.975, 4)+StudentQuantile(0.8, 4)); math.Abs(got-want) > 1e-15 {
		t.Errorf("%v, want %v", got, want)
	}
	if got, want := Detectable(0.02, 3, 4, 0.95, 0.5), 0.02*math.Sqrt(2.0/3)*StudentQuantile(0.975, 4); math.Abs(got-want) > 1e-15 {
		t.Errorf("with even odds %v, want %v", got, want)
	}
	rng := Stream(23, "power")
	for _, n := range []int{3, 6} {
		effect := Detectable(0.02, n, 2*float64(n-1), 0.95, 0.8)
		shown := 0
		for range 2000 {
			r := make(Rounds, n)
			for i := range r {
				r[i] = []float64{0.02 * rng.NormFloat64(), effect + 0.02*rng.NormFloat64(), 0.02 * rng.NormFloat64()}
			}
			if c, err := r.Contrast(0, 1, 0.95); err == nil && c.P < 0.05 {
				shown++
			}
		}
		t.Logf("%d launches: %.1f %%", n, float64(shown)/20)
		if shown < 1550 || shown > 1760 {
			t.Errorf("%d launches show the least detectable effect in %.1f %% of draws", n, float64(shown)/20)
		}
	}
}

func TestLaunchesFor(t *testing.T) {
	last := 0
	for _, effect := range []float64{0.5, 0.1, 0.05, 0.03, 0.02, 0.01} {
		n := LaunchesFor(0.02, effect, 0.95, 0.8)
		enough := func(n int) bool { return Detectable(0.02, n, 2*float64(n-1), 0.95, 0.8) <= effect }
		if n < 3 || n < last || !enough(n) || n > 3 && enough(n-1) {
			t.Errorf("an effect of %v: %d launches, after %d", effect, n, last)
		}
		last = n
	}
	if got := LaunchesFor(0, 0.02, 0.95, 0.8); got != 3 {
		t.Errorf("without noise: %d", got)
	}
	for _, effect := range []float64{0, -1, 1e-9} {
		if got := LaunchesFor(0.02, effect, 0.95, 0.8); got != 10000 {
			t.Errorf("an effect of %v: %d", effect, got)
		}
	}
}
