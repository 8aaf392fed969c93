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
func (r *Race) Planned() Plan { return r.state.planned() }

func (m *model) planned() Plan {
	all := m.atMost()
	p := Plan{Launches: all, Reserved: all - max(0, m.unplanned(all)), Named: len(m.search.Elsewhere)}
	for _, k := range m.search.Candidates {
		if k.Named && k.Refused == "" && !m.isBase(Change{}.Apply(k.Config)) {
			p.Named++
		}
	}
	p.Reached = p.Named
	if m.budget.Trials > 0 && m.reach() < p.Named {
		p.Reached, p.Enough = max(0, m.reach()), m.enough(p.Named)
	}
	return p
}

// enough is the least number of launches, above that of this race, of which the search has so many
// after the baseline's.
func (h *history) enough(n int) int {
	for all := h.atMost() + 1; ; all++ {
		b := Budget{Trials: all, Time: h.budget.Time}
		if (&history{budget: b, options: h.asked.filled(b)}).reach() >= n {
			return all
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

// kept is the number of launches for rounds of a pair, for one that is lost, and for what else
// may go where there are so many in all.
func (h *history) kept(all, rounds int) int {
	n := 2*rounds + reducing(all, h.options.Rounds)
	if all >= sparesFrom {
		n++
	}
	return n
}

// reducing is the number of them for what else may go.
func reducing(all, rounds int) int {
	if all >= reducedBudget {
		return rounds
	}
	return 0
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
		if c.launchedWith(k) {
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

// launchedWith reports whether something was launched with a change that the study names.
func (c conclusion) launchedWith(k Change) bool {
	same := func(o Change) bool { return maps.Equal(o.Set, k.Set) }
	return slices.ContainsFunc(c.trials, func(t *trial) bool { return slices.ContainsFunc(t.origin.changes, same) })
}

// noLaunchLeft is why something that the study names was not launched: the budget that had no
// launch left, and how many launches have one for all that is named, where as many go elsewhere
// as did here: to what was mended after a refusal, or repeated.
func (c conclusion) noLaunchLeft() *Finding {
	p := c.planned()
	if left := p.Launches - len(c.trials); c.budget.Time > 0 && c.left() < left {
		return &Finding{Kind: NoLaunchLeft, Seconds: c.budget.Time.Seconds()}
	}
	launched := 0
	for _, k := range c.candidates {
		if k.Named && k.runnable() && !c.isBase(k.Config) && len(c.launchesOf(k.Config)) > 0 {
			launched++
		}
	}
	for _, k := range c.search.Elsewhere {
		if c.launchedWith(k) {
			launched++
		}
	}
	return &Finding{Kind: NoLaunchLeft, N: p.Launches, Of: c.enough(p.Named + max(0, p.Reached-launched))}
}
