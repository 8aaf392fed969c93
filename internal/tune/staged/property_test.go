package staged

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"perflab/internal/stat"
	"perflab/internal/tune"
)

// randomSpace has few values, so that stages meet the same configuration
// again.
func randomSpace(r *rand.Rand) tune.Space {
	s := tune.Space{Baseline: tune.Config{"a": "0", "b": "0"}, Primary: "w", Others: []string{"v"}}
	for i := range r.IntN(4) {
		st := tune.Stage{Name: fmt.Sprint("stage ", i)}
		for j := range 1 + r.IntN(3) {
			st.Changes = append(st.Changes, tune.Change{
				Label: fmt.Sprint(i, "-", j), Replace: r.IntN(4) == 0,
				Set: tune.Config{"abc"[r.IntN(3):][:1]: fmt.Sprint(1 + r.IntN(3))},
			})
		}
		s.Stages = append(s.Stages, st)
	}
	return s
}

// randomEnd is an end with figures that are powers of two, so that scaling
// and inverting them is exact and ties happen.
func randomEnd(r *rand.Rand, p tune.Proposal) tune.Observation {
	o := tune.Observation{Trial: p.Trial, Status: tune.Measured, Seconds: float64(r.IntN(20))}
	m, ttft := math.Exp2(float64(r.IntN(4))), math.Exp2(float64(r.IntN(3)))
	switch r.IntN(8) {
	case 0:
		o.Status, o.Reason = tune.Refused, "no memory"
		return o
	case 1:
		o.Status = []string{tune.Failed, tune.Void}[r.IntN(2)]
		return o
	}
	o.Figures = map[string]map[string]float64{}
	for _, w := range p.Workloads {
		o.Figures[w] = map[string]float64{"m": m, "ttft": ttft}
	}
	return o
}

// TestStagedProperties plays random studies and checks what holds for all.
func TestStagedProperties(t *testing.T) {
	o := tune.Objective{Metric: "m", Higher: true, SLOs: []tune.Bound{{Metric: "ttft", Op: "<=", Limit: 2}}}
	inverse := tune.Objective{Metric: "m", SLOs: o.SLOs}
	for seed := range uint64(500) {
		r := stat.Stream(seed, "study")
		space := randomSpace(r)
		budget := tune.Budget{Trials: []int{0, 4, 5, 7}[r.IntN(4)]}
		a, b := staged(t, space, o, budget), staged(t, space, inverse, budget)
		measured := map[string]bool{}
		var told []tune.Observation
		for p, ok := a.Ask(); ok; p, ok = a.Ask() {
			q, _ := b.Ask()
			mine := p.Clone()
			p.Config["scribbled"], p.Workloads[0] = "by the caller", "scribbled"
			p = mine
			if again, twice := a.Ask(); twice || !p.Equal(q) {
				t.Fatalf("seed %d: asked for %+v, again %+v, with 1/m %+v", seed, p, again, q)
			}
			if p.Pass == 0 && measured[fmt.Sprint(p.Config)] {
				t.Fatalf("seed %d: %v is confirmed on fresh seeds in the search", seed, p.Config)
			}
			end := randomEnd(r, p)
			measured[fmt.Sprint(p.Config)] = end.Status == tune.Measured || end.Status == tune.Refused
			told = append(told, end)
			a.Tell(end)
			b.Tell(inverted(end))
			for _, f := range end.Figures {
				clear(f) // the strategy keeps its own
			}
		}
		if n := len(told); budget.Trials > 0 && n > budget.Trials {
			t.Fatalf("seed %d: %d trials, budget %d", seed, n, budget.Trials)
		}
		res := a.Result()
		checkResult(t, seed, a, res)
		// Where more is better, 1/m with less is better is the same study.
		same := cmpopts.IgnoreFields(tune.Result{}, "Verdict")
		if diff := cmp.Diff(res, b.Result(), same, cmpopts.IgnoreFields(tune.Decision{}, "Reason")); diff != "" {
			t.Fatalf("seed %d: result (-m +1/m):\n%s", seed, diff)
		}
		if p, ok := b.Ask(); ok {
			t.Fatalf("seed %d: with 1/m trial %d is asked for", seed, p.Trial)
		}
	}
}

func inverted(o tune.Observation) tune.Observation {
	o = o.Settled()
	for _, f := range o.Figures {
		f["m"] = 1 / f["m"]
	}
	return o
}

func checkResult(t *testing.T, seed uint64, s *Search, r tune.Result) {
	t.Helper()
	fail := func(what string) { t.Fatalf("seed %d: %s: %+v", seed, what, r) }
	if diff := cmp.Diff(r, s.Result()); diff != "" {
		fail("a second Result differs: " + diff)
	}
	if r.Winner != r.Baseline && (r.Winner != r.Challenger || !r.Confirmed || r.WinnerConfirm == 0) {
		fail("recommended without a second measurement")
	}
	if r.Winner == r.Baseline && r.WinnerConfirm != r.BaselineConfirm {
		fail("the baseline is measured again under two ids")
	}
	if r.Baseline > 0 != (r.Gain != nil) {
		fail("a gain needs a baseline, and a finished study with one has a gain")
	}
	if r.Verdict.Kind == "" {
		fail("no verdict")
	}
	before := r.Stages
	for i, d := range before {
		if i > 0 && d.Before != before[i-1].Winner {
			fail("a stage does not begin with the last one's winner")
		}
		if d.Reason == nil || len(d.Entries) != len(s.state.space.Stages[i].Changes) {
			fail("a stage lacks its reason or a candidate")
		}
		for _, e := range d.Entries {
			if e.Trial == 0 && e.Finding == nil {
				fail("a candidate is gone without a note")
			}
		}
	}
}
