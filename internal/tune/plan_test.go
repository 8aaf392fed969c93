package tune

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"
)

// TestPlanHolds checks a race against its plan: of what the study names as much is launched
// as the plan reaches, also where what leads gains little, the rest is named with the reason,
// and the budget that is said to be enough is, and no smaller one above the given.
func TestPlanHolds(t *testing.T) {
	names := []string{"v fp8 tp 1", "v bf16 tp 2", "s fp8 tp 2", "t bf16 tp 4", "s bf16 tp 4", "t fp8 tp 2"}
	for _, budget := range []int{6, 7, 8, 9, 10, 12, 14, 16, 25} {
		for seed := range uint64(3) {
			f := world(seed)
			f.sd = 0.03
			f.truth = func(c Config) float64 { // what is named differs by little, and what is predicted to be near to it is better
				v := 100 * (1 + 0.01*float64(len(c["engine"]+c["model"]))*float64(c["tp"][0]-'0'))
				if len(c) > 3 {
					return 1.02 * v
				}
				return v
			}
			raced := func(b Budget) *Race { return namingRace(t, f, names, b) }
			r := raced(Budget{Trials: budget})
			p := r.Planned()
			if p.Named != len(names) || p.Launches != budget || (p.Reached < p.Named) != (p.Enough > 0) {
				t.Fatalf("budget %d: %+v", budget, p)
			}
			asked, result := playRace(t, r, f.evaluate(seed))
			launched := map[string]bool{}
			for _, p := range asked {
				if slices.Contains(names, p.Label) && p.Pass == 0 {
					launched[p.Label] = true
				}
			}
			if len(launched) != p.Reached || len(asked) > budget {
				t.Errorf("budget %d, seed %d: %d of %d named were launched in %d, planned: %+v", budget, seed, len(launched), len(names), len(asked), p)
			}
			if u := result.Evidence.Unlaunched; len(u) != p.Named-p.Reached || slices.ContainsFunc(u, func(e Entry) bool {
				return launched[e.Label] || e.Finding.Kind != NoLaunchLeft || e.Finding.N != budget || e.Finding.Of != p.Enough
			}) {
				t.Errorf("budget %d, seed %d: without a launch: %+v", budget, seed, u)
			}
			for more := budget + 1; more <= p.Enough; more++ {
				if q := raced(Budget{Trials: more}).Planned(); (q.Reached == q.Named) != (more == p.Enough) {
					t.Errorf("of budget %d it is said that %d are enough, and %d reach %d of %d", budget, p.Enough, more, q.Reached, q.Named)
				}
			}
		}
	}
}

