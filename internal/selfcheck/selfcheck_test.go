package selfcheck

import (
	"context"
	"math"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/bench"
	"perflab/internal/openai"
	"perflab/internal/result"
	"perflab/internal/truth"
	"perflab/internal/workload"
)

// truthServer runs in this process until the test ends.
func truthServer(t *testing.T) truth.Remote {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := truth.Serve(ctx, l, truth.Params{Tokens: 1}); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	return truth.Remote{URL: "http://" + l.Addr().String()}
}

// TestHeld: what a client says of reads that may have been late is held against
// the truth.
func TestHeld(t *testing.T) {
	const ms = time.Millisecond
	q := &truth.Request{Sends: []int64{int64(10 * ms), int64(20 * ms), int64(30 * ms), int64(40 * ms)}}
	call := &result.Call{Chunks: []result.Chunk{{At: 10 * ms}, {At: 30 * ms, Read: 1}, {At: 30 * ms, Read: 1}, {At: 40 * ms, Read: 2}}}
	for _, tt := range []struct {
		late         []result.LateRead
		told, beyond int
	}{
		{nil, 0, 1},
		{[]result.LateRead{{Read: 1, By: 5 * ms}}, 1, 1}, // it was 10 ms late
		{[]result.LateRead{{Read: 1, By: 12 * ms}}, 1, 0},
	} {
		a, c := new(Comparison), *call
		c.Late = tt.late
		if a.held(&c, q, 1, func(d time.Duration) int64 { return int64(d) }); a.Told != tt.told || a.Beyond != tt.beyond {
			t.Errorf("%v: %d told, %d beyond", tt.late, a.Told, a.Beyond)
		}
	}
}

