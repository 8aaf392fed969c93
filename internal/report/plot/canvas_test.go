package plot

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		lo, hi float64
		n      int
		want   []float64
	}{
		{0, 100, 5, []float64{0, 20, 40, 60, 80, 100}},
		{0, 7193, 5, []float64{0, 2000, 4000, 6000, 8000}},
		{0, 0, 2, []float64{0, 0.5, 1}},
		{0, math.Inf(1), 2, []float64{0, 0.5, 1}},
		{0, math.NaN(), 2, []float64{0, 0.5, 1}},
		{0, math.SmallestNonzeroFloat64, 2, []float64{0, 0.5, 1}},
	} {
		if d := cmp.Diff(c.want, Ticks(c.lo, c.hi, c.n)); d != "" {
			t.Errorf("ticks %v..%v (-want +got):\n%s", c.lo, c.hi, d)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 processes", 1: "1 process", 3: "3 processes"} {
		if got := Count(n, "process"); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
	if got := Count(2, "replica"); got != "2 replicas" {
		t.Error(got)
	}
}
