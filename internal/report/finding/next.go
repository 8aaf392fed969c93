package finding

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"perflab/internal/outcome"
	"perflab/internal/stat"
	"perflab/internal/tune"
)

// Next says what a reader of a study does best now, a sentence or two each, the most important first. dir is
// the study's directory; "" says only that the script of it is there.
func Next(s outcome.Study, dir string) []string {
	if s.Partial {
		return []string{"Let the study come to its end: start perflab tune again with --resume, which keeps what was measured."}
	}
	all := append([]string{onHardware(s)}, moreLaunches(s)...)
	all = append(all, testAnswers(s), serve(s, dir))
	return slices.DeleteFunc(all, func(text string) bool { return text == "" })
}

// onHardware asks for a runtime that measures.
func onHardware(s outcome.Study) string {
	if !s.Simulated && !s.Predicted {
		return ""
	}
	return "Measure it on the hardware: these figures are SIMULATED. Set runtime.kind in the study file to process, docker, ssh, kubernetes or existing (docs/runtimes.md) and run perflab tune again."
}

const (
	// mostConfirming is how often a race launches a configuration in its confirmation.
	mostConfirming = 12
	// leastBudget is that with which a race launches what it compares repeatedly.
	leastBudget = 8
)

// moreLaunches says how many launches would tell what these did not.
func moreLaunches(s outcome.Study) []string {
	switch {
	case s.Forecast != nil || s.Predicted:
		return nil // nothing was launched
	case s.Race == nil && s.Strategy != "survey" && s.Recommended != nil:
		return []string{fmt.Sprintf("Repeat the launches: single ones cannot say how sure this gain is. Use strategy: race with a budget of at least %d launches (budget.trials).", leastBudget)}
	case s.Race == nil:
		return nil
	}
	var out []string
	if text := voided(s); text != "" {
		out = append(out, text)
	}
	for _, c := range slices.Concat(s.Race.Comparisons, s.Race.HoldOuts) {
		if c.Verdict == tune.TooSmall && ofBaseline(s, c) {
			out = append(out, tooSmall(s, c))
		}
	}
	return append(out, launchNamed(s.Race.Unlaunched)...)
}

// launchNamed is what to do about what the study names and the budget had no launch for. How much
// time is enough is not known: launches take as long as they take.
func launchNamed(entries []tune.Entry) []string {
	i := slices.IndexFunc(entries, func(e tune.Entry) bool { return e.Finding != nil && e.Finding.Kind == tune.NoLaunchLeft })
	switch {
	case i < 0:
		return nil
	case entries[i].Finding.Of > 0:
		return []string{"Launch what the study names and had no launch: the line about it above says which budget has one for all."}
	}
	return []string{"Launch what the study names and had no launch: give the study a larger budget, or name less."}
}

// ofBaseline reports whether a comparison is of what a reader would take in place of the baseline.
func ofBaseline(s outcome.Study, c tune.Comparison) bool {
	return c.Against == tune.TheBaseline || s.Baseline != nil && c.Against == s.Baseline.Label
}

func primary(s outcome.Study) string {
	for _, w := range s.Workloads {
		if w.Primary {
			return w.Name
		}
	}
	return ""
}

// tooSmall is how many launches would show an effect of the size seen. All of the study's tell of the noise under its
// primary workload; under a further one, which may be noisier, those of the comparison alone.
func tooSmall(s outcome.Study, c tune.Comparison) string {
	noise, on := s.Race.Noise.Between, ""
	switch {
	case c.Workload != primary(s):
		noise, on = c.Noise, " on "+c.Workload
	case s.Race.Noise.Launches == 0:
		noise = 0 // a guess
	}
	had := min(len(c.Trials), len(c.Others))
	seen := math.Abs(math.Log(c.Ratio.Value))
	size := Ratio(tune.Span{Value: c.Ratio.Value}, s.Objective.Better == "higher")
	switch {
	case noise <= 0 || had < 2:
		return fmt.Sprintf("Launch %s and the baseline more often%s: the noise between launches is not known, so how many would tell cannot be said. Start with a budget of %d (budget.trials).", c.Label, on, max(2*leastBudget, len(s.Trials)+2))
	case seen == 0:
		return ""
	}
	n := max(launchesFor(noise, seen, max(1, c.Family), had), had+1)
	if n > mostConfirming {
		return fmt.Sprintf("An effect of %s%s, the size seen, would take %d launches of %s and as many of the baseline at the noise of %s that was measured between launches: a longer load, or a machine that does nothing else, makes that fewer.", size, on, n, c.Label, percent(noise))
	}
	return fmt.Sprintf("Launch more often: %d launches each of %s and the baseline show an effect of %s%s, the size seen, 4 times in 5 at the noise of %s that was measured between launches. Set race.rounds to %d and budget.trials to %d, so that the search has as many launches as it had.",
		n, c.Label, size, on, percent(noise), n, len(s.Trials)+2*(n-had))
}

