package bench

import (
	"testing"

	"perflab/internal/result"
	"perflab/internal/workload"
)

func TestSize(t *testing.T) {
	ports := func(name string, n int) Able { return Able{Name: name, Connections: n, Limit: "number of local ports"} }
	taking := func(name string, events float64) Able {
		return AbleOf(name, 28_000, "number of local ports", &result.SelfCheck{MaxEvents: events})
	}
	for name, tt := range map[string]struct {
		need   Need
		there  []Able
		agents int
		enough bool
		text   string
	}{
		"nobody":                {Need{InFlight: 1}, nil, 0, false, "no agent is there to send the load"},
		"one will do":           {Need{InFlight: 1000}, []Able{ports("a", 28_000), ports("b", 28_000)}, 1, true, "this load needs 1 agent like a (1000 requests are in flight at once, of which a holds 28000 (number of local ports)): 2 are there"},
		"exactly":               {Need{InFlight: 56_000}, []Able{ports("a", 28_000), ports("b", 28_000)}, 2, true, "this load needs 2 agents like a, b (56000 requests are in flight at once, of which b holds 28000 (number of local ports)): 2 are there"},
		"one more":              {Need{InFlight: 56_001}, []Able{ports("a", 28_000), ports("b", 28_000)}, 3, false, "this load needs about 3 agents like a, b (56001 requests are in flight at once, of which b holds 28000 (number of local ports)): 2 are there"},
		"too few":               {Need{InFlight: 70_000, Events: 1}, []Able{ports("a", 28_000), taking("b", 1)}, 3, false, "this load needs about 3 agents like a, b (70000 requests are in flight at once, of which b holds 28000 (number of local ports)): 2 are there; how many tokens/s a can take in is not known: run perflab selfcheck there"},
		"events":                {Need{InFlight: 10, Events: 120_000}, []Able{taking("a", 80_000), taking("b", 80_000), taking("c", 100_000)}, 3, true, "this load needs 3 agents like c, a, b (120000 tokens/s come back, of which b takes in 56000): 3 are there"},
		"the best are enough":   {Need{InFlight: 10, Events: 120_000}, []Able{taking("slow", 20_000), taking("a", 90_000), taking("b", 90_000)}, 2, true, "this load needs 2 agents like a, b (120000 tokens/s come back, of which b takes in 63000): 3 are there"},
		"the weakest decides":   {Need{InFlight: 10, Events: 120_000}, []Able{taking("slow", 20_000), taking("a", 90_000)}, 9, false, "this load needs about 9 agents like a, slow (120000 tokens/s come back, of which slow takes in 14000): 2 are there"},
		"nothing is known":      {Need{InFlight: 10}, []Able{{Name: "a"}}, 1, true, "this load needs 1 agent like a: 1 is there"},
		"more than it can have": {Need{InFlight: 4, Events: 1000, Parts: 2}, []Able{taking("a", 500), taking("b", 500), taking("c", 500)}, 3, false, "this load needs 3 agents like a, b, c (1000 tokens/s come back, of which c takes in 350): 3 are there; it can be cut into 2 parts at most"},
	} {
		s := Size(tt.need, tt.there)
		if s.Agents != tt.agents || s.Enough() != tt.enough || s.Text() != tt.text {
			t.Errorf("%s: %d agents, enough %v\n%s\n%s", name, s.Agents, s.Enough(), s.Text(), tt.text)
		}
	}
}

// TestNeedOf: what a load asks for follows from its schedule; the tokens/s of a closed loop are the
// server's to decide.
func TestNeedOf(t *testing.T) {
	for name, tt := range map[string]struct {
		spec workload.Spec
		want Need
	}{
		"open loop":   {workload.Spec{NumPrompts: 101, Rate: 50, Arrival: "constant", RandomInputLen: 8, RandomOutputLen: 100}, Need{InFlight: 1, Events: 5050, Parts: 101}},
		"closed loop": {workload.Spec{Duration: "1m", MaxConcurrency: 64, RandomInputLen: 8}, Need{InFlight: 64, Parts: 64}},
		"burst":       {workload.Spec{NumPrompts: 300, RandomInputLen: 8}, Need{InFlight: 300, Parts: 300}},
		"limited":     {workload.Spec{NumPrompts: 300, MaxConcurrency: 64, RandomInputLen: 8}, Need{InFlight: 64, Parts: 64}},
	} {
		w, err := workload.Open(tt.spec)
		if err != nil {
			t.Fatal(name, err)
		}
		if got := NeedOf(w); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}
