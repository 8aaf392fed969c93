package bench

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/load"
	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/workload"
)

func seconds(s float64) time.Duration { return time.Duration(s * 1e9) }

// TestSeries: each run has a directory and requests of its own, and the file
// holds them all.
func TestSeries(t *testing.T) {
	l := listen(t)
	dir := filepath.Join(t.TempDir(), "s")
	w := workload.Spec{NumPrompts: 4, RandomInputLen: 8, RandomOutputLen: 2, Seed: 5, Nonce: "n"}
	s := Series{
		Bench: Runner{Spec: l.spec(w), Dir: dir}, Kind: KindSweep, MaxErrors: 0.01,
		Plan: &fixedPlan{[]Step{{Load: Load{AxisRate, 100}}, {Load: Load{AxisRate, 100}, Requests: 7}, {Load: Load{Axis: Throughput}}}},
	}
	facts, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if prompts, _ := l.take(); len(prompts) != 15 || len(slices.Compact(slices.Sorted(slices.Values(prompts)))) != 15 {
		t.Errorf("of %d prompts some were sent twice", len(prompts))
	}
	type row struct {
		Dir, Nonce string
		Seed       uint64
		Requests   int
	}
	var got []row
	for _, p := range facts.Points {
		got = append(got, row{p.Dir, p.Nonce, p.Seed, p.Requests})
		if r, err := rundir.OpenRun(filepath.Join(dir, p.Dir)); err != nil || len(r.Calls) != p.Requests || r.Partial {
			t.Errorf("%s: %v", p.Dir, err)
		}
	}
	want := []row{{"rate-100", "n", 5, 4}, {"rate-100-2", "n-2", 6, 7}, {"throughput", "n-3", 7, 4}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	var stored SeriesFacts
	if err := rundir.ReadJSON(filepath.Join(dir, "sweep.json"), &stored); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(*facts, stored); d != "" {
		t.Errorf("the file differs:\n%s", d)
	}
	if facts.Stop.Code != StopDone {
		t.Errorf("%+v", facts.Stop)
	}
	again, damage, err := OpenSeries(dir)
	if err != nil || len(damage) > 0 {
		t.Fatalf("%v, %q", err, damage)
	}
	if d := cmp.Diff(facts, again); d != "" {
		t.Errorf("computed again from the calls:\n%s", d)
	}
	if _, err := s.Run(t.Context()); err == nil {
		t.Error("a series was overwritten")
	}
}

// TestOpenSeries: figures come from the calls; where those are gone, from the
// series' file, and that is said.
func TestOpenSeries(t *testing.T) {
	l := listen(t)
	dir := filepath.Join(t.TempDir(), "s")
	s := Series{
		Bench: Runner{Spec: l.spec(workload.Spec{NumPrompts: 4, RandomInputLen: 8, RandomOutputLen: 2}), Dir: dir},
		Kind:  KindRepeat, Plan: Repeat(2), MaxErrors: 0.01, Percentiles: []float64{90}, Sections: []string{"ttft"},
	}
	facts, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "run-1")); err != nil {
		t.Fatal(err)
	}
	calls := filepath.Join(dir, "run-2", rundir.CallsFile)
	b, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(b, []byte("\n"))
	if err := os.WriteFile(calls, bytes.Join(lines[1:], nil), 0o644); err != nil {
		t.Fatal(err)
	}
	got, damage, err := OpenSeries(dir, 12.5)
	if err != nil || len(damage) != 1 || !strings.Contains(damage[0], "run 1: the figures are those stored in repeat.json") {
		t.Fatalf("%v, %q", err, damage)
	}
	if d := cmp.Diff(facts.Points[0], got.Points[0]); d != "" {
		t.Errorf("the stored point:\n%s", d)
	}
	figures := got.Points[1].Summary.Figures
	if _, ok := figures["p12.5_ttft_ms"]; !ok || figures["completed"] != 3 {
		t.Errorf("not computed again: %v", figures)
	}
	if !got.Points[1].Partial || slices.ContainsFunc(got.Spread, func(s result.Spread) bool { return s.Runs > 1 }) {
		t.Errorf("a run that lost a call is as good as before: %+v", got.Spread)
	}
	if d := cmp.Diff([]float64{90}, got.Percentiles); d != "" {
		t.Error(d)
	}

	for name, text := range map[string]string{"no point": `{"points": []}`, "cut": "{"} {
		if err := os.WriteFile(filepath.Join(dir, "repeat.json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, _, err := OpenSeries(dir); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, _, err := OpenSeries(t.TempDir()); err == nil || rundir.IsSeries(t.TempDir()) {
		t.Error("an empty directory is a series")
	}
}

// TestSeriesInterrupted: what was measured stays, and the file says why the
// rest is missing.
func TestSeriesInterrupted(t *testing.T) {
	l := listen(t)
	dir := filepath.Join(t.TempDir(), "s")
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("enough")
	s := Series{
		Bench: Runner{Spec: l.spec(workload.Spec{NumPrompts: 3, RandomInputLen: 8, RandomOutputLen: 2}), Dir: dir},
		Kind:  KindRepeat, Plan: Repeat(5),
		OnEnd: func(p Point, _ *Outcome) {
			if p.Load.Value == 2 {
				cancel(stop)
			}
		},
	}
	facts, err := s.Run(ctx)
	if !errors.Is(err, stop) {
		t.Fatalf("%v", err)
	}
	if len(facts.Points) != 2 || facts.Stop.Code != StopInterrupted || facts.Points[1].Partial {
		t.Errorf("%d points, %+v", len(facts.Points), facts.Stop)
	}
	var stored SeriesFacts
	if err := rundir.ReadJSON(filepath.Join(dir, "repeat.json"), &stored); err != nil || stored.Stop.Code != StopInterrupted {
		t.Errorf("%v, %+v", err, stored.Stop)
	}
}

// TestSeriesWithoutServer: a series that measured nothing leaves nothing.
func TestSeriesWithoutServer(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	spec := Spec{Targets: []string{"http://127.0.0.1:1"}, Backend: "openai", Model: "m", Workload: workload.Spec{NumPrompts: 1}.Defaults()}
	s := Series{Bench: Runner{Spec: spec, Dir: dir}, Kind: KindSweep, Plan: Repeat(2), OnStart: func(Step, *load.Progress) {}}
	if _, err := s.Run(t.Context()); err == nil {
		t.Error("nobody answered")
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("an empty directory is left")
	}
}

// TestSeriesFits: a trace is not repeated, and a point asks for no more than it
// has.
func TestSeriesFits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace")
	if err := os.WriteFile(path, []byte(files["azure"]), 0o644); err != nil {
		t.Fatal(err)
	}
	s := Series{}
	w := workload.Spec{Dataset: "azure", Path: path, NumPrompts: 100, Rate: 5}.Defaults()
	if w, err := s.fitToDataset(w); err != nil || w.NumPrompts != 2 {
		t.Errorf("%d, %v", w.NumPrompts, err)
	}
	w.Path += "x"
	if _, err := s.fitToDataset(w); err == nil {
		t.Error("a missing file has rows")
	}
}

