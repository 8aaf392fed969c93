package tune

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/stat"
	"perflab/internal/tune/answers"
)

// shaken is an evaluation whose figures are multiplied by noise of each launch.
func shaken(f *testSpace, seed uint64, figure string, sd func(Config) float64) evaluator {
	return func(ctx context.Context, p Proposal) (Observation, error) {
		end, err := f.evaluate(seed)(ctx, p)
		r := stat.Stream(seed, fmt.Sprint("shaken ", p.Trial))
		for _, w := range p.Workloads {
			if figures := end.Figures[w]; figures != nil {
				figures[figure] *= math.Exp(sd(p.Config) * r.NormFloat64())
			}
		}
		return end, err
	}
}

// TestRaceOfEqualsUnequallyNoisy holds the rate of false winners where one
// configuration, or one engine, is three times as noisy as the others: the spread
// of a comparison is one for all, and a search loves what is noisy.
func TestRaceOfEqualsUnequallyNoisy(t *testing.T) {
	t.Parallel()
	for name, noisy := range map[string]func(Config) bool{
		"an engine":    func(c Config) bool { return c["engine"] == "s" },
		"the baseline": func(c Config) bool { return maps.Equal(c, raceSpace().Baseline) },
		"a step":       func(c Config) bool { return c["batched"] != "" },
	} {
		wrong, n := 0, 40
		for seed := range uint64(n) {
			f := world(seed)
			f.equal, f.sd = true, 0
			sd := func(c Config) float64 {
				if noisy(c) {
					return 0.045
				}
				return 0.015
			}
			if _, r := playRace(t, race(t, f, up, Budget{Trials: 25}), shaken(f, seed, "m", sd)); *r.Gain != 0 {
				wrong++
			}
		}
		t.Logf("%s: %d of %d races of equals have a winner", name, wrong, n)
		if share := float64(wrong) / float64(n); share > 0.04+scatter(0.04, n) { // about 3 % where the candidate alone is noisy: docs/tuning.md
			t.Errorf("%s: %.3f of races of equals have a winner", name, share)
		}
	}
}

// TestRaceOfEqualsAtALimit holds the same where all scatter about a limit, and where
// all miss one: that one mean lies on the better side is no evidence.
func TestRaceOfEqualsAtALimit(t *testing.T) {
	t.Parallel()
	for _, limit := range []float64{100, 50} {
		wrong, n := 0, 40
		for seed := range uint64(n) {
			f := world(seed)
			f.equal, f.sd = true, 0.02
			o := up
			o.SLOs = []Bound{{Metric: "ttft", Op: "<=", Limit: limit}}
			_, r := playRace(t, race(t, f, o, Budget{Trials: 25}), shaken(f, seed, "ttft", func(Config) float64 { return 0.05 }))
			if r.Winner != r.Baseline {
				wrong++
			}
		}
		t.Logf("limit %v: %d of %d races of equals have a winner", limit, wrong, n)
		if share := float64(wrong) / float64(n); share > 0.04+scatter(0.04, n) { // of 500 each 11 and 18
			t.Errorf("limit %v: %.3f of races of equals have a winner", limit, share)
		}
	}
}

// TestRaceMeetsWhatTheBaselineMisses checks that what is shown to meet a bound goes
// before a baseline that misses it, at a loss too, with the launches that met it.
func TestRaceMeetsWhatTheBaselineMisses(t *testing.T) {
	f := world(5)
	f.equal, f.sd = true, 0.01
	o := up
	o.SLOs = []Bound{{Metric: "ttft", Op: "<=", Limit: 80}}
	asked, r := playRace(t, race(t, f, o, Budget{Trials: 25}), func(ctx context.Context, p Proposal) (Observation, error) {
		end, err := f.evaluate(5)(ctx, p)
		if figures := end.Figures["w"]; p.Config["model"] == "fp8" {
			figures["ttft"], figures["m"] = 70, figures["m"]*0.9
		}
		return end, err
	})
	if asked[r.Winner-1].Config["model"] != "fp8" || len(r.Misses) > 0 || r.Interval == nil || r.Interval.High > 0 {
		t.Errorf("%+v: %v, %+v", r.Verdict, r.Misses, r.Interval)
	}
	bound := BoundPair{Bound: Constraint{Bound: "ttft <= 80", Mean: new(70.0), Held: true, Met: 3, Launches: 3}, Other: Constraint{Bound: "ttft <= 80", Mean: new(100.0), Launches: 2}}
	if v := r.Verdict; v.Kind != BetterByBound || !cmp.Equal(v.Bound, &bound) || v.Comparison == nil || v.Comparison.Ratio.Value >= 1 {
		t.Errorf("%+v", r.Verdict)
	}
	if k := r.Evidence.Constraints; len(k) != 1 || !k[0].Held || k[0].Met != 3 {
		t.Errorf("constraints %+v", k)
	}
}

