package workload

import (
	"math"
	"slices"
	"testing"
	"time"

	"perflab/internal/stat"
)

// dues returns the schedule of n requests.
func dues(t *testing.T, s Spec, n int) []time.Duration {
	t.Helper()
	s = s.Defaults()
	due, err := schedule(s, make([]row, n))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.IsSorted(due) || due[0] < 0 {
		t.Fatalf("%+v: due times decrease or are negative", s)
	}
	return due
}

// gapSeconds returns the gaps before each request.
func gapSeconds(due []time.Duration) []float64 {
	out := make([]float64, len(due))
	last := time.Duration(0)
	for i, d := range due {
		out[i] = (d - last).Seconds()
		last = d
	}
	return out
}

// ksExponential is the Kolmogorov-Smirnov distance of gaps to the exponential
// distribution with a rate, times sqrt(n); 1.36 is its 5 % point.
func ksExponential(gaps []float64, rate float64) float64 {
	x := slices.Sorted(slices.Values(gaps))
	n, d := float64(len(x)), 0.0
	for i, v := range x {
		f := 1 - math.Exp(-rate*v)
		d = max(d, f-float64(i)/n, float64(i+1)/n-f)
	}
	return d * math.Sqrt(n)
}

func TestPoissonIsExponential(t *testing.T) {
	const n, rate = 5000, 8.0
	for seed := range uint64(5) {
		g := gapSeconds(dues(t, Spec{Rate: rate, Seed: seed}, n))
		if ks := ksExponential(g, rate); ks > 1.36 {
			t.Errorf("seed %d: KS distance %.2f of Poisson gaps", seed, ks)
		}
	}
	// The test can tell another distribution.
	g := gapSeconds(dues(t, Spec{Rate: rate, Burstiness: 1.3}, n))
	if ks := ksExponential(g, rate); ks < 1.36 {
		t.Errorf("gamma gaps of burstiness 1.3 pass as exponential (KS %.2f)", ks)
	}
}

func TestGammaMoments(t *testing.T) {
	const n, rate = 200_000, 4.0
	for _, k := range []float64{0.3, 1.0001, 2, 20} {
		g := gapSeconds(dues(t, Spec{Rate: rate, Burstiness: k}, n))
		mean, sd := stat.Mean(g), stat.StdDev(g)
		skew := 0.0
		for _, x := range g {
			skew += math.Pow((x-mean)/sd, 3) / n
		}
		if e := sd/mean*math.Sqrt(k) - 1; math.Abs(e) > 0.02 {
			t.Errorf("burstiness %g: coefficient of variation is off by %.1f %%", k, 100*e)
		}
		if want := 2 / math.Sqrt(k); math.Abs(skew-want) > 0.06*want+0.02 {
			t.Errorf("burstiness %g: skewness %.3f, want %.3f", k, skew, want)
		}
	}
}

// A ramp is not stretched, so an almost flat one shows the mean of the gaps.
func TestMeanGap(t *testing.T) {
	for _, k := range []float64{0.3, 1, 20} {
		g := gapSeconds(dues(t, Spec{Burstiness: k, RampStrategy: "linear", RampStart: 4, RampEnd: 4.0001}, 100_000))
		if mean := stat.Mean(g); math.Abs(mean-0.25) > 0.25*0.02 {
			t.Errorf("burstiness %g: mean gap %.4f s at 4 requests/s", k, mean)
		}
	}
}

func TestScheduleEnds(t *testing.T) {
	const n = 50
	ms := time.Millisecond
	for _, tt := range []struct {
		name        string
		spec        Spec
		first, last time.Duration
	}{
		{"inf", Spec{}, 0, 0},
		{"constant", Spec{Rate: 8, Arrival: "constant"}, 0, 49 * 125 * ms},
		{"poisson ends at N/rate", Spec{Rate: 8}, -1, 50 * 125 * ms},
		{"gamma ends at N/rate", Spec{Rate: 8, Burstiness: 0.2}, -1, 50 * 125 * ms},
	} {
		due := dues(t, tt.spec, n)
		if tt.first >= 0 && due[0] != tt.first || tt.first < 0 && due[0] == 0 {
			t.Errorf("%s: first request due at %v", tt.name, due[0])
		}
		if due[n-1] != tt.last {
			t.Errorf("%s: last request due at %v, want %v", tt.name, due[n-1], tt.last)
		}
	}
	if d := dues(t, Spec{Rate: 3, Arrival: "constant"}, 4); !slices.Equal(d, []time.Duration{0, 333333333, 666666667, 1e9}) {
		t.Errorf("constant at 3/s: %v", d)
	}
}

func TestRamp(t *testing.T) {
	linear := Spec{RampStrategy: "linear", RampStart: 1, RampEnd: 4, Arrival: "constant"}
	// Rates 1, 2, 3, 4 set the gaps behind the requests: 1, 1/2, 1/3 s.
	if d := dues(t, linear, 4); !slices.Equal(d, []time.Duration{0, 1e9, 1.5e9, 1833333333}) {
		t.Errorf("linear ramp: %v", d)
	}
	exponential := Spec{RampStrategy: "exponential", RampStart: 1, RampEnd: 16, Arrival: "constant"}
	// Rates 1, 4, 16.
	if d := dues(t, exponential, 3); !slices.Equal(d, []time.Duration{0, 1e9, 1.25e9}) {
		t.Errorf("exponential ramp: %v", d)
	}
	// A random ramp is not stretched: its last arrival varies with the seed.
	linear.Arrival = ""
	a := dues(t, linear, 100)
	linear.Seed = 1
	if b := dues(t, linear, 100); a[99] == b[99] {
		t.Error("random ramps of two seeds end at the same time")
	}
	if one := dues(t, linear, 1); one[0] <= 0 {
		t.Error("a ramp of one request has no rate")
	}
}

func TestTraceSpeed(t *testing.T) {
	rows := []row{{at: 5 * time.Second}, {at: 5 * time.Second}, {at: 8 * time.Second}}
	s := Spec{Dataset: "azure", Speed: 4}.Defaults()
	due, err := schedule(s, rows)
	if want := []time.Duration{0, 0, 750 * time.Millisecond}; err != nil || !slices.Equal(due, want) {
		t.Errorf("got %v, %v; want %v", due, err, want)
	}
	s.Speed = 1e-12
	if _, err := schedule(s, rows); err == nil {
		t.Error("a schedule of centuries is accepted")
	}
	if _, err := schedule(Spec{Rate: 1e-300}.Defaults(), rows); err == nil {
		t.Error("a rate of nearly nothing is accepted")
	}
}

// Other lengths or another dataset leave the arrivals as they are.
func TestArrivalsHaveTheirOwnStream(t *testing.T) {
	a, err := Open(Spec{Rate: 5, NumPrompts: 20})
	if err != nil {
		t.Fatal(err)
	}
	b, err := Open(Spec{Rate: 5, NumPrompts: 20, RandomInputLen: 7, RandomRangeRatio: 0.5, RandomPrefixLen: 3})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(a.due, b.due) {
		t.Error("lengths shift the arrivals")
	}
}
