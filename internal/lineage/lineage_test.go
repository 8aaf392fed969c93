package lineage

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/drift"
	"perflab/internal/result"
)

const metric = "p99_ttft_ms"

func day(n int) time.Time { return time.Date(2026, 5, n, 0, 0, 0, 0, time.UTC) }

func run(id string, on int, value float64, more ...func(*Run)) Run {
	r := Run{ID: id, Started: day(on), Status: result.Sound, Figures: map[string]float64{metric: value}}
	for _, m := range more {
		m(&r)
	}
	return r
}

func build(name string) func(*Run)      { return func(r *Run) { r.Build = name } }
func launch(name string) func(*Run)     { return func(r *Run) { r.Launch = name } }
func status(s result.Status) func(*Run) { return func(r *Run) { r.Status = s } }
func from(s Source) func(*Run)          { return func(r *Run) { r.Source = s } }
func interval(low, high float64) func(*Run) {
	return func(r *Run) { r.Intervals = map[string][2]float64{metric: {low, high}} }
}

func undated(r *Run) { r.Started = time.Time{} }

// shown is a history in a line: of each point its day, runs, value and interval.
func shown(h History) string {
	var b strings.Builder
	for _, p := range h.Points {
		fmt.Fprintf(&b, "%d:%s=%v", p.Time.Day(), strings.Join(p.Runs, "+"), p.Value)
		if p.Interval != nil {
			fmt.Fprintf(&b, "[%v,%v]", p.Interval.Low, p.Interval.High)
		}
		if p.Void {
			b.WriteString(" void")
		}
		b.WriteString("; ")
	}
	if h.Undated > 0 {
		fmt.Fprintf(&b, "%d undated", h.Undated)
	}
	return strings.TrimSuffix(b.String(), "; ")
}

func TestOf(t *testing.T) {
	without := run("x", 9, 1)
	without.Figures = map[string]float64{"mean_ttft_ms": 3}
	tests := []struct {
		name string
		by   By
		runs []Run
		want []string
	}{
		{"nothing", Launches, nil, nil},
		{"no run has the figure", Launches, []Run{without}, nil},
		{"runs without launches", Launches, []Run{run("b", 2, 20), run("a", 1, 10)}, []string{"1:a=10; 2:b=20"}},
		{"runs of one launch", Launches, []Run{run("a", 1, 10, launch("l")), run("b", 2, 20, launch("l")), run("c", 3, 60, launch("l"))}, []string{"1:a+b+c=20"}},
		{"launches of one build", Launches, []Run{run("a", 1, 10, build("v1")), run("b", 2, 20, build("v1"))}, []string{"1:a=10; 2:b=20"}},
		{"builds", Builds, []Run{run("a", 1, 10, build("v1")), run("b", 2, 20, build("v1")), run("c", 3, 40, build("v2"))}, []string{"1:a+b=15; 3:c=40"}},
		{"builds that take turns", Builds, []Run{run("a", 1, 10, build("v1")), run("b", 2, 40, build("v2")), run("c", 3, 30, build("v1"))}, []string{"1:a+c=20; 2:b=40"}},
		{"a launch with many runs counts once", Builds, []Run{
			run("a", 1, 10, build("v1"), launch("l")), run("b", 2, 10, build("v1"), launch("l")), run("c", 3, 10, build("v1"), launch("l")),
			run("d", 4, 30, build("v1"), launch("m")), run("e", 5, 50, build("v1"), launch("n")),
		}, []string{"1:a+b+c+d+e=30"}},
		{"builds that are not known", Builds, []Run{run("a", 1, 10), run("b", 2, 20), run("c", 3, 30, launch("l")), run("d", 4, 50, launch("l"))}, []string{"1:a=10; 2:b=20; 3:c+d=40"}},
		{"void", Launches, []Run{run("a", 1, 10), run("b", 2, 99, status(result.Voided)), run("c", 3, 30, status(result.Noted))}, []string{"1:a=10; 2:b=99 void; 3:c=30"}},
		{"void beside sound", Builds, []Run{run("a", 1, 99, build("v"), status(result.Voided)), run("b", 2, 20, build("v"))}, []string{"2:b=20"}},
		{"sources", Launches, []Run{
			run("a", 1, 10, from(Source{Simulated: true})), run("b", 2, 20), run("c", 3, 30, from(Source{Client: "guidellm"})),
			run("d", 4, 40, from(Source{Simulated: true, Predicted: true})), run("e", 5, 50),
		}, []string{"2:b=20; 5:e=50", "3:c=30", "1:a=10", "4:d=40"}},
		{"one launch name in two sources", Launches, []Run{run("a", 1, 10, launch("l")), run("b", 2, 20, launch("l"), from(Source{Simulated: true}))}, []string{"1:a=10", "2:b=20"}},
		{"names of a build, a launch and a run", Builds, []Run{run("x", 1, 10), run("a", 2, 20, launch("x")), run("b", 3, 30, build("x"))}, []string{"1:x=10; 2:a=20; 3:b=30"}},
		{"without a date", Launches, []Run{run("a", 1, 10), run("b", 1, 20, undated)}, []string{"1:a=10; 1 undated"}},
		{"no date at all", Launches, []Run{run("b", 1, 20, undated)}, []string{"1 undated"}},
		{"an interval", Launches, []Run{run("a", 1, 10, interval(8, 13))}, []string{"1:a=10[8,13]"}},
		{"intervals", Builds, []Run{run("a", 1, 10, build("v"), interval(8, 13)), run("b", 2, 20, build("v"), interval(16, 27))}, []string{"1:a+b=15[12,20]"}},
		{"one of two has an interval", Builds, []Run{run("a", 1, 10, build("v"), interval(8, 13)), run("b", 2, 20, build("v"))}, []string{"1:a+b=15"}},
	}
	mix := rand.New(rand.NewPCG(1, 2))
	for _, tt := range tests {
		for range 3 {
			all, err := Of(tt.runs, []string{metric}, tt.by)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, h := range all {
				got = append(got, shown(h))
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("%s: %s", tt.name, d)
			}
			mix.Shuffle(len(tt.runs), func(i, j int) { tt.runs[i], tt.runs[j] = tt.runs[j], tt.runs[i] })
		}
	}
}

