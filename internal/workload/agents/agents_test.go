package agents

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const ms = time.Millisecond

// want is a turn as tests write it down: who, input, what it waits for, idle.
type want struct {
	agent string
	input int
	after []int
	idle  time.Duration
}

func turnsOf(s Session) []want {
	out := make([]want, len(s.Turns))
	for i, t := range s.Turns {
		out[i] = want{t.Agent, t.Input, t.After, t.Idle}
	}
	return out
}

func parse(t *testing.T, object string) Read {
	t.Helper()
	r, err := Parse([]byte(object))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func same(t *testing.T, got Session, turns ...want) {
	t.Helper()
	if d := cmp.Diff(turns, turnsOf(got), cmp.AllowUnexported(want{}), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// TestWeka: what waits for what is told by the times at which requests were
// recorded, in both ways of counting them within an agent.
func TestWeka(t *testing.T) {
	inner := map[string]string{
		"from the session": `{"t":4,"type":"n","in":40,"out":1,"api_time":1},{"t":5.5,"type":"n","in":41,"out":1,"api_time":1}`,
		"from the agent":   `{"t":1,"type":"n","in":40,"out":1,"api_time":1},{"t":2.5,"type":"n","in":41,"out":1,"api_time":1}`,
	}
	for name, requests := range inner {
		t.Run(name, func(t *testing.T) {
			r := parse(t, `{"id":"a","models":["m"],"block_size":64,"hash_id_scope":"local","tool_tokens":3,"system_tokens":4,"totals":{},"requests":[
				{"t":0,"type":"n","model":"m","in":10,"out":5,"hash_ids":[1],"api_time":2,"stop":""},
				{"t":3,"type":"subagent","agent_id":"x","subagent_type":"Explore","duration_ms":null,"status":"completed","models":[],"requests":[`+requests+`]},
				{"t":3.25,"type":"subagent","agent_id":"y","status":"async_launched","requests":[{"t":3.5,"type":"s","in":50,"out":1,"api_time":6,"ttft":1}]},
				{"t":7,"type":"s","in":20,"out":5,"hash_ids":[1,2],"api_time":1},
				{"t":10,"type":"n","in":30,"out":5,"hash_ids":[1,2,3],"api_time":1},
				{"t":11.5,"type":"subagent","agent_id":"z","status":"completed","requests":[]},
				{"t":12,"type":"n","in":31,"out":5}]}`)
			same(t, r.Session,
				want{"", 10, nil, 0},
				want{"/y", 50, []int{0}, 1500 * ms},
				want{"/x", 40, []int{0}, 2000 * ms},
				want{"/x", 41, []int{2}, 500 * ms},
				want{"", 20, []int{3}, 500 * ms},    // y is still at work
				want{"", 30, []int{1, 4}, 500 * ms}, // and has ended here, after the parent's own
				want{"", 31, []int{5}, 1000 * ms},   // z sent nothing
			)
			if r.ID != "a" || r.Block != 64 || r.Global || r.Empty != 0 {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestWekaConcurrent: requests of one level that overlapped wait for what had
// ended when they began, and what came after both waits for both.
func TestWekaConcurrent(t *testing.T) {
	r := parse(t, `{"id":"a","block_size":16,"hash_id_scope":"global","requests":[
		{"t":5,"type":"n","in":1,"out":1,"api_time":1},
		{"t":7,"type":"n","in":2,"out":1,"api_time":3},
		{"t":8,"type":"n","in":3,"out":1,"api_time":4},
		{"t":8.5,"type":"n","in":0,"out":1,"api_time":1},
		{"t":12,"type":"n","in":4,"out":1,"think_time":0.25},
		{"t":12,"type":"n","in":5,"out":1}]}`)
	same(t, r.Session,
		want{"", 1, nil, 0}, want{"", 2, []int{0}, time.Second}, want{"", 3, []int{0}, 2 * time.Second},
		want{"", 4, []int{0, 1, 2}, 250 * ms}, want{"", 5, []int{3}, 0})
	if !r.Global || r.Empty != 1 {
		t.Errorf("%+v", r)
	}
}

// TestNative: the own form says itself what waits for what.
func TestNative(t *testing.T) {
	r := parse(t, `{"id":"b","turns":[{"input_tokens":5,"output_tokens":1,"blocks":[7]},
		{"agent":"sub","input_tokens":6,"output_tokens":1,"after":[0],"idle_s":0.5},{"agent":"sub","input_tokens":7,"output_tokens":1},
		{"input_tokens":0,"output_tokens":1,"after":[0,2]},
		{"input_tokens":8,"output_tokens":2,"idle_s":1},{"input_tokens":9,"output_tokens":2,"after":[]}]}`)
	same(t, r.Session, want{"", 5, nil, 0}, want{"sub", 6, []int{0}, 500 * ms}, want{"sub", 7, []int{1}, 0},
		want{"", 8, []int{0, 2}, time.Second}, want{"", 9, nil, 0})
	if r.Block != DefaultBlock || r.Empty != 1 {
		t.Errorf("%+v", r)
	}
}

func TestParseErrors(t *testing.T) {
	for object, message := range map[string]string{
		`[]`:                                  "is no JSON object",
		`{"id":"a"}`:                          "is no session of agents: it has neither turns (perflab's own form) nor requests (WEKA's), nor is it a request of one (session_id and input_tokens_total, TraceLab's)",
		`{"turns":[],"requests":[]}`:          "a session has turns (perflab's own form) or requests (WEKA's), not both",
		`{"turns":[`:                          "it ends inside the JSON object: is the file complete?",
		`{"turns":[]} 1`:                      "more follows the JSON object",
		`{"turns":[],"scope":"x"}`:            `scope "x": the ids of blocks are local (to a session) or global`,
		`{"turns":[],"blok":1}`:               `unknown field "blok" (accepted keys: ` + nativeKeys + `)`,
		`{"turns":[{"after":[0]}]}`:           "request 0 waits for [0]: counted from 0, a request can wait for those before it",
		`{"turns":[{"idle_s":1e9}]}`:          "turns[0]: idle_s: 1e+09 s is no time of a session",
		`{"turns":[{"input_tokens":-1}]}`:     "request 1: -1 input and 0 output tokens: both must be at least 1",
		`{"requests":[{"type":"x"}]}`:         `requests[0]: type "x" is none of n, s and subagent`,
		`{"requests":[]}`:                     "block_size 0: a block has between 1 and 10000000 tokens",
		`{"requests":[],"tool_tokens":-1}`:    "tool_tokens -1 and system_tokens 0 cannot be negative",
		`{"requests":[],"hash_id_scope":"g"}`: `hash_id_scope "g": the ids of blocks are local (to a session) or global`,
	} {
		if _, err := Parse([]byte(object)); err == nil || err.Error() != message {
			t.Errorf("%s: %v, want %s", object, err, message)
		}
	}
}

// chain is a session of one agent, whose prompts have these blocks.
func chain(blocks ...[]int64) Session {
	s := Session{Block: 10}
	for i, b := range blocks {
		t := Turn{Input: 10 * len(b), Output: 5, Blocks: b, Idle: time.Second}
		if i > 0 {
			t.After = []int{i - 1}
		}
		s.Turns = append(s.Turns, t)
	}
	return s
}

func TestShareBlocks(t *testing.T) {
	s := chain([]int64{1}, []int64{1, 2}, []int64{1, 3}, []int64{1, 3, 4})
	s.shareBlocks()
	if &s.Turns[2].Blocks[0] != &s.Turns[3].Blocks[0] || &s.Turns[0].Blocks[0] != &s.Turns[1].Blocks[0] {
		t.Error("a prompt that goes on has its blocks twice")
	}
	if !slices.Equal(s.Turns[1].Blocks, []int64{1, 2}) || len(s.Turns[2].Blocks) != 2 {
		t.Errorf("%+v", s.Turns)
	}
}

func TestFit(t *testing.T) {
	s := chain([]int64{1}, []int64{1, 2}, []int64{1, 2, 3}, []int64{1})
	s.Turns = append(s.Turns, Turn{Agent: "sub", Input: 7, Output: 1, After: []int{0}})
	kept, cut := s.Fit(25, false)
	same(t, kept, want{"", 10, nil, time.Second}, want{"", 20, []int{0}, time.Second}, want{"sub", 7, []int{0}, 0})
	if cut != 2 {
		t.Errorf("%d turns left out", cut)
	}
	kept, cut = s.Fit(18, true)
	if cut != 2 || kept.Turns[2].Input != 13 || len(kept.Turns[2].Blocks) != 2 || s.Turns[2].Input != 30 {
		t.Errorf("%d turns cut: %+v", cut, kept.Turns)
	}
	if same, cut := s.Fit(0, true); cut != 0 || len(same.Turns) != 5 {
		t.Error("without a limit something was cut")
	}
	if got := s.CapIdle(300 * ms).Turns[1].Idle; got != 300*ms || s.Turns[1].Idle != time.Second {
		t.Errorf("idle %v", got)
	}
}

// TestFilling: prompts that a later one begins with need not be sent.
func TestFilling(t *testing.T) {
	s := chain([]int64{1}, []int64{1, 2}, []int64{1, 3}, []int64{9}, []int64{1, 3, 4}, []int64{1})
	s.Turns[3].Input = 14 // of which no block has the last four
	for before, want := range [][]int{nil, {0}, {1}, {1, 2}, {1, 2, 3}, {1, 3, 4}, {1, 3, 4, 5}} {
		if got := s.Filling(before); !slices.Equal(got, want) {
			t.Errorf("before %d: %v, want %v", before, got, want)
		}
	}
}

// tree is a session in which an agent starts two others and waits for both.
func tree() Session {
	return Session{Block: 10, Turns: []Turn{
		{Input: 1, Output: 1},
		{Agent: "a", Input: 2, Output: 1, After: []int{0}, Idle: 10 * ms, At: 30 * ms},
		{Agent: "b", Input: 3, Output: 1, After: []int{0}, Idle: 20 * ms, At: 40 * ms},
		{Agent: "a", Input: 4, Output: 1, After: []int{1}, Idle: 5 * ms, At: 80 * ms},
		{Input: 5, Output: 1, After: []int{2, 3}, Idle: time.Second, At: 1100 * ms},
	}}
}

func TestWalk(t *testing.T) {
	w := tree().Walk(0)
	step := func(turn int, at time.Duration, want ...Step) {
		t.Helper()
		if due, lost := w.Ended(turn, at, true); lost != 0 || !slices.Equal(due, want) {
			t.Errorf("after turn %d: %v, %d lost; want %v", turn, due, lost, want)
		}
	}
	if due := w.Begin(7 * ms); !slices.Equal(due, []Step{{0, 7 * ms}}) {
		t.Error(due)
	}
	step(0, 20*ms, Step{1, 30 * ms}, Step{2, 40 * ms})
	step(2, 90*ms)
	step(1, 50*ms, Step{3, 55 * ms})
	step(3, 70*ms, Step{4, 1090 * ms})
	step(4, 2000*ms)
}

// TestWalkFromTheMiddle: agents that were at work go on together, each after
// what was left of its idle time.
func TestWalkFromTheMiddle(t *testing.T) {
	w := tree().Walk(2)
	if due := w.Begin(0); !slices.Equal(due, []Step{{2, 0}, {3, 5 * ms}}) {
		t.Error(due)
	}
}

func TestWalkLoses(t *testing.T) {
	w := tree().Walk(0)
	w.Begin(0)
	w.Ended(0, 0, true)
	if due, lost := w.Ended(1, 5*ms, false); due != nil || lost != 2 {
		t.Errorf("%v, %d lost", due, lost)
	}
	if due, lost := w.Ended(2, 6*ms, false); due != nil || lost != 0 {
		t.Errorf("%v, %d lost twice", due, lost)
	}
}

// FuzzParse: any bytes are an error, or a session of which each turn comes to
// its time.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"id":"b","turns":[{"input_tokens":5,"output_tokens":1,"blocks":[7]},{"agent":"sub","input_tokens":6,"output_tokens":1,"after":[0],"idle_s":0.5}]}`))
	f.Add([]byte(`{"block_size":64,"requests":[{"t":1,"type":"n","in":10,"out":5,"hash_ids":[1],"api_time":2},{"t":3,"type":"subagent","requests":[{"t":0.5,"type":"s","in":1,"out":1},{"t":3,"type":"subagent","requests":[{"t":1,"type":"n","in":1,"out":1}]}]},{"t":9,"type":"n","in":3,"out":1}]}`))
	f.Fuzz(func(t *testing.T, object []byte) {
		r, err := Parse(object)
		if err != nil || len(r.Turns) == 0 {
			return
		}
		from := len(object) % len(r.Turns)
		for _, s := range []Session{r.Session, r.CapIdle(time.Second)} {
			for i, turn := range s.Turns {
				if err := turn.check(i); err != nil {
					t.Fatal(err)
				}
			}
			sent := 0
			w := s.Walk(from)
			for due := w.Begin(0); len(due) > 0; due = due[1:] {
				sent++
				more, _ := w.Ended(due[0].Turn, due[0].Due, true)
				due = append(due, more...)
			}
			if sent != len(s.Turns)-from {
				t.Fatalf("%d of %d turns from %d on were due", sent, len(s.Turns)-from, from)
			}
			s.Filling(from)
			if cut, n := s.Fit(s.Turns[0].Input+s.Turns[0].Output, false); len(cut.Turns)+n != len(s.Turns) {
				t.Fatalf("%d and %d turns of %d", len(cut.Turns), n, len(s.Turns))
			}
		}
	})
}

func Example() {
	r, err := Parse([]byte(`{"turns":[{"input_tokens":128,"output_tokens":20,"blocks":[1,2]},{"input_tokens":192,"output_tokens":20,"blocks":[1,2,3],"idle_s":2}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	w := r.Walk(0)
	first := w.Begin(0)[0]
	due, _ := w.Ended(first.Turn, 3*time.Second, true)
	fmt.Println(due)
	// Output: [{1 5s}]
}
