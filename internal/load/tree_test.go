package load

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"perflab/internal/workload"

	"github.com/google/go-cmp/cmp"
)

// treeFile has sessions in which an agent starts two others, waits for the first of
// them and goes on while the second is still at work.
const treeFile = `{"block_size":4,"turns":[
	{"input_tokens":8,"output_tokens":1,"blocks":[1,2]},
	{"agent":"a","input_tokens":4,"output_tokens":1,"blocks":[1],"after":[0],"idle_s":0.01},
	{"agent":"b","input_tokens":5,"output_tokens":1,"blocks":[1],"after":[0],"idle_s":0.1},
	{"agent":"a","input_tokens":6,"output_tokens":1,"blocks":[1,5]},
	{"input_tokens":12,"output_tokens":1,"blocks":[1,2,3],"after":[3],"idle_s":0.005}]}`

// trees opens n sessions of a file, and says how a load goes through them.
func trees(t *testing.T, n int) (*workload.Workload, Options) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "agents.jsonl")
	if err := os.WriteFile(path, []byte(treeFile), 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := workload.Open(workload.Spec{Dataset: "agents", Path: path, NumPrompts: n, MaxConcurrency: 1})
	if err != nil {
		t.Fatal(err)
	}
	return w, Options{MaxConcurrency: 1, Closed: w.Closed(), Affinity: true,
		Begin: func(first workload.Request, at time.Duration) (Session, []workload.Step) { return w.Begin(first, at) }}
}

// TestTree: each request is sent when all that it waits for has ended and its idle
// time has passed, and the place at the limit is free when the last agent is done.
func TestTree(t *testing.T) {
	w, o := trees(t, 2)
	a, b := &speaker{takes: 20 * ms}, &speaker{takes: 20 * ms}
	stats, calls, err := runIn(t, []Sender{a, b}, o, w.All(), nil)
	if err != nil || stats.Partial || stats.Sent != 10 || stats.Unsent != 0 {
		t.Fatalf("%+v, %v", stats, err)
	}
	var want []times
	for _, from := range []time.Duration{0, 140 * ms} {
		at := func(due time.Duration) times {
			return times{from + due, from + due, from + due, from + due + 20*ms}
		}
		want = append(want, at(0), at(30*ms), at(120*ms), at(50*ms), at(75*ms))
	}
	if d := cmp.Diff(want, timesOf(calls)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	for i, c := range calls {
		if c.Session != i/5+1 || c.Turn != i%5 || c.Index != i || c.Target != calls[5*(c.Session-1)].Target {
			t.Errorf("call %d: %+v", i, c)
		}
	}
	checkAsked(t, w, append(a.asked, b.asked...))
}

// checkAsked holds what servers were asked against what the workload has, whatever
// the order.
func checkAsked(t *testing.T, w *workload.Workload, asked []workload.Request) {
	t.Helper()
	sent := map[int]workload.Request{}
	for _, r := range asked {
		sent[r.Index] = r
	}
	n := 0
	for r := range w.All() {
		for more := true; more; r, _, more = w.Next(r, "") {
			n++
			got := sent[r.Index]
			if got.Due = r.Due; cmp.Diff(r, got) != "" {
				t.Errorf("request %d: %s", r.Index, cmp.Diff(r, got))
			}
		}
	}
	if n != len(asked) {
		t.Errorf("%d requests were sent of %d", len(asked), n)
	}
}

// TestTreeFailure: a request that failed takes those with it that wait for it, and no
// others; the place is given back all the same.
func TestTreeFailure(t *testing.T) {
	w, o := trees(t, 2)
	s := &speaker{takes: 20 * ms, fails: map[int]bool{1: true}}
	stats, calls, err := runIn(t, []Sender{s}, o, w.All(), nil)
	if err != nil || stats.Partial || stats.Sent != 8 || stats.Unsent != 2 {
		t.Fatalf("%+v, %v", stats, err)
	}
	var indexes []int
	for _, c := range calls {
		indexes = append(indexes, c.Index)
	}
	if !slices.Equal(indexes, []int{0, 1, 2, 5, 6, 7, 8, 9}) {
		t.Error(indexes)
	}
}

// TestTreeEnds: when time is up no session goes on, and one that is interrupted
// makes the load partial.
func TestTreeEnds(t *testing.T) {
	w, o := trees(t, 2)
	o.Until = 40 * ms
	stats, calls, err := runIn(t, []Sender{&speaker{takes: 20 * ms}}, o, w.All(), nil)
	if err != nil || stats.Partial || len(calls) != 2 {
		t.Errorf("%+v, %d calls, %v", stats, len(calls), err)
	}
	w, o = trees(t, 2)
	interrupt := func(stop context.CancelCauseFunc) {
		time.AfterFunc(40*ms, func() { stop(errors.New("enough")) })
	}
	stats, calls, err = runIn(t, []Sender{&speaker{takes: 20 * ms}}, o, w.All(), interrupt)
	if err != nil || !stats.Partial || stats.Unsent != 0 || len(calls) != 2 {
		t.Errorf("%+v, %d calls, %v", stats, len(calls), err)
	}
}

// TestTreePanic: a session that panics ends the load with what was sent.
func TestTreePanic(t *testing.T) {
	w, o := trees(t, 2)
	o.Begin = func(first workload.Request, at time.Duration) (Session, []workload.Step) { return broken{}, nil }
	stats, calls, err := runIn(t, []Sender{&speaker{takes: 20 * ms}}, o, w.All(), nil)
	if e, ok := errors.AsType[*PanicError](err); !ok || e.Doing != "go on after request 0" || !stats.Partial || len(calls) != 1 {
		t.Errorf("%+v, %d calls, %v", stats, len(calls), err)
	}
}

type broken struct{}

func (broken) Next(int) []int                                        { return nil }
func (broken) Request(int) workload.Request                          { return workload.Request{} }
func (broken) Ended(int, time.Duration, bool) ([]workload.Step, int) { panic("boom") }
