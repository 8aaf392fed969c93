package tune

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"perflab/internal/stat"
)

// duel is a space of the baseline and as many others as are asked for, without
// settings: a race of it is nearly all confirmation.
type duel struct {
	*testSpace
	arms int
}

func (d duel) config(arm int) Config {
	return Config{"engine": "s", "model": "bf16", "tp": "4", "arm": strconv.Itoa(arm)}
}

func (d duel) space() SearchSpace {
	s := SearchSpace{Rules: d, Neighbourhood: d}
	for i := range d.arms {
		s.Candidates = append(s.Candidates, Candidate{Label: fmt.Sprint("arm ", i), Config: d.config(i)})
	}
	return s
}
func (duel) Steps(Config) []Change    { return nil }
func (duel) Removals(Config) []Change { return nil }

// trialOf says how launches of a duel scatter, and what they are in truth.
type trialOf struct {
	gain  float64 // of the arms over the baseline: 0.05 is 5 %
	noise float64 // between launches, on logarithms
	round float64 // between rounds, in those of the noise
	drift float64 // from the first launch to the 25th, in those of the noise
	noisy float64 // noise of the arms, in those of the noise; 0: 1
	lost  float64 // share of launches that our machinery loses
}

func (c trialOf) evaluate(seed uint64) evaluator {
	return func(_ context.Context, p Proposal) (Observation, error) {
		r := stat.Stream(seed, fmt.Sprint("launch ", p.Trial))
		y, sd := math.Log(100)+c.noise*c.round*stat.Stream(seed, fmt.Sprint("round ", p.Pass)).NormFloat64(), c.noise
		if p.Config["engine"] == "s" {
			y += math.Log1p(c.gain)
			if c.noisy > 0 {
				sd *= c.noisy
			}
		}
		y += c.noise*c.drift*float64(p.Trial)/25 + sd*r.NormFloat64()
		if r.Float64() < c.lost {
			return Observation{Status: Failed, Reason: "no node", Seconds: 10}, nil
		}
		o := Observation{Status: Measured, Seconds: 100, Figures: map[string]map[string]float64{}}
		for _, w := range p.Workloads {
			o.Figures[w] = map[string]float64{"m": math.Exp(y)}
		}
		return o, nil
	}
}

// confirmed counts what became of simulated confirmations.
type confirmed struct {
	n                 int
	shown             int     // something is called better
	compared, covered int     // comparisons with the baseline, and of them those whose interval holds the truth
	launches          float64 // of the confirmation
}

// confirmations plays races that have so many launches left when they confirm.
func (c trialOf) confirmations(t *testing.T, arms, left, n int) confirmed {
	t.Helper()
	out := confirmed{n: n}
	for seed := range uint64(n) {
		d := duel{world(1), arms}
		a, err := NewRace(d.space(), nil, raceSpace(), up, Budget{Trials: 2 + arms + left}, RaceOptions{Rounds: 3})
		if err != nil {
			t.Fatal(err)
		}
		asked, r := playRace(t, a, c.evaluate(seed))
		for _, p := range asked {
			if p.Pass > 0 {
				out.launches++
			}
		}
		if r.Winner != r.Baseline {
			out.shown++
		}
		for _, k := range r.Evidence.Comparisons {
			if k.Against != theBaseline.candidate {
				continue
			}
			out.compared++
			if k.Ratio.Low <= 1+c.gain && 1+c.gain <= k.Ratio.High {
				out.covered++
			}
		}
	}
	return out
}

// confirmationRuns is how many confirmations are simulated of each row: few in a test,
// more where PERFLAB_CONFIRMATIONS says so.
func confirmationRuns(few int) (n int, many bool) {
	if n, err := strconv.Atoi(os.Getenv("PERFLAB_CONFIRMATIONS")); err == nil {
		return n, true
	}
	return few, false
}

// scatter is by how much a share of n draws may differ from what it should be at least.
func scatter(share float64, n int) float64 {
	return 2.6 * math.Sqrt(share*(1-share)/float64(n))
}