// Tokens that come several at a time, and that usage alone counts: the TPOT is the pace at
// which the server made them, whether its first event is one of many or of one
// token.
func TestTPOTOfPackedTokens(t *testing.T) {
	server := truthServer(t)
	for name, p := range map[string]truth.Params{
		"one each":        {ITL: 8 * time.Millisecond, Tokens: 40},
		"eight each":      {ITL: 64 * time.Millisecond, Tokens: 6, Pack: 8},
		"the first alone": {ITL: 64 * time.Millisecond, Tokens: 6, Pack: 8, Alone: true},
		"and two a write": {ITL: 64 * time.Millisecond, Tokens: 6, Pack: 8, Merge: 2},
	} {
		t.Run(name, func(t *testing.T) {
			if err := server.Set(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			client, err := openai.New(openai.Config{BaseURL: server.URL, Backend: openai.BackendChat, Model: truth.Model, Concurrency: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			c := client.Send(t.Context(), time.Now(), workload.Request{Prompt: truth.Prompt(7), Input: 1, Output: 40})
			known, err := server.Truth(t.Context(), true)
			if err != nil || !c.OK() || len(known.Requests) != 1 {
				t.Fatalf("%v, %s, %d requests", err, c.Error, len(known.Requests))
			}
			q, pack, sends := known.Requests[0], max(1, p.Pack), max(1, p.Merge)
			later := (p.Tokens - sends) * pack // tokens after the first send
			want := float64(q.Last-q.First) / float64(later)
			if got, ok := c.TPOT(); !ok || math.Abs(got/want-1) > 0.02 {
				t.Errorf("TPOT %.3f ms, and the server made %d tokens at %.3f ms each", got/1e6, later, want/1e6)
			}
		})
	}
}

// TestCompare: every error is the difference of two known accounts.
func TestCompare(t *testing.T) {
	const start = int64(1_764_000_000e9)
	us := func(n int) time.Duration { return time.Duration(n) * time.Microsecond }
	at := func(n int) int64 { return start + int64(us(n)) }
	wall := func(d time.Duration) int64 { return start + int64(d) }
	chunks := func(at ...int) (out []result.Chunk) {
		for _, n := range at {
			out = append(out, result.Chunk{At: us(n), Tokens: 1})
		}
		return out
	}
	a := &Comparison{Calls: 5, Server: truth.Truth{Requests: []truth.Request{
		{ID: 1, Received: at(130), First: at(1100), Last: at(3100), Events: 3, Sends: []int64{at(1100), at(2100), at(3100)}},
		{ID: 0, Received: at(40), First: at(1000), Last: at(3000), Events: 3, Sends: []int64{at(1000), at(2000), at(3000)}},
		{ID: 2, Received: at(0), First: at(1), Last: at(1), Events: 1, Sends: []int64{at(1)}},
		{ID: 3, Received: at(0), First: at(1), Last: at(1), Events: 1, Sends: []int64{at(1)}},
	}}}
	a.compare([]result.Call{
		{Index: 0, Sent: us(10), Chunks: chunks(1004, 3007, 3007)},  // the second event came with the third
		{Index: 1, Sent: us(120), Chunks: chunks(1102, 2102, 3102)}, // each 2 us off
		{Index: 2, Chunks: chunks(1, 2), End: us(7)},
		{Index: 3, Chunks: chunks(1), End: us(9), Class: result.TimeoutIdle, Error: "late"},
		{Index: 4, Chunks: chunks(1), End: us(5)}, // the first to fail is what failed
	}, []time.Duration{us(0), us(100), 0, 0, 0}, wall)
	want := &Comparison{
		Calls: 5, Failed: 3, Reason: "a call that the server knows nothing of", Events: 6, Sends: 6, Reads: 5,
		Arrival:  []float64{2, 2, 2, 4, 7, 1007},
		Lateness: []float64{30, 40},
		TTFT:     (us(994-960) + us(982-970)) / 2,
		E2E:      (us(2997-2960) + us(2982-2970)) / 2,
		// Gaps 0, 1000, 1000, 2003 against four of 1000: p99 by interpolation.
		ITL: time.Duration(1000e3 + 0.97*1003e3 - 1000e3),
		// The client shows three of its four, as two events that share a stamp have no gap.
		ITLShown: time.Duration(1000e3 + 0.98*1003e3), ITLTruth: us(1000),
	}
	got := *a
	got.Server = truth.Truth{}
	if d := cmp.Diff(want, &got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if reads := 5.0; a.Merged() != 1-reads/6 {
		t.Errorf("merged %v", a.Merged())
	}
}

// TestCheckAgainst: a real client and a real server agree on every event, of
// single and of merged sends, and the window is measured behind a gate alone.
func TestCheckAgainst(t *testing.T) {
	r := truthServer(t)
	for name, p := range map[string]truth.Params{
		"free":   {TTFT: 5 * time.Millisecond, ITL: time.Millisecond, Tokens: 20},
		"merged": {TTFT: 5 * time.Millisecond, ITL: 2 * time.Millisecond, Tokens: 20, Merge: 4},
		"gate":   {TTFT: 300 * time.Millisecond, ITL: 2 * time.Millisecond, Tokens: 20, Gate: 30, Slots: 30},
	} {
		a, err := Measure(t.Context(), r, p, evenInstants(30, 20*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		if a.Calls != 30 || a.Failed != 0 || a.Events != 600 || a.Sends != 600/max(1, p.Merge) || len(a.Arrival) != a.Sends || len(a.Lateness) != 30 {
			t.Errorf("%s: %+v", name, a)
		}
		if (a.CPU > 0) != (p.Gate > 0) || (a.Window > 0) != (p.Gate > 0) {
			t.Errorf("%s: CPU %v in %v", name, a.CPU, a.Window)
		}
		if runtime.GOOS == "linux" && a.Peak == 0 {
			t.Errorf("%s: no memory?", name)
		}
	}
	if _, err := Measure(t.Context(), truth.Remote{URL: "http://127.0.0.1:1"}, truth.Params{Tokens: 1}, evenInstants(1, 0)); err == nil {
		t.Error("nobody listens, and it is no error")
	}
}

// TestSelfCheck makes every measurement, of little each.
func TestSelfCheck(t *testing.T) {
	s := Check{Server: truthServer(t), Deep: true, Version: "v1", plan: checkPlan{
		streams: 10, rates: []float64{500, 1000}, long: 100 * time.Millisecond, tokens: 5, sends: 50, most: 1000, steps: 2,
		held: []int{20, 30}, hold: 100 * time.Millisecond,
	}}
	var lines []string
	goals := map[string]string{}
	r, err := s.Run(t.Context(), func(l Line) {
		if l.Value == "" || (l.Goal == "") != (l.Verdict == "") {
			t.Errorf("%+v", l)
		}
		lines = append(lines, l.Load+": "+l.Figure)
		if l.Goal != "" {
			_, how, _ := strings.Cut(l.Load, ", ")
			goals[how+": "+l.Figure] = l.Goal
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSpace(`
500 events/s, 10 streams: arrival error p50 / p99 / p99.9
500 events/s, 10 streams: sends that shared a read
500 events/s, 10 streams: client CPU per event
1,000 events/s, 10 streams: arrival error p50 / p99 / p99.9
1,000 events/s, 10 streams: sends that shared a read
1,000 events/s, 10 streams: client CPU per event
10 streams of 50 tok/s, spread over 1 s: mean TTFT error
10 streams of 50 tok/s, spread over 1 s: P99 ITL error
10 streams of 50 tok/s, spread over 1 s: mean E2E error
10 streams of 50 tok/s, all at once: mean TTFT error
10 streams of 50 tok/s, all at once: P99 ITL error
10 streams of 50 tok/s, all at once: mean E2E error
Poisson arrivals, 2,000/s: request at the server after due, p50 / p99
more and more events, 10 streams: most events/s
20 streams held: calls that failed
20 streams held: memory
30 streams held: calls that failed
30 streams held: memory`), "\n")
	if d := cmp.Diff(want, lines); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if d := cmp.Diff(map[string]string{
		"10 streams: arrival error p50 / p99 / p99.9":         "5 / 20 us",
		"10 streams: sends that shared a read":                "1 %",
		"spread over 1 s: mean TTFT error":                    "1 ms",
		"spread over 1 s: P99 ITL error":                      "0.2 ms",
		"all at once: mean TTFT error":                        "3 ms",
		"all at once: P99 ITL error":                          "0.2 ms",
		"2,000/s: request at the server after due, p50 / p99": "20 / 500 us",
		": calls that failed":                                 "0",
		": memory":                                            "1024 MB",
	}, goals); d != "" {
		t.Errorf("goals: -want +got:\n%s", d)
	}
	if r.Streams != 10 || r.EventRate != 1000 || r.Version != "v1" || r.ArrivalP50 <= 0 || r.ArrivalP99 < r.ArrivalP50 || r.SendP99 < r.SendP50 || r.Taken.IsZero() {
		t.Errorf("%+v", r)
	}
}

// TestSelfCheckFile: what was stored is cited by a run of the same version on
// the same machine, and by no other.
func TestSelfCheckFile(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("XDG_CACHE_HOME moves the user's cache on Linux alone")
	}
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	if c := Load("v1"); c != nil {
		t.Fatalf("an empty cache has %+v", c)
	}
	one := result.SelfCheck{Taken: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Version: "v1", Streams: 3, ArrivalP50: 4.5}
	two := result.SelfCheck{Taken: one.Taken, Version: "v2", Streams: 5}
	for _, c := range []result.SelfCheck{two, one} {
		if path, err := Store(c); err != nil || path != filepath.Join(cache, "perflab", "selfcheck.json") {
			t.Fatalf("%s, %v", path, err)
		}
	}
	if d := cmp.Diff(&one, Load("v1")); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	out, err := bench.Runner{Version: "v1", SelfCheck: Load("v1"), Spec: bench.Spec{
		Targets: []string{truthServer(t).URL}, Backend: "openai-chat", Model: truth.Model,
		Workload: workload.Spec{NumPrompts: 3, RandomInputLen: 4, RandomOutputLen: 1}.Defaults(),
	}}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(&one, out.Header.SelfCheck); d != "" {
		t.Errorf("header: -want +got:\n%s", d)
	}
	if text := out.Summary.Verdict.Text(); !strings.Contains(text, "self_check: ") || !strings.Contains(text, "; selfcheck of 2026-01-02\n") {
		t.Errorf("not cited under the block:\n%s", text)
	}
	if c := Load("v3"); c != nil {
		t.Errorf("another version has %+v", c)
	}

	// A file that is cut cites nothing and hinders nothing.
	path := filepath.Join(cache, "perflab", "selfcheck.json")
	if err := os.WriteFile(path, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if c := Load("v1"); c != nil {
		t.Errorf("a cut file has %+v", c)
	}
	if _, err := Store(two); err != nil || Load("v2") == nil {
		t.Errorf("a cut file stays: %v", err)
	}
}

// TestHoldable: the line says what bounded the streams, once.
func TestHoldable(t *testing.T) {
	for most, want := range map[int][]streamCount{
		30_000: {{10_000, "10,000 streams held"}, {20_000, "20,000 streams held"}},
		20_000: {{10_000, "10,000 streams held"}, {20_000, "20,000 streams held"}},
		19_936: {{10_000, "10,000 streams held"}, {19_936, "19,936 streams held (limit on open files)"}},
		960:    {{960, "960 streams held (limit on open files)"}},
	} {
		got := allowedStreams([]int{10_000, 20_000}, most, "limit on open files")
		if d := cmp.Diff(want, got, cmp.AllowUnexported(streamCount{})); d != "" {
			t.Errorf("%d: %s", most, d)
		}
	}
}

func TestCount(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 999: "999", 1000: "1,000", 1234567.6: "1,234,568"} {
		if got := withCommas(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}

func TestShownMillis(t *testing.T) {
	for d, want := range map[time.Duration]string{-400: "0.000 ms", -600: "-0.001 ms", 118_467_400: "118.467 ms"} {
		if got := formatMillis(d); got != want {
			t.Errorf("%d ns is shown as %s, want %s", d, got, want)
		}
	}
}
