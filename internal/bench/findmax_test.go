package bench

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"perflab/internal/result"
	"perflab/internal/stat"
	"perflab/internal/workload"
)

// server is a synthetic one: figures as a function of the load and of how many
// runs came before.
type server func(load float64, run int) Point

// search runs a search to its end and returns the loads it measured.
func search(t *testing.T, o FindMaxOptions, s server) (loads []float64, stop Stop, best *Max) {
	t.Helper()
	if o.Precision == 0 {
		o.Precision = 0.05
	}
	o.Points = cmp.Or(o.Points, 18)
	f := NewFindMax(o)
	for run := 0; ; run++ {
		step, ok := f.Ask()
		if !ok {
			break
		}
		if run >= o.Points {
			t.Fatalf("more than %d runs: %v", o.Points, loads)
		}
		loads = append(loads, step.Load.Value)
		p := s(step.Load.Value, run)
		p.Load, p.Offered = step.Load, step.Load.Value
		f.Tell(p)
	}
	stop, best = f.Conclude()
	return loads, stop, best
}

// upTo meets up to a load and misses above it.
func upTo(edge float64) server {
	return func(load float64, _ int) Point {
		p := Point{Achieved: load}
		if load > edge {
			p.Missed = []string{fmt.Sprintf("p99_ttft_ms %.6g > 500", 500*load/edge)}
		}
		return p
	}
}

// TestFindMax: the answer is the edge, for every edge, to the precision.
func TestFindMax(t *testing.T) {
	for edge := 1.0; edge < 900; edge *= 1.37 {
		loads, stop, best := search(t, FindMaxOptions{Axis: AxisRate, From: 1}, upTo(edge))
		if stop.Code != StopBracket || best == nil || best.AtLeast || best.Tested != 2 {
			t.Errorf("edge %g: %v, %+v after %v", edge, stop, best, loads)
			continue
		}
		if v := best.Load.Value; v > edge || edge > v*1.0501 {
			t.Errorf("edge %g: found %g after %v", edge, v, loads)
		}
		if len(loads) > 18 || loads[len(loads)-1] != best.Load.Value {
			t.Errorf("edge %g: %v", edge, loads)
		}
	}
	for edge := 1.0; edge < 300; edge += 7 { // whole numbers
		_, stop, best := search(t, FindMaxOptions{Axis: AxisConcurrency, From: 1, Precision: 0.001, Points: 40}, upTo(edge))
		if stop.Code != StopBracket || best.Load.Value != edge {
			t.Errorf("concurrency %g: %v, %+v", edge, stop, best)
		}
	}
}

// TestFindMaxByBurst: without a lowest load the search begins where the burst suggests, right or wrong,
// and finds the edge from above and from below.
func TestFindMaxByBurst(t *testing.T) {
	for edge := 0.3; edge < 900; edge *= 1.7 {
		for _, factor := range []float64{0.1, 0.7, 1.3, 9} {
			burst := func(load float64, run int) Point {
				if run == 0 {
					return Point{Achieved: factor * edge}
				}
				return upTo(edge)(load, run)
			}
			loads, stop, best := search(t, FindMaxOptions{Axis: AxisRate}, burst)
			if stop.Code != StopBracket || best == nil || best.Load.Value > edge || edge > best.Load.Value*1.0501 || best.Tested != 2 {
				t.Errorf("edge %g, burst %g: %v, %+v after %v", edge, factor*edge, stop, best, loads)
			}
		}
	}
	for edge := 1.0; edge < 300; edge += 37 {
		for _, missed := range [][]string{nil, {"late"}} {
			_, stop, best := search(t, FindMaxOptions{Axis: AxisConcurrency, Precision: 0.001, Points: 40}, func(load float64, run int) Point {
				if run == 0 {
					return Point{Missed: missed}
				}
				return upTo(edge)(load, run)
			})
			if stop.Code != StopBracket || best.Load.Value != edge {
				t.Errorf("concurrency %g: %v, %+v", edge, stop, best)
			}
		}
	}
	loads, stop, best := search(t, FindMaxOptions{Axis: AxisRate, To: 4}, func(float64, int) Point { return Point{Achieved: 90} })
	if d := gocmp.Diff([]float64{0, 4, 4}, loads); d != "" || stop.Code != StopUpper || best.Load.Value != 4 {
		t.Errorf("up to 4: %v, %+v\n%s", stop, best, d)
	}
	loads, stop, _ = search(t, FindMaxOptions{Axis: AxisRate}, func(_ float64, run int) Point {
		return Point{Achieved: 8, Missed: []string{"late"}}
	})
	if stop.Code != StopLowest || len(loads) != 9 || loads[1] != 8 {
		t.Errorf("nothing meets: %v after %v", stop, loads)
	}
	loads, _, _ = search(t, FindMaxOptions{Axis: AxisRate, Points: 3}, func(float64, int) Point { return Point{} })
	if d := gocmp.Diff([]float64{0, 1, 1}, loads); d != "" {
		t.Errorf("a burst that says nothing: %s", d)
	}
}

