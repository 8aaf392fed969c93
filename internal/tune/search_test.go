package tune

import (
	"math"
	"slices"
	"testing"

	"perflab/internal/stat"
)

// TestRaceLaunchesWhatIsNamed checks that what the study names is launched before all
// else, in its order, also where it is predicted to be bad and sets only a number.
func TestRaceLaunchesWhatIsNamed(t *testing.T) {
	f := world(2)
	g := f.space()
	for i, c := range g.Candidates {
		g.Candidates[i].Named = c.Label == "t fp8 tp 1" || c.Label == "v bf16 tp 2"
	}
	number := Candidate{Label: "64 at a time", Config: raceSpace().Baseline.with("seqs", "64"), Named: true, Prior: "the study"}
	g.Candidates = append(g.Candidates, number)
	wrong := f.wrong
	f.wrong = func(c Config) float64 {
		if c["engine"] == "t" {
			return 0.01
		}
		return wrong(c)
	}
	r, err := NewRace(g, f, raceSpace(), up, Budget{Trials: 25}, RaceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	asked, _ := playRace(t, r, f.evaluate(2))
	var got []string
	for _, p := range asked[2:5] {
		got = append(got, p.Label)
	}
	if want := []string{"v bf16 tp 2", "t fp8 tp 1", "64 at a time"}; !slices.Equal(got, want) {
		t.Errorf("launched first: %q, want %q", got, want)
	}
}

// TestRaceCovers checks that every engine and every checkpoint has a launch before any
// refinement, whatever is predicted of it.
func TestRaceCovers(t *testing.T) {
	for seed := range uint64(20) {
		f := world(seed)
		f.wrong = func(c Config) float64 {
			if c["engine"] == "t" || c["model"] == "fp8" {
				return 0.05
			}
			return 1
		}
		asked, _ := playRace(t, race(t, f, up, Budget{Trials: 25}), f.evaluate(seed))
		had := map[string]bool{}
		for _, p := range asked {
			if p.Stage == RefineStage {
				break
			}
			had[p.Config["engine"]], had[p.Config["model"]] = true, true
		}
		for _, v := range []string{"v", "s", "t", "bf16", "fp8"} {
			if !had[v] {
				t.Errorf("world %d: %s had no launch before the refinement", seed, v)
			}
		}
	}
}

// TestRaceUnlearnsThePredictor holds the regret where the predictor is wrong by a factor
// of three about an engine, a checkpoint or a layout: the best is predicted to be hopeless.
func TestRaceUnlearnsThePredictor(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"engine", "model", "tp"} {
		var regret []float64
		for seed := range uint64(30) {
			f := world(seed)
			best := f.bestConfig()
			wrong := f.wrong
			f.wrong = func(c Config) float64 {
				if c[name] == best[name] {
					return wrong(c) / 3
				}
				return wrong(c)
			}
			asked, r := playRace(t, race(t, f, up, Budget{Trials: 25}), f.evaluate(seed))
			regret = append(regret, 1-f.value(asked[r.Winner-1].Config)/f.best())
		}
		stat.Sort(regret)
		t.Logf("wrong about %s: regret mean %.3f, median %.3f, P90 %.3f", name, stat.Mean(regret), regret[15], regret[27])
		if stat.Mean(regret) > 0.05 {
			t.Errorf("wrong about %s: mean regret %.3f", name, stat.Mean(regret))
		}
	}
}

// bestConfig is the configuration of the true optimum.
func (f *testSpace) bestConfig() Config {
	var best Config
	for _, a := range f.Candidates() {
		for _, s := range fieldSeqs {
			for _, b := range fieldBatched {
				c := Change{Set: Config{"seqs": s, "batched": b}}.Apply(a.Config)
				if v := f.value(c); a.Refused == "" && !math.IsNaN(v) && (best == nil || v > f.value(best)) {
					best = c
				}
			}
		}
	}
	return best
}

// TestRaceLearnsRefusals checks that few launches go to an engine that refuses them all,
// and to a value that does on every engine.
func TestRaceLearnsRefusals(t *testing.T) {
	for name, never := range map[string]func(Config) bool{
		"an engine": func(c Config) bool { return c["engine"] == "s" },
		"a value":   func(c Config) bool { return c["tp"] == "1" },
	} {
		for seed := range uint64(20) {
			f := world(seed)
			truth := f.truth
			f.truth = func(c Config) float64 {
				if never(c) {
					return math.NaN()
				}
				return truth(c)
			}
			// The predictor does not know, and thinks best of what is refused.
			f.wrong = nil
			r, err := NewRace(f.space(), optimist{f, truth, never}, raceSpace(), up, Budget{Trials: 25}, RaceOptions{})
			if err != nil {
				t.Fatal(err)
			}
			asked, _ := playRace(t, r, f.evaluate(seed))
			refused := 0
			for _, p := range asked {
				if never(p.Config) {
					refused++
				}
			}
			if 10*refused > 3*len(asked) {
				t.Errorf("%s, world %d: %d of %d launches were refused", name, seed, refused, len(asked))
			}
		}
	}
}

