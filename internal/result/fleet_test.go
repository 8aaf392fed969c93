package result

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fleetCalls are calls of two agents, of which the second is late and read some chunks together.
func fleetCalls() []Call {
	var calls []Call
	for i := range 200 {
		c := Call{Index: i, Agent: 1 + i%2, Due: time.Duration(i) * time.Millisecond, Reads: 3}
		c.Ready, c.Sent = c.Due, c.Due+time.Duration(c.Agent*c.Agent)*time.Millisecond
		for k := range 3 {
			c.Chunks = append(c.Chunks, Chunk{At: c.Sent + time.Duration(k+1)*10*time.Millisecond, Tokens: 1, Read: int32(k)})
		}
		if c.Agent == 2 {
			c.Chunks[2].At, c.Chunks[2].Read = c.Chunks[1].At, 1
			c.Late, c.Coarse = []LateRead{{Read: 1, By: 3 * time.Millisecond}}, 1
		}
		if c.End = c.Chunks[2].At; i == 7 {
			c.Class = HTTPStatus
		}
		calls = append(calls, c)
	}
	return calls
}

func TestAgentFigures(t *testing.T) {
	h := Header{Fleet: &Fleet{Agents: []Agent{{Name: "a"}, {Name: "b"}, {Name: "lost before its first call"}}}}
	calls := fleetCalls()
	a, err := Analyze(h, &Client{}, Options{}, slices.Values(calls))
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Agents) != 3 {
		t.Fatalf("%d agents", len(a.Agents))
	}
	for i, ms := range []float64{1, 4} {
		f := a.Agents[i]
		if f.LagP99 == nil || math.Abs(*f.LagP99-ms) > 0.016*ms || math.Abs(*f.LagP50-ms) > 0.016*ms {
			t.Errorf("agent %d was late by %v", i+1, f.LagP99)
		}
		f.LagP50, f.LagP99, f.Lag = nil, nil, nil
		a.Agents[i] = f
	}
	inCalls := func(agent int) (d time.Duration) {
		for _, c := range calls {
			if c.Agent == agent && c.OK() {
				d += c.End - c.Sent
			}
		}
		return d
	}
	want := []AgentFigures{
		{Agent: 1, AgentTally: AgentTally{Calls: 100, Chunks: 300, Reads: 300, LagFromDue: 100 * time.Millisecond, LagFromReady: 100 * time.Millisecond, InCalls: inCalls(1)}},
		{Agent: 2, AgentTally: AgentTally{Calls: 100, Failed: 1, Chunks: 297, Merged: 99, Late: 99, LateBy: 3 * time.Millisecond, Reads: 297, Coarse: 99,
			LagFromDue: 4 * 99 * time.Millisecond, LagFromReady: 4 * 99 * time.Millisecond, InCalls: inCalls(2)}},
		{Agent: 3},
	}
	if d := cmp.Diff(want, a.Agents); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	b, err := json.Marshal(a.Summary())
	var s Summary
	if err != nil || json.Unmarshal(b, &s) != nil {
		t.Fatalf("%v: %s", err, b)
	}
	if d := cmp.Diff(want, s.Agents); d != "" {
		t.Errorf("stored: -want +got\n%s", d)
	}
}

// TestAgentFiguresStored: what is known of agents goes with what else is known of a large run.
func TestAgentFiguresStored(t *testing.T) {
	h := Header{Fleet: &Fleet{Agents: []Agent{{Name: "a"}, {Name: "b"}}}}
	x, err := NewLimited(h, Options{}, Limits{Bytes: 1000, Some: 1000, Rows: 50})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range fleetCalls() {
		x.Add(&c)
	}
	var file bytes.Buffer
	if err := x.Save(&file, "these"); err != nil {
		t.Fatal(err)
	}
	y, err := Load(&file, h, Options{}, "these")
	if err != nil {
		t.Fatal(err)
	}
	a, err := x.Analyze(&Client{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := y.Analyze(&Client{}, Options{})
	if err != nil || len(a.Agents) != 2 || a.Agents[1].LagP99 == nil {
		t.Fatalf("%v: %+v", err, a.Agents)
	}
	if d := cmp.Diff(a.Agents, b.Agents); d != "" {
		t.Errorf("-kept +read\n%s", d)
	}
}
