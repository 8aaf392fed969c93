package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"perflab/internal/gauge"
	"perflab/internal/result"
)

// What a pause is: longer than pauseTime and than pauseGaps usual gaps between tokens, which
// no step of the answers' own takes. Pauses of pausedShare of a run are worth a word.
const (
	pauseTime   = 500 * time.Millisecond
	pauseGaps   = 10
	pausedShare = 0.05
)

// silence is the time in which no call got a token while answers were being written.
type silence struct {
	sum, longest time.Duration
	of           time.Duration // the run
}

// silenceOf finds it in the calls that are kept whole. Whatever is no pause of any one call is
// none of all of them, so that a run without long gaps costs no more than a look at its chunks.
func silenceOf(a *result.Analysis) silence {
	s := silence{of: a.End - a.Start}
	least := max(pauseTime, time.Duration(pauseGaps*a.Figures["median_itl_ms"]*float64(time.Millisecond)))
	var gaps []gauge.Span // of calls
	for _, c := range a.Succeeded {
		for i := 1; i < len(c.Chunks); i++ {
			if from, to := c.Chunks[i-1].At, c.Chunks[i].At; to-from > least {
				gaps = append(gaps, gauge.Span{From: from, To: to})
			}
		}
	}
	if len(gaps) == 0 {
		return s
	}
	var at []time.Duration
	for _, c := range a.Succeeded {
		for _, k := range c.Chunks {
			at = append(at, k.At)
		}
	}
	slices.Sort(at)
	slices.SortFunc(gaps, func(a, b gauge.Span) int { return cmp.Compare(a.From, b.From) })
	var within time.Duration // the end of the gaps that have begun
	for i := 1; i < len(at); i++ {
		for len(gaps) > 0 && gaps[0].From <= at[i-1] {
			within, gaps = max(within, gaps[0].To), gaps[1:]
		}
		if d := at[i] - at[i-1]; d > least && at[i] <= within {
			s.sum, s.longest = s.sum+d, max(s.longest, d)
		}
	}
	return s
}

// matters says whether the pauses are a part of the run's figures.
func (s silence) matters() bool { return s.sum > time.Duration(pausedShare*float64(s.of)) }

// judge says where the pauses may come from: with the GPUs idle, not from prompts.
func (s silence) judge(a *result.Analysis) (result.Status, string) {
	text := fmt.Sprintf("no answer got a token for %.1f s of %.1f s (%.0f %%), up to %.2f s on end, while answers were being written", s.sum.Seconds(), s.of.Seconds(), 100*s.sum.Seconds()/s.of.Seconds(), s.longest.Seconds())
	if hostBound(a) != "" {
		return result.Noted, fmt.Sprintf("%s, and the GPUs worked %.0f %% of the time: the engine compiled kernels that it had not used before, or its host held it up; a second run on the same server tells", text, 100*a.Figures["mean_gpu_utilization"])
	}
	return result.Remark, text + ": long prompts were computed at once, kernels were compiled, or the host held the engine up; a second run on the same server tells"
}
