// Package speculation counts what answers tell of their speculation, request by request, and makes figures of it.
//
// Invariants: counts that contradict themselves are left out and counted; zero is none, or that the engine does not
// say how many: neither gives a ratio.
//
// Deliberately absent: calls and the metric table (package result), and the engine's own counters.
package speculation

import "strconv"

// MaxTokens is the most that a request may have.
const MaxTokens = 1 << 20

// Request is what an engine says of its speculation for one request, in counts.
// Zero is none, or that it does not say how many: neither gives a ratio.
type Request struct {
	Steps    int     `json:"steps,omitzero"`    // in which the model verified guesses
	Drafted  int     `json:"drafted,omitzero"`  // tokens guessed
	Accepted int     `json:"accepted"`          // of them; the model's own token of a step is none
	ByStep   []int32 `json:"by_step,omitempty"` // [j]: steps in which j guesses were accepted
}

// Length is the tokens that a step yields, the model's own among them.
func (g *Request) Length() (v float64, ok bool) {
	return 1 + float64(g.Accepted)/float64(g.Steps), g.Steps > 0
}

// Rate is the share of the guesses that were accepted.
func (g *Request) Rate() (v float64, ok bool) {
	return float64(g.Accepted) / float64(g.Drafted), g.Drafted > 0
}

// Plausible reports whether the totals can be, and the counts by step beside them. No
// request has more steps than it may have tokens.
func (g *Request) Plausible() (totals, byStep bool) {
	totals = min(g.Steps, g.Drafted, g.Accepted) >= 0 && max(g.Steps, g.Drafted, g.Accepted) <= MaxTokens &&
		(g.Drafted == 0 || g.Accepted <= g.Drafted)
	steps, accepted := 0, 0
	for j, n := range g.ByStep {
		if n < 0 || int(n) > g.Steps {
			return totals, false
		}
		steps, accepted = steps+int(n), accepted+j*int(n)
	}
	return totals, len(g.ByStep) == 0 || steps == g.Steps && accepted == g.Accepted
}

// Sums are what the successful calls of a run tell of speculation.
type Sums struct {
	Requests int // that tell of it
	Odd      int // whose answer contradicts itself: what does is left out

	Steps, AcceptedInSteps int     // of those that tell the steps
	Drafted, AcceptedOf    int     // of those that tell the guesses
	ByStep                 []int64 // sum of those that tell it
}

// Add takes what a call tells; one that tells nothing is nil.
func (s *Sums) Add(g *Request) {
	if g == nil {
		return
	}
	s.Requests++
	totals, byStep := g.Plausible()
	if !totals || !byStep {
		s.Odd++
	}
	if !totals {
		return
	}
	if g.Steps > 0 {
		s.Steps, s.AcceptedInSteps = s.Steps+g.Steps, s.AcceptedInSteps+g.Accepted
	}
	if g.Drafted > 0 {
		s.Drafted, s.AcceptedOf = s.Drafted+g.Drafted, s.AcceptedOf+g.Accepted
	}
	if !byStep {
		return
	}
	for j, n := range g.ByStep {
		if j == len(s.ByStep) {
			s.ByStep = append(s.ByStep, 0)
		}
		s.ByStep[j] += int64(n)
	}
}

// Told reports whether calls tell of speculation. Where steps are told and neither a guess
// nor an accepted one, the engine makes none: TensorRT-LLM tells steps of any answer.
func (s *Sums) Told() bool {
	return s.Requests > 0 && (s.Steps == 0 || s.Drafted > 0 || s.AcceptedInSteps > 0)
}

// MostPositions have a figure each; more guesses than that at a time are rare.
const MostPositions = 16

// PositionPrefix begins the name of the figure of a position.
const PositionPrefix = "request_acceptance_at_"

// Figures are those of what the answers tell, by their names in the metric table.
func (s *Sums) Figures() map[string]float64 {
	f := map[string]float64{}
	if !s.Told() {
		return f
	}
	f["speculating_requests"] = float64(s.Requests)
	if s.Drafted > 0 {
		f["request_acceptance_rate"] = float64(s.AcceptedOf) / float64(s.Drafted)
	}
	if s.Steps > 0 {
		f["request_acceptance_length"] = 1 + float64(s.AcceptedInSteps)/float64(s.Steps)
	}
	steps := int64(0)
	for _, n := range s.ByStep {
		steps += n
	}
	reached := steps
	for i := 1; i < len(s.ByStep) && i <= MostPositions && steps > 0; i++ {
		reached -= s.ByStep[i-1]
		f[PositionPrefix+strconv.Itoa(i)] = float64(reached) / float64(steps)
	}
	return f
}
