package science

import (
	"math"
	"os"
	"slices"
	"strconv"
	"testing"

	"perflab/internal/arch"
	"perflab/internal/earlier"
	"perflab/internal/tune"
)

// earlierStudy is a study of so many launches by a strategy on a landscape, as a later one reads it.
func earlierStudy(t *testing.T, w *World, by Entrant, launches int) earlier.Source {
	t.Helper()
	s, err := by.Start(w, tune.Budget{Trials: launches})
	if err != nil {
		t.Fatal(err)
	}
	src := earlier.Source{Name: w.Name}
	for {
		p, ok := s.Ask()
		if !ok {
			return src
		}
		late := p
		late.Trial += 1000 // a landscape draws its noise by trial: this one is its own
		o := w.Evaluate(late, launches)
		o.Trial = p.Trial
		s.Tell(o)
		if o.Status == tune.Measured {
			src.Results = append(src.Results, earlier.Result{
				Config: p.Config, GPU: w.gpu.Name, GPUs: w.GPUs, Load: sent(w), Share: p.Share,
				Baseline: key(p.Config) == key(w.Baseline), Figures: o.Figures[workload],
			})
		}
	}
}

// sent is the load of a landscape, in numbers.
func sent(w *World) earlier.Load {
	return earlier.Load{Input: w.Load.Input.Mean, Output: w.Load.Output.Mean, Rate: w.Load.Rate, Limit: w.Load.Concurrency}
}

// learner is a study on a landscape as one that learns.
func learner(w *World) earlier.Target {
	engines := map[string]string{}
	for _, name := range w.Engines {
		engines[name] = versions[name]
	}
	return earlier.Target{
		Metric: w.Objective.Metric, Model: w.Baseline["model"], Models: w.Models, Lookup: arch.LookupModel, Engines: engines,
		GPU: w.gpu, GPUs: w.GPUs, Load: sent(w), Dimensions: w.field.Domain(),
	}
}

// underOtherLoad is the landscape under a load whose prompts and answers are of other lengths.
func underOtherLoad(w *World, input, output float64) (*World, error) {
	l := w.Landscape
	l.Load.Input.Mean, l.Load.Output.Mean = math.Round(input*l.Load.Input.Mean), math.Round(output*l.Load.Output.Mean)
	if l.Busy > 0 { // its rate follows from the load
		l.Load.Rate, l.Load.Arrival = 0, ""
	}
	l.Objective.SLOs, l.Subject, l.Lead = nil, nil, 0 // what was drawn stays as it is, by name and seed
	return Open(l)
}

// warm is a race that learned from earlier studies.
func warm(name string, known []tune.Earlier) Entrant {
	return Entrant{name, func(w *World, b tune.Budget) (tune.Strategy, error) {
		return tune.NewRace(w.space, w, w.plain(), w.Objective, b, tune.RaceOptions{Earlier: known})
	}}
}

// learning is how a race ended without and with earlier studies.
type learning struct{ without, with End }

// learn runs a race on a landscape without and with an earlier study of it under another load.
func learn(t *testing.T, w *World, launches int) (learning, bool) {
	t.Helper()
	other, err := underOtherLoad(w, 0.5, 0.5)
	if err != nil { // it is none under that load
		return learning{}, false
	}
	facts := earlier.Weigh(learner(w), []earlier.Source{earlierStudy(t, other, Entrants()[0], 25)})
	known := earlier.Known(facts)
	if len(known) == 0 {
		t.Fatalf("%s: nothing is learned: %+v", w.Name, facts)
	}
	var l learning
	if l.without, err = w.Study(Entrants()[0], launches); err == nil {
		l.with, err = w.Study(warm("race, warm", known), launches)
	}
	if err != nil {
		t.Fatal(err)
	}
	return l, true
}

