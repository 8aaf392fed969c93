package prediction

import (
	"context"
	"maps"

	"perflab/internal/bench"
	"perflab/internal/outcome"
	"perflab/internal/result"
	"perflab/internal/study"
	"perflab/internal/workload"
)

// predictedSearchShare is the share of a search that is predicted with: an order of
// configurations needs no narrow bracket.
const predictedSearchShare = 0.25

// turnsPerSession is bench.TurnsPerSession of a workload, which is opened once for all configurations.
func (f *Predictor) turnsPerSession(name string, spec workload.Spec) float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	turns, known := f.turns[name]
	if !known {
		turns = bench.TurnsPerSession(spec)
		f.turns[name] = turns
	}
	return turns
}

// highest predicts a workload whose load is searched: the search itself, in virtual
// time and under a part of the load. The figures are those at the edge, without a
// goodput where the lowest load misses already.
func (f *Predictor) highest(pl study.Configuration, name string, s *study.LoadSearch) (map[string]float64, error) {
	slos := f.study.RunSLOs()
	spec := f.study.WorkloadSpec(name, 0)
	opt := s.Options(slos, predictedSearchShare)
	opt.Turns = f.turnsPerSession(name, spec)
	plan := bench.NewFindMax(opt)
	facts := &bench.SeriesFacts{}
	for {
		if f.stopped() {
			return nil, context.Canceled
		}
		step, ok := plan.Ask()
		if !ok {
			break
		}
		o, err := f.once(pl, name, f.point(name, step))
		if err != nil {
			return nil, err
		}
		p := bench.Point{Load: step.Load, Offered: o.Header.Rate}
		p.Judge(o, slos, 1-outcome.MinSuccess)
		facts.Points = append(facts.Points, p)
		plan.Tell(p)
	}
	facts.Stop, facts.Max = plan.Conclude()
	figures := maps.Clone(facts.Edge().Summary.Figures)
	found := result.Search{Axis: s.Axis, Sessions: spec.Defaults().CountsSessions()}
	if facts.Concluded() {
		found.Load = facts.Max.Load.Value
	}
	found.AddFigures(figures, f.study.AllocatedGPUs())
	return figures, nil
}

// point is a workload under one load, opened once for all configurations.
func (f *Predictor) point(name string, step bench.Step) *predictedLoad {
	spec := step.Load.Apply(f.study.WorkloadSpec(name, 0)).Sized(step.Requests)
	at := name + " " + step.Load.String()
	f.mu.Lock()
	defer f.mu.Unlock()
	if p, ok := f.loads[at]; ok && p.w != nil && p.w.Spec().NumPrompts >= spec.NumPrompts {
		return p
	}
	p := &predictedLoad{}
	f.loads[at] = p
	p.w, p.tok, p.err = bench.OpenPredicted(spec)
	return p
}
