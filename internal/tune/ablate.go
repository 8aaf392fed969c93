package tune

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// ablate leaves out each setting of the winner once, and launches what is left
// when all that brought nothing has gone. It is recommended in the winner's place
// where it beats the baseline too and is not worse by what matters.
func (c *course) ablate() bool {
	c.begin(AblateStage)
	k := c.contest
	if k == nil || k.winner == nil {
		return true
	}
	for _, s := range choose(c, c.removals) {
		a := &ablation{setting: s}
		k.ablated = append(k.ablated, a)
		config := s.Apply(k.winner.config)
		if e := k.find(config); e != nil {
			a.without = e
		} else if why := c.guide.Refuse(config); why != "" {
			a.reason = "needed: without it " + why
			continue
		} else if c.left() < 1 || k.drops() && c.left() <= fewest {
			a.reason = "not tried: the budget is used up" // or kept for the check of what was dropped
			continue
		} else {
			a.without = &entrant{name: "without " + s.Label, origin: k.winner.origin.with(Change{Label: "without " + s.Label, Set: s.Set}), config: config, rounds: map[int]*trial{}}
			if !c.enter(a.without, AblateStage, 1) {
				return false
			}
		}
		c.weigh(a)
	}
	return c.check()
}

// drops reports whether a setting has been found to bring nothing.
func (k *contest) drops() bool {
	return slices.ContainsFunc(k.ablated, func(a *ablation) bool { return a.dropped })
}

// find is the entrant of the confirmation that has a configuration.
func (k *contest) find(config Config) *entrant {
	for _, e := range k.entries {
		if maps.Equal(e.config, config) {
			return e
		}
	}
	return nil
}

// removals are the winner's settings, those first that are predicted to bring
// least.
func (c *course) removals() []Change {
	winner := c.contest.winner.config
	out := slices.Clone(c.guide.Removals(winner))
	slices.SortStableFunc(out, func(a, b Change) int {
		x, y := c.point(a.Apply(winner)), c.point(b.Apply(winner))
		return -cmp.Compare(x.x, y.x)
	})
	return out
}

// weigh decides whether a setting stays: it goes where it brings less than half of
// what matters and is not shown to bring anything.
func (c *course) weigh(a *ablation) {
	k := c.contest
	if len(a.without.rounds) == 0 {
		a.reason = "needed: without it the trial ended " + c.bounds.note(a.without.failed, c.space.Primary)
		return
	}
	d, err := c.against(k.winner, a.without, "", 1)
	if err != nil {
		a.reason = "not decided: " + err.Error()
		return
	}
	a.span = &Span{d.Ratio.Value - 1, d.Ratio.Low - 1, d.Ratio.High - 1}
	won, lost := c.scoreOfEntrant(k.winner), c.scoreOfEntrant(a.without)
	switch {
	case lost.class < won.class:
		a.reason = "needed: without it the command " + c.obstacle(a.without)
	case a.span.Low > 0:
		a.reason = fmt.Sprintf("kept: it brings %s", percent(a.span.Value))
	case a.span.Value >= c.objective.MinGain/2:
		a.reason = fmt.Sprintf("kept: it seems to bring %s, which one launch cannot show", percent(a.span.Value))
	default:
		a.dropped = true
		a.reason = fmt.Sprintf("dropped: no gain shown (%s)", percent(a.span.Value))
	}
}

func (e *entrant) trials() []*trial {
	var out []*trial
	for _, round := range slices.Sorted(maps.Keys(e.rounds)) {
		out = append(out, e.rounds[round])
	}
	return out
}

// check launches the winner without all that was dropped: in every round of the
// confirmation, also where the ablation launched the same, as that launch is the
// reason why it is here. Where it is worse, or the budget does not allow the launches
// that a recommendation rests on, everything stays.
func (c *course) check() bool {
	k := c.contest
	if !k.drops() {
		k.done = true
		return true
	}
	c.begin(CheckStage)
	without := Change{Set: Config{}}
	var gone []string
	for _, a := range k.ablated {
		if a.dropped {
			maps.Copy(without.Set, a.setting.Set)
			gone = append(gone, a.setting.Label)
		}
	}
	without.Label = "without " + strings.Join(gone, ", ")
	config := without.Apply(k.winner.config)
	if why := c.guide.Refuse(config); why != "" {
		k.keep("together they are needed: without them " + why)
		return true
	}
	if k.reduced = k.find(config); k.reduced == nil {
		if c.left() < fewest {
			k.keep("kept: too few launches were left to measure the winner without what seems to bring nothing")
			return true
		}
		from := k.winner.origin.with(without)
		k.reduced = &entrant{name: from.String(), origin: from, config: config, rounds: map[int]*trial{}}
		for round := 1; round <= k.rounds && k.reduced.failed == nil && c.left() > 0; round++ {
			if !c.enter(k.reduced, CheckStage, round) {
				return false
			}
		}
	}
	c.settle()
	return true
}

// settle recommends what is left of the winner, or the winner.
func (c *course) settle() {
	k := c.contest
	k.done = true
	// At 95 % for this one alone: to keep a setting claims nothing.
	d, err := c.against(k.reduced, k.winner, "", 1)
	switch won, left := c.scoreOfEntrant(k.winner), c.scoreOfEntrant(k.reduced); {
	case k.reduced.failed != nil:
		k.keep("together they are needed: without them the trial ended " + c.bounds.note(k.reduced.failed, c.space.Primary))
	case left.class < won.class || left.class == missing && left.miss > won.miss && c.nearer(k.winner, k.reduced):
		k.keep("together they are needed: without them the command " + c.obstacle(k.reduced))
	case err != nil:
		k.keep("not decided: " + err.Error())
	case math.Log(d.Ratio.Value) < -math.Log1p(c.objective.MinGain)/2 || d.Ratio.High < 1:
		k.keep(fmt.Sprintf("kept: without all of them it is %s", percent(d.Ratio.Value-1)))
	case !c.beatsBase(k.reduced, c.baseEntrant()):
		k.keep("kept: without all of them no gain over the baseline is shown")
	default:
		k.pick = k.reduced
	}
}

// keep takes back what was to be dropped.
func (k *contest) keep(why string) {
	for _, a := range k.ablated {
		if a.dropped {
			a.dropped, a.reason = false, why
		}
	}
	k.pick, k.done = k.winner, true
}
