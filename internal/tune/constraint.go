package tune

import (
	"maps"
	"math"
	"slices"
)

// finalBounds are the bounds as limits for the confirmation: those that are of the
// baseline's figures are of the means of its launches there, which the search did
// not see, as far as these have the figure.
func (k *confirmation) finalBounds() Objective {
	base := k.baseline()
	if base == nil || len(base.rounds) == 0 {
		return k.bounds
	}
	figures := map[string]float64{}
	for _, t := range k.base {
		if t.measured() {
			figures = maps.Clone(t.merged)
			break
		}
	}
	maps.Copy(figures, mean(base.trials()))
	return k.objective.resolve(figures)
}

// score is how a finalist stands by the means of its launches.
func (k *confirmation) score(f *finalist) Score {
	if len(f.rounds) == 0 {
		return Score{}
	}
	s := k.finalBounds().Score(Measured, mean(f.trials()))
	if k.failedGuard(f.config) {
		return s.failingGuard()
	}
	return s
}

// meetsMore reports whether a finalist meets bounds that another misses, or misses
// them by less, and that by more than the scatter of launches.
func (k *confirmation) meetsMore(f, other *finalist) bool {
	mine, theirs := k.score(f), k.score(other)
	return (mine.class > theirs.class || mine.class == missing && mine.miss < theirs.miss) && k.nearestBound(f, other) != nil
}

// nearestBound is the bound of which launches show f to have a better figure than
// other, whose means miss it; nil for none. Of two that scatter about a limit one mean
// lies on this side of it and one on the other half of the time.
func (k *confirmation) nearestBound(f, other *finalist) *Bound {
	bounds := k.finalBounds()
	theirs := mean(other.trials())
	level := k.level(k.boundFamily(), k.rounds)
	for _, b := range bounds.SLOs {
		if b.Holds(theirs) || math.IsNaN(b.Limit) {
			continue
		}
		mine, lacked := f.launchesWith(b.Metric), other.launchesWith(b.Metric)
		if lacked == 0 && len(other.rounds) >= fewest && mine == len(f.rounds) {
			return &b // a figure that no launch of the one has is no scatter
		}
		d, err := k.contrast(f, other, towards(b, f, other), level)
		if err == nil && d.Low > 0 {
			return &b
		}
	}
	return nil
}

// boundFamily is the number of comparisons of bounds, and one for that of the objective: each
// is a way to go before the baseline.
func (k *confirmation) boundFamily() int { return k.family() * (1 + len(k.objective.SLOs)) }

// towards is the figure of a bound, more being better: its logarithm where both
// finalists' figures have one, else its share of the largest.
func towards(b Bound, of ...*finalist) func(*trial) float64 {
	positive, largest := true, 0.0
	for _, f := range of {
		for _, t := range f.rounds {
			if v, ok := t.merged[b.Metric]; ok {
				positive, largest = positive && v > 0, max(largest, math.Abs(v))
			}
		}
	}
	return func(t *trial) float64 {
		v, ok := t.merged[b.Metric]
		switch {
		case !ok:
			return math.NaN()
		case positive:
			v = math.Log(v) // not a number or infinite where another finalist's is not positive: no launch
		case largest > 0:
			v /= largest
		}
		if b.Op == "<=" {
			return -v
		}
		return v
	}
}

// constraints are how a finalist keeps the bounds, launch by launch.
func (k *confirmation) constraints(f *finalist) []Constraint {
	var out []Constraint
	if len(f.rounds) == 0 {
		return nil
	}
	figures := mean(f.trials())
	for _, b := range k.finalBounds().SLOs {
		k := Constraint{Bound: b.String(), Held: b.Holds(figures), Launches: len(f.rounds)}
		if v, ok := figures[b.Metric]; ok {
			k.Mean = new(v)
		}
		for _, t := range f.rounds {
			if b.Holds(t.merged) {
				k.Met++
			}
		}
		out = append(out, k)
	}
	return out
}

// missesOn are the bounds that one finalist misses on a further workload, and the
// other meets there.
func (k *confirmation) missesOn(workload string, f, other *finalist) []Constraint {
	on := func(f *finalist) map[string]float64 {
		var out []*trial
		for _, t := range f.trials() {
			if f := t.end.Figures[workload]; f != nil {
				out = append(out, &trial{merged: f})
			}
		}
		if len(out) == 0 {
			return nil
		}
		return mean(out)
	}
	mine, theirs := on(f), on(other)
	var misses []Constraint
	if mine == nil || theirs == nil {
		return nil
	}
	for _, b := range k.objective.resolve(theirs).SLOs {
		if v, ok := mine[b.Metric]; ok && b.Holds(theirs) && !b.Holds(mine) {
			misses = append(misses, Constraint{Bound: b.String(), Mean: &v})
		}
	}
	return misses
}

// missesOf are the bounds that the means of a finalist's launches miss.
func (k *confirmation) missesOf(f *finalist) []Constraint {
	return slices.DeleteFunc(k.constraints(f), func(c Constraint) bool { return c.Held })
}

// unsteady are the bounds that a finalist keeps on average, but not in every launch.
func (k *confirmation) unsteady(f *finalist) []Constraint {
	return slices.DeleteFunc(k.constraints(f), func(c Constraint) bool { return !c.Held || c.Met == c.Launches })
}

// obstacle is what keeps a finalist from being recommended.
func (k *confirmation) obstacle(f *finalist) *Finding {
	if k.failedGuard(f.config) {
		return &Finding{Kind: OtherAnswers}
	}
	return &Finding{Kind: MissesBounds, Misses: k.missesOf(f)}
}
