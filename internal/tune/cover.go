package tune

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"perflab/internal/stat"
)

// What is looked at for what has not run yet: so many configurations by chance, of which so
// many are predicted that have most of it.
const (
	uncoveredDrawn = 300
	uncoveredLooks = 60
)

// A number counts less than a choice, as its effect is mostly predicted. What is thought to be
// worse than the leader counts less, by a factor e for each fallBehind of the logarithm; but with
// a choice that has not run at all, of which the predictor alone is asked, by firstChoice at most.
// What counts for less than leastUncovered is not worth a launch.
const (
	numberCovers   = 0.5
	fallBehind     = 0.15
	firstChoice    = 0.3
	leastUncovered = 1.0
)

// together are two values of a configuration; of a value alone twice the same.
type together struct {
	i, j int
	a, b string
}

// togethers calls f with every two values of a configuration and what they count. Without a
// budget, which nothing else would end, it is every value by itself.
func (p *pool) togethers(c Config, f func(together, float64)) {
	weight := func(d Dimension) float64 {
		if d.Ordered {
			return numberCovers
		}
		return 1
	}
	for i, a := range p.axes {
		if !p.bounded() {
			f(together{i, i, c[a.Name], c[a.Name]}, weight(a))
			continue
		}
		for j, b := range p.axes[:i] {
			f(together{i, j, c[a.Name], c[b.Name]}, weight(a)*weight(b))
		}
	}
}

// covered is what has run together, and what by itself.
type covered struct {
	*pool
	ran map[together]bool
}

func (p *pool) covered() covered {
	out := covered{p, map[together]bool{}}
	for _, t := range p.trials {
		if t.open || t.measured() {
			p.togethers(t.Config, func(x together, _ float64) { out.ran[x] = true })
			for i, axis := range p.axes {
				v := t.Config[axis.Name]
				out.ran[together{i, i, v, v}] = true
			}
		}
	}
	return out
}

// fresh is what those values of a configuration count that have not run together.
func (k covered) fresh(c Config) float64 {
	sum := 0.0
	k.togethers(c, func(x together, weight float64) {
		if !k.ran[x] {
			sum += weight
		}
	})
	return sum
}

// first reports whether a configuration has a choice that has not run at all.
func (k covered) first(c Config) bool {
	for i, axis := range k.axes {
		if v := c[axis.Name]; !axis.Ordered && !k.ran[together{i, i, v, v}] {
			return true
		}
	}
	return false
}

// look is a configuration with what its values count that have not run together.
type look struct {
	config Config
	fresh  float64
}

// most are the configurations of some with most values that have not run together.
func (k covered) most(of []Config) []look {
	var out []look
	have := map[string]bool{}
	for _, c := range of {
		if key := c.key(); !have[key] && k.open(c) {
			have[key] = true
			out = append(out, look{c, k.fresh(c)})
		}
	}
	slices.SortStableFunc(out, func(a, b look) int { return -cmp.Compare(a.fresh, b.fresh) })
	return out[:min(len(out), uncoveredLooks)]
}

// uncovered is the configuration with most values that have not run together, of those that are
// not thought to be far worse than what leads; nil where all have. Two settings may bring together
// what neither brings alone and no prediction knows; a value may be wrong by itself. Logarithms
// add up, so that a launch shows this whatever else its configuration is.
func (p *pool) uncovered() *option {
	lead := p.leader()
	if lead == nil {
		return nil
	}
	k := p.covered()
	all := p.unlike(lead.trial.Config)
	for _, o := range p.options {
		all = append(all, o.config)
	}
	looks := k.most(all)
	configs := make([]Config, len(looks))
	for i, l := range looks {
		configs[i] = l.config
	}
	p.predictAhead(configs)
	var best Config
	most := leastUncovered
	for _, l := range looks {
		c := l.config
		mean, _ := p.fit().At(p.point(c))
		behind := math.Exp(min(0, mean-lead.mean) / fallBehind)
		if behind < firstChoice && k.first(c) {
			behind = firstChoice
		}
		worth := l.fresh * behind * p.runChance(c)
		if lead.score.class == meeting {
			for _, b := range p.limits {
				worth *= b.chance(p.model, c)
			}
		}
		if worth > most {
			best, most = c, worth
		}
	}
	if best == nil {
		return nil
	}
	return p.optionOf(best)
}

// unlike are configurations by chance that differ from one in few or many settings.
func (p *pool) unlike(from Config) []Config {
	rng := stat.Stream(0, fmt.Sprint("race, uncovered ", len(p.trials)+1))
	var out []Config
	for range uncoveredDrawn {
		c, every := from, 2+rng.IntN(4)
		for _, d := range p.search.Domain {
			if rng.IntN(every) == 0 {
				c = anyValue(c, d, rng)
			}
		}
		out = append(out, c)
	}
	return out
}
