package bench

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/workload"
)

// TestCrewSeries: each run of a series is a load of the crew, with no more agents than it has
// requests or places for.
func TestCrewSeries(t *testing.T) {
	l := listen(t)
	dir := filepath.Join(t.TempDir(), "s")
	w := workload.Spec{NumPrompts: 12, RandomInputLen: 8, RandomOutputLen: 2, Seed: 5}
	s := Series{
		Bench: Runner{Spec: l.spec(w), Dir: dir, Crew: &localCrew{agents: 3}}, Kind: KindSweep, MaxErrors: 0.01,
		Plan: &fixedPlan{[]Step{
			{Load: Load{Axis: Synchronous}}, {Load: Load{AxisConcurrency, 2}}, {Load: Load{AxisConcurrency, 7}},
			{Load: Load{AxisRate, 300}}, {Load: Load{AxisRate, 300}, Requests: 2}, {Load: Load{Axis: Throughput}},
		}},
	}
	facts, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	prompts, _ := l.take()
	if len(prompts) != 5*12+2 || len(slices.Compact(slices.Sorted(slices.Values(prompts)))) != len(prompts) {
		t.Errorf("of %d prompts some were sent twice", len(prompts))
	}
	type row struct {
		Agents, Requests int
		Limits           string
	}
	var got []row
	for _, p := range facts.Points {
		r, err := rundir.OpenRun(filepath.Join(dir, p.Dir))
		if err != nil || r.Partial || r.Header.Fleet == nil {
			t.Fatalf("%s: %v", p.Dir, err)
		}
		got = append(got, row{len(r.Header.Fleet.Agents), len(r.Calls), r.Header.Fleet.Limits()})
	}
	want := []row{{1, 12, ""}, {2, 12, "1 + 1"}, {3, 12, "3 + 2 + 2"}, {3, 12, ""}, {2, 2, ""}, {3, 12, ""}}
	if d := gocmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	again, damage, err := OpenSeries(dir)
	if err != nil || len(damage) > 0 {
		t.Fatalf("%v, %q", err, damage)
	}
	if d := gocmp.Diff(facts, again); d != "" {
		t.Errorf("computed again from the calls:\n%s", d)
	}
}

// TestCrewFindMax: a search goes on by the points of a crew, and a point that surely misses ends
// before all of it is sent.
func TestCrewFindMax(t *testing.T) {
	slo, err := result.ParseSLO("p99_e2el_ms <= 0.000001") // of which every call is beyond
	if err != nil {
		t.Fatal(err)
	}
	l := listen(t)
	slos := []result.SLO{slo}
	plan := NewFindMax(FindMaxOptions{Axis: AxisRate, From: 200, Precision: 0.05, Points: 4, Requests: 400, Seconds: 0.1, Early: &Early{SLOs: slos}})
	s := Series{
		Bench: Runner{Spec: l.spec(workload.Spec{RandomInputLen: 5, RandomOutputLen: 2}), Dir: filepath.Join(t.TempDir(), "s"), Crew: &localCrew{agents: 3}},
		Kind:  KindFindMax, Plan: plan, SLOs: slos, MaxErrors: 0.01,
	}
	facts, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := facts.Points[0]
	if p.Early == "" || p.Partial || p.Summary.Figures["completed"] >= 400 || len(p.Summary.Agents) != 3 {
		t.Errorf("%+v: ended early %q after %v calls of %d agents", facts.Stop, p.Early, p.Summary.Figures["completed"], len(p.Summary.Agents))
	}
}

// TestCrewUntilPrecision: the one who has all calls says when a figure is known, and the agents stop.
func TestCrewUntilPrecision(t *testing.T) {
	l := listen(t)
	w := workload.Spec{Duration: "10m", MaxConcurrency: 3, RandomInputLen: 8, RandomOutputLen: 2, UntilPrecision: "90%", UntilMetric: "steady_request_throughput"}
	out, err := Runner{Spec: l.spec(w), Crew: &localCrew{agents: 3}}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := out.Client.Precision
	if p == nil || !p.Ended || out.Summary.Partial || len(out.Calls) < 100 || out.Client.Wall > 5*time.Minute {
		t.Errorf("%d calls: %+v\n%s", len(out.Calls), p, out.Summary.Verdict.Text())
	}
}
