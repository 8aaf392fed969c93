// Package selfcheck holds the client against a server that knows the truth: how
// far its stamps, latencies and send times are off, and how many events it takes
// in. What was found is stored for this machine, and stands in the headers of
// the runs that it makes.
//
//	found, err := selfcheck.Check{Server: server}.Run(ctx, func(l selfcheck.Line) { ... })
//	path, err := selfcheck.Store(found)
package selfcheck
