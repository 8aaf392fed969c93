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

// faults are what refusals are laid to by all launches, those of one configuration once.
func (m *model) faults() blame.Faults {
	var all []blame.Launch
	seen := map[string]bool{}
	for _, t := range m.trials {
		l := blame.Launch{Of: m.predict(t.Config).traits, Ran: t.end.Status == Measured, Lost: t.end.Status == Failed}
		k := t.Config.key()
		if l.Ran || (t.end.Status == Refused || l.Lost) && !seen[k] {
			seen[k] = seen[k] || !l.Ran
			all = append(all, l)
		}
	}
	return blame.Learn(m.traits, all)
}

// runChance is the chance that a configuration runs.
func (m *model) runChance(config Config) float64 {
	m.fit()
	p := m.predict(config)
	chance := usuallyRuns * m.blamed.Runs(p.traits)
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