func TestUnknownMetric(t *testing.T) {
	if _, err := Of([]Run{run("a", 1, 10)}, []string{"p99_tfft_ms"}, Launches); err == nil || !strings.Contains(err.Error(), "p99_tfft_ms") {
		t.Errorf("error %v, want one that names it", err)
	}
}

// A slower build is found, said to be worse by the metric table, and only its own source is.
func TestFind(t *testing.T) {
	var runs []Run
	for i := range 20 {
		value, name := 100+float64(i*7%5), fmt.Sprintf("v%02d", i)
		runs = append(runs, run("sim"+name, i+1, value, build(name), from(Source{Simulated: true})))
		if i >= 12 {
			value *= 1.2
		}
		runs = append(runs, run(name, i+1, value, build(name)))
	}
	all, err := Of(runs, []string{metric}, Builds)
	if err != nil || len(all) != 2 {
		t.Fatalf("%d histories: %v", len(all), err)
	}
	found, err := all[0].Find(drift.Options{})
	if err != nil || len(found.Changes) != 1 {
		t.Fatalf("%+v: %v", found, err)
	}
	c := found.Changes[0]
	if at := all[0].Points[c.Index]; at.Build != "v12" || c.Outcome != drift.Worsened || c.Standing != drift.Confirmed || c.Builds != 8 {
		t.Errorf("from build %s on: %+v", at.Build, c)
	}
	if found, err := all[1].Find(drift.Options{}); err != nil || found.State.Status != drift.Steady {
		t.Errorf("simulated: %+v: %v", found, err)
	}
	if _, err := all[0].Find(drift.Options{Least: -1}); err == nil || !strings.Contains(err.Error(), metric) {
		t.Errorf("error %v, want one that names the metric", err)
	}
	if _, err := json.Marshal(all); err != nil {
		t.Errorf("a history has no JSON: %v", err)
	}
	if !slices.IsSortedFunc(all[0].Values(), func(a, b drift.Point) int { return a.Time.Compare(b.Time) }) {
		t.Error("points are not in order of time")
	}
}

// The directions of the two packages have the same numbers.
func TestDirections(t *testing.T) {
	for d, r := range map[drift.Better]result.Better{drift.Higher: result.Higher, drift.Lower: result.Lower, drift.Neither: result.Neither} {
		if int(d) != int(r) {
			t.Errorf("%d of drift is %d of the metric table", d, r)
		}
	}
}
