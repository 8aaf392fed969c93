package cli

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"perflab/internal/cli/console"
	"perflab/internal/engine"
	"perflab/internal/load"
	"perflab/internal/source"
	"perflab/internal/study"
)

// TestExitCode: each kind of error has its exit code, wrapped and beside others too.
func TestExitCode(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want int
	}{
		"any":                     {errors.New("broken"), console.ExitFailed},
		"usage":                   {console.Usage(errors.New("--x is 0")), console.ExitUsage},
		"of a study file":         {&study.Error{}, console.ExitUsage},
		"of an engine's command":  {&engine.UsageError{}, console.ExitUsage},
		"of what was named":       {&source.ArgumentError{}, console.ExitUsage},
		"missed":                  {fmt.Errorf("%w: 1 of 2 bounds", console.ErrMissed), console.ExitMissed},
		"regression":              {fmt.Errorf("1 of 2 failed: %w", console.ErrRegression), console.ExitMissed},
		"void":                    {&load.VoidError{Reason: "late"}, console.ExitVoid},
		"void and missed":         {errors.Join(console.ErrMissed, &load.VoidError{Reason: "late"}), console.ExitVoid},
		"interrupted":             {console.Stopped(errInterrupted, "1 trial is kept"), console.ExitInterrupted},
		"cancelled":               {fmt.Errorf("send: %w", context.Canceled), console.ExitInterrupted},
		"an engine's own":         {console.ExitError{Code: 7}, 7},
		"shown already, of audit": {console.ExitError{Code: console.ExitMissed}, console.ExitMissed},
	} {
		if got := exitCode(tt.err); got != tt.want {
			t.Errorf("%s: exit code %d, want %d", name, got, tt.want)
		}
	}
}
