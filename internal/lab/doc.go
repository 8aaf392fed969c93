// Package lab runs studies: it deploys the configuration of each trial, has bench
// measure it, tears it down, and tells the search. It alone knows the whole of an
// experiment; the parts know nothing of each other.
//
//	s, err := study.Parse("quickstart.yaml", data)
//	facts, err := lab.Tune(ctx, s, data, lab.Options{Dir: "out"})
//
// Invariants: a trial is in the journal before it is launched; its facts are on
// disk before the journal has its end; what was measured is never lost to what
// fails later. A study that is interrupted goes on by replay of its journal.
package lab
