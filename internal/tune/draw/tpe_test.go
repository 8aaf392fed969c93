package draw

import (
	"math"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/stat"
	"perflab/internal/tune"
)

// hill is 1 at its best value on each dimension, and less with each place that a
// configuration is away from it; the logarithm is a sum over dimensions.
func hill(g domain, best tune.Config) func(tune.Config) float64 {
	return func(c tune.Config) float64 {
		sum := 0.0
		for i, dim := range g.dims {
			at, top := 0, 0
			for v, value := range dim.Values {
				if value == c[dim.Name] {
					at = v
				}
				if value == best[dim.Name] {
					top = v
				}
			}
			away := math.Abs(float64(at - top))
			if !dim.Ordered {
				away = min(away, 1) // values are not nearer or farther
			}
			sum -= away * 0.1 * float64(1+i%3)
		}
		return math.Exp(sum)
	}
}

// climb returns the best figure that a search finds; figures have noise.
func climb(t *testing.T, kind string, g domain, figure func(tune.Config) float64, noise float64, trials int, seed uint64) (best float64, refused int) {
	t.Helper()
	d := drawer(t, kind, g, tune.Space{Baseline: tune.Config{"z": "1"}, Primary: "w"}, up, tune.Budget{Trials: trials}, seed)
	rng := stat.Stream(seed, "noise")
	for p, ok := d.Ask(); ok; p, ok = d.Ask() {
		m := figure(p.Config)
		best = max(best, m)
		o := tune.Observation{Trial: p.Trial, Status: tune.Measured, Figures: map[string]map[string]float64{"w": {"m": m * math.Exp(noise*rng.NormFloat64())}}}
		if m == 0 {
			o = tune.Observation{Trial: p.Trial, Status: tune.Refused, Reason: "no memory"}
			refused++
		}
		d.Tell(o)
	}
	return best, refused
}

// TestTPELearns: on a function that is separable it finds better than chance
// does with as many trials, with noise and with what is refused too.
func TestTPELearns(t *testing.T) {
	t.Parallel()
	g := domain{dims: dims("a#1,2,3,4,5,6,7,8 b#,1,2,3,4,5 c:u,v,w,x d#1,2,3,4,5,6 e:on,off")}
	figure := hill(g, tune.Config{"a": "6", "b": "2", "c": "w", "d": "2", "e": "off"})
	full := func(c tune.Config) float64 { // and large values of both do not fit
		a, _ := strconv.Atoi(c["a"])
		d, _ := strconv.Atoi(c["d"])
		if a+d > 9 {
			return 0
		}
		return figure(c)
	}
	for name, c := range map[string]struct {
		figure func(tune.Config) float64
		noise  float64
	}{"exact": {figure, 0}, "noisy": {figure, 0.02}, "some refused": {full, 0.02}} {
		const seeds, trials = 50, 40
		var tpe, random []float64
		refused := map[string]int{}
		won := 0
		for seed := range uint64(seeds) {
			a, out := climb(t, "tpe", g, c.figure, c.noise, trials, seed)
			b, outRandom := climb(t, "random", g, c.figure, c.noise, trials, seed)
			tpe, random = append(tpe, a), append(random, b)
			refused["tpe"] += out
			refused["random"] += outRandom
			if a > b {
				won++
			}
		}
		t.Logf("%s: TPE %.3f, random %.3f of the best, on average over %d seeds; TPE alone is better in %d; refused %v", name, stat.Mean(tpe), stat.Mean(random), seeds, won, refused)
		if stat.Mean(tpe) < stat.Mean(random)+0.05 {
			t.Errorf("%s: TPE finds %.3f, random %.3f", name, stat.Mean(tpe), stat.Mean(random))
		}
		if name == "some refused" && refused["tpe"] >= refused["random"] {
			t.Errorf("%s: TPE runs into refusals as often as chance: %v", name, refused)
		}
	}
}

