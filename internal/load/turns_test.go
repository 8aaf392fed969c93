package load

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"perflab/internal/result"
	"perflab/internal/workload"

	"github.com/google/go-cmp/cmp"
)

// speaker answers each turn after a time and fails those that it is told to.
// It keeps what it was asked.
type speaker struct {
	takes time.Duration
	fails map[int]bool // by index

	mu    sync.Mutex
	asked []workload.Request
}

func (s *speaker) Send(ctx context.Context, start time.Time, r workload.Request) result.Call {
	s.mu.Lock()
	s.asked = append(s.asked, r)
	s.mu.Unlock()
	call := result.Call{Sent: time.Since(start), Text: fmt.Sprint("answer ", r.Index)}
	timer := time.NewTimer(s.takes)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		call.Class = result.Cancelled
	}
	if s.fails[r.Index] {
		call.Class = result.StreamError
	}
	call.End = time.Since(start)
	return call
}

const turns = 3 // of each conversation in these tests

// sessions are the first turns of conversations that begin at these times.
func sessions(at ...time.Duration) iter.Seq[workload.Request] {
	return func(yield func(workload.Request) bool) {
		for i, d := range at {
			if !yield(workload.Request{Index: turns * i, Session: i + 1, Due: d, Prompt: "hello"}) {
				return
			}
		}
	}
}

// next thinks for 5 ms after the first turn and 0 after the second.
func next(r workload.Request, answer string) (workload.Request, time.Duration, bool) {
	if r.Turn == turns-1 {
		return workload.Request{}, 0, false
	}
	think := 5 * ms
	if r.Turn == 1 {
		think = 0
	}
	r.History = append(r.History, workload.Message{Role: "assistant", Content: answer})
	r.Index, r.Turn = r.Index+1, r.Turn+1
	return r, think, true
}

