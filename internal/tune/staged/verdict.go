package staged

import "perflab/internal/tune"

// note is what is wrong with a trial.
func (s *state) note(t *trial) *tune.Finding {
	return t.note(s.objective, s.space.Primary)
}

// decided is a held against b, with why the SLOs set above over below, where they did.
func (s *state) decided(a, b, above, below *trial) *tune.Pair {
	return s.objective.Decide(pair(a, b), above.name, above.score, below.score, below.figures(s.space.Primary))
}

// reason is what a stage concluded; best is its best candidate apart from the
// incumbent, if any was tried.
func (s *state) reason(before, best *trial) *tune.Finding {
	o := s.objective
	switch {
	case !best.measured():
		f := &tune.Finding{Kind: tune.StageEmpty}
		if best != nil {
			f.Name, f.Cause = best.name, s.note(best)
		}
		if before != nil {
			f.Against = before.name
		}
		return f
	case before == nil:
		return &tune.Finding{Kind: tune.StageFirst, Name: best.name, Value: &best.score.Value}
	case s.lead == before && o.Order(best.score, before.score) < 0:
		return &tune.Finding{Kind: tune.StageNoGain, Pair: pair(best, before), Value: &o.MinGain}
	case s.lead == before:
		return &tune.Finding{Kind: tune.StageStays, Pair: s.decided(best, before, before, best)}
	}
	f := &tune.Finding{Kind: tune.StageGoesOn, Pair: s.decided(best, before, best, before)}
	if before != s.base && s.gain(s.base, best) != nil {
		f.Total = pair(best, s.base)
	}
	return f
}

// verdict is the study's conclusion; misses are the winner's.
func (s *state) verdict(misses []tune.Constraint) tune.Finding {
	base, lead := s.base, s.lead
	switch {
	case !s.finished:
		return s.soFar()
	case lead == nil:
		return tune.Finding{Kind: tune.NothingMeasured, Against: tune.TheBaseline, Cause: s.note(base)}
	case !base.measured() && !s.leadAgain.measured():
		return tune.Finding{Kind: tune.NoBaselineAgain, Name: lead.name, Cause: s.note(base), Again: s.note(s.leadAgain)}
	case !base.measured():
		return tune.Finding{Kind: tune.NoBaseline, Name: lead.name, N: s.tried(), Value: &s.leadAgain.score.Value, Fresh: true, Cause: s.note(base), Misses: misses}
	case lead == base:
		f := tune.Finding{Kind: tune.BaselineUnbeaten, N: s.tried(), Fresh: s.baseAgain.measured(), Misses: misses}
		if f.N == 0 {
			f.Kind = tune.NothingElse
		}
		if !f.Fresh {
			f.Cause = s.note(s.baseAgain)
		}
		return f
	case !s.confirmed():
		lost := s.leadAgain
		if !s.baseAgain.measured() {
			lost = s.baseAgain
		}
		return tune.Finding{Kind: tune.NotConfirmed, Pair: pair(lead, base), Name: lost.name, Cause: s.note(lost)}
	case s.shown():
		return tune.Finding{Kind: tune.Confirmed, Repeated: s.decided(s.leadAgain, s.baseAgain, s.leadAgain, s.baseAgain), N: s.tried(), Misses: misses}
	}
	return tune.Finding{
		Kind: tune.NotRepeated, Pair: pair(lead, base),
		Repeated: s.decided(s.leadAgain, s.baseAgain, s.baseAgain, s.leadAgain), Misses: misses,
	}
}

func (s *state) soFar() tune.Finding {
	f := tune.Finding{After: new(len(s.trials))}
	switch {
	case s.lead == nil:
		f.Kind = tune.NothingYet
	case s.lead == s.base:
		f.Kind = tune.BaselineLeads
	case !s.base.measured():
		f.Kind, f.Name, f.Cause = tune.CandidateLeads, s.lead.name, s.note(s.base)
	default:
		f.Kind, f.Pair = tune.CandidateLeads, pair(s.lead, s.base)
	}
	return f
}

// tried counts the configurations of the search that have figures, the
// baseline apart: the winner was picked from so many.
func (s *state) tried() int {
	n := 0
	for _, t := range s.trials {
		if t.Pass == 0 && t != s.base && t.measured() {
			n++
		}
	}
	return n
}
