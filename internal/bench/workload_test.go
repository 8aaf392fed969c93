package bench

import (
	"math"
	"strings"
	"testing"

	"perflab/internal/workload"
)

// TestAtOnce: what is open at once for certain is a burst or what a limit
// allows of it; the rest of an open loop depends on the server.
func TestAtOnce(t *testing.T) {
	inf := workload.Rate(math.Inf(1))
	for name, tt := range map[string]struct {
		spec workload.Spec
		want int
	}{
		"burst":                  {workload.Spec{NumPrompts: 300, Rate: inf}, 300},
		"burst under a limit":    {workload.Spec{NumPrompts: 300, Rate: inf, MaxConcurrency: 20}, 20},
		"fewer than the limit":   {workload.Spec{NumPrompts: 3, Rate: inf, MaxConcurrency: 20}, 3},
		"closed loop":            {workload.Spec{Duration: "1m", MaxConcurrency: 20}, 20},
		"open loop":              {workload.Spec{NumPrompts: 300, Rate: 1000}, 1},
		"open loop with a limit": {workload.Spec{NumPrompts: 300, Rate: 1000, MaxConcurrency: 1 << 20}, 1},
	} {
		w, err := workload.Open(tt.spec)
		if err != nil {
			t.Fatal(name, err)
		}
		if got := whole(w).atOnce(); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
		if note := capacityNote(w, 1); note != "" {
			t.Errorf("%s: %s", name, note)
		}
	}
	w, err := workload.Open(workload.Spec{NumPrompts: 2_000_000, Rate: 1_000_000})
	if err != nil {
		t.Fatal(err)
	}
	if note := capacityNote(w, 1); !strings.Contains(note, "at 1e+06/s is enough while a call takes less than 0.") {
		t.Errorf("note %q", note)
	}
}
