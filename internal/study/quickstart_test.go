package study

import (
	"maps"
	"math"
	"os"
	"slices"
	"testing"

	"perflab/internal/stat"
	"perflab/internal/tune"
)

// TestQuickstart races the quickstart in worlds in which the baseline, or one of the things that
// it names, is best by much or by little: all that it names is launched before anything else, and
// what is recommended was launched again.
func TestQuickstart(t *testing.T) {
	text, err := os.ReadFile("../../examples/quickstart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Parse("quickstart.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]tune.Config{}
	for _, st := range s.Stages {
		for _, k := range st.Try {
			named[k.Label] = s.change(k).Apply(s.BaselineConfig())
		}
	}
	if len(named) != 3 || !maps.Equal(named["FP8"], tune.Config{"engine": "vllm", "model": "Qwen/Qwen3-8B-FP8"}) {
		t.Fatalf("it names %v", named)
	}
	for _, best := range append(slices.Collect(maps.Values(named)), s.BaselineConfig()) {
		for _, gain := range []float64{0.03, 0.4} {
			asked, r := racedAs(t, s, best, gain)
			for label, config := range named {
				if !slices.ContainsFunc(asked[1:4], func(p tune.Proposal) bool { return p.Label == label && maps.Equal(p.Config, config) && p.Pass == 0 }) {
					t.Errorf("best is %v: %s has none of the launches after the baseline's: %+v", best, label, asked[1:4])
				}
			}
			if len(asked) > s.Limits.Trials || len(r.Evidence.Unlaunched) > 0 {
				t.Errorf("%d launches, without one: %v", len(asked), r.Evidence.Unlaunched)
			}
			won := asked[r.Winner-1].Config
			again := slices.DeleteFunc(slices.Clone(asked), func(p tune.Proposal) bool { return p.Pass == 0 || !maps.Equal(p.Config, won) })
			if len(again) < 2 || len(asked[len(asked)-1].Workloads) != len(s.Workloads) {
				t.Errorf("%v is recommended after %d fresh launches, the last of workloads %v", won, len(again), asked[len(asked)-1].Workloads)
			}
			if gain > 0.1 && !maps.Equal(won, best) {
				t.Errorf("%v is best, and %v recommended: %s", best, won, r.Verdict.Kind)
			}
		}
	}
}

// racedAs runs the study's race where one configuration is better by a gain than all others, which
// are alike, at a noise of half a percent between launches.
func racedAs(t *testing.T, s *Study, best tune.Config, gain float64) (asked []tune.Proposal, r tune.Result) {
	t.Helper()
	race, _, err := s.NewStrategy(nil)
	if err != nil {
		t.Fatal(err)
	}
	rng := stat.Stream(1, "quickstart")
	for p, ok := race.Ask(); ok; p, ok = race.Ask() {
		v := 1000.0
		if maps.Equal(p.Config, best) {
			v *= 1 + gain
		}
		o := tune.Observation{Trial: p.Trial, Status: tune.Measured, Seconds: 10, Figures: map[string]map[string]float64{}}
		for _, w := range p.Workloads {
			o.Figures[w] = map[string]float64{s.Metric.Name: v * math.Exp(0.005*rng.NormFloat64())}
		}
		asked = append(asked, p)
		race.Tell(o)
	}
	return asked, race.Result()
}
