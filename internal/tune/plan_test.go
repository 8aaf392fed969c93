package tune

import (
	"maps"
	"slices"
	"testing"
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
			raced := func(b Budget) *Race {
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
				return launched[e.Label] || e.Finding.Kind != NoLaunchLeft || e.Finding.N != budget
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
