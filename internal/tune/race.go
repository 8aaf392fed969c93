package tune

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"perflab/internal/stat"
)

// Race looks for the best configuration of a Guide's and shows that it is
// better. In order:
//
//  1. The baseline is launched twice, for the noise between launches.
//  2. Arms are launched, at first the one of each engine that is predicted best,
//     then whichever a launch is expected to gain most by (see surrogate). One
//     that is refused is mended as its refusal says, and the best of each engine
//     gets what its bottleneck asks for, before any is given up.
//  3. What is not shown to be worse goes on, under all of the load, and is refined
//     by small steps.
//  4. The best two and the baseline are launched again, interleaved, each round
//     with seeds of its own. Only these launches decide.
//  5. Each setting of the winner is left out once. What brings nothing goes, and
//     what is left is launched again before it is recommended.
//
// A part of the budget is kept for the last two before the search begins.
type Race struct {
	guide     Guide
	predictor Predictor // nil: nothing is predicted
	space     Space
	objective Objective
	budget    Budget
	options   RaceOptions

	told     []Observation
	choices  []any // what was decided between two launches, in order: a walk decides it again only once
	foreseen map[string]foresight
	axes     []Dimension // every parameter that may differ
	now      *course
}

// RaceOptions are what a race does otherwise than by default.
type RaceOptions struct {
	Rounds int // launches of each configuration in the confirmation, at least; 0: 3
	// Short is the share of the load that arms meet first; 0: a third. A budget of
	// launches alone, and of fewer than 40, has no short rung: a launch costs it the
	// same under any load.
	Short float64
}

var _ Strategy = (*Race)(nil)

// raceGain is the gain that matters where the objective does not say.
const raceGain = 0.02

// shortBudget is the least number of launches with which arms meet a short load first.
const shortBudget = 40

// smallBudget is the least number of launches of which one may go for the noise
// alone: below it the confirmation has to show how large that is.
const smallBudget = 12

