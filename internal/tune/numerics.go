package tune

import (
	"math"
	"slices"

	"perflab/internal/tune/answers"
)

// guarded is a history with what the accuracy guard found, by the name of the
// numerics that decide a configuration's answers; see Rules.Numerics.
type guarded struct {
	*history
	rules    Rules
	verdicts map[string]answers.Test // the last one of each
	diverged map[string]float64      // agreement of what the early comparison of answers rejected
	tests    []answers.Test          // in order
}

// request adds to a proposal what the accuracy guard needs of it: the questions
// where the answers of its numerics are not known yet, and in a short rung the few
// continuations that tell cheaply whether they are worth asking.
func (g *guarded) request(p *Proposal) {
	if g.objective.Guard == nil {
		return
	}
	numerics := g.rules.Numerics(p.Config)
	_, known := g.verdicts[numerics]
	known = known || g.asking(numerics)
	switch {
	case p.Stage == BaselineStage:
		p.Questions = g.baselineAnswers() == "" && !g.asking(numerics)
		p.Compare = g.objective.Guard.Agreement > 0
	case g.answersAlike(p.Config):
	case p.Pass > 0:
		// Fresh evidence for what is recommended, once: a second test of the same
		// numerics would reject some that pass, or pass some that were rejected.
		p.Questions = g.askedAgain(numerics) == nil
	case known:
	case p.Share > 0:
		p.Compare = g.objective.Guard.Agreement > 0
	default:
		p.Questions = true
	}
}

// asking reports whether a trial under way asks the questions for numerics.
func (g *guarded) asking(numerics string) bool {
	return slices.ContainsFunc(g.trials, func(t *trial) bool { return t.open && t.Questions && g.rules.Numerics(t.Config) == numerics })
}

// askedAgain is the launch after the search that was asked the questions for
// numerics; nil for none.
func (g *guarded) askedAgain(numerics string) *trial {
	for _, t := range g.trials {
		if t.Pass > 0 && t.Questions && (t.open || t.end.Status == Measured) && g.rules.Numerics(t.Config) == numerics {
			return t
		}
	}
	return nil
}

// answersAlike reports whether a configuration answers as the baseline does.
func (g *guarded) answersAlike(config Config) bool {
	return g.rules.Numerics(config) == g.rules.Numerics(g.baseConfig())
}

// baselineAnswers are those of the baseline's first launch that has any.
func (g *guarded) baselineAnswers() string {
	for _, t := range g.trials {
		if t.Stage == BaselineStage && t.end.Answers != "" {
			return t.end.Answers
		}
	}
	return ""
}

// judge holds a trial against the guard: one whose answers are not shown to be
// those of the baseline is as one that misses a bound by far, and so is every
// other of its numerics. No answers pass nothing.
func (g *guarded) judge(t *trial) {
	guard := g.objective.Guard
	if guard == nil || t.Stage == BaselineStage || t.end.Status != Measured || g.answersAlike(t.Config) {
		return
	}
	numerics := g.rules.Numerics(t.Config)
	if t.Questions {
		// Fresh answers in the confirmation stand for themselves: those of the search
		// chose what is confirmed.
		verdict, _ := guard.Judge(t.name, g.baselineAnswers(), t.end.Answers)
		g.verdicts[numerics] = verdict
		g.tests = append(g.tests, verdict)
	}
	if v, ok := t.end.Figures[g.space.Primary][AgreementFigure]; ok && t.Compare && v < guard.Agreement {
		g.diverged[numerics] = v
	}
	if g.failedGuard(t.Config) && t.score.class != none {
		t.score = t.score.failingGuard()
	}
}

// failedGuard reports whether the guard has rejected what decides a
// configuration's answers.
func (g *guarded) failedGuard(config Config) bool {
	if g.objective.Guard == nil || g.answersAlike(config) {
		return false
	}
	numerics := g.rules.Numerics(config)
	if _, diverged := g.diverged[numerics]; diverged {
		return true
	}
	p, ok := g.verdicts[numerics]
	return ok && !p.Accepted
}

// scoreOf is how a configuration stands by all its launches under the share of t:
// bounds are held against the means.
func (g *guarded) scoreOf(t *trial) Score {
	all := g.launches(t.Config, t.Share)
	if len(all) < 2 || t.score.class == none {
		return t.score
	}
	s := g.bounds.Score(Measured, mean(all))
	if p, ok := g.verdicts[g.rules.Numerics(t.Config)]; ok && !p.Accepted {
		return s.failingGuard()
	}
	return s
}

// failingGuard is a score of what answers otherwise than the baseline.
func (s Score) failingGuard() Score {
	s.class, s.miss = missing, math.Inf(1)
	return s
}
