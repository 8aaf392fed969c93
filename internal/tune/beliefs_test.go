package tune_test

import (
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"

	"perflab/internal/test/science"
	"perflab/internal/tune"
)

// beliefs are what races thought of configurations that they had not launched, against the truth.
type beliefs struct {
	density float64 // sum of the logarithms of its density at the truth
	within  int     // truths within the 90 % interval
	n       int

	chances float64 // sum of the logarithms of the chance that was given to how each would fare
	ran     int
	asked   int // where a launch was refused
}

// reference is the error of the baseline's figure, which all ratios have in common, about.
const reference = 0.02

func (b *beliefs) add(mean, sd, truth float64) {
	sd = math.Hypot(sd, reference)
	z := (truth - mean) / sd
	b.density -= z*z/2 + math.Log(sd*math.Sqrt(2*math.Pi))
	if math.Abs(z) < 1.645 {
		b.within++
	}
	b.n++
}

// addChance adds the chance that was given to a configuration to run.
func (b *beliefs) addChance(chance float64, ran bool) {
	if b.asked++; ran {
		b.ran++
	} else {
		chance = 1 - chance
	}
	b.chances += math.Log(max(chance, 1e-3))
}

func (b *beliefs) join(o *beliefs) {
	b.density, b.within, b.n = b.density+o.density, b.within+o.within, b.n+o.n
	b.chances, b.ran, b.asked = b.chances+o.chances, b.ran+o.ran, b.asked+o.asked
}

// foretold is the mean logarithm of the chances, and alike what it is where all have the share that ran.
func (b *beliefs) foretold() (chances, alike float64) {
	share := float64(b.ran) / float64(b.asked)
	return b.chances / float64(b.asked), share*math.Log(share) + (1-share)*math.Log(1-share)
}

func (b *beliefs) holds() float64 { return float64(b.within) / float64(b.n) }

func (b *beliefs) log(t *testing.T, class string) {
	t.Helper()
	chances, alike := b.foretold()
	t.Logf("| %s | %d | %.2f | %.1f %% | %d | %.3f | %.3f |", class, b.n, b.density/float64(b.n), 100*b.holds(), b.asked, chances, alike)
}

// believed has a race of 25 launches on a landscape, and then asks what it thinks of what it has not launched
// and may be near to what leads: by that it chooses. Of whatever it has not launched it is asked whether that runs.
func believed(t *testing.T, c science.Class, seed uint64) *beliefs {
	t.Helper()
	w, err := science.Draw(c, seed)
	if err != nil {
		t.Fatal(err)
	}
	entrant := science.Entrants()[0]
	start := entrant.Start
	var race *tune.Race
	entrant.Start = func(w *science.World, b tune.Budget) (tune.Strategy, error) {
		s, err := start(w, b)
		race, _ = s.(*tune.Race)
		return s, err
	}
	end, err := w.Study(entrant, 25)
	if err != nil || race == nil {
		t.Fatal(entrant.Name, err)
	}
	base, _ := w.Truth(w.Baseline)
	out := &beliefs{}
	for _, config := range science.Valid(w) {
		figures, refused := w.Truth(config)
		gain := w.Objective.Gain(base, figures)
		mean, sd, lead, ok := race.Believed(config)
		launched := slices.ContainsFunc(end.Course, func(l science.Launch) bool { return maps.Equal(l.Config, config) })
		if chance, ok := race.Runs(config); ok && !launched {
			out.addChance(chance, refused == "")
		}
		if gain != nil && ok && !launched && mean+sd > lead-0.15 {
			out.add(mean, sd, math.Log1p(*gain))
		}
	}
	return out
}

// TestBeliefs checks that the truth lies in the intervals of what a search believes, and that it foretells what
// runs once something was refused. PERFLAB_BELIEFS=8 takes
// eight whole landscapes of each class, for the figures in docs/tuning.md.
func TestBeliefs(t *testing.T) {
	t.Parallel()
	seeds, whole := 2, false
	if n, err := strconv.Atoi(os.Getenv("PERFLAB_BELIEFS")); err == nil {
		seeds, whole = n, true
	}
	all := &beliefs{}
	for _, c := range science.Classes() {
		if c.Equal() {
			continue
		}
		if !whole {
			c = c.Small()
		}
		of := &beliefs{}
		for seed := range uint64(seeds) {
			of.join(believed(t, c, 1000+seed))
		}
		of.log(t, c.Name)
		all.join(of)
	}
	all.log(t, "all")
	if all.n < 100 || all.holds() < 0.8 {
		t.Errorf("of %d configurations the truth of %.3f lies in the 90 %% interval", all.n, all.holds())
	}
	if chances, alike := all.foretold(); all.asked < 100 || chances < alike/2 {
		t.Errorf("the chances that were given to how %d configurations fare have a mean logarithm of %.3f, and %.3f where all have the same", all.asked, chances, alike)
	}
}