// TestFindMaxEarly: a load may end as it surely meets where it is far below what missed, and not where the
// search ends.
func TestFindMaxEarly(t *testing.T) {
	var meet []bool
	f := NewFindMax(FindMaxOptions{Axis: AxisRate, From: 4, Precision: 0.2, Points: 18, Requests: 100, Early: new(Early)})
	for {
		step, ok := f.Ask()
		if !ok {
			break
		}
		meet = append(meet, step.Early.Meet)
		p := upTo(12)(step.Load.Value, 0)
		p.Load = step.Load
		f.Tell(p)
	}
	if d := gocmp.Diff([]bool{true, true, true, false, false, false}, meet); d != "" { // 4, 8, 16, 12, 14, 12
		t.Errorf("%s", d)
	}
}

func TestFindMaxSentence(t *testing.T) {
	slo, err := result.ParseSLO("p99_ttft_ms <= 500")
	if err != nil {
		t.Fatal(err)
	}
	_, stop, best := search(t, FindMaxOptions{Axis: AxisRate, From: 1}, upTo(11.4))
	if d := gocmp.Diff(Stop{StopBracket, "bracket closed: 11 met, 11.5 missed p99_ttft_ms 504.386 > 500"}, stop); d != "" {
		t.Error(d)
	}
	if d := gocmp.Diff("max rate meeting p99_ttft_ms <= 500: 11 req/s (edge tested twice)", best.Text([]result.SLO{slo})); d != "" {
		t.Error(d)
	}
}

