// Package versus is the screen "Compare": runs beside each other, in the order in which one looks.
// What differs besides the figures; whether each side can be believed; ratios with intervals; the
// front of throughput and interactivity; distributions; the course of the runs; and where each
// side comes from.
//
//	routes := versus.Routes(pages, store, guard, version)
//
// An address says all that is chosen: run (ids, the first is the baseline), by, metrics, all, same,
// alone, slo. Who has a share link sees the runs that it names.
//
// Invariants: no figure is made here; compare makes ratios, and the store what plots draw. What
// cannot be compared says why, and the rest is shown.
package versus