// TestRaceTellsOfAWaveringBound checks that a bound met on average alone is told.
func TestRaceTellsOfAWaveringBound(t *testing.T) {
	f := world(5)
	f.sd = 0.002
	o := up
	o.SLOs = []Bound{{Metric: "ttft", Op: "<=", Limit: 102}}
	_, r := playRace(t, race(t, f, o, Budget{Trials: 25}), func(ctx context.Context, p Proposal) (Observation, error) {
		end, err := f.evaluate(5)(ctx, p)
		if figures := end.Figures["w"]; p.Pass == 2 && figures != nil {
			figures["ttft"] = 103
		}
		return end, err
	})
	if r.Winner == r.Baseline || len(r.Misses) > 0 || !cmp.Equal(r.Verdict.Unsteady, []Constraint{{Bound: "ttft <= 102", Mean: new(100.75), Held: true, Met: 3, Launches: 4}}) {
		t.Errorf("%+v", r.Verdict)
	}
}

// TestRaceWithoutABaseline checks that no gain is claimed over a baseline that could
// not be launched again, and that a limit of its figure is met by nothing.
func TestRaceWithoutABaseline(t *testing.T) {
	f := world(5)
	base := func(p Proposal) bool { return maps.Equal(p.Config, raceSpace().Baseline) }
	play := func(o Objective, breaks func(Proposal) bool) Result {
		_, r := playRace(t, race(t, f, o, Budget{Trials: 25}), func(ctx context.Context, p Proposal) (Observation, error) {
			if base(p) && breaks(p) {
				return Observation{Status: Failed, Reason: "no node"}, nil
			}
			return f.evaluate(5)(ctx, p)
		})
		return r
	}
	r := play(up, func(p Proposal) bool { return p.Pass > 0 })
	if r.Winner != r.Baseline || r.Verdict.Kind != BaselineLost || !cmp.Equal(r.Verdict.Cause, &Finding{Kind: TrialEnded, Status: Failed, Reason: "no node"}) {
		t.Errorf("%+v", r.Verdict)
	}
	if r = play(up, func(p Proposal) bool { return p.Pass > 1 }); r.Winner != r.Baseline && !(r.Interval.Low > 0) {
		t.Errorf("one launch of the baseline: %+v", r.Verdict)
	}
	o := up
	o.SLOs = []Bound{{Metric: "ttft", Op: "<=", Limit: 1.1, Of: Times}}
	r = play(o, func(Proposal) bool { return true })
	if r.Baseline != 0 || len(r.Misses) != 1 || r.Misses[0].Bound != "ttft <= a limit of the baseline, which has no such figure" {
		t.Errorf("%+v: %+v", r.Verdict, r.Misses)
	}
	if (Bound{Metric: "ttft", Op: "<=", Limit: math.NaN()}).Holds(map[string]float64{"ttft": 1}) || o.resolve(nil).Score(Measured, map[string]float64{"m": 1, "ttft": 1}).class != missing {
		t.Error("a limit that there is none of is met")
	}
}

// TestRaceHoldOutWithoutAFigure checks that a hold-out that cannot be compared is told.
func TestRaceHoldOutWithoutAFigure(t *testing.T) {
	f := world(5)
	f.sd = 0.002
	o := up
	o.SLOs = []Bound{{Metric: "ttft", Op: "<=", Limit: 150}}
	for name, spoil := range map[string]func(map[string]float64){
		Unknown: func(figures map[string]float64) { delete(figures, "m") },
		Missed:  func(figures map[string]float64) { figures["ttft"] = 200 },
	} {
		_, r := playRace(t, race(t, f, o, Budget{Trials: 25}), func(ctx context.Context, p Proposal) (Observation, error) {
			end, err := f.evaluate(5)(ctx, p)
			if figures := end.Figures["held"]; figures != nil && !maps.Equal(p.Config, raceSpace().Baseline) {
				spoil(figures)
			}
			return end, err
		})
		if h := r.Evidence.HoldOuts; len(h) != 1 || h[0].Verdict != name || (h[0].Reason == "") == (name == Unknown) {
			t.Errorf("%s: %+v: %+v", name, h, r.Verdict)
		}
	}
}

// narrow is a field of one arm beside the baseline.
type narrow struct{ *testSpace }

