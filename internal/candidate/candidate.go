// Package candidate says which configurations a study may try: the candidates that a
// race begins with, small steps around a configuration, and what a bottleneck or
// a refusal asks for next. It gives package tune, which knows no parameter's
// meaning, a tune.SearchSpace made of package engine's catalogue. Pure.
package candidate

import (
	"perflab/internal/engine"
	"perflab/internal/tune"
)

// Options say what may be tried.
type Options struct {
	Baseline   tune.Config
	Label      string              // of the baseline; "": what it is made of
	Engines    []string            // that may be used, by name
	Models     []string            // checkpoints that may be served: the baseline's and others of the same model
	Narrow     map[string][]string // parameter -> the values that may be tried, in place of the catalogue's; "" is the default
	Changes    []tune.Change       // that the study lists; structural ones make candidates with each other
	Candidates []tune.Candidate    // whole configurations beside the catalogue's

	GPUs     int
	Latency  bool // the objective is a latency at a given load, not a throughput
	Numerics bool // changes of numerics may be tried: something guards the answers
	Shared   bool // prompts of the workloads begin alike, so that what prefix caches keep matters
	Longest  int  // tokens of the longest request of the study's workloads; 0: not known
	Prompt   int  // and of the longest prompt of the first, which decides what a trial is worth; 0: not known, or by an estimate alone

	// Unlaunched: nothing will be started, and only a start shows that memory runs out. So
	// none is offered that an engine does not take by itself.
	Unlaunched bool

	// Resolve makes a configuration concrete. An *engine.Rejection says that it
	// cannot run.
	Resolve func(tune.Config) (engine.Command, engine.Config, error)
}
