package load

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"perflab/internal/result"
	"perflab/internal/workload"

	"github.com/google/go-cmp/cmp"
)

// given is the start instant of a test, this long from now.
func given(from time.Duration) func() time.Time {
	return func() time.Time { return time.Now().Add(from) }
}

// TestStart: all offsets count from the instant that was given, also of one that a
// message brought and that has no reading of the monotonic clock.
func TestStart(t *testing.T) {
	for name, start := range map[string]func() time.Time{
		"far":             given(time.Minute),
		"within the lead": given(sampleLead / 2),
		"of a message":    func() time.Time { return time.Now().Add(time.Minute).Round(0).UTC() },
	} {
		t.Run(name, func(t *testing.T) { testStart(t, start) })
	}
}

func testStart(t *testing.T, start func() time.Time) {
	synctest.Test(t, func(t *testing.T) {
		at := start()
		var begun, told time.Time
		var p Progress
		o := Options{Start: at, Progress: &p, Begun: func(start time.Time) {
			begun, told = time.Now(), start
			if p.Sent.Load() != 0 || !p.Running.Load() {
				t.Error("the start is told after the first request, or before the load runs")
			}
		}}
		var calls []result.Call
		stats, err := Run(t.Context(), due(0, 0, 7*ms), []Sender{&server{takes: []time.Duration{3 * ms}}}, o, func(c result.Call) { calls = append(calls, c) })
		if err != nil || stats.Partial {
			t.Fatalf("%+v, %v", stats, err)
		}
		slices.SortFunc(calls, func(a, b result.Call) int { return a.Index - b.Index })
		if d := cmp.Diff([]times{{0, 0, 0, 3 * ms}, {0, 0, 0, 3 * ms}, {7 * ms, 7 * ms, 7 * ms, 10 * ms}}, timesOf(calls)); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
		if !stats.Start.Equal(at) || !told.Equal(at) || !begun.Equal(at) {
			t.Errorf("to start at %v: %v in the stats, %v was told, at %v", at, stats.Start, told, begun)
		}
		if over := stats.Client.Wall - 10*ms; over < 0 || over > sampleLead {
			t.Errorf("the client's use was watched for %v", stats.Client.Wall)
		}
	})
}

// TestLateStart: where the instant has passed when the first requests are built,
// nothing is sent, and nothing of the load goes on.
func TestLateStart(t *testing.T) {
	for name, c := range map[string]struct{ in, building, late time.Duration }{
		"past before":         {in: -3 * ms, late: 3 * ms},
		"past while building": {in: 1500 * ms, building: time.Second, late: 500 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow := func(yield func(workload.Request) bool) {
					for r := range due(0, 0) {
						time.Sleep(c.building)
						if !yield(r) {
							return
						}
					}
				}
				s := &server{takes: []time.Duration{1 * ms}}
				at := time.Now().Add(c.in)
				stats, err := Run(t.Context(), slow, []Sender{s}, Options{Start: at, Begun: func(time.Time) { t.Error("it began") }}, func(result.Call) { t.Error("a call") })
				late, ok := errors.AsType[*LateStartError](err)
				if !ok || late.By != c.late || s.n != 0 || stats.Sent != 0 || !stats.Start.Equal(at) {
					t.Errorf("%v, want late by %v; %d sent, %+v", err, c.late, s.n, stats)
				}
			})
		})
	}
}

// TestStopBeforeStart: a load that is stopped before its instant sends nothing and is partial.
func TestStopBeforeStart(t *testing.T) {
	for name, after := range map[string]time.Duration{"long before": time.Second, "just before": time.Minute - sampleLead/2} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeoutCause(t.Context(), after, errors.New("the lease ended"))
				defer cancel()
				began := time.Now()
				s := &server{takes: []time.Duration{1 * ms}}
				o := Options{Start: began.Add(time.Minute), Begun: func(time.Time) { t.Error("it began") }}
				stats, err := Run(ctx, due(0, 0), []Sender{s}, o, nil)
				if err != nil || s.n != 0 || !stats.Partial || stats.Client.StopNote != "the lease ended" {
					t.Errorf("%v, %d sent, %+v", err, s.n, stats)
				}
				if took := time.Since(began); took != after {
					t.Errorf("stopped after %v, want %v", took, after)
				}
			})
		})
	}
}

// TestStartSpins: with the kernel's timer no request is early either.
func TestStartSpins(t *testing.T) {
	at := time.Now().Add(2 * sampleLead)
	var first time.Time
	n := 0
	stats, err := Run(t.Context(), due(0, ms), []Sender{instant{}}, Options{Start: at, Spin: DefaultSpin, Begun: func(time.Time) { first = time.Now() }}, func(c result.Call) {
		if n++; c.Sent < c.Due {
			t.Errorf("due %v, sent %v", c.Due, c.Sent)
		}
	})
	if _, late := errors.AsType[*LateStartError](err); late {
		t.Skip("this machine was too busy to be ready:", err)
	}
	if err != nil || n != 2 || first.Before(at) || !stats.Start.Equal(at) {
		t.Errorf("%v, %d calls, began %v before the instant, %+v", err, n, at.Sub(first), stats)
	}
}

// BenchmarkStart is how late after the start instant the first request is sent.
func BenchmarkStart(b *testing.B) {
	var late []time.Duration
	for b.Loop() {
		_, err := Run(b.Context(), due(0), []Sender{begins{&late}}, Options{Start: time.Now().Add(sampleLead + 20*ms), Spin: DefaultSpin}, nil)
		if err != nil {
			b.Fatal(err)
		}
	}
	slices.Sort(late)
	b.ReportMetric(float64(late[len(late)/2].Microseconds()), "p50-us-late")
	b.ReportMetric(float64(late[len(late)*99/100].Microseconds()), "p99-us-late")
}

// begins notes when the dispatcher sends.
type begins struct{ late *[]time.Duration }

func (s begins) Start(_ context.Context, start time.Time, _ workload.Request) func() result.Call {
	at := time.Since(start)
	*s.late = append(*s.late, at)
	return func() result.Call { return result.Call{Sent: at, End: at} }
}

func (s begins) Send(ctx context.Context, start time.Time, r workload.Request) result.Call {
	return s.Start(ctx, start, r)()
}
