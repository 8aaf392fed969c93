// Package drift finds the change points of a figure over time: since which build a
// configuration is faster or slower, how sure that is, and how old the newest figure is.
//
//	found, err := drift.Find(points, drift.Options{Better: drift.Lower})
//	for _, c := range found.Changes {
//		fmt.Println(points[c.Index].Key, c.Before, c.After, c.Standing)
//	}
//	age := drift.Age(points, now)
//
// Two methods find changes, and each change names its own. E-divisive with means
// (Matteson and James 2014) asks where a cut makes the points before and after it most
// unlike by the energy statistic, and lets random orders of the same points say how often
// chance alone does as well; what it cut is looked at again, part by part. For short
// series, and for the newest points of long ones, the median of the next points is held
// against the rolling median of those before, ± 3 standard deviations as the median
// absolute deviation (MAD) tells them. A change is confirmed when it has persisted over
// several builds, and suspected until then. docs/history.md is the document for users, with
// measured false alarms and power; TestRates holds its tables.
//
// Invariants: the same points and options give the same result; points that are void or
// have no value enter nothing; a factor on all values changes no index; what cannot be
// known (an interval of three points, a relative change from zero) is absent. Points are in
// order of time.
//
// Deliberately absent: seasons and trends as models, since builds have neither (a slow rise
// is found as steps, which are marked as gradual); several metrics in one test; a memory of
// earlier looks, so that a history that is looked at after each build has more looks than
// one; the windows and the t-test of Hunter and Apache Otava, which need normal noise;
// any choice of what belongs to a series, which is package lineage.
package drift
