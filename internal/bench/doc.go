// Package bench makes runs: it waits for the server, warms it up, sends the
// load, summarises and writes the run directory. A run follows from its Spec
// alone. A Series makes several: a sweep, repeated runs, or the search for the
// highest load that meets bounds.
//
//	out, err := bench.Runner{Spec: spec, Dir: "run-1"}.Run(ctx)
//
// Invariants: a run's complete spec is in its header before the first request;
// what was measured is never lost to what fails later; a series decides by
// points that can be believed alone.
//
// Absent: starting a server (deploy), and comparing runs.
package bench
