package load

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"perflab/internal/result"
	"perflab/internal/workload"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const ms = time.Millisecond

// server answers request i after the i-th duration of its list, or after the
// last one; ctx cuts it short.
type server struct {
	takes []time.Duration

	mu   sync.Mutex
	now  int // in flight
	peak int
	n    int
}

func (s *server) Send(ctx context.Context, start time.Time, r workload.Request) result.Call {
	s.mu.Lock()
	s.n++
	s.now++
	s.peak = max(s.peak, s.now)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.now--
		s.mu.Unlock()
	}()
	call := result.Call{Sent: time.Since(start)}
	timer := time.NewTimer(s.takes[min(r.Index, len(s.takes)-1)])
	defer timer.Stop()
	select {
	case <-timer.C:
		call.Usage = &result.Usage{Completion: r.Output}
	case <-ctx.Done():
		call.Class = result.Cancelled
		call.Chunks = []result.Chunk{{At: call.Sent, Tokens: 1}}
	}
	call.End = time.Since(start)
	return call
}

// due is a workload with these due times.
func due(at ...time.Duration) iter.Seq[workload.Request] {
	return func(yield func(workload.Request) bool) {
		for i, d := range at {
			if !yield(workload.Request{Index: i, Due: d, Input: 3, Output: 5}) {
				return
			}
		}
	}
}

// runIn is Run in a bubble, with the calls in the order of their requests.
func runIn(t *testing.T, to []Sender, o Options, requests iter.Seq[workload.Request], prepare func(context.CancelCauseFunc)) (stats Stats, calls []result.Call, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		if prepare != nil {
			prepare(cancel)
		}
		stats, err = Run(ctx, requests, to, o, func(c result.Call) { calls = append(calls, c) })
	})
	slices.SortFunc(calls, func(a, b result.Call) int { return a.Index - b.Index })
	return stats, calls, err
}

// times are the offsets of one call.
type times struct{ Due, Ready, Sent, End time.Duration }

func timesOf(calls []result.Call) []times {
	var out []times
	for _, c := range calls {
		out = append(out, times{c.Due, c.Ready, c.Sent, c.End})
	}
	return out
}

