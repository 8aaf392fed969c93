package result

import (
	"math"
	"slices"
	"testing"
	"time"

	"perflab/internal/stat"
)

// failing is a run of n calls, call i with a TTFT of i+1 ms, of which every so many failed.
func failing(t *testing.T, n, every int, limits Limits) Summary {
	t.Helper()
	o := Options{Percentiles: []float64{99.9}}
	acc, err := NewLimited(Header{}, o, limits)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		at := time.Duration(i) * time.Second
		first := time.Duration(i+1) * time.Millisecond
		c := Call{Index: i, Due: at, Ready: at, Sent: at, End: at + first + 2*time.Millisecond, Chunks: []Chunk{{At: at + first, Tokens: 1}, {At: at + first + time.Millisecond, Tokens: 1}}}
		if every > 0 && i%every == 0 {
			c = Call{Index: i, Due: at, Ready: at, Sent: at, End: at + time.Millisecond, Class: Connect}
		}
		acc.Add(&c)
	}
	a, err := acc.Analyze(&Client{}, o)
	if err != nil {
		t.Fatal(err)
	}
	return a.Summary()
}

// A percentile over all calls is the quantile p over the share that succeeded of those that did;
// beyond that share it has no end. Of a run too long to keep its calls the same is known.
func TestOverCalls(t *testing.T) {
	if s := failing(t, 200, 0, DefaultLimits()); s.OverCalls != nil || !(len(s.Judged()) == len(s.Figures)) {
		t.Errorf("of a run without failures %v", s.OverCalls)
	}
	var succeeded []float64
	for i := range 200 {
		if i%200 != 0 {
			succeeded = append(succeeded, float64(i+1))
		}
	}
	for name, limits := range map[string]Limits{"whole": DefaultLimits(), "rows": {Bytes: 1, Some: 1, Rows: 1000}, "sketches": {Bytes: 1, Some: 1, Rows: 1}} {
		s := failing(t, 200, 200, limits)
		want := stat.Quantile(succeeded, 0.99/0.995)
		got := s.OverCalls["p99_ttft_ms"]
		if math.Abs(got-want) > 1e-4*want || got <= s.Figures["p99_ttft_ms"] || s.OverCalls["median_ttft_ms"] <= s.Figures["median_ttft_ms"] {
			t.Errorf("%s: P99 over all calls is %v, want %v, and %v of those that succeeded", name, got, want, s.Figures["p99_ttft_ms"])
		}
		if _, ok := s.OverCalls["p99.9_ttft_ms"]; ok {
			t.Errorf("%s: P99.9 has an end although 0.5 %% failed", name)
		}
		for figure := range s.OverCalls {
			if m, err := Lookup(figure); err != nil || m.Family == familyITL || m.Family == familyITLToken {
				t.Errorf("%s: %s is of no call", name, figure)
			}
		}
		j := s.Judged()
		if _, ok := j["p99.9_ttft_ms"]; ok || j["p99_ttft_ms"] != got || j["p99_itl_ms"] != s.Figures["p99_itl_ms"] || s.Figures["p99_ttft_ms"] == got {
			t.Errorf("%s: judged by %v", name, j)
		}
		// Between the two the bound is missed that the successes alone would keep.
		o := SLO{"p99_ttft_ms", "<=", (got + s.Figures["p99_ttft_ms"]) / 2}
		if met, why := o.Judge(s); met {
			t.Errorf("%s: %s", name, why)
		}
	}
}

// Where there are figures alone, others of the family may tell; else it cannot be known.
func TestOverCallsOfFigures(t *testing.T) {
	s := Summary{Figures: map[string]float64{"p99_ttft_ms": 500, "p99_tpot_ms": 30, "max_tpot_ms": 40, "success_rate": 0.995}}
	for _, tt := range []struct {
		slo SLO
		met bool
		why string
	}{
		{SLO{"p99_ttft_ms", "<=", 600}, false, "p99_ttft_ms <= 600: missed, as it cannot be known: 500 ms of the calls that succeeded, but 0.5 % of all calls failed, and without the calls it is not known what the percentile over all of them is"},
		{SLO{"p99_ttft_ms", "<=", 400}, false, "p99_ttft_ms <= 400: missed, at least 500 ms over all calls (0.5 % of all calls failed)"},
		{SLO{"p99_tpot_ms", "<=", 50}, true, "p99_tpot_ms <= 50: met, between 30 ms and 40 ms over all calls (0.5 % of all calls failed; 30 ms of the calls that succeeded)"},
	} {
		if met, why := tt.slo.Judge(s); met != tt.met || why != tt.why {
			t.Errorf("%v %q, want %v %q", met, why, tt.met, tt.why)
		}
	}
	s.OverCalls = map[string]float64{"p99_ttft_ms": 550}
	want := "p99_ttft_ms <= 600: met, 550 ms over all calls, of which failed ones never end (0.5 % of all calls failed; 500 ms of the calls that succeeded)"
	if met, why := (SLO{"p99_ttft_ms", "<=", 600}).Judge(s); !met || why != want {
		t.Errorf("%v %q", met, why)
	}
	// An imported run whose calls came with it has them.
	own := Summary{Figures: map[string]float64{"p99_ttft_ms": 500, "p99_e2el_ms": 900, "success_rate": 0.995}, OverCalls: map[string]float64{"p99_ttft_ms": 560, "p99_e2el_ms": 990}}
	imported := Summary{Figures: map[string]float64{"p99_ttft_ms": 500, "success_rate": 0.995}}
	imported.Complete(own)
	if imported.OverCalls["p99_ttft_ms"] != 560 || imported.OverCalls["p99_e2el_ms"] != 990 {
		t.Errorf("%v", imported.OverCalls)
	}
	b, err := s.MarshalJSON()
	var again Summary
	if err != nil || again.UnmarshalJSON(b) != nil || again.OverCalls["p99_ttft_ms"] != 550 || slices.Contains(again.names(), "over_all_calls") {
		t.Errorf("%s is read as %+v", b, again)
	}
}
