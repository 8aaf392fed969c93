package science

import (
	"fmt"

	"perflab/internal/tune"
)

// Setup is how a strategy is put to the test.
type Setup struct {
	Launches int   // budget of a study
	Marks    []int // launches after which the best launched so far is looked at
}

// Entrant is a strategy to compare.
type Entrant struct {
	Name  string
	Start func(w *World, b tune.Budget, seed uint64) (tune.Strategy, error)
}

// Entrants are the strategies. All are given the same space, guide and budget, and
// the race alone the predictor: the others have no use for one. The blind race has
// none, as the truth of a landscape is nearer to its predictor than a real engine is
// to the simulator.
func Entrants() []Entrant {
	draw := func(start func(tune.SearchSpace, tune.Space, tune.Objective, tune.Budget, uint64) (*tune.Draw, error)) func(*World, tune.Budget, uint64) (tune.Strategy, error) {
		return func(w *World, b tune.Budget, seed uint64) (tune.Strategy, error) {
			return start(w.field.SearchSpace(), w.Space(), w.Objective, b, seed)
		}
	}
	return []Entrant{
		{"race", func(w *World, b tune.Budget, _ uint64) (tune.Strategy, error) {
			return tune.NewRace(w.field.SearchSpace(), w, w.Space(), w.Objective, b, tune.RaceOptions{})
		}},
		{"race, blind", func(w *World, b tune.Budget, _ uint64) (tune.Strategy, error) {
			return tune.NewRace(w.field.SearchSpace(), nil, w.Space(), w.Objective, b, tune.RaceOptions{})
		}},
		{"staged", func(w *World, b tune.Budget, _ uint64) (tune.Strategy, error) {
			return tune.NewStaged(w.Space(), w.Objective, b)
		}},
		{"random", draw(tune.NewRandom)},
		{"grid", draw(tune.NewGrid)},
		{"tpe", draw(tune.NewTPE)},
	}
}

// End is what became of a study.
type End struct {
	Regret   float64   // of what is recommended
	Best     []float64 // regret of the best launched by each mark, by the truth: how fast good ones are reached
	Launches int
	Changed  bool   // something else than the baseline is recommended
	Claimed  bool   // and it is said to be better
	Short    string // why it ended without its work done; "": it did not
	Seconds  float64
}

// Study runs a strategy to its end. What is not recommended has the regret of the
// baseline: it is what stays in use.
func (w *World) Study(e Entrant, setup Setup, seed uint64) (End, error) {
	s, err := e.Start(w, tune.Budget{Trials: setup.Launches}, seed)
	if err != nil {
		return End{}, fmt.Errorf("%s on %s: %w", e.Name, w.Name, err)
	}
	var end End
	configs := map[int]tune.Config{}
	best, unmeasured := 1.0, 0
	for {
		p, ok := s.Ask()
		if !ok {
			break
		}
		if end.Launches++; end.Launches > setup.Launches {
			return End{}, fmt.Errorf("%s on %s, seed %d: asks for a launch beyond its budget of %d", e.Name, w.Name, seed, setup.Launches)
		}
		configs[p.Trial] = p.Config
		o := w.Evaluate(p, seed)
		end.Seconds += o.Seconds
		best, unmeasured = min(best, w.Regret(p.Config)), unmeasured+1
		if o.Status == tune.Measured {
			unmeasured = 0
		}
		for len(end.Best) < len(setup.Marks) && end.Launches >= setup.Marks[len(end.Best)] {
			end.Best = append(end.Best, best)
		}
		s.Tell(o)
	}
	for len(end.Best) < len(setup.Marks) { // it was done before
		end.Best = append(end.Best, best)
	}
	w.conclude(&end, s.Result(), configs, setup, unmeasured)
	return end, nil
}

func (w *World) conclude(end *End, r tune.Result, configs map[int]tune.Config, setup Setup, unmeasured int) {
	pick := w.Baseline
	switch c, ok := configs[r.Winner]; {
	case ok:
		pick = c
	case r.Winner == 0:
		end.Short = "nothing is recommended"
	default:
		end.Short = "recommends a trial that it never asked for"
	}
	if end.Short == "" && unmeasured > 0 && 2*end.Launches < setup.Launches {
		end.Short = "ended at a launch that was refused or broke"
	}
	end.Regret = w.Regret(pick)
	end.Changed = key(pick) != key(w.Baseline)
	end.Claimed = end.Changed && shown(r)
}

// shown reports whether a result says that what it recommends is better: by the
// verdict of its comparison where it has one, else by recommending it.
func shown(r tune.Result) bool {
	if r.Evidence == nil || len(r.Evidence.Comparisons) == 0 {
		return true
	}
	for _, c := range r.Evidence.Comparisons {
		if c.Verdict == tune.Better {
			return true
		}
	}
	return false
}