// TestConfirmation holds what the confirmation promises: how often it calls equals
// different, how often its interval holds the truth, how often it shows a gain of 5 % at a
// noise of 2 %, and with how many launches. With PERFLAB_CONFIRMATIONS=2000 its log has
// the table of docs/tuning.md.
func TestConfirmation(t *testing.T) {
	t.Parallel()
	n, many := confirmationRuns(200)
	row := func(c trialOf, what string, arms, left int) {
		got := c.confirmations(t, arms, left, n)
		shown, covered := float64(got.shown)/float64(n), float64(got.covered)/float64(got.compared)
		t.Logf("| %g %% | %g %% | %g | %d | %s | %.1f %% | %.1f | %.1f %% |", 100*c.gain, 100*c.noise, c.round, left, what, 100*shown, got.launches/float64(n), 100*covered)
		if covered < 0.93-scatter(0.93, n) {
			t.Errorf("%+v: the 95 %% interval holds the truth in %.3f", c, covered)
		}
		if c.gain == 0 && shown > 0.04+scatter(0.04, n) {
			t.Errorf("%+v: %.3f of equals have a winner", c, shown)
		}
		if plain := c.gain == 0.05 && c.noise == 0.02 && c == (trialOf{gain: 0.05, noise: 0.02}) && left == 14 && arms == 1; plain && (shown < 0.9-scatter(0.9, n) || got.launches/float64(n) > 11) {
			t.Errorf("a gain of 5 %% at a noise of 2 %% is shown in %.3f with %.1f launches", shown, got.launches/float64(n))
		}
	}
	t.Logf("| gain | noise | rounds differ by, in noises | launches left | | shown | launches | coverage |")
	for _, gain := range []float64{0, 0.05} {
		row(trialOf{gain: gain, noise: 0.02}, "", 1, 14)
		row(trialOf{gain: gain, noise: 0.02, noisy: 4}, "it is four times as noisy", 1, 14)
	}
	if !many {
		return
	}
	for _, noise := range []float64{0.005, 0.02, 0.08} {
		for _, round := range []float64{0, 1, 3} {
			for _, gain := range []float64{0, 0.05} {
				if noise != 0.02 || round > 0 {
					row(trialOf{gain: gain, noise: noise, round: round}, "", 1, 14)
				}
			}
		}
	}
	for _, gain := range []float64{0, 0.03, 0.05, 0.1} {
		row(trialOf{gain: gain, noise: 0.02}, "", 1, 10)
		row(trialOf{gain: gain, noise: 0.02}, "", 1, 22)
		row(trialOf{gain: gain, noise: 0.02}, "two alike", 2, 14)
	}
	for _, gain := range []float64{0, 0.05} {
		row(trialOf{gain: gain, noise: 0.02, drift: 3}, "drift of three times the noise", 1, 14)
		row(trialOf{gain: gain, noise: 0.02, noisy: 0.25}, "the baseline is four times as noisy", 1, 14)
		row(trialOf{gain: gain, noise: 0.02, lost: 0.15}, "15 % of the launches are lost", 1, 14)
	}
}

