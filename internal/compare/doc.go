// Package compare puts the figures of runs side by side: the ratio of each side
// to the first, with an interval where the calls or the runs give one, and all
// else in which the sides differ.
//
//	c, err := compare.New([]compare.Side{before, after}, compare.Options{})
//	rulings := c.Rule(conditions)
//
// A side of several runs has the runs for observations; of one run on each side
// the intervals come from blocks of its own time. A covariate is a thing besides
// the figures in which runs should agree, such as the workload or the engine.
//
// Figures that a run's calls give by the definition of another side come with the run
// (Run.Views), and stand beside that side's.
//
// Invariants: pure; figures of different definitions are never in one row; an
// interval is given only of figures that the calls themselves give; what cannot
// be compared says why, and fails every condition on it.
//
// Deliberately absent: reading runs (callers hand them in) and text for readers
// beyond single sentences (package report).
package compare
