package science

import (
	"math"
	"slices"

	"perflab/internal/stat"
)

// Plan is which studies are held against each other: every strategy with every budget on
// the landscape of every class and seed.
type Plan struct {
	Classes  []Class
	First    uint64 // seed
	Seeds    int
	Budgets  []int // launches
	Entrants []Entrant
}

// Standing is one landscape with the studies on it, by strategy and budget.
type Standing struct {
	Class int // of the plan
	Seed  uint64
	Size  int     // configurations that run
	Gain  float64 // of the best over the baseline: 0.5 is half as much again
	Ends  [][]End
}

// Standing runs the n-th landscape's studies; there are as many landscapes as classes
// times seeds.
func (p Plan) Standing(n int) (Standing, error) {
	s := Standing{Class: n / p.Seeds, Seed: p.First + uint64(n%p.Seeds)}
	w, err := Draw(p.Classes[s.Class], s.Seed)
	if err != nil {
		return s, err
	}
	s.Size, s.Gain = w.runs, 1/(1-w.Regret(w.Baseline))-1
	for _, e := range p.Entrants {
		var ends []End
		for _, launches := range p.Budgets {
			end, err := w.Study(e, launches)
			if err != nil {
				return s, err
			}
			end.Course = nil // which is large
			ends = append(ends, end)
		}
		s.Ends = append(s.Ends, ends)
	}
	return s, nil
}

// Comparison is how strategies did.
type Comparison struct {
	Plan
	Fields []Standing
}

// ends are the studies of a strategy with a budget, on the landscapes of a class that
// have something to find: -1 for those of all.
func (c Comparison) ends(strategy, budget, class int) []End {
	var out []End
	for _, f := range c.Fields {
		if equal := c.Classes[f.Class].equal; f.Class == class || class < 0 && !equal {
			out = append(out, f.Ends[strategy][budget])
		}
	}
	return out
}

// Spread is how a figure of studies is distributed.
type Spread struct {
	Median, Mean, P90, P95 float64
	Error                  float64 // standard error of the mean
}

func spreadOf(ends []End, of func(End) float64) Spread {
	if len(ends) == 0 {
		return Spread{math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN()}
	}
	var x []float64
	for _, e := range ends {
		x = append(x, of(e))
	}
	slices.Sort(x)
	return Spread{stat.Quantile(x, 0.5), stat.Mean(x), stat.Quantile(x, 0.9), stat.Quantile(x, 0.95), stat.StdDev(x) / math.Sqrt(float64(len(x)))}
}

func final(e End) float64   { return e.Regret }
func reached(e End) float64 { return e.Reached }

// Regret is how much a strategy loses with a budget on the landscapes of a class: "" of
// all classes.
func (c Comparison) Regret(strategy string, launches int, class string) Spread {
	i := slices.IndexFunc(c.Entrants, func(e Entrant) bool { return e.Name == strategy })
	b := slices.Index(c.Budgets, launches)
	k := slices.IndexFunc(c.Classes, func(k Class) bool { return k.Name == class })
	if i < 0 || b < 0 || k < 0 && class != "" {
		return spreadOf(nil, final)
	}
	return spreadOf(c.ends(i, b, k), final)
}

// tally counts studies.
type tally struct{ yes, all int }

func (t tally) share() float64 { return float64(t.yes) / float64(t.all) }

func (t tally) with(o tally) tally { return tally{t.yes + o.yes, t.all + o.all} }

// all counts the studies of a strategy in a class with every budget.
func (c Comparison) all(strategy, class int, of func(End) (yes, counts bool)) (t tally) {
	for k := range c.Budgets {
		t = t.with(counted(c.ends(strategy, k, class), of))
	}
	return t
}

func counted(ends []End, of func(End) (yes, counts bool)) (t tally) {
	for _, e := range ends {
		yes, counts := of(e)
		if counts {
			t.all++
			if yes {
				t.yes++
			}
		}
	}
	return t
}

// What is counted of studies.
func covered(e End) (yes, counts bool) { return e.Covered() }
func claimed(e End) (yes, counts bool) { return e.Claimed, true }
func near(e End) (yes, counts bool)    { return e.Regret < 0.02, true }
func lost(e End) (yes, counts bool)    { return e.Regret == 1, true }
func proven(e End) (yes, counts bool)  { return e.ShownAt > 0, true }
func idle(e End) (yes, counts bool)    { return e.Idle > 0, e.Changed }
func ended(e End) (yes, counts bool)   { return e.Short != "", true }
