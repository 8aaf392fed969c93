package result

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/stat"
)

// One call with every stamp there is, reckoned by hand.
func TestEachDefinition(t *testing.T) {
	c := stream(0, 100*msec, 50*msec, 60*msec, 60*msec, 90*msec) // stamps at 150, 160, 160, 190
	c.Due, c.Ready = 80*msec, 95*msec
	c.New, c.Dial = true, 4*msec
	c.First, c.Headers = 120*msec, 121*msec
	c.Answer = c.Chunks[3].At
	c.End = 200 * msec
	c.Usage.Completion, c.FirstText, c.StreamText = 8, 9, 35 // two tokens a chunk
	s := summarize(t, Header{Limit: 1}, Options{}, []Call{c})
	for name, want := range map[string]float64{
		"mean_ttft_ms": 50, "mean_ttft_due_ms": 70, "mean_ttfa_ms": 90, "mean_ttfa_due_ms": 110,
		"mean_ttfb_ms": 20, "mean_headers_ms": 21, "mean_connect_ms": 4, "new_connections": 1,
		"mean_e2el_ms": 90, "mean_e2el_due_ms": 110, "mean_stream_ms": 100, "mean_stream_due_ms": 120,
		"mean_queue_ms": 15, "mean_dispatch_lag_ms": 1,
		"mean_tpot_ms": 40.0 / 6,
		"mean_itl_ms":  20, "mean_itl_token_ms": 40.0 / 6,
		"tokens_per_chunk": 2, "tokens_per_read": 8.0 / 3, "merged_chunks": 1,
	} {
		if got, ok := s.Figures[name]; !ok || math.Abs(got-want) > 1e-9 {
			t.Errorf("%s = %v (there: %v), want %v", name, got, ok, want)
		}
	}
	bare := summarize(t, Header{}, Options{}, []Call{stream(0, 0, 50*msec)})
	for _, absent := range []string{"mean_ttfa_due_ms", "mean_ttfb_ms", "mean_headers_ms", "mean_connect_ms", "full_load_duration", "mean_steady_ttft_ms"} {
		if v, ok := bare.Figures[absent]; ok {
			t.Errorf("%s = %v of a call without it, want it absent", absent, v)
		}
	}
}

// Where reads were counted, chunks of one read are merged whatever their
// stamps.
func TestMergedByRead(t *testing.T) {
	c := stream(0, 0, 50*msec, 60*msec, 61*msec, 90*msec)
	for i, read := range []int32{0, 1, 1, 2} {
		c.Chunks[i].Read = read
	}
	uncounted := summarize(t, Header{}, Options{}, []Call{c})
	c.Reads = 3
	s := summarize(t, Header{}, Options{}, []Call{c})
	if got := []float64{uncounted.Figures["merged_chunks"], s.Figures["merged_chunks"], s.Figures["max_itl_ms"]}; !slices.Equal(got, []float64{0, 1, 29}) {
		t.Errorf("merged without and with reads, largest gap: %v, want 0, 1, 29", got)
	}
}