// launchesFor is how many launches of each side show an effect, of one that is looked at from the
// least number on after every round.
func launchesFor(noise, effect float64, family, least int) int {
	level := 1 - (1-tune.Confidence)/float64(family)
	n := stat.LaunchesFor(noise, effect, level, tune.Power)
	if n > mostConfirming {
		return n
	}
	return stat.LaunchesFor(noise, effect, stat.SequentialConfidence(min(least, n), n, n, level), tune.Power)
}

func percent(share float64) string { return fmt.Sprintf("%.2g %%", 100*share) }

// voided says that trials could not be believed, which more launches mend only where the reason is gone.
func voided(s outcome.Study) string {
	n, first := 0, 0
	for _, t := range s.Trials {
		if t.Status == tune.Void {
			if n++; n == 1 {
				first = t.ID
			}
		}
	}
	if n == 0 || 4*n < len(s.Trials) {
		return ""
	}
	return fmt.Sprintf("Look at why %d of %d launches could not be believed (#%d first), mend it, and run the study again.", n, len(s.Trials), first)
}

// Parameters that may change a model's answers.
var numerics = []string{"model", "quantization", "kv_cache_dtype", "speculative"}

// testAnswers asks for a test of answers that were not compared.
func testAnswers(s outcome.Study) string {
	if s.Recommended == nil || s.Baseline == nil || s.Race != nil && len(s.Race.Accuracy) > 0 {
		return ""
	}
	to, from := configOf(s, s.Recommended.Trial), configOf(s, s.Baseline.Trial)
	var changed []string
	for _, k := range numerics {
		if to[k] != from[k] {
			changed = append(changed, k+"="+cmp.Or(to[k], "none"))
		}
	}
	if len(changed) == 0 || s.Strategy == "survey" {
		return ""
	}
	return fmt.Sprintf("Test the answers: %s may change them, and nobody compared them. Add accuracy: {questions: FILE} and the bound accuracy >= baseline - 2pt to the study file (docs/tuning.md, Accuracy guard).", strings.Join(changed, ", "))
}

func configOf(s outcome.Study, trial int) map[string]string {
	for _, t := range s.Trials {
		if t.ID == trial {
			return t.Config
		}
	}
	return nil
}

// serve says how to start what is recommended; nothing where the baseline stays.
func serve(s outcome.Study, dir string) string {
	r := s.Recommended
	switch {
	case r == nil || s.Strategy == "survey" || s.Baseline != nil && r.Trial == s.Baseline.Trial:
		return ""
	case s.Conclusion != nil && len(s.Conclusion.Misses) > 0:
		return "" // it is not recommended
	case outcome.Manifests(r.Script):
		return fmt.Sprintf("Serve it: kubectl apply -f %s starts it.", scriptPath(dir, r.Script))
	case r.Script != "" && len(r.Processes) > 1:
		script := scriptPath(dir, r.Script)
		return fmt.Sprintf("Serve it: bash %s starts all %d processes and waits until they answer.", script, len(r.Processes))
	}
	return "Serve it: the command above starts it."
}

// scriptPath is where a trial's script is, of a study in a directory.
func scriptPath(dir, script string) string {
	if dir == "" {
		return script + " in the study directory"
	}
	return path.Join(dir, script)
}
