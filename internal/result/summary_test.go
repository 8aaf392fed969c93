package result

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/gauge"
	"perflab/internal/price"
	"perflab/internal/reuse"
)

// client is one that has nothing to answer for.
var client = Client{Wall: 10 * time.Second, CPU: time.Second, Procs: 2}

func summarize(t testing.TB, h Header, o Options, calls []Call) Summary {
	t.Helper()
	if h.Requests == 0 {
		h.Requests = len(calls)
	}
	s, err := Summarize(h, &client, o, slices.Values(calls))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Three calls reckoned by hand, the last failed.
func TestFigures(t *testing.T) {
	calls := []Call{
		stream(0, 0, 50*msec, 60*msec, 80*msec),                 // n 3, E2E 80, TPOT 15
		stream(1, 100*msec, 100*msec, 140*msec),                 // n 2, E2E 140, TPOT 40
		fail(stream(2, 150*msec, 1850*msec), TimeoutFirstToken), // ends at 2001 ms
	}
	calls[1].Answer = calls[1].Chunks[1].At
	s := summarize(t, Header{Limit: 8, Rate: 4}, Options{}, calls)
	const d = 2.001 // to the end of the failed call
	want := map[string]float64{
		"max_concurrency": 8, "request_rate": 4, "completed": 2, "failed": 1, "success_rate": 2.0 / 3,
		"duration": d, "drain_s": 1.851,
		"total_input_tokens": 20, "total_output_tokens": 5,
		"request_throughput": 2 / d, "output_throughput": 5 / d, "total_token_throughput": 25 / d,
		"max_output_tokens_per_s": 5, "max_concurrent_requests": 1,
		"mean_ttft_ms": 75, "median_ttft_ms": 75, "std_ttft_ms": 25, "min_ttft_ms": 50, "max_ttft_ms": 100, "p99_ttft_ms": 99.5,
		"mean_tpot_ms": 27.5, "std_tpot_ms": 12.5,
		"mean_e2el_ms": 110, "p90_e2el_ms": 134,
		"median_itl_ms": 20, "max_itl_ms": 40, "mean_itl_token_ms": 70.0 / 3,
		"mean_ttfa_ms": 140, "mean_ttft_due_ms": 75, "mean_stream_ms": 111, "mean_queue_ms": 0, "p99_dispatch_lag_ms": 0,
		"merged_chunks": 0,
	}
	for name, v := range want {
		got, ok := s.Figures[name]
		if !ok || got < v*(1-1e-12) || got > v*(1+1e-12) {
			t.Errorf("%s = %v (there: %v), want %v", name, got, ok, v)
		}
	}
	for _, absent := range []string{"request_goodput", "goodput_ratio", "steady_duration", "p75_ttft_ms"} {
		if v, ok := s.Figures[absent]; ok {
			t.Errorf("%s = %v, want it absent", absent, v)
		}
	}
	if diff := cmp.Diff(map[Class]int{TimeoutFirstToken: 1}, s.Failures); diff != "" {
		t.Errorf("failures: -want +got\n%s", diff)
	}
}

// The run begins when its first request was due, though it was sent late or
// failed; a failed call that was never sent has no sending to count from.
func TestDurationCountsFromDue(t *testing.T) {
	late := stream(1, 300*msec, 50*msec)
	late.Due = 200 * msec
	unsent := Call{Index: 2, Due: 250 * msec, Ready: 250 * msec, End: 250 * msec, Class: Cancelled}
	if got := summarize(t, Header{}, Options{}, []Call{late, unsent}).Figures["duration"]; got != 0.151 {
		t.Errorf("duration %v, want 0.151: from 200 to 351 ms", got)
	}
}

// What the data does not support is absent: one-token answers have no TPOT and
// no ITL, a run in which nothing succeeded has no rate.
func TestAbsentFigures(t *testing.T) {
	one := summarize(t, Header{}, Options{}, []Call{stream(0, 0, 50*msec)})
	none := summarize(t, Header{}, Options{}, []Call{fail(stream(0, 0, 50*msec), Connect)})
	for name, s := range map[string]Summary{"mean_tpot_ms": one, "mean_itl_ms": one, "mean_queue_ms": one, "mean_ttft_ms": none, "output_throughput": none, "total_output_tokens": none} {
		if v, ok := s.Figures[name]; ok {
			t.Errorf("%s = %v, want it absent", name, v)
		}
	}
}

// Failed calls change nothing but failed, success_rate, goodput_ratio and,
// when they are the last to end, the wall.
func TestFailedCallsEnterNoFigure(t *testing.T) {
	calls := steady(200, 20*msec)
	bounds, err := ParseGoodput("ttft:50")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Goodput: bounds}
	without := summarize(t, Header{}, o, calls)
	with := append(slices.Clone(calls), fail(stream(200, 500*msec, 100*msec), EarlyClose))
	got := summarize(t, Header{}, o, with)
	for name, v := range without.Figures {
		switch changed := got.Figures[name] != v; name {
		case "failed", "success_rate", "goodput_ratio":
			if !changed {
				t.Errorf("%s stays %v with a failed call more", name, v)
			}
		default:
			if changed {
				t.Errorf("%s becomes %v from %v by a failed call", name, got.Figures[name], v)
			}
		}
	}
}

