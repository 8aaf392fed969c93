package tune

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"perflab/internal/stat"
	"perflab/internal/tune/surrogate"
)

// What is looked at that has not run yet: so many configurations by chance, of which so many are predicted.
const (
	uncoveredDrawn = 300
	uncoveredLooks = 60
)

// What is thought to be worse than the leader counts less, by a factor e for each fallBehind of the logarithm; but with
// a choice that has not run at all, of which the predictor alone is asked, by firstChoice at most.
// What counts for less than leastUncovered is not worth a launch.
const (
	fallBehind     = 0.15
	firstChoice    = 0.3
	leastUncovered = 1.0
)

// A choice with which all was refused is launched mostClosed times at most. Another launch with it counts as
// many settings as it has that were not refused with it, by a factor e less for each closedBehind of the
// logarithm that it is thought to be worse; what counts for less than leastClosed is not worth one.
const (
	mostClosed   = 5
	closedBehind = 0.3
	leastClosed  = 0.5
)

// coverage is what has run together; without a budget, which nothing else would end, every value by itself.
func (s *launcher) coverage() *surrogate.Coverage {
	k := &surrogate.Coverage{Alone: !s.bounded()}
	for _, t := range s.trials {
		switch at := s.locate(t.Config); {
		case t.open || t.measured():
			k.Add(at)
		case t.end.Status == Refused:
			k.Refuse(at)
		case t.end.Status == Failed:
			k.Lose(at)
		}
	}
	return k
}

// closed is a configuration with a choice that was always refused, and otherwise most unlike what was
// refused with it: an engine or a layout may want less memory or smaller batches, and its log need not say
// so. How likely the next one is to run does not count: by the refusals alone the choice is to blame.
func (p *pool) closed() *option {
	lead := p.leader()
	if lead == nil {
		return nil
	}
	k := p.covered
	var all []Config
	for _, c := range p.candidates {
		if place, is := k.Closed(c.point, mostClosed); is && c.runnable() {
			all = append(append(all, p.vary(c.Config, p.axes[place].Name)...), c.Config)
		}
	}
	unlike := func(at surrogate.Point) float64 {
		if place, is := k.Closed(at, mostClosed); is {
			return float64(k.Unlike(at, place))
		}
		return 0
	}
	var best Config
	most := leastClosed
	for looks := range slices.Chunk(p.fresh(unlike, all), uncoveredLooks) {
		if looks[0].fresh <= most {
			break // what is thought of it makes it no more
		}
		p.foresee(looks)
		for _, l := range looks {
			mean, _ := p.fit().At(p.point(l.config))
			if worth := l.fresh * math.Exp(min(0, mean-lead.mean)/closedBehind); worth > most {
				best, most = l.config, worth
			}
		}
	}
	if best == nil {
		return nil
	}
	return p.optionOf(best)
}

// look is a configuration with what counts in it that is new.
type look struct {
	config Config
	fresh  float64
}

// fresh are those of some configurations that are open, with what is counted of each, the most first.
func (p *pool) fresh(count func(surrogate.Point) float64, of []Config) []look {
	var out []look
	have := map[string]bool{}
	for _, c := range of {
		if key := c.key(); !have[key] && p.open(c) {
			have[key] = true
			out = append(out, look{c, count(p.locate(c))})
		}
	}
	slices.SortStableFunc(out, func(a, b look) int { return -cmp.Compare(a.fresh, b.fresh) })
	return out
}

// foresee has configurations predicted together.
func (p *pool) foresee(looks []look) {
	var configs []Config
	for _, l := range looks {
		configs = append(configs, l.config)
	}
	p.predictAhead(configs)
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
	k := p.covered
	all := p.unlike(lead.trial.Config)
	for _, o := range p.options {
		all = append(all, o.config)
	}
	looks := p.fresh(k.Fresh, all)
	looks = looks[:min(len(looks), uncoveredLooks)]
	p.foresee(looks)
	var best Config
	most := leastUncovered
	for _, l := range looks {
		c := l.config
		mean, _ := p.fit().At(p.point(c))
		behind := math.Exp(min(0, mean-lead.mean) / fallBehind)
		if behind < firstChoice && k.First(p.point(c)) {
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