// TestSeriesOfGroups: a dataset that comes in groups is asked for whole ones.
func TestSeriesOfGroups(t *testing.T) {
	for _, w := range []workload.Spec{
		{Dataset: "shared-prefix", GSPNumGroups: 64, GSPPromptsPerGroup: 4, GSPSystemPromptLen: 8, GSPQuestionLen: 4, GSPOutputLen: 2},
		{Dataset: "prefix_repetition", PrefixRepetitionNumPrefixes: 4, PrefixRepetitionPrefixLen: 8, PrefixRepetitionSuffixLen: 4, PrefixRepetitionOutputLen: 2},
		{Dataset: "shared-prefix", GSPPromptsPerGroup: 4, GSPSystemPromptLen: 8, GSPQuestionLen: 4, GSPOutputLen: 2, Duration: "1s"},
	} {
		l := listen(t)
		spec := l.spec(w)
		spec.Workload.MaxConcurrency = 2
		s := Series{
			Bench: Runner{Spec: spec, Dir: filepath.Join(t.TempDir(), "s")}, Kind: KindSweep,
			Plan: &fixedPlan{[]Step{{Load: Load{AxisRate, 100}, Requests: 6}}},
		}
		facts, err := s.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := 8
		if w.Duration != "" {
			want = 6
		}
		if n := facts.Points[0].Requests; n != want {
			t.Errorf("%s: %d requests", w.Dataset, n)
		}
	}
}

