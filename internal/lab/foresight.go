package lab

import (
	"math"
	"slices"

	"perflab/internal/outcome"
	"perflab/internal/study"
	"perflab/internal/tune"
	"perflab/internal/tune/foresight"
)

// forecast are the facts of a search by prediction.
func (m *factsMaker) forecast(e *tune.ForecastEvidence) *outcome.Forecast {
	if e == nil {
		return nil
	}
	return &outcome.Forecast{Predicted: e.Predicted, Unknown: e.Unknown, Refused: e.Refused, Cut: e.Cut, Named: e.Named, Settings: e.Settings, Outside: e.Outside}
}

// publish gives trials the figures that were published of their configurations, and holds
// what is recommended against the study's reference.
func (m *factsMaker) publish(f *outcome.Study) {
	figures := map[string]float64{}
	for _, k := range m.PublishedFigures() {
		figures[m.deployment(k.Config)] = k.Figure
	}
	for i := range f.Trials {
		if v, ok := figures[m.deployment(f.Trials[i].Config)]; ok {
			f.Trials[i].Published = &v
		}
	}
	if m.Reference == nil {
		return
	}
	r := &outcome.Reference{Label: m.Reference.Label, Source: m.Reference.Source}
	f.Reference = r
	ref := m.deployment(m.ReferenceConfig())
	if v, ok := figures[ref]; ok {
		r.Published = &v
	}
	r.Pairs, r.Alike, r.Otherwise = m.order(f.Trials)
	i := slices.IndexFunc(f.Trials, func(t outcome.Trial) bool { return m.deployment(t.Config) == ref })
	if i < 0 {
		if _, err := m.Configure(m.ReferenceConfig(), study.Installed{}); err != nil {
			r.Refused = err.Error()
		}
		return
	}
	m.hold(f, r, f.Trials[i])
}

// hold compares what is recommended with the trial of the reference.
func (m *factsMaker) hold(f *outcome.Study, r *outcome.Reference, t outcome.Trial) {
	r.Trial, r.Command = t.ID, t.Command
	if t.Status != tune.Measured {
		r.Refused = t.Reason
	}
	if m.Baseline != nil {
		base := pickedTrial(f.Trials, f.Baseline)
		if base != nil && base.ID != t.ID {
			r.Gain = m.Goal.Gain(m.judgedFigures(*base), m.judgedFigures(t))
			r.PublishedGain = m.publishedGain(base.Published, r.Published)
		}
	}
	won := pickedTrial(f.Trials, f.Recommended)
	if won == nil {
		return
	}
	r.Recommended = won.Published
	if r.Same = m.deployment(won.Config) == m.deployment(t.Config); r.Same {
		return
	}
	g := m.Goal.Gain(m.judgedFigures(t), m.judgedFigures(*won))
	if g == nil {
		return
	}
	r.Over = &tune.Span{Value: *g}
	d, ok := m.predictor.(foresight.Doubter)
	if !ok || f.Partial || f.Forecast == nil || len(m.Objective.Weights) > 1 {
		return
	}
	if x, _, ok := d.Doubt(won.Config, t.Config, m.Workloads[0].Name); ok {
		by := (1 + *g) / x.Value
		r.Over.Low, r.Over.High = by*x.Low-1, by*x.High-1
	}
}

// judgedFigures are those of the objective of a trial: of weighed workloads their weighted
// geometric mean.
func (m *factsMaker) judgedFigures(t outcome.Trial) map[string]float64 {
	sum, all := 0.0, 0.0
	for _, r := range t.Runs {
		weight := m.Objective.Weights[r.Workload]
		if len(m.Objective.Weights) == 0 && r.Workload == m.Workloads[0].Name {
			weight = 1
		}
		if v := r.Summary.Figures[m.Metric.Name]; weight > 0 {
			sum, all = sum+weight*math.Log(v), all+weight
		}
	}
	if all == 0 || math.IsNaN(sum) || math.IsInf(sum, 0) {
		return nil
	}
	return map[string]float64{m.Metric.Name: math.Exp(sum / all)}
}

func (m *factsMaker) publishedGain(before, after *float64) *float64 {
	if before == nil || after == nil {
		return nil
	}
	return m.Goal.Gain(map[string]float64{m.Metric.Name: *before}, map[string]float64{m.Metric.Name: *after})
}

// From how far apart two published figures are their order says something, and two figures
// here are not the same.
const (
	apart     = 0.02
	alikeHere = 1e-3
)

// order counts the pairs of configurations with a published figure that differ by it, and
// names those that come the other way round here.
func (m *factsMaker) order(trials []outcome.Trial) (pairs, alike int, otherwise []outcome.Otherwise) {
	seen := map[string]bool{}
	var all []outcome.Trial
	for _, t := range trials {
		if k := m.deployment(t.Config); t.Published != nil && m.judgedFigures(t) != nil && !seen[k] {
			seen[k] = true
			all = append(all, t)
		}
	}
	for i, a := range all {
		for _, b := range all[:i] {
			published, here := m.publishedGain(b.Published, a.Published), m.Goal.Gain(m.judgedFigures(b), m.judgedFigures(a))
			if published == nil || here == nil || math.Abs(math.Log1p(*published)) < apart {
				continue
			}
			pairs++
			x, y := a, b
			if *published < 0 {
				x, y = b, a
				published, here = m.publishedGain(a.Published, b.Published), m.Goal.Gain(m.judgedFigures(a), m.judgedFigures(b))
			}
			switch {
			case math.Abs(*here) < alikeHere:
				alike++
			case *here < 0:
				otherwise = append(otherwise, outcome.Otherwise{Better: x.Label, Than: y.Label, Published: *published, Here: *here})
			}
		}
	}
	return pairs, alike, otherwise
}

// deployment tells a configuration from any that is started otherwise.
func (m *factsMaker) deployment(c tune.Config) string {
	pl, _ := m.Configure(c, study.Installed{})
	return pl.Command.String()
}

// pickedTrial is the trial of a pick; nil for none.
func pickedTrial(trials []outcome.Trial, p *outcome.Pick) *outcome.Trial {
	if p == nil {
		return nil
	}
	return trialByID(trials, p.Trial)
}