// TestTurns: a turn is due its think time after the end of the one before,
// and its prompt holds what the server answered to that one.
func TestTurns(t *testing.T) {
	s := &speaker{takes: 10 * ms}
	stats, calls, err := runIn(t, []Sender{s}, Options{Next: next}, sessions(0, 3*ms), nil)
	if err != nil || stats.Partial || stats.Sent != 6 || stats.Unsent != 0 {
		t.Fatalf("%+v, %v", stats, err)
	}
	want := []times{
		{0, 0, 0, 10 * ms}, {15 * ms, 15 * ms, 15 * ms, 25 * ms}, {25 * ms, 25 * ms, 25 * ms, 35 * ms},
		{3 * ms, 3 * ms, 3 * ms, 13 * ms}, {18 * ms, 18 * ms, 18 * ms, 28 * ms}, {28 * ms, 28 * ms, 28 * ms, 38 * ms},
	}
	if d := cmp.Diff(want, timesOf(calls)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	for i, c := range calls {
		if c.Index != i || c.Session != i/turns+1 || c.Turn != i%turns {
			t.Errorf("call %d is %d, turn %d of %d", i, c.Index, c.Turn, c.Session)
		}
	}
	i := slices.IndexFunc(s.asked, func(r workload.Request) bool { return r.Index == 5 })
	if d := cmp.Diff([]workload.Message{{Role: "assistant", Content: "answer 3"}, {Role: "assistant", Content: "answer 4"}}, s.asked[i].History); d != "" {
		t.Errorf("history (-want +got):\n%s", d)
	}
}

// TestSessionLimit: a conversation holds its place at the limit while it
// thinks, and in a closed loop the next one is due when it ends.
func TestSessionLimit(t *testing.T) {
	for _, closed := range []bool{false, true} {
		_, calls, err := runIn(t, []Sender{&speaker{takes: 10 * ms}}, Options{Next: next, MaxConcurrency: 1, Closed: closed}, sessions(0, 0), nil)
		if err != nil {
			t.Fatal(err)
		}
		second := times{0, 35 * ms, 35 * ms, 45 * ms}
		if closed {
			second.Due = 35 * ms
		}
		want := []times{
			{0, 0, 0, 10 * ms}, {15 * ms, 15 * ms, 15 * ms, 25 * ms}, {25 * ms, 25 * ms, 25 * ms, 35 * ms},
			second, {50 * ms, 50 * ms, 50 * ms, 60 * ms}, {60 * ms, 60 * ms, 60 * ms, 70 * ms},
		}
		if d := cmp.Diff(want, timesOf(calls)); d != "" {
			t.Errorf("closed %t (-want +got):\n%s", closed, d)
		}
	}
}

// TestFailedTurn: what would have followed a turn that failed is counted and
// not sent, and the place at the limit is free again.
func TestFailedTurn(t *testing.T) {
	s := &speaker{takes: 10 * ms, fails: map[int]bool{1: true, 3: true}}
	stats, calls, err := runIn(t, []Sender{s}, Options{Next: next, MaxConcurrency: 1}, sessions(0, 0, 0), nil)
	if err != nil || stats.Partial || stats.Sent != 6 || stats.Failed != 2 || stats.Unsent != 3 || stats.Client.Unsent != 3 {
		t.Fatalf("%+v, %v", stats, err)
	}
	var got []int
	for _, c := range calls {
		got = append(got, c.Index)
	}
	if d := cmp.Diff([]int{0, 1, 3, 6, 7, 8}, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if last := calls[5]; last.End != 70*ms {
		t.Errorf("the last turn ended at %v", last.End)
	}
}

// TestUntil: a closed loop sends for as long as there is time and lets what is
// in flight end; no turn is sent that would be due later. That is no partial run.
func TestUntil(t *testing.T) {
	endless := func(yield func(workload.Request) bool) {
		for i := 0; yield(workload.Request{Index: i}); i++ {
		}
	}
	s := &server{takes: []time.Duration{40 * ms, 20 * ms}}
	stats, calls, err := runIn(t, []Sender{s}, Options{MaxConcurrency: 2, Until: 60 * ms, Closed: true}, endless, nil)
	if err != nil || stats.Partial || stats.Client.Wall != 60*ms {
		t.Fatalf("%+v, %v", stats, err)
	}
	want := []times{
		{0, 0, 0, 40 * ms}, {0, 0, 0, 20 * ms}, {20 * ms, 20 * ms, 20 * ms, 40 * ms},
		{40 * ms, 40 * ms, 40 * ms, 60 * ms}, {40 * ms, 40 * ms, 40 * ms, 60 * ms},
	}
	if d := cmp.Diff(want, timesOf(calls)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	stats, calls, err = runIn(t, []Sender{&speaker{takes: 10 * ms}}, Options{Next: next, Until: 25 * ms}, sessions(0, 24*ms, 25*ms), nil)
	if err != nil || stats.Partial || stats.Unsent != 0 || len(calls) != 3 {
		t.Fatalf("%d calls, %+v, %v", len(calls), stats, err)
	}
	if d := cmp.Diff([]times{{0, 0, 0, 10 * ms}, {15 * ms, 15 * ms, 15 * ms, 25 * ms}, {24 * ms, 24 * ms, 24 * ms, 34 * ms}}, timesOf(calls)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// TestEnough: once it is enough nothing more is sent, what is in flight ends, and the run is no partial one.
func TestEnough(t *testing.T) {
	many := func(yield func(workload.Request) bool) {
		for i := 0; i < 100 && yield(workload.Request{Index: i}); i++ {
		}
	}
	synctest.Test(t, func(t *testing.T) {
		var enough atomic.Bool
		ended := 0
		o := Options{MaxConcurrency: 4, Enough: &enough}
		stats, err := Run(t.Context(), many, []Sender{&speaker{takes: 10 * ms}}, o, func(result.Call) {
			if ended++; ended == 9 { // the first of the third four
				enough.Store(true)
			}
		})
		if err != nil || stats.Partial || ended < 12 || ended > 16 || stats.Sent != ended {
			t.Errorf("%d calls, %+v, %v", ended, stats, err)
		}
	})
}

// TestStopWhileThinking: a run that ends between two turns is partial, and the
// turns that were to come are not taken for failures.
func TestStopWhileThinking(t *testing.T) {
	for at, want := range map[time.Duration]int{12 * ms: 1, 20 * ms: 2} {
		stats, calls, err := runIn(t, []Sender{&speaker{takes: 10 * ms}}, Options{Next: next, MaxConcurrency: 1}, sessions(0), func(cancel context.CancelCauseFunc) {
			time.AfterFunc(at, func() { cancel(errors.New("interrupted")) })
		})
		if err != nil || len(calls) != want || !stats.Partial || stats.Unsent != 0 || stats.Client.StopNote != "interrupted" || stats.Client.Wall != at {
			t.Errorf("stopped at %v: %d calls, %+v, %v", at, len(calls), stats, err)
		}
	}
}

// TestAffinity: a conversation stays on its target, or goes where the fewest
// calls are.
func TestAffinity(t *testing.T) {
	// Without it the third turn of the first conversation goes to the second
	// target, whose turn it is when both are idle, and pushes the other one away.
	for affinity, want := range map[bool][]int{true: {0, 0, 0, 1, 1, 1}, false: {0, 0, 1, 1, 0, 1}} {
		to := []Sender{&speaker{takes: 10 * ms}, &speaker{takes: 10 * ms}}
		_, calls, err := runIn(t, to, Options{Next: next, Affinity: affinity}, sessions(0, 14*ms), nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, c := range calls {
			got = append(got, c.Target)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("affinity %t (-want +got):\n%s", affinity, d)
		}
	}
}

// TestNextPanics: what builds later turns may break a run, not hang it.
func TestNextPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		_, err := Run(t.Context(), sessions(0, 0), []Sender{&speaker{takes: 10 * ms}}, Options{MaxConcurrency: 1, Next: func(workload.Request, string) (workload.Request, time.Duration, bool) {
			panic("boom")
		}}, func(result.Call) { n++ })
		if err == nil || err.Error() != "build what follows request 0: panic: boom" || n == 0 {
			t.Errorf("%d calls, %v", n, err)
		}
	})
}

// TestPrepare: what takes long is done while the answer is awaited and delays
// the next turn only where the answer was quicker.
func TestPrepare(t *testing.T) {
	slow := func(workload.Request) { time.Sleep(12 * ms) }
	for takes, want := range map[time.Duration]times{
		20 * ms: {25 * ms, 25 * ms, 25 * ms, 45 * ms},
		5 * ms:  {10 * ms, 10 * ms, 12 * ms, 17 * ms},
	} {
		_, calls, err := runIn(t, []Sender{&speaker{takes: takes}}, Options{Next: next, Prepare: slow}, sessions(0), nil)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, timesOf(calls)[1]); d != "" {
			t.Errorf("answers take %v (-want +got):\n%s", takes, d)
		}
	}
}

// TestTurnsOnTime: with the kernel's timer no later turn is early.
func TestTurnsOnTime(t *testing.T) {
	var calls []result.Call
	stats, err := Run(t.Context(), sessions(0, 0, 1*ms, 2*ms), []Sender{instant{}}, Options{Next: next, Spin: DefaultSpin, MaxConcurrency: 3}, func(c result.Call) { calls = append(calls, c) })
	if err != nil || stats.Sent != 12 {
		t.Fatalf("%+v, %v", stats, err)
	}
	for _, c := range calls {
		if c.Sent < c.Due || c.Due < c.Ready && c.Turn > 0 {
			t.Errorf("turn %d: due %v, ready %v, sent %v", c.Index, c.Due, c.Ready, c.Sent)
		}
	}
}
