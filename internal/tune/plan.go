package tune

import (
	"maps"
	"slices"
)

// Plan is what a race may launch by its budget of launches alone, known before its first
// trial.
type Plan struct {
	Launches int // at most
	Reserved int // of them, for the confirmation and what follows it
	Named    int // what the study names beside the baseline, and no rule refuses
	Reached  int // of it, what the search has a launch for
	Enough   int // the least budget with a launch for all of it; 0: this one, or one without a number of launches
}

// Planned is the race's plan.
func (r *Race) Planned() Plan {
	h := r.state.history
	all := h.atMost()
	p := Plan{Launches: all, Reserved: all - max(0, h.unplanned(all)), Named: len(r.state.search.Elsewhere)}
	for _, k := range r.state.search.Candidates {
		if k.Named && k.Refused == "" && !h.isBase(Change{}.Apply(k.Config)) {
			p.Named++
		}
	}
	p.Reached = p.Named
	if h.budget.Trials == 0 || h.reach() >= p.Named {
		return p
	}
	p.Reached = max(0, h.reach())
	for p.Enough = all + 1; ; p.Enough++ {
		b := Budget{Trials: p.Enough, Time: h.budget.Time}
		if (&history{budget: b, options: r.asked.filled(b)}).reach() >= p.Named {
			return p
		}
	}
}

// atMost is the number of launches that a race may have by its budget of launches, without
// one what is worth its time.
func (h *history) atMost() int {
	if h.budget.Trials > 0 {
		return h.budget.Trials
	}
	return mostLaunches
}

// reach is the number of launches that the search has after the baseline's.
func (h *history) reach() int { return h.unplanned(h.atMost()) - len(h.openingShares()) }

// plannedRounds are those of a pair that are kept for the confirmation of so many
// launches in all, before it is known what will be confirmed.
func (h *history) plannedRounds(all int) int {
	return max(h.options.Rounds, min(all/launchesPerRound+1, h.options.Rounds+moreRounds))
}

// unplanned is what is left of so many launches by that plan.
func (h *history) unplanned(all int) int { return all - h.kept(all, h.plannedRounds(all)) }

// searchingNamed is the number of launches left for what the study names, which goes before
// the further rounds that a small gain of what leads so far would take.
func (h *history) searchingNamed() int { return h.unplanned(h.left()+len(h.trials)) - len(h.trials) }

// kept is the number of launches for rounds of a pair, for the command without what it
// probably does not need, and for what else may go where there are so many in all.
func (h *history) kept(all, rounds int) int {
	n := 2 * rounds
	if all >= smallBudget {
		n++
	}
	if all >= reducedBudget {
		n += h.options.Rounds
	}
	return n
}

// unlaunched is what the study names and no launch tells of, each with the reason.
func (c conclusion) unlaunched() []Entry {
	if !c.finished {
		return nil
	}
	var out []Entry
	for _, k := range c.candidates {
		if k.Named && !c.isBase(k.Config) && len(c.launchesOf(k.Config)) == 0 {
			out = append(out, Entry{Label: k.Label, Finding: c.outcome(k, c.fit()).Reason})
		}
	}
	for _, k := range c.search.Elsewhere {
		same := func(o Change) bool { return maps.Equal(o.Set, k.Set) }
		if slices.ContainsFunc(c.trials, func(t *trial) bool { return slices.ContainsFunc(t.origin.changes, same) }) {
			continue
		}
		why := c.noLaunchLeft()
		if !slices.ContainsFunc(c.standings(), func(s standing) bool { return c.open(k.Apply(s.trial.Config)) }) {
			why = &Finding{Kind: RefusedByRule, Reason: c.search.Refuse(k.Apply(c.baseConfig()))}
		}
		out = append(out, Entry{Label: k.Label, Finding: why})
	}
	return out
}

// noLaunchLeft is why something that the study names was not launched.
func (c conclusion) noLaunchLeft() *Finding { return &Finding{Kind: NoLaunchLeft, N: c.budget.Trials} }
