package tune

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"perflab/internal/field"
	"perflab/internal/tune/answers"
	"perflab/internal/tune/blame"
)

// Race looks for the best configuration of a search space and shows that it is
// better. In order:
//
//  1. The baseline is launched twice, for the noise between launches.
//  2. What the study names is launched, then every engine and every checkpoint that
//     has had no launch, the one that is predicted best of it. One that is refused is
//     mended as its refusal says, and the best of each engine gets what its bottleneck
//     asks for, before any is given up.
//  3. Whatever a launch is expected to gain most by is launched (see package surrogate): a
//     candidate, a small change of what leads, or a combination of what is thought good.
//  4. What leads and the baseline are launched again, interleaved, each round with seeds
//     of its own, until a gain is shown or none is to be expected any more; a second
//     configuration only where it may be the better one, and another in its place where it
//     probably is. The interval holds at whatever round this stops. Only these launches decide.
//  5. The settings of the winner that likely bring nothing are left out together. What is
//     left is launched as a finalist is, and recommended only if it is no worse; else
//     halves of them are tried, and then other settings one by one.
//
// A part of the budget is kept for the last two before the search begins. A race
// that is given up half way is to be stopped; see Stop.
type Race struct {
	Procedure
	state *raceState
}

// RaceOptions are what a race does otherwise than by default.
type RaceOptions struct {
	Rounds int // launches of each configuration in the confirmation, at least; 0: 3, with a small budget 2
	// Short is the share of the load that candidates meet first; 0: a third. A budget
	// of launches alone has no short rung: a launch costs it the same under any load, and
	// a short load is another one.
	Short float64
	// Earlier are studies made before: what they measured directs the search as far as
	// they are like this one, and confirms nothing.
	Earlier []Earlier
	// Nodes are machines of one kind, on each of which one trial is measured at a time; fewer
	// than 2: that is not said, and there is one.
	Nodes []string
}

// Earlier is what a study of the same model, engine or hardware measured before.
type Earlier struct {
	Name     string
	Likeness float64 // 0: says nothing of this study; 1: might be a part of it
	Measured []Known
}

// Known is a configuration with its figures under a load like the primary workload.
type Known struct {
	Config  Config             `json:"config"`
	Figures map[string]float64 `json:"figures"`
}

var _ Strategy = (*Race)(nil)

// ShortLoad is the share of the load that candidates meet first, where none is asked for.
const ShortLoad = 1.0 / 3

// raceGain is the gain that matters where the objective does not say.
const raceGain = 0.02

// smallBudget is the least number of launches of which one may go for the noise alone: of fewer
// the search needs more.
const smallBudget = 16

// threeRoundsFrom is the least number of launches of which six go for the confirmation: two rounds
// show a gain of a half at a noise of 8 % too rarely, and with fewer launches the search needs them
// more.
const threeRoundsFrom = 12

