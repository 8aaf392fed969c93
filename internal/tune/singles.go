package tune

import "slices"

// Singles are configurations that are measured once each: what a Survey concludes from, and
// what every search does that repeats nothing. The first is what others are held against.
type Singles struct {
	Stage     string // of all but a baseline
	Primary   string // workload
	Objective Objective
	Budget    Budget

	trials []*trial
}

// Add takes a trial that has ended.
func (s *Singles) Add(p Proposal, o Observation) {
	t := &trial{Proposal: p, name: p.Label, end: o, score: s.Objective.score(o.Status, o.Figures[s.Primary])}
	if p.Stage == BaselineStage {
		t.name = theBaseline.candidate
	}
	s.trials = append(s.trials, t)
}

// Spent reports whether the budget has no room for a further trial, as long as the longest.
func (s *Singles) Spent() bool { return s.Budget.used(s.trials) }

// Ranked are the places of those that have a figure, in the order in which they were added:
// the best first, of equals the earliest.
func (s *Singles) Ranked() []int {
	var out []int
	for i, t := range s.trials {
		if t.measured() {
			out = append(out, i)
		}
	}
	slices.SortStableFunc(out, func(a, b int) int { return s.Objective.order(s.trials[a].score, s.trials[b].score) })
	return out
}

// Result is what the trials so far say. The winner is the best single measurement.
func (s *Singles) Result() Result {
	if len(s.trials) == 0 {
		return Result{Verdict: Finding{Kind: NothingYet}}
	}
	first, best := s.trials[0], s.trials[0]
	ranked := s.Ranked()
	if len(ranked) > 0 {
		best = s.trials[ranked[0]]
	}
	gain := func(t *trial) *float64 { return s.Objective.Gain(first.figures(s.Primary), t.figures(s.Primary)) }
	r := Result{Baseline: first.id(), Winner: best.id(), Gain: gain(best)}
	if best.measured() {
		r.Misses = s.Objective.Misses(best.figures(s.Primary))
	}
	r.Verdict = s.verdict(first, best, len(ranked), r.Misses)
	d := Decision{Stage: s.Stage, Before: first.id(), Winner: best.id(), Gain: gain(best), Total: gain(best), Reason: new(r.Verdict)}
	for _, t := range s.trials {
		if t.Stage == BaselineStage {
			continue
		}
		d.Trials = append(d.Trials, t.Trial)
		d.Entries = append(d.Entries, Entry{Label: t.Label, Trial: t.Trial, Gain: gain(t), Total: gain(t), Finding: s.Objective.noteOn(t, s.Primary, t.figures(s.Primary))})
	}
	if len(d.Entries) > 0 {
		r.Stages = []Decision{d}
	}
	if best != first {
		r.Challenger = best.id()
	}
	return r
}

// verdict is the conclusion.
func (s *Singles) verdict(first, best *trial, measured int, misses []Constraint) Finding {
	f := Finding{Kind: SearchBest, N: measured, Misses: misses}
	switch {
	case !best.measured():
		f = Finding{Kind: NothingMeasured, Cause: s.Objective.noteOn(first, s.Primary, nil)}
		if first.Stage == BaselineStage {
			f.Against = first.name
		}
	case first.Stage != BaselineStage:
		f.Kind, f.Name, f.Workload, f.Value = SurveyBest, best.name, s.Primary, &best.score.value
	case measured == 1 && best == first:
		f = Finding{Kind: NothingBeside}
	case best == first:
		f.Kind, f.N, f.Value = BaselineUnbeaten, measured-1, &best.score.value
	case !first.measured():
		f.Name, f.Value, f.Cause = best.name, &best.score.value, s.Objective.noteOn(first, s.Primary, nil)
	default:
		f.Pair = pair(best, first)
	}
	return f
}
