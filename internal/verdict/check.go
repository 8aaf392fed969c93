package verdict

import (
	"time"

	"perflab/internal/result"
)

// check is one thing to look at in a run that has successful calls.
type check struct {
	name  string
	judge func(*result.Analysis) (result.Status, string)
}

// notJudged returns the answer of a check that cannot judge.
func notJudged(why string) (result.Status, string) { return result.Sound, "not judged: " + why }

// milliseconds is a duration in milliseconds.
func milliseconds(d time.Duration) float64 { return float64(d) / 1e6 }
