package result

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"perflab/internal/speculation"
)

// Speculation is what an engine says of its speculation for one request.
type Speculation = speculation.Request

// mostPositions have a figure each; positionPrefix begins its name.
const (
	mostPositions  = speculation.MostPositions
	positionPrefix = speculation.PositionPrefix
)

// sectionSpeculation holds what answers tell, apart from the engine's own counters.
const sectionSpeculation = "Speculation by request"

// speculationScalars are the rows that answers give which tell of speculation. They are of
// the requests of the run alone; acceptance_length is of all that the engine did.
func speculationScalars() []Metric {
	const told = ", by what the answers tell of their own requests"
	rows := []Metric{
		{Name: "speculating_requests", Label: "Requests that tell of speculation", Unit: "requests", Section: sectionSpeculation,
			Doc:     "Successful calls whose answer says what came of its guesses; absent where none does.",
			Formula: "count of calls with speculation"},
		{Name: "request_acceptance_rate", Label: "Acceptance rate by request", Unit: "ratio", Section: sectionSpeculation, Better: Higher, Decimals: 4,
			Doc: "Share of the guessed tokens that were accepted" + told + ".", Formula: "sum of accepted / sum of drafted"},
		{Name: "request_acceptance_length", Label: "Acceptance length by request", Unit: "tokens", Section: sectionSpeculation, Better: Higher, Decimals: 2,
			Doc: "Tokens that a step of speculation yields, the model's own among them" + told + ".", Formula: "1 + sum of accepted / sum of steps"},
	}
	for i := range mostPositions {
		rows = append(rows, Metric{Name: positionPrefix + strconv.Itoa(i+1), Label: fmt.Sprintf("Acceptance at position %d by request", i+1), Unit: "ratio",
			Section: sectionSpeculation, Better: Higher, Decimals: 4,
			Doc:     fmt.Sprintf("Share of the steps of speculation in which the guess at position %d was accepted, and with it all before it; a step with fewer guesses is one without%s.", i+1, told),
			Formula: fmt.Sprintf("steps with %d or more accepted / steps", i+1)})
	}
	return rows
}

// addSpeculation sets the figures of what the answers tell.
func (a *Analysis) addSpeculation() { maps.Copy(a.Figures, a.Speculated.Figures()) }

// Position is how guesses at a place of a step fared.
type Position struct {
	At    int     // from 1
	Share float64 // of the steps in which it was accepted
	Given float64 // the same of the steps in which all guesses before it were
	Asked bool    // there were such steps
}

// Positions are those that the summary tells of.
func Positions(s *Summary) []Position {
	var all []Position
	before := 1.0
	for i := range mostPositions {
		v, ok := s.Figures[positionPrefix+strconv.Itoa(i+1)]
		if !ok {
			break
		}
		p := Position{At: i + 1, Share: v, Asked: before > 0}
		if p.Asked {
			p.Given = v / before
		}
		all, before = append(all, p), v
	}
	return all
}

// SpeculationGroup are requests that fared alike.
type SpeculationGroup struct {
	Requests  int
	Low, High float64 // the least and the most of the requests' own measure
	Length    float64 // of all their steps; 0 where the engine does not tell them
	Rate      float64 // of all their guesses
	Rated     bool    // the guesses are told
	TPOT      float64 // mean of the requests' own, in ms
	Timed     int     // requests that have one
}

// speculationGroups is into how many groups requests are parted, and leastGroup how
// many a group needs.
const (
	speculationGroups = 4
	leastGroup        = 4
)

// GroupSpeculation parts the requests by how many tokens a step of theirs yielded, or with
// byRate, where no step is told, by the share of their guesses that was accepted: fewest
// first. Of too few requests there is no group.
func GroupSpeculation(calls []Call) (groups []SpeculationGroup, byRate bool) {
	type told struct {
		call    *Call
		measure float64
	}
	gather := func(measure func(*Speculation) (float64, bool)) (all []told) {
		for i := range calls {
			c := &calls[i]
			if !c.OK() || c.Speculation == nil {
				continue
			}
			v, ok := measure(c.Speculation)
			if totals, _ := c.Speculation.Plausible(); ok && totals {
				all = append(all, told{c, v})
			}
		}
		return all
	}
	all := gather((*Speculation).Length)
	if byRate = len(all) == 0; byRate {
		all = gather((*Speculation).Rate)
	}
	if len(all) < speculationGroups*leastGroup {
		return nil, byRate
	}
	slices.SortStableFunc(all, func(a, b told) int {
		return cmp.Or(cmp.Compare(a.measure, b.measure), compareIndex(a.call, b.call))
	})
	for i := range speculationGroups {
		part := all[i*len(all)/speculationGroups : (i+1)*len(all)/speculationGroups]
		g := SpeculationGroup{Requests: len(part), Low: part[0].measure, High: part[len(part)-1].measure}
		var sum speculation.Sums
		for _, t := range part {
			sum.Add(t.call.Speculation)
			if ns, ok := t.call.TPOT(); ok {
				g.TPOT, g.Timed = g.TPOT+ns/1e6, g.Timed+1
			}
		}
		if sum.Steps > 0 {
			g.Length = 1 + float64(sum.AcceptedInSteps)/float64(sum.Steps)
		}
		if g.Rated = sum.Drafted > 0; g.Rated {
			g.Rate = float64(sum.AcceptedOf) / float64(sum.Drafted)
		}
		g.TPOT /= max(1, float64(g.Timed))
		groups = append(groups, g)
	}
	return groups, byRate
}
