package lab

import (
	"maps"

	"perflab/internal/outcome"
	"perflab/internal/stat"
	"perflab/internal/study"
	"perflab/internal/tune"
)

// curveConfidence is that of a gain under one load, by itself.
const curveConfidence = 0.95

// curves are baseline and recommendation over the loads of each workload that has several.
func (m *factsMaker) curves(f outcome.Study) []outcome.Curve {
	if f.Baseline == nil || f.Recommended == nil || m.Strategy == study.Survey {
		return nil
	}
	var out []outcome.Curve
	for _, w := range m.Workloads {
		s, ok := w.Swept()
		if !ok {
			continue
		}
		if n := len(out); n == 0 || out[n-1].Workload != s.Of {
			out = append(out, outcome.Curve{Workload: s.Of, Title: s.Title, Axis: s.Load.Axis})
		}
		c := &out[len(out)-1]
		p := outcome.CurvePoint{Load: s.Load.Value, Text: s.Load.Text(), Workload: w.Name}
		var base, won []float64
		p.Baseline, base = m.curveSide(f, f.Baseline, w.Name)
		p.Recommended, won = m.curveSide(f, f.Recommended, w.Name)
		if f.Baseline.Trial != f.Recommended.Trial {
			p.Gain, p.Verdict = m.curveGain(base, won)
		}
		c.Points = append(c.Points, p)
	}
	return out
}

// curveSide is a pick under one workload, and the objective's figures of its launches: those of the stage that it
// was picked by, or of further workloads, which not every stage runs, all.
func (m *factsMaker) curveSide(f outcome.Study, p *outcome.Pick, workload string) (s outcome.CurveSide, objective []float64) {
	s.Figures = map[string]float64{}
	t := trialByID(f.Trials, p.Trial)
	if t == nil {
		return s, nil
	}
	ran := func(stage string) (out []*outcome.Trial) {
		for i := range f.Trials {
			o := &f.Trials[i]
			if (stage == "" || o.Stage == stage) && o.Share == 0 && o.Status == tune.Measured && maps.Equal(o.Config, t.Config) && summaryOf(f.Trials, o.ID, workload) != nil {
				out = append(out, o)
			}
		}
		return out
	}
	launches := ran(t.Stage)
	if len(launches) == 0 {
		launches = ran("")
	}
	each := map[string][]float64{}
	for _, o := range launches {
		s.Trials = append(s.Trials, o.ID)
		for name, v := range summaryOf(f.Trials, o.ID, workload).Figures {
			each[name] = append(each[name], v)
		}
	}
	for name, v := range each {
		if len(v) == len(s.Trials) { // no mean of some of the launches
			s.Figures[name] = stat.Mean(v)
		}
	}
	if v := each[m.Metric.Name]; len(v) == len(s.Trials) {
		objective = v
	}
	return s, objective
}

// curveGain is the objective of one side over that of the other, in the direction that is better.
func (m *factsMaker) curveGain(base, won []float64) (gain *tune.Span, verdict string) {
	if len(base) == 0 || len(won) == 0 {
		return nil, ""
	}
	if !m.Goal.Higher {
		base, won = won, base
	}
	r, err := stat.RatioOfRuns(base, won, curveConfidence)
	switch {
	case r.Value == 0:
		return nil, "" // a figure that is not positive
	case err != nil:
		return &tune.Span{Value: r.Value - 1, Low: r.Value - 1, High: r.Value - 1}, ""
	case r.Low > 1:
		verdict = tune.Better
	case r.High < 1:
		verdict = tune.Worse
	default:
		verdict = tune.NoDifference
	}
	return &tune.Span{Value: r.Value - 1, Low: r.Low - 1, High: r.High - 1}, verdict
}
