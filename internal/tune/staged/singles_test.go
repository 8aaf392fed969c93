package staged

import (
	"fmt"
	"slices"
	"testing"

	"perflab/internal/tune"
)

// TestSinglesVerdicts holds what a search by single measurements concludes.
func TestSinglesVerdicts(t *testing.T) {
	o := tune.Objective{Metric: "m", Higher: true, SLOs: []tune.Bound{{Metric: "ttft", Op: "<=", Limit: 100}}}
	for want, b := range map[string]bench{
		"a=2 is +50.0 % on m over the baseline (300 against 200), the best of 3 single measurements; nothing was repeated, so a part of the gain may be luck": {
			"0": "m=200 ttft=1", "1": "m=250 ttft=1", "2": "m=300 ttft=1"},
		"no difference shown: of 1 other configuration none beats the baseline, with 200 of m; nothing was repeated": {
			"0": "m=200 ttft=1", "1": "refused: no memory", "2": "m=200 ttft=1"},
		"a=1 has 250 of m, the best of 1 single measurement, and the baseline ended refused: no memory, so no gain can be given; nothing was repeated, so a part of the gain may be luck; not every SLO is met: ttft <= 100 is missed: 150": {
			"0": "refused: no memory", "1": "m=250 ttft=150", "2": "void: lag"},
		"nothing could be measured: the baseline ended failed: no port": {
			"0": "failed: no port", "1": "failed: no port", "2": "failed: no port"},
		"no configuration has figures beside the baseline": {
			"0": "m=200 ttft=1", "1": "failed: no port", "2": "failed: no port"},
	} {
		s := Singles{Stage: tune.SearchStage, Primary: "w", Objective: o, Budget: tune.Budget{Trials: 3}}
		if r := s.Result(); r.Verdict.Kind != tune.NothingYet {
			t.Errorf("of nothing: %+v", r)
		}
		for n := range 3 {
			p := tune.Proposal{Trial: n + 1, Stage: tune.SearchStage, Label: fmt.Sprintf("a=%d", n), Config: tune.Config{"a": fmt.Sprint(n)}, Workloads: []string{"w"}}
			if n == 0 {
				p.Stage, p.Label = tune.BaselineStage, tune.BaselineStage
			}
			if s.Spent() {
				t.Errorf("the budget is spent after %d", n)
			}
			if s.Add(p, b.end(t, p)); n == 0 && len(s.Result().Stages) > 0 {
				t.Errorf("after the baseline: %+v", s.Result())
			}
		}
		r := s.Result()
		says(t, r.Verdict, want)
		if d := r.Stages[0]; len(d.Entries) != 2 || !slices.Equal(d.Trials, []int{2, 3}) || d.Entries[0].Label == "" || !s.Spent() {
			t.Errorf("%s: entries %+v", want, d)
		}
	}
}
