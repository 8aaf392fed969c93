package tune

import "perflab/internal/tune/blame"

// usuallyRuns is the chance that a configuration runs of which nothing is known, and
// seldomFits a factor for one of which the predictor says nothing, though it does of
// others of its engine: mostly it has no room. It weighs as much as seldomWeight launches.
const (
	usuallyRuns  = 0.95
	seldomFits   = 0.1
	seldomWeight = 2.0
)

// suspects are what may be at fault in a configuration; key is its own.
func (m *model) suspects(c Config, key string) []blame.Suspect {
	var settings []blame.Setting
	for _, axis := range m.axes {
		if axis.Name != engineParameter {
			settings = append(settings, blame.Setting{Name: axis.Name, Value: c[axis.Name]})
		}
	}
	return blame.Suspects(c[engineParameter], key, settings)
}

// faults are what refusals are laid to by all launches, those of one configuration once.
func (m *model) faults() blame.Faults {
	var all []blame.Launch
	seen := map[string]bool{}
	for _, t := range m.trials {
		l := blame.Launch{Of: m.predict(t.Config).suspects, Ran: t.end.Status == Measured, Lost: t.end.Status == Failed}
		k := t.Config.key()
		if l.Ran || (t.end.Status == Refused || l.Lost) && !seen[k] {
			seen[k] = seen[k] || !l.Ran
			all = append(all, l)
		}
	}
	return blame.Learn(all)
}

// runChance is the chance that a configuration runs.
func (m *model) runChance(config Config) float64 {
	m.fit()
	p := m.predict(config)
	chance := usuallyRuns * m.blamed.Runs(p.suspects)
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
