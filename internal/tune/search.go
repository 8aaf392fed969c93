package tune

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"perflab/internal/stat"
)

// rungShare is the part of the search's launches that meet a short load, where there is one.
const rungShare = 0.5

// mostRepairs is how often one candidate is mended, and mostRefusals how many
// configurations of an engine or a checkpoint may be refused, repairs apart, before it counts as tried.
const (
	mostRepairs  = 2
	mostRefusals = 3
)

// named launches what the study names, in its order; where the budget has not the
// launches, what is predicted best first.
func (s *raceState) named() {
	var all []*contender
	for _, k := range s.search.Candidates {
		if c := s.contender(Change{}.Apply(k.Config)); k.Named && c != nil && s.open(c.Config) {
			all = append(all, c)
		}
	}
	if len(all) > s.searchingNamed() {
		slices.SortStableFunc(all, func(a, b *contender) int { return -cmp.Compare(a.point.X, b.point.X) })
	}
	for _, c := range all {
		if s.room(); s.searchingNamed() > 0 {
			s.launchOption(&option{config: c.Config, candidate: c}, RaceStage, s.short())
		}
	}
}

// cover launches one candidate of every engine, or of every checkpoint: the one that is
// thought best and likely to run. A prediction has not shown yet what it is worth. One that
// is refused is not given up at once: the next is unlike it in whatever may be why.
func (s *raceState) cover(parameter string) {
	for s.room(); s.searching() > 0; s.room() {
		ran, refused := map[string]bool{}, map[string]int{}
		for _, t := range s.trials {
			if v := t.Config[parameter]; t.open || t.measured() {
				ran[v] = true
			} else if t.end.Status == Refused && t.Stage != RepairStage {
				refused[v]++
			}
		}
		var best *option
		most := 0.0
		look := func(o *option) {
			v := o.config[parameter]
			if ran[v] || refused[v] >= mostRefusals || !s.open(o.config) {
				return
			}
			likely := math.Pow(s.runChance(o.config), float64(1+2*refused[v])) // to see one run counts more with each refusal
			if worth := s.thought(o.config) * likely; best == nil || worth > most {
				best, most = o, worth
			}
		}
		for _, c := range s.candidates {
			if c.runnable() {
				look(&option{config: c.Config, candidate: c})
			}
		}
		if best != nil && refused[best.config[parameter]] > 0 {
			for _, config := range s.vary(best.config, parameter) {
				look(s.optionOf(config))
			}
		}
		if best != nil {
			s.launchOption(best, RaceStage, s.short())
		} else if !s.land() { // what is under way may be refused
			return
		}
	}
}

// varied is how many variations of a configuration are looked at that is to be unlike what
// was refused.
const varied = 60

// vary are configurations with the same value of a parameter and others of some others.
func (s *raceState) vary(config Config, parameter string) []Config {
	rng := stat.Stream(0, fmt.Sprint("race, cover ", len(s.trials)+1))
	var out []Config
	for range varied {
		c := config
		for _, d := range s.search.Domain {
			if d.Name != parameter && rng.IntN(2) == 0 {
				if next := anyValue(c, d, rng); s.search.Refuse(next) == "" {
					c = next
				}
			}
		}
		out = append(out, c)
	}
	return out
}

// elsewhere launches what the study names and the baseline cannot take, on the best that
// can.
func (s *raceState) elsewhere() {
	for _, k := range s.search.Elsewhere {
		s.settle()
		for _, st := range s.standings() {
			if s.searching() <= 0 {
				return
			}
			if s.launchChange(st.trial, k, RaceStage, s.short(), func(t *trial) { s.mend(t, s.short(), 0) }) != nil {
				break
			}
		}
	}
}

// firstRung launches what promises most under a short load, where there is one.
func (s *raceState) firstRung() {
	if s.short() == 0 {
		return
	}
	s.room()
	quota := int(math.Ceil(rungShare * float64(s.searching())))
	for n := len(s.trials); len(s.trials)-n < quota; {
		if !s.explore(RaceStage, s.short()) {
			return
		}
	}
}

// open reports whether a configuration may have a launch: it runs as far as the rules know,
// and has had none.
func (m *model) open(config Config) bool {
	return !m.launched(config) && !m.failedGuard(config) && m.search.Refuse(config) == ""
}

