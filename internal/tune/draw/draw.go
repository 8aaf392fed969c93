// Package draw searches by drawing configurations from a product of parameters: by chance,
// evenly, or by a tree-structured Parzen estimator. It is what other tools do, and here to be
// compared with: nothing is repeated, so the best of many single measurements has luck in it,
// and the verdict says so.
package draw

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"perflab/internal/field"
	"perflab/internal/stat"
	"perflab/internal/tune"
	"perflab/internal/tune/staged"
)

// Search measures the baseline, then configurations drawn from SearchSpace.Domain one
// after another, each once, until its budget is spent or there are no more.
//
// No configuration is launched twice, and none that Rules.Refuse rejects: those
// cost nothing. Parameters of the baseline that the domain does not have stay as
// they are. Stages and further workloads of the space are not used.
//
// Every trial draws from a stream of its own, named by its number, so a proposal
// follows from the seed and the observations before it.
type Search struct {
	tune.Procedure
	singles staged.Singles
	configs []tune.Config // measured, in order; the first is the baseline's
	seed    uint64
	product *product
	choose  func(*Search, *rand.Rand) (tune.Config, bool)
}

var _ tune.Strategy = (*Search)(nil)

// unbounded is how many configurations may be searched without a budget.
const unbounded = 1000

// NewRandom returns a search that draws every parameter by itself, each value
// as likely as another, or everything that is wrong with what it was given.
// Where the space refuses what was drawn, see product.settle.
func NewRandom(g tune.SearchSpace, s tune.Space, o tune.Objective, b tune.Budget, seed uint64) (*Search, error) {
	return newSearch(g, s, o, b, seed, (*Search).random)
}

// NewGrid returns a search of every combination, or everything that is wrong
// with what it was given. The order of the combinations is strided by the golden
// section of their number, so that those which a budget allows are spread over
// all of it: any few in a row have about each value of a parameter as often as
// another. The seed says where it begins.
func NewGrid(g tune.SearchSpace, s tune.Space, o tune.Objective, b tune.Budget, seed uint64) (*Search, error) {
	d, err := newSearch(g, s, o, b, seed, nil)
	if err != nil {
		return nil, err
	}
	if d.product.size == 0 {
		return nil, errors.New("the grid has more combinations than can be numbered: narrow the parameters")
	}
	grid := &grid{product: d.product, start: stat.Stream(seed, "grid").Uint64N(d.product.size)}
	grid.step = stride(d.product.size)
	d.choose = grid.next
	return d, nil
}

func newSearch(g tune.SearchSpace, s tune.Space, o tune.Objective, b tune.Budget, seed uint64, choose func(*Search, *rand.Rand) (tune.Config, bool)) (*Search, error) {
	s = tune.Space{Baseline: s.Baseline, Primary: s.Primary}
	p := newProduct(g, s.Baseline)
	errs := []error{s.Validate(), o.Validate(), b.Validate()}
	if b.Trials == 1 {
		errs = append(errs, field.Errorf("budget", "a budget of 1 trial is the baseline's: give at least 2"))
	}
	for _, slo := range o.SLOs {
		if slo.Of != "" {
			errs = append(errs, fmt.Errorf("the limit of %s is one of the baseline's: give it as a number, or take the strategy race", slo))
		}
	}
	switch {
	case len(p.dims) == 0:
		errs = append(errs, errors.New("the space has no parameter to draw: say what may be tried"))
	case b.Trials == 0 && b.Time == 0 && (p.size == 0 || p.size > unbounded):
		errs = append(errs, field.Errorf("budget", "the space has more than %d configurations and the search no budget: give it trials or time", unbounded))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	d := &Search{seed: seed, product: p, choose: choose, singles: staged.Singles{Stage: tune.SearchStage, Primary: s.Primary, Objective: o, Budget: b}}
	d.Procedure = tune.NewProcedure(d.run)
	return d, nil
}

// run is the search. It is suspended in measure while a trial is under way.
func (d *Search) run(measure func(tune.Proposal) tune.Observation) {
	for p, ok := d.next(); ok; p, ok = d.next() {
		d.product.seen[d.product.key(p.Config)] = true
		d.singles.Add(p, measure(p))
		d.configs = append(d.configs, p.Config)
	}
}

// next is what to measure next.
func (d *Search) next() (tune.Proposal, bool) {
	p := tune.Proposal{Trial: len(d.configs) + 1, Stage: tune.BaselineStage, Label: tune.BaselineStage, Config: d.product.baseline, Workloads: []string{d.singles.Primary}}
	if p.Trial == 1 {
		return p, true
	}
	if d.singles.Spent() {
		return p, false
	}
	config, ok := d.choose(d, stat.Stream(d.seed, fmt.Sprint("draw ", p.Trial)))
	p.Stage, p.Label, p.Config = tune.SearchStage, d.product.label(config), config
	return p, ok
}

// Result is what the observations so far say. The winner is the best single
// measurement, the earliest of equals.
func (d *Search) Result() tune.Result {
	over := d.Over()
	r := d.singles.Result()
	if n := len(d.configs); !over && n > 0 {
		r.Verdict.After = &n
	}
	return r
}

// tries bounds how often a configuration is drawn before it is taken that there
// is none left, or few; few is how many combinations are then gone through.
const (
	tries = 200
	few   = 4096
)

// random draws a configuration that was not proposed yet.
func (d *Search) random(rng *rand.Rand) (tune.Config, bool) {
	p := d.product
	for range tries {
		point := make([]int, len(p.dims))
		for i, dim := range p.dims {
			point[i] = rng.IntN(len(dim.Values))
		}
		if c, ok := p.settle(point, rng); ok && !p.seen[p.key(c)] {
			return c, true
		}
	}
	if p.size == 0 || p.size > few {
		return nil, false
	}
	var left []tune.Config
	for n := range p.size {
		if c := p.config(p.point(n)); p.runs(c) && !p.seen[p.key(c)] {
			left = append(left, c)
		}
	}
	if len(left) == 0 {
		return nil, false
	}
	return left[rng.IntN(len(left))], true
}

// grid goes through a product in strides.
type grid struct {
	*product
	start, step, visited uint64
}

// gridMisses bounds how many combinations in a row may bring nothing new.
const gridMisses = 5000

func (g *grid) next(_ *Search, _ *rand.Rand) (tune.Config, bool) {
	for range gridMisses {
		if g.visited == g.size {
			break
		}
		point := g.point(strided(g.start, g.step, g.visited, g.size))
		g.visited++
		if c, ok := g.settle(point, nil); ok && !g.seen[g.key(c)] {
			return c, true
		}
	}
	return nil, false
}
