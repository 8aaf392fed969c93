package stat

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
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

// launchesOf are rounds of two arms: a row is a round, NaN a launch without a figure.
func launchesOf(rows ...[2]float64) Launches {
	var out Launches
	for i, row := range rows {
		for arm, y := range row {
			out = append(out, Launch{Y: y, Arm: arm, Round: i})
		}
	}
	return out
}

var hole = math.NaN()

// TestContrastOfBlocks: of whole rounds of two, whatever the ratio of the variances is,
// the difference is that of the means with the error of so many launches, and of the spread
// the part between rounds counts divided by what a round of that ratio has.
func TestContrastOfBlocks(t *testing.T) {
	l := launchesOf([2]float64{0, 0.1}, [2]float64{1, 1.3}, [2]float64{2, 2.2})
	d, err := newDesign(l, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	const within = 0.01 // of the differences 0.1, 0.3 and 0.2
	means := []float64{0.05, 1.15, 2.1}
	squares := 0.0
	for _, m := range means {
		squares += 2 * (m - Mean(means)) * (m - Mean(means))
	}
	for _, ratio := range blockRatios {
		f := d.fit(ratio, 0, 1)
		want := math.Sqrt((within + squares/(1+2*ratio)) / 4)
		if math.Abs(f.diff-0.2) > 1e-9 || math.Abs(f.scale-math.Sqrt(2.0/3)) > 1e-9 || math.Abs(f.sd-want) > 1e-9 {
			t.Errorf("ratio %v: %+v, want 0.2 with %v", ratio, f, want)
		}
	}
	c, err := l.Contrast(0, 1, 0.95)
	if err != nil || c.N != 3 || c.DF != 4 || math.Abs(c.Diff-0.2) > 0.01 || !(c.Low < c.Diff && c.Diff < c.High) {
		t.Errorf("%+v, %v", c, err)
	}
	back, err := l.Contrast(1, 0, 0.95)
	if err != nil || math.Abs(back.Diff+c.Diff) > 1e-12 || math.Abs(back.Low+c.High) > 1e-9 || math.Abs(back.P-c.P) > 1e-12 {
		t.Errorf("the other way %+v, %v", back, err)
	}
	if low, high := c.At(0.95); low != c.Low || high != c.High {
		t.Errorf("at 95 %% again %v %v", low, high)
	}
	if low, high := c.At(0.99); low >= c.Low || high <= c.High {
		t.Errorf("at 99 %% %v %v in %v %v", low, high, c.Low, c.High)
	}
	for _, confidence := range []float64{0.5, 0.95, 0.99} {
		low, high := c.At(confidence)
		if got := c.Below(high) - c.Below(low); math.Abs(got-confidence) > 1e-9 {
			t.Errorf("the interval at %v holds %v", confidence, got)
		}
	}
}

// mixture is the contrast of two arms where so much noise is usual.
func mixture(t *testing.T, l Launches, usual float64) (*design, Contrast) {
	t.Helper()
	d, err := newDesign(l, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	c := Contrast{DF: float64(len(d.y) - d.columns)}
	c.integrate(d, usual)
	return d, c
}

// TestContrastOfUsualNoise: where any noise is usual the mixture is one of Student's distributions, one
// for each ratio of the variances; small noise is usual, and of large noise less is allowed for.
func TestContrastOfUsualNoise(t *testing.T) {
	l := launchesOf([2]float64{0, 0.1}, [2]float64{0.02, 0.13}, [2]float64{0.01, 0.15})
	for _, l := range []Launches{l[:4], l, append(slices.Clone(l), Launch{Y: 1, Stratum: 1}, Launch{Y: 1.03, Stratum: 1})} {
		d, c := mixture(t, l, math.Inf(1))
		for _, x := range []float64{-0.5, 0, 0.08, 0.12, 0.2, 1} {
			sum, all := 0.0, 0.0
			for i, round := range blockRatios {
				for n, noise := range noiseRatios {
					f := d.fit(round, 0, noise)
					w := math.Exp(f.likelihood) * blockWeight(blockRatios, i) * noiseWeights[n]
					below := StudentTail((x-f.diff)/(f.sd*f.scale), c.DF) / 2
					if x > f.diff {
						below = 1 - below
					}
					sum, all = sum+w*below, all+w
				}
			}
			if got := c.Below(x); math.Abs(got-sum/all) > 5e-4 {
				t.Errorf("%d launches: below %v with a chance of %v, by Student %v", len(l), x, got, sum/all)
			}
		}
	}
	width := func(times, usual float64) float64 {
		big := slices.Clone(l)
		for i := range big {
			big[i].Y *= times
		}
		_, c := mixture(t, big, usual)
		low, high := c.At(0.95)
		return (high - low) / times
	}
	whole := width(1, math.Inf(1))
	for times, share := range map[float64][2]float64{0.01: {0.98, 1}, 1: {0.7, 0.95}, 10: {0.4, 0.75}} {
		if got := width(times, usualNoise) / whole; got < share[0] || got > share[1] {
			t.Errorf("of %v times the scatter the interval is %v as wide as where any noise is usual, want %v", times, got, share)
		}
	}
}

// TestHalfWidth: few intervals of drawn launches are wider.
func TestHalfWidth(t *testing.T) {
	rng := Stream(29, "widths")
	for _, sd := range []float64{0.01, 0.08} {
		const n = 400
		most, wider := HalfWidth(sd, 2, 0.98), 0
		for range n {
			var l Launches
			for i := range 2 {
				l = append(l, Launch{Y: sd * rng.NormFloat64(), Round: i}, Launch{Y: sd * rng.NormFloat64(), Arm: 1, Round: i}, Launch{Y: sd * rng.NormFloat64(), Round: -1, Stratum: 1})
			}
			c, err := l.Contrast(0, 1, 0.98)
			if err != nil {
				t.Fatal(err)
			}
			if c.High-c.Low > 2*most {
				wider++
			}
		}
		t.Logf("noise %v: %v, %d of %d are wider", sd, most, wider, n)
		if share := float64(wider) / n; share < 0.05 || share > 0.2 {
			t.Errorf("noise %v: %v of the intervals are wider than %v", sd, share, most)
		}
	}
	if a, b := HalfWidth(0.02, 0, 0.98), HalfWidth(0.02, 2, 0.98); !(a > b) {
		t.Errorf("without further launches %v, with two %v", a, b)
	}
}

// TestContrastIsBestLinear: of random layouts with holes, nodes and strata the
// difference is a sum of the figures with weights that no arm's, round's or stratum's level
// moves, of the variance that it is said to have; and no other such weights have less.
func TestContrastIsBestLinear(t *testing.T) {
	rng := Stream(5, "layouts")
	compared := 0
	for range 300 {
		l := randomLaunches(rng)
		d, err := newDesign(l, 0, 1)
		if err != nil {
			continue
		}
		compared++
		rounds, nodes, noise := blockRatios[rng.IntN(len(blockRatios))], blockRatios[rng.IntN(4)], noiseRatios[rng.IntN(len(noiseRatios))]
		f := d.fit(rounds, nodes, noise)
		weights := make([]float64, len(d.y))
		for i := range d.y {
			moved := *d
			moved.y = slices.Clone(d.y)
			moved.y[i]++
			weights[i] = moved.fit(rounds, nodes, noise).diff - f.diff
		}
		for column, x := range d.x {
			want := 0.0
			if column == 0 {
				want = 1
			}
			if got := dot(weights, x); math.Abs(got-want) > 1e-6 {
				t.Fatalf("the weights on column %d add to %v", column, got)
			}
		}
		least := d.variance(weights, rounds, nodes, noise)
		if math.Abs(math.Sqrt(least)-f.scale) > 1e-6 {
			t.Fatalf("error %v, by the weights %v", f.scale, math.Sqrt(least))
		}
		for range 5 {
			if other := d.otherWeights(weights, rng); d.variance(other, rounds, nodes, noise) < least-1e-9 {
				t.Fatalf("weights of less variance: %v", other)
			}
		}
	}
	if compared < 150 {
		t.Errorf("only %d layouts were compared", compared)
	}
}

func randomLaunches(rng *rand.Rand) Launches {
	var l Launches
	for round := range 2 + rng.IntN(4) {
		for arm := range 3 {
			for range 1 + rng.IntN(2) {
				if y := rng.NormFloat64(); rng.IntN(5) > 0 {
					l = append(l, Launch{Y: y, Arm: arm, Round: round, Node: rng.IntN(3), Stratum: round / 4})
				}
			}
		}
	}
	return l
}

// variance of a weighted sum, in those of the noise.
func (d *design) variance(weights []float64, rounds, nodes, noise float64) float64 {
	sum := 0.0
	for i, a := range d.launches {
		for j, b := range d.launches {
			v := 0.0
			if a.Stratum == b.Stratum && a.Round == b.Round {
				v += rounds
			}
			if a.Stratum == b.Stratum && a.Node == b.Node {
				v += nodes
			}
			switch {
			case i == j && a.Arm == 1:
				v += noise
			case i == j:
				v += 1 / noise
			}
			sum += weights[i] * weights[j] * v
		}
	}
	return sum
}

// otherWeights are weights by which the columns' levels move nothing either: a step
// away from the given ones, less what of it the columns would see.
func (d *design) otherWeights(weights []float64, rng *rand.Rand) []float64 {
	step := make([]float64, len(weights))
	for i := range step {
		step[i] = 0.1 * rng.NormFloat64()
	}
	for range 2000 { // by turns: the columns are not at right angles
		for _, x := range d.x {
			if n := dot(x, x); n > 0 {
				over := dot(step, x) / n
				for i := range step {
					step[i] -= over * x[i]
				}
			}
		}
	}
	out := slices.Clone(weights)
	for i := range out {
		out[i] += step[i]
	}
	return out
}

func TestContrastRefuses(t *testing.T) {
	inf := math.Inf(-1)
	for name, c := range map[string]struct {
		l    Launches
		a, b int
		want error
	}{
		"nothing":               {nil, 0, 1, ErrNoCommonRound},
		"the same arm":          {launchesOf([2]float64{1, 2}, [2]float64{1, 2}), 1, 1, ErrNoCommonRound},
		"no such arm":           {launchesOf([2]float64{1, 2}, [2]float64{1, 2}), 0, 2, ErrNoCommonRound},
		"one round":             {launchesOf([2]float64{1, 2}), 0, 1, ErrNoSpread},
		"never together":        {launchesOf([2]float64{1, hole}, [2]float64{hole, 1}, [2]float64{2, hole}), 0, 1, ErrNoCommonRound},
		"infinite is no figure": {launchesOf([2]float64{1, 2}, [2]float64{inf, inf}), 0, 1, ErrNoSpread},
		"only in other strata":  {Launches{{Y: 1}, {Y: 1}, {Y: 2, Arm: 1, Stratum: 1}, {Y: 2, Arm: 1, Stratum: 1}}, 0, 1, ErrNoCommonRound},
	} {
		if got, err := c.l.Contrast(c.a, c.b, 0.95); !errors.Is(err, c.want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestContrastOfStrata: launches of another stratum tell of the noise alone.
func TestContrastOfStrata(t *testing.T) {
	l := launchesOf([2]float64{1, 1.1}, [2]float64{1.02, 1.13}, [2]float64{0.99, 1.1})
	alone, err := l.Contrast(0, 1, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	for _, level := range []float64{0, 5} {
		with, err := append(slices.Clone(l), Launch{Y: level, Stratum: 1, Round: 9}, Launch{Y: level + 0.02, Stratum: 1, Round: 9}).Contrast(0, 1, 0.95)
		if err != nil || with.DF != alone.DF+1 || math.Abs(with.Diff-alone.Diff) > 1e-3 {
			t.Errorf("level %v: %+v, %v", level, with.Diff, err)
		}
	}
}

// A simulator repeats its figures: a difference is then certain, and none is too.
func TestContrastWithoutNoise(t *testing.T) {
	for _, seed := range []float64{0, 0.5} { // rounds that differ by their seeds
		l := launchesOf([2]float64{0.1, 0.3}, [2]float64{0.1 + seed, 0.3 + seed}, [2]float64{0.1 - seed, 0.3 - seed})
		if c, err := l.Contrast(0, 1, 0.95); err != nil || c.P != 0 || c.SE != 0 || c.SD != 0 || math.Abs(c.Diff-0.2) > 1e-12 || c.Low != c.Diff {
			t.Errorf("figures that repeat: %+v, %v", c, err)
		}
		for i := range l {
			l[i].Y -= 0.2 * float64(l[i].Arm)
		}
		if c, err := l.Contrast(0, 1, 0.95); err != nil || c.Diff != 0 || c.P != 1 || c.SE != 0 || c.Low != 0 {
			t.Errorf("equal figures: %+v, %v", c, err)
		}
	}
	few := launchesOf([2]float64{0.1, 0.3}, [2]float64{0.1, hole})
	if c, err := few.Contrast(0, 1, 0.95); err != nil || c.SE != 0 || math.Abs(c.Diff-0.2) > 1e-12 {
		t.Errorf("three figures: %+v, %v", c, err)
	}
}

// covering draws confirmations and counts in how many the 95 % interval holds the
// truth; PERFLAB_CONFIRMATIONS asks for more of them.
func covering(t *testing.T, draw func(*rand.Rand) Launches, truth float64) (share, width float64) {
	t.Helper()
	n := 250
	if more, err := strconv.Atoi(os.Getenv("PERFLAB_CONFIRMATIONS")); err == nil {
		n = more
	}
	rng := Stream(17, t.Name())
	for range n {
		c, err := draw(rng).Contrast(0, 1, 0.95)
		if err != nil {
			t.Fatal(err)
		}
		if c.Low <= truth && truth <= c.High {
			share++
		}
		width += c.High - c.Low
	}
	return share / float64(n), width / float64(n)
}

// TestContrastCovers holds the coverage of the interval by the number of launches,
// however much rounds differ, with an arm four times as noisy, and on several nodes.
func TestContrastCovers(t *testing.T) {
	t.Parallel()
	const truth = 0.05
	least := 0.93 - 2.6*math.Sqrt(0.07*0.93/250) // of two launches each it is 91 % with a noisy one
	draw := func(n int, round, a, b float64, search bool) func(*rand.Rand) Launches {
		return func(rng *rand.Rand) Launches {
			var l Launches
			for i := range n {
				common := round * rng.NormFloat64()
				l = append(l, Launch{Y: common + a*rng.NormFloat64(), Round: i}, Launch{Y: truth + common + b*rng.NormFloat64(), Arm: 1, Round: i})
			}
			if search {
				common := round * rng.NormFloat64()
				for range 2 {
					l = append(l, Launch{Y: common + a*rng.NormFloat64(), Round: -1, Stratum: 1})
				}
			}
			return l
		}
	}
	for _, n := range []int{2, 3, 4, 8} {
		for _, c := range []struct {
			name        string
			round, a, b float64
		}{
			{"rounds alike", 0, 0.02, 0.02}, {"rounds as the noise", 0.02, 0.02, 0.02}, {"rounds three times the noise", 0.06, 0.02, 0.02},
			{"a four times", 0, 0.08, 0.02}, {"b four times", 0, 0.02, 0.08}, {"b four times, rounds as much", 0.08, 0.02, 0.08},
		} {
			t.Run(fmt.Sprintf("%d launches, %s", n, c.name), func(t *testing.T) {
				share, width := covering(t, draw(n, c.round, c.a, c.b, n > 2), truth)
				t.Logf("%.1f %%, width %.2f of the noise", 100*share, width/math.Sqrt((c.a*c.a+c.b*c.b)/2))
				if share < least {
					t.Errorf("the 95 %% interval holds the truth in %.1f %%", 100*share)
				}
			})
		}
	}
	t.Run("nodes", func(t *testing.T) {
		share, _ := covering(t, func(rng *rand.Rand) Launches {
			var l Launches
			node := []float64{0.03 * rng.NormFloat64(), 0.03 * rng.NormFloat64(), 0.03 * rng.NormFloat64()}
			for i := range 4 {
				for arm := range 2 {
					at := rng.IntN(len(node))
					l = append(l, Launch{Y: truth*float64(arm) + node[at] + 0.008*rng.NormFloat64(), Arm: arm, Round: i, Node: at})
				}
			}
			return l
		}, truth)
		t.Logf("%.1f %%", 100*share)
		if share < least {
			t.Errorf("the 95 %% interval holds the truth in %.1f %%", 100*share)
		}
	})
}

// TestSequentialConfidence holds the constants against those of Wang and Tsiatis for
// equal steps (Jennison and Turnbull 2000, table 2.9), and by simulation a plan that begins late.
func TestSequentialConfidence(t *testing.T) {
	z := func(least, most, now int, confidence float64) float64 {
		return NormalQuantile(1 - (1-SequentialConfidence(least, most, now, confidence))/2)
	}
	for looks, want := range map[int]float64{1: 1.960, 2: 2.038, 3: 2.083, 5: 2.136} {
		if got := z(1, looks, looks, 0.95); math.Abs(got-want) > 2e-3 {
			t.Errorf("%d looks: %.4f, want %.3f", looks, got, want)
		}
	}
	if first, last := z(3, 12, 3, 0.95), z(3, 12, 12, 0.95); math.Abs(first-last*math.Sqrt2) > 1e-6 {
		t.Errorf("at first %v, at last %v", first, last)
	}
	rng := Stream(3, "looks")
	crossed, n := 0, 40000
	for range n {
		sum := 0.0
		for k := 1; k <= 12; k++ {
			if sum += rng.NormFloat64(); k >= 3 && math.Abs(sum) > z(3, 12, k, 0.95)*math.Sqrt(float64(k)) {
				crossed++
				break
			}
		}
	}
	if share := float64(crossed) / float64(n); math.Abs(share-0.05) > 0.004 {
		t.Errorf("%.4f of the paths cross", share)
	}
}

// TestPromise: what further rounds may show grows with the difference, is sure or in vain where nothing scatters, and none are
// left at the end.
func TestPromise(t *testing.T) {
	last := 0.0
	for _, diff := range []float64{-0.05, 0, 0.02, 0.05, 0.2} {
		p := Contrast{Diff: diff, SE: 0.02, DF: 4}.Promise(3, 6, 0.975, 0.01)
		if p <= last || p >= 1 {
			t.Errorf("a difference of %v is shown with the chance %v, after %v of a smaller one", diff, p, last)
		}
		last = p
	}
	for _, c := range []struct {
		of   Contrast
		made int
		want float64
	}{{Contrast{Diff: 0.02}, 3, 1}, {Contrast{Diff: 0.005}, 3, 0}, {Contrast{Diff: 0.2, SE: 0.02, DF: 4}, 6, 0}} {
		if got := c.of.Promise(c.made, 6, 0.975, 0.01); got != c.want {
			t.Errorf("%+v after %d of 6 rounds: %v, want %v", c.of, c.made, got, c.want)
		}
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
		df := 2 * float64(n-1)
		effect := Detectable(0.02, n, df, 0.95, 0.8)
		shown := 0
		for range 4000 {
			a, b := make([]float64, n), make([]float64, n)
			for i := range n {
				a[i], b[i] = 0.02*rng.NormFloat64(), effect+0.02*rng.NormFloat64()
			}
			sd := math.Hypot(StdDev(a), StdDev(b)) * math.Sqrt(float64(n)/df)
			if StudentTail((Mean(b)-Mean(a))/(sd*math.Sqrt(2/float64(n))), df) < 0.05 {
				shown++
			}
		}
		t.Logf("%d launches: %.1f %%", n, float64(shown)/40)
		if shown < 3080 || shown > 3320 {
			t.Errorf("%d launches show the least detectable effect in %.1f %% of draws", n, float64(shown)/40)
		}
	}
}

func TestLaunchesFor(t *testing.T) {
	last := 0
	for _, effect := range []float64{0.5, 0.1, 0.05, 0.03, 0.02, 0.01} {
		n := LaunchesFor(0.02, effect, 0.95, 0.8)
		enough := func(n int) bool { return Detectable(0.02, n, 2*float64(n-1), 0.95, 0.8) <= effect }
		if n < 2 || n < last || !enough(n) || n > 2 && enough(n-1) {
			t.Errorf("an effect of %v: %d launches, after %d", effect, n, last)
		}
		last = n
	}
	if got := LaunchesFor(0, 0.02, 0.95, 0.8); got != 2 {
		t.Errorf("without noise: %d", got)
	}
	for _, effect := range []float64{0, -1, 1e-9} {
		if got := LaunchesFor(0.02, effect, 0.95, 0.8); got != 10000 {
			t.Errorf("an effect of %v: %d", effect, got)
		}
	}
}

func BenchmarkContrast(b *testing.B) {
	l := launchesOf([2]float64{0, 0.1}, [2]float64{0.02, 0.13}, [2]float64{0.01, 0.12}, [2]float64{0.03, 0.11})
	l = append(l, Launch{Y: 1, Stratum: 1, Round: -1}, Launch{Y: 1.01, Stratum: 1, Round: -1})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.Contrast(0, 1, 0.98); err != nil {
			b.Fatal(err)
		}
	}
}
