// Package lab makes experiments: it starts deployments, waits, warms up,
// loads, summarises, tears down and writes run directories. It alone knows the
// whole of an experiment; the parts know nothing of each other.
//
//	study, err := lab.study.Parse("quickstart.yaml", data)
//	facts, err := lab.Tune(ctx, study, lab.TuneOptions{Dir: "out"})
//
// Invariants: a trial is in the journal before it is launched; what was
// measured is never lost to what fails later.
package lab