// TestEarlier: a study of the same landscape under another load saves launches. Of as many
// launches the recommendation loses less with it, on average, and the best that is launched too.
// PERFLAB_EARLIER=8 takes eight landscapes of each of nine classes, for the table in docs/tuning.md.
func TestEarlier(t *testing.T) {
	seeds, classes := uint64(2), slices.Concat(Classes()[:2], Classes()[7:8])
	if n, err := strconv.Atoi(os.Getenv("PERFLAB_EARLIER")); err == nil {
		seeds, classes = uint64(n), Classes()[:10]
	}
	for _, launches := range []int{8, 12} {
		var without, with, best, bestWith, n float64
		for _, class := range classes {
			if class.Name == "slo" { // its bound is of the load
				continue
			}
			var a, b float64
			var k int
			for seed := range seeds {
				w := drawn(t, class.Name, 500+seed)
				l, ok := learn(t, w, launches)
				if !ok {
					continue
				}
				a, b, k = a+l.without.Regret, b+l.with.Regret, k+1
				without, with, best, bestWith, n = without+l.without.Regret, with+l.with.Regret, best+l.without.Reached, bestWith+l.with.Reached, n+1
			}
			t.Logf("%2d launches, %-16s %d landscapes: mean regret %5.1f %% without, %5.1f %% with", launches, class.Name, k, 100*a/float64(k), 100*b/float64(k))
		}
		t.Logf("%2d launches, all: mean regret %.1f %% without, %.1f %% with; of the best that was launched %.1f %% and %.1f %%", launches, 100*without/n, 100*with/n, 100*best/n, 100*bestWith/n)
		if !(with < 0.9*without) || !(bestWith < best) {
			t.Errorf("%d launches: an earlier study does not help: mean regret %.2f %% with and %.2f %% without, the best that was launched %.2f %% and %.2f %%",
				launches, 100*with/n, 100*without/n, 100*bestWith/n, 100*best/n)
		}
	}
}

// TestEarlierConfirmsNothing: where all are equal, and an earlier study says of one that it is
// twice as good, nothing is claimed that launches did not show; what is recommended was
// launched here, and the gain that is stated is of these launches.
func TestEarlierConfirmsNothing(t *testing.T) {
	const studies = 24
	claims := 0
	for seed := range uint64(studies) {
		w := drawn(t, "equal usual", 700+seed)
		lie := tune.Earlier{Name: "lie", Likeness: 1}
		for i, c := range w.valid {
			figure := 1.0
			if i == int(seed)%len(w.valid) {
				if figure = 2; !w.Objective.Higher {
					figure = 0.5
				}
			}
			if i%5 == 0 || figure != 1 {
				lie.Measured = append(lie.Measured, tune.Known{Config: c, Figures: map[string]float64{w.Objective.Metric: figure}})
			}
		}
		end, err := w.Study(warm("race, misled", []tune.Earlier{lie}), 12)
		if err != nil {
			t.Fatal(err)
		}
		if end.Claimed {
			claims++
		}
		if end.Stated != nil && (end.Stated.Low > 0.15 || end.Stated.High > 0.5) {
			t.Errorf("%s: states a gain of %v where all are equal", w.Name, *end.Stated)
		}
		launched := false
		for _, l := range end.Course {
			launched = launched || key(l.Config) == key(end.Pick)
		}
		if !launched {
			t.Errorf("%s: recommends %s, which it did not launch", w.Name, key(end.Pick))
		}
	}
	if claims > 2 {
		t.Errorf("%d of %d studies claim a gain where an earlier study alone says there is one", claims, studies)
	}
}

// TestEarlierWrong: an earlier study of which the opposite is true costs no more than some
// launches: of 25 the recommendation is near to what it is without.
func TestEarlierWrong(t *testing.T) {
	var without, with float64
	n := 0
	for _, name := range []string{"dense", "experts"} {
		for seed := range uint64(3) {
			w := drawn(t, name, 800+seed)
			src := earlierStudy(t, w, Entrants()[0], 25)
			for i := range src.Results {
				f := src.Results[i].Figures
				src.Results[i].Figures = map[string]float64{w.Objective.Metric: 1 / f[w.Objective.Metric]}
			}
			facts := earlier.Weigh(learner(w), []earlier.Source{src})
			a, err := w.Study(Entrants()[0], 25)
			if err != nil {
				t.Fatal(err)
			}
			b, err := w.Study(warm("race, misled", earlier.Known(facts)), 25)
			if err != nil {
				t.Fatal(err)
			}
			without, with, n = without+a.Regret, with+b.Regret, n+1
			t.Logf("%s: regret %.1f %% without, %.1f %% with the opposite", w.Name, 100*a.Regret, 100*b.Regret)
		}
	}
	if with/float64(n) > without/float64(n)+0.05 {
		t.Errorf("mean regret %.1f %% where an earlier study says the opposite, %.1f %% without", 100*with/float64(n), 100*without/float64(n))
	}
}