// TestOpenLoop: each request is sent when due, although the server stalls.
func TestOpenLoop(t *testing.T) {
	s := &server{takes: []time.Duration{time.Hour}}
	var p Progress
	stats, calls, err := runIn(t, []Sender{s}, Options{Progress: &p}, due(0, 0, 7*ms, 7*ms+1, time.Minute), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []times{
		{0, 0, 0, time.Hour}, {0, 0, 0, time.Hour}, {7 * ms, 7 * ms, 7 * ms, time.Hour + 7*ms},
		{7*ms + 1, 7*ms + 1, 7*ms + 1, time.Hour + 7*ms + 1}, {time.Minute, time.Minute, time.Minute, time.Hour + time.Minute},
	}
	if d := cmp.Diff(want, timesOf(calls)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	for i, c := range calls {
		if c.Index != i || c.Want != 5 || c.WantIn != 3 {
			t.Errorf("call %d: %+v", i, c)
		}
	}
	if s.peak != 5 || stats.Sent != 5 || stats.Failed != 0 || stats.Partial || stats.Client.Wall != time.Hour+time.Minute {
		t.Errorf("peak %d, %+v", s.peak, stats)
	}
	if p.Sent.Load() != 5 || p.Done.Load() != 5 || p.Failed.Load() != 0 || p.InFlight.Load() != 0 {
		t.Errorf("progress: sent %d, done %d, in flight %d", p.Sent.Load(), p.Done.Load(), p.InFlight.Load())
	}
}

// TestLimit: with a limit requests pass in order, each at the instant at which
// a call before it ended; Ready is that instant, or Due where none held it back.
func TestLimit(t *testing.T) {
	s := &server{takes: []time.Duration{50 * ms, 20 * ms, 10 * ms, 5 * ms, 5 * ms, 5 * ms}}
	_, calls, err := runIn(t, []Sender{s}, Options{MaxConcurrency: 2}, due(0, 0, 0, 1*ms, 2*ms, 100*ms), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []times{
		{0, 0, 0, 50 * ms},
		{0, 0, 0, 20 * ms},
		{0, 20 * ms, 20 * ms, 30 * ms},
		{1 * ms, 30 * ms, 30 * ms, 35 * ms},
		{2 * ms, 35 * ms, 35 * ms, 40 * ms},
		{100 * ms, 100 * ms, 100 * ms, 105 * ms},
	}
	if d := cmp.Diff(want, timesOf(calls)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if s.peak != 2 {
		t.Errorf("%d in flight", s.peak)
	}
}

// TestSlowEmit: a collector that stalls delays no request.
func TestSlowEmit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent []time.Duration
		_, err := Run(t.Context(), due(0, 10*ms, 20*ms, 30*ms), []Sender{&server{takes: []time.Duration{1 * ms}}}, Options{MaxConcurrency: 1}, func(c result.Call) {
			time.Sleep(time.Second)
			sent = append(sent, c.Sent)
		})
		slices.Sort(sent)
		if want := []time.Duration{0, 10 * ms, 20 * ms, 30 * ms}; err != nil || !slices.Equal(sent, want) {
			t.Errorf("sent at %v, %v", sent, err)
		}
	})
}

// TestSlowSource: the clock starts when the first requests are built.
func TestSlowSource(t *testing.T) {
	slow := func(yield func(workload.Request) bool) {
		for r := range due(0, 1*ms, 2*ms) {
			time.Sleep(time.Second)
			if !yield(r) {
				return
			}
		}
	}
	_, calls, err := runIn(t, []Sender{&server{takes: []time.Duration{1 * ms}}}, Options{}, slow, nil)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]times{{0, 0, 0, 1 * ms}, {1 * ms, 1 * ms, 1 * ms, 2 * ms}, {2 * ms, 2 * ms, 2 * ms, 3 * ms}}, timesOf(calls)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// TestLeadInBytes: of prompts too long for a thousand of them to be held, fewer
// are built ahead, and still every one is sent.
func TestLeadInBytes(t *testing.T) {
	const requests, size = 40, aheadBytes / 8
	prompt := strings.Repeat("x", size) // one for all: only the count of its bytes is at stake
	built := new(atomic.Int64)
	long := func(yield func(workload.Request) bool) {
		for i := range requests {
			built.Add(1)
			if !yield(workload.Request{Index: i, Due: time.Duration(i) * time.Second, Prompt: prompt}) {
				return
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		stats, err := Run(t.Context(), long, []Sender{&server{takes: []time.Duration{1 * ms}}}, Options{}, func(result.Call) {
			// Beside the lead there are one with the dispatcher and one that waits.
			if sent++; built.Load() > int64(sent)+10 {
				t.Errorf("%d built when %d are done", built.Load(), sent)
			}
		})
		if err != nil || stats.Sent != requests || stats.Partial {
			t.Errorf("%+v, %v", stats, err)
		}
	})
}

func TestCancelKeepsCalls(t *testing.T) {
	for name, tt := range map[string]struct {
		o    Options
		due  []time.Duration
		want []times
	}{
		"waiting for a due instant": {Options{}, []time.Duration{0, 10 * ms, time.Hour}, []times{{0, 0, 0, 20 * ms}, {10 * ms, 10 * ms, 10 * ms, 25 * ms}}},
		"waiting for the limit":     {Options{MaxConcurrency: 1}, []time.Duration{0, 10 * ms, 10 * ms}, []times{{0, 0, 0, 20 * ms}, {10 * ms, 20 * ms, 20 * ms, 25 * ms}}},
		"all sent":                  {Options{}, []time.Duration{0, 10 * ms}, []times{{0, 0, 0, 20 * ms}, {10 * ms, 10 * ms, 10 * ms, 25 * ms}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{takes: []time.Duration{20 * ms, time.Hour}}
			stats, calls, err := runIn(t, []Sender{s}, tt.o, due(tt.due...), func(cancel context.CancelCauseFunc) {
				time.AfterFunc(25*ms, func() { cancel(errors.New("interrupted")) })
			})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, timesOf(calls)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			if last := calls[len(calls)-1]; last.Class != result.Cancelled || len(last.Chunks) != 1 {
				t.Errorf("last call %+v", last)
			}
			want := Stats{Sent: 2, Failed: 1, Partial: true, Client: result.Client{Wall: 25 * ms, Partial: true, StopNote: "interrupted"}}
			if d := cmp.Diff(want, stats, cmpopts.IgnoreFields(Stats{}, "Start"), cmpopts.IgnoreFields(result.Client{}, "CPU", "GCPause", "GCMax", "Procs", "SchedP50", "SchedP99", "SchedMax", "CPUs", "Stolen", "Memory", "Machine")); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

func TestCancelledBefore(t *testing.T) {
	stats, calls, err := runIn(t, []Sender{&server{takes: []time.Duration{ms}}}, Options{}, due(0, 0), func(cancel context.CancelCauseFunc) { cancel(errors.New("no")) })
	if err != nil || len(calls) != 0 || !stats.Partial || stats.Client.StopNote != "no" {
		t.Errorf("%d calls, %+v, %v", len(calls), stats, err)
	}
}

// TestLateCancel: a run whose last call ended is whole.
func TestLateCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		stats, err := Run(ctx, due(0), []Sender{&server{takes: []time.Duration{ms}}}, Options{}, func(result.Call) { cancel() })
		if err != nil || stats.Partial || stats.Client.Partial {
			t.Errorf("%+v, %v", stats, err)
		}
	})
}

// TestSpread: each request goes to the target with the fewest calls in flight,
// and equals take turns.
func TestSpread(t *testing.T) {
	slow, quick, other := &server{takes: []time.Duration{time.Hour}}, &server{takes: []time.Duration{ms}}, &server{takes: []time.Duration{3 * ms}}
	at := []time.Duration{0, 0, 0, 2 * ms, 2 * ms, 2 * ms, 10 * ms, 10 * ms, 10 * ms, 10 * ms}
	_, calls, err := runIn(t, []Sender{slow, quick, other}, Options{}, due(at...), nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	for _, c := range calls {
		got = append(got, c.Target)
	}
	// In flight before each: 0 0 0 | 1 0 0 | 1 1 0; at 2 ms the second is free:
	// 1 0 1 | 1 1 1 -> its turn is the third's | 1 1 2; at 10 ms 2 0 0 ...
	want := []int{0, 1, 2, 1, 2, 0, 1, 2, 1, 2}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if slow.n+quick.n+other.n != len(at) {
		t.Errorf("%d + %d + %d requests", slow.n, quick.n, other.n)
	}
}

// TestManyRequests: a run longer than the lead of the prefetch loses none.
func TestManyRequests(t *testing.T) {
	const n = 3*ahead + 7
	at := make([]time.Duration, n)
	for i := range at {
		at[i] = time.Duration(i/100) * ms
	}
	s := &server{takes: []time.Duration{2*ms + ms/2}}
	stats, calls, err := runIn(t, []Sender{s}, Options{}, due(at...), nil)
	if err != nil || stats.Sent != n || len(calls) != n || s.peak != 300 {
		t.Fatalf("%d sent, %d calls, peak %d, %v", stats.Sent, len(calls), s.peak, err)
	}
	for i, c := range calls {
		if c.Index != i || c.Sent != at[i] {
			t.Fatalf("call %d: index %d sent at %v, due %v", i, c.Index, c.Sent, at[i])
		}
	}
}

type panics struct{ server }

func (p *panics) Send(ctx context.Context, start time.Time, r workload.Request) result.Call {
	if r.Index == 1 {
		time.Sleep(5 * ms)
		panic("boom")
	}
	return p.server.Send(ctx, start, r)
}

func TestPanicsAreErrors(t *testing.T) {
	whole := &server{takes: []time.Duration{20 * ms}}
	for name, tt := range map[string]struct {
		to   Sender
		seq  iter.Seq[workload.Request]
		emit func(result.Call)
		want string
	}{
		"sender": {&panics{server{takes: []time.Duration{20 * ms}}}, due(0, 0, 10*ms), func(result.Call) {}, "send request 1: panic: boom"},
		"sequence": {whole, func(yield func(workload.Request) bool) {
			yield(workload.Request{})
			panic("boom")
		}, func(result.Call) {}, "build a request: panic: boom"},
		"emit": {whole, due(0, 10*ms), func(c result.Call) {
			if c.Index == 0 {
				panic("boom")
			}
		}, "keep the call of request 0: panic: boom"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				stats, err := Run(t.Context(), tt.seq, []Sender{tt.to}, Options{}, func(c result.Call) { n++; tt.emit(c) })
				if _, ok := errors.AsType[*PanicError](err); !ok || err.Error() != tt.want {
					t.Errorf("error %v, want %s", err, tt.want)
				}
				if n != stats.Sent {
					t.Errorf("%d calls of %d", n, stats.Sent)
				}
			})
		})
	}
}

func TestNoTarget(t *testing.T) {
	if _, err := Run(t.Context(), due(0), nil, Options{}, nil); err == nil || !strings.Contains(err.Error(), "no target") {
		t.Errorf("error %v", err)
	}
}

func TestOddInput(t *testing.T) {
	for name, seq := range map[string]iter.Seq[workload.Request]{
		"empty":        due(),
		"past due":     due(-time.Second, -time.Hour),
		"out of order": due(10*ms, 0),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stats, err := Run(t.Context(), seq, []Sender{&server{takes: []time.Duration{0}}}, Options{MaxConcurrency: -1, Spin: -1}, nil)
				if err != nil || stats.Partial {
					t.Errorf("%+v, %v", stats, err)
				}
			})
		})
	}
}

