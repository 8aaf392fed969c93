package tune

import (
	"maps"
	"math"
	"slices"
)

// rungShare is the part of the search's launches that candidates may take, repairs
// included; the rest refines.
const rungShare = 0.5

// mostRepairs is how often one candidate is mended.
const mostRepairs = 2

// firstRung launches candidates: the one of each engine that is predicted best,
// then those that a launch is expected to gain most by.
func (s *raceState) firstRung() {
	s.begin(RaceStage)
	s.candidates = s.rank(s.search.Candidates)
	engines := map[string]bool{}
	for _, c := range s.candidates {
		if c.runnable() {
			engines[c.Config[engineParameter]] = true
		}
	}
	quota := max(len(engines), int(math.Ceil(rungShare*float64(s.searching()))))
	for n := len(s.trials); len(s.trials)-n < quota && s.searching() > 0; {
		c := s.nextCandidate()
		if c == nil {
			break
		}
		s.launch(c, RaceStage, s.short())
	}
}

// launchable reports whether a candidate may have a launch.
func (s *raceState) launchable(c *contender) bool {
	return c.runnable() && !s.launched(c.Config) && !s.failedGuard(c.Config)
}

// nextCandidate is the candidate to launch; nil for none that is worth it.
func (s *raceState) nextCandidate() *contender {
	tried := map[string]bool{}
	for _, t := range s.trials {
		if t.Stage != BaselineStage && !t.spoiled() {
			tried[t.Config[engineParameter]] = true
		}
	}
	for _, c := range s.candidates {
		if !tried[c.Config[engineParameter]] && s.launchable(c) {
			return c
		}
	}
	if c := s.likeTheLeader(); c != nil {
		return c
	}
	var open []*contender
	var configs []Config
	for _, c := range s.candidates {
		if s.launchable(c) {
			open, configs = append(open, c), append(configs, c.Config)
		}
	}
	if at, gain := s.best(configs, nil); gain > 0 && gain >= s.worthwhile() {
		return open[at]
	}
	return nil
}

// likeTheLeader is the candidate of another engine that is likest to what leads: what
// suits a load in one engine mostly suits it in another, and one launch of an engine,
// of whatever was predicted best, says little about the engine. It is nil where every
// engine had its own, or where nothing of it ran.
func (s *raceState) likeTheLeader() *contender {
	lead := s.leader()
	if lead == nil {
		return nil
	}
	to := lead.trial.Config
	ran, near := map[string]bool{}, map[string]int{}
	for _, t := range s.trials {
		e, d := t.Config[engineParameter], s.choiceDistance(t.Config, to)
		ran[e] = ran[e] || t.measured()
		if least, ok := near[e]; !ok || d < least {
			near[e] = d
		}
	}
	fit := s.fit()
	var found *contender
	least := 0
	for _, c := range s.candidates { // the best predicted first
		e := c.Config[engineParameter]
		if !ran[e] || e == to[engineParameter] || !s.launchable(c) {
			continue
		}
		if d := s.choiceDistance(c.Config, to); d < near[e] && (found == nil || d < least) {
			if mean, sd := fit.at(s.point(c.Config)); mean+2*sd > lead.mean {
				found, least = c, d
			}
		}
	}
	return found
}

// launch measures a candidate, and mends what is refused as the refusal says.
func (s *raceState) launch(c *contender, stage string, share float64) {
	t := s.measure(Proposal{Stage: stage, Label: c.Label, Config: c.Config, Share: share}, c.origin)
	s.mend(t, share)
}

// mend launches what the refusal of a trial asks for, and of that again.
func (s *raceState) mend(t *trial, share float64) {
	for range mostRepairs {
		if t == nil || t.end.Status != Refused || len(t.end.Moves) == 0 || s.searching() <= 0 {
			return
		}
		t = s.launchChange(t, t.end.Moves[0], RepairStage, share)
	}
}

// launchChange launches a change of what a trial measured, and keeps what came of
// it; nil where it need not or cannot be launched.
func (s *raceState) launchChange(from *trial, change Change, stage string, share float64) *trial {
	config := change.Apply(from.Config)
	if s.launched(config) || s.failedGuard(config) || s.search.Refuse(config) != "" {
		return nil
	}
	label := change.Label
	if change.Why != "" {
		label += " (" + change.Why + ")"
	}
	t := s.measure(Proposal{Stage: stage, Label: label, Config: config, Share: share}, from.origin.with(change))
	e := Entry{Label: from.name + ": " + label, Trial: t.Trial, Finding: s.note(t)}
	if from.measured() && t.measured() && from.Share == share {
		e.Gain = new(math.Expm1(t.log - from.log))
	}
	if ref := s.reference(share); t.measured() && s.based() && !math.IsNaN(ref) {
		e.Total = new(math.Expm1(t.log - ref))
	}
	s.steps = append(s.steps, e)
	return t
}

// repair gives the best candidate of each engine what its bottleneck asks for, before
// any is given up: an engine is not judged by its defaults.
func (s *raceState) repair() {
	s.begin(RepairStage)
	for _, t := range s.bestOfEachEngine() {
		for range mostRepairs {
			if len(t.end.Moves) == 0 || s.searching() <= 1 {
				break
			}
			next := s.launchChange(t, t.end.Moves[0], RepairStage, t.Share)
			if next == nil || !next.measured() || !s.bounds.prefer(next.score, t.score) {
				break
			}
			t = next
		}
	}
}

// final launches what was not shown to be worse under all of the load, where
// candidates met only a part of it.
func (s *raceState) final() {
	s.begin(FinalStage)
	if s.short() == 0 {
		return
	}
	for _, t := range s.survivors() {
		if s.searching() <= 0 {
			break
		}
		s.measure(Proposal{Stage: FinalStage, Label: t.name, Config: t.Config}, t.origin)
	}
}

// mostFinals is how many go from the first rung to the second.
const mostFinals = 3

// survivors are the best that were not shown to be worse.
func (s *raceState) survivors() []*trial {
	var out []*trial
	for _, st := range s.standings() {
		if len(out) < mostFinals && len(s.launches(st.trial.Config, 0)) == 0 && s.worse(st.trial) == nil {
			out = append(out, st.trial)
		}
	}
	return out
}

// distinct are the best that differ in a choice, since around two that do not, the same
// would be tried; and the best of each engine.
func (s *raceState) distinct() []standing {
	var out []standing
	for _, st := range s.standings() {
		config := st.trial.Config
		sameEngine := func(o standing) bool { return o.trial.Config[engineParameter] == config[engineParameter] }
		sameChoices := func(o standing) bool {
			return sameEngine(o) && s.choiceDistance(o.trial.Config, config) == 0
		}
		if len(out) < refinedAround && !slices.ContainsFunc(out, sameChoices) || !slices.ContainsFunc(out, sameEngine) {
			out = append(out, st)
		}
	}
	return out
}

// launchesOf are the trials of the search that had a configuration.
func (s *raceState) launchesOf(config Config) []int {
	var out []int
	for _, t := range s.trials {
		if t.Pass == 0 && maps.Equal(t.Config, config) {
			out = append(out, t.Trial)
		}
	}
	return out
}