func TestOrderInvariance(t *testing.T) {
	calls := steady(300, 10*msec)
	calls[7].Chunks[0].Tokens, calls[9].Usage.Completion = 3, 40
	calls[11] = fail(calls[11], Connect)
	o := Options{Percentiles: []float64{75, 99.9}}
	want := summarize(t, Header{Rate: 100}, o, calls)
	if diff := cmp.Diff(want, summarize(t, Header{Rate: 100}, o, shuffled(calls))); diff != "" {
		t.Errorf("another order of the calls changes the summary: -sorted +shuffled\n%s", diff)
	}
	if _, ok := want.Figures["p99.9_itl_ms"]; !ok {
		t.Error("p99.9_itl_ms was asked for and is absent")
	}
}

// All times doubled: latencies double, rates halve, exactly. The peak alone
// is of a fixed second, and is the mean when the run is shorter.
func TestScaling(t *testing.T) {
	calls := steady(300, 10*msec)
	twice := slices.Clone(calls)
	for i := range twice {
		c := &twice[i]
		c.Due, c.Ready, c.Sent, c.End = 2*c.Due, 2*c.Ready, 2*c.Sent, 2*c.End
		c.Chunks = slices.Clone(c.Chunks)
		for j := range c.Chunks {
			c.Chunks[j].At *= 2
		}
	}
	a, b := summarize(t, Header{}, Options{}, calls), summarize(t, Header{}, Options{}, twice)
	for name, v := range a.Figures {
		m, err := Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		want := v
		switch {
		case name == "max_output_tokens_per_s":
			continue
		case m.Unit == "ms" || m.Unit == "s":
			want = 2 * v
		case strings.HasSuffix(m.Unit, "/s"):
			want = v / 2
		}
		if got := b.Figures[name]; got != want {
			t.Errorf("%s = %v of times doubled, want %v", name, got, want)
		}
	}
}

