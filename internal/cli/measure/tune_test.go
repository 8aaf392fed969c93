package measure

import (
	"errors"
	"testing"

	"perflab/internal/cli/console"
	"perflab/internal/outcome"
	"perflab/internal/result"
	"perflab/internal/tune"
)

// TestJudgeStudy: the exit status says when a study ends without an answer.
func TestJudgeStudy(t *testing.T) {
	slow := &result.Summary{Figures: map[string]float64{"p99_ttft_ms": 900}}
	tests := []struct {
		name  string
		study outcome.Study
		want  error
	}{
		{"nothing measured", outcome.Study{}, errNothing},
		{"one measured, nothing recommended", outcome.Study{Trials: []outcome.Trial{{Status: tune.Refused}, {Status: tune.Measured}}}, errUnfit},
		{"one refused", outcome.Study{Trials: []outcome.Trial{{Status: tune.Refused}}}, errNothing},
		{"no SLO", outcome.Study{Recommended: &outcome.Pick{Summary: slow}}, nil},
		{"met", outcome.Study{Objective: outcome.Objective{SLOs: []string{"p99_ttft_ms <= 1000"}}, Recommended: &outcome.Pick{Summary: slow}}, nil},
		{"missed", outcome.Study{Objective: outcome.Objective{SLOs: []string{"p99_ttft_ms <= 500"}}, Recommended: &outcome.Pick{Summary: slow}}, console.ErrMissed},
	}
	for _, tt := range tests {
		if err := judgeStudy(tt.study); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
}

// TestFit: on a narrow terminal the bar goes before the numbers do.
func TestFit(t *testing.T) {
	const line = "4.4 s  trial 1  engine: SGLang  measuring  [========        ] 42/80  ~3.1 s left"
	for width, want := range map[int]string{
		200: line,
		70:  "4.4 s  trial 1  engine: SGLang  measuring  42/80  ~3.1 s left",
		20:  "4.4 s  trial 1  eng…",
	} {
		if got := console.Fit(line, width); got != want {
			t.Errorf("at %d columns: %q", width, got)
		}
	}
}
