package tune

import (
	"cmp"
	"math"
	"slices"
	"strconv"
)

// foresight is what was predicted of a configuration.
type foresight struct {
	figures map[string]float64 // merged; nil: nothing
	log     float64            // of the objective; not a number: nothing
}

// foresee predicts a configuration, once.
func (c *course) foresee(config Config) foresight {
	k := config.key()
	if f, ok := c.foreseen[k]; ok {
		return f
	}
	f := foresight{log: math.NaN()}
	if c.predictor != nil {
		o := Observation{Status: Measured, Figures: map[string]map[string]float64{}}
		for _, w := range c.workloads() {
			if figures, ok := c.predictor.Predict(config, w); ok {
				o.Figures[w] = figures
			}
		}
		f.figures = c.merge(o)
		f.log = c.logOf(f.figures)
	}
	c.foreseen[k] = f
	return f
}

// point is a configuration as the surrogate of the objective sees it.
func (c *course) point(config Config) point {
	p := c.place(config)
	base := c.foresee(Change{}.Apply(c.space.Baseline))
	if f := c.foresee(config); !math.IsNaN(f.log) && !math.IsNaN(base.log) {
		p.x, p.known = f.log-base.log, true
	}
	return p
}

// place is where a configuration lies among the others: its values of every parameter
// that any may set.
func (c *course) place(config Config) point {
	p := point{engine: config[engineParameter], at: make([]coordinate, len(c.axes))}
	for i, axis := range c.axes {
		p.at[i] = coordinate{axis.Name, config[axis.Name], axis.Ordered, math.NaN()}
		if x, err := strconv.ParseFloat(config[axis.Name], 64); err == nil && x > 0 {
			p.at[i].log = math.Log2(x)
		}
	}
	return p
}

// feasible is the chance that a configuration runs, by how those most like it
// did: refusals count as far as they resemble it, against a prior of nine in ten.
func (c *course) feasible(config Config) float64 {
	var s surrogate
	yes, no := 0.9*2, 0.1*2
	at := c.place(config)
	for _, t := range c.trials {
		same, apart := s.compare(at, c.place(t.Config))
		if same == 0 {
			continue
		}
		like := math.Exp(-apart)
		switch t.end.Status {
		case Measured:
			yes += like
		case Refused:
			no += 3 * like
		}
	}
	return yes / (yes + no)
}

// model is what the objective is thought to be, by all launches of the search.
func (c *course) model() *surrogate {
	sd, _, _ := c.spread()
	within := c.within()
	var points []point
	for _, t := range c.trials {
		ref := c.reference(t.Share)
		if t.Pass != 0 || !t.measured() || math.IsNaN(ref) {
			continue
		}
		p := c.point(t.Config)
		p.y, p.noise = t.log-ref, sd*sd+within*within
		points = append(points, p)
	}
	return newSurrogate(points)
}

// standing is a configuration that was measured and what it is thought to be.
type standing struct {
	trial *trial // its last launch, under the largest share of the load
	mean  float64
	sd    float64
	score score // of that launch, or of all of them where there are more
}

// standings are all measured configurations of the search, the best first:
// what meets the bounds, then what is thought best. A single lucky launch does not
// lead where predictions and neighbours say otherwise.
func (c *course) standings() []standing {
	m := c.model()
	last := map[string]*trial{}
	var keys []string
	for _, t := range c.trials {
		k := t.Config.key()
		if t.Pass != 0 || !t.measured() {
			continue
		}
		if last[k] == nil {
			keys = append(keys, k)
		}
		if last[k] == nil || full(t) >= full(last[k]) {
			last[k] = t
		}
	}
	out := make([]standing, len(keys))
	for i, k := range keys {
		t := last[k]
		mean, sd := m.at(c.point(t.Config))
		out[i] = standing{t, mean, sd, c.scoreOf(t)}
	}
	slices.SortStableFunc(out, func(a, b standing) int {
		return cmp.Or(-cmp.Compare(a.score.class, b.score.class), cmp.Compare(a.score.miss, b.score.miss), -cmp.Compare(a.mean, b.mean))
	})
	return out
}

// full is the share of the load as a number that can be compared.
func full(t *trial) float64 {
	if t.Share == 0 {
		return 1
	}
	return t.Share
}

// scoreOf is how a configuration stands by all its launches under the share of t:
// bounds are held against the means.
func (c *course) scoreOf(t *trial) score {
	all := c.launches(t.Config, t.Share)
	if len(all) < 2 || t.score.class == none {
		return t.score
	}
	s := c.bounds.score(Measured, mean(all))
	if p, ok := c.given[c.guide.Numerics(t.Config)]; ok && !p.Accepted {
		s.class, s.miss = missing, math.Inf(1)
	}
	return s
}

// mean is the arithmetic mean of each figure that all launches have.
func mean(trials []*trial) map[string]float64 {
	out := map[string]float64{}
	for name := range trials[0].merged {
		sum := 0.0
		for _, t := range trials {
			v, ok := t.merged[name]
			if !ok {
				sum = math.NaN()
			}
			sum += v
		}
		if !math.IsNaN(sum) {
			out[name] = sum / float64(len(trials))
		}
	}
	return out
}

// leader is what leads the search; nil while nothing is measured.
func (c *course) leader() *standing {
	if s := c.standings(); len(s) > 0 {
		return &s[0]
	}
	return nil
}