func TestFindMaxStops(t *testing.T) {
	voided := func(check string) result.Summary {
		return result.Summary{Verdict: result.Verdict{Status: result.Voided, Checks: []result.Check{{Name: check, Status: result.Voided, Text: "it was late"}}}}
	}
	for name, tt := range map[string]struct {
		o     FindMaxOptions
		s     server
		loads []float64
		code  string
		text  string
		max   float64 // 0: none
		least bool
	}{
		"lowest misses": {FindMaxOptions{Axis: AxisRate, From: 4}, upTo(3), []float64{4}, StopLowest, "the lowest load misses already: 4 missed p99", 0, false},
		"upper limit":   {FindMaxOptions{Axis: AxisRate, From: 1, To: 6}, upTo(100), []float64{1, 2, 4, 6, 6}, StopUpper, "upper limit reached: 6 met", 6, true},
		"from is to":    {FindMaxOptions{Axis: AxisRate, From: 6, To: 6}, upTo(100), []float64{6, 6}, StopUpper, "upper limit reached", 6, true},
		"saturated": {FindMaxOptions{Axis: AxisRate, From: 4, Precision: 0.5}, func(load float64, _ int) Point {
			return Point{Achieved: min(load, 9), Saturated: load > 9}
		}, []float64{4, 8, 16, 12, 8}, StopBracket, "8 met, 12 missed saturated: 9 req/s achieved of 12 offered", 8, false},
		"held back by the limit": {FindMaxOptions{Axis: AxisRate, From: 4, Precision: 0.5}, func(load float64, _ int) Point {
			return Point{Achieved: min(load, 9), Capped: load > 9}
		}, []float64{4, 8, 16, 12, 8}, StopBracket, "8 met, 12 missed held back by the concurrency limit: 9 req/s achieved of 12 offered", 8, false},
		"calls fail so that the figures are void": {FindMaxOptions{Axis: AxisRate, From: 4, Precision: 0.5}, func(load float64, _ int) Point {
			if load > 9 {
				return Point{Void: true, Failed: true, Missed: []string{"60 of 200 calls failed"}, Summary: voided("failures")}
			}
			return Point{}
		}, []float64{4, 8, 16, 12, 8}, StopBracket, "8 met, 12 missed 60 of 200 calls failed", 8, false},
		"plateau": {FindMaxOptions{Axis: AxisConcurrency, From: 1}, func(load float64, _ int) Point {
			return Point{Achieved: min(load, 5)}
		}, []float64{1, 2, 4, 8, 16, 16}, StopPlateau, "plateau: 16 met, and it gives less than 5 % more", 16, true},
		"budget":                  {FindMaxOptions{Axis: AxisRate, From: 1, Points: 5}, upTo(1e9), []float64{1, 2, 4, 8, 8}, StopBudget, "budget of points: 5 runs", 8, true},
		"budget spent at the end": {FindMaxOptions{Axis: AxisRate, From: 4, Precision: 0.5, Points: 5}, upTo(9), []float64{4, 8, 16, 12, 8}, StopBracket, "8 met, 12 missed", 8, false},
		"client": {FindMaxOptions{Axis: AxisRate, From: 1}, func(load float64, _ int) Point {
			return Point{Void: load > 2, Summary: voided("dispatch_lag")}
		}, []float64{1, 2, 4, 4}, StopClient, "client-bound at rate 4, twice in a row: it was late", 2, true},
		"void": {FindMaxOptions{Axis: AxisRate, From: 1}, func(float64, int) Point {
			return Point{Void: true, Summary: voided("tokens")}
		}, []float64{1, 1}, StopVoid, "the measurement is void at rate 1", 0, false},
		"void once": {FindMaxOptions{Axis: AxisRate, From: 1, To: 2}, func(_ float64, run int) Point {
			return Point{Void: run == 0 || run == 2}
		}, []float64{1, 1, 2, 2, 2}, StopUpper, "2 met", 2, true},
		"edge misses": {FindMaxOptions{Axis: AxisRate, From: 8, Precision: 0.5}, func(load float64, run int) Point {
			if load > 12 || load == 12 && run == 3 {
				return Point{Missed: []string{"late"}}
			}
			return Point{}
		}, []float64{8, 16, 12, 12, 8}, StopBracket, "8 met, 12 missed late when tested again after it had met once", 8, false},
		"edge was the lowest": {FindMaxOptions{Axis: AxisRate, From: 8, To: 8}, func(_ float64, run int) Point {
			return Point{Missed: [][]string{nil, {"late"}}[run]}
		}, []float64{8, 8}, StopLowest, "8 missed late when tested again after it had met once", 0, false},
	} {
		loads, stop, best := search(t, tt.o, tt.s)
		if d := gocmp.Diff(tt.loads, loads); d != "" {
			t.Errorf("%s:\n%s", name, d)
		}
		if stop.Code != tt.code || !strings.Contains(stop.Text, tt.text) {
			t.Errorf("%s: %+v", name, stop)
		}
		switch {
		case (best == nil) != (tt.max == 0):
			t.Errorf("%s: found %+v", name, best)
		case best != nil && (best.Load.Value != tt.max || best.AtLeast != tt.least):
			t.Errorf("%s: found %+v", name, best)
		}
	}
}

// TestFindMaxOfLimit: an answer that the concurrency limit bounds says so.
func TestFindMaxOfLimit(t *testing.T) {
	_, _, best := search(t, FindMaxOptions{Axis: AxisRate, From: 4, Precision: 0.5, Points: 40}, func(load float64, _ int) Point {
		return Point{Achieved: min(load, 9), Capped: load > 9}
	})
	const want = "max rate meeting p99_ttft_ms <= 500: 8 req/s (edge tested twice), with the concurrency limit for the bound: it kept the rate above down, so a higher limit may give more"
	if got := best.Text([]result.SLO{{Metric: "p99_ttft_ms", Op: "<=", Limit: 500}}); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// TestFindMaxNoise: with noise at the edge the search still ends, its answer
// met twice and not above a load that missed.
func TestFindMaxNoise(t *testing.T) {
	within := 0
	const searches = 300
	for seed := range uint64(searches) {
		rng := stat.Stream(seed, "noise")
		missed := math.Inf(1)
		const edge = 11.0
		noisy := func(load float64, _ int) Point {
			if load > edge*math.Exp(0.05*rng.NormFloat64()) {
				missed = min(missed, load)
				return Point{Missed: []string{"late"}}
			}
			return Point{Achieved: load}
		}
		loads, stop, best := search(t, FindMaxOptions{Axis: AxisRate, From: 1}, noisy)
		if stop.Code != StopBracket && stop.Code != StopBudget || best == nil {
			t.Fatalf("seed %d: %v after %v", seed, stop, loads)
		}
		if best.Load.Value >= missed || stop.Code == StopBracket && best.Tested < 2 {
			t.Errorf("seed %d: %+v, but %g missed: %v", seed, best, missed, loads)
		}
		if math.Abs(best.Load.Value/edge-1) < 0.15 {
			within++
		}
	}
	if within < searches*95/100 {
		t.Errorf("%d of %d answers are within 15 %% of the edge", within, searches)
	}
}

// TestFindMaxRequests: a point sends enough for its percentiles and its time.
func TestFindMaxRequests(t *testing.T) {
	slos := func(texts ...string) (out []result.SLO) {
		for _, s := range texts {
			slo, err := result.ParseSLO(s)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, slo)
		}
		return out
	}
	if n, want := MinRequests(slos("p99_ttft_ms <= 5", "mean_tpot_ms <= 5", "p90_itl_ms <= 5")), stat.MinSamples(0.99); n != want {
		t.Errorf("P99 needs %d, got %d", want, n)
	}
	if n := MinRequests(slos("mean_ttft_ms <= 5")); n != leastRequests {
		t.Errorf("a mean needs %d", n)
	}
	f := NewFindMax(FindMaxOptions{Axis: AxisRate, From: 50, Points: 18, Requests: 100, Seconds: 10})
	if s, _ := f.Ask(); s.Requests != 500 {
		t.Errorf("50 req/s for 10 s are %d requests", s.Requests)
	}
	f = NewFindMax(FindMaxOptions{Axis: AxisConcurrency, From: 8, Points: 18, Requests: 100, Seconds: 10})
	if s, _ := f.Ask(); s.Requests != 100 {
		t.Errorf("the first of unknown speed sends %d", s.Requests)
	}
	f.Tell(Point{Load: Load{AxisConcurrency, 8}, Achieved: 20})
	if s, _ := f.Ask(); s.Load.Value != 16 || s.Requests != 400 {
		t.Errorf("twice 20 req/s for 10 s: %+v", s)
	}
}