type instant struct{}

func (instant) Send(_ context.Context, start time.Time, r workload.Request) result.Call {
	now := time.Since(start)
	return result.Call{Sent: now, End: now}
}

// TestPacer: with the kernel's timer no request is early and order holds. How
// late they are depends on the machine and is the verdict's business.
func TestPacer(t *testing.T) {
	var at []time.Duration
	for i := range 200 {
		at = append(at, time.Duration(i)*700*time.Microsecond, time.Duration(i)*700*time.Microsecond+30*time.Microsecond)
	}
	var calls []result.Call
	stats, err := Run(t.Context(), due(at...), []Sender{instant{}}, Options{Spin: DefaultSpin}, func(c result.Call) { calls = append(calls, c) })
	if err != nil || len(calls) != len(at) || stats.Client.Procs == 0 {
		t.Fatalf("%d calls, %+v, %v", len(calls), stats, err)
	}
	for _, c := range calls {
		if c.Due != at[c.Index] || c.Sent < c.Due {
			t.Errorf("request %d: due %v, sent %v", c.Index, c.Due, c.Sent)
		}
	}
	p := newPacer(time.Now(), DefaultSpin)
	defer p.close()
	for i := range time.Duration(20) {
		due := i * 3 * ms / 2
		if !p.wait(t.Context(), due) || time.Since(p.start) < due {
			t.Errorf("early for %v", due)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), ms)
	defer cancel()
	if begin := time.Now(); p.wait(ctx, time.Hour) || time.Since(begin) > time.Minute {
		t.Error("waited past the end of its context")
	}
}

