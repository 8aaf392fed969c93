package verdict

import (
	"fmt"
	"math"

	"perflab/internal/result"
)

// disagree is by what share the answers and the counters may differ in the tokens of a step: counters
// are read some time before the first sending and after the last end.
const disagree = 0.02

// judgeSpeculation holds what the answers tell of speculation against itself and against
// the engine's counters, which are of all requests that it had.
func judgeSpeculation(a *result.Analysis) (result.Status, string) {
	s := a.Speculated
	text := fmt.Sprintf("%d of %d answers tell of speculation", s.Requests, a.Completed)
	length, told := a.Figures["request_acceptance_length"]
	if told {
		text += fmt.Sprintf(": %.2f tokens a step", length)
	}
	counted, read := a.Figures["acceptance_length"]
	if read {
		text += fmt.Sprintf("; the engine's counters, of all its requests, say %.2f", counted)
	}
	switch {
	case s.Odd > 0:
		return result.Remark, fmt.Sprintf("%d answers contradict themselves in their counts, which are left out: %s", s.Odd, text)
	case told && read && math.Abs(length-counted) > disagree*counted:
		return result.Remark, "the engine guessed for requests that are not in the figures by request, such as failed ones or those of others: " + text
	}
	return result.Sound, text
}
