package calib

import (
	"maps"
	"slices"

	"perflab/internal/sim"
)

// Fitted is what a fit found.
type Fitted struct {
	Constants  *sim.Constants
	Sets       []sim.Set
	Parameters []Parameter
	Residuals  []Residual // in sample: no measure of accuracy
}

// Fit finds the constants that explain the observations best, each accelerator
// by itself: the least sum of squares of log residuals over their noise and of
// log distances from the priors over their spread.
func Fit(obs []Observation, o FitOptions) (*Fitted, error) {
	o = o.complete()
	problems, pooled, err := solveAll(obs, o)
	if err != nil {
		return nil, err
	}
	f := &Fitted{Sets: pooled}
	for _, p := range problems {
		f.Sets = append(f.Sets, p.sets()...)
		f.Parameters = append(f.Parameters, p.params...)
		f.Residuals = append(f.Residuals, p.report...)
	}
	f.Constants, err = o.Base.With(f.Sets...)
	return f, err
}

// solveAll fits each accelerator by itself, and again with what the others say
// of the engines in the place of the priors. pooled is what all of them say.
func solveAll(obs []Observation, o FitOptions) (problems []*problem, pooled []sim.Set, err error) {
	groups := byAccelerator(slices.DeleteFunc(slices.Clone(obs), func(b Observation) bool { return !b.fitted() }))
	for _, gpu := range slices.Sorted(maps.Keys(groups)) {
		p, err := newProblem(gpu, groups[gpu], o)
		if err != nil {
			return nil, nil, err
		}
		if err := p.fit(); err != nil {
			return nil, nil, err
		}
		problems = append(problems, p)
	}
	pooled = pooledPriors(problems, "")
	if len(problems) > 1 {
		again := make([]*problem, len(problems))
		for i, p := range problems {
			if again[i], err = p.withPriors(pooledPriors(problems, p.accelerator)); err != nil {
				return nil, nil, err
			}
		}
		problems = again
	}
	return problems, pooled, nil
}

func byAccelerator(obs []Observation) map[string][]Observation {
	groups := map[string][]Observation{}
	for _, b := range obs {
		groups[b.Config.GPU.Name] = append(groups[b.Config.GPU.Name], b)
	}
	return groups
}
