// Package lab makes experiments: it starts deployments, waits, warms up,
// loads, summarises, tears down and writes run directories. It alone knows the
// whole of an experiment; the parts know nothing of each other.
//
//	out, err := lab.Bench{Spec: spec, Dir: "run-1"}.Run(ctx)
//	study, err := lab.ParseStudy("quickstart.yaml", data)
//	facts, err := lab.Tune(ctx, study, lab.TuneOptions{Dir: "out"})
//
// Invariants: a run's complete spec is in its header before the first request;
// a trial is in the journal before it is launched; a directory without .tmp is
// complete; what was measured is never lost to what fails later.
package lab
