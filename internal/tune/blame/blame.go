// Package blame learns from launches why configurations are refused: by the engine as such, by a
// value on it or anywhere, by two values together, as an engine or a choice needs another value of
// a parameter, or by nothing but the whole. Pure.
//
//	of := blame.Of(parameters, "vllm", key, values)  // a configuration
//	faults := blame.Learn(parameters, launches)      // which ran, which were refused
//	chance := faults.Runs(of)                        // that it runs
//
// Each cause is there with a chance of its own, and a configuration that has one in it is refused
// (the noisy-or of Pearl, Probabilistic Reasoning in Intelligent Systems, 1988, without the noise).
// What ran had none. Sets of causes that explain the refusals are drawn by their probability (Gibbs
// sampling): so two causes that explain the same refusals share the blame, and a refusal that one
// cause explains says nothing of another. It knows no log and no rule: what those say is known before a launch.
package blame

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strconv"
)

// How likely a cause is before anything is known, once a configuration with it in it is refused: what
// foretells best which configurations run, on landscapes of package science (docs/tuning.md).
const (
	ofEngine    = 0.08
	onEngine    = 0.008 // a value on this engine
	ofValue     = 0.008 // a value whatever the engine
	ofPair      = 0.002
	ofWhole     = 0.005
	engineNeeds = 0.08  // another value of one parameter: all of these together
	choiceNeeds = 0.004 // so does a choice, as a layout
	tooSmall    = 0.3   // how likely it is that a number is too small, beside that it is too large
	// How likely it is that what has no cause in it is refused all the same, and that our machinery
	// loses it, beside what has one.
	unexplained = 0.003
	lostAnyway  = 0.4
)

// How many sets of causes are drawn, by how many steps through all of them each, after how many.
const (
	draws = 256
	steps = 3
	warm  = 60
)

// Parameter is what configurations may differ in, beside their engine.
type Parameter struct {
	Name    string
	Values  []string // "" is the engine's own
	Ordered bool     // numbers: one too large may be why, or too small
}

// Config is a configuration as far as it may be at fault.
type Config struct {
	engine, key string
	settings    []setting // by parameter
}

type setting struct {
	value   string
	ordered bool
	log     float64 // not a number for what is none, which is thought to be a large one
}

// Of is a configuration of an engine with some values of the parameters; key is its own.
func Of(parameters []Parameter, engine, key string, values map[string]string) *Config {
	c := &Config{engine: engine, key: key}
	for _, p := range parameters {
		c.settings = append(c.settings, p.setting(values[p.Name]))
	}
	return c
}

func (p *Parameter) setting(value string) setting {
	s := setting{value, p.Ordered, math.NaN()}
	if x, err := strconv.ParseFloat(value, 64); err == nil && x > 0 {
		s.log = math.Log(x)
	}
	return s
}

// Launch is how a configuration fared.
type Launch struct {
	Of   *Config
	Ran  bool // or else it was refused
	Lost bool // by our machinery, as far as is known
}

// relation is what a setting is beside another value of its parameter.
type relation int

const (
	whatever relation = iota
	same
	other
	above
	below
)

// cause is what a refusal may be laid to.
type cause struct {
	engine string // "": whatever the engine
	key    string // of the whole; "": whatever else it has
	with   int    // a parameter, which has a value; below 0: none
	value  string
	of     int // another parameter, of which is says what its value is
	is     relation
	to     string  // the value that it is held against
	log    float64 // that of a number
}

func (k *cause) in(c *Config) bool {
	if k.key != "" {
		return k.key == c.key
	}
	if k.engine != "" && k.engine != c.engine || k.with >= 0 && c.settings[k.with].value != k.value {
		return false
	}
	switch k.is {
	case same:
		return c.settings[k.of].value == k.to
	case other:
		return c.settings[k.of].value != k.to
	case above:
		return !(c.settings[k.of].log <= k.log)
	case below:
		return c.settings[k.of].log < k.log
	}
	return true
}

// drawn are the sets that a cause is in.
type drawn [draws / 64]uint64

// Faults are causes with the sets that were drawn of them.
type Faults []fault

type fault struct {
	cause
	sets drawn
}

// Runs is the chance that a configuration runs, as far as what was refused tells.
func (f Faults) Runs(c *Config) float64 {
	var refused drawn
	for i := range f {
		if k := &f[i]; k.in(c) {
			for w, sets := range k.sets {
				refused[w] |= sets
			}
		}
	}
	n := 0
	for _, sets := range refused {
		n += bits.OnesCount64(sets)
	}
	return float64(draws+1-n) / (draws + 1)
}

