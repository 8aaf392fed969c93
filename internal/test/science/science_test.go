package science

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/calib"
	"perflab/internal/engine"
	"perflab/internal/engine/logs"
	"perflab/internal/result"
	"perflab/internal/sim"
	"perflab/internal/stat"
	"perflab/internal/tune"
)

// drawn is a small landscape of a class.
func drawn(t *testing.T, class string, seed uint64) *World {
	t.Helper()
	i := slices.IndexFunc(Classes(), func(c Class) bool { return c.Name == class })
	if i < 0 {
		t.Fatalf("no class is called %s", class)
	}
	w, err := Draw(Classes()[i].Small(), seed)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestDraw: every class can be drawn, another seed is another landscape, and the same
// seed the same.
func TestDraw(t *testing.T) {
	for _, c := range Classes() {
		w := drawn(t, c.Name, 1)
		if err := w.Objective.Validate(); err != nil {
			t.Errorf("%s: %v", w.Name, err)
		}
		if !slices.ContainsFunc(w.valid, func(c tune.Config) bool { return key(c) == key(w.Baseline) }) {
			t.Errorf("%s: the baseline %s is none of the %d configurations", w.Name, key(w.Baseline), len(w.valid))
		}
		if r := w.Regret(w.Baseline); c.equal && r != 0 {
			t.Errorf("%s: where all are equal the baseline loses %v", w.Name, r)
		}
		for _, s := range w.Subject {
			if !slices.ContainsFunc(w.valid, has(s)) {
				t.Errorf("%s is about %s, which no configuration has", w.Name, said(s))
			}
		}
	}
	one, again, other := drawn(t, "dense", 1), drawn(t, "dense", 1), drawn(t, "dense", 2)
	if one.About() != again.About() || key(one.best) != key(again.best) {
		t.Errorf("the same seed is %s and %s", one.About(), again.About())
	}
	if one.About() == other.About() {
		t.Errorf("two seeds are %s", one.About())
	}
}

// TestLogs: what an engine prints that has no memory is known, with a repair, and of
// what says nothing nothing is known.
func TestLogs(t *testing.T) {
	for name, log := range memoryLogs {
		if f, ok := logs.Diagnose(name, log); !ok || f.Infra {
			t.Errorf("%s does not know its log: %+v", name, f)
		}
		if f, ok := logs.Diagnose(name, unknownLog); ok {
			t.Errorf("%s knows %q: %+v", name, unknownLog, f)
		}
	}
}

// TestFigures: they are package result's.
func TestFigures(t *testing.T) {
	for _, class := range []string{"dense", "slo"} {
		w := drawn(t, class, 1)
		p := w.plan(w.Baseline)
		o := sim.ReplayOptions{MaxConcurrency: w.Load.Concurrency, Seed: w.Seed}
		calls, err := calib.Calls(p.cfg, p.replicas, slices.Values(w.jobs), o)
		if err != nil {
			t.Fatal(err)
		}
		want, err := result.Summarize(result.Header{Simulated: true, Predicted: true, Requests: len(w.jobs), Rate: w.Load.Rate, Limit: w.Load.Concurrency}, nil, result.Options{}, calls)
		if err != nil {
			t.Fatal(err)
		}
		outcomes, err := sim.Replay(p.cfg, p.replicas, slices.Values(w.jobs), o)
		if err != nil {
			t.Fatal(err)
		}
		for name, v := range figures(slices.Collect(outcomes)) {
			if ref, ok := want.Figures[name]; !ok || math.Abs(v/ref-1) > 1e-6 {
				t.Errorf("%s: %s is %v, by package result %v", w.Name, name, v, ref)
			}
		}
	}
}

// TestShared: a replay that serves several configurations is the one that each would
// have had.
func TestShared(t *testing.T) {
	for _, class := range []string{"dense", "experts", "slo", "equal usual"} {
		w := drawn(t, class, 2)
		compared := 0
		for i := 0; i < len(w.valid); i += 5 {
			c := w.valid[i]
			got, refused := w.Predict(c, workload)
			fresh := *w
			fresh.replays, fresh.cells = map[familyKey][]*replayed{}, map[cellKey]*cell{}
			want, same := fresh.Predict(c, workload)
			if d := cmp.Diff(want, got); d != "" || refused != same {
				t.Fatalf("%s, %s: shared and own replay:\n%s", w.Name, key(c), d)
			}
			compared++
		}
		if w.made >= 2*len(w.valid) {
			t.Errorf("%s: %d replays for %d configurations: none is shared", w.Name, w.made, len(w.valid))
		}
		t.Logf("%s: %d compared, %d replays for %d configurations in truth and as predicted", w.Name, compared, w.made, len(w.valid))
	}
}

func TestBest(t *testing.T) {
	w := drawn(t, "experts", 1)
	best, figures := w.Best()
	if r := w.Regret(best); r != 0 {
		t.Errorf("the regret of the best is %v", r)
	}
	for _, c := range w.valid {
		f, why := w.Truth(c)
		have, want := f[w.Objective.Metric], figures[w.Objective.Metric]
		if !w.Objective.Higher {
			have, want = want, have
		}
		switch r := w.Regret(c); {
		case why != "" && r != 1:
			t.Errorf("%s cannot run (%s) and has regret %v", key(c), why, r)
		case why == "" && !w.misses(f) && math.Abs(max(0, 1-have/want)-r) > 1e-12:
			t.Errorf("%s has regret %v of %v, the best %v", key(c), r, have, want)
		}
	}
	if w.Regret(tune.Config{"engine": "nobody"}) != 1 {
		t.Error("what cannot run has no full loss")
	}
}

// TestConstraints: what misses a constraint by more than a twentieth is all lost.
func TestConstraints(t *testing.T) {
	w := &World{Landscape: Landscape{Objective: tune.Objective{SLOs: []tune.Bound{{Metric: "p99_ttft_ms", Op: "<=", Limit: 100}}}}}
	for v, want := range map[float64]bool{90: false, 104: false, 106: true} {
		if got := w.misses(map[string]float64{"p99_ttft_ms": v}); got != want {
			t.Errorf("p99 TTFT of %v ms at a limit of 100: missed %v, want %v", v, got, want)
		}
	}
	if !w.misses(nil) {
		t.Error("a missing figure passes")
	}
}

// TestObservations: an observation is a function of landscape, number of launches and
// proposal, as noisy as it says, noisier of an engine that is, and drifts where the
// machine does.
func TestObservations(t *testing.T) {
	w := drawn(t, "dense", 1)
	w.Noise = Noise{Launch: 0.02, Within: 0.005}
	p := tune.Proposal{Trial: 3, Config: w.Baseline, Workloads: []string{workload}}
	if d := cmp.Diff(w.Evaluate(p, 25), w.Evaluate(p, 25)); d != "" {
		t.Errorf("the same proposal, twice:\n%s", d)
	}
	truth, _ := w.Truth(w.Baseline)
	const name = "mean_e2el_ms"
	launches := func() (logs []float64, broken int) {
		for trial := range 400 {
			p.Trial = trial + 1
			o := w.Evaluate(p, 400)
			if o.Status != tune.Measured {
				broken++
				continue
			}
			logs = append(logs, math.Log(o.Figures[workload][name]/truth[name]))
		}
		return logs, broken
	}
	x, broken := launches()
	if mean, sd := stat.Mean(x), stat.StdDev(x); math.Abs(mean) > 0.004 || math.Abs(sd-0.0206) > 0.003 {
		t.Errorf("400 launches are off by %.4f and differ by %.4f, want 0 and 0.0206", mean, sd)
	}
	if broken == 0 || broken > 30 {
		t.Errorf("%d of 400 launches break, want some", broken)
	}
	w.Noise.Engine = map[string]float64{w.Baseline["engine"]: 4}
	if x, _ := launches(); math.Abs(stat.StdDev(x)-0.08) > 0.01 {
		t.Errorf("launches of a noisy engine differ by %.4f, want 0.08", stat.StdDev(x))
	}
	w.Noise = Noise{Launch: 0.001, Within: 0.001, Drift: 0.1}
	x, _ = launches()
	if first, last := stat.Mean(x[:20]), stat.Mean(x[len(x)-20:]); math.Abs(first) > 0.01 || math.Abs(last-0.1) > 0.01 {
		t.Errorf("a drift by 0.1 shows %.3f at first and %.3f in the end", first, last)
	}
	w.Noise.Jump = 0.5
	if x, _ = launches(); math.Abs(x[len(x)/4]) > 0.01 || math.Abs(x[3*len(x)/4]-0.1) > 0.01 {
		t.Errorf("a jump by 0.1 in the middle shows %.3f before and %.3f after", x[len(x)/4], x[3*len(x)/4])
	}
	p.Share = 0.5
	if whole, half := truth["completed"], w.cell(p.Config, 0.5, w.truth).figures["completed"]; half >= whole {
		t.Errorf("half of the load has %v requests, all of it %v", half, whole)
	}
}

// TestRepair: an engine that refuses a configuration for want of memory says what to
// change, one whose log says nothing does not, and what the guide knows is never proposed.
func TestRepair(t *testing.T) {
	w := drawn(t, "dense", 1)
	w.Narrow = maps.Clone(w.Narrow)
	w.Narrow[engine.MemoryShare] = []string{"", "0.85", "0.95"}
	w.Refusals = []Refusal{{When: func(c tune.Config) bool { return c["engine"] == "vllm" && c[engine.MemoryShare] != "0.85" }, Log: memoryLogs["vllm"]}}
	w.Engines, w.Baseline = []string{"sglang", "vllm"}, tune.Change{Set: tune.Config{"engine": "sglang"}}.Apply(w.Baseline)
	w.Busy, w.Thresholds, w.Effects, w.Objective.SLOs = 0, nil, nil, nil
	open := func() *World {
		t.Helper()
		again, err := Open(w.Landscape)
		if err != nil {
			t.Fatal(err)
		}
		return again
	}
	c := tune.Change{Set: tune.Config{"engine": "vllm"}}.Apply(w.Baseline)
	p := tune.Proposal{Trial: 1, Config: c, Workloads: []string{workload}}
	again := open()
	o := again.Evaluate(p, 25)
	if o.Status != tune.Refused || !strings.Contains(o.Reason, "out of memory") || len(o.Moves) == 0 {
		t.Fatalf("want a refusal with a repair, got %+v", o)
	}
	if _, why := again.Truth(o.Moves[0].Apply(c)); why != "" {
		t.Errorf("the repair %v does not run: %s", o.Moves[0], why)
	}
	w.Refusals[0].Log = unknownLog
	if o = open().Evaluate(p, 25); o.Status != tune.Refused || len(o.Moves) > 0 {
		t.Errorf("want a refusal without a repair, got %+v", o)
	}
	w.Refusals[0].Known = true
	if why := open().field.Refuse(c); why == "" {
		t.Error("the guide does not know what it knows")
	}
}

func TestEqual(t *testing.T) {
	w := drawn(t, "equal quiet", 1)
	for _, c := range w.valid {
		if r := w.Regret(c); r != 0 {
			t.Fatalf("%s has regret %v where all are equal", key(c), r)
		}
	}
	a, _ := w.Predict(w.valid[0], workload)
	b, _ := w.Predict(w.valid[len(w.valid)-1], workload)
	if a[w.Objective.Metric] == b[w.Objective.Metric] {
		t.Error("the predictor knows that all are equal")
	}
}
