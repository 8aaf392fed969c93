package tune

import (
	"context"
	"maps"
	"slices"
	"testing"
)

// TestRaceOfOneAlone checks what is said where the baseline is refused and one other configuration
// alone is measured: it is not recommended, and not said to be missing or unacceptable.
func TestRaceOfOneAlone(t *testing.T) {
	f := world(5)
	var alone Config
	asked, r := playRace(t, race(t, f, up, Budget{Trials: 25}), func(ctx context.Context, p Proposal) (Observation, error) {
		switch {
		case maps.Equal(p.Config, raceSpace().Baseline):
			return Observation{Status: Refused, Reason: "out of memory"}, nil
		case alone == nil:
			alone = p.Config
		}
		if !maps.Equal(p.Config, alone) {
			return Observation{Status: Refused, Reason: "no kernel"}, nil
		}
		return f.evaluate(5)(ctx, p)
	})
	label := asked[slices.IndexFunc(asked, func(p Proposal) bool { return maps.Equal(p.Config, alone) })].Label
	if r.Winner != 0 || r.Verdict.Kind != NothingAcceptable || r.Verdict.Name != label || r.Verdict.Cause == nil || r.Verdict.Cause.Reason != "out of memory" {
		t.Errorf("of %d launches: %d wins, %+v", len(asked), r.Winner, r.Verdict)
	}
}
