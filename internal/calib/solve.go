package calib

import (
	"math"
	"slices"
)

const (
	slopeStep = 0.03 // change of a logarithm by which slopes are measured: large beside a schedule's jumps, small beside the spreads
	maxStep   = 0.5  // that a round may move a logarithm
	maxRounds = 30   // at most
	leastGain = 2e-3 // gain of the cost, relative, that is worth another round
)

// fit finds the parameters with all observations and fills in values, spreads
// and residuals.
func (p *problem) fit() error {
	use := p.all()
	x, at := p.startAtPriors(use)
	if err := p.measureSlopes(x, at); err != nil {
		return err
	}
	x, at, err := p.descend(x, at, use)
	if err != nil {
		return err
	}
	p.conclude(x, at)
	return nil
}

// descend goes from x, where the log figures are at, to the least cost over the
// observations that count, by Levenberg and Marquardt's method with Broyden's
// updates of the slopes. It leaves p.slopes as they are.
func (p *problem) descend(x, at []float64, use []bool) (best, there []float64, err error) {
	jac := make([][]float64, len(p.slopes))
	for i := range jac {
		jac[i] = slices.Clone(p.slopes[i])
	}
	cost, damp, idle := p.cost(x, at), 0.01, 0
	for range maxRounds {
		d := p.step(x, at, jac, damp)
		next := slices.Clone(x)
		for i := range next {
			next[i] += d[i]
		}
		figures, err := p.predict(next, use, p.options.Each)
		if err != nil {
			return nil, nil, err
		}
		p.broyden(jac, d, at, figures)
		c := p.cost(next, figures)
		gain := cost - c
		if gain > 0 {
			x, at, cost = next, figures, c
			damp = max(damp/4, 1e-4)
		} else {
			damp *= 4
		}
		if idle++; gain > leastGain*cost {
			idle = 0
		}
		if idle >= 3 {
			break
		}
	}
	return x, at, nil
}

// broyden corrects the slopes of each row by what a step d did, in the direction of the
// part of d that the row depends on.
func (p *problem) broyden(jac [][]float64, d, from, to []float64) {
	for k, r := range p.rows {
		miss, length := to[k]-from[k], 0.0
		for _, i := range p.moved[r.obs] {
			miss -= jac[i][k] * d[i]
			length += d[i] * d[i]
		}
		if length == 0 || math.IsNaN(miss) {
			continue
		}
		for _, i := range p.moved[r.obs] {
			jac[i][k] += miss * d[i] / length
		}
	}
}

// misfit is how far log figures are from the measured ones.
type misfit struct {
	residual []float64 // by row, in units of its noise
	weight   []float64 // by row: its run's; 0 where there is no figure
	cost     float64   // of the rows, as a sum of squares would be where all is within the noise
}

// misfit holds the log figures at against the measured ones. A run is off in all of its
// figures at once, so it is runs that have a weight.
func (p *problem) misfit(at []float64) misfit {
	m := misfit{residual: make([]float64, len(p.rows)), weight: make([]float64, len(p.rows))}
	square, figures := make([]float64, len(p.obs)), make([]float64, len(p.obs))
	for k, row := range p.rows {
		if !math.IsNaN(at[k]) {
			r := (at[k] - row.measured) / p.noise(row)
			m.residual[k] = r
			square[row.obs] += r * r
			figures[row.obs]++
		}
	}
	for k, row := range p.rows {
		if !math.IsNaN(at[k]) {
			weight, cost := p.weigh(square[row.obs] / figures[row.obs])
			m.weight[k] = weight
			m.cost += cost
		}
	}
	return m
}

// weigh is what a figure of a run counts, and costs, by the mean square of the run's residuals:
// of Student's distribution, or where runs are believed of the normal one.
func (p *problem) weigh(square float64) (weight, cost float64) {
	if p.believed {
		return 1, square
	}
	return (degrees + 1) / (degrees + square), (degrees + 1) * math.Log1p(square/degrees)
}

// cost is that of the rows, and the sum of squares over the priors.
func (p *problem) cost(x, at []float64) float64 {
	c := p.misfit(at).cost
	for i := range x {
		for j := range x {
			c += x[i] * p.prior[i][j] * x[j]
		}
	}
	return c
}

// normal is the matrix of the normal equations and its right side.
func (p *problem) normal(x, at []float64, jac [][]float64) (a [][]float64, b []float64) {
	n := len(x)
	a, b = make([][]float64, n), make([]float64, n)
	for i := range n {
		a[i] = slices.Clone(p.prior[i])
		for j := range n {
			b[i] -= p.prior[i][j] * x[j]
		}
	}
	m := p.misfit(at)
	for k, row := range p.rows {
		w, sigma := m.weight[k], p.noise(row)
		if w == 0 {
			continue
		}
		for _, i := range p.moved[row.obs] {
			ji := jac[i][k] / sigma
			b[i] -= w * ji * m.residual[k]
			for _, j := range p.moved[row.obs] {
				a[i][j] += w * ji * jac[j][k] / sigma
			}
		}
	}
	return a, b
}

// step is the damped change of x.
func (p *problem) step(x, at []float64, jac [][]float64, damp float64) []float64 {
	a, b := p.normal(x, at, jac)
	for i := range a {
		a[i][i] *= 1 + damp
	}
	d := solveSymmetric(a, b)
	for i := range d {
		d[i] = min(maxStep, max(-maxStep, d[i]))
	}
	return d
}

// conclude sets the parameters to x, with the spread that the curvature of the
// cost leaves them.
func (p *problem) conclude(x, at []float64) {
	a, _ := p.normal(x, at, p.slopes)
	p.inverse = invert(a)
	for i := range p.params {
		q := &p.params[i]
		q.Value = round(q.Prior * math.Exp(x[i]))
		q.Spread = round(min(q.PriorSpread, math.Sqrt(max(0, p.inverse[i][i]))))
	}
	p.x = x
	for k, row := range p.rows {
		p.report = append(p.report, Residual{ID: p.obs[row.obs].ID, Metric: row.metric, Measured: math.Exp(row.measured), Value: math.Exp(at[k])})
	}
}

// round keeps four digits: no constant is known better.
func round(v float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return v
	}
	unit := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*unit) / unit
}
