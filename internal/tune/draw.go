package tune

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

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
	ended  string // why there is no further proposal, if there is none
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
		if d.ended = d.budget.used(d.trials); d.ended != "" {
			return
		}
		config, ok := d.choose(d, stat.Stream(d.seed, fmt.Sprint("draw ", p.Trial)))
		if !ok {
			d.ended = "no further configuration was found"
			return
		}
		p.Stage, p.Label, p.Config = SearchStage, d.product.label(config), config
	}
	d.product.seen[d.product.key(p.Config)] = true
	d.open = &p
}

// used says why no further trial fits, or nothing; unlike spent it keeps
// nothing for a confirmation.
func (b Budget) used(trials []*trial) string {
	var sum, longest float64
	for _, t := range trials {
		sum += t.end.Seconds
		longest = max(longest, t.end.Seconds)
	}
	switch {
	case b.Trials > 0 && len(trials) >= b.Trials:
		return fmt.Sprintf("the budget of %s is used up", count(b.Trials, "trial"))
	case b.Time > 0 && sum+longest > b.Time.Seconds():
		return fmt.Sprintf("the budget of %v is used up", b.Time)
	}
	return ""
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
		return Result{Verdict: "not finished: nothing is measured yet"}
	}
	primary := d.space.Primary
	base, best := d.trials[0], d.trials[0]
	for _, t := range d.trials {
		if d.objective.prefer(t.score, best.score) {
			best = t
		}
	}
	gain := func(t *trial) *float64 { return d.objective.Gain(base.figures(primary), t.figures(primary)) }
	s := Decision{Stage: SearchStage, Before: base.id(), Winner: best.id(), Gain: gain(best), Total: gain(best), Reason: d.reason(base, best)}
	for _, t := range d.trials[1:] {
		s.Trials = append(s.Trials, t.Trial)
		s.Entries = append(s.Entries, Entry{Label: t.Label, Trial: t.Trial, Gain: gain(t), Total: gain(t), Note: d.objective.note(t, primary)})
	}
	r := Result{Baseline: base.id(), Winner: best.id(), Gain: gain(best), Verdict: s.Reason}
	if len(s.Entries) > 0 {
		r.Stages = []Decision{s}
	}
	if best != base {
		r.Challenger = best.id()
	}
	if best.measured() {
		r.Misses = d.objective.Misses(best.figures(primary))
	}
	if d.open != nil {
		r.Verdict = fmt.Sprintf("not finished after %s: %s", count(len(d.trials), "trial"), s.Reason)
	}
	return r
}

// reason is the conclusion in a sentence.
func (d *Draw) reason(base, best *trial) string {
	measured := 0
	for _, t := range d.trials {
		if t.measured() {
			measured++
		}
	}
	primary, metric := d.space.Primary, d.objective.Metric
	var s string
	switch {
	case !best.measured():
		return fmt.Sprintf("nothing could be measured: the baseline ended %s", d.objective.note(base, primary))
	case measured == 1 && best == base:
		return "no configuration has figures beside the baseline"
	case best == base:
		s = fmt.Sprintf("no difference shown: of %s none beats the baseline, with %s of %s",
			count(measured-1, "other configuration"), number(best.score.value), metric)
	case !base.measured():
		s = fmt.Sprintf("%s has %s of %s, the best of %s, and the baseline ended %s, so no gain can be given",
			best.name, number(best.score.value), metric, count(measured, "single measurement"), d.objective.note(base, primary))
	default:
		s = fmt.Sprintf("%s, the best of %s", d.objective.compare(best, base), count(measured, "single measurement"))
	}
	s += "; nothing was repeated"
	if best != base {
		s += ", so a part of the gain may be luck"
	}
	if misses := d.objective.Misses(best.figures(primary)); len(misses) > 0 {
		s += "; not every SLO is met: " + strings.Join(misses, ", ")
	}
	return s
}