// TestFindMaxOfSessions: the search is over sessions at a time, without a burst, whatever throughput they give; a run has
// as many of them as its requests need, and none ends early.
func TestFindMaxOfSessions(t *testing.T) {
	for _, edge := range []float64{1, 3, 4, 50} {
		flat := func(load float64, run int) Point {
			p := upTo(edge)(load, run)
			p.Achieved = 7
			return p
		}
		loads, stop, best := search(t, FindMaxOptions{Axis: AxisConcurrency, Turns: 25}, flat)
		if stop.Code != StopBracket || best == nil || best.Tested != 2 || best.Load.Value > edge || best.Missed <= edge || best.Missed > max(best.Load.Value+1, 1.06*best.Load.Value) || loads[0] != 4 {
			t.Errorf("edge %g: %v, %+v after %v", edge, stop, best, loads)
		}
	}
	f := NewFindMax(FindMaxOptions{Axis: AxisConcurrency, Turns: 25, Requests: 459, Seconds: 20, Points: 9, Precision: 0.1, Early: &Early{}})
	step, _ := f.Ask()
	if step.Requests != 19 || step.Early != nil || step.Load.Value != 4 { // 459 of 25 each
		t.Errorf("%+v", step)
	}
	f.Tell(Point{Load: step.Load, Achieved: 50})
	if step, _ = f.Ask(); step.Load.Value != 8 || step.Requests != 80 { // 100 requests a second for 20 s
		t.Errorf("%+v", step)
	}
	if step = (Step{}); NewFindMax(FindMaxOptions{Axis: AxisConcurrency, Turns: 25, To: 2}).start != 2 {
		t.Error("begins above the highest load")
	}
}

// TestServedText: of sessions the answer is how many agents are served, with what missed.
func TestServedText(t *testing.T) {
	slo, err := result.ParseSLO("p95_ttft_ms <= 2000")
	if err != nil {
		t.Fatal(err)
	}
	m := Max{Load: Load{AxisConcurrency, 12}, Tested: 2, Missed: 13, Figures: map[string]float64{"agents_served": 12, "agents_served_per_gpu": 1.5, "agents_served_per_kw": 3.456}}
	if got, want := m.Text([]result.SLO{slo}), "agents served within p95_ttft_ms <= 2000: 12 at a time, 1.5 per GPU, 3.46 per kW of the GPUs, 13 missed (edge tested twice)"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// TestTurnsPerSession: a session of agents has several requests, one that stands alone none.
func TestTurnsPerSession(t *testing.T) {
	for _, x := range []struct {
		spec workload.Spec
		want float64
	}{
		{workload.Spec{Dataset: "conversations", NumPrompts: 5, Turns: "3"}, 3}, {workload.Spec{Dataset: "random"}, 0}, {workload.Spec{Dataset: "agents", Path: "none"}, 0},
	} {
		if got := TurnsPerSession(x.spec); got != x.want {
			t.Errorf("%s: %g, want %g", x.spec.Dataset, got, x.want)
		}
	}
}
