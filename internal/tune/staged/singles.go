package staged

import (
	"slices"

	"perflab/internal/tune"
)

// Singles are configurations that are measured once each: what a Survey concludes from, and
// what every search does that repeats nothing. The first is what others are held against.
type Singles struct {
	Stage     string // of all but a baseline
	Primary   string // workload
	Objective tune.Objective
	Budget    tune.Budget

	trials []*trial
}

// Add takes a trial that has ended.
func (s *Singles) Add(p tune.Proposal, o tune.Observation) {
	name := p.Label
	if p.Stage == tune.BaselineStage {
		name = tune.TheBaseline
	}
	s.trials = append(s.trials, ended(s.Objective, s.Primary, p, name, o))
}

// Spent reports whether the budget has no room for a further trial, as long as the longest.
func (s *Singles) Spent() bool {
	sum, longest := seconds(s.trials)
	return s.Budget.Trials > 0 && len(s.trials) >= s.Budget.Trials || s.Budget.Time > 0 && sum+longest > s.Budget.Time.Seconds()
}

// Ranked are the places of those that have a figure, in the order in which they were added:
// the best first, of equals the earliest.
func (s *Singles) Ranked() []int {
	var out []int
	for i, t := range s.trials {
		if t.measured() {
			out = append(out, i)
		}
	}
	slices.SortStableFunc(out, func(a, b int) int { return s.Objective.Order(s.trials[a].score, s.trials[b].score) })
	return out
}

// Result is what the trials so far say. The winner is the best single measurement.
func (s *Singles) Result() tune.Result {
	if len(s.trials) == 0 {
		return tune.Result{Verdict: tune.Finding{Kind: tune.NothingYet}}
	}
	first, best := s.trials[0], s.trials[0]
	ranked := s.Ranked()
	if len(ranked) > 0 {
		best = s.trials[ranked[0]]
	}
	gain := func(t *trial) *float64 { return s.Objective.Gain(first.figures(s.Primary), t.figures(s.Primary)) }
	r := tune.Result{Baseline: first.id(), Winner: best.id(), Gain: gain(best)}
	if best.measured() {
		r.Misses = s.Objective.Misses(best.figures(s.Primary))
	}
	r.Verdict = s.verdict(first, best, len(ranked), r.Misses)
	d := tune.Decision{Stage: s.Stage, Before: first.id(), Winner: best.id(), Gain: gain(best), Total: gain(best), Reason: new(r.Verdict)}
	for _, t := range s.trials {
		if t.Stage == tune.BaselineStage {
			continue
		}
		d.Trials = append(d.Trials, t.Trial)
		d.Entries = append(d.Entries, tune.Entry{Label: t.Label, Trial: t.Trial, Gain: gain(t), Total: gain(t), Finding: t.note(s.Objective, s.Primary)})
	}
	if len(d.Entries) > 0 {
		r.Stages = []tune.Decision{d}
	}
	if best != first {
		r.Challenger = best.id()
	}
	return r
}

// verdict is the conclusion.
func (s *Singles) verdict(first, best *trial, measured int, misses []tune.Constraint) tune.Finding {
	f := tune.Finding{Kind: tune.SearchBest, N: measured, Misses: misses}
	switch {
	case !best.measured():
		f = tune.Finding{Kind: tune.NothingMeasured, Cause: first.note(s.Objective, s.Primary)}
		if first.Stage == tune.BaselineStage {
			f.Against = first.name
		}
	case first.Stage != tune.BaselineStage:
		f.Kind, f.Name, f.Workload, f.Value = tune.SurveyBest, best.name, s.Primary, &best.score.Value
	case measured == 1 && best == first:
		f = tune.Finding{Kind: tune.NothingBeside}
	case best == first:
		f.Kind, f.N, f.Value = tune.BaselineUnbeaten, measured-1, &best.score.Value
	case !first.measured():
		f.Name, f.Value, f.Cause = best.name, &best.score.Value, first.note(s.Objective, s.Primary)
	default:
		f.Pair = pair(best, first)
	}
	return f
}
