package stat

import (
	"slices"
	"testing"
)

// Whatever the samples in doubt are and however many of the missing ones there were, mean and quantiles are
// within the bounds.
func TestTruthWithinDoubts(t *testing.T) {
	for seed := range uint64(40) {
		rng := Stream(seed, "doubts")
		var d Doubts
		var taken Sketch
		var truth []float64
		sum := 0.0
		for range 50 + rng.IntN(200) {
			v := 1 + 10*rng.ExpFloat64()
			taken.Add(v)
			sum += v
			if rng.IntN(3) > 0 {
				truth = append(truth, v)
				continue
			}
			low, high := v*rng.Float64(), v*(1+rng.Float64())
			d.Add(v, low, high)
			truth = append(truth, low+(high-low)*rng.Float64())
		}
		mean := sum / float64(len(truth))
		for range rng.IntN(30) {
			all, n := 5*rng.ExpFloat64(), 1+rng.IntN(4)
			d.Hide(all, all, 1, n)
			left := all
			for range rng.IntN(n + 1) { // of those that may be missing, some were there
				v := left * rng.Float64() / 2
				truth, left = append(truth, v), left-v
			}
		}
		slices.Sort(truth)
		if low, high := d.Mean(mean, taken.N, false); Mean(truth) < low-1e-9 || Mean(truth) > high+1e-9 {
			t.Errorf("seed %d: mean %v is not from %v to %v", seed, Mean(truth), low, high)
		}
		bounds := d.Quantiles(&taken)
		for _, p := range []float64{0.1, 0.5, 0.9, 0.99} {
			if low, high := bounds(p); Quantile(truth, p) < low-1e-9 || Quantile(truth, p) > high+1e-9 {
				t.Errorf("seed %d: %v-quantile %v is not from %v to %v", seed, p, Quantile(truth, p), low, high)
			}
		}
	}
}

// Without doubts there is nothing to say.
func TestNoDoubts(t *testing.T) {
	var d Doubts
	var taken Sketch
	for v := range 100 {
		taken.Add(float64(v))
	}
	if low, high := d.Mean(taken.Mean(), taken.N, false); low != taken.Mean() || high != taken.Mean() {
		t.Errorf("mean from %v to %v", low, high)
	}
	if low, high := d.Quantiles(&taken)(0.5); low > 49.5 || high < 49.5 || high-low > 1 {
		t.Errorf("median from %v to %v", low, high)
	}
}