// A closed loop of 20 that starts at once, with a tail that drains: full load
// lasts until fewer than 19 are in flight for good.
func TestFullLoad(t *testing.T) {
	var calls []Call
	for i := range 200 {
		sent := time.Duration(i/20)*100*msec + time.Duration(i%20)*msec
		calls = append(calls, stream(i, sent, 49*msec, 99*msec)) // ends 100 ms after its sending
	}
	calls[50] = fail(calls[50], Connect) // holds its place all the same
	f := summarize(t, Header{Limit: 20}, Options{}, calls).Figures
	// 19 are in flight from 18 ms on; in the last round the second end, at
	// 1001 ms, leaves 18.
	for name, want := range map[string]float64{
		"full_load_duration": 0.983,
		// Ends within: nine rounds of 20 less the failed call, and two of the last.
		"full_load_request_throughput": 181 / 0.983,
		// First tokens of all rounds but the failed call's: 199; second tokens: 179 and 2 of the last (999, 1000), 1001 at its end.
		"full_load_output_throughput":      (199 + 182) / 0.983,
		"full_load_total_token_throughput": (199 + 182 + 1990) / 0.983,
	} {
		if got := f[name]; math.Abs(got-want) > 1e-9*want {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	for name, h := range map[string]Header{"no limit": {}, "limit not reached": {Limit: 30}} {
		if v, ok := summarize(t, h, Options{}, calls).Figures["full_load_duration"]; ok {
			t.Errorf("%s: full load lasts %v s, want none", name, v)
		}
	}
}

// Latencies of the steady window are those of the calls sent in it: not of the
// first, which meet an empty server.
func TestSteadyLatencies(t *testing.T) {
	var calls []Call
	for i := range 21 {
		ttft := 49 * msec
		if i == 0 {
			ttft = 9 * msec
		}
		calls = append(calls, stream(i, time.Duration(i)*100*msec, ttft, 99*msec))
	}
	s := summarize(t, Header{}, Options{}, calls)
	// From the first end at 100 ms, exclusive, to the last sending: 19 calls.
	if got := s.Samples["steady_ttft"]; got != 19 {
		t.Errorf("%d samples, want 19", got)
	}
	if all, steady := s.Figures["min_ttft_ms"], s.Figures["min_steady_ttft_ms"]; all != 9 || steady != 49 {
		t.Errorf("least TTFT %v ms, in the steady window %v; want 9 and 49", all, steady)
	}
}

func TestIntervals(t *testing.T) {
	s := summarize(t, Header{}, Options{Percentiles: []float64{99.9}}, steady(1000, 10*msec))
	if got := map[string]int{"ttft": s.Samples["ttft"], "itl": s.Samples["itl"]}; got["ttft"] != 1000 || got["itl"] != int(s.Figures["total_output_tokens"])-1000 {
		t.Errorf("samples %v of %v tokens", got, s.Figures["total_output_tokens"])
	}
	for name, i := range s.Intervals {
		v, ok := s.Figures[name]
		if !ok || !(i[0] <= v && v <= i[1]) {
			t.Errorf("%s = %v is not in its interval %v", name, v, i)
		}
	}
	for _, name := range []string{"mean_ttft_ms", "median_ttft_ms", "p99_ttft_ms", "mean_itl_ms", "p99_itl_ms", "mean_itl_token_ms"} {
		if _, ok := s.Intervals[name]; !ok {
			t.Errorf("%s has no interval", name)
		}
	}
	for _, name := range []string{"p99.9_ttft_ms", "std_ttft_ms", "duration"} {
		if i, ok := s.Intervals[name]; ok {
			t.Errorf("%s has the interval %v", name, i)
		}
	}
	x := make([]float64, 0, 1000)
	for _, c := range steady(1000, 10*msec) {
		d, _ := c.TTFT()
		x = append(x, ms(d))
	}
	slices.Sort(x)
	lo, hi, _ := stat.QuantileCI(x, 0.99, 0.95)
	if diff := cmp.Diff([2]float64{lo, hi}, s.Intervals["p99_ttft_ms"]); diff != "" {
		t.Errorf("-order statistics +interval\n%s", diff)
	}
}

// Calls that differ from each other make the interval of ITL wider than its
// many samples alone would: the same gaps dealt out at random stay narrow.
func TestITLIntervalIsOfCalls(t *testing.T) {
	rng := stat.Stream(4, "gaps")
	width := func(of func(call int) time.Duration) float64 {
		var calls []Call
		for i := range 100 {
			at := []time.Duration{50 * msec}
			for range 50 {
				at = append(at, at[len(at)-1]+of(i)+time.Duration(rng.Int64N(int64(msec))))
			}
			calls = append(calls, stream(i, time.Duration(i)*10*msec, at...))
		}
		i, ok := summarize(t, Header{}, Options{}, calls).Intervals["mean_itl_ms"]
		if !ok {
			t.Fatal("no interval")
		}
		return i[1] - i[0]
	}
	apart := width(func(call int) time.Duration { return time.Duration(5+call%10) * msec })
	alike := width(func(int) time.Duration { return time.Duration(5+rng.IntN(10)) * msec })
	if apart < 4*alike {
		t.Errorf("calls that differ give %.3f ms, gaps that differ %.3f ms", apart, alike)
	}
}