// NewRace returns a race, or everything that is wrong with what it was given. A
// nil predictor predicts nothing.
func NewRace(g SearchSpace, p Predictor, s Space, o Objective, b Budget, r RaceOptions) (*Race, error) {
	asked := r
	r = r.filled(b)
	if o.MinGain == 0 {
		o.MinGain = raceGain
	}
	errs := append(nodeErrors(r.Nodes), s.Validate(), o.Validate())
	switch least := 2*r.Rounds + max(2, len(r.Nodes)+1); {
	case r.Rounds < 2:
		errs = append(errs, fmt.Errorf("rounds is %d: a confirmation needs at least 2 launches of each configuration", r.Rounds))
	case b.Trials < 0 || b.Time < 0:
		errs = append(errs, b.Validate())
	case b.Trials > 0 && b.Trials < least:
		errs = append(errs, field.Errorf("budget", "a budget of %d trials is too small for a race: the confirmation takes %d launches of baseline and winner each, so give at least %d, or use strategy staged", b.Trials, r.Rounds, least))
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
	h := &history{space: s, objective: o, bounds: o, budget: b, options: r, asked: asked, nodes: newNodes(r.Nodes)}
	guard := &guarded{history: h, rules: g.Rules, verdicts: map[string]answers.Test{}, diverged: map[string]float64{}}
	m := &model{guarded: guard, foreteller: foreteller{of: h, search: g, predictor: p}, axes: axes(g, s)}
	m.forget()
	m.choices = m.varying()
	for _, axis := range m.axes {
		if axis.Name != engineParameter {
			m.traits = append(m.traits, blame.Parameter(axis))
		}
	}
	race := &Race{state: &raceState{launcher: &launcher{model: m}, vain: map[string]bool{}}}
	race.body = func(p *Procedure) {
		race.state.starter = p
		race.state.run()
	}
	return race, nil
}

// filled are the options with their defaults under a budget.
func (r RaceOptions) filled(b Budget) RaceOptions {
	if r.Rounds == 0 {
		if r.Rounds = 3; b.Trials > 0 && b.Trials < threeRoundsFrom {
			r.Rounds = fewest
		}
	}
	if r.Short == 0 {
		r.Short = ShortLoad
	}
	return r
}

// Result is what the observations so far say.
func (r *Race) Result() Result {
	r.start()
	return r.state.conclude()
}

// launcher is what a search knows of configurations, and how it has one measured.
type launcher struct {
	*model
	starter    *Procedure // of trials
	candidates []*contender
}

// raceState is how far a race has come.
type raceState struct {
	*launcher
	finished   bool
	steps      []Entry // repairs and refinements
	phases     []phaseStart
	vain       map[string]bool // repairs that did not help
	stopReason *Finding        // the search ended before its budget

	confirmation *confirmation // nil: not begun, or nothing to confirm
}

// phaseStart is where a phase begins, with the log ratio of what led then.
type phaseStart struct {
	name  string
	trial int
	lead  float64
}

// run is the race. It is suspended in land until a trial ends.
func (s *raceState) run() {
	s.opening()
	s.begin(RaceStage)
	s.fitRounds()
	s.candidates = s.rank(s.search.Candidates)
	s.named()
	s.cover(engineParameter)
	s.cover(modelParameter)
	s.elsewhere()
	s.firstRung()
	s.repair()
	s.final()
	s.refine()
	s.confirm()
	s.begin(AblateStage)
	if k := s.confirmation; k != nil && k.winner != nil {
		s.ablate(k)
	}
	s.finished = true
}

// fitRounds takes fewer rounds to confirm where no number was asked for and the budget's time has
// room for so few launches, by what those of the baseline took, that the confirmation would leave
// the search none.
func (s *raceState) fitRounds() {
	if s.asked.Rounds == 0 && s.budget.Time > 0 && s.left()+len(s.trials) < threeRoundsFrom {
		s.options.Rounds = fewest
	}
}

// begin starts a phase, once all that is under way has ended.
func (s *raceState) begin(name string) {
	s.settle()
	lead := math.NaN()
	if l := s.leader(); l != nil {
		lead = l.mean
	}
	s.phases = append(s.phases, phaseStart{name, len(s.trials), lead})
}

// openingShares are the loads under which the baseline is launched first.
func (h *history) openingShares() []float64 {
	short := h.short()
	if n := len(h.options.Nodes); n > 1 {
		each := slices.Repeat([]float64{short}, n)
		if short > 0 {
			return append([]float64{0}, each...)
		}
		return each
	}
	if short > 0 {
		return []float64{0, short, short}
	}
	if h.budget.Trials > 0 && h.budget.Trials < smallBudget {
		return []float64{0}
	}
	return []float64{0, 0}
}

// opening launches the baseline: twice, where the budget is not too small, and of several
// machines once on each.
func (s *raceState) opening() {
	s.begin(BaselineStage)
	if s.several() {
		s.openEach()
		return
	}
	shares := s.openingShares()
	for lost := 0; len(shares) > 0; {
		t := s.measure(s.baselineTrial(shares[0]), theBaseline)
		s.keepBaseline(t)
		switch {
		case s.based():
			shares = shares[1:]
		case !t.spoiled():
			return
		default: // made good for: without its figure nothing can be compared
			if lost++; lost == launchTries || s.searching() < 2 {
				return
			}
		}
	}
}
