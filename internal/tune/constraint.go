package tune

import (
	"fmt"
	"maps"
	"math"
)

// limited are the bounds as limits for the contest: those that are of the
// baseline's figures are of the means of its launches there, which the search did
// not see, as far as these have the figure.
func (c *course) limited() Objective {
	base := c.baseEntrant()
	if base == nil || len(base.rounds) == 0 {
		return c.bounds
	}
	figures := map[string]float64{}
	for _, t := range c.base {
		if t.measured() {
			figures = maps.Clone(t.merged)
			break
		}
	}
	maps.Copy(figures, mean(base.trials()))
	return c.objective.resolve(figures)
}

// scoreOfEntrant is how an entrant stands by the means of its launches.
func (c *course) scoreOfEntrant(e *entrant) score {
	if len(e.rounds) == 0 {
		return score{}
	}
	s := c.limited().score(Measured, mean(e.trials()))
	if c.barred(e.config) {
		s.class, s.miss = missing, math.Inf(1)
	}
	return s
}

// meetsMore reports whether an entrant meets bounds that another misses, or misses
// them by less, and that by more than the scatter of launches.
func (c *course) meetsMore(e, other *entrant) bool {
	mine, theirs := c.scoreOfEntrant(e), c.scoreOfEntrant(other)
	return (mine.class > theirs.class || mine.class == missing && mine.miss < theirs.miss) && c.nearer(e, other)
}

// nearer reports whether launches show e to have a better figure of a bound that
// the means of other's miss: of two that scatter about a limit one mean lies on
// this side of it and one on the other half of the time.
func (c *course) nearer(e, other *entrant) bool { return c.nearest(e, other) != nil }

// nearest is the bound by which e is nearer; nil for none.
func (c *course) nearest(e, other *entrant) *Bound {
	bounds := c.limited()
	theirs := mean(other.trials())
	level := 1 - (1-confidence)/float64(c.family()*max(1, len(bounds.SLOs)))
	for _, b := range bounds.SLOs {
		if b.Holds(theirs) || math.IsNaN(b.Limit) {
			continue
		}
		mine, lacked := have(e, b.Metric), have(other, b.Metric)
		if lacked == 0 && len(other.rounds) >= fewest && mine == len(e.rounds) {
			return &b // a figure that no launch of the one has is no scatter
		}
		d, err := c.contest.contrast(e, other, towards(b, e, other), level)
		if err == nil && d.Low > 0 {
			return &b
		}
	}
	return nil
}

// have counts the launches of an entrant that have a figure.
func have(e *entrant, metric string) int {
	n := 0
	for _, t := range e.rounds {
		if _, ok := t.merged[metric]; ok {
			n++
		}
	}
	return n
}

// towards is the figure of a bound, more being better: its logarithm where both
// entrants' figures have one.
func towards(b Bound, of ...*entrant) func(*trial) float64 {
	positive := true
	for _, e := range of {
		for _, t := range e.rounds {
			if v, ok := t.merged[b.Metric]; ok && !(v > 0) {
				positive = false
			}
		}
	}
	return func(t *trial) float64 {
		v, ok := t.merged[b.Metric]
		switch {
		case !ok:
			return math.NaN()
		case positive:
			v = math.Log(v) // not a number or infinite where another entrant's is not positive: no launch
		}
		if b.Op == "<=" {
			return -v
		}
		return v
	}
}

// kept is how an entrant keeps the bounds, launch by launch.
func (c *course) kept(e *entrant) []Constraint {
	var out []Constraint
	if len(e.rounds) == 0 {
		return nil
	}
	figures := mean(e.trials())
	for _, b := range c.limited().SLOs {
		k := Constraint{Bound: b.String(), Held: b.Holds(figures), Launches: len(e.rounds)}
		if v, ok := figures[b.Metric]; ok {
			k.Mean = new(v)
		}
		for _, t := range e.rounds {
			if b.Holds(t.merged) {
				k.Met++
			}
		}
		out = append(out, k)
	}
	return out
}

func (k Constraint) String() string {
	if k.Held {
		return k.Bound + ": " + k.figure()
	}
	return k.Bound + " is missed: " + k.figure()
}

// figure is the mean, and how often the bound was met.
func (k Constraint) figure() string {
	figure := "no figure"
	if k.Mean != nil {
		figure = number(*k.Mean) + " on average"
	}
	return fmt.Sprintf("%s, met in %d of %s", figure, k.Met, count(k.Launches, "launch"))
}

// missesOn says which bounds one entrant misses on a further workload, and the
// other meets there.
func (c *course) missesOn(workload string, e, other *entrant) []string {
	on := func(e *entrant) map[string]float64 {
		var out []*trial
		for _, t := range e.trials() {
			if f := t.end.Figures[workload]; f != nil {
				out = append(out, &trial{merged: f})
			}
		}
		if len(out) == 0 {
			return nil
		}
		return mean(out)
	}
	mine, theirs := on(e), on(other)
	var misses []string
	if mine == nil || theirs == nil {
		return nil
	}
	for _, b := range c.objective.resolve(theirs).SLOs {
		if _, ok := mine[b.Metric]; ok && b.Holds(theirs) && !b.Holds(mine) {
			misses = append(misses, fmt.Sprintf("misses %s, which the baseline meets: %s", b, number(mine[b.Metric])))
		}
	}
	return misses
}

// missesOf says which bounds the means of an entrant's launches miss.
func (c *course) missesOf(e *entrant) []string {
	var out []string
	for _, k := range c.kept(e) {
		if !k.Held {
			out = append(out, k.String())
		}
	}
	return out
}

// wavers says which bounds an entrant keeps on average, but not in every launch.
func (c *course) wavers(e *entrant) []string {
	var out []string
	for _, k := range c.kept(e) {
		if k.Held && k.Met < k.Launches {
			out = append(out, k.String())
		}
	}
	return out
}

// obstacle says what keeps an entrant from being recommended.
func (c *course) obstacle(e *entrant) string {
	if c.barred(e.config) {
		return "does not answer as the baseline does, see the accuracy guard"
	}
	return "misses a constraint: " + joined(c.missesOf(e))
}
