// Package scan finds what directories hold: runs, series, studies, imports and sites, with
// the facts that an index keeps of each.
//
//	tree, err := scan.Open("perflab-out")
//	places, err := tree.Walk(ctx, time.Now())
//	facts := tree.Read(place)
//
// Invariants: nothing is written, and nothing outside of the root is opened (os.Root); links are
// not followed; what cannot be read is a place with its fault and stops nothing; the facts of a
// directory follow from its files alone, so that an index of them can be made again at any time;
// a fact that is not known is absent, never zero; no text has a secret of a known form, a byte
// that is no UTF-8 or a NUL in it.
//
// Absent: SQL (package store), and what people add (package mark).
package scan
