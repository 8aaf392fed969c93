package foresight

import "perflab/internal/tune"

// Result is what the predictions so far say.
func (s *Search) Result() tune.Result {
	s.Over() // it has begun
	e := s.ground.Evidence
	e.Settings, e.Outside = s.settings, s.outside
	r := tune.Result{Forecast: &e}
	if s.based() {
		r.Baseline = s.base.Trial
	}
	r.Winner = r.Baseline
	p := s.pick()
	if p != nil && p != s.base {
		r.Winner, r.Challenger = p.Trial, p.Trial
	}
	if s.base != nil {
		for _, k := range s.around.Candidates {
			if k.Named {
				e.Named = append(e.Named, s.entry(k))
			}
		}
	}
	judge := s.ground.Judge()
	if p != nil && s.based() {
		r.Gain = judge.Gain(s.base.Figures, p.Figures)
		r.Misses = judge.Misses(p.Figures)
	}
	if r.Gain != nil && s.ratio != nil && s.ended {
		// The error is a ratio: of what the trials say, which may be of more requests.
		by := (1 + *r.Gain) / s.ratio.Value
		r.Interval = &tune.Span{Value: *r.Gain, Low: by*s.ratio.Low - 1, High: by*s.ratio.High - 1}
	}
	r.Verdict = s.verdict(p, r)
	return r
}

// entry is what is predicted of a candidate that the study names.
func (s *Search) entry(k tune.Candidate) tune.Entry {
	out := tune.Entry{Label: k.Label}
	if k.Refused != "" {
		out.Finding = &tune.Finding{Kind: tune.RefusedByRule, Reason: k.Refused}
		return out
	}
	f := s.of[k.Label]
	if f == nil || f.Trial == 0 {
		return out
	}
	out.Trial, out.Finding = f.Trial, f.Note
	if f.Judged.Known() && s.based() {
		out.Total = s.ground.Judge().Gain(s.base.Figures, f.Figures)
	}
	return out
}

// verdict is the conclusion.
func (s *Search) verdict(p *tune.Foreseen, r tune.Result) tune.Finding {
	f := tune.Finding{N: len(s.ground.Seen), Misses: r.Misses}
	judge := s.ground.Judge()
	switch {
	case !s.ended:
		f.After = new(s.trials)
		f.Kind = tune.NothingYet
		if p != nil {
			f.Kind, f.Name = tune.PredictedLeads, p.Label()
		}
		return f
	case p == nil:
		f.Kind, f.Against, f.Cause = tune.PredictedNothing, s.base.Label(), s.base.Note
		return f
	case p == s.base:
		f.Kind = tune.PredictedBaseline
		return f
	}
	f.Name, f.Value = p.Label(), &p.Judged.Value
	if !s.based() {
		f.Kind, f.Cause = tune.PredictedAlone, s.base.Note
		return f
	}
	f.Kind, f.Pair = tune.PredictedBetter, s.ground.Pair(p, s.base)
	if r.Interval != nil {
		f.Comparison = &tune.Comparison{Label: f.Name, Against: s.base.Label(), Workload: s.space.Primary, MinGain: judge.MinGain, Ratio: tune.Span{Value: 1 + r.Interval.Value, Low: 1 + r.Interval.Low, High: 1 + r.Interval.High}}
	}
	return f
}