func (narrow) Candidates() []Candidate {
	c := raceSpace().Baseline
	return []Candidate{{Label: "baseline", Config: c}, {Label: "set", Config: Change{Set: Config{"engine": "s", "batched": "4096", "seqs": "256"}}.Apply(c)}}
}
func (n narrow) space() SearchSpace {
	s := n.testSpace.space()
	s.Candidates, s.Domain, s.Neighbourhood = n.Candidates(), nil, n
	return s
}
func (narrow) Steps(Config) []Change { return nil }

// TestRaceChecksByFreshLaunches holds how often what equals the baseline is called
// better with ablation and check in play: of two settings one brings all of the gain,
// so small that the ablation drops it now and then. The launch by which it did is
// none of those that tell of what is left.
func TestRaceChecksByFreshLaunches(t *testing.T) {
	t.Parallel()
	won, reduced, wrong, n := 0, 0, 0, 360
	for seed := range uint64(n) {
		f := world(seed)
		f.wrong, f.sd = nil, 0.02
		f.truth = func(c Config) float64 {
			if c["batched"] == "4096" {
				return 104
			}
			return 100
		}
		a, err := NewRace(narrow{f}.space(), nil, raceSpace(), up, Budget{Trials: 20}, RaceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		asked, r := playRace(t, a, f.evaluate(seed))
		checkContest(t, a, r)
		if r.Winner == r.Baseline {
			continue
		}
		won++
		if k := a.state.confirmation; slices.Contains(k.reduced, k.pick) {
			reduced++
		}
		if f.value(asked[r.WinnerConfirm-1].Config) == 100 {
			wrong++
		}
	}
	t.Logf("%d races, %d winners, %d of them reduced, %d of these no better than the baseline", n, won, reduced, wrong)
	if share := float64(wrong) / float64(n); share > 0.05 || reduced < 20 {
		t.Errorf("%d reduced, %.3f called better that is not", reduced, share)
	}
}

// checkContest checks that what is said agrees with itself, and rests on launches
// that nothing was chosen by.
func checkContest(t *testing.T, a *Race, r Result) {
	t.Helper()
	for _, d := range slices.Concat(r.Evidence.Comparisons, r.Evidence.HoldOuts) {
		shown := d.Ratio.Low > 1 || d.Ratio.High < 1
		if d.Verdict != Unknown && shown != (d.P < 0.05) || (d.Verdict == Better || d.Verdict == Worse) && !shown {
			t.Fatalf("p and interval disagree: %+v", d)
		}
		for _, id := range slices.Concat(d.Trials, d.Others) {
			if tr := a.state.trials[id-1]; tr.Pass == 0 || tr.Stage == AblateStage {
				t.Fatalf("a launch that something was chosen by: %+v in %+v", tr.Proposal, d)
			}
		}
	}
	if r.Verdict.Kind == ShownBetter && !(r.Interval.Low > 0) {
		t.Fatalf("%+v: %+v", r.Verdict, r.Interval)
	}
	if k := a.state.confirmation; k != nil && k.pick != nil && len(k.pick.rounds) < fewest {
		t.Fatalf("recommended by %d launches", len(k.pick.rounds))
	}
}

// TestRaceAsksOnce checks that each numerics is asked once after the search, and that
// what is recommended has a verdict of the guard under its own name.
func TestRaceAsksOnce(t *testing.T) {
	f := world(5)
	o := up
	o.Guard = &answers.Guard{Margin: 0.02}
	f.wrong = nil
	f.truth = func(c Config) float64 {
		return 100 + 50*float64(strings.Count(c["model"], "fp8")) + 5*float64(len(c["seqs"]))
	}
	a := race(t, f, o, Budget{Trials: 25})
	asked, r := playRace(t, a, func(ctx context.Context, p Proposal) (Observation, error) {
		end, err := f.evaluate(5)(ctx, p)
		if p.Questions {
			end.Answers = strings.Repeat("1", 300)
		}
		return end, err
	})
	fresh := map[string]int{}
	for _, p := range asked {
		if p.Pass > 0 && p.Questions {
			fresh[f.Numerics(p.Config)]++
		}
	}
	if len(fresh) != 1 || fresh["fp8"] != 1 {
		t.Errorf("asked after the search: %v", fresh)
	}
	name := conclusion{a.state}.recommended().name
	if !slices.ContainsFunc(r.Evidence.Accuracy, func(p answers.Test) bool { return p.Label == name && p.Accepted }) {
		t.Errorf("no verdict on %s: %+v", name, r.Evidence.Accuracy)
	}
}
