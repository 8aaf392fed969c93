package fleet

import (
	"testing"
	"time"
)

// TestNotice: agents are told of the start earlier where one of them answers slowly, and never too early.
func TestNotice(t *testing.T) {
	for slowest, want := range map[time.Duration]time.Duration{
		0: 1004 * time.Millisecond, 5 * time.Millisecond: 1054 * time.Millisecond, 200 * time.Millisecond: 3004 * time.Millisecond, time.Minute: mostAhead,
	} {
		x := run{all: []*member{{}, {slowest: slowest}}}
		if got := x.lead(); got != want {
			t.Errorf("%v: told %v before, want %v", slowest, got, want)
		}
	}
}
