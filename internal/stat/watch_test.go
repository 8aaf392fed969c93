package stat

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// loop simulates a closed loop: so many requests are under way, and each has its tokens at the
// speed that the server has while it is under way. The speed wanders about 1 with a standard
// deviation and a time over which it is alike, both as shares of it and of a request's time.
type loop struct {
	users   int
	wander  float64 // standard deviation of the logarithm of the server's speed
	memory  float64 // requests' times over which the speed is alike
	lengths float64 // standard deviation of the logarithm of a request's tokens
	filling float64 // by what share the first requests are slower
	noise   float64 // standard deviation of the logarithm of a request's own time
}

// run gives the requests as they end, tokens and time of each, to add, until it says that it is
// enough or most have ended. It is a simulation in steps of a fiftieth of a request's time.
func (l loop) run(rng *rand.Rand, most int, add func(tokens, took float64) bool) {
	const step = 0.02
	type request struct{ tokens, left, began, pace float64 }
	draw := func(now float64) request {
		n := math.Exp(l.lengths*rng.NormFloat64() - l.lengths*l.lengths/2)
		return request{tokens: n, left: n, began: now, pace: math.Exp(l.noise * rng.NormFloat64())}
	}
	under := make([]request, l.users)
	for i := range under {
		under[i] = draw(0)
	}
	keep := math.Exp(-step / math.Max(l.memory, 1e-9))
	level, ended := l.wander*rng.NormFloat64(), 0
	for now := 0.0; ; now += step {
		level = keep*level + math.Sqrt(1-keep*keep)*l.wander*rng.NormFloat64()
		speed := math.Exp(level)
		if now < 1 {
			speed *= 1 - l.filling
		}
		for i := range under {
			under[i].left -= speed * step * under[i].pace
			for under[i].left <= 0 {
				ended++
				at := now + step
				if add(under[i].tokens, at-under[i].began) || ended >= most {
					return
				}
				over := under[i].left
				under[i] = draw(at)
				under[i].left += over
			}
		}
	}
}

// truth is the tokens by time of a run that is so long that its own error is small.
func (l loop) truth() float64 {
	var tokens, took Total
	n := 0
	l.run(Stream(99, "truth"), 400_000, func(y, x float64) bool {
		if n++; n > 10*l.users {
			tokens.Add(y)
			took.Add(x)
		}
		return false
	})
	return tokens.Sum() / took.Sum()
}

// TestWatchHoldsTheTruth simulates closed loops and ends each run when its interval is narrow:
// the interval that is stated then holds the truth in at least 93 of 100 runs, although it was looked
// at until it was narrow; but not where the server's speed wanders so slowly that a short run sees one of them.
func TestWatchHoldsTheTruth(t *testing.T) {
	runs := 400
	if testing.Short() {
		runs = 120
	}
	for _, c := range []struct {
		loop
		within, least float64
	}{
		{loop{users: 8, lengths: 0.5, noise: 0.1}, 0.02, 0.93},
		{loop{users: 8, wander: 0.05, memory: 0.3, lengths: 0.3, filling: 0.3}, 0.02, 0.93},
		{loop{users: 16, wander: 0.05, memory: 1, noise: 0.05, filling: 0.3}, 0.03, 0.93},
		{loop{users: 32, wander: 0.1, memory: 0.5, lengths: 0.2, filling: 0.3}, 0.05, 0.93},
		{loop{users: 4, wander: 0.05, memory: 2, lengths: 0.2}, 0.04, 0.93},
		{loop{users: 4, wander: 0.05, memory: 4, lengths: 0.2}, 0.03, 0.93},
		{loop{users: 16, wander: 0.03, memory: 8, lengths: 0.2}, 0.02, 0.73}, // slower than a short run can see
	} {
		truth := c.truth()
		held, early, requests := 0, 0, 0
		for seed := range runs {
			w := &Watch{Within: c.within, Together: c.users}
			stopped, n := false, 0
			c.run(Stream(uint64(seed), "watch"), 20_000, func(y, x float64) bool {
				n++
				stopped = w.Add(y, x)
				return stopped
			})
			if !stopped {
				continue
			}
			f := w.Found()
			early++
			requests += n
			if f.Half == nil || *f.Half > c.within {
				t.Fatalf("%+v: a run ended with %+v", c, f)
			}
			value := Sum(w.y[f.Left:]) / Sum(w.x[f.Left:])
			if math.Abs(math.Log(value/truth)) <= math.Log1p(*f.Half) {
				held++
			}
		}
		share := float64(held) / float64(max(early, 1))
		t.Logf("%+v: %d of %d runs ended early, after %d requests on average; %.1f %% of their intervals hold the truth",
			c, early, runs, requests/max(early, 1), 100*share)
		if early < runs*9/10 {
			t.Errorf("%+v: %d of %d runs ended early", c, early, runs)
		}
		// The 99 % bound of chance in so many runs.
		if least := c.least - 2.33*math.Sqrt(c.least*(1-c.least)/float64(max(early, 1))); share < least {
			t.Errorf("%+v: the stated interval holds the truth in %.1f %% of runs", c, 100*share)
		}
	}
}

