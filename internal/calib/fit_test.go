package calib

import (
	"maps"
	"math"
	"slices"
	"testing"

	"perflab/internal/sim"
)

// truth are constants moved from their priors, and runs that they made: the fit
// knows the loads and the figures.
func truth(t *testing.T) (*sim.Constants, []Observation) {
	t.Helper()
	k, err := sim.Priors().With(sim.Set{Accelerator: "a100-sxm-80", Values: map[string]float64{
		"gemm_compute": 0.5, "gemm_bandwidth": 0.85, "f_req": 3, "t_step": 4.5,
	}})
	if err != nil {
		t.Fatal(err)
	}
	var obs []Observation
	for _, l := range []struct {
		name string
		load Load
	}{
		{"prompts", Load{Requests: 40, Input: Lengths{Mean: 4000}, Output: Lengths{Mean: 20}}},
		{"answers", Load{Requests: 60, Input: Lengths{Mean: 100}, Output: Lengths{Mean: 200}}},
		{"alone", Load{Requests: 4, Concurrency: 1, Input: Lengths{Mean: 500}, Output: Lengths{Mean: 100}}},
		{"short", Load{Requests: 400, Input: Lengths{Mean: 30}, Output: Lengths{Mean: 2}}},
		{"open", Load{Requests: 120, Rate: 4, Arrival: "constant", Input: Lengths{Mean: 300}, Output: Lengths{Mean: 80, Shape: HalfNormal}}},
	} {
		b := Observation{ID: l.name, Study: "s", Workload: l.name, Load: l.load, Config: resolved(t, "vllm serve Qwen/Qwen3-14B", "a100-sxm-80", 1)}
		if b.Figures, err = replay(b.Config, 1, b.Load, k, 0); err != nil {
			t.Fatal(err)
		}
		obs = append(obs, b)
	}
	return k, obs
}

// TestFitRecovers: runs that the simulator made are predicted again, and give
// back the constants that no other can stand in for (t_layer does for t_step, and
// in decodes both for gemm_bandwidth).
func TestFitRecovers(t *testing.T) {
	k, obs := truth(t)
	f, err := Fit(obs, FitOptions{Each: onTwo})
	if err != nil {
		t.Fatal(err)
	}
	// A rate, or a time, is a constant's times those of the site, of the engine there and of
	// the family.
	of := sim.Subject{Engine: "vllm", Accelerator: "a100-sxm-80", Format: "bf16", Family: "qwen3"}
	for i, names := range [][]string{{"gemm_compute", "site_device", "rate_family"}, {"f_req", "site_host", "f_family"}} {
		name := names[0]
		value := func(c *sim.Constants) float64 {
			v := math.Pow(c.Value(of, "site_engine"), float64(2*i-1)) // a time's factor
			for _, n := range names {
				v *= c.Value(of, n)
			}
			return v
		}
		want, prior := value(k), value(sim.Priors())
		if got := value(f.Constants); math.Abs(math.Log(got/want)) > 0.2*math.Abs(math.Log(prior/want)) {
			t.Errorf("%s is %.4g, want %.4g; its prior is %.4g", name, got, want, prior)
		}
	}
	for _, r := range f.Residuals {
		if math.Abs(r.Off()) > 0.06 {
			t.Errorf("%s of %s is off by %.3f", r.Metric, r.ID, r.Off())
		}
	}
	for _, p := range f.Parameters {
		if !(p.Spread > 0) || p.Spread > p.PriorSpread {
			t.Errorf("%s: spread %v after the fit, %v before", p.Name, p.Spread, p.PriorSpread)
		}
	}
}

