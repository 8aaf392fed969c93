package calib

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"perflab/internal/engine"
)

// Hinge is a constant that a predicted figure hangs on.
type Hinge struct {
	Parameter
	Meaning string  `json:"meaning"`
	Moves   float64 `json:"moves"` // relative change of the figure when the constant is one spread larger
}

// mostHinges are named, and leastHinge is what one must move.
const (
	mostHinges = 3
	leastHinge = 0.01
)

// Hinges are the constants whose uncertainty moves a figure most.
func (c *Calibration) Hinges(q Question, metric string) ([]Hinge, error) {
	q = q.complete()
	p, err := c.linear([]Observation{{ID: "question", Config: q.Config, Replicas: q.Replicas, Load: q.Load, Study: newSite}}, FitOptions{Seed: q.Seed, Each: q.Each})
	if err != nil {
		return nil, err
	}
	var out []Hinge
	for k, r := range p.rows {
		if r.metric != metric {
			continue
		}
		for i, q := range p.params {
			if moves := math.Expm1(p.slopes[i][k] * q.PriorSpread); math.Abs(moves) >= leastHinge {
				about, _ := p.options.Base.About(q.Name)
				out = append(out, Hinge{q, about.Meaning, moves})
			}
		}
	}
	slices.SortFunc(out, func(a, b Hinge) int { return cmp.Compare(math.Abs(b.Moves), math.Abs(a.Moves)) })
	return out[:min(len(out), mostHinges)], nil
}

// newSite is the study of what has not been measured.
const newSite = "here"

// linear is the problem of observations at the calibration's constants with its slopes.
// The figures of the observations are what is predicted of them.
func (c *Calibration) linear(obs []Observation, o FitOptions) (*problem, error) {
	base, err := c.Constants()
	if err != nil {
		return nil, fmt.Errorf("calibration: %w", err)
	}
	o.Base = base
	o = o.complete()
	errs := make([]error, len(obs))
	o.Each.Do(len(obs), func(i int) {
		b := &obs[i]
		b.Figures, _, errs[i] = figures(b.Config, b.Replicas, b.Load, base, o.Seed)
	})
	if err := cmp.Or(errs...); err != nil {
		return nil, err
	}
	p, err := newProblem(obs, o)
	if err != nil {
		return nil, err
	}
	p.believe(installationSpread)
	return p, p.measureSlopes(make([]float64, len(p.params)), p.atPriors)
}

// Step is a run to take on new hardware.
type Step struct {
	Title   string  `json:"title"`
	Load    Load    `json:"load"`
	Seconds float64 `json:"seconds"` // that the load takes, as predicted
	Left    float64 `json:"left"`    // uncertainty that is left, as Plan's Before
}

// Plan is which runs of a configuration narrow predictions of it most for their cost.
type Plan struct {
	Before float64 `json:"before"` // relative uncertainty of the figures of all its loads by the constants, root mean square
	Steps  []Step  `json:"steps"`
}

// candidates are loads that tell different constants apart: single requests the host and
// reading weights, long prompts the arithmetic, short ones the front end, many at once
// the cache.
func candidates(cfg engine.Config) []Step {
	all := []Step{
		{Title: "one request at a time", Load: Load{Requests: 10, Concurrency: 1, Input: Lengths{Mean: 512}, Output: Lengths{Mean: 128}}},
		{Title: "long prompts at once", Load: Load{Requests: 50, Input: Lengths{Mean: 4000}, Output: Lengths{Mean: 16}}},
		{Title: "short requests at once", Load: Load{Requests: 500, Input: Lengths{Mean: 128}, Output: Lengths{Mean: 4}}},
		{Title: "32 in flight", Load: Load{Requests: 128, Concurrency: 32, Input: Lengths{Mean: 512}, Output: Lengths{Mean: 256}}},
		{Title: "many requests at once", Load: Load{Requests: 500, Input: Lengths{Mean: 256}, Output: Lengths{Mean: 200}}},
		{Title: "very long prompts at once", Load: Load{Requests: 10, Input: Lengths{Mean: 30000}, Output: Lengths{Mean: 32}}},
	}
	return slices.DeleteFunc(all, func(s Step) bool {
		return cfg.Fits(int(s.Load.Input.Mean), int(s.Load.Output.Mean)) != nil
	})
}

// plannedRuns are named, and stepOverhead is what a run costs besides its load, in seconds.
const (
	plannedRuns  = 3
	stepOverhead = 10
)

// Plan finds the runs to take of a configuration: each is the one that narrows the figures
// of all of these loads most for the time that it takes, given those before it.
func (c *Calibration) Plan(cfg engine.Config, replicas int, o FitOptions) (Plan, error) {
	steps := candidates(cfg)
	var obs []Observation
	for i := range steps {
		obs = append(obs, Observation{ID: steps[i].Title, Study: newSite, Config: cfg, Replicas: replicas, Load: steps[i].Load})
	}
	p, err := c.linear(obs, o)
	if err != nil {
		return Plan{}, err
	}
	for i := range steps {
		l := steps[i].Load
		steps[i].Seconds = float64(l.Requests) / obs[i].Figures["request_throughput"]
	}
	known := p.prior // learned copies it
	plan := Plan{Before: p.uncertainty(known)}
	left := plan.Before
	taken := make([]bool, len(steps))
	for range min(plannedRuns, len(steps)) {
		best, worth, after := -1, 0.0, left
		for i := range steps {
			if taken[i] {
				continue
			}
			u := p.uncertainty(p.learned(known, i))
			if w := math.Log(left/u) / (steps[i].Seconds + stepOverhead); best < 0 || w > worth {
				best, worth, after = i, w, u
			}
		}
		taken[best], left = true, after
		known = p.learned(known, best)
		steps[best].Left = left
		plan.Steps = append(plan.Steps, steps[best])
	}
	return plan, nil
}

// learned is the inverse covariance of the unknowns after a run of an observation.
func (p *problem) learned(known [][]float64, obs int) [][]float64 {
	out := make([][]float64, len(known))
	for i := range known {
		out[i] = slices.Clone(known[i])
	}
	for k, r := range p.rows {
		if r.obs != obs {
			continue
		}
		sigma := p.noise(r)
		for i := range out {
			for j := range out {
				out[i][j] += p.slopes[i][k] * p.slopes[j][k] / (sigma * sigma)
			}
		}
	}
	return out
}

// uncertainty is the root mean square of the relative standard deviations of all rows.
func (p *problem) uncertainty(known [][]float64) float64 {
	cov := invert(known)
	sum := 0.0
	for k := range p.rows {
		for i := range cov {
			for j := range cov {
				sum += p.slopes[i][k] * cov[i][j] * p.slopes[j][k]
			}
		}
	}
	return math.Sqrt(sum / float64(len(p.rows)))
}
