package tune

import (
	"math"

	"perflab/internal/stat"
	"perflab/internal/tune/surrogate"
)

// What a bottleneck asks for is likelier to help than the surrogate, which knows
// no bottleneck, believes: so much better and so much less sure, on logarithms.
const (
	requestedGain   = 0.02
	requestedSpread = 0.08
)

// worth is what a launch of a configuration is expected to gain, as a share: its
// expected improvement over what leads, by the chance that it runs and meets the bounds.
// While nothing meets the bounds it is the chance alone that decides.
func (m *model) worth(config Config, requested bool, limits []limit) float64 {
	lead := m.leader()
	chance := m.runChance(config)
	for _, l := range limits {
		chance *= l.chance(m, config)
	}
	if lead == nil {
		return m.thought(config) * chance
	}
	gain, ahead := 0.0, 0.0
	for _, b := range m.rival().Beliefs(m.point(config)) {
		if requested {
			b.Mean, b.SD = b.Mean+requestedGain, math.Hypot(b.SD, requestedSpread)
		}
		ahead += b.Weight * b.Mean
		gain += b.Weight * surrogate.Expected(b.Mean, b.SD)
	}
	if lead.score.class == meeting {
		return gain * chance
	}
	return (1 + max(0, ahead)) * chance
}

// thought is what the ratio of a configuration to the baseline is thought to be.
func (m *model) thought(config Config) float64 {
	mean, _ := m.fit().At(m.point(config))
	return math.Exp(mean)
}

// limit is a bound with what is thought of its figure: the chance to meet it.
type limit struct {
	Bound
	fit  *surrogate.Model
	base float64 // log of the baseline's predicted figure
	ref  float64 // and of the measured one
}

// limitsOf are the bounds about which something can be thought.
func (m *model) limitsOf() []limit {
	var out []limit
	sd, _, _ := m.spread()
	noise := max(2*sd, 0.05)
	for _, b := range m.bounds.SLOs {
		l := limit{Bound: b, base: logPositive(m.ofBase().figures[b.Metric])}
		if !(b.Limit > 0) {
			continue
		}
		logs := m.baseLogs(b.Metric)
		if len(logs) == 0 {
			continue
		}
		l.ref = logs[0]
		if math.IsNaN(l.base) {
			l.base = m.agreed(func(t *trial, of *prediction) float64 {
				return logPositive(of.figures[b.Metric]) - (logPositive(t.merged[b.Metric]) - l.ref)
			})
		}
		var points []surrogate.Point
		for _, t := range m.trials {
			v := logPositive(t.merged[b.Metric])
			if t.Pass != 0 || !t.measured() || math.IsNaN(v) {
				continue
			}
			p := l.point(m, t.Config)
			p.Y, p.Noise = v-l.ref, noise*noise
			points = append(points, p)
		}
		l.fit = surrogate.New(points, m.choices)
		out = append(out, l)
	}
	return out
}

func (l limit) point(m *model, config Config) surrogate.Point {
	of := m.predict(config)
	p := of.point
	p.X, p.Known = 0, false
	if v := logPositive(of.figures[l.Metric]); !math.IsNaN(v) && !math.IsNaN(l.base) {
		p.X, p.Known = v-l.base, true
	}
	return p
}

func (l limit) chance(m *model, config Config) float64 {
	mean, sd := l.fit.At(l.point(m, config))
	z := (math.Log(l.Limit) - l.ref - mean) / math.Hypot(sd, 0.03)
	if l.Op == ">=" {
		z = -z
	}
	return stat.NormalCDF(z)
}

func logPositive(v float64) float64 {
	if !(v > 0) || math.IsInf(v, 1) {
		return math.NaN()
	}
	return math.Log(v)
}
