package tune

import "math"

// guard adds to a proposal what the accuracy guard needs of it: the questions where
// the answers of its numerics are not known yet, and in a short rung the few
// continuations that tell cheaply whether they are worth asking.
func (c *course) guard(p *Proposal) {
	numerics := c.guide.Numerics(p.Config)
	_, known := c.given[numerics]
	switch {
	case p.Stage == BaselineStage:
		p.Questions = p.Trial == 1 || c.answers() == ""
		p.Compare = c.objective.Guard.Agreement > 0
	case c.alike(p.Config):
	case p.Pass > 0:
		// Fresh evidence for what is recommended, once: a second test of the same
		// numerics would reject some that pass, or pass some that were rejected.
		p.Questions = c.fresh(numerics) == nil
	case known:
	case p.Share > 0:
		p.Compare = c.objective.Guard.Agreement > 0
	default:
		p.Questions = true
	}
}

// fresh is the launch after the search that was asked the questions for numerics;
// nil for none.
func (c *course) fresh(numerics string) *trial {
	for _, t := range c.trials {
		if t.Pass > 0 && t.Questions && t.end.Status == Measured && c.guide.Numerics(t.Config) == numerics {
			return t
		}
	}
	return nil
}

// alike reports whether a configuration answers as the baseline does.
func (c *course) alike(config Config) bool {
	return c.guide.Numerics(config) == c.guide.Numerics(Change{}.Apply(c.space.Baseline))
}

// answers are the baseline's, of its first launch that has any.
func (c *course) answers() string {
	for _, t := range c.trials {
		if t.Stage == BaselineStage && t.end.Answers != "" {
			return t.end.Answers
		}
	}
	return ""
}

// judge holds a trial against the guard: one whose answers are not shown to be
// those of the baseline is as one that misses a bound by far, and so is every
// other of its numerics. No answers pass nothing.
func (c *course) judge(t *trial) {
	g := c.objective.Guard
	if g == nil || t.Stage == BaselineStage || t.end.Status != Measured || c.alike(t.Config) {
		return
	}
	numerics := c.guide.Numerics(t.Config)
	if t.Questions {
		// Fresh answers in the confirmation stand for themselves: those of the search
		// chose what is confirmed.
		verdict, _ := g.Judge(t.name, c.answers(), t.end.Answers)
		c.given[numerics] = verdict
		c.verdicts = append(c.verdicts, verdict)
	}
	if v, ok := t.end.Figures[c.space.Primary][AgreementFigure]; ok && t.Compare && v < g.Agreement {
		c.apart[numerics] = v
	}
	if c.barred(t.Config) && t.score.class != none {
		t.score.class, t.score.miss = missing, math.Inf(1)
	}
}

// barred reports whether the guard has rejected what decides a configuration's
// answers.
func (c *course) barred(config Config) bool {
	if c.objective.Guard == nil || c.alike(config) {
		return false
	}
	numerics := c.guide.Numerics(config)
	if _, apart := c.apart[numerics]; apart {
		return true
	}
	p, ok := c.given[numerics]
	return ok && !p.Accepted
}
