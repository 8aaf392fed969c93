package workload

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"perflab/internal/stat"

	"github.com/google/go-cmp/cmp"
)

// perStep counts the due times in each stretch of seconds.
func perStep(due []time.Duration, seconds ...float64) []int {
	out := make([]int, len(seconds))
	for _, d := range due {
		end := 0.0
		for i, s := range seconds {
			if end += s; d.Seconds() < end {
				out[i]++
				break
			}
		}
	}
	return out
}

func mustTimed(t *testing.T, s Spec) []time.Duration {
	t.Helper()
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	due, err := dueInTime(s.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.IsSorted(due) || due[0] < 0 {
		t.Fatalf("%+v: due times decrease or are negative", s)
	}
	return due
}

// TestConstantSteps: each step has its rate times its length, evenly spaced,
// also where floating point makes a product not quite whole.
func TestConstantSteps(t *testing.T) {
	for _, tt := range []struct {
		steps   string
		seconds []float64
		want    []int
	}{
		{"2:30s,8:60s,2:30s", []float64{30, 60, 30}, []int{60, 480, 60}},
		{"0.1:30s,0.7:10s,0.3:10s", []float64{30, 10, 10}, []int{3, 7, 3}},
		{"4:10s,0:1m,4:10s", []float64{10, 60, 10}, []int{40, 0, 40}},
		{"1000:1,1:10", []float64{1, 10}, []int{1000, 10}},
	} {
		due := mustTimed(t, Spec{Steps: tt.steps, Arrival: "constant"})
		if d := cmp.Diff(tt.want, perStep(due, tt.seconds...)); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.steps, d)
		}
	}
	s, ms := time.Second, time.Millisecond
	want := []time.Duration{0, 500 * ms, s, 1250 * ms, 1500 * ms, 1750 * ms, 2 * s, 2500 * ms}
	if d := cmp.Diff(want, mustTimed(t, Spec{Steps: "2:1s,4:1s,2:1s", Arrival: "constant"})); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// TestRandomSteps: of random arrivals the mean number of each step is right,
// to 4 standard errors; of a Poisson process the variance as well.
func TestRandomSteps(t *testing.T) {
	const runs = 400
	for _, k := range []float64{1, 4} {
		var counts [3][]float64
		for seed := range uint64(runs) {
			due := mustTimed(t, Spec{Steps: "2:30s,8:60s,2:30s", Burstiness: k, Seed: seed})
			for i, n := range perStep(due, 30, 60, 30) {
				counts[i] = append(counts[i], float64(n))
			}
		}
		for i, want := range []float64{60, 480, 60} {
			mean, sd := stat.Mean(counts[i]), stat.StdDev(counts[i])
			// A gamma renewal process that begins with a whole gap lacks half of
			// 1-1/k of a request at its start.
			shift := 0.0
			if i == 0 {
				shift = (1/k - 1) / 2
			}
			if e := math.Abs(mean - want - shift); e > 4*math.Sqrt(want/k/runs) {
				t.Errorf("burstiness %g, step %d: %.2f requests on average, want %g", k, i+1, mean, want)
			}
			if e := sd / math.Sqrt(want/k); k == 1 && (e < 0.85 || e > 1.15) {
				t.Errorf("Poisson, step %d: standard deviation %.2f, want %.2f", i+1, sd, math.Sqrt(want))
			}
		}
	}
	g := gapSeconds(mustTimed(t, Spec{Rate: 8, Duration: "600s", Seed: 3}))
	if ks := ksExponential(g, 8); ks > 1.36 {
		t.Errorf("KS distance %.2f of Poisson gaps", ks)
	}
}

// TestTimedRamp: a ramp bounded by time goes by time, and each stretch holds
// the integral of the rate.
func TestTimedRamp(t *testing.T) {
	linear := Spec{RampStrategy: "linear", RampStart: 2, RampEnd: 10, Arrival: "constant", Duration: "20s"}
	// 2t + 0.2t²: 30 requests in 8.68 s, 40 in 10 s, 120 in 20 s.
	if d := cmp.Diff([]int{40, 80}, perStep(mustTimed(t, linear), 10, 10)); d != "" {
		t.Errorf("linear (-want +got):\n%s", d)
	}
	exponential := Spec{RampStrategy: "exponential", RampStart: 1, RampEnd: 16, Arrival: "constant", Duration: "8s"}
	// The rate doubles every 2 s: 2/ln2·(2^(t/2)-1) = 0, 8.66, 43.3 at 0, 4, 8 s.
	if d := cmp.Diff([]int{9, 35}, perStep(mustTimed(t, exponential), 4, 4)); d != "" {
		t.Errorf("exponential (-want +got):\n%s", d)
	}
	down := Spec{Steps: "3:1s,0:1s", Arrival: "constant"}
	if due := mustTimed(t, down); len(due) != 3 || due[2] != 666666667 {
		t.Errorf("a pause at the end: %v", due)
	}
}