func TestEveryFigureIsInTheTable(t *testing.T) {
	bounds, err := ParseGoodput("ttft:500")
	if err != nil {
		t.Fatal(err)
	}
	calls := steady(300, 10*msec)
	for i := range calls {
		c := &calls[i]
		c.Answer, c.Usage.Cached, c.New, c.Dial = c.Chunks[0].At, 1, true, msec
		c.First, c.Headers = c.Chunks[0].At, c.Chunks[0].At
		c.Session, c.Turn, c.Turns, c.Target = i/2+1, i%2, 2, i%2
		c.Speculation = &Speculation{Steps: 1, Drafted: mostPositions, ByStep: append([]int32{1}, make([]int32, mostPositions)...)}
	}
	o := Options{Goodput: bounds, Price: price.Hourly{PerHour: 3.5, Currency: "USD"}, GPUs: 2, Readings: readingsOfAll(-time.Second, 5*time.Second, 100*msec)}
	for i := range calls {
		o.Prompts = append(o.Prompts, reuse.Prompt{Index: i, Tokens: calls[i].Usage.Prompt})
	}
	for _, r := range slices.Clone(o.Readings) { // of a second replica
		if r.Index = 1; r.Source == gauge.SourceEngine {
			o.Readings = append(o.Readings, r)
		}
	}
	s := summarize(t, Header{Rate: 100, Limit: 10, Targets: []string{"a", "b"}}, o, calls)
	for _, axis := range []string{"rate", "concurrency"} {
		for _, sessions := range []bool{false, true} {
			Search{Axis: axis, Sessions: sessions, Load: 3}.AddFigures(s.Figures, 2)
		}
	}
	var want []string
	for _, m := range Metrics() {
		want = append(want, m.Name)
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(s.Figures))); diff != "" {
		t.Errorf("-in the table +computed\n%s", diff)
	}
}

func TestMergedChunksStayOutOfITL(t *testing.T) {
	c := stream(0, 0, 50*msec, 60*msec, 60*msec, 60*msec, 90*msec)
	f := summarize(t, Header{}, Options{}, []Call{c}).Figures
	// Reads at 50, 60 (3 tokens), 90: gaps 10 and 30; per token 10/3 three times, and 30.
	if f["merged_chunks"] != 2 || f["min_itl_ms"] != 10 || f["mean_itl_ms"] != 20 {
		t.Errorf("merged %v, min ITL %v, mean ITL %v; want 2, 10, 20", f["merged_chunks"], f["min_itl_ms"], f["mean_itl_ms"])
	}
	if f["mean_itl_token_ms"] != 10 || f["median_itl_token_ms"] != 10.0/3 {
		t.Errorf("ITL per token: mean %v, median %v; want 10, 3.33", f["mean_itl_token_ms"], f["median_itl_token_ms"])
	}
}

func TestITLPerTokenUsesUsage(t *testing.T) {
	even := stream(0, 0, 50*msec, 70*msec, 90*msec) // 3 chunks
	even.Usage.Completion = 6                       // of two tokens each
	even.FirstText, even.StreamText = 5, 15
	alone := even // 1, 2 and 3 tokens: 40 ms for 5
	alone.FirstText = 2
	for _, test := range []struct {
		call     Call
		perToken float64
	}{{even, 10}, {alone, 8}} {
		f := summarize(t, Header{}, Options{}, []Call{test.call}).Figures
		if f["mean_itl_token_ms"] != test.perToken || f["mean_tpot_ms"] != test.perToken || f["mean_itl_ms"] != 20 {
			t.Errorf("ITL per token %v, TPOT %v, ITL per chunk %v; want %v, %[4]v, 20", f["mean_itl_token_ms"], f["mean_tpot_ms"], f["mean_itl_ms"], test.perToken)
		}
	}
}

func TestPeak(t *testing.T) {
	for _, test := range []struct {
		name  string
		calls []Call
		want  float64
	}{
		// 5 tokens within a second that straddles a bucket of whole seconds.
		{"sliding", []Call{stream(0, 0, 700*msec, 900*msec, 1100*msec, 1300*msec, 1500*msec, 3000*msec, 4000*msec)}, 5},
		{"tokens of a call spread over its chunks", func() []Call {
			c := stream(0, 0, 100*msec, 1500*msec, 3999*msec)
			c.Usage.Completion, c.FirstText, c.StreamText = 30, 40, 120
			return []Call{c}
		}(), 10},
		// 10 tokens at each end of 1.5 s: no second holds more than 10, the mean is 20/1.5.
		{"never below the mean", func() []Call {
			c := stream(0, 0, 1*msec, 1499*msec)
			c.Chunks[0].Tokens, c.Chunks[1].Tokens, c.Usage.Completion = 10, 10, 20
			return []Call{c}
		}(), 20 / 1.5},
		{"a second is half open", []Call{stream(0, 0, 500*msec, 1500*msec, 2999*msec)}, 1},
		{"a run under a second", []Call{stream(0, 0, 100*msec, 249*msec)}, 2 / 0.25},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := summarize(t, Header{}, Options{}, test.calls)
			if got := s.Figures["max_output_tokens_per_s"]; got != test.want {
				t.Errorf("peak %v, want %v", got, test.want)
			}
		})
	}
}