// TestConfirmationOfFewRounds: with two rounds at least, as with small budgets, equals
// are not called different either.
func TestConfirmationOfFewRounds(t *testing.T) {
	t.Parallel()
	n, _ := confirmationRuns(150)
	for _, noisy := range []float64{1, 4} {
		wrong := 0
		for seed := range uint64(n) {
			a, err := NewRace(duel{world(1), 1}.space(), nil, raceSpace(), up, Budget{Trials: 8}, RaceOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if _, r := playRace(t, a, trialOf{noise: 0.02, noisy: noisy}.evaluate(seed)); r.Winner != r.Baseline {
				wrong++
			}
		}
		t.Logf("%g times as noisy: %d of %d", noisy, wrong, n)
		if share := float64(wrong) / float64(n); share > 0.04+scatter(0.04, n) {
			t.Errorf("%g times as noisy: %.3f of equals have a winner", noisy, share)
		}
	}
}

// TestConfirmationStops: a gain that is plain is shown by the least number of rounds, and
// what cannot be shown any more is given up; the sentence says by how many.
func TestConfirmationStops(t *testing.T) {
	play := func(c trialOf) ([]Proposal, Result) {
		a, err := NewRace(duel{world(1), 1}.space(), nil, raceSpace(), up, Budget{Trials: 25}, RaceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return playRace(t, a, c.evaluate(2))
	}
	asked, r := play(trialOf{gain: 0.5, noise: 0.01})
	if len(asked) != 3+6 || r.Verdict.Kind != ShownBetter || r.Interval == nil || r.Interval.Low < 0.3 {
		t.Errorf("%d launches: %+v, %+v", len(asked), r.Verdict, r.Interval)
	}
	asked, r = play(trialOf{gain: -0.2, noise: 0.01})
	if len(asked) != 3+6 || r.Verdict.Kind != NoGainShown {
		t.Errorf("%d launches: %+v", len(asked), r.Verdict)
	}
	asked, r = play(trialOf{gain: -0.02, noise: 0.03})
	if c := r.Verdict.Comparison; len(asked) >= 25 || r.Verdict.Kind != BudgetTooSmall || c.Most <= len(c.Trials) || !(c.Shown > 0) {
		t.Errorf("%d launches: %+v, %+v", len(asked), r.Verdict, c)
	}
}

// losing is an evaluation of which one launch of the confirmation is lost; 0: none.
func losing(lost int, evaluate evaluator) evaluator {
	confirming := 0
	return func(ctx context.Context, p Proposal) (Observation, error) {
		if p.Pass > 0 {
			if confirming++; confirming == lost {
				return Observation{Status: Failed, Reason: "no node", Seconds: 10}, nil
			}
		}
		return evaluate(ctx, p)
	}
}

// confirmedBy counts the launches of a confirmation that have figures, by arm; the baseline's is "".
func confirmedBy(a *Race) map[string]int {
	out := map[string]int{}
	for _, t := range a.state.trials {
		if t.Pass > 0 && t.measured() {
			out[t.Config["arm"]]++
		}
	}
	return out
}

// TestConfirmationOfASureGain: a gain far above the noise is confirmed in two rounds, and the launches of a
// third go to the second best, where that may be the better one. One lost launch leaves enough.
func TestConfirmationOfASureGain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		gain     float64
		arms     int
		lost     int // the launch of the confirmation that is lost; 0: none
		launches [3]int
	}{
		{"alone", 2, 1, 0, [3]int{2, 2}},
		{"two alike", 2, 2, 0, [3]int{2, 2, 2}},
		{"two alike, one launch lost", 2, 2, 4, [3]int{2, 2, 2}},
		{"small", 0.05, 1, 0, [3]int{3, 3}},
	} {
		a, err := NewRace(duel{world(1), c.arms}.space(), nil, raceSpace(), up, Budget{Trials: 25}, RaceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_, r := playRace(t, a, losing(c.lost, trialOf{gain: c.gain, noise: 0.002}.evaluate(3)))
		by := confirmedBy(a)
		if got := [3]int{by[""], by["0"], by["1"]}; got != c.launches || r.Verdict.Kind != ShownBetter {
			t.Errorf("%s: launches of baseline and others %v, want %v; %v", c.name, got, c.launches, r.Verdict.Kind)
		}
	}
}

// TestConfirmationStandsIn: where a budget has two rounds of three left, and no launch beside them, one that is lost, whichever
// it is, leaves enough to show the gain of one of the two.
func TestConfirmationStandsIn(t *testing.T) {
	t.Parallel()
	for lost := range 7 { // 0: none
		a, err := NewRace(duel{world(1), 12}.space(), nil, raceSpace(), up, Budget{Trials: 16}, RaceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		asked, r := playRace(t, a, losing(lost, trialOf{gain: 1, noise: 0.002}.evaluate(3)))
		confirming := len(asked) - slices.IndexFunc(asked, func(p Proposal) bool { return p.Pass > 0 })
		arm, got := asked[r.Winner-1].Config["arm"], confirmedBy(a)
		if confirming != 6 || len(got) != 3 || got[arm] < fewest || r.Verdict.Kind != ShownBetter {
			t.Errorf("launch %d of %d lost: %v of arm %q, launched %v", lost, confirming, r.Verdict.Kind, arm, got)
		}
	}
}

// TestConfirmationReplaces: where what led cannot be launched again, the next best is
// confirmed.
func TestConfirmationReplaces(t *testing.T) {
	d := duel{world(1), 3}
	a, err := NewRace(d.space(), nil, raceSpace(), up, Budget{Trials: 25}, RaceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c := trialOf{gain: 0.3, noise: 0.001}
	asked, r := playRace(t, a, func(ctx context.Context, p Proposal) (Observation, error) {
		o, err := c.evaluate(1)(ctx, p)
		switch {
		case p.Config["arm"] == "1" && p.Pass > 0:
			return Observation{Status: Refused, Reason: "out of memory"}, nil
		case p.Config["arm"] == "1":
			o.Figures["w"]["m"] *= 1.5
		}
		return o, err
	})
	if r.Winner == r.Baseline || asked[r.Winner-1].Config["arm"] == "1" || !(r.Interval.Low > 0) {
		t.Errorf("%+v", r.Verdict)
	}
}

// TestConfirmationReconsiders: what led by luck gives way to what is better by all that was launched, as soon as launches of
// the confirmation say so, and the gain of that is shown, also where one of its launches is lost.
func TestConfirmationReconsiders(t *testing.T) {
	for _, c := range []struct {
		arms, budget int
		others       trialOf
		luck, truly  float64 // of the first launch of what leads, and of it
		lost         int     // the launch of what is better that is lost; 0: none
	}{
		{3, 14, trialOf{gain: 0.3, noise: 0.01}, 1.3, 0.9, 0},
		{8, 15, trialOf{gain: 1, noise: 0.003}, 1.7, 0.7, 0},
		{8, 15, trialOf{gain: 1, noise: 0.003}, 1.7, 0.7, 1},
		{8, 15, trialOf{gain: 1, noise: 0.003}, 1.7, 0.7, 2},
	} {
		a, err := NewRace(duel{world(1), c.arms}.space(), nil, raceSpace(), up, Budget{Trials: c.budget}, RaceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		again := map[string]int{}
		asked, r := playRace(t, a, func(ctx context.Context, p Proposal) (Observation, error) {
			o, err := c.others.evaluate(1)(ctx, p)
			arm := p.Config["arm"]
			if p.Pass > 0 {
				if again[arm]++; arm != "" && arm != "1" && again[arm] == c.lost {
					return Observation{Status: Failed, Reason: "no node", Seconds: 10}, nil
				}
			}
			if arm == "1" {
				if o.Figures["w"]["m"] *= c.truly; p.Pass == 0 {
					o.Figures["w"]["m"] *= c.luck
				}
			}
			return o, err
		})
		arm := asked[r.Winner-1].Config["arm"]
		if r.Winner == r.Baseline || arm == "1" || !(r.Interval.Low > 0) || again["1"] == 0 || again["1"] >= again[arm] {
			t.Errorf("%+v: arm %q, launched %v in the confirmation: %+v", c, arm, again, r.Verdict)
		}
	}
}

// sized is a duel in which each arm has a share of memory, which is predicted to count under one workload or under none.
type sized struct {
	duel
	counts string
}

func (s sized) space() SearchSpace {
	out := s.duel.space()
	out.Rules, out.Neighbourhood = s, s
	for i := range out.Candidates {
		out.Candidates[i].Config[memoryParameter] = "0.95"
	}
	return out
}

func (s sized) Removals(c Config) []Change {
	if c[memoryParameter] == "" {
		return nil
	}
	return []Change{{Label: "--memory " + c[memoryParameter], Set: Config{memoryParameter: ""}}}
}

func (s sized) Predict(c Config, workload string) (map[string]float64, bool) {
	v := 100.0
	if c["engine"] == "s" {
		v = 130
	}
	if workload == s.counts && c[memoryParameter] != "" {
		v *= 1.01
	}
	return map[string]float64{"m": v}, true
}

func (s sized) race(t *testing.T, p Predictor) *Race {
	t.Helper()
	a, err := NewRace(s.space(), p, raceSpace(), up, Budget{Trials: 16}, RaceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestConfirmationSparesMemory: what is confirmed does without a share of memory that is predicted to change nothing, and has it
// where it may count or nothing is predicted.
func TestConfirmationSparesMemory(t *testing.T) {
	arms := duel{world(1), 2}
	for _, c := range []struct {
		name      string
		predictor Predictor
		share     string
	}{
		{"predicted to change nothing", sized{arms, ""}, ""},
		{"predicted to count", sized{arms, "w"}, "0.95"},
		{"predicted to count under another workload", sized{arms, "held"}, "0.95"},
		{"not predicted", nil, "0.95"},
	} {
		a := sized{duel: arms}.race(t, c.predictor)
		playUntil(t, a, trialOf{gain: 0.3, noise: 0.002}.evaluate(1), func(p Proposal) bool { return p.Pass > 0 })
		for _, launched := range a.state.trials {
			if launched.Config[memoryParameter] == "" {
				continue
			}
			f := confirmable(a.state.model).entrant(launched, 0)
			if got := f.config[memoryParameter]; got != c.share || f.config["arm"] != launched.Config["arm"] {
				t.Errorf("%s: %s is confirmed as %s with a share of %q, want %q", c.name, launched.name, f.name, got, c.share)
			}
		}
	}
}

// TestConfirmationOfOneServerOnce: of what differs in a share of memory that changes nothing one is confirmed, and what differs from the
// baseline in nothing else is not confirmed as the baseline.
func TestConfirmationOfOneServerOnce(t *testing.T) {
	space := sized{duel: duel{world(1), 2}}
	all := space.space()
	base := raceSpace().Baseline.with(memoryParameter, "0.95")
	all.Candidates = append(all.Candidates, Candidate{Label: "arm 0 as it comes", Config: space.config(0)}, Candidate{Label: "the baseline with memory", Config: base})
	a, err := NewRace(all, space, raceSpace(), up, Budget{Trials: 16}, RaceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	playUntil(t, a, trialOf{gain: 0.3, noise: 0.002}.evaluate(1), func(p Proposal) bool { return p.Pass > 0 })
	line, confirmed, launched := confirmable(a.state.model), map[string]int{}, 0
	for _, st := range line.all {
		f := line.entrant(st.trial, 0)
		confirmed[f.config.key()]++
		if confirmed[f.config.key()] > 1 || a.state.isBase(f.config) {
			t.Errorf("%s is confirmed as %v", st.trial.name, f.config)
		}
	}
	for _, l := range a.state.trials {
		if l.Config["arm"] == "0" || l.Config.key() == base.key() {
			launched++
		}
	}
	if launched != 3 {
		t.Errorf("%d of the three that are to be told apart were launched", launched)
	}
}

// TestConfirmationKeepsMemoryThatIsNeeded: where the engine turns out to refuse to start without a share of memory, what leads
// is confirmed with it.
func TestConfirmationKeepsMemoryThatIsNeeded(t *testing.T) {
	space := sized{duel: duel{world(1), 2}}
	a := space.race(t, space)
	refused := 0
	asked, r := playRace(t, a, func(ctx context.Context, p Proposal) (Observation, error) {
		if p.Config["engine"] == "s" && p.Config[memoryParameter] == "" {
			refused++
			return Observation{Status: Refused, Reason: "out of memory"}, nil
		}
		return trialOf{gain: 0.3, noise: 0.002}.evaluate(1)(ctx, p)
	})
	if got := asked[r.WinnerConfirm-1]; got.Stage != ConfirmStage || got.Config[memoryParameter] == "" || r.Verdict.Kind != ShownBetter || refused == 0 || refused > 2 {
		t.Errorf("%v with %d refusals: %v", got.Config, refused, r.Verdict.Kind)
	}
}

// TestRaceMakesGoodForALostBaseline: with few launches too, one that is lost is not the
// end of the study.
func TestRaceMakesGoodForALostBaseline(t *testing.T) {
	for _, budget := range []int{8, 11, 25} {
		f := world(5)
		f.sd, f.broken = 0.002, map[int]string{1: Failed}
		_, r := playRace(t, race(t, f, up, Budget{Trials: budget}), f.evaluate(5))
		if r.Baseline == 0 || r.Winner == r.Baseline || r.Interval == nil {
			t.Errorf("budget %d: %+v", budget, r.Verdict)
		}
	}
}

// TestRaceKeepsWhatConfirmingNeeds holds the launches that are kept for the confirmation.
func TestRaceKeepsWhatConfirmingNeeds(t *testing.T) {
	for budget, want := range map[int]int{6: 4, 8: 4, 12: 6, 16: 7, 18: 9, 25: 9, 60: 12} {
		if p := race(t, world(1), up, Budget{Trials: budget}).Planned(); p.Reserved != want || p.Launches != budget {
			t.Errorf("%d of %d launches are kept, want %d of %d", p.Reserved, p.Launches, want, budget)
		}
	}
}

// settled is a space of one arm with two settings that it may do without.
func settled(t *testing.T, worth map[string]float64, b Budget) *Race {
	t.Helper()
	f := world(1)
	f.wrong, f.sd = nil, 0.01
	f.truth = func(c Config) float64 {
		v := 100.0
		if c["engine"] == "s" {
			v *= 1.2
		}
		for name, gain := range worth {
			if c[name] != "" {
				v *= 1 + gain
			}
		}
		return v
	}
	a, err := NewRace(narrow{f}.space(), nil, raceSpace(), up, b, RaceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestRaceDropsWhatBringsNothing: of two settings those that bring something stay, those
// that bring nothing go, also where launches are lost.
func TestRaceDropsWhatBringsNothing(t *testing.T) {
	t.Parallel()
	for _, lost := range []float64{0, 0.2} {
		for name, worth := range map[string]map[string]float64{
			"none": {}, "one": {"seqs": 0.1}, "both": {"seqs": 0.1, "batched": 0.1},
		} {
			right, n := 0, 40
			launches := 0
			for seed := range uint64(n) {
				a := settled(t, worth, Budget{Trials: 25})
				f := a.state.search.Rules.(*testSpace)
				asked, r := playRace(t, a, func(ctx context.Context, p Proposal) (Observation, error) {
					if stat.Stream(seed, fmt.Sprint("lost ", p.Trial)).Float64() < lost {
						return Observation{Status: Failed, Reason: "no node"}, nil
					}
					return f.evaluate(seed)(ctx, p)
				})
				checkContest(t, a, r)
				launches += len(asked)
				if r.WinnerConfirm == 0 {
					continue // too much was lost
				}
				got := asked[r.WinnerConfirm-1].Config
				ok := got["engine"] == "s"
				for _, name := range []string{"seqs", "batched"} {
					ok = ok && (got[name] != "") == (worth[name] > 0)
				}
				if ok {
					right++
				}
				for _, b := range r.Evidence.Ablation {
					if k := b.Finding.Kind; k == NeededEnded || k == TogetherEnded {
						t.Fatalf("seed %d: a lost launch is called a need: %+v", seed, b)
					}
				}
			}
			t.Logf("%s brings something, %.0f %% lost: %d of %d right, %.1f launches", name, 100*lost, right, n, float64(launches)/float64(n))
			if right < n*8/10 {
				t.Errorf("%s brings something, %.0f %% lost: %d of %d right", name, 100*lost, right, n)
			}
		}
	}
}

// TestRaceNeedsWhatIsRefusedWithout: a refusal without a setting is a need, and is not
// launched again and again.
func TestRaceNeedsWhatIsRefusedWithout(t *testing.T) {
	a := settled(t, nil, Budget{Trials: 25})
	f := a.state.search.Rules.(*testSpace)
	refused := 0
	asked, r := playRace(t, a, func(ctx context.Context, p Proposal) (Observation, error) {
		if p.Config["engine"] == "s" && p.Config["seqs"] == "" {
			refused++
			return Observation{Status: Refused, Reason: "out of memory"}, nil
		}
		return f.evaluate(3)(ctx, p)
	})
	got := asked[r.WinnerConfirm-1].Config
	if got["seqs"] == "" || got["batched"] != "" || refused > 2 {
		t.Errorf("%v with %d refusals: %+v", got, refused, r.Evidence.Ablation)
	}
	for _, b := range r.Evidence.Ablation {
		if strings.Contains(b.Setting, "seqs") && b.Finding.Kind != NeededEnded {
			t.Errorf("%+v: %+v", b, b.Finding)
		}
	}
}

// TestRaceSaysWhatWasNotTested: settings that the budget does not reach stay, since the
// command was launched with them, and are told to be untested.
func TestRaceSaysWhatWasNotTested(t *testing.T) {
	a := settled(t, map[string]float64{"seqs": 0.1}, Budget{Trials: 6})
	f := a.state.search.Rules.(*testSpace)
	asked, r := playRace(t, a, f.evaluate(3))
	if len(asked) != 6 || r.Verdict.Kind != ShownBetter || len(r.Evidence.Ablation) != 2 {
		t.Fatalf("%d launches: %+v, %+v", len(asked), r.Verdict, r.Evidence.Ablation)
	}
	for _, b := range r.Evidence.Ablation {
		if b.Dropped || b.Finding.Kind != NotTried || b.Gain != nil || b.Trial != 0 {
			t.Errorf("%+v: %+v", b, b.Finding)
		}
	}
}

// TestRaceRunsHoldOutsOnThePair: the further workloads are run by the launches of
// what may be recommended and the baseline, and by no first launch of a reduced command.
func TestRaceRunsHoldOutsOnThePair(t *testing.T) {
	for seed := range uint64(30) {
		f := world(seed)
		asked, r := playRace(t, race(t, f, up, Budget{Trials: 25}), f.evaluate(seed))
		ran, again := 0, map[string]bool{}
		with := map[string]int{}
		for _, p := range asked {
			held := slices.Contains(p.Workloads, "held")
			if held {
				ran++
				with[p.Config.key()]++
			}
			if p.Stage == CheckStage && held && !again[p.Config.key()] {
				t.Errorf("seed %d: the first launch of %s runs the hold-outs", seed, p.Label)
			}
			if p.Pass > 0 {
				again[p.Config.key()] = true
			}
			if held && p.Pass == 0 {
				t.Errorf("seed %d: trial %d of the search runs the hold-outs", seed, p.Trial)
			}
		}
		if ran != r.Evidence.HeldOut {
			t.Errorf("seed %d: %d launches ran hold-outs, %d are told", seed, ran, r.Evidence.HeldOut)
		}
		if r.Winner == r.Baseline {
			continue
		}
		pick := asked[r.WinnerConfirm-1].Config
		if len(asked) >= 24 {
			continue // nothing was left for them
		}
		if h := r.Evidence.HoldOuts; len(h) != 1 || h[0].Verdict == Unknown || with[pick.key()] < fewest || with[raceSpace().Baseline.key()] < fewest {
			t.Errorf("seed %d: %d and %d launches: %+v", seed, with[pick.key()], with[raceSpace().Baseline.key()], h)
		}
	}
}

// TestRaceConfirmsASecondWhereItMayBeBetter: two that are alike are both launched again
// at first, one that is far behind is not.
func TestRaceConfirmsASecondWhereItMayBeBetter(t *testing.T) {
	for name, second := range map[string]float64{"alike": 1, "behind": 0.7} {
		d := duel{world(1), 2}
		a, err := NewRace(d.space(), nil, raceSpace(), up, Budget{Trials: 25}, RaceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		c := trialOf{gain: 0.3, noise: 0.001}
		asked, _ := playRace(t, a, func(ctx context.Context, p Proposal) (Observation, error) {
			o, err := c.evaluate(4)(ctx, p)
			if p.Config["arm"] == "1" {
				o.Figures["w"]["m"] *= second
			}
			return o, err
		})
		again := map[string]int{}
		for _, p := range asked {
			if p.Pass > 0 {
				again[p.Config["arm"]]++
			}
		}
		if want := map[string]bool{"alike": true}[name]; (again["0"] > 0 && again["1"] > 0) != want {
			t.Errorf("%s: launched again %v", name, maps.Clone(again))
		}
	}
}

// TestLastLaunches: where launches of the confirmation are lost, the last ones that the budget has go to what has fewer than
// two figures there: its gain is not given up for another launch of the baseline, not even where the same round is lost twice.
func TestLastLaunches(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]struct{ base, other []int }{
		"one of each":                    {[]int{1}, []int{2}},
		"two of what is to be confirmed": {nil, []int{2, 3}},
	} {
		short := 0
		for seed := range uint64(12) {
			f := world(seed)
			f.sd = 0.005
			r := race(t, f, up, Budget{Trials: 25})
			evaluate := f.evaluate(seed)
			launched := map[string]int{}
			playRace(t, r, func(ctx context.Context, p Proposal) (Observation, error) {
				k, of := p.Config.key(), lost.other
				if k == raceSpace().Baseline.key() {
					of = lost.base
				}
				if p.Stage == ConfirmStage {
					launched[k]++
				}
				if p.Stage == ConfirmStage && slices.Contains(of, launched[k]) {
					return Observation{Status: Void, Seconds: 60}, nil
				}
				return evaluate(ctx, p)
			})
			k := r.state.confirmation
			if k == nil || len(k.finalists) != 2 || len(k.finalists[1].rounds)+len(k.finalists[0].rounds) != 3 {
				continue // it had launches for more
			}
			short++
			if n := len(k.finalists[1].rounds); n != fewest || k.winner == nil {
				t.Errorf("%s lost, seed %d: %d launches of %s and %d of the baseline, and the winner is %v", name, seed, n, k.finalists[1].name, len(k.finalists[0].rounds), k.winner)
			}
		}
		if short == 0 {
			t.Errorf("%s lost: no confirmation was short of launches", name)
		}
	}
}
