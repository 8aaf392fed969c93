package tune

import (
	"slices"

	"perflab/internal/tune/surrogate"
)

// What is looked at for the next launch, beside the candidates and what is near to the
// best that were launched.
const (
	refinedAround = 3  // of the best are refined
	drawn         = 24 // configurations by chance
	drawnBlind    = 200
	climbs        = 3 // of the most promising, from which better ones are looked for
	climbSteps    = 4 // by one setting each
)

// option is a configuration that may be launched next.
type option struct {
	from      *trial // what it is a change of; nil for a candidate
	change    Change
	config    Config
	requested bool       // a bottleneck asks for it
	candidate *contender // where it is one
	worth     float64
}

// refine spends what is left of the search, each time on the configuration by which a
// launch is expected to gain most.
func (s *raceState) refine() {
	s.begin(RefineStage)
	for s.explore(RefineStage, 0) {
	}
}

// explore launches what promises most; false where nothing is worth it, or no launch is left.
func (s *raceState) explore(stage string, share float64) bool {
	reason := s.stopReason
	for s.room(); s.searching() > 0; s.room() {
		if o := s.nextOption(); o != nil {
			s.stopReason = reason
			s.launchOption(o, stage, share)
			return true
		}
		if !s.land() { // what is under way may promise more
			return false
		}
	}
	return false
}

// launchOption launches an option. What is refused is mended where it is the first of its
// engine or checkpoint: later on there is better to do.
func (s *raceState) launchOption(o *option, stage string, share float64) {
	then := func(t *trial) {
		if stage == RaceStage {
			s.mend(t, share, 0)
		}
	}
	if o.from == nil {
		s.launch(Proposal{Stage: stage, Label: o.candidate.Label, Config: o.config, Share: share}, o.candidate.origin, then)
	} else {
		s.launchChange(o.from, o.change, stage, share, then)
	}
}

// nextOption is the option to launch; nil where none is worth it.
func (s *raceState) nextOption() *option {
	p := s.pool()
	p.climb()
	best := p.best(1)
	if len(best) > 0 && best[0].worth < s.curiosity() {
		for _, look := range []func() *option{p.transplant, p.closed, p.uncovered} {
			if o := look(); o != nil {
				return o
			}
		}
	}
	if len(best) > 0 && best[0].worth < doubted*s.objective.MinGain && s.leader() != nil {
		if o := p.doubtful(); o != nil {
			return o
		}
	}
	if s.bounded() && len(best) == 0 {
		if o := p.uncovered(); o != nil {
			return o
		}
	}
	switch {
	case len(best) == 0:
		s.stopReason = &Finding{Kind: NothingLeft}
		return nil
	case best[0].worth < s.worthwhile():
		s.stopReason = &Finding{Kind: NoneWorth, N: len(p.options), Value: &best[0].worth}
		return nil
	}
	return best[0]
}

// The expected gain of a launch, in units of the gain that matters, under which it is better
// spent on what has not run yet: what is expected is no better than the predictor, and launches
// of all values together with others show where that is wrong. A small budget has fewer launches
// to follow what they show: there it is one. While nothing meets the bounds it is the chance to meet
// them: more of the like of what misses them teaches little.
const (
	curious          = 3
	curiousOfMeeting = 0.1
)

// curiosity is what the launch that promises most is to promise at least: see worth.
func (s *launcher) curiosity() float64 {
	least := s.objective.MinGain
	if s.bounded() && s.left()+len(s.trials) >= smallBudget {
		least *= curious
	}
	if lead := s.leader(); lead != nil && lead.score.class == missing {
		least = max(least, curiousOfMeeting)
	}
	return least
}

// transplant is the leader's configuration on another engine, where that engine has run with
// no choices like these and may yet be better: what suits a load in one mostly suits it in
// another, and one launch of an engine, of whatever was predicted best, says little about it.
func (p *pool) transplant() *option {
	lead := p.leader()
	if lead == nil {
		return nil
	}
	to := lead.trial.Config
	done := map[string]bool{to[engineParameter]: true}
	for _, t := range p.trials {
		if !t.spoiled() && p.choiceDistance(t.Config, to) == 0 {
			done[t.Config[engineParameter]] = true
		}
	}
	var best *option
	most := lead.mean
	for _, c := range p.nearest(to) {
		config := p.alike(c.Config, to)
		if done[config[engineParameter]] || !p.open(config) {
			continue
		}
		if mean, sd := p.fit().At(p.point(config)); mean+2*sd > most {
			best, most = p.optionOf(config), mean+2*sd
		}
	}
	return best
}

// nearest are the candidates that differ least in choices from a configuration, one of every engine.
func (p *pool) nearest(to Config) []*contender {
	var out []*contender
	for _, c := range p.candidates { // the best predicted first
		if !c.runnable() {
			continue
		}
		i := slices.IndexFunc(out, func(o *contender) bool { return o.Config[engineParameter] == c.Config[engineParameter] })
		switch {
		case i < 0:
			out = append(out, c)
		case p.choiceDistance(c.Config, to) < p.choiceDistance(out[i].Config, to):
			out[i] = c
		}
	}
	return out
}

// alike takes over whatever of another configuration an engine can take.
func (p *pool) alike(c, to Config) Config {
	for _, axis := range p.axes {
		if axis.Name == engineParameter || c[axis.Name] == to[axis.Name] {
			continue
		}
		if next := c.with(axis.Name, to[axis.Name]); p.search.Refuse(next) == "" {
			c = next
		}
	}
	return c
}

// doubted is the expected gain of a launch, in units of the gain that matters, under which the
// beliefs that expect it are put to the test.
const doubted = 0.25

// doubtful is the option that promises most to who believes neither the predictor nor that
// what was launched says much of the rest; nil where that is not worth a launch either.
func (p *pool) doubtful() *option {
	var best *option
	most := p.worthwhile()
	for _, o := range p.options {
		b := p.rival().Doubt(p.point(o.config))
		if gain := surrogate.Expected(b.Mean, b.SD) * p.runChance(o.config); gain > most {
			best, most = o, gain
		}
	}
	return best
}