// TestTPEStartsAtRandom: the first trials are those of the random search, ten of
// them or a third of a small budget.
func TestTPEStartsAtRandom(t *testing.T) {
	g := domain{dims: dims("a#1,2,3,4,5,6,7,8 b#1,2,3,4,5,6,7,8 c#1,2,3,4,5,6,7,8")}
	for trials, first := range map[int]int{30: 10, 20: 10, 18: 6, 6: 2, 2: 1} {
		space := tune.Space{Baseline: tune.Config{"a": "1"}, Primary: "w"}
		a, b := drawer(t, "tpe", g, space, up, tune.Budget{Trials: trials}, 9), drawer(t, "random", g, space, up, tune.Budget{Trials: trials}, 9)
		for n := range trials {
			p, _ := a.Ask()
			q, _ := b.Ask()
			if same := cmp.Equal(p, q); same != (n < first) && (n < first || n == trials-1) {
				t.Errorf("of %d trials %d is the random one: %v", trials, n+1, same)
			}
			o := tune.Observation{Trial: p.Trial, Status: tune.Measured, Figures: map[string]map[string]float64{"w": {"m": float64(n)}}}
			a.Tell(o)
			b.Tell(o)
		}
	}
}

func TestParzen(t *testing.T) {
	for _, c := range []struct {
		name     string
		dim      string
		observed []int
		want     []float64
	}{
		{"nothing observed", "a:x,y,z", nil, []float64{1. / 3, 1. / 3, 1. / 3}},
		// Three kernels and the prior, each with 1/4 more on every value: (5/4, 1/4, 1/4) of 7/4.
		{"categories", "a:x,y,z", []int{0, 0, 1}, []float64{(5./7+5./7+1./7)/4 + 1./12, (1./7+1./7+5./7)/4 + 1./12, 3./7/4 + 1./12}},
		// The prior's centre is place 1, so the curve at 0 has the width 1, which is not below 3/3.
		{"numbers", "a#1,2,3", []int{0}, []float64{0.5*bell(-.5, .5)/bell(-.5, 2.5) + 1./6, 0.5*bell(.5, 1.5)/bell(-.5, 2.5) + 1./6, 0.5*bell(1.5, 2.5)/bell(-.5, 2.5) + 1./6}},
		// The default has no place: 1/2 beside the curve's 1, which is over two places at 0 and 1, 2/3 wide.
		{"a number beside the default", "a#,1,2", []int{1}, []float64{0.5/3 + 1./6, 0.5/1.5*bell(-.75, .75)/bell(-.75, 2.25) + 1./6, 0.5/1.5*bell(.75, 2.25)/bell(-.75, 2.25) + 1./6}},
		{"the default", "a#,1,2", []int{0}, []float64{0.5*1.5/2.5 + 1./6, 0.5*0.5/2.5 + 1./6, 0.5*0.5/2.5 + 1./6}},
	} {
		got := parzen(dims(c.dim)[0], c.observed)
		for v := range c.want {
			if math.Abs(got[v]-c.want[v]) > 1e-12 {
				t.Errorf("%s: %v, want %v", c.name, got, c.want)
				break
			}
		}
	}
	rng := stat.Stream(1, "observed")
	for range 200 {
		dim := dims([]string{"a#1,2,3,4,5", "a#,1,2,3", "a:x,y", "a#,1", "a#1"}[rng.IntN(5)])[0]
		var observed []int
		for range rng.IntN(60) {
			observed = append(observed, rng.IntN(len(dim.Values)))
		}
		p := parzen(dim, observed)
		for _, v := range p {
			if !(v > 0) {
				t.Fatalf("%v, %v: %v", dim, observed, p)
			}
		}
		if math.Abs(stat.Sum(p)-1) > 1e-12 {
			t.Fatalf("%v, %v: %v sums to %v", dim, observed, p, stat.Sum(p))
		}
	}
}

// bell is the standard normal mass between two places.
func bell(from, to float64) float64 {
	return (math.Erf(to/math.Sqrt2) - math.Erf(from/math.Sqrt2)) / 2
}

func TestFading(t *testing.T) {
	w := fading(30)
	for i, want := range map[int]float64{0: 1. / 30, 2: (1./30 + 1) / 2, 4: 1, 5: 1, 29: 1} {
		if math.Abs(w[i]-want) > 1e-12 {
			t.Errorf("weight %d is %v, want %v", i, w[i], want)
		}
	}
	if w := fading(26); w[0] != 1./26 || w[1] != 1 {
		t.Errorf("of 26: %v", w)
	}
	if got := stat.Sum(fading(25)); got != 25 {
		t.Errorf("25 weights sum to %v", got)
	}
}
