package tune

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGain(t *testing.T) {
	const m = "m"
	fig := func(v float64) map[string]float64 { return map[string]float64{m: v} }
	tests := map[string]struct {
		higher        bool
		before, after map[string]float64
		want          *float64
	}{
		"throughput up":      {true, fig(2000), fig(3000), new(0.5)},
		"throughput down":    {true, fig(4000), fig(3000), new(-0.25)},
		"latency down":       {false, fig(6), fig(4), new(0.5)},
		"latency up":         {false, fig(3), fig(4), new(-0.25)},
		"equal":              {false, fig(3), fig(3), new(0.0)},
		"before is missing":  {true, nil, fig(3), nil},
		"after is missing":   {true, fig(3), map[string]float64{"other": 1}, nil},
		"zero is no divisor": {true, fig(0), fig(3), nil},
		"nothing was done":   {false, fig(3), fig(0), nil},
		"NaN":                {true, fig(math.NaN()), fig(3), nil},
		"infinite":           {false, fig(3), fig(math.Inf(1)), nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := Objective{Metric: m, Higher: tt.higher}.Gain(tt.before, tt.after)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("gain (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBoundHolds(t *testing.T) {
	f := map[string]float64{"ttft": 200, "rate": 5, "nan": math.NaN(), "zero": 0}
	tests := map[string]struct {
		b    Bound
		want bool
	}{
		"at most, equal":     {Bound{Metric: "ttft", Op: "<=", Limit: 200}, true},
		"at most, above":     {Bound{Metric: "ttft", Op: "<=", Limit: 199.9}, false},
		"at least, equal":    {Bound{Metric: "rate", Op: ">=", Limit: 5}, true},
		"at least, below":    {Bound{Metric: "rate", Op: ">=", Limit: 5.1}, false},
		"zero limit, kept":   {Bound{Metric: "zero", Op: "<=", Limit: 0}, true},
		"zero limit, broken": {Bound{Metric: "rate", Op: "<=", Limit: 0}, false},
		"missing at most":    {Bound{Metric: "p99", Op: "<=", Limit: 1e9}, false},
		"missing at least":   {Bound{Metric: "p99", Op: ">=", Limit: -1e9}, false},
		"not a number":       {Bound{Metric: "nan", Op: "<=", Limit: 1}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tt.b.Holds(f); got != tt.want {
				t.Errorf("%v holds for %v: %t, want %t", tt.b, f, got, tt.want)
			}
		})
	}
}

// TestPrefer lists trials from worst to best: each is preferred to all before
// it and to none after.
func TestPrefer(t *testing.T) {
	o := Objective{Metric: "lat", SLOs: []Bound{{Metric: "ttft", Op: "<=", Limit: 100}, {Metric: "rate", Op: ">=", Limit: 10}}}
	ranks := []map[string]float64{
		nil,
		{"lat": 1, "ttft": 100},              // a figure is missing: as far away as can be
		{"lat": 1, "ttft": 100, "rate": 2},   // misses by 80 %
		{"lat": 1, "ttft": 150, "rate": 9},   // worst 50 %
		{"lat": 9, "ttft": 130, "rate": 10},  // 30 %
		{"lat": 9, "ttft": 105, "rate": 7.5}, // worst 25 %
		{"lat": 8, "ttft": 125, "rate": 7.5}, // as far away, better latency
		{"lat": 9, "ttft": 100, "rate": 10},  // meets all
		{"lat": 8.999, "ttft": 99, "rate": 10},
	}
	for i, a := range ranks {
		for j, b := range ranks {
			if got := o.prefer(o.Score(Measured, a), o.Score(Measured, b)); got != (i > j) {
				t.Errorf("prefer(%v, %v) = %t", a, b, got)
			}
		}
	}
	if s := o.Score(Void, ranks[len(ranks)-1]); s.class != none {
		t.Errorf("a void trial scores %+v", s)
	}
}

func TestBeatsNeedsMinGain(t *testing.T) {
	o := Objective{Metric: "tps", Higher: true, MinGain: 0.25, SLOs: []Bound{{Metric: "ttft", Op: "<=", Limit: 100}}}
	at := func(tps, ttft float64) Score {
		return o.Score(Measured, map[string]float64{"tps": tps, "ttft": ttft})
	}
	if o.Beats(at(5, 1), at(4, 1)) {
		t.Error("a gain of exactly MinGain beats")
	}
	if !o.Beats(at(5.01, 1), at(4, 1)) {
		t.Error("a gain above MinGain does not beat")
	}
	if !o.Beats(at(1, 100), at(4, 101)) {
		t.Error("meeting the SLOs must not need a gain")
	}
}

func TestObjectiveValidate(t *testing.T) {
	if err := (Objective{Metric: "m", SLOs: []Bound{{Metric: "x", Op: "<=", Limit: 0}}}).Validate(); err != nil {
		t.Errorf("valid objective: %v", err)
	}
	err := Objective{MinGain: math.NaN(), SLOs: []Bound{{Metric: "", Op: "<=", Limit: 1}, {Metric: "x", Op: "<", Limit: 1}, {Metric: "y", Op: ">=", Limit: math.NaN()}}}.Validate()
	for _, want := range []string{"names no metric: give the figure to improve", "min_gain", "an SLO names no metric", `operator "<"`, "limit NaN"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %q lacks %q", err, want)
		}
	}
}
