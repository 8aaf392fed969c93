package block

import (
	"testing"

	"perflab/internal/result"
)

func TestSessions(t *testing.T) {
	s := result.Summary{Figures: map[string]float64{"sessions": 12, "sessions_per_hour": 43.219, "turns_per_hour": 612, "e2e_avg_interactivity": 31.4159,
		"mean_session_s": 60.4, "median_session_s": 55, "p90_session_s": 99.999, "mean_session_serving_s": 30, "median_session_serving_s": 29, "p90_session_serving_s": 41}}
	want := `Sessions
  Done                   12 sessions
  Per hour               43.22 sessions, 612.00 turns
  Time                   mean 60.40 s, median 55.00 s, P90 100.00 s
  Time without tools     mean 30.00 s, median 29.00 s, P90 41.00 s
  Tokens over turn time  31.42 tok/s
`
	if got := Sessions(s); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	want = `Sessions
  Done      0 sessions
  Per hour  0.00 sessions, 9.00 turns
`
	if got := Sessions(result.Summary{Figures: map[string]float64{"sessions": 0, "sessions_per_hour": 0, "turns_per_hour": 9}}); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := Sessions(result.Summary{}); got != "" {
		t.Errorf("without sessions: %s", got)
	}
}
