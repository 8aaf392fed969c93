package lab

import (
	"context"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"perflab/internal/bench"
	"perflab/internal/engine"
	"perflab/internal/load"
	"perflab/internal/result"
	"perflab/internal/tune"
	"perflab/internal/workload"
)

// LoadSearch is a workload's load that is looked for in each launch, and not given:
// the highest that meets the SLOs of the objective. Its keys are the flags of
// perflab bench --find-max.
type LoadSearch struct {
	Axis      string   `yaml:"axis" json:"axis" jsonschema:"required,enum=rate,enum=concurrency,description=What is searched: requests a second\\, or requests in flight"`
	From      float64  `yaml:"from,omitempty" json:"from,omitempty" jsonschema:"description=Load at which the search begins (default 1); a configuration that misses there has no figure"`
	To        float64  `yaml:"to,omitempty" json:"to,omitempty" jsonschema:"description=Highest load of the search (default none)"`
	Precision float64  `yaml:"precision,omitempty" json:"precision,omitempty" jsonschema:"description=How narrow the bracket must be\\, as a share of the load (default 0.05)"`
	Points    int      `yaml:"points,omitempty" json:"points,omitempty" jsonschema:"description=Runs of one launch at most\\, the last kept for the edge (default 18)"`
	Requests  int      `yaml:"requests,omitempty" json:"requests,omitempty" jsonschema:"description=Requests of each run at least (default what the SLOs' percentiles need\\, and 100)"`
	Seconds   *float64 `yaml:"seconds,omitempty" json:"seconds,omitempty" jsonschema:"description=Each run sends for this long at least (default 20)"`
}

// Defaults of a search, and what keeps it small under a part of the load.
const (
	SearchPoints    = 18 // runs at most
	searchFrom      = 1.0
	searchPrecision = 0.05
	searchSeconds   = 20.0
	widestSearch    = 0.5 // precision
	fewestRequests  = 25  // of a point, where all of the load has more
)

// pointsDir is below the run directory of a workload whose load is searched.
const pointsDir = "points"

// fill writes the defaults out.
func (f *LoadSearch) fill() {
	if f == nil {
		return
	}
	if f.From == 0 {
		f.From = searchFrom
	}
	if f.Precision == 0 {
		f.Precision = searchPrecision
	}
	if f.Points == 0 {
		f.Points = SearchPoints
	}
	if f.Seconds == nil {
		f.Seconds = new(searchSeconds)
	}
}

// first is the workload under the load at which the search begins; without one,
// the workload as it is.
func (f *LoadSearch) first(w workload.Spec, slos []result.SLO) workload.Spec {
	if f == nil {
		return w
	}
	at := bench.Load{Axis: bench.AxisRate, Value: searchFrom} // where the keys are to be refused, which is said of them and not of the workload
	if f.Axis == bench.AxisConcurrency {
		at.Axis = f.Axis
	}
	if f.From > 0 && !math.IsInf(f.From, 1) {
		at.Value = f.From
	}
	w = at.Apply(w)
	if w.NumPrompts > 0 && w.Validate() == nil { // else all of a file, or to be refused
		step, _ := bench.NewFindMax(f.options(slos, 0)).Ask()
		w = w.Sized(min(w.NumPrompts, step.Requests))
	}
	return w
}

// options are the search's under a share of the load, 0 for all of it: with fewer
// requests in each point there is no more to say than of a wider bracket.
func (f *LoadSearch) options(slos []result.SLO, share float64) bench.FindMaxOptions {
	o := bench.FindMaxOptions{Axis: f.Axis, From: f.From, To: f.To, Precision: f.Precision, Points: f.Points, Requests: f.Requests, Seconds: *f.Seconds}
	if o.Requests == 0 {
		o.Requests = bench.MinRequests(slos)
	}
	if share > 0 && share < 1 {
		o.Requests = max(int(math.Ceil(share*float64(o.Requests))), min(o.Requests, fewestRequests))
		o.Seconds *= share
		o.Precision = max(o.Precision, min(o.Precision/share, widestSearch))
	}
	return o
}

// search is that of a workload of the study, nil where its load is given.
func (s *Study) search(name string) *LoadSearch {
	for i := range s.Workloads {
		if s.Workloads[i].Name == name {
			return s.Workloads[i].FindMax
		}
	}
	return nil
}

// bounds are the SLOs that one run can be judged by. Those on what a search finds,
// on answers and against the baseline are for the strategy, which sees all trials.
func (s *Study) bounds() []result.SLO {
	var out []result.SLO
	for _, text := range s.Objective.SLOs {
		slo, err := result.ParseSLO(text)
		if err != nil { // of another kind: what is wrong with it is said elsewhere
			continue
		}
		m, err := result.Lookup(slo.Metric)
		if err != nil || slices.Contains(m.Needs(), result.NeedSearch) || m.Name == tune.AccuracyFigure || m.Name == tune.AgreementFigure {
			continue
		}
		out = append(out, slo)
	}
	return out
}

// allocated is how many GPUs every trial has, 0 on CPUs.
func (s *Study) allocated() int {
	if s.onCPU() {
		return 0
	}
	return s.Hardware.GPUs
}

// seek measures the workload of b under one load after the other, all against the
// same launch, and returns the run at the edge, with what the search found among
// its figures: SLOs and objective are then of one run, whose calls are kept. make
// makes a run, nil for Bench.Run.
func (l *study) seek(ctx context.Context, p tune.Proposal, b bench.Runner, f *LoadSearch, make func(context.Context, bench.Runner) (*bench.Outcome, error)) (*loaded, error) {
	slos := l.bounds()
	plan := bench.NewFindMax(f.options(slos, p.Share))
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
	found.Enter(summary.Figures, b.Spec.GPUs)
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
func (l *study) asSought(w result.Load, f *LoadSearch, spec workload.Spec) result.Load {
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
	for _, slo := range l.bounds() {
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