// TestGenerationsApart: runs of a version whose host work is a third leave the constants of
// versions before it nearly where they are, and are met by constants of their own.
func TestGenerationsApart(t *testing.T) {
	k, obs := truth(t)
	lean, err := k.With(sim.Set{Values: map[string]float64{"t_seq": k.Value(sim.SubjectOf(obs[0].Config), "t_seq") / 3, "f_req": k.Value(sim.SubjectOf(obs[0].Config), "f_req") / 3}})
	if err != nil {
		t.Fatal(err)
	}
	all := slices.Clone(obs)
	for _, b := range obs {
		b.ID, b.Study, b.Config.Generation = b.ID+" since", "another", "0.22"
		if b.Figures, err = replay(b.Config, 1, b.Load, lean, 0); err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	alone, err := Fit(obs, FitOptions{Each: onTwo})
	if err != nil {
		t.Fatal(err)
	}
	f, err := Fit(all, FitOptions{Each: onTwo})
	if err != nil {
		t.Fatal(err)
	}
	before := sim.SubjectOf(obs[0].Config)
	since := before
	since.Generation = "0.22"
	first, was, is := alone.Constants.Value(before, "f_req"), f.Constants.Value(before, "f_req"), f.Constants.Value(since, "f_req")
	if math.Abs(was/first-1) > 0.1 || is > 0.8*was {
		t.Errorf("f_req is %.3g of the runs before alone, %.3g beside later ones and %.3g of those", first, was, is)
	}
}

// TestOddRunMovesLittle: beside runs that fit, one whose engine fell back to kernels 14
// times as slow leaves the predictions of the others where they are.
func TestOddRunMovesLittle(t *testing.T) {
	_, obs := truth(t)
	odd := obs[1]
	odd.ID, odd.Study, odd.Figures = "odd", "another", maps.Clone(odd.Figures)
	for name, v := range odd.Figures {
		switch name {
		case Throughput:
			odd.Figures[name] = v / 14
		default:
			odd.Figures[name] = v * 14
		}
	}
	predicted := func(obs []Observation) map[string]float64 {
		f, err := Fit(obs, FitOptions{Each: onTwo})
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]float64{}
		for _, r := range f.Residuals {
			out[r.ID+" "+r.Metric] = r.Value
		}
		return out
	}
	without, with := predicted(obs), predicted(append(slices.Clone(obs), odd))
	for name, v := range without {
		if off := with[name]/v - 1; math.Abs(off) > 0.02 {
			t.Errorf("%s moves by %.3f for one odd run", name, off)
		}
	}
}

// TestHoldOutIsBlind: what is predicted of a held-out run does not depend on what
// it measured, to the last bit; what is predicted of the others does.
func TestHoldOutIsBlind(t *testing.T) {
	_, obs := truth(t)
	predicted := func(obs []Observation) map[string]float64 {
		folds, err := HoldOut(obs, func(b Observation) string { return b.Workload }, FitOptions{Each: onTwo})
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]float64{}
		for _, r := range HeldResiduals(folds) {
			out[r.ID+" "+r.Metric] = r.Value
		}
		return out
	}
	before := predicted(obs)
	for m := range obs[1].Figures {
		obs[1].Figures[m] *= 1.5
	}
	after := predicted(obs)
	if len(before) == 0 || len(before) != len(after) {
		t.Fatalf("%d and %d predictions", len(before), len(after))
	}
	moved := 0
	for k, v := range before {
		own := slices.Contains([]string{"answers " + Throughput, "answers " + MeanTTFT, "answers " + MeanTPOT, "answers " + MedianITL}, k)
		if own && after[k] != v {
			t.Errorf("%s: %v, with other measurements of the same run %v", k, v, after[k])
		}
		if !own && after[k] != v {
			moved++
		}
	}
	if moved == 0 {
		t.Error("no other prediction depends on the run")
	}
}

// TestReplayFigures: the figures that fits look at are those of result.Summarize.
func TestReplayFigures(t *testing.T) {
	_, obs := truth(t)
	for _, b := range obs {
		p, err := (&Calibration{}).Predict(Question{Config: b.Config, Load: b.Load, Draws: -1})
		if err != nil {
			t.Fatal(err)
		}
		figures, err := replay(b.Config, 1, b.Load, sim.Priors(), 0)
		if err != nil {
			t.Fatal(err)
		}
		for name, v := range figures {
			if w := p.Summary.Figures[name]; math.Abs(v/w-1) > 1e-9 {
				t.Errorf("%s of %s: %v, by Summarize %v", name, b.ID, v, w)
			}
		}
	}
}
