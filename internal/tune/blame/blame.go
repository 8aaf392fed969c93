// Package blame learns from launches why configurations are refused: by the engine as such, by a
// value on it or anywhere, by two values together, or by nothing but the whole. Pure.
//
//	of := blame.Suspects("vllm", key, settings)      // what may be at fault in a configuration
//	faults := blame.Learn([]blame.Launch{{Of: of}})  // it was refused
//	chance := faults.Runs(of)                        // that one with these in it runs
//
// It knows no log and no rule: what those say is known before a launch.
package blame

import "math"

// How likely each cause is beside the others before anything is known.
const (
	ofEngine  = 2.0
	onEngine  = 0.4 // a value on this engine
	ofValue   = 0.5 // a value whatever the engine
	ofWhole   = 0.5
	ofPair    = 0.05
	moreAgain = 8 // by how much a cause gains with each further refusal that it explains
	// lostShare is how much of a refusal a launch is that our machinery lost: mostly it
	// says nothing of the configuration, unless it happens again and again.
	lostShare = 0.3
	// otherwise is how likely it is at least that a cause is none that explains one refusal: what
	// else it was with may be at fault. With each further refusal it is so much less likely.
	otherwise = 0.4
)

// Setting is a parameter with its value; "" is the engine's own.
type Setting struct{ Name, Value string }

// cause is what a refusal may be laid to.
type cause struct {
	engine  string
	setting Setting
	with    Setting // a second one
}

// Suspect is a cause that a configuration has in it, with its weight.
type Suspect struct {
	cause
	weight float64
}

// Suspects are the causes that a configuration of an engine has in it: key is its own, and settings
// are what it may differ in from others.
func Suspects(engine, key string, settings []Setting) []Suspect {
	out := []Suspect{{cause{engine: engine}, ofEngine}, {cause{setting: Setting{Value: key}}, ofWhole}}
	for i, s := range settings {
		out = append(out, Suspect{cause{engine: engine, setting: s}, onEngine})
		if s.Value != "" {
			out = append(out, Suspect{cause{setting: s}, ofValue})
		}
		for _, with := range settings[i+1:] {
			out = append(out, Suspect{cause{setting: s, with: with}, ofPair})
		}
	}
	return out
}

// Launch is how a configuration fared.
type Launch struct {
	Of   []Suspect
	Ran  bool // or else it was refused
	Lost bool // by our machinery, as far as is known
}

// Faults are causes with the chance of each to be one.
type Faults map[cause]float64

// Learn finds the causes: whatever one has in it that ran is none, and what is left shares the blame
// for each refusal, the more of it the more refusals it explains.
func Learn(launches []Launch) Faults {
	innocent, explains := map[cause]bool{}, map[cause]int{}
	for _, l := range launches {
		for _, s := range l.Of {
			innocent[s.cause] = innocent[s.cause] || l.Ran
		}
	}
	var cases []Launch
	for _, l := range launches {
		if l.Ran {
			continue
		}
		left := Launch{Lost: l.Lost}
		for _, s := range l.Of {
			if !innocent[s.cause] {
				left.Of = append(left.Of, s)
				explains[s.cause]++
			}
		}
		cases = append(cases, left)
	}
	out := Faults{}
	for _, c := range cases {
		sum, share := 0.0, 1.0
		if c.Lost {
			share = lostShare
		}
		for i, s := range c.Of {
			c.Of[i].weight *= math.Pow(moreAgain, float64(explains[s.cause]-1))
			sum += c.Of[i].weight
		}
		for _, s := range c.Of {
			out[s.cause] = min(1-math.Pow(otherwise, float64(explains[s.cause])), 1-(1-out[s.cause])*(1-share*s.weight/sum))
		}
	}
	return out
}

// Runs is the chance that a configuration with some causes in it runs, as far as they are at fault.
func (f Faults) Runs(of []Suspect) float64 {
	chance := 1.0
	for _, s := range of {
		chance *= 1 - f[s.cause]
	}
	return chance
}
