package trend_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"perflab/internal/drift"
	"perflab/internal/field"
	"perflab/internal/lineage"
	"perflab/internal/result"
	"perflab/internal/store"
	"perflab/internal/test/storetest"
	"perflab/internal/trend"
)

const serve = "vllm serve Qwen/Qwen3-8B -tp 2"

// nightly writes n runs of one configuration, 80 minutes apart, whose throughput falls by 10 %
// at from; two runs of each build.
func nightly(t *testing.T, root string, n, from int) {
	t.Helper()
	for i := range n {
		v := 1000 + float64(i*7%5)
		if i >= from {
			v *= 0.9
		}
		storetest.Run{N: 80 * i, Command: serve, Build: fmt.Sprintf("build-%02d", i/2), Figures: map[string]float64{"output_throughput": v}}.Write(t, root, fmt.Sprintf("n-%02d", i))
	}
}

func open(t *testing.T, root string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Roots: []string{root}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if _, err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func history(t *testing.T, l trend.Line, metric string) trend.History {
	t.Helper()
	for _, h := range l.Histories {
		if h.Metric == metric {
			return h
		}
	}
	t.Fatalf("there is no history of %s among %d", metric, len(l.Histories))
	return trend.History{}
}

func TestList(t *testing.T) {
	root := t.TempDir()
	nightly(t, root, 24, 16)
	storetest.Run{N: 80, Command: serve, Simulated: true}.Write(t, root, "simulated")
	storetest.Run{N: 2000, Command: serve, Status: result.Voided, Figures: map[string]float64{"output_throughput": 1}}.Write(t, root, "void")
	storetest.Run{N: 80, Command: "vllm serve Qwen/Qwen3-8B -tp 4"}.Write(t, root, "other")
	s := open(t, root)

	lines, err := trend.List(t.Context(), s, trend.Options{Now: storetest.Began.AddDate(0, 1, 0)})
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) != 3 {
		t.Fatalf("%d lines, want the nightly one, the simulated and the other", len(lines))
	}
	l := lines[0]
	if l.Runs != 25 || l.Voided != 1 || l.Builds != 12 || l.Standing() != trend.Worse || !l.Stale() || l.Source != (lineage.Source{}) {
		t.Errorf("the line is %d runs, %d void, %d builds, %s, stale %t, source %+v", l.Runs, l.Voided, l.Builds, l.Standing(), l.Stale(), l.Source)
	}
	h := history(t, l, "output_throughput")
	if c := h.Last(); c == nil || h.Points[c.Index].Build != "build-08" || c.Standing != drift.Confirmed || len(h.Changes) != 1 {
		t.Fatalf("changes %+v", h.Changes)
	}
	if h.Void != 1 || h.Counted != 24 || h.Newest().Void {
		t.Errorf("%d void, %d count", h.Void, h.Counted)
	}
	if p := history(t, l, "p99_ttft_ms").Points[0]; p.Low == nil || p.Value-*p.Low != 5 {
		t.Errorf("the interval of a point is lost: %+v", p)
	}
	for _, other := range lines[1:] {
		if other.Standing() != trend.TooFew || other.Runs != 1 {
			t.Errorf("%s: %d runs, %s", other.Key, other.Runs, other.Standing())
		}
	}
	if lines[1].Source == lines[2].Source {
		t.Error("what was simulated is a line with what was measured")
	}
	if _, err := json.Marshal(lines); err != nil {
		t.Error(err)
	}
}

func TestFind(t *testing.T) {
	root := t.TempDir()
	nightly(t, root, 24, 24)
	storetest.Run{N: 80, Command: "vllm serve Qwen/Qwen3-8B -tp 4"}.Write(t, root, "other")
	s := open(t, root)
	now := storetest.Began.Add(32 * time.Hour)
	lines, err := trend.List(t.Context(), s, trend.Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	key := lines[0].Key
	for _, way := range []string{key, key[:6], lines[0].Entries[3].ID, lines[0].Entries[3].ID[:20]} {
		l, err := trend.Find(t.Context(), s, way, trend.Options{Now: now, By: lineage.Builds, Metrics: []string{"output_throughput"}})
		if err != nil || l.Key != key {
			t.Fatalf("%s: %s, %v", way, l.Key, err)
		}
		h := history(t, l, "output_throughput")
		if len(l.Histories) != 1 || len(h.Points) != 12 || h.Standing() != trend.Steady || h.Age.Stale {
			t.Errorf("%s: %d histories, %d points, %s, stale %t", way, len(l.Histories), len(h.Points), h.Standing(), h.Age.Stale)
		}
		if e, ok := l.Entry(h.Points[2].Runs[1]); !ok || e.Build != h.Points[2].Build {
			t.Errorf("the second run of the third point is %+v", e)
		}
	}
	var missing *trend.NotFoundError
	for _, way := range []string{"", "n", "ffffffffffff00", "abc"} {
		if _, err := trend.Find(t.Context(), s, way, trend.Options{}); !errors.As(err, &missing) {
			t.Errorf("%q: %v", way, err)
		}
	}
}

// TestErrors: what cannot be is said with its name.
func TestErrors(t *testing.T) {
	s := open(t, t.TempDir())
	for says, o := range map[string]trend.Options{
		"p99_tfft":         {Metrics: []string{"p99_tfft_ms"}},
		"the least change": {Least: -1},
		"the level":        {Level: 2},
		"persist":          {Persist: -1},
	} {
		_, err := trend.List(t.Context(), s, o)
		if _, ok := errors.AsType[*field.Error](err); !ok || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
	_, err := trend.List(t.Context(), s, trend.Options{Filter: "engin=vllm"})
	if err == nil || !strings.Contains(err.Error(), "filter, character 1: ") || !strings.Contains(err.Error(), "did you mean engine?") {
		t.Errorf("filter: %v", err)
	}
	if lines, err := trend.List(t.Context(), s, trend.Options{}); err != nil || len(lines) != 0 {
		t.Errorf("of nothing there are %d lines: %v", len(lines), err)
	}
}

// TestLaunches: the runs of a series share a server, and are one point.
func TestLaunches(t *testing.T) {
	root := t.TempDir()
	storetest.Study(t, root, "study", 1, 3)
	lines, err := trend.List(t.Context(), open(t, root), trend.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lines {
		if h := history(t, l, "output_throughput"); len(h.Points) != l.Runs {
			t.Errorf("%d runs of trials of their own are %d points", l.Runs, len(h.Points))
		}
	}
	if len(lines) != 3 {
		t.Errorf("%d lines of three configurations", len(lines))
	}
}
