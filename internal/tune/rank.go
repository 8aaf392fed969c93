package tune

import (
	"cmp"
	"maps"
	"slices"

	"perflab/internal/tune/surrogate"
)

// contender is a candidate in the race.
type contender struct {
	Candidate
	origin lineage
	point  surrogate.Point
}

func (c *contender) runnable() bool { return c.Refused == "" }

// contender is the candidate that has a configuration and runs; nil for none.
func (s *launcher) contender(config Config) *contender {
	i := slices.IndexFunc(s.candidates, func(c *contender) bool { return c.runnable() && maps.Equal(c.Config, config) })
	if i < 0 {
		return nil
	}
	return s.candidates[i]
}

// rank orders the candidates by what is predicted, refused ones last.
func (m *model) rank(candidates []Candidate) []*contender {
	var out []*contender
	var runnable []Config
	for _, k := range candidates {
		if k.Refused == "" {
			runnable = append(runnable, Change{}.Apply(k.Config))
		}
	}
	m.predictAhead(runnable)
	seen := map[string]bool{}
	for _, k := range candidates {
		k.Config = Change{}.Apply(k.Config)
		key := k.Config.key()
		if seen[key] {
			continue
		}
		seen[key] = true
		c := &contender{Candidate: k, origin: lineage{candidate: k.Label}, point: m.locate(k.Config)}
		if k.Refused == "" {
			c.point = m.point(k.Config)
		}
		out = append(out, c)
	}
	out = append(out, m.refineByPrediction(out)...)
	slices.SortStableFunc(out, func(a, b *contender) int {
		refused := func(c *contender) int { return min(1, len(c.Refused)) }
		return cmp.Or(cmp.Compare(refused(a), refused(b)), -cmp.Compare(a.point.X, b.point.X))
	})
	return out
}

// How far the predictor alone refines candidates before any is launched: the best of
// so many kinds (an engine with a checkpoint, a KV type, a way to speculate: what is
// best for one seldom is for another) and so many more, so many steps of each, none
// for less than a half percent.
const (
	predictedKinds      = 12
	predictedCandidates = 3
	predictedSteps      = 4
	predictedGain       = 0.005
)

// refineByPrediction are candidates beside the given ones: what the predictor makes
// of the best of them by small steps.
func (m *model) refineByPrediction(given []*contender) []*contender {
	ranked := slices.DeleteFunc(slices.Clone(given), func(c *contender) bool { return c.Refused != "" || !c.point.Known })
	slices.SortStableFunc(ranked, func(a, b *contender) int { return -cmp.Compare(a.point.X, b.point.X) })
	kinds, seen := map[string]bool{}, map[string]bool{}
	for _, c := range given {
		seen[c.Config.key()] = true
	}
	var out []*contender
	for i, c := range ranked {
		kind := c.Config[engineParameter] + " " + m.search.Numerics(c.Config)
		if i >= predictedCandidates && kinds[kind] || len(kinds) >= predictedKinds && !kinds[kind] {
			continue
		}
		kinds[kind] = true
		if t := m.climb(c); t != nil && !seen[t.Config.key()] {
			seen[t.Config.key()] = true
			out = append(out, t)
		}
	}
	return out
}

// climb takes the step that is predicted to bring most, again and again; nil where
// none brings anything.
func (m *model) climb(c *contender) *contender {
	at := *c
	for range predictedSteps {
		best := at.point.X + predictedGain
		var step *Change
		steps := m.search.Steps(at.Config)
		m.predictAhead(made(at.Config, steps))
		for _, k := range steps {
			config := k.Apply(at.Config)
			if m.search.Refuse(config) != "" || !m.predictedToMeet(config) {
				continue
			}
			if p := m.point(config); p.Known && p.X > best {
				best, step = p.X, &k
			}
		}
		if step == nil {
			break
		}
		at.Config = step.Apply(at.Config)
		at.origin = at.origin.with(*step)
		at.point = m.point(at.Config)
	}
	if len(at.origin.changes) == 0 {
		return nil
	}
	at.Label, at.Prior, at.Named = at.origin.String(), "the predictor", false
	return &at
}
