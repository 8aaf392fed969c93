package tune

import "math"

// What may be why a configuration was refused: its engine as such, a value on this
// engine, a value whatever the engine, two values together, or nothing but the whole of it; and how likely
// each is beside the others before anything is known.
const (
	blameEngine = 2.0
	blameOn     = 0.4
	blameValue  = 0.5
	blameWhole  = 0.5
	blamePair   = 0.05
	blameAgain  = 8 // by how much a cause gains with each further refusal that it explains
	// brokenShare is how much of a refusal a launch is that our machinery lost: mostly it
	// says nothing of the configuration, unless it happens again and again.
	brokenShare = 0.3
	// otherwise is how likely it is at least that a cause is none that explains one refusal: what
	// else it was with may be at fault. With each further refusal it is so much less likely.
	otherwise = 0.4
)

// usuallyRuns is the chance that a configuration runs of which nothing is known, and
// seldomFits a factor for one of which the predictor says nothing, though it does of
// others of its engine: mostly it has no room. It weighs as much as seldomWeight launches.
const (
	usuallyRuns  = 0.95
	seldomFits   = 0.1
	seldomWeight = 2.0
)

// cause is what a refusal may be laid to: also and with are a second value.
type cause struct{ engine, name, value, also, with string }

// suspect is a cause with its weight.
type suspect struct {
	cause
	weight float64
}

// suspects are the causes that a configuration has in it; key is its own.
func (m *model) suspects(c Config, key string) []suspect {
	engine := c[engineParameter]
	out := []suspect{{cause{engine: engine}, blameEngine}, {cause{value: key}, blameWhole}}
	for _, axis := range m.axes {
		if axis.Name == engineParameter {
			continue
		}
		v := c[axis.Name]
		out = append(out, suspect{cause{engine: engine, name: axis.Name, value: v}, blameOn})
		if v != "" {
			out = append(out, suspect{cause{name: axis.Name, value: v}, blameValue})
		}
	}
	for i, a := range m.axes {
		for _, b := range m.axes[i+1:] {
			if a.Name != engineParameter && b.Name != engineParameter {
				out = append(out, suspect{cause{"", a.Name, c[a.Name], b.Name, c[b.Name]}, blamePair})
			}
		}
	}
	return out
}

// blame learns from all launches why configurations are refused: whatever one has in it
// that ran is no cause, and what is left shares the blame for each refusal, the more of
// it the more refusals it explains. It is the chance of each cause to be one.
func (m *model) blame() map[cause]float64 {
	innocent, explains := map[cause]bool{}, map[cause]int{}
	for _, t := range m.trials {
		if t.end.Status == Measured {
			for _, s := range m.predict(t.Config).suspects {
				innocent[s.cause] = true
			}
		}
	}
	type incident struct {
		of    []suspect
		share float64
	}
	var cases []incident
	seen := map[string]bool{}
	for _, t := range m.trials {
		k := t.Config.key()
		if t.end.Status != Refused && t.end.Status != Failed || seen[k] {
			continue
		}
		seen[k] = true
		c := incident{share: 1}
		if t.end.Status == Failed {
			c.share = brokenShare
		}
		for _, s := range m.predict(t.Config).suspects {
			if !innocent[s.cause] {
				c.of = append(c.of, s)
				explains[s.cause]++
			}
		}
		cases = append(cases, c)
	}
	out := map[cause]float64{}
	for _, c := range cases {
		sum := 0.0
		for i, s := range c.of {
			for range explains[s.cause] - 1 {
				c.of[i].weight *= blameAgain
			}
			sum += c.of[i].weight
		}
		for _, s := range c.of {
			out[s.cause] = min(1-math.Pow(otherwise, float64(explains[s.cause])), 1-(1-out[s.cause])*(1-c.share*s.weight/sum))
		}
	}
	return out
}

// runChance is the chance that a configuration runs.
func (m *model) runChance(config Config) float64 {
	m.fit()
	chance := usuallyRuns
	p := m.predict(config)
	for _, s := range p.suspects {
		chance *= 1 - m.blamed[s.cause]
	}
	if p.figures == nil && m.foretells[config[engineParameter]] {
		chance *= m.unforetold()
	}
	return chance
}

// unforetold is the chance that a configuration runs of which the predictor says nothing: as often as
// such ones did.
func (m *model) unforetold() float64 {
	n, ran := seldomWeight, seldomWeight*seldomFits
	for _, t := range m.trials {
		if t.open || t.spoiled() || m.predict(t.Config).figures != nil || !m.foretells[t.Config[engineParameter]] {
			continue
		}
		n++
		if t.measured() {
			ran++
		}
	}
	return ran / n
}
