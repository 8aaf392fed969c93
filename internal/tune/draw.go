package tune

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"perflab/internal/field"
	"perflab/internal/stat"
)

// Draw measures the baseline, then configurations drawn from SearchSpace.Domain one
// after another, each once, until its budget is spent or there are no more. It
// is what other tools do, and here to be compared with: nothing is carried
// forward by a stage and nothing is repeated, so the best of many single
// measurements has luck in it, and the verdict says so.
//
// No configuration is launched twice, and none that Rules.Refuse rejects: those
// cost nothing. Parameters of the baseline that the domain does not have stay as
// they are. Stages and further workloads of the space are not used.
//
// Every trial draws from a stream of its own, named by its number, so a proposal
// follows from the seed and the observations before it.
type Draw struct {
	space     Space
	objective Objective
	budget    Budget
	seed      uint64
	product   *product
	choose    func(*Draw, *rand.Rand) (Config, bool)

	trials []*trial
	open   *Proposal
}

var _ Strategy = (*Draw)(nil)

// drawUnbounded is how many configurations may be searched without a budget.
const drawUnbounded = 1000

// NewRandom returns a search that draws every parameter by itself, each value
// as likely as another, or everything that is wrong with what it was given.
// Where the space refuses what was drawn, see product.settle.
func NewRandom(g SearchSpace, s Space, o Objective, b Budget, seed uint64) (*Draw, error) {
	return newDraw(g, s, o, b, seed, (*Draw).random)
}

// NewGrid returns a search of every combination, or everything that is wrong
// with what it was given. The order of the combinations is strided by the golden
// section of their number, so that those which a budget allows are spread over
// all of it: any few in a row have about each value of a parameter as often as
// another. The seed says where it begins.
func NewGrid(g SearchSpace, s Space, o Objective, b Budget, seed uint64) (*Draw, error) {
	d, err := newDraw(g, s, o, b, seed, nil)
	if err != nil {
		return nil, err
	}
	if d.product.size == 0 {
		return nil, errors.New("the grid has more combinations than can be numbered: narrow the parameters")
	}
	grid := &grid{product: d.product, start: stat.Stream(seed, "grid").Uint64N(d.product.size)}
	grid.step = stride(d.product.size)
	d.choose = grid.next
	d.advance()
	return d, nil
}

func newDraw(g SearchSpace, s Space, o Objective, b Budget, seed uint64, choose func(*Draw, *rand.Rand) (Config, bool)) (*Draw, error) {
	s = Space{Baseline: s.Baseline, Primary: s.Primary}
	p := newProduct(g, s.Baseline)
	errs := []error{s.Validate(), o.Validate(), b.validate(false)}
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
	case b.Trials == 0 && b.Time == 0 && (p.size == 0 || p.size > drawUnbounded):
		errs = append(errs, field.Errorf("budget", "the space has more than %d configurations and the search no budget: give it trials or time", drawUnbounded))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	d := &Draw{space: s, objective: o, budget: b, seed: seed, product: p, choose: choose}
	if choose != nil {
		d.advance()
	}
	return d, nil
}

// Ask returns the trial to measure next.
func (d *Draw) Ask() (Proposal, bool) { return ask(d.open) }

// Tell takes the end of the trial that was asked for.
func (d *Draw) Tell(o Observation) {
	o = checked(d.open, o)
	t := &trial{Proposal: *d.open, name: d.open.Label, end: o, score: d.objective.score(o.Status, o.Figures[d.space.Primary])}
	if t.Trial == 1 {
		t.name = "the baseline"
	}
	d.trials = append(d.trials, t)
	d.advance()
}

// advance finds what to propose next.
func (d *Draw) advance() {
	p := Proposal{Trial: len(d.trials) + 1, Stage: BaselineStage, Label: BaselineStage,
		Config: Change{}.Apply(d.space.Baseline), Workloads: []string{d.space.Primary}}
	d.open = nil
	if p.Trial > 1 {
		if d.budget.used(d.trials) {
			return
		}
		config, ok := d.choose(d, stat.Stream(d.seed, fmt.Sprint("draw ", p.Trial)))
		if !ok {
			return // no further configuration was found
		}
		p.Stage, p.Label, p.Config = SearchStage, d.product.label(config), config
	}
	d.product.seen[d.product.key(p.Config)] = true
	d.open = &p
}

// drawTries bounds how often a configuration is drawn before it is taken that there
// is none left, or few; drawFew is how many combinations are then gone through.
const (
	drawTries = 200
	drawFew   = 4096
)

// random draws a configuration that was not proposed yet.
func (d *Draw) random(rng *rand.Rand) (Config, bool) {
	p := d.product
	for range drawTries {
		point := make([]int, len(p.dims))
		for i, dim := range p.dims {
			point[i] = rng.IntN(len(dim.Values))
		}
		if c, ok := p.settle(point, rng); ok && !p.seen[p.key(c)] {
			return c, true
		}
	}
	if p.size == 0 || p.size > drawFew {
		return nil, false
	}
	var left []Config
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

func (g *grid) next(_ *Draw, _ *rand.Rand) (Config, bool) {
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

// Result is what the observations so far say. The winner is the best single
// measurement, the earliest of equals.
func (d *Draw) Result() Result {
	if len(d.trials) == 0 {
		return Result{Verdict: Finding{Kind: NothingYet}}
	}
	primary := d.space.Primary
	base, best := d.trials[0], d.objective.bestOf(d.trials)
	gain := func(t *trial) *float64 { return d.objective.Gain(base.figures(primary), t.figures(primary)) }
	r := Result{Baseline: base.id(), Winner: best.id(), Gain: gain(best)}
	if best.measured() {
		r.Misses = d.objective.Misses(best.figures(primary))
	}
	r.Verdict = d.verdict(base, best, r.Misses)
	s := Decision{Stage: SearchStage, Before: base.id(), Winner: best.id(), Gain: gain(best), Total: gain(best), Reason: new(r.Verdict)}
	for _, t := range d.trials[1:] {
		s.Trials = append(s.Trials, t.Trial)
		s.Entries = append(s.Entries, Entry{Label: t.Label, Trial: t.Trial, Gain: gain(t), Total: gain(t), Finding: d.objective.noteOn(t, primary, t.figures(primary))})
	}
	if len(s.Entries) > 0 {
		r.Stages = []Decision{s}
	}
	if best != base {
		r.Challenger = best.id()
	}
	if d.open != nil {
		r.Verdict.After = new(len(d.trials))
	}
	return r
}

// verdict is the conclusion.
func (d *Draw) verdict(base, best *trial, misses []Constraint) Finding {
	measured := 0
	for _, t := range d.trials {
		if t.measured() {
			measured++
		}
	}
	note := d.objective.noteOn(base, d.space.Primary, nil)
	switch {
	case !best.measured():
		return Finding{Kind: NothingMeasured, Against: theBaseline.candidate, Cause: note}
	case measured == 1 && best == base:
		return Finding{Kind: NothingBeside}
	case best == base:
		return Finding{Kind: BaselineUnbeaten, N: measured - 1, Value: &best.score.value, Misses: misses}
	case !base.measured():
		return Finding{Kind: SearchBest, Name: best.name, Value: &best.score.value, N: measured, Cause: note, Misses: misses}
	}
	return Finding{Kind: SearchBest, Pair: pair(best, base), N: measured, Misses: misses}
}

// bestOf is the best of trials, the earliest of equals.
func (o Objective) bestOf(trials []*trial) *trial {
	best := trials[0]
	for _, t := range trials {
		if o.prefer(t.score, best.score) {
			best = t
		}
	}
	return best
}
