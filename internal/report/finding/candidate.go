package finding

import (
	"fmt"
	"math"
	"strings"
	"time"

	"perflab/internal/outcome"
	"perflab/internal/tune"
)

// What became of candidates, of settings and of the search.

// note is what is wrong with a trial: why it has no figure, which SLOs it misses, or
// why it was not made; "" for nothing.
func (w wording) note(f *tune.Finding) string {
	if f == nil {
		return ""
	}
	switch f.Kind {
	case tune.TrialEnded:
		return strings.TrimRight(f.Status+": "+f.Reason, ": .") // the sentence goes on
	case tune.NoFigure:
		return "without " + w.metric + " on " + f.Workload
	case tune.MissesBounds:
		return strings.Join(missed(f.Misses), "; ")
	case tune.OtherAnswers:
		return "its answers are not those of the baseline, see the accuracy guard"
	case tune.NoTrialsLeft:
		return fmt.Sprintf("not measured: the budget of %d trials is used up, %d of them are kept for the confirmation", f.N, f.Of)
	case tune.NoTimeLeft:
		return fmt.Sprintf("not measured: the budget of %v is used up, time for the confirmation is kept", time.Duration(math.Round(f.Seconds*1e9)))
	}
	return string(f.Kind)
}

// obstacle is what keeps a configuration from being recommended.
func (w wording) obstacle(f *tune.Finding) string {
	if f.Kind == tune.OtherAnswers {
		return "does not answer as the baseline does, see the accuracy guard"
	}
	return "misses a constraint: " + w.note(f)
}

// candidate is what became of a candidate of a race.
func (w wording) candidate(f *tune.Finding) string {
	if f == nil {
		return ""
	}
	switch f.Kind {
	case tune.RefusedByRule:
		return f.Reason
	case tune.MissesSurely:
		return "misses a constraint by more than the noise: " + w.note(f.Cause)
	case tune.ShownWorse:
		return fmt.Sprintf("shown to be worse than %s: at most %.1f %% of it", f.Against, 100**f.Value)
	case tune.OtherAnswers:
		return "its answers are not those of the baseline"
	case tune.NumericsFailed:
		return "its numerics were rejected by the accuracy guard"
	case tune.PrunedUnseen:
		return fmt.Sprintf("predicted at %.1f %% of the baseline, more than %d times worse than the best", 100**f.Value, f.N)
	case tune.NoLaunchLeft:
		return noLaunchLeft(f)
	case tune.NotWorth:
		return "the expected gain was too small for a launch"
	}
	return w.note(f)
}

// noLaunchLeft is why something that a study names was not launched; older files do not say what
// would be enough, nor how long a budget of time was.
func noLaunchLeft(f *tune.Finding) string {
	switch {
	case f.Seconds > 0:
		return fmt.Sprintf("the budget of %v had no launch left: raise budget.time or budget.gpu_hours, or name fewer", time.Duration(math.Round(f.Seconds*1e9)))
	case f.N == 0:
		return "the budget had no launch left: give a larger one, or name fewer"
	case f.Of == 0:
		return fmt.Sprintf("the budget of %d launches had none left: raise budget.trials, or name fewer", f.N)
	}
	return fmt.Sprintf("the budget of %d launches had none left: raise budget.trials to %d, or name fewer", f.N, f.Of)
}

// OutByBounds reports whether a candidate was eliminated for a bound; older files have
// only the sentence.
func OutByBounds(c outcome.Candidate) bool {
	if c.Finding != nil {
		return c.Finding.Kind == tune.MissesSurely
	}
	return strings.Contains(c.Reason, "misses a constraint")
}

// setting is why a setting of the winner stays or goes.
func (w wording) setting(f *tune.Finding) string {
	if f == nil {
		return ""
	}
	switch f.Kind {
	case tune.NeededRefused:
		return "needed: without it " + f.Reason
	case tune.NeededEnded:
		return "needed: without it the trial ended " + w.note(f.Cause)
	case tune.NeededBounds:
		return "needed: without it the command " + w.obstacle(f.Cause)
	case tune.NotTried:
		return "not tested by itself: it was launched as a part of the command alone"
	case tune.NotDecided:
		return "not decided: " + f.Reason
	case tune.KeptGain:
		return "kept: it brings " + signedPercent(*f.Value)
	case tune.KeptSeeming:
		return fmt.Sprintf("kept: it seems to bring %s, which so few launches cannot show", signedPercent(*f.Value))
	case tune.DroppedNoGain:
		switch {
		case f.Value == nil:
			return "dropped: no gain shown"
		case f.N > 1:
			return fmt.Sprintf("dropped: %d settings together show no gain (%s)", f.N, signedPercent(*f.Value))
		}
		return fmt.Sprintf("dropped: no gain shown (%s)", signedPercent(*f.Value))
	case tune.TogetherRefused:
		return "together they are needed: without them " + f.Reason
	case tune.TogetherEnded:
		return "together they are needed: without them the trial ended " + w.note(f.Cause)
	case tune.TogetherBounds:
		return "together they are needed: without them the command " + w.obstacle(f.Cause)
	}
	return w.together(f)
}

// together is why settings stay that were left out together.
func (w wording) together(f *tune.Finding) string {
	them := "all of them"
	if f.N == 1 {
		them = "it"
	}
	switch f.Kind {
	case tune.TogetherUntried:
		return "kept: too few launches were left to measure the command without " + them
	case tune.TogetherLost:
		return fmt.Sprintf("kept: the launches without %s ended %s, which says nothing about the command", them, w.note(f.Cause))
	case tune.TogetherWorse:
		return fmt.Sprintf("kept: without %s it is %s", them, signedPercent(*f.Value))
	case tune.TogetherNoGain:
		return fmt.Sprintf("kept: without %s no gain over the baseline is shown", them)
	case tune.PredictedBrings:
		return "predicted to bring " + signedPercent(*f.Value)
	case tune.PredictedNeeded:
		return "needed: without it a bound is missed by prediction"
	}
	return string(f.Kind)
}

// stop is why a search ended before its budget.
func (w wording) stop(f *tune.Finding) string {
	switch {
	case f == nil:
		return ""
	case f.Kind == tune.NoneWorth:
		return fmt.Sprintf("the best of %s was expected to gain %.2g %%, too little for another launch", counted(f.N, "remaining configuration"), 100**f.Value)
	}
	return "nothing was left to try"
}
