package calib

import (
	"maps"
	"math"
	"slices"

	"perflab/internal/sim"
)

// betweenMachines is the least spread of an engine's constants between machines, as a
// standard deviation of logarithms: their hosts differ.
const betweenMachines = 0.35

// pooledPriors is what fits on accelerators other than one say of the constants that
// belong to engines: the middle of their logarithms, for hardware on which the
// engine has not been measured, and as a prior where it has.
func pooledPriors(problems []*problem, except string) []sim.Set {
	logs := map[string]map[string][]float64{} // engine, constant
	for _, p := range problems {
		if p.accelerator == except {
			continue
		}
		for _, q := range p.params {
			if q.Engine == "" || q.Spread >= q.PriorSpread*0.95 { // the runs do not tell
				continue
			}
			if logs[q.Engine] == nil {
				logs[q.Engine] = map[string][]float64{}
			}
			logs[q.Engine][q.Name] = append(logs[q.Engine][q.Name], math.Log(q.Value))
		}
	}
	var sets []sim.Set
	for _, e := range slices.Sorted(maps.Keys(logs)) {
		s := sim.Set{Engine: e, Values: map[string]float64{}, Spread: map[string]float64{}, Source: "middle of the accelerators' fits"}
		for name, v := range logs[e] {
			var sum, square float64
			for _, x := range v {
				sum += x
			}
			n := float64(len(v))
			for _, x := range v {
				square += (x - sum/n) * (x - sum/n)
			}
			s.Values[name] = round(math.Exp(sum / n))
			s.Spread[name] = round(math.Sqrt(max(betweenMachines*betweenMachines, square/max(1, n-1)) * (1 + 1/n)))
		}
		sets = append(sets, s)
	}
	return sets
}

// withPriors is the problem with sets over its priors, solved from where it stands.
func (p *problem) withPriors(sets []sim.Set) (*problem, error) {
	o := p.options
	var err error
	if o.Base, err = o.Base.With(sets...); err != nil {
		return nil, err
	}
	n, err := newProblem(p.accelerator, p.obs, o)
	if err != nil {
		return nil, err
	}
	n.pooled = sets
	n.slopes = p.slopes // by the same unknowns: only their priors differ
	start := make([]float64, len(n.params))
	for i, q := range n.params {
		start[i] = math.Log(p.params[i].Value / q.Prior)
	}
	use := n.all()
	at, err := n.predict(start, use)
	if err != nil {
		return nil, err
	}
	x, at, err := n.descend(start, at, use)
	if err != nil {
		return nil, err
	}
	n.conclude(x, at)
	return n, nil
}