// NewRace returns a race, or everything that is wrong with what it was given.
func NewRace(g Guide, p Predictor, s Space, o Objective, b Budget, r RaceOptions) (*Race, error) {
	if r.Rounds == 0 {
		r.Rounds = 3
	}
	if r.Short == 0 {
		r.Short = 1.0 / 3
	}
	if o.MinGain == 0 {
		o.MinGain = raceGain
	}
	errs := []error{s.Validate(), o.Validate()}
	switch least := 2*r.Rounds + 2; {
	case r.Rounds < 2:
		errs = append(errs, fmt.Errorf("rounds is %d: a confirmation needs at least 2 launches of each configuration", r.Rounds))
	case b.Trials < 0 || b.Time < 0:
		errs = append(errs, b.validate(false))
	case b.Trials > 0 && b.Trials < least:
		errs = append(errs, fmt.Errorf("a budget of %d trials is too small for a race: the confirmation takes %d launches of baseline and winner each, so give at least %d, or use strategy staged", b.Trials, r.Rounds, least))
	}
	if !(r.Short > 0 && r.Short <= 1) {
		errs = append(errs, fmt.Errorf("the share of the load in the first rung is %v: give one above 0 and up to 1", r.Short))
	}
	for w := range o.Weights {
		if w != s.Primary && !slices.Contains(s.Others, w) {
			errs = append(errs, fmt.Errorf("the objective weighs workload %q, which there is not", w))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	race := &Race{guide: g, predictor: p, space: s, objective: o, budget: b, options: r, foreseen: map[string]foresight{}, axes: axes(g, s)}
	race.now = race.walk()
	return race, nil
}

// axes are the guide's dimensions, and what the baseline or an arm sets besides. In what
// arms differ is a choice, whether or not it is a number.
func axes(g Guide, s Space) []Dimension {
	out := slices.Clone(g.Domain())
	for i, d := range out {
		values := map[string]bool{}
		for _, a := range g.Candidates() {
			if a.Refused == "" && a.Prior == "" {
				values[a.Config[d.Name]] = true
			}
		}
		out[i].Ordered = d.Ordered && len(values) < 2
	}
	add := func(c Config) {
		for _, name := range slices.Sorted(maps.Keys(c)) {
			if !slices.ContainsFunc(out, func(d Dimension) bool { return d.Name == name }) {
				out = append(out, Dimension{Name: name})
			}
		}
	}
	add(s.Baseline)
	for _, a := range g.Candidates() {
		add(a.Config)
	}
	return out
}

// Ask returns the trial to measure next.
func (r *Race) Ask() (Proposal, bool) { return ask(r.now.open) }

// Tell takes the end of the trial that was asked for.
func (r *Race) Tell(o Observation) {
	r.told = append(r.told, heard(r.now.open, o))
	r.now = r.walk()
}

// Result is what the observations so far say.
func (r *Race) Result() Result { return r.now.conclude() }

// course retraces a race along the observations, up to the first trial that has
// none: see walk of Staged. What is costly to decide is decided once.
type course struct {
	*Race
	bounds Objective // with bounds that are limits
	trials []*trial
	open   *Proposal
	step   int // choices made so far

	base     []*trial // launches of the baseline in the search
	arms     []*runner
	steps    []Entry // repairs and refinements
	marks    []mark
	given    map[string]PairedTest // the guard's last verdict by Numerics
	apart    map[string]float64    // agreement of what the guard's proxy rejected, by Numerics
	verdicts []PairedTest          // of the guard, in order
	why      string                // the search ended before its budget

	contest *contest
}

// mark is where a phase begins, with the log ratio of what led then.
type mark struct {
	name  string
	trial int
	lead  float64
}

// runner is an arm in the race.
type runner struct {
	Candidate
	origin lineage
	point  point
	trials []*trial
	pruned bool
}

func (r *Race) walk() *course {
	c := &course{Race: r, bounds: r.objective, given: map[string]PairedTest{}, apart: map[string]float64{}}
	_ = c.opening() && c.rung() && c.repair() && c.final() && c.refine() && c.confirm() && c.ablate()
	return c
}

// choose decides once: a later walk gets the same answer from memory.
func choose[T any](c *course, decide func() T) T {
	if c.step == len(c.choices) {
		c.choices = append(c.choices, decide())
	}
	c.step++
	return c.choices[c.step-1].(T)
}

// begin starts a phase.
func (c *course) begin(name string) {
	lead := math.NaN()
	if l := choose(c, c.leader); l != nil {
		lead = l.mean
	}
	c.marks = append(c.marks, mark{name, len(c.trials), lead})
}

// measure proposes a trial or, where its end was told, returns it. It is false
// when the walk ends here.
func (c *course) measure(p Proposal, from lineage) (*trial, bool) {
	p.Trial = len(c.trials) + 1
	if p.Workloads == nil {
		p.Workloads = c.workloads()
	}
	if g := c.objective.Guard; g != nil {
		c.guard(&p)
	}
	if p.Trial > len(c.told) {
		c.open = &p
		return nil, false
	}
	end := c.told[p.Trial-1]
	t := &trial{Proposal: p, name: from.String(), origin: from, end: end, merged: c.merge(end)}
	t.log = c.logOf(t.merged)
	c.trials = append(c.trials, t)
	if p.Stage == BaselineStage && !c.based() {
		c.bounds = c.objective.resolve(t.merged)
	}
	t.score = c.bounds.score(end.Status, t.merged)
	c.judge(t)
	return t, true
}

// lineage is where a configuration comes from: an arm and the changes of it, the
// later ones over the earlier.
type lineage struct {
	arm     string
	changes []Change
}

// with is the lineage of a change. What it overrides is not told.
func (l lineage) with(k Change) lineage {
	out := lineage{arm: l.arm}
	for _, before := range l.changes {
		for name := range before.Set {
			if _, again := k.Set[name]; !again {
				out.changes = append(out.changes, before)
				break
			}
		}
	}
	out.changes = append(out.changes, k)
	return out
}

func (l lineage) String() string {
	var s strings.Builder
	s.WriteString(l.arm)
	for _, k := range l.changes {
		s.WriteString(" + " + k.Label)
	}
	return s.String()
}

// workloads are those that the search is judged by: the primary one, and others
// that have a weight.
func (c *course) workloads() []string {
	out := []string{c.space.Primary}
	for _, w := range c.space.Others {
		if c.objective.Weights[w] > 0 {
			out = append(out, w)
		}
	}
	return out
}

// merge makes one set of figures of the workloads in the objective: the weighted
// geometric mean of the objective's, and of every bound's figure the worst.
func (c *course) merge(o Observation) map[string]float64 {
	out := maps.Clone(o.Figures[c.space.Primary])
	if o.Status != Measured || out == nil || len(c.objective.Weights) == 0 {
		return out
	}
	sum, weight := 0.0, 0.0
	for _, w := range c.workloads() {
		part := c.objective.Weights[w]
		v, ok := o.Figures[w][c.objective.Metric]
		if part > 0 && !(ok && v > 0) {
			delete(out, c.objective.Metric)
			return out
		}
		if part > 0 {
			sum, weight = sum+part*math.Log(v), weight+part
		}
		for _, b := range c.objective.SLOs {
			worst, have := out[b.Metric]
			switch v, ok := o.Figures[w][b.Metric]; {
			case !ok || !have:
				delete(out, b.Metric)
			case b.Op == "<=":
				out[b.Metric] = max(worst, v)
			default:
				out[b.Metric] = min(worst, v)
			}
		}
	}
	out[c.objective.Metric] = math.Exp(sum / weight)
	return out
}

// logOf is the logarithm of the objective in the direction that is better; not a
// number where there is no positive figure.
func (c *course) logOf(figures map[string]float64) float64 {
	return c.objective.log(figures[c.objective.Metric])
}

func (o Objective) log(v float64) float64 {
	switch {
	case !(v > 0) || math.IsInf(v, 1):
		return math.NaN()
	case o.Higher:
		return math.Log(v)
	}
	return -math.Log(v)
}

// resolve gives bounds that are of the baseline's figures their limits; one whose
// figure the baseline lacks is met by nothing.
func (o Objective) resolve(base map[string]float64) Objective {
	o.SLOs = slices.Clone(o.SLOs)
	for i, b := range o.SLOs {
		v, ok := base[b.Metric]
		switch {
		case b.Of == "":
			continue
		case !ok:
			b.Limit = math.NaN()
		case b.Of == Plus:
			b.Limit += v
		case b.Of == Times:
			b.Limit *= v
		}
		b.Of = ""
		o.SLOs[i] = b
	}
	return o
}

// launches of a configuration under one share of the load, in the search.
func (c *course) launches(config Config, share float64) []*trial {
	var out []*trial
	for _, t := range c.trials {
		if t.Pass == 0 && t.Share == share && t.measured() && maps.Equal(t.Config, config) {
			out = append(out, t)
		}
	}
	return out
}

// seen reports whether a configuration had its launch, and need not have another. One
// that our own machinery spoiled is no finding about it: it may have a second.
func (c *course) seen(config Config) bool {
	spoiled := 0
	for _, t := range c.trials {
		if t.Pass != 0 || !maps.Equal(t.Config, config) {
			continue
		}
		if spoiled++; !t.spoiled() || spoiled > 1 {
			return true
		}
	}
	return false
}

// spoiled reports whether a trial says nothing about its configuration.
func (t *trial) spoiled() bool { return t.end.Status == Failed || t.end.Status == Void }

// spread is the noise between launches, by the repeated ones of the search. Until
// there are some it is taken to be priorSpread, which weighs as much as
// priorLaunches more.
func (c *course) spread() (sd float64, df float64, n int) {
	sum, free := priorSpread*priorSpread*priorLaunches, priorLaunches
	groups := map[string][]float64{}
	for _, t := range c.trials {
		if t.Pass == 0 && t.measured() {
			k := fmt.Sprint(t.Share, t.Config.key())
			groups[k] = append(groups[k], t.log)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(groups)) {
		if g := groups[k]; len(g) > 1 {
			sd := stat.StdDev(g)
			sum += sd * sd * float64(len(g)-1)
			free += float64(len(g) - 1)
			n += len(g)
		}
	}
	return math.Sqrt(sum / free), free, n
}

// What is believed of the noise before anything is known: launches of a server
// mostly agree within 1 to 2 %.
const (
	priorSpread   = 0.015
	priorLaunches = 3.0
)

// within is the standard error of one run, by its own intervals; 0 for not known.
func (c *course) within() float64 {
	sum, n := 0.0, 0
	for _, t := range c.trials {
		if w := t.end.Within[c.space.Primary]; w > 0 && t.measured() {
			sum += w * w
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return math.Sqrt(sum / float64(n))
}

// left is the number of launches that the budget still has, of limitless ones
// what is worth its time.
func (c *course) left() int {
	n := mostLaunches - len(c.trials)
	if c.budget.Trials > 0 {
		n = c.budget.Trials - len(c.trials)
	}
	if each := c.each(); c.budget.Time > 0 && each > 0 {
		n = min(n, int((c.budget.Time.Seconds()-c.spent())/each))
	}
	return n
}

// mostLaunches ends a search without a budget.
const mostLaunches = 60

// each is what a launch takes: the mean so far and half of the way to the longest.
func (c *course) each() float64 {
	longest := 0.0
	for _, t := range c.trials {
		longest = max(longest, t.end.Seconds)
	}
	return (c.spent()/max(1, float64(len(c.trials))) + longest) / 2
}

func (c *course) spent() float64 {
	sum := 0.0
	for _, t := range c.trials {
		sum += t.end.Seconds
	}
	return sum
}

// searching is the number of launches left for the search: what confirmation,
// ablation and check may need is kept back, 30 % of the budget at least.
func (c *course) searching() int {
	left := c.left()
	total := left + len(c.trials)
	rounds := c.options.Rounds
	keep := max(2*rounds, (3*total+9)/10, min(3*rounds+reserveAblation, total/2))
	return left - keep
}

// reserveAblation is kept for leaving out settings.
const reserveAblation = 3

// short is the share of the load in the first rung; 0: all of it.
func (c *course) short() float64 {
	if c.options.Short == 1 || c.budget.Trials > 0 && c.budget.Trials < shortBudget && c.budget.Time == 0 {
		return 0
	}
	return c.options.Short
}

// opening launches the baseline: twice, where the budget is not too small.
func (c *course) opening() bool {
	c.begin(BaselineStage)
	config := Change{}.Apply(c.space.Baseline)
	shares := []float64{0, 0}
	if c.budget.Trials > 0 && c.budget.Trials < smallBudget {
		shares = shares[:1]
	}
	if s := c.short(); s > 0 {
		shares = []float64{0, s, s}
	}
	for _, share := range shares {
		t, ok := c.measure(Proposal{Stage: BaselineStage, Label: BaselineStage, Config: config, Share: share}, lineage{arm: "the baseline"})
		if !ok {
			return false
		}
		if t.measured() || c.base == nil {
			c.base = append(c.base, t)
		}
	}
	return true
}

// reference is the mean log of the baseline's launches under a share of the load,
// or of all that was measured where the baseline was not.
func (c *course) reference(share float64) float64 {
	var x []float64
	for _, t := range c.base {
		if t.Share == share && t.measured() {
			x = append(x, t.log)
		}
	}
	for _, t := range c.trials {
		if len(c.base) > 0 && !c.based() && t.Pass == 0 && t.Share == share && t.measured() {
			x = append(x, t.log)
		}
	}
	return stat.Mean(x)
}

// based reports whether the baseline could be measured.
func (c *course) based() bool {
	return slices.ContainsFunc(c.base, (*trial).measured)
}
