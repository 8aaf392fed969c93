package calib

import (
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

// Fit finds the constants that explain the observations best: the least sum of squares
// of log residuals over their noise and of log distances from the priors over their
// spread and correlation.
func Fit(obs []Observation, o FitOptions) (*Fitted, error) {
	o = o.complete()
	p, err := newProblem(slices.DeleteFunc(slices.Clone(obs), func(b Observation) bool { return !b.fitted() }), o)
	if err != nil {
		return nil, err
	}
	if err := p.fit(); err != nil {
		return nil, err
	}
	f := &Fitted{Sets: p.shipped(), Parameters: p.params, Residuals: p.report}
	f.Constants, err = o.Base.With(f.Sets...)
	return f, err
}
