package block

import (
	"strings"
	"testing"

	"perflab/internal/result"
)

func TestSpeculation(t *testing.T) {
	got := Speculation(result.Summary{Figures: map[string]float64{"speculating_requests": 12, "request_acceptance_rate": 0.4667, "request_acceptance_length": 2.4,
		"request_acceptance_at_1": 0.7, "request_acceptance_at_2": 0.4, "request_acceptance_at_3": 0.3, "acceptance_length": 9}})
	const want = `Speculation by request (told by the answers, not by the engine's counters)
  Requests that tell of it  12
  Acceptance rate           46.7 %
  Acceptance length         2.40 tokens
  Accepted by position      70.0 %, 40.0 %, 30.0 %
`
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := Speculation(result.Summary{Figures: map[string]float64{"speculating_requests": 12}}); strings.Contains(got, "Acceptance") || !strings.HasSuffix(got, "  Guesses                   none was made\n") {
		t.Errorf("of requests without a guess:\n%s", got)
	}
	if got := Speculation(result.Summary{Figures: map[string]float64{"acceptance_length": 9}}); got != "" {
		t.Errorf("says %q of the engine's counters alone", got)
	}
}
