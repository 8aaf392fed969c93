package tune

// note is what is wrong with a trial.
func (s *stagedState) note(t *trial) *Finding {
	return s.objective.noteOn(t, s.space.Primary, t.figures(s.space.Primary))
}

// decided is a held against b, with why the SLOs set above over below, where they did.
func (s *stagedState) decided(a, b, above, below *trial) *Pair {
	return s.objective.decided(pair(a, b), above, below, s.space.Primary)
}

// reason is what a stage concluded; best is its best candidate apart from the
// incumbent, if any was tried.
func (s *stagedState) reason(before, best *trial) *Finding {
	o := s.objective
	switch {
	case !best.measured():
		f := &Finding{Kind: StageEmpty}
		if best != nil {
			f.Name, f.Cause = best.name, s.note(best)
		}
		if before != nil {
			f.Against = before.name
		}
		return f
	case before == nil:
		return &Finding{Kind: StageFirst, Name: best.name, Value: &best.score.value}
	case s.lead == before && o.prefer(best.score, before.score):
		return &Finding{Kind: StageNoGain, Pair: pair(best, before), Value: &o.MinGain}
	case s.lead == before:
		return &Finding{Kind: StageStays, Pair: s.decided(best, before, before, best)}
	}
	f := &Finding{Kind: StageGoesOn, Pair: s.decided(best, before, best, before)}
	if before != s.base && s.gain(s.base, best) != nil {
		f.Total = pair(best, s.base)
	}
	return f
}

// verdict is the study's conclusion; misses are the winner's.
func (s *stagedState) verdict(misses []Constraint) Finding {
	base, lead := s.base, s.lead
	switch {
	case !s.finished:
		return s.soFar()
	case lead == nil:
		return Finding{Kind: NothingMeasured, Against: theBaseline.candidate, Cause: s.note(base)}
	case !base.measured() && !s.leadAgain.measured():
		return Finding{Kind: NoBaselineAgain, Name: lead.name, Cause: s.note(base), Again: s.note(s.leadAgain)}
	case !base.measured():
		return Finding{Kind: NoBaseline, Name: lead.name, N: s.tried(), Value: &s.leadAgain.score.value, Fresh: true, Cause: s.note(base), Misses: misses}
	case lead == base:
		f := Finding{Kind: BaselineUnbeaten, N: s.tried(), Fresh: s.baseAgain.measured(), Misses: misses}
		if f.N == 0 {
			f.Kind = NothingElse
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
		return Finding{Kind: NotConfirmed, Pair: pair(lead, base), Name: lost.name, Cause: s.note(lost)}
	case s.shown():
		return Finding{Kind: Confirmed, Repeated: s.decided(s.leadAgain, s.baseAgain, s.leadAgain, s.baseAgain), N: s.tried(), Misses: misses}
	}
	return Finding{
		Kind: NotRepeated, Pair: pair(lead, base),
		Repeated: s.decided(s.leadAgain, s.baseAgain, s.baseAgain, s.leadAgain), Misses: misses,
	}
}

func (s *stagedState) soFar() Finding {
	f := Finding{After: new(len(s.trials))}
	switch {
	case s.lead == nil:
		f.Kind = NothingYet
	case s.lead == s.base:
		f.Kind = BaselineLeads
	case !s.base.measured():
		f.Kind, f.Name, f.Cause = CandidateLeads, s.lead.name, s.note(s.base)
	default:
		f.Kind, f.Pair = CandidateLeads, pair(s.lead, s.base)
	}
	return f
}

// tried counts the configurations of the search that have figures, the
// baseline apart: the winner was picked from so many.
func (s *stagedState) tried() int {
	n := 0
	for _, t := range s.trials {
		if t.Pass == 0 && t != s.base && t.measured() {
			n++
		}
	}
	return n
}