func TestMaxConcurrentRequests(t *testing.T) {
	a := stream(0, 0, 99*msec)         // ends at 100
	b := stream(1, 50*msec, 99*msec)   // ends at 150
	c := stream(2, 100*msec, 100*msec) // sent as a ends
	d := stream(3, 120*msec, 10*msec)
	for _, test := range []struct {
		calls []Call
		want  float64
	}{{[]Call{a, b, c}, 2}, {[]Call{a, b, c, d}, 3}, {[]Call{a}, 1}} {
		if got := summarize(t, Header{}, Options{}, test.calls).Figures["max_concurrent_requests"]; got != test.want {
			t.Errorf("%d calls: %v in flight, want %v", len(test.calls), got, test.want)
		}
	}
}

// A closed loop of one: between the first end and the last sending calls
// follow each other without a gap.
func TestSteadyWindow(t *testing.T) {
	var calls []Call
	for i := range 21 {
		calls = append(calls, stream(i, time.Duration(i)*100*msec, 49*msec, 99*msec))
	}
	f := summarize(t, Header{}, Options{}, calls).Figures
	// From 0.1 s, when call 0 ends, to 2 s, when call 20 is sent: 19 calls of 2 + 10 tokens.
	for name, want := range map[string]float64{
		"steady_duration": 1.9, "steady_request_throughput": 10,
		"steady_output_throughput": 20, "steady_total_token_throughput": 120, "drain_s": 0.1,
	} {
		if got := f[name]; got < want-1e-9 || got > want+1e-9 {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
}

func TestGoodput(t *testing.T) {
	calls := []Call{
		stream(0, 0, 50*msec, 60*msec),                // TTFT 50, TPOT 10
		stream(1, 0, 50*msec, 90*msec),                // TPOT 40
		stream(2, 0, 80*msec, 90*msec),                // TTFT 80
		stream(3, 0, 50*msec),                         // one token
		stream(4, 0, 50*msec, 50*msec),                // two in one read: no TPOT to judge
		fail(stream(5, 0, 50*msec, 60*msec), BadBody), // misses
	}
	bounds, err := ParseGoodput("ttft:50 tpot:10")
	if err != nil {
		t.Fatal(err)
	}
	f := summarize(t, Header{}, Options{Goodput: bounds}, calls).Figures
	if want := 2.0 / 6; f["goodput_ratio"] != want {
		t.Errorf("goodput ratio %v, want %v", f["goodput_ratio"], want)
	}
	if want := 2 / f["duration"]; f["request_goodput"] != want {
		t.Errorf("goodput %v req/s, want %v", f["request_goodput"], want)
	}
	_, err = Summarize(Header{}, nil, Options{Goodput: []SLO{{"itl_ms", "<=", 5}}}, slices.Values(calls))
	if err == nil {
		t.Error("a goodput bound on ITL, which no call has, is taken")
	}
}

func TestSummarizeRejects(t *testing.T) {
	if _, err := Summarize(Header{}, nil, Options{Percentiles: []float64{101}}, slices.Values([]Call(nil))); err == nil {
		t.Error("percentile 101 is taken")
	}
	if _, err := Summarize(Header{}, nil, Options{Compat: "aiperf"}, slices.Values([]Call(nil))); err == nil {
		t.Error("the definitions of a client we do not know are taken")
	}
}

// A count that cannot be costs one call its count and the run nothing: the
// call's chunks are one token each, and the caller's call is left as it was.
func TestBrokenCount(t *testing.T) {
	calls := steady(100, 10*msec)
	want := summarize(t, Header{}, Options{}, calls).Figures
	for name, claim := range map[string]func(*Call){
		"chunk too large":      func(c *Call) { c.Chunks[0].Tokens, c.Usage.Completion = 1<<30, 1<<30 },
		"chunk below none":     func(c *Call) { c.Chunks[0].Tokens, c.Usage.Completion = -1, -1 },
		"usage too large":      func(c *Call) { c.Usage.Completion = 1 << 62 },
		"usage below none":     func(c *Call) { c.Usage.Completion = -5 },
		"reasoning below none": func(c *Call) { c.Usage.Reasoning = -5 },
		"prompt too large":     func(c *Call) { c.Usage.Prompt = 1 << 62 },
		"prompt below none":    func(c *Call) { c.Usage.Prompt = -10 },
		"cached below none":    func(c *Call) { c.Usage.Cached = -10 },
		"cached too large":     func(c *Call) { c.Usage.Cached = 1 << 62 },
	} {
		broken := slices.Clone(calls)
		c := &broken[7]
		c.Chunks, c.Usage = slices.Clone(c.Chunks), new(*c.Usage)
		claim(c)
		before := string(c.AppendJSON(nil))
		s := summarize(t, Header{}, Options{}, broken)
		if diff := cmp.Diff(want, s.Figures); diff != "" {
			t.Errorf("%s: figures change: -without +with\n%s", name, diff)
		}
		if after := string(c.AppendJSON(nil)); after != before {
			t.Errorf("%s: the caller's call was changed", name)
		}
	}
}

func TestSummaryJSON(t *testing.T) {
	calls := steady(100, 10*msec)
	calls[3] = fail(calls[3], Connect)
	s := summarize(t, Header{Simulated: true}, Options{Percentiles: []float64{99.9}, Compat: VLLM}, calls)
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var got Summary
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s, got); diff != "" {
		t.Errorf("-written +read\n%s", diff)
	}
	if !strings.HasPrefix(string(b), `{"completed":99,"failed":1,"duration":`) {
		t.Errorf("keys do not follow the metric table: %.100s", b)
	}
	if !strings.Contains(string(b), `"simulated":true,"predicted":false,"partial":false,"compat":"vllm","failures_by_class":{"connect":1},"verdict":{"status":`) {
		t.Errorf("the tail is not as documented: %s", b)
	}
	if err := json.Unmarshal([]byte(`{"duration":"long"}`), &got); err == nil || !strings.Contains(err.Error(), "duration") {
		t.Errorf("a figure that is no number: %v", err)
	}
	if err := json.Unmarshal([]byte(`{"duration":null}`), &got); err != nil || len(got.Figures) != 0 {
		t.Errorf("a null figure: %v, %v", got.Figures, err)
	}
}

// A million calls of eleven tokens: the limit is 5 s. Speculation makes the
// pools by read and by token differ.
func BenchmarkSummarize(b *testing.B) {
	for _, test := range []struct {
		name  string
		calls int
		spec  bool
	}{{"100k", 100_000, false}, {"1M", 1_000_000, false}, {"1M speculating", 1_000_000, true}} {
		b.Run(test.name, func(b *testing.B) {
			calls := steady(test.calls, msec)
			if test.spec {
				for i := range calls {
					calls[i].Usage.Completion += len(calls[i].Chunks) / 2
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				summarize(b, Header{}, Options{}, calls)
			}
		})
	}
}

func BenchmarkAppendJSON(b *testing.B) {
	c := steady(1, 0)[0]
	for range 200 {
		c.Chunks = append(c.Chunks, Chunk{At: c.End, Tokens: 1})
	}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = c.AppendJSON(buf[:0])
	}
}
