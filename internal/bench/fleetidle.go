package bench

import (
	"cmp"
	"slices"
)

// Together is what some agents can send of one load. Each sends an equal part of it, so the weakest that
// takes part decides, and one that is far weaker than the others is better left out.
type Together struct {
	Agents      int      `json:"agents"`
	Connections int      `json:"connections,omitzero"` // at once; 0: not known of any
	Holding     int      `json:"holding,omitzero"`     // agents that hold these
	Events      float64  `json:"events_per_s,omitzero"`
	Taking      int      `json:"taking,omitzero"`     // agents that take these in
	Unchecked   []string `json:"unchecked,omitempty"` // agents without a self check: Events leaves them out
}

// TogetherOf is what agents can send, as far as is known of each. Of the events/s that a self check found
// at most, it counts as much as Size does.
func TogetherOf(there []Able) Together {
	t := Together{Agents: len(there)}
	var holds, takes []float64
	for _, a := range there {
		if a.Connections > 0 {
			holds = append(holds, float64(a.Connections))
		}
		if a.MaxEvents > 0 {
			takes = append(takes, a.MaxEvents*comfortable)
		} else {
			t.Unchecked = append(t.Unchecked, a.Name)
		}
	}
	held, n := evenly(holds)
	t.Connections, t.Holding = int(held), n
	t.Events, t.Taking = evenly(takes)
	return t
}

// evenly is the most that comes of so many equal parts as there are amounts that can bear one, and their number.
func evenly(amounts []float64) (most float64, parts int) {
	slices.SortFunc(amounts, func(a, b float64) int { return cmp.Compare(b, a) })
	for i, a := range amounts {
		if all := a * float64(i+1); all >= most {
			most, parts = all, i+1
		}
	}
	return most, parts
}