// BenchmarkRun is the cost of one request: dispatcher, goroutine, collector.
func BenchmarkRun(b *testing.B) {
	for _, limit := range []int{0, 64} {
		b.Run(fmt.Sprintf("limit=%d", limit), func(b *testing.B) {
			const n = 1000
			requests := due(make([]time.Duration, n)...)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Run(b.Context(), requests, []Sender{instant{}, instant{}}, Options{MaxConcurrency: limit}, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/request")
		})
	}
}

// starter sends in two steps and knows which goroutine began.
type starter struct {
	server
	began []time.Duration
	built int
}

func (s *starter) Build(r workload.Request) workload.Request {
	s.built++
	r.Body = []byte("built")
	return r
}

func (s *starter) Start(ctx context.Context, start time.Time, r workload.Request) func() result.Call {
	s.began = append(s.began, time.Since(start)) // unguarded: one goroutine begins
	if string(r.Body) != "built" {
		panic("not built")
	}
	return func() result.Call { return s.Send(ctx, start, r) }
}

// TestStarter: a sender that can begin a request does so in the goroutine that
// knows the time, with what was built before.
func TestStarter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &starter{server: server{takes: []time.Duration{5 * ms}}}
		stats, err := Run(t.Context(), due(0, 10*ms, 20*ms), []Sender{s}, Options{}, nil)
		if err != nil || stats.Sent != 3 || s.built != 3 {
			t.Errorf("%v, %+v, %d built", err, stats, s.built)
		}
		if d := cmp.Diff([]time.Duration{0, 10 * ms, 20 * ms}, s.began); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
	})
}

// TestStarterPanics: what was measured is still collected.
func TestStarterPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &unbuilt{starter{server: server{takes: []time.Duration{5 * ms}}}}
		var calls []result.Call
		_, err := Run(t.Context(), due(0), []Sender{s}, Options{}, func(c result.Call) { calls = append(calls, c) })
		if err == nil || len(calls) != 1 || calls[0].Class != result.Cancelled {
			t.Errorf("%v, %+v", err, calls)
		}
	})
}

// unbuilt builds nothing.
type unbuilt struct{ starter }

func (u *unbuilt) Build(r workload.Request) workload.Request { return r }
