package journal

import (
	"fmt"
	"strings"
	"testing"

	"perflab/internal/tune"
	"perflab/internal/tune/staged"
)

// bench answers proposals from a table: the value of the configuration's one parameter
// -> its figure, or "status: reason".
type bench map[string]string

func words(p tune.Proposal) string { return p.Config["x"] + p.Config["model"] }

func (b bench) end(t testing.TB, p tune.Proposal) tune.Observation {
	t.Helper()
	text, ok := b[words(p)]
	if !ok {
		t.Fatalf("nothing is known of trial %d: %s", p.Trial, words(p))
	}
	o := tune.Observation{Trial: p.Trial, Status: tune.Measured, Seconds: 10}
	if status, why, ok := strings.Cut(text, ": "); ok {
		o.Status, o.Reason = status, why
		return o
	}
	var v float64
	if _, err := fmt.Sscan(text, &v); err != nil {
		t.Fatalf("figure %q: %v", text, err)
	}
	o.Figures = map[string]map[string]float64{}
	for _, w := range p.Workloads {
		o.Figures[w] = map[string]float64{"m": v}
	}
	return o
}

var up = tune.Objective{Metric: "m", Higher: true}

// one is a space with a single stage that changes parameter x of baseline 0.
func one(labels ...string) tune.Space {
	st := tune.Stage{Name: "s"}
	for _, l := range labels {
		st.Changes = append(st.Changes, tune.Change{Label: l, Set: tune.Config{"x": l}})
	}
	return tune.Space{Baseline: tune.Config{"x": "0"}, Stages: []tune.Stage{st}, Primary: "w"}
}

func inStages(t testing.TB, s tune.Space, o tune.Objective, b tune.Budget) *staged.Search {
	t.Helper()
	st, err := staged.New(s, o, b)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// models are configurations of a survey.
func models(labels ...string) []tune.Change {
	var c []tune.Change
	for _, l := range labels {
		c = append(c, tune.Change{Label: l, Set: tune.Config{"model": l}})
	}
	return c
}
