package study

import (
	"cmp"
	"slices"
)

// follow sets the strategy, and drops what only others know.
func (f *File) follow(strategy string) {
	f.Strategy = strategy
	switch {
	case !f.searchesCatalogue():
		f.Search = Search{}
	case strategy != Race:
		f.Search.Race, f.Earlier = RaceUse{}, nil
	}
	if strategy != Race {
		f.Objective.Weights = nil
	}
	if slices.Contains([]string{Random, Grid, TPE}, strategy) {
		f.firstLoads()
	}
}

func (f *File) fill() {
	if f.Strategy == "" {
		f.Strategy = Race
		if f.Attached() { // there is nothing to choose from
			f.Strategy = Staged
		}
	}
	f.Hardware.Nodes = cmp.Or(f.Hardware.Nodes, 1)
	if f.Bench.Backend == "" {
		f.Bench.Backend = "openai-chat"
	}
	if f.Bench.Block == "" {
		f.Bench.Block = "vllm"
	}
	for i := range f.Workloads {
		w := &f.Workloads[i]
		if w.Title == "" {
			w.Title = w.Name
		}
		w.FindMax.fill()
		if w.UntilPrecision != "" && w.UntilMetric == "" {
			w.UntilMetric = f.Objective.Metric
		}
		if len(w.loads()) == 0 { // else each load has defaults of its own
			w.Spec = w.FindMax.first(w.Spec.Defaults(), f.RunSLOs())
		}
	}
	f.spread()
}
