package staged

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/tune"
)

func models(labels ...string) []tune.Change {
	var c []tune.Change
	for _, l := range labels {
		c = append(c, tune.Change{Label: l, Set: tune.Config{"model": l}})
	}
	return c
}

func TestSurvey(t *testing.T) {
	o := tune.Objective{Metric: "m", Higher: true, SLOs: []tune.Bound{{Metric: "ttft", Op: "<=", Limit: 100}}}
	s, err := NewSurvey(models("A", "B", "C", "D"), []string{"n1", "n10"}, o)
	if err != nil {
		t.Fatal(err)
	}
	says(t, s.Result().Verdict, "not finished: nothing is measured yet")
	want := []string{
		"1 survey: A [A] n1,n10 pass 0",
		"2 survey: B [B] n1,n10 pass 0",
		"3 survey: C [C] n1,n10 pass 0",
		"4 survey: D [D] n1,n10 pass 0",
	}
	got := play(t, s, bench{"A": "m=100 ttft=90", "B": "m=250 ttft=80", "C": "refused: no memory", "D": "m=900 ttft=200"})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("proposals (-want +got):\n%s", diff)
	}
	verdict := sentence("B has the best m of 3 configurations on n1, 250, each measured once")
	result := tune.Result{
		Baseline: 1, Winner: 2, Challenger: 2, Gain: new(1.5), Verdict: *verdict,
		Stages: []tune.Decision{{
			Stage: "survey", Trials: []int{1, 2, 3, 4}, Before: 1, Winner: 2, Gain: new(1.5), Total: new(1.5), Reason: verdict,
			Entries: []tune.Entry{
				{Label: "A", Trial: 1, Gain: new(0.0), Total: new(0.0)},
				{Label: "B", Trial: 2, Gain: new(1.5), Total: new(1.5)},
				{Label: "C", Trial: 3, Finding: sentence("refused: no memory")},
				{Label: "D", Trial: 4, Gain: new(8.0), Total: new(8.0), Finding: sentence("ttft <= 100 is missed: 200")},
			},
		}},
	}
	if diff := cmp.Diff(result, s.Result()); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

func TestSurveyMeasuresNothing(t *testing.T) {
	s, err := NewSurvey(models("A", "B"), []string{"w"}, up)
	if err != nil {
		t.Fatal(err)
	}
	play(t, s, bench{"A": "refused: no memory", "B": "failed: no port"})
	r := s.Result()
	says(t, r.Verdict, "nothing could be measured: the first configuration ended refused: no memory")
	if r.Winner != 0 || r.Baseline != 0 || r.Gain != nil {
		t.Errorf("result %+v, want no trial", r)
	}
}

func TestNewSurveyRefuses(t *testing.T) {
	_, err := NewSurvey(nil, nil, tune.Objective{})
	for _, want := range []string{"no configurations", "no workloads", "names no metric"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q: %v", want, err)
		}
	}
	twins := append(models("A"), tune.Change{Label: "B", Set: tune.Config{"model": "A", "x": ""}})
	if _, err := NewSurvey(twins, []string{"w"}, up); err == nil || !strings.Contains(err.Error(), `"A" and "B" are the same configuration`) {
		t.Errorf("twins: %v", err)
	}
}
