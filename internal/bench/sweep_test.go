package bench

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/result"
	"perflab/internal/workload"
)

func TestParseSweep(t *testing.T) {
	for text, want := range map[string]Sweep{
		"rate=1,2,4.5":        {Axis: AxisRate, Values: []float64{1, 2, 4.5}},
		"rate=1..16x2":        {Axis: AxisRate, Values: []float64{1, 2, 4, 8, 16}},
		"rate=0.1..0.5+0.1":   {Axis: AxisRate, Values: []float64{0.1, 0.2, 0.3, 0.4, 0.5}},
		"rate=1..10x3":        {Axis: AxisRate, Values: []float64{1, 3, 9}},
		"concurrency=8..24+8": {Axis: AxisConcurrency, Values: []float64{8, 16, 24}},
		"rate=3..3+1":         {Axis: AxisRate, Values: []float64{3}},
		"rate=auto":           {Axis: AxisRate, Auto: true},
	} {
		got, err := ParseSweep(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s:\n%s", text, d)
		}
	}
}

func TestParseSweepRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "is no sweep",
		"rate":                 "is no sweep",
		"rate=":                "is no sweep",
		"speed=1,2":            `"speed" cannot be swept`,
		"concurrency=auto":     "no anchors",
		"rate=1,x":             `"x" is no load`,
		"rate=0,1":             `"0" is no load`,
		"rate=inf":             `"inf" is no load`,
		"rate=2,1":             "ascend: 1 comes after 2",
		"rate=1,1":             "ascend",
		"rate=1..8":            "has no step",
		"rate=8..1x2":          "goes down",
		"rate=1..8x1":          "factor must be above 1",
		"rate=1..1000+1":       "more than 100 points",
		"concurrency=1.5":      "no whole number",
		"concurrency=1..4x1.5": "no whole number",
	} {
		if s, err := ParseSweep(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v, want %q", text, s, err, want)
		}
	}
}

func FuzzParseSweep(f *testing.F) {
	for _, s := range []string{"rate=1,2", "rate=1..16x2", "concurrency=1..64+9", "rate=auto", "rate=1e-300..1e300x1.0000001", "rate=1..x+"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSweep(text)
		if err != nil || s.Auto {
			return
		}
		if len(s.Values) == 0 || len(s.Values) > maxPoints {
			t.Fatalf("%d points", len(s.Values))
		}
		for i, v := range s.Values {
			if !(v > 0) || math.IsInf(v, 1) || i > 0 && v <= s.Values[i-1] {
				t.Fatalf("%v", s.Values)
			}
		}
	})
}

// TestAutoSweep: the rates divide the distance between the anchors.
func TestAutoSweep(t *testing.T) {
	achieves := map[string]float64{Synchronous: 1, Throughput: 9}
	run := func(p LoadPlan, void string) (loads []string) {
		for range 100 {
			step, ok := p.Ask()
			if !ok {
				return loads
			}
			loads = append(loads, step.Load.String())
			p.Tell(Point{Load: step.Load, Achieved: achieves[step.Load.Axis], Void: step.Load.Axis == void})
		}
		t.Fatal("it never ends")
		return nil
	}
	auto := Sweep{Axis: AxisRate, Auto: true}
	p := auto.LoadPlan(5, 1000)
	if step, _ := auto.LoadPlan(5, 1000).Ask(); step.Requests != syncRequests {
		t.Errorf("the synchronous anchor sends %d requests", step.Requests)
	}
	if d := cmp.Diff([]string{"synchronous", "throughput", "rate 3", "rate 5", "rate 7"}, run(p, "")); d != "" {
		t.Error(d)
	}
	p = auto.LoadPlan(5, 20)
	if d := cmp.Diff([]string{"synchronous"}, run(p, Synchronous)); d != "" {
		t.Error(d)
	}
	if s, _ := p.(*anchoredPlan).Conclude(); s.Code != StopNoAnchors {
		t.Errorf("%v", s)
	}
	achieves[Throughput] = 0.5
	p = auto.LoadPlan(5, 0)
	if run(p, ""); p.(*anchoredPlan).failed == "" {
		t.Error("a server that is slower with more to do has no rates between")
	}
}

// TestLoadApply: each load is a valid workload, whatever it is applied to.
func TestLoadApply(t *testing.T) {
	for name, w := range map[string]workload.Spec{
		"burst":   workload.Spec{}.Defaults(),
		"poisson": workload.Spec{Rate: 3}.Defaults(),
		"even":    workload.Spec{Rate: 3, Arrival: "constant"}.Defaults(),
		"gamma":   workload.Spec{Rate: 3, Burstiness: 0.5}.Defaults(),
		"trace":   workload.Spec{Dataset: "azure", Path: "x.csv", Speed: 2}.Defaults(),
	} {
		for _, l := range []Load{{AxisRate, 7}, {AxisConcurrency, 4}, {Axis: Synchronous}, {Axis: Throughput}, {Same, 2}} {
			got := l.Apply(w)
			if err := got.Validate(); err != nil {
				t.Errorf("%s under %s: %v", name, l, err)
			}
			switch l.Axis {
			case AxisRate:
				if got.Rate != 7 || got.Arrival == "inf" || got.Arrival == "trace" {
					t.Errorf("%s under %s: %+v", name, l, got)
				}
			case Synchronous, Throughput:
				if !got.Rate.Inf() || got.Arrival != "inf" || (got.MaxConcurrency == 1) != (l.Axis == Synchronous) {
					t.Errorf("%s under %s: %+v", name, l, got)
				}
			case Same:
				if d := cmp.Diff(w, got); d != "" {
					t.Errorf("%s under %s: %s", name, l, d)
				}
			}
		}
	}
}

// TestSpreads: the interval is over runs, and what is void or partial is not
// among them.
func TestSpreads(t *testing.T) {
	run := func(p99, rate float64) Point {
		return Point{Summary: result.Summary{Figures: map[string]float64{"p99_ttft_ms": p99, "p99.5_ttft_ms": p99, "request_throughput": rate}}}
	}
	void, partial := run(1e9, 1e9), run(1e9, 1e9)
	void.Void, partial.Partial = true, true
	got := Spreads([]Point{run(100, 5), void, run(110, 5), run(120, 5), partial})
	names := map[string]result.Spread{}
	for _, s := range got {
		names[s.Metric] = s
	}
	s := names["p99_ttft_ms"]
	if s.Label != "mean of the runs' P99 TTFT (ms)" || s.Runs != 3 || s.Mean != 110 || s.Min != 100 || s.Max != 120 {
		t.Errorf("%+v", s)
	}
	// s = 10, t(0.975, 2) = 4.30265: 110 ± 24.84, on the scale of logarithms
	if math.Abs(*s.Low-87.764) > 0.001 || math.Abs(*s.High-137.870) > 0.001 || math.Abs(*s.CV-10.0/110) > 1e-9 {
		t.Errorf("%g to %g, CV %g", *s.Low, *s.High, *s.CV)
	}
	if s := names["p99.5_ttft_ms"]; s.Mean != 110 {
		t.Errorf("a percentile outside the table is lost: %+v", got)
	}
	if s := Spreads([]Point{run(100, 5)}); len(s) != 3 || s[0].Low != nil || s[0].CV != nil {
		t.Errorf("one run has an interval: %+v", s)
	}
	if s := Spreads([]Point{run(1, 1), {Summary: result.Summary{Figures: map[string]float64{"request_throughput": 2}}}}); len(s) != 1 {
		t.Errorf("a figure that a run lacks has a mean: %+v", s)
	}
}