// TestSeriesJudge: what a point misses is said with figures, and failures are
// among it.
func TestSeriesJudge(t *testing.T) {
	slo, err := result.ParseSLO("p99_ttft_ms <= 500")
	if err != nil {
		t.Fatal(err)
	}
	least, err := result.ParseSLO("output_throughput >= 10")
	if err != nil {
		t.Fatal(err)
	}
	judge := func(status result.Status, figures map[string]float64) Point {
		var p Point
		p.Judge(&Outcome{Summary: result.Summary{Figures: figures, Verdict: result.Verdict{Status: status}}}, []result.SLO{slo, least}, 0.01)
		return p
	}
	p := judge(result.Sound, map[string]float64{"completed": 99, "failed": 1, "p99_ttft_ms": 500, "output_throughput": 10})
	if !p.Meets() {
		t.Errorf("%+v", p.Missed)
	}
	p = judge(result.Noted, map[string]float64{"completed": 90, "failed": 10, "p99_ttft_ms": 512.34567})
	if d := cmp.Diff([]string{"p99_ttft_ms 512.3 > 500", "output_throughput is absent", "10 of 100 calls failed"}, p.Missed); d != "" || p.Void {
		t.Errorf("void %v\n%s", p.Void, d)
	}
	if p = judge(result.Voided, map[string]float64{"completed": 0, "failed": 10}); p.Void || p.Meets() {
		t.Error("a server that answers nothing has missed, and the measurement is not void")
	}
	if p = judge(result.Voided, map[string]float64{"completed": 9, "failed": 0, "p99_ttft_ms": 1, "output_throughput": 90}); !p.Void || p.Meets() {
		t.Errorf("%+v", p)
	}
}

// TestSeriesOfMissedRates: a point says of one cause alone that it kept its rate down.
func TestSeriesOfMissedRates(t *testing.T) {
	for cause, want := range map[string]Point{"saturation": {Saturated: true}, "concurrency_limit": {Capped: true}, "dispatch_lag": {}} {
		var p Point
		p.Judge(&Outcome{Summary: result.Summary{Figures: map[string]float64{"completed": 99, "failed": 0}, Verdict: result.Verdict{Status: result.Noted, Checks: []result.Check{
			{Name: cause, Status: result.Noted}, {Name: "saturation", Status: result.Sound}, {Name: "concurrency_limit", Status: result.Sound},
		}}}}, nil, 0.01)
		if p.Saturated != want.Saturated || p.Capped != want.Capped {
			t.Errorf("%s: saturated %v, capped %v", cause, p.Saturated, p.Capped)
		}
	}
}

// TestSpreadsStayPossible: no interval of a figure that cannot be negative begins below
// zero, none of a share ends above 1, and two runs far apart have none.
func TestSpreadsStayPossible(t *testing.T) {
	point := func(throughput, success, ttft float64) Point {
		return Point{Summary: result.Summary{Figures: map[string]float64{"output_throughput": throughput, "success_rate": success, "mean_ttft_ms": ttft}}}
	}
	found := map[string]result.Spread{}
	for _, s := range Spreads([]Point{point(323, 0.97, 10), point(383, 0.99, 90)}) {
		found[s.Metric] = s
	}
	s := found["output_throughput"]
	if s.Low == nil || *s.Low <= 0 || *s.Low >= 323 || *s.High <= 383 {
		t.Errorf("output throughput of 323 and 383 tok/s: %+v", s)
	}
	if s = found["success_rate"]; s.Low == nil || *s.Low <= 0 || *s.High > 1 {
		t.Errorf("success rate of 0.97 and 0.99: %+v", s)
	}
	if s = found["mean_ttft_ms"]; s.Low != nil || s.CV == nil {
		t.Errorf("TTFT of 10 and 90 ms: %+v", s)
	}
}
