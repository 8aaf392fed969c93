package tune

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"perflab/internal/stat"
	"perflab/internal/tune/surrogate"
)

// pool is what may be launched next, each configuration once.
type pool struct {
	*raceState
	limits  []limit
	covered *surrogate.Coverage
	options []*option
	have    map[string]bool
}

// pool begins with what the bottlenecks of the best ask for, steps around them, candidates, and
// some configurations by chance, so that nothing that runs is out of reach.
func (s *raceState) pool() *pool {
	p := &pool{raceState: s, limits: s.limitsOf(), covered: s.coverage(), have: map[string]bool{}}
	best := s.distinct()
	for _, st := range best {
		for _, k := range st.trial.end.Moves {
			p.add(&option{from: st.trial, change: k, config: k.Apply(st.trial.Config), requested: true})
		}
	}
	for _, st := range best {
		for _, k := range s.around(st.trial.Config) {
			p.add(&option{from: st.trial, change: k, config: k.Apply(st.trial.Config)})
		}
	}
	for _, c := range s.candidates {
		if c.runnable() {
			p.add(&option{config: c.Config, candidate: c})
		}
	}
	for _, c := range s.draw() {
		p.addNew(c)
	}
	return p
}

// open reports whether a configuration may be launched next: not with a choice that was launched in vain too often.
func (p *pool) open(config Config) bool {
	return p.raceState.open(config) && !p.covered.Shut(p.locate(config), mostClosed)
}

// add takes an option, unless it had its launch or cannot run.
func (p *pool) add(o *option) {
	k := o.config.key()
	if p.have[k] || !p.open(o.config) {
		return
	}
	p.have[k] = true
	o.worth = p.worth(o.config, o.requested, p.limits)
	p.options = append(p.options, o)
}

// addNew takes a configuration of which it is still to be said what it is, which takes a
// look at every trial.
func (p *pool) addNew(config Config) {
	if !p.have[config.key()] {
		p.add(p.optionOf(config))
	}
}

// best are the most promising.
func (p *pool) best(n int) []*option {
	all := slices.Clone(p.options)
	slices.SortStableFunc(all, func(a, b *option) int { return -cmp.Compare(a.worth, b.worth) })
	return all[:min(n, len(all))]
}

// climb looks for better ones around the most promising, by one setting after another.
func (p *pool) climb() {
	for _, at := range p.best(climbs) {
		for range climbSteps {
			begun := len(p.options)
			for _, k := range p.around(at.config) {
				p.addNew(k.Apply(at.config))
			}
			next := at
			for _, o := range p.options[begun:] {
				if o.worth > next.worth {
					next = o
				}
			}
			if next == at {
				break
			}
			at = next
		}
	}
}

// around are small changes of a configuration: steps on ladders, and other values of one
// choice.
func (s *launcher) around(config Config) []Change {
	return slices.Concat(s.search.Steps(config), s.swaps(config))
}

// swaps change one choice of a configuration to what a candidate of its engine has
// there: with the settings that were found since, another layout may be the better one.
func (s *launcher) swaps(config Config) []Change {
	var out []Change
	for _, axis := range s.axes {
		if axis.Ordered || axis.Name == engineParameter {
			continue
		}
		seen := map[string]bool{config[axis.Name]: true}
		for _, c := range s.candidates {
			v := c.Config[axis.Name]
			if !c.runnable() || c.Config[engineParameter] != config[engineParameter] || seen[v] {
				continue
			}
			seen[v] = true
			out = append(out, Change{Label: setting(axis.Name, v), Set: Config{axis.Name: v}})
		}
	}
	return out
}

// draw are configurations by chance: candidates, and what was launched, with some settings changed to whatever they may
// be; the more of them where no prediction has to be made of each. A draw of everything would set what nobody asked for.
func (s *raceState) draw() []Config {
	var from []Config
	for _, st := range s.standings() {
		from = append(from, st.trial.Config)
	}
	for _, c := range s.candidates {
		if c.runnable() {
			from = append(from, c.Config)
		}
	}
	if len(s.search.Domain) == 0 || len(from) == 0 {
		return nil
	}
	n := drawn
	if !slices.Contains(slices.Collect(maps.Values(s.foretells)), true) {
		n = drawnBlind
	}
	rng := stat.Stream(0, fmt.Sprint("race, launch ", len(s.trials)+1))
	var out []Config
	for range n {
		c := from[rng.IntN(len(from))]
		for more := true; more; more = rng.IntN(2) == 0 {
			c = anyValue(c, s.search.Domain[rng.IntN(len(s.search.Domain))], rng)
		}
		out = append(out, c)
	}
	return out
}

// anyValue is a configuration with another value of a parameter, or the same, by chance.
func anyValue(c Config, d Dimension, rng *rand.Rand) Config {
	if len(d.Values) == 0 {
		return c
	}
	return c.with(d.Name, d.Values[rng.IntN(len(d.Values))])
}

// optionOf says what a configuration is: a candidate, or a change of the trial that is
// likest to it.
func (s *raceState) optionOf(config Config) *option {
	if c := s.contender(config); c != nil {
		return &option{config: config, candidate: c}
	}
	o := &option{config: config}
	for _, t := range s.trials {
		if t.Pass > 0 || !t.measured() {
			continue
		}
		if d := differences(t.Config, config); o.from == nil || len(d) < len(o.change.Set) {
			o.from, o.change.Set = t, d
		}
	}
	if o.from == nil {
		o.candidate = &contender{Candidate: Candidate{Label: settings(config), Config: config}, origin: lineage{candidate: settings(config)}}
		return o
	}
	o.change.Label = settings(o.change.Set)
	return o
}

// differences are the settings that make b of a.
func differences(a, b Config) Config {
	out := Config{}
	for name, v := range b {
		if a[name] != v {
			out[name] = v
		}
	}
	for name := range a {
		if b[name] == "" {
			out[name] = ""
		}
	}
	return out
}

// settings are those of a configuration for a reader.
func settings(c Config) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(c)) {
		parts = append(parts, setting(name, c[name]))
	}
	return strings.Join(parts, ", ")
}

// setting is a parameter's value for a reader.
func setting(name, v string) string {
	switch {
	case v == "":
		return "default " + name
	case name == engineParameter || name == modelParameter:
		return v
	}
	return name + " " + v
}
