package reduction_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"perflab/internal/gauge"
	"perflab/internal/result"
	"perflab/internal/store/reduction"
	"perflab/internal/test/calltest"
)

func reduced(calls []result.Call, readings []gauge.Reading, every int) reduction.Reduction {
	b := reduction.New(result.Header{Simulated: true}, readings)
	for i := range calls {
		b.Add(&calls[i])
	}
	return b.Reduction(calls, every)
}

func line(t *testing.T, r reduction.Reduction, name string) []float64 {
	t.Helper()
	for _, l := range r.Lines {
		if l.Name == name {
			return l.Values
		}
	}
	t.Fatalf("there is no line %s", name)
	return nil
}

// TestLines: two calls, of which every token is known.
func TestLines(t *testing.T) {
	const ms = time.Millisecond
	calls := []result.Call{
		calltest.Stream(0, 0, 500*ms, 1500*ms, 2500*ms), // ends at 2501 ms
		calltest.Fail(calltest.Stream(1, 1000*ms, 1000*ms), result.HTTPStatus),
	}
	calls[1].End = 2000 * ms
	reading := func(at time.Duration, running float64) gauge.Reading {
		return gauge.Reading{At: at, Source: gauge.SourceEngine, Values: map[string]float64{"running": running}}
	}
	r := reduced(calls, []gauge.Reading{reading(-ms, 9), reading(100*ms, 1), reading(300*ms, 3), reading(99*time.Second, 9)}, 1)
	if !r.Simulated || r.Calls != 2 || r.Failed != 1 || r.Step != 1 {
		t.Errorf("%+v", r)
	}
	for name, want := range map[string][]float64{
		"output_throughput": {1, 1, 1}, "request_throughput": {0, 0, 1}, "in_flight": {1, 2, 0.501}, "running": {2, 2, math.NaN()},
	} {
		got := line(t, r, name)
		if !slices.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-9 || math.IsNaN(a) && math.IsNaN(b) }) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	b, err := json.Marshal(r)
	if err != nil || !strings.Contains(string(b), `"values":[2,2,null]`) {
		t.Errorf("%s, %v", b, err)
	}
	var again reduction.Reduction
	if err := json.Unmarshal(b, &again); err != nil || !math.IsNaN(line(t, again, "running")[2]) {
		t.Errorf("%+v, %v", again, err)
	}
}

func TestDistributions(t *testing.T) {
	r := reduced(calltest.Steady(2000, time.Millisecond), nil, 7)
	if len(r.CDF) != 4 {
		t.Fatalf("%d distributions", len(r.CDF))
	}
	for _, d := range r.CDF {
		if len(d.Values) != reduction.Quantiles || !slices.IsSorted(d.Values) || d.Samples < 1000 || d.Every != 7 {
			t.Errorf("%s: %d values of %d samples", d.Family, len(d.Values), d.Samples)
		}
	}
	ttft := r.CDF[0].Values
	if ttft[0] < 40 || ttft[511] > 60 || math.Abs(ttft[256]-50) > 1 {
		t.Errorf("TTFT from %v over %v to %v", ttft[0], ttft[256], ttft[511])
	}
}

// TestLong: a run of days, and one whose stamps are made up, has no more points than others.
func TestLong(t *testing.T) {
	calls := []result.Call{calltest.Stream(0, 0, time.Second)}
	for i := range 200 {
		calls = append(calls, calltest.Stream(i+1, time.Duration(i)*time.Hour, time.Second, 2*time.Second))
	}
	r := reduced(calls, nil, 1)
	tokens := 0.0
	for _, v := range line(t, r, "output_throughput") {
		tokens += v * r.Step
	}
	if n := len(r.Lines[0].Values); n > 4096 || math.Abs(tokens-401) > 1e-6 {
		t.Errorf("%d points with %v tokens", n, tokens)
	}
	calls[7].Chunks[1].At = math.MaxInt64
	calls[8].End = -5
	if n := len(reduced(calls, nil, 1).Lines[0].Values); n > 4096 {
		t.Errorf("%d points", n)
	}
	if r := reduced(nil, nil, 1); len(r.Lines) != 0 || len(r.CDF) != 0 {
		t.Errorf("%+v", r)
	}
}