// TestRaceOpensWhatIsClosed checks that a layout which was refused is launched again with all else changed,
// though it is to blame by the refusals and not thought better, and that this ends.
func TestRaceOpensWhatIsClosed(t *testing.T) {
	unlike := 0
	for seed := range uint64(20) {
		f := world(seed)
		open := f.truth
		f.truth = func(c Config) float64 {
			if c["tp"] == "1" {
				return math.NaN()
			}
			return open(c)
		}
		r, err := NewRace(f.space(), optimist{f, open, func(Config) bool { return false }}, raceSpace(), up, Budget{Trials: 25}, RaceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		asked, _ := playRace(t, r, f.evaluate(seed))
		launches, seqs, batched := 0, map[string]bool{}, map[string]bool{}
		for _, p := range asked {
			if p.Config["tp"] == "1" && p.Stage != RepairStage {
				launches++
				seqs[p.Config["seqs"]], batched[p.Config["batched"]] = true, true
			}
		}
		if min(len(seqs), len(batched)) > 2 {
			unlike++
		}
		if launches > mostClosed+1 {
			t.Errorf("world %d: %d launches of a layout that always is refused", seed, launches)
		}
	}
	t.Logf("launched with three values of both limits in %d of 20 studies", unlike)
	if unlike < 12 {
		t.Errorf("launched with three values of both limits in %d of 20 studies, want most", unlike)
	}
}

// optimist predicts twice as much of what will be refused.
type optimist struct {
	*testSpace
	truth func(Config) float64
	never func(Config) bool
}

func (o optimist) Predict(c Config, _ string) (map[string]float64, bool) {
	v := o.truth(c)
	if o.never(c) {
		v *= 2
	}
	return map[string]float64{"m": v}, !math.IsNaN(v)
}

// TestRaceStartsWarm checks that what an earlier study of the same kind measured leads to
// the best sooner than nothing does, and that one of another kind does no harm.
func TestRaceStartsWarm(t *testing.T) {
	t.Parallel()
	launches := func(likeness float64, same bool) int {
		sum := 0
		for seed := range uint64(20) {
			f := world(seed)
			f.wrong = nil
			other := f
			if !same {
				other = world(seed + 1000)
			}
			e := Earlier{Name: "before", Likeness: likeness}
			draw := stat.Stream(seed, "earlier")
			for range 20 {
				c := Config{"engine": fieldEngines[draw.IntN(3)], "model": "fp8", "tp": fieldTP[draw.IntN(3)]}
				if s := fieldSeqs[draw.IntN(6)]; s != "" {
					c["seqs"] = s
				}
				if v := other.value(c); !math.IsNaN(v) {
					e.Measured = append(e.Measured, Known{c, map[string]float64{"m": 7 * v}})
				}
			}
			r, err := NewRace(f.space(), nil, raceSpace(), up, Budget{Trials: 25}, RaceOptions{Earlier: []Earlier{e}})
			if err != nil {
				t.Fatal(err)
			}
			// The rest of the race is not what is asked about.
			sum += len(playUntil(t, r, f.evaluate(seed), func(p Proposal) bool { return f.value(p.Config) > 0.95*f.best() }))
		}
		return sum
	}
	cold, warm, other := launches(0, true), launches(0.9, true), launches(0.3, false)
	t.Logf("launches until within 5 %% of the best, of 20 studies: %d without, %d with one like it, %d with another", cold, warm, other)
	if warm > cold*4/5 || other > cold*3/2 {
		t.Errorf("launches until within 5 %% of the best: %d without an earlier study, %d with one like it, %d with another", cold, warm, other)
	}
}

// TestNamesNoSettingTwice checks that the name of a configuration has each setting that
// perflab chose once, as it is in the end, and what the study named as it named it.
func TestNamesNoSettingTwice(t *testing.T) {
	chosen := func(set Config) Change { return Change{Label: settings(set), Set: set} }
	l := lineage{candidate: "v"}.with(Change{Label: "many", Set: Config{"seqs": "512", "batched": "8192"}}).
		with(chosen(Config{"a": "1", "b": "2"})).with(chosen(Config{"b": "3", "seqs": "64"})).with(chosen(Config{"a": "4"}))
	if got, want := l.String(), "v + many + b 3, seqs 64 + a 4"; got != want {
		t.Errorf("named %q, want %q", got, want)
	}
}