// TestWatchGoesOn: a figure that drifts, or varies too much for the number of requests, ends no run.
func TestWatchGoesOn(t *testing.T) {
	for name, value := range map[string]func(rng *rand.Rand, n int) float64{
		"drift": func(_ *rand.Rand, n int) float64 { return 1 + float64(n)/1000 },
		"noise": func(rng *rand.Rand, _ int) float64 { return math.Exp(1.2 * rng.NormFloat64()) },
	} {
		w, rng := &Watch{Within: 0.01, Together: 8}, Stream(7, name)
		for n := range 3000 {
			if w.Add(1, value(rng, n)) {
				t.Fatalf("%s: the run ended after %d requests with %+v", name, n+1, w.Found())
			}
		}
	}
}

// TestWatchLooksSeldom: the number of looks grows as the logarithm of the run's length, and the
// first comes no sooner than there are blocks enough.
func TestWatchLooksSeldom(t *testing.T) {
	w, rng := &Watch{Within: 1e-9, Together: 32}, Stream(1, "looks")
	for n := range 100_000 {
		w.Add(1, 1+0.1*rng.Float64())
		if w.looks > 0 && n+1 < WatchLeast(32) {
			t.Fatalf("looked at %d values, the least is %d", n+1, WatchLeast(32))
		}
	}
	if most := int(math.Log(100_000/float64(WatchLeast(32)))/math.Log(looksApart)) + 2; w.looks < 10 || w.looks > most {
		t.Errorf("%d looks at 100,000 values, %d are expected at most", w.looks, most)
	}
}

// TestWatchOfNoNoise: a figure that never varies is known at once, and the run ends at the second look.
func TestWatchOfNoNoise(t *testing.T) {
	w := &Watch{Within: 0.01, Together: 4}
	for n := 1; ; n++ {
		if w.Add(2, 1) {
			if n != WatchEnds(4) {
				t.Errorf("ended after %d values, WatchEnds says %d", n, WatchEnds(4))
			}
			return
		}
		if n > 10_000 {
			t.Fatal(fmt.Sprint("it never ended: ", w.Found()))
		}
	}
}

// TestWatchOfQuantiles: a P90 is known later than the middle, and its interval holds it.
func TestWatchOfQuantiles(t *testing.T) {
	ends := map[float64]int{}
	for _, q := range []float64{0.5, 0.9} {
		truth := math.Exp(0.3 * math.Sqrt2 * math.Erfinv(2*q-1))
		held, sum := 0, 0
		for seed := range 100 {
			rng := Stream(uint64(seed), "quantiles")
			w := &Watch{Within: 0.05, Together: 8, Quantile: q}
			n := 0
			for n = 1; n < 100_000 && !w.Add(math.Exp(0.3*rng.NormFloat64()), 1); n++ {
			}
			f := w.Found()
			sum += n
			sorted := append([]float64{}, w.y[f.Left:]...)
			if v := quantileOf(sorted, q); math.Abs(math.Log(v/truth)) <= math.Log1p(*f.Half) {
				held++
			}
		}
		ends[q] = sum / 100
		if held < 90 {
			t.Errorf("P%.0f: the interval holds it in %d of 100 runs", 100*q, held)
		}
	}
	if ends[0.9] <= ends[0.5] {
		t.Errorf("the P90 is known after %d values, the median after %d", ends[0.9], ends[0.5])
	}
}

func quantileOf(x []float64, q float64) float64 {
	Sort(x)
	return Quantile(x, q)
}
