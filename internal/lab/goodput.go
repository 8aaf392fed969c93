package lab

import (
	"context"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"strings"

	"perflab/internal/bench"
	"perflab/internal/engine"
	"perflab/internal/load"
	"perflab/internal/result"
	"perflab/internal/study"
	"perflab/internal/tune"
	"perflab/internal/workload"
)

// pointsDir is below the run directory of a workload whose load is searched.
const pointsDir = "points"

// seek measures the workload of b under one load after the other, all against the
// same launch, and returns the run at the edge, with what the search found among
// its figures: SLOs and objective are then of one run, whose calls are kept. make
// makes a run, nil for Bench.Run.
func (l *session) seek(ctx context.Context, p tune.Proposal, b bench.Runner, f *study.LoadSearch, make func(context.Context, bench.Runner) (*bench.Outcome, error)) (*loaded, error) {
	slos := l.RunSLOs()
	plan := bench.NewFindMax(f.Options(slos, p.Share))
	beside := map[string]loaded{} // by the point's directory
	s := bench.Series{
		Bench: b, Kind: bench.KindFindMax, Plan: plan, SLOs: slos, MaxErrors: 1 - minSuccess, Make: make,
		Begun: func(step bench.Step, progress *load.Progress) {
			l.watch(func(s *Status) { s.Progress, s.Detail = progress, step.Load.String() })
		},
		Ended: func(point bench.Point, out *bench.Outcome) {
			run := loaded{Run: result.Run{Workload: b.Name, Summary: out.Summary}, within: l.within(out), engine: out.Engine}
			beside[point.Dir] = run
			if broken(&run) {
				l.cause(ctx, nil) //nolint:errcheck // where it is the engine's end, ctx has it when this returns
			}
		},
	}
	s.Bench.Dir = filepath.Join(b.Dir, pointsDir)
	facts, err := s.Run(ctx)
	if err != nil {
		return nil, err
	}
	found := result.Search{
		Axis: f.Axis, Points: len(facts.Points), Dir: l.relative(s.Bench.Dir), Code: facts.Stop.Code, Text: facts.Stop.Text,
		Precision: plan.Precision(), Share: p.Share,
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
	run := beside[edge.Dir]
	run.Run = result.Run{
		Workload: b.Name, Dir: l.relative(filepath.Join(s.Bench.Dir, edge.Dir)), Seed: edge.Seed, Summary: summary, Search: &found,
	}
	if share, ok := found.Uncertainty(); ok && strings.HasPrefix(l.Objective.Metric, found.Figure()) {
		run.within = share / math.Sqrt(12) // the edge is anywhere between the load that met and the one that missed
	}
	return &run, nil
}

// sought adds what a reader must know of a run whose load was searched.
func (t *trialRecord) sought(r *result.Run) {
	if r.Search == nil {
		return
	}
	if note := r.Search.Note(r.Workload); note != "" {
		t.Notes = append(t.Notes, note)
	}
}

// asSought makes the text and the command of a workload, which are those of one
// load, the search's; without one they stay.
func (l *session) asSought(w result.Load, f *study.LoadSearch, spec workload.Spec) result.Load {
	if f == nil {
		return w
	}
	var bounds []string
	spec.NumPrompts = 0
	flags := []string{"--find-max", f.Axis, "--find-max-from", bench.Short(f.From), "--find-max-precision", bench.Short(f.Precision), "--find-max-seconds", bench.Short(*f.Seconds)}
	if f.To > 0 {
		flags = append(flags, "--find-max-to", bench.Short(f.To))
	}
	if f.Requests > 0 {
		flags = append(flags, "--find-max-requests", fmt.Sprint(f.Requests))
	}
	for _, slo := range l.RunSLOs() {
		bounds = append(bounds, slo.String())
		flags = append(flags, "--slo", engine.Quote(slo.String()))
	}
	what := "request rate"
	switch f.Axis {
	case bench.AxisRate:
		spec.Rate = workload.Rate(math.Inf(1))
		if spec.Arrival == "poisson" {
			spec.Arrival, spec.Burstiness = "", 0
		}
	case bench.AxisConcurrency:
		what, spec.MaxConcurrency = "number of requests in flight", 0
	}
	w.Text += fmt.Sprintf("; searched from there for the highest %s that meets %s, to within %s %%", what, strings.Join(bounds, " and "), bench.Short(100*f.Precision))
	w.Command = bench.Command(l.benchModel(), l.Bench.Backend, l.Bench.Cache, spec) + " " + strings.Join(flags, " ")
	return w
}