// mend launches what the refusal of a trial asks for, and of that again, unless the same
// did not help before. So often it was mended already.
func (s *raceState) mend(t *trial, share float64, mended int) {
	if mended == mostRepairs || t.end.Status != Refused || len(t.end.Moves) == 0 || s.searching() <= 0 {
		return
	}
	cure := t.end.Moves[0]
	if s.vain[cure.Set.key()] {
		return
	}
	s.launchChange(t, cure, RepairStage, share, func(next *trial) {
		if next.spoiled() { // it says nothing of the cure
			s.mend(t, share, mended)
			return
		}
		s.vain[cure.Set.key()] = next.end.Status == Refused
		s.mend(next, share, mended+1)
	})
}

// launchChange launches a change of what a trial measured, and keeps what comes of
// it; nil where it need not or cannot be launched. Once it has ended, then is called.
func (s *raceState) launchChange(from *trial, change Change, stage string, share float64, then func(*trial)) *trial {
	config := change.Apply(from.Config)
	if !s.open(config) {
		return nil
	}
	label := change.Label
	if change.Why != "" {
		label += " (" + change.Why + ")"
	}
	return s.launch(Proposal{Stage: stage, Label: label, Config: config, Share: share}, from.origin.with(change), func(t *trial) {
		e := Entry{Label: from.name + ": " + label, Trial: t.Trial, Finding: s.note(t)}
		if from.measured() && t.measured() && from.Share == share {
			e.Gain = new(math.Expm1(t.log - from.log))
		}
		if ref := s.reference(share); t.measured() && s.based() && !math.IsNaN(ref) {
			e.Total = new(math.Expm1(t.log - ref))
		}
		s.steps = append(s.steps, e)
		if then != nil {
			then(t)
		}
	})
}

// repair gives the best candidate of each engine what its bottleneck asks for, before
// any is given up: an engine is not judged by its defaults.
func (s *raceState) repair() {
	s.begin(RepairStage)
	for _, t := range s.bestOfEachEngine() {
		s.room()
		s.relieve(t, 0)
	}
}

// relieve launches what the bottleneck of a trial asks for, and where that is better what
// its own asks for. So often it was relieved already.
func (s *raceState) relieve(t *trial, relieved int) {
	if relieved == mostRepairs || len(t.end.Moves) == 0 || s.searching() <= 1 {
		return
	}
	s.launchChange(t, t.end.Moves[0], RepairStage, t.Share, func(next *trial) {
		switch {
		case next.spoiled():
			s.relieve(t, relieved)
		case next.measured() && s.bounds.prefer(next.score, t.score):
			s.relieve(next, relieved+1)
		}
	})
}

// final launches what was not shown to be worse under all of the load, where
// candidates met only a part of it.
func (s *raceState) final() {
	s.begin(FinalStage)
	if s.short() == 0 {
		return
	}
	for _, t := range s.survivors() {
		if s.room(); s.searching() <= 0 {
			break
		}
		s.launch(Proposal{Stage: FinalStage, Label: t.name, Config: t.Config}, t.origin, nil)
	}
}

// mostFinals is how many go from the first rung to the second.
const mostFinals = 3

// survivors are the best that were not shown to be worse.
func (s *launcher) survivors() []*trial {
	var out []*trial
	for _, st := range s.standings() {
		if len(out) < mostFinals && len(s.launches(st.trial.Config, 0)) == 0 && s.worse(st.trial) == nil {
			out = append(out, st.trial)
		}
	}
	return out
}

// bestOfEachEngine are the best launch of each engine, the most promising first.
func (s *launcher) bestOfEachEngine() []*trial {
	var out []*trial
	seen := map[string]bool{}
	for _, st := range s.standings() {
		if e := st.trial.Config[engineParameter]; !seen[e] {
			seen[e] = true
			out = append(out, st.trial)
		}
	}
	return out
}

// distinct are the best that differ in a choice, since around two that do not, the same
// would be tried; and the best of each engine.
func (s *launcher) distinct() []standing {
	var out []standing
	for _, st := range s.standings() {
		config := st.trial.Config
		sameEngine := func(o standing) bool { return o.trial.Config[engineParameter] == config[engineParameter] }
		sameChoices := func(o standing) bool { return s.sameChoices(o.trial.Config, config) }
		if len(out) < refinedAround && !slices.ContainsFunc(out, sameChoices) || !slices.ContainsFunc(out, sameEngine) {
			out = append(out, st)
		}
	}
	return out
}

// launchesOf are the trials of the search that had a configuration.
func (m *model) launchesOf(config Config) []int {
	var out []int
	for _, t := range m.trials {
		if t.Pass == 0 && !t.open && maps.Equal(t.Config, config) {
			out = append(out, t.Trial)
		}
	}
	return out
}
