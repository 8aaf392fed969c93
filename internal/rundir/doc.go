// Package rundir writes and opens directories of runs: those that perflab
// measured, those of other clients that were imported, and the runs that a
// series or a study holds.
//
//	w, err := rundir.Create("run-1", header)
//	w.Add(&call)
//	err = w.Finish(client, summary, readings)
//
// Invariants: the header is on disk before the first request; a directory
// without .tmp is complete; a .tmp that was left behind can still be
// summarised; no directory is overwritten. A file is replaced as a whole.
//
// Absent: how a run is made, and what it is worth.
package rundir