func TestDuration(t *testing.T) {
	azure := file(t, azureText) // due at 0, 52 ms, 1.5 s
	for name, tt := range map[string]struct {
		spec Spec
		len  int
		all  int
	}{
		"open loop":               {Spec{Rate: 10, Arrival: "constant", Duration: "2.5s", RandomInputLen: 4}, 25, 25},
		"bounded by both":         {Spec{Rate: 10, Arrival: "constant", Duration: "2.5s", NumPrompts: 7, RandomInputLen: 4}, 7, 7},
		"both loops":              {Spec{Rate: 10, Arrival: "constant", Duration: "2.5s", MaxConcurrency: 2, RandomInputLen: 4}, 25, 25},
		"steps":                   {Spec{Steps: "2:1s,4:1s", Arrival: "constant", NumPrompts: 5, RandomInputLen: 4}, 5, 5},
		"a trace's own times":     {Spec{Dataset: "azure", Path: azure, Duration: "1.5s"}, 2, 2},
		"a trace at a rate":       {Spec{Dataset: "azure", Path: azure, Rate: 1, Arrival: "constant", Duration: "3s"}, 3, 3},
		"a file is repeated":      {Spec{Dataset: "jsonl", Path: file(t, `{"prompt": "a"}`), Rate: 1, Arrival: "constant", Duration: "4s"}, 4, 4},
		"a file is not":           {Spec{Dataset: "jsonl", Path: file(t, `{"prompt": "a"}`), Rate: 1, Arrival: "constant", Duration: "4s", NoOversample: true}, 1, 1},
		"closed loop, by number":  {Spec{Duration: "2s", MaxConcurrency: 2, NumPrompts: 6, RandomInputLen: 4}, 0, 6},
		"conversations at a rate": {Spec{Dataset: "conversations", Duration: "2s", Rate: 3, Arrival: "constant"}, 0, 6},
	} {
		w := mustOpen(t, tt.spec)
		all := slices.Collect(w.All())
		if w.Len() != tt.len || len(all) != tt.all {
			t.Errorf("%s: %d requests, Len %d; want %d and %d", name, len(all), w.Len(), tt.all, tt.len)
		}
		if end := w.Spec().length(); end > 0 && all[len(all)-1].Due >= end {
			t.Errorf("%s: a request is due at %v", name, all[len(all)-1].Due)
		}
		if (w.Until() > 0) != (tt.len == 0) {
			t.Errorf("%s: Until %v", name, w.Until())
		}
	}
	_, err := Open(Spec{Dataset: "azure", Path: azure, Rate: 1, Arrival: "constant", Duration: "4s"})
	if err == nil || !strings.Contains(err.Error(), "the schedule holds 4 requests, and the trace, which is not repeated, 3 usable rows") {
		t.Errorf("a trace too short: %v", err)
	}
	_, err = Open(Spec{Steps: "1:3s", Arrival: "constant", NumPrompts: 4})
	if err == nil || err.Error() != "num_prompts: 4 is more than the 3 requests that steps 1:3s holds" {
		t.Errorf("too few steps: %v", err)
	}
	_, err = Open(Spec{Rate: 1e-9, Duration: "1s"})
	if err == nil || !strings.Contains(err.Error(), "no request is due within the 1 s of the schedule") {
		t.Errorf("an empty schedule: %v", err)
	}
	for text, s := range map[string]Spec{
		"more than 1000000000 requests": {Rate: 1e10, Arrival: "constant", Duration: "1s"},
		"more than 10000000 requests":   {Steps: "100000000:1s", Arrival: "constant"},
	} {
		if _, err = Open(s); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("too many: %v", err)
		}
	}
}

// take is the first n requests of a workload.
func take(w *Workload, n int) []Request {
	var out []Request
	for r := range w.All() {
		if out = append(out, r); len(out) == n {
			break
		}
	}
	return out
}

