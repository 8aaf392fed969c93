package calib

import (
	"cmp"
	"maps"
	"slices"

	"perflab/internal/arch"
	"perflab/internal/sim"
)

// FitOptions are how a fit is made.
type FitOptions struct {
	Base *sim.Constants              // priors; nil: sim.Priors()
	Seed uint64                      // of drawn lengths
	Each func(n int, do func(i int)) // runs do for 0..n-1, perhaps at once; nil: one after another
}

// noise is how well a figure of a run can be expected to be met, as the
// standard deviation of its logarithm: by which fits weigh residuals. Lengths
// drawn anew move a throughput by 1-2 %, another tail of theirs by 4-9 %;
// start-up stalls move TTFT by 2-10 %; and a mean TPOT is one of short answers.
var noise = map[string]float64{Throughput: 0.04, MeanTTFT: 0.06, MedianTTFT: 0.10, MedianITL: 0.07, MeanTPOT: 0.10, MeanE2E: 0.05}

// robust is where a residual, in units of its noise, begins to count linearly
// (Huber): one odd run must not move the constants of all others.
const robust = 2.0

// Parameter is a constant that a fit may move.
type Parameter struct {
	Name        string      `json:"name"`
	Accelerator string      `json:"accelerator"`
	Format      arch.Format `json:"format,omitempty"`
	Engine      string      `json:"engine,omitempty"`
	Prior       float64     `json:"prior"`
	PriorSpread float64     `json:"prior_spread"` // relative
	Value       float64     `json:"value"`
	Spread      float64     `json:"spread"` // relative, after the fit
}

// Residual is a figure of a run against its prediction.
type Residual struct {
	ID       string  `json:"id"`
	Metric   string  `json:"metric"`
	Measured float64 `json:"measured"`
	Value    float64 `json:"value"` // predicted
}

// Off is the relative error of the prediction.
func (r Residual) Off() float64 { return r.Value/r.Measured - 1 }

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
	problems, lent, err := solveAll(obs, o)
	if err != nil {
		return nil, err
	}
	f := &Fitted{Sets: lent}
	for _, p := range problems {
		f.Sets = append(f.Sets, p.sets()...)
		f.Parameters = append(f.Parameters, p.params...)
		f.Residuals = append(f.Residuals, p.report...)
	}
	f.Constants, err = o.Base.With(f.Sets...)
	return f, err
}

// solveAll fits each accelerator by itself, and again with what the others say
// of the engines in the place of the priors. lent is what all of them say.
func solveAll(obs []Observation, o FitOptions) (problems []*problem, lent []sim.Set, err error) {
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
	lent = lend(problems, "")
	if len(problems) > 1 {
		again := make([]*problem, len(problems))
		for i, p := range problems {
			if again[i], err = p.borrow(lend(problems, p.accelerator)); err != nil {
				return nil, nil, err
			}
		}
		problems = again
	}
	return problems, lent, nil
}

func (o FitOptions) complete() FitOptions {
	o.Base = cmp.Or(o.Base, sim.Priors())
	if o.Each == nil {
		o.Each = func(n int, do func(int)) {
			for i := range n {
				do(i)
			}
		}
	}
	return o
}

func byAccelerator(obs []Observation) map[string][]Observation {
	groups := map[string][]Observation{}
	for _, b := range obs {
		groups[b.Config.GPU.Name] = append(groups[b.Config.GPU.Name], b)
	}
	return groups
}
