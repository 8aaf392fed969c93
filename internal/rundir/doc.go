// Package rundir writes and opens directories of runs: those that perflab
// measured, those of other clients that were imported, and the runs that a
// series or a study holds.
//
//	w, err := rundir.Create("run-1", header)
//	w.Add(&call)
//	err = w.Finish(client, summary, readings)
//
// Invariants: the header is on disk before the first request; a call is with
// the kernel within a second of its end, so that a kill takes none that ended
// before; a directory without .tmp is complete and synced; a .tmp that was left
// behind can still be summarised; no directory is overwritten. A file is
// replaced as a whole. Calls are synced at the end alone: a disk that is waited
// for would disturb the load, and a power cut takes a run under way.
//
// Absent: how a run is made, and what it is worth.
package rundir
