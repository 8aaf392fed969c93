package science

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/engine"
	"perflab/internal/engine/logs"
	"perflab/internal/stat"
	"perflab/internal/tune"
)

// tiny is a landscape that is swept in a moment: a fraction of its load, and two
// values of what has more.
func tiny(l Landscape) Landscape {
	l.Load.Requests = 30
	narrow := map[string][]string{}
	for name, values := range l.Narrow {
		narrow[name] = values
		switch name {
		case engine.MemoryShare:
			narrow[name] = values[:min(2, len(values))]
		case engine.MaxNumSeqs, engine.MaxBatched:
			narrow[name] = []string{values[0], values[len(values)-1]}
		}
	}
	l.Narrow = narrow
	return l
}

func landscape(t *testing.T, name string) Landscape {
	t.Helper()
	for _, l := range Suite() {
		if l.Name == name {
			return l
		}
	}
	t.Fatalf("no landscape is called %s", name)
	return Landscape{}
}

func open(t *testing.T, l Landscape) *World {
	t.Helper()
	w, err := Open(l)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestSuite: what is written down is sound, without a replay of all of it.
func TestSuite(t *testing.T) {
	names, found := map[string]bool{}, 0
	for _, l := range Suite() {
		if names[l.Name] {
			t.Errorf("two landscapes are called %s", l.Name)
		}
		names[l.Name] = true
		if !l.Equal {
			found++
		}
		if err := l.Objective.Validate(); err != nil {
			t.Errorf("%s: %v", l.Name, err)
		}
		if n := l.Noise.Launch; n < 0.005 || n > 0.04 {
			t.Errorf("%s: launches differ by %v", l.Name, n)
		}
		w := &World{Landscape: l}
		product, base := w.product(), key(l.Baseline)
		in := false
		for _, c := range product {
			in = in || key(c) == base
		}
		if !in {
			t.Errorf("%s: the baseline %s is none of its %d configurations", l.Name, base, len(product))
		}
		if n := len(product); n < 150 || n > 2500 {
			t.Errorf("%s has %d configurations", l.Name, n)
		}
	}
	if found < 20 {
		t.Errorf("%d landscapes have something to find, want at least 20", found)
	}
}

// TestRefusals: every refusal is diagnosed, as an engine's is, and some engine of its
// landscape meets it.
func TestRefusals(t *testing.T) {
	for _, l := range Suite() {
		w := &World{Landscape: l}
		for i, r := range l.Refusals {
			met := 0
			for _, c := range w.product() {
				if !r.When(c, engine.Config{}) {
					continue
				}
				met++
				e, err := engine.ByName(c["engine"])
				if err != nil {
					t.Fatal(err)
				}
				if f, ok := logs.Diagnose(e.Name, r.Log); !ok || f.Infra {
					t.Fatalf("%s, refusal %d: %s does not know the log: %+v", l.Name, i, c["engine"], f)
				}
			}
			if met == 0 {
				t.Errorf("%s, refusal %d is met by no configuration", l.Name, i)
			}
		}
	}
}

func TestBest(t *testing.T) {
	w := open(t, tiny(landscape(t, "30b-a3b-h100-chat")))
	best, figures := w.Best()
	if r := w.Regret(best); r != 0 {
		t.Errorf("the regret of the best is %v", r)
	}
	for _, c := range w.valid {
		f, why := w.Truth(c)
		switch r := w.Regret(c); {
		case why != "" && r != 1:
			t.Errorf("%s cannot run (%s) and has regret %v", key(c), why, r)
		case why == "" && math.Abs(1-f[w.Objective.Metric]/figures[w.Objective.Metric]-r) > 1e-12:
			t.Errorf("%s has regret %v of %v, the best %v", key(c), r, f[w.Objective.Metric], figures[w.Objective.Metric])
		}
	}
	if w.Regret(tune.Config{"engine": "nobody"}) != 1 {
		t.Error("what cannot run has no full loss")
	}
}

// TestConstraints: what misses a constraint by more than a twentieth is all lost.
func TestConstraints(t *testing.T) {
	w := &World{Landscape: Landscape{Objective: throughput()}, objective: under(atMost("p99_ttft_ms", 100))}
	for v, want := range map[float64]bool{90: false, 104: false, 106: true} {
		if got := w.misses(map[string]float64{"p99_ttft_ms": v}); got != want {
			t.Errorf("p99 TTFT of %v ms at a limit of 100: missed %v, want %v", v, got, want)
		}
	}
	if !w.misses(nil) {
		t.Error("a missing figure passes")
	}
}

// TestObservations: an observation is a function of landscape, seed and proposal, and
// as noisy as it says.
func TestObservations(t *testing.T) {
	l := tiny(landscape(t, "8b-h100-chat"))
	l.Noise = Noise{Launch: 0.02, Within: 0.005}
	w, again := open(t, l), open(t, l)
	p := tune.Proposal{Trial: 3, Config: w.Baseline, Workloads: []string{workload}}
	if d := cmp.Diff(w.Evaluate(p, 7), again.Evaluate(p, 7)); d != "" {
		t.Errorf("the same proposal, twice:\n%s", d)
	}
	truth, _ := w.Truth(w.Baseline)
	var logs []float64
	other := 0
	for trial := range 400 {
		p.Trial = trial + 1
		o := w.Evaluate(p, 7)
		if o.Status != tune.Measured {
			other++
			continue
		}
		logs = append(logs, math.Log(o.Figures[workload][w.Objective.Metric]/truth[w.Objective.Metric]))
	}
	if mean, sd := stat.Mean(logs), stat.StdDev(logs); math.Abs(mean) > 0.004 || math.Abs(sd-0.0206) > 0.003 {
		t.Errorf("400 launches are off by %.4f and differ by %.4f, want 0 and 0.0206", mean, sd)
	}
	if other == 0 || other > 30 {
		t.Errorf("%d of 400 launches break, want some", other)
	}
	p.Share = 0.5
	if whole, half := truth["completed"], w.cell(p.Config, 0.5, true).figures["completed"]; half >= whole {
		t.Errorf("half of the load has %v requests, all of it %v", half, whole)
	}
}

// TestRepair: an engine that refuses a configuration says what to change, and the
// change leads to one that runs.
func TestRepair(t *testing.T) {
	w := open(t, tiny(landscape(t, "trap-memory")))
	c := tune.Config{"engine": "vllm", "model": qwen14}
	o := w.Evaluate(tune.Proposal{Trial: 1, Config: c, Workloads: []string{workload}}, 1)
	if o.Status != tune.Refused || !strings.Contains(o.Reason, "out of memory") || len(o.Moves) == 0 {
		t.Fatalf("want a refusal with a repair, got %+v", o)
	}
	if _, why := w.Truth(o.Moves[0].Apply(c)); why != "" {
		t.Errorf("the repair %v does not run: %s", o.Moves[0], why)
	}
}

func TestEqual(t *testing.T) {
	w := open(t, tiny(landscape(t, "equal-quiet")))
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
