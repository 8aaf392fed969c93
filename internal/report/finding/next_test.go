package finding

import (
	"strings"
	"testing"

	"perflab/internal/outcome"
	"perflab/internal/tune"
	"perflab/internal/tune/answers"
)

// raceOf is a finished race with one comparison of a candidate with the baseline.
func raceOf(c tune.Comparison, noise tune.Noise) outcome.Study {
	c.Label, c.Against, c.Workload, c.Trials, c.Others, c.Family = "FP8", tune.TheBaseline, "chat", []int{5, 7}, []int{6, 8}, 1
	return outcome.Study{
		Strategy: "race", Objective: outcome.Objective{Better: "higher"}, Workloads: []outcome.Load{{Name: "chat", Primary: true}},
		Race:     &outcome.Race{Noise: noise, Comparisons: []tune.Comparison{c}},
		Baseline: &outcome.Pick{Trial: 6, Label: "vLLM"}, Recommended: &outcome.Pick{Trial: 6, Label: "vLLM"},
		Trials: []outcome.Trial{{ID: 5, Status: tune.Measured, Config: map[string]string{"model": "m-FP8"}}, {ID: 6, Status: tune.Measured, Config: map[string]string{"model": "m"}}},
	}
}

func TestNext(t *testing.T) {
	tooSmall := tune.Comparison{Verdict: tune.TooSmall, Ratio: tune.Span{Value: 1.03, Low: 0.99, High: 1.07}}
	noise := tune.Noise{Between: 0.012, Launches: 4}
	shown := raceOf(tune.Comparison{Verdict: tune.Better, Ratio: tune.Span{Value: 1.3}}, noise)
	shown.Recommended = &outcome.Pick{Trial: 5, Label: "FP8"}
	tested := shown
	tested.Race = &outcome.Race{Accuracy: []answers.Test{{Label: "FP8"}}}
	tested.Recommended = &outcome.Pick{Trial: 5, Script: "trials/005/start.sh", Processes: make([]outcome.Process, 2)}
	misses := tested
	misses.Conclusion = &tune.Finding{Misses: []tune.Constraint{{}}}
	simulated := raceOf(tune.Comparison{Verdict: tune.NoDifference}, noise)
	simulated.Simulated = true
	unlaunched := raceOf(tune.Comparison{Verdict: tune.NoDifference}, noise)
	unlaunched.Race.Unlaunched = []tune.Entry{{Label: "TP2", Finding: &tune.Finding{Kind: tune.NoLaunchLeft, N: 12, Of: 14}}}
	noTime := raceOf(tune.Comparison{Verdict: tune.NoDifference}, noise)
	noTime.Race.Unlaunched = []tune.Entry{{Label: "TP2", Finding: &tune.Finding{Kind: tune.NoLaunchLeft, Seconds: 270}}}
	void := raceOf(tune.Comparison{Verdict: tune.NoDifference}, noise)
	void.Trials[0].Status = tune.Void
	heldOut := raceOf(tune.Comparison{Verdict: tune.NoDifference}, noise)
	loss := tooSmall
	loss.Label, loss.Against, loss.Workload, loss.Trials, loss.Others, loss.Ratio.Value, loss.Noise = "FP8", "vLLM", "long", []int{1, 2}, []int{3, 4}, 0.9, 0.04
	heldOut.Race.HoldOuts = []tune.Comparison{loss}
	older := raceOf(tune.Comparison{Verdict: tune.NoDifference}, noise)
	loss.Noise = 0
	older.Race.HoldOuts = []tune.Comparison{loss}
	for _, tt := range []struct {
		name  string
		study outcome.Study
		want  []string // the beginning and the end of each, parted by " ... "
	}{
		{"partial", outcome.Study{Partial: true, Simulated: true}, []string{"Let the study come to its end: ... keeps what was measured."}},
		{"no gain that matters", raceOf(tune.Comparison{Verdict: tune.NoDifference}, noise), nil},
		{"simulated", simulated, []string{"Measure it on the hardware: these figures are SIMULATED. ... run perflab tune again."}},
		{"too few launches", raceOf(tooSmall, noise), []string{"Launch more often: 5 launches each of FP8 and the baseline show an effect of +3.0 %, the size seen, ... noise of 1.2 % that was measured between launches. Set race.rounds to 5 and budget.trials to 8, so that the search has as many launches as it had."}},
		{"as many as should do", raceOf(tune.Comparison{Verdict: tune.TooSmall, Ratio: tune.Span{Value: 1.3}}, noise), []string{"Launch more often: 3 launches each of FP8 ... Set race.rounds to 3 and budget.trials to 4, "}},
		{"far too few", raceOf(tooSmall, tune.Noise{Between: 0.05, Launches: 4}), []string{"An effect of +3.0 %, the size seen, would take 46 launches ... makes that fewer."}},
		{"noise not known", raceOf(tooSmall, tune.Noise{}), []string{"Launch FP8 and the baseline more often: ... budget of 16 (budget.trials)."}},
		{"on a further workload, which is noisier", heldOut, []string{"Launch more often: ... an effect of -10.0 % on long, the size seen, ... noise of 4 % ... Set race.rounds to 4 and budget.trials to 6, "}},
		{"on a further workload, in an older study", older, []string{"Launch FP8 and the baseline more often on long: ... budget of 16 (budget.trials)."}},
		{"shown", shown, []string{"Test the answers: model=m-FP8 may change them ... Accuracy guard).", "Serve it: the command above ... starts it."}},
		{"shown, and tested", tested, []string{"Serve it: bash out/trials/005/start.sh starts all 2 processes ... answer."}},
		{"misses a bound", misses, nil},
		{"without a launch for all", unlaunched, []string{"Launch what the study names ... which budget has one for all."}},
		{"without the time for all", noTime, []string{"Launch what the study names ... give the study a larger budget, or name less."}},
		{"void launches", void, []string{"Look at why 1 of 2 launches could not be believed (#5 first), ... again."}},
		{"staged", outcome.Study{Strategy: "staged", Recommended: &outcome.Pick{Trial: 1}, Baseline: &outcome.Pick{Trial: 1}}, []string{"Repeat the launches: ... 8 launches (budget.trials)."}},
		{"survey", outcome.Study{Strategy: "survey", Recommended: &outcome.Pick{Trial: 1}}, nil},
	} {
		got := Next(tt.study, "out")
		if len(got) != len(tt.want) {
			t.Errorf("%s: %q", tt.name, got)
			continue
		}
		for i, want := range tt.want {
			begin, end, _ := strings.Cut(want, " ... ")
			for part := range strings.SplitSeq(end, " ... ") {
				if !strings.HasPrefix(got[i], begin) || !strings.Contains(got[i], part) {
					t.Errorf("%s: %q, want %q", tt.name, got[i], want)
				}
			}
		}
	}
}

// TestLaunchesFor: more noise, a smaller effect or more comparisons take more launches.
func TestLaunchesFor(t *testing.T) {
	for _, tt := range []struct {
		noise, effect float64
		family        int
	}{{0.02, 0.03, 1}, {0.012, 0.015, 1}, {0.012, 0.03, 3}} {
		if a, b := launchesFor(0.012, 0.03, 1, 2), launchesFor(tt.noise, tt.effect, tt.family, 2); b <= a {
			t.Errorf("%+v take %d launches, and less %d", tt, b, a)
		}
	}
}
