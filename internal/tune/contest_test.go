package tune

import (
	"context"
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"

	"perflab/internal/stat"
)

// TestRaceOfEqualsUnequallyNoisy holds the rate of false winners where one engine's
// launches are three times as noisy as the others', which the search will love.
func TestRaceOfEqualsUnequallyNoisy(t *testing.T) {
	for name, noisy := range map[string]func(Config) bool{
		"one engine":   func(c Config) bool { return c["engine"] == "s" },
		"the baseline": func(c Config) bool { return maps.Equal(c, raceSpace().Baseline) },
	} {
		wrong, n := 0, 150
		for seed := range uint64(n) {
			f := world(seed)
			f.equal, f.sd = true, 0
			_, r := playRace(t, race(t, f, up, Budget{Trials: 25}), func(ctx context.Context, p Proposal) (Observation, error) {
				end, err := f.evaluate(seed)(ctx, p)
				sd := 0.015
				if noisy(p.Config) {
					sd *= 3
				}
				end.Figures["w"]["m"] *= math.Exp(sd * stat.Stream(seed, fmt.Sprint("noise ", p.Trial)).NormFloat64())
				return end, err
			})
			if *r.Gain != 0 {
				wrong++
			}
		}
		t.Logf("%s: %d of %d", name, wrong, n)
	}
}

// TestRaceAtALimit: equals whose figure scatters about a limit.
func TestRaceAtALimit(t *testing.T) {
	wrong, n := 0, 150
	for seed := range uint64(n) {
		f := world(seed)
		f.equal, f.sd = true, 0.02
		o := up
		o.SLOs = []Bound{{Metric: "ttft", Op: "<=", Limit: 100}}
		_, r := playRace(t, race(t, f, o, Budget{Trials: 25}), func(ctx context.Context, p Proposal) (Observation, error) {
			end, err := f.evaluate(seed)(ctx, p)
			x := stat.Stream(seed, fmt.Sprint("ttft ", p.Trial))
			for _, figures := range end.Figures {
				figures["ttft"] = 100 * math.Exp(0.05*x.NormFloat64())
			}
			return end, err
		})
		if r.Winner != r.Baseline {
			wrong++
		}
		if seed < 5 {
			t.Log(r.Verdict)
		}
	}
	t.Logf("%d of %d", wrong, n)
	_ = strings.Contains
}