// Learn finds what launches were refused for.
func Learn(parameters []Parameter, launches []Launch) Faults {
	s := suspects{parameters: parameters, seen: map[cause]bool{}}
	for _, l := range launches {
		if l.Ran {
			s.ran = append(s.ran, l.Of)
			continue
		}
		s.refused = append(s.refused, l.Of)
		weight := -math.Log(unexplained)
		if l.Lost {
			weight = -math.Log(lostAnyway)
		}
		s.weights = append(s.weights, weight)
	}
	for _, c := range s.refused {
		s.consider(c)
	}
	return s.draw(rand.New(rand.NewPCG(uint64(len(s.ran)), uint64(len(s.refused)))))
}

// suspects are the causes that may be there.
type suspects struct {
	parameters []Parameter
	ran        []*Config
	refused    []*Config
	weights    []float64 // of each refusal: the logarithm of how much likelier one is with a cause than without
	seen       map[cause]bool
	all        []suspect
}

type suspect struct {
	cause
	odds     float64 // before anything is known, as a logarithm
	explains []int   // of what was refused
	there    bool    // in the set that is drawn
	sets     drawn
}

// add adds a cause, unless something ran that has it in it.
func (s *suspects) add(k cause, chance float64) {
	if s.seen[k] {
		return
	}
	s.seen[k] = true
	if slices.ContainsFunc(s.ran, k.in) {
		return
	}
	x := suspect{cause: k, odds: math.Log(chance / (1 - chance))}
	for i, c := range s.refused {
		if k.in(c) {
			x.explains = append(x.explains, i)
		}
	}
	s.all = append(s.all, x)
}

// consider adds the causes that a refused configuration has in it.
func (s *suspects) consider(c *Config) {
	engine := cause{engine: c.engine, with: -1}
	s.add(engine, ofEngine)
	s.add(cause{key: c.key, with: -1}, ofWhole)
	s.addNeeds(c, engine, engineNeeds)
	for i, x := range c.settings {
		s.add(cause{engine: c.engine, with: i, value: x.value}, onEngine)
		value := cause{with: i, value: x.value}
		if x.value != "" {
			s.add(value, ofValue)
			if !x.ordered {
				s.addNeeds(c, value, choiceNeeds)
			}
		}
		for j, y := range c.settings[i+1:] {
			pair := value
			pair.of, pair.is, pair.to = i+1+j, same, y.value
			s.add(pair, ofPair)
		}
	}
}

// addNeeds adds that what has an engine or a choice in it needs a value of a parameter that a refused
// configuration has not: another choice, or a number that is no larger, or no smaller.
func (s *suspects) addNeeds(c *Config, what cause, chance float64) {
	for i, x := range c.settings {
		if i == what.with {
			continue
		}
		p := s.parameters[i]
		each := chance / float64(max(1, len(p.Values)-1))
		what.of = i
		for _, value := range p.Values {
			k, v := what, p.setting(value)
			switch {
			case v.value == x.value:
			case !x.ordered:
				k.is, k.to = other, v.value
				s.add(k, each)
			case !(x.log <= v.log) && !math.IsNaN(v.log):
				k.is, k.log = above, v.log
				s.add(k, each)
			case x.log < v.log:
				k.is, k.log = below, v.log
				s.add(k, each*tooSmall)
			}
		}
	}
}

// draw draws sets of causes, one cause after another by what the others leave for it to explain.
func (s *suspects) draw(rng *rand.Rand) Faults {
	explained := make([]int, len(s.refused)) // by how many of the set
	step := func() {
		for i := range s.all {
			k := &s.all[i]
			odds, own := k.odds, 0
			if k.there {
				own = 1
			}
			for _, r := range k.explains {
				if explained[r] == own {
					odds += s.weights[r]
				}
			}
			there := rng.Float64() < 1/(1+math.Exp(-odds))
			if there == k.there {
				continue
			}
			k.there = there
			for _, r := range k.explains {
				if there {
					explained[r]++
				} else {
					explained[r]--
				}
			}
		}
	}
	for range warm {
		step()
	}
	for n := range draws {
		for range steps {
			step()
		}
		for i := range s.all {
			if k := &s.all[i]; k.there {
				k.sets[n/64] |= 1 << (n % 64)
			}
		}
	}
	var out Faults
	for _, k := range s.all {
		if k.sets != (drawn{}) {
			out = append(out, fault{k.cause, k.sets})
		}
	}
	return out
}