// namingRace is a race of a study that names some candidates.
func namingRace(t *testing.T, f *testSpace, names []string, b Budget) *Race {
	t.Helper()
	g := f.space()
	for i, c := range g.Candidates {
		g.Candidates[i].Named = slices.Contains(names, c.Label)
	}
	r, err := NewRace(g, f, raceSpace(), up, b, RaceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestEnoughWithRepairs: a launch that went to the repair of a refusal is counted in the budget that is said
// to be enough, and with that budget all that the study names is launched.
func TestEnoughWithRepairs(t *testing.T) {
	names := []string{"v fp8 tp 1", "v bf16 tp 2", "s fp8 tp 2", "t bf16 tp 4", "s bf16 tp 4", "t fp8 tp 2"}
	for _, budget := range []int{8, 10, 12} {
		f := world(1)
		refuses := func(ctx context.Context, p Proposal) (Observation, error) {
			if p.Label == "s fp8 tp 2" {
				return Observation{Status: Refused, Reason: "out of memory", Moves: []Change{{Label: "less", Set: Config{"seqs": "64"}}}}, nil
			}
			return f.evaluate(1)(ctx, p)
		}
		r := namingRace(t, f, names, Budget{Trials: budget})
		plan := r.Planned()
		_, result := playRace(t, r, refuses)
		u := result.Evidence.Unlaunched
		if len(u) != plan.Named-plan.Reached+1 || u[0].Finding.Of <= max(budget, plan.Enough) {
			t.Fatalf("budget %d, planned %+v: without a launch: %+v", budget, plan, u)
		}
		if _, result := playRace(t, namingRace(t, f, names, Budget{Trials: u[0].Finding.Of}), refuses); len(result.Evidence.Unlaunched) > 0 {
			t.Errorf("budget %d: %d launches were said to be enough, and left %+v", budget, u[0].Finding.Of, result.Evidence.Unlaunched)
		}
	}
}

// TestUnlaunchedForTime: where time ends the search, and not the number of launches, the finding says how long it was.
func TestUnlaunchedForTime(t *testing.T) {
	f := world(1)
	for _, trials := range []int{0, 40} {
		limit := 900 * time.Second // nine launches
		_, result := playRace(t, namingRace(t, f, []string{"v fp8 tp 1", "v bf16 tp 2", "s fp8 tp 2", "t bf16 tp 4", "s bf16 tp 4", "t fp8 tp 2"}, Budget{Trials: trials, Time: limit}), f.evaluate(1))
		u := result.Evidence.Unlaunched
		if len(u) == 0 || slices.ContainsFunc(u, func(e Entry) bool {
			return e.Finding.Kind != NoLaunchLeft || e.Finding.N != 0 || e.Finding.Seconds != limit.Seconds()
		}) {
			t.Errorf("with %d launches and %v: without a launch: %+v", trials, limit, u)
		}
	}
}

// TestShortTime: where time has room for few launches, as the baseline's tell, the confirmation takes
// the fewest rounds and leaves the search some; a number of rounds that was asked for stays.
func TestShortTime(t *testing.T) {
	f := world(1)
	names := []string{"v fp8 tp 1", "v bf16 tp 2", "s fp8 tp 2", "t bf16 tp 4", "s bf16 tp 4", "t fp8 tp 2"}
	for _, tt := range []struct {
		budget   Budget
		rounds   int
		searched bool
	}{
		{Budget{Trials: 20, Time: 950 * time.Second}, 0, true}, // nine launches of 100 s
		{Budget{Time: 950 * time.Second}, 0, true},
		{Budget{Trials: 20, Time: 950 * time.Second}, 3, false},
		{Budget{Trials: 20, Time: 4000 * time.Second}, 0, true},
	} {
		r := namingRace(t, f, names, tt.budget)
		r.state.asked = RaceOptions{Rounds: tt.rounds}
		r.state.options = r.state.asked.filled(tt.budget)
		asked, result := playRace(t, r, f.evaluate(1))
		named := slices.ContainsFunc(asked, func(p Proposal) bool { return p.Stage == RaceStage })
		confirmed := slices.ContainsFunc(asked, func(p Proposal) bool { return p.Stage == ConfirmStage })
		if named != tt.searched || confirmed != tt.searched {
			t.Errorf("%+v and %d rounds: %d launches, searched %v, confirmed %v: %+v", tt.budget, tt.rounds, len(asked), named, confirmed, result.Verdict)
		}
	}
}

// TestUnlaunchedElsewhere: a change that the study names and nothing that was launched can take is
// said with the rule's reason.
func TestUnlaunchedElsewhere(t *testing.T) {
	f := world(1)
	g := f.space()
	flag := Change{Label: "a flag", Set: Config{"flag": "on"}}
	g.Rules = refusing{f, func(c Config) bool { return c["flag"] != "" }}
	g.Elsewhere = []Change{flag}
	r, err := NewRace(g, f, raceSpace(), up, Budget{Trials: 16}, RaceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, result := playRace(t, r, f.evaluate(1))
	u := result.Evidence.Unlaunched
	if len(u) != 1 || u[0].Label != flag.Label || u[0].Finding.Kind != RefusedByRule || u[0].Finding.Reason != "nobody takes it" {
		t.Errorf("without a launch: %+v", u)
	}
	g.Rules = f
	if r, err = NewRace(g, f, raceSpace(), up, Budget{Trials: 16}, RaceOptions{}); err != nil {
		t.Fatal(err)
	}
	asked, result := playRace(t, r, f.evaluate(1))
	if !slices.ContainsFunc(asked, func(p Proposal) bool { return p.Config["flag"] == "on" }) || len(result.Evidence.Unlaunched) > 0 {
		t.Errorf("a change that others take was not launched: %+v", result.Evidence.Unlaunched)
	}
}

// refusing are rules that refuse more.
type refusing struct {
	Rules
	more func(Config) bool
}

func (r refusing) Refuse(c Config) string {
	if r.more(maps.Clone(c)) {
		return "nobody takes it"
	}
	return r.Rules.Refuse(c)
}