// TestEndless: a closed loop bounded by time never runs out, made-up requests
// are all different and the same however far they were drawn before, and a
// file is repeated.
func TestEndless(t *testing.T) {
	s := Spec{Duration: "1m", MaxConcurrency: 4, RandomInputLen: 6, RandomRangeRatio: 0.5}
	w := mustOpen(t, s)
	n := firstDraw(s, s.row()) + 110
	a := take(w, n)
	seen := map[string]bool{}
	for i, r := range a {
		if r.Index != i || r.Due != 0 || seen[r.Prompt] {
			t.Fatalf("request %d: %+v", i, r)
		}
		seen[r.Prompt] = true
	}
	if d := cmp.Diff(a[:100], take(w, 100)); d != "" {
		t.Errorf("drawn again:\n%s", d)
	}
	if d := cmp.Diff(a[n-10:], slices.Collect(func(yield func(Request) bool) {
		for r := range mustOpen(t, s).Shard(0, 1) {
			if r.Index >= n || r.Index >= n-10 && !yield(r) {
				return
			}
		}
	})); d != "" {
		t.Errorf("opened again:\n%s", d)
	}
	if w.Len() != 0 || w.Until() != time.Minute || !w.Closed() || w.Totals().Requests != 0 {
		t.Errorf("Len %d, Until %v, Closed %v", w.Len(), w.Until(), w.Closed())
	}
	if want := "Random dataset: 3 to 9 input tokens, 64 to 192 output tokens, for 1m0s, each when another ends, at most 4 at a time"; w.Describe() != want {
		t.Errorf("%s", w.Describe())
	}
	if w.Fingerprint() != mustOpen(t, s).Fingerprint() {
		t.Error("the fingerprint differs")
	}

	f := mustOpen(t, Spec{Dataset: "jsonl", Path: file(t, `{"prompt": "a"}`+"\n"+`{"prompt": "b c"}`), Duration: "1m", MaxConcurrency: 4})
	n = firstDraw(f.Spec(), f.Spec().row())
	b := take(f, n+5)
	for i, r := range b[n:] {
		if r.Index != n+i || r.Prompt != b[i].Prompt || r.Input != b[i].Input {
			t.Errorf("request %d: %+v", n+i, r)
		}
	}
}

func TestShapeFaults(t *testing.T) {
	for _, tt := range []struct {
		spec Spec
		want string
	}{
		{Spec{Steps: "2:30s", Rate: 2}, "request_rate: does not apply with steps, which has the rates"},
		{Spec{Steps: "2:30s", Arrival: "inf"}, "steps: applies to arrival constant, poisson or gamma, not inf"},
		{Spec{Steps: "2:30s", Duration: "3s"}, "duration: does not apply with steps, which has the times"},
		{Spec{Steps: "2:30s", RampStrategy: "linear", RampStart: 1, RampEnd: 2}, "ramp_up_strategy: does not apply with steps, which has the rates"},
		{Spec{Steps: "2:30s,8"}, `steps: has "8": write RATE:TIME,... such as 2:30s,8:60s,2:30s`},
		{Spec{Steps: "-2:30s"}, `steps: has "-2:30s": write RATE:TIME,... such as 2:30s,8:60s,2:30s`},
		{Spec{Steps: "2:"}, `steps: has "2:": write RATE:TIME,... such as 2:30s,8:60s,2:30s`},
		{Spec{Steps: "0:3s"}, `steps: 0:3s has no rate above 0: write RATE:TIME,... such as 2:30s,8:60s,2:30s`},
		{Spec{Duration: "3s"}, "duration: needs request_rate, a ramp, a trace or max_concurrency: without any of them all requests are due at once"},
		{Spec{Dataset: "azure", Path: "x", Arrival: "inf", MaxConcurrency: 4, Duration: "3s"}, "duration: in a closed loop takes requests without end, and a trace is not repeated: give num_prompts or request_rate as well"},
		{Spec{RandomRNG: "vllm", Tokenizer: "x", MaxConcurrency: 4, Duration: "3s"}, "duration: in a closed loop takes requests without end, and random_rng vllm draws a number of them at once: give num_prompts as well"},
		{Spec{Duration: "soon", Rate: 1}, `duration: "soon" is not a time above 0: write 90s, 2m or 90`},
		{Spec{Duration: "-1", Rate: 1}, `duration: "-1" is not a time above 0: write 90s, 2m or 90`},
		{Spec{Duration: "NaN", Rate: 1}, `duration: "NaN" is not a time: write 90s, 2m or 90`},
	} {
		if err := tt.spec.Validate(); err == nil || err.Error() != tt.want {
			t.Errorf("%+v\n got %v\nwant %s", tt.spec, err, tt.want)
		}
	}
	for text, want := range map[Span]time.Duration{"": 0, "90": 90 * time.Second, "0.5": 500 * time.Millisecond, "2m": 2 * time.Minute} {
		if d, err := text.Duration(); d != want || err != nil {
			t.Errorf("%q is %v, %v", text, d, err)
		}
	}
}

// TestCrowd: calls far apart never need their connections at once.
func TestCrowd(t *testing.T) {
	for _, tt := range []struct {
		s    Spec
		want int
	}{
		{Spec{NumPrompts: 500}, 500},
		{Spec{NumPrompts: 500, Rate: 2, Arrival: "constant"}, 120},
		{Spec{NumPrompts: 50, Rate: 2, Arrival: "constant"}, 50},
		{Spec{Steps: "1:300s,5:90s,1:300s", Arrival: "constant"}, 300},
		{Spec{Dataset: "conversations", NumPrompts: 500, Rate: 2, Arrival: "constant"}, 500},
		{Spec{Duration: "1m", MaxConcurrency: 4}, 0},
	} {
		if got := mustOpen(t, tt.s).PeakDue(time.Minute); got != tt.want {
			t.Errorf("%+v: %d within a minute, want %d", tt.s, got, tt.want)
		}
	}
}
