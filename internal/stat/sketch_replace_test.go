package stat

import (
	"math"
	"testing"
)

func TestSketchReplace(t *testing.T) {
	rng := Stream(4, "replace")
	var all, gone, come, want Sketch
	for range 5000 {
		v := rng.NormFloat64() * 40
		all.Add(v)
		if rng.IntN(3) > 0 {
			want.Add(v)
			continue
		}
		gone.Add(v)
		for range rng.IntN(3) {
			come.Add(v + 7)
			want.Add(v + 7)
		}
	}
	got := all.Replace(&gone, &come)
	if got.N != want.N {
		t.Fatalf("%d values, want %d", got.N, want.N)
	}
	for _, q := range []float64{0, 0.1, 0.5, 0.99, 1} {
		if x, y := got.Quantile(q), want.Quantile(q); math.Abs(x-y) > 2*SketchError*math.Abs(y) {
			t.Errorf("quantile %v is %v, want %v", q, x, y)
		}
	}
	n := 0
	last := math.Inf(-1)
	for v, k := range got.All() {
		if n += k; v < last {
			t.Errorf("%v after %v", v, last)
		}
		last = v
	}
	if n != got.N {
		t.Errorf("all are %d values of %d", n, got.N)
	}
}
