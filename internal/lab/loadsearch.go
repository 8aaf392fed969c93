package lab

import (
	"context"
	"maps"
	"math"
	"path/filepath"
	"strings"

	"perflab/internal/bench"
	"perflab/internal/load"
	"perflab/internal/outcome"
	"perflab/internal/result"
	"perflab/internal/study"
)

// pointsDir is below the run directory of a workload whose load is searched.
const pointsDir = "points"

// runLoadSearch measures the workload of b under one load after the other, all against the
// same launch, and returns the run at the edge, with what the search found among
// its figures: SLOs and objective are then of one run, whose calls are kept. runOnce
// makes a run.
func (ev *evaluation) runLoadSearch(ctx context.Context, b bench.Runner, f *study.LoadSearch, runOnce runFunc) (*measuredRun, error) {
	slos := ev.RunSLOs()
	o := f.Options(slos, ev.p.Share)
	o.Turns = bench.TurnsPerSession(b.Spec.Workload)
	plan := bench.NewFindMax(o)
	runs := map[string]*measuredRun{} // by the point's directory
	s := bench.Series{
		Bench: b, Kind: bench.KindFindMax, Plan: plan, SLOs: slos, MaxErrors: 1 - outcome.MinSuccess, RunOne: runOnce,
		OnStart: func(step bench.Step, progress *load.Progress) {
			ev.watch.change(func(s *Status) { s.Progress, s.Detail = progress, step.Load.String() })
		},
		OnEnd: func(point bench.Point, out *bench.Outcome) {
			run := ev.measured(b.Name, out)
			runs[point.Dir] = run
			if run.broken() {
				ev.awaitEngineDeath(ctx, nil) //nolint:errcheck // where it is the engine's end, ctx has it when this returns
			}
		},
	}
	s.Bench.Dir = filepath.Join(b.Dir, pointsDir)
	facts, err := s.Run(ctx)
	if err != nil {
		return nil, err
	}
	found := result.Search{
		Axis: f.Axis, Points: len(facts.Points), Dir: ev.studyDir.relative(s.Bench.Dir), Code: facts.Stop.Code, Text: facts.Stop.Text,
		Precision: plan.Precision(), Share: ev.p.Share, Sessions: o.Turns > 0,
	}
	for _, point := range facts.Points {
		found.LoadS += point.Summary.Figures["duration"]
	}
	edge := facts.Edge()
	found.Missed = plan.Missed()
	if facts.Concluded() {
		found.Load, found.Met, found.AtLeast = facts.Max.Load.Value, facts.Max.Tested, facts.Max.AtLeast
	}
	summary := edge.Summary
	summary.Figures = maps.Clone(summary.Figures)
	found.AddFigures(summary.Figures, b.Spec.GPUs)
	run := runs[edge.Dir]
	run.Run = outcome.Run{
		Workload: b.Name, Dir: ev.studyDir.relative(filepath.Join(s.Bench.Dir, edge.Dir)), Seed: edge.Seed, Summary: summary, Search: &found,
	}
	if share, ok := found.Uncertainty(); ok && strings.HasPrefix(ev.Metric.Name, found.Figure()) {
		run.within = share / math.Sqrt(12) // the edge is anywhere between the load that met and the one that missed
	}
	return run, nil
}
