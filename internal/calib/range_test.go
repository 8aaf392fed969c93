package calib

import (
	"math"
	"math/rand/v2"
	"testing"

	"perflab/internal/arch"
	"perflab/internal/engine"
	"perflab/internal/sim"
)

// TestIntervalCovers: of figures that are off by a bias, an error like those
// held out and a draw like those drawn, nine in ten lie in the range.
func TestIntervalCovers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		runs, draws       int
		bias, error, draw float64
	}{
		{10, 12, 0.05, 0.06, 0.04},
		{30, 12, -0.1, 0.1, 0},
		{6, 12, 0, 0.05, 0.1},
		{100, 30, 0, 0.02, 0.2},
	} {
		const tries = 4000
		held := 0
		for range tries {
			// What a fit would have found of that many held-out runs.
			var sum, square float64
			off := make([]float64, c.runs)
			for i := range off {
				off[i] = c.bias + c.error*r.NormFloat64()
				sum += off[i]
			}
			mean := sum / float64(c.runs)
			for _, x := range off {
				square += (x - mean) * (x - mean)
			}
			spread := normalRangeQuantile * math.Sqrt(square/float64(c.runs-1))
			var draws []map[string]float64
			for range c.draws {
				draws = append(draws, map[string]float64{Throughput: 100 * math.Exp(c.draw*r.NormFloat64())})
			}
			got := interval(100, spreadOf(draws, Throughput, 100), mean, spread*fewRuns(c.runs))
			truth := 100 * math.Exp(-c.bias-c.error*r.NormFloat64()+c.draw*r.NormFloat64())
			if got.Low <= truth && truth <= got.High {
				held++
			}
		}
		if share := float64(held) / tries; share < 0.88 || share > 0.97 {
			t.Errorf("%+v: %.1f %% lie in the range", c, 100*share)
		}
	}
}

// TestIntervalHoldsValue: the value is inside though the bias is larger than
// the range.
func TestIntervalHoldsValue(t *testing.T) {
	for _, bias := range []float64{-1, 1} {
		if r := interval(10, drawSpread{}, bias, 0.1); r.Low > 10 || r.High < 10 {
			t.Errorf("bias %v: %+v", bias, r)
		}
	}
}

// TestSpreadOfOneSide: draws that lean to one side widen that side.
func TestSpreadOfOneSide(t *testing.T) {
	var draws []map[string]float64
	for _, v := range []float64{9.9, 10, 9.8, 40, 80} {
		draws = append(draws, map[string]float64{MeanTTFT: v})
	}
	if d := spreadOf(draws, MeanTTFT, 10); d.down > 0.1 || d.up < 1 {
		t.Errorf("%+v", d)
	}
	if d := spreadOf(draws[:1], MeanTTFT, 10); d != (drawSpread{}) {
		t.Errorf("of one draw: %+v", d)
	}
}

// TestPaced: what is offered bounds a throughput above, and only a capacity
// that may be lower bounds it below.
func TestPaced(t *testing.T) {
	r := Range{100, 80, 125}
	if got := paced(r, drawSpread{}, 300, 104); got != (Range{100, 100, 104}) {
		t.Errorf("far from saturation: %+v", got)
	}
	if got := paced(r, drawSpread{}, 90, 104); got != (Range{100, 90, 104}) {
		t.Errorf("near it: %+v", got)
	}
	if got := paced(r, drawSpread{}, 60, 1000); got != r {
		t.Errorf("saturated: %+v", got)
	}
}

// TestErrorOf: the error of the engine where so much is new; of all engines where it has too
// few; else of what is newer, else, widened, of what is less new; parts stand for E2E.
func TestErrorOf(t *testing.T) {
	c := Calibration{Errors: []Error{
		{New: NothingNew, Engine: "vllm", Metric: Throughput, Runs: 25, Bias: 0.01, Spread: 0.05},
		{New: NothingNew, Engine: "sglang", Metric: Throughput, Runs: 4, Bias: -0.1, Spread: 0.08},
		{New: NothingNew, Engine: "", Metric: Throughput, Runs: 13, Bias: 0, Spread: 0.07},
		{New: SeveralNew, Engine: "", Metric: Throughput, Runs: 30, Bias: 0, Spread: 0.3},
		{New: SeveralNew, Engine: "", Metric: MeanTTFT, Runs: 30, Bias: -0.1, Spread: 0.3},
	}}
	for _, x := range []struct {
		engine string
		new    Novelty
		metric string
		spread float64
		widen  float64
	}{
		{"vllm", NothingNew, Throughput, 0.05, 1},
		{"sglang", NothingNew, Throughput, 0.07, 1},
		{"vllm", OneThingNew, Throughput, 0.3, 1},
		{"vllm", NewDevice, Throughput, 0.3, lessNew},
		{"vllm", SeveralNew, MeanE2E, 0.4, likeFigure},
		{"vllm", SeveralNew, MedianTTFT, 0.4, likeFigure},
	} {
		e, widen, ok := c.errorOf(x.engine, x.new, x.metric)
		if !ok || math.Abs(e.Spread-x.spread) > 1e-12 || widen != x.widen {
			t.Errorf("%+v: %+v, %v, %v", x, e, widen, ok)
		}
	}
	c.Errors = append(c.Errors, Error{New: SeveralNew, Engine: "", Metric: MeanTPOT, Runs: 30, Bias: 0, Spread: 0.35})
	if e, widen, ok := c.errorOf("vllm", SeveralNew, MeanE2E); !ok || math.Abs(e.Spread-0.4) > 1e-12 || widen != 1 {
		t.Errorf("E2E of both parts: %+v, %v, %v", e, widen, ok)
	}
	if _, _, ok := (&Calibration{}).errorOf("vllm", NothingNew, Throughput); ok {
		t.Error("an error of nothing")
	}
}

// TestDrawConstants: around their values, no share above 1, formats apart.
func TestDrawConstants(t *testing.T) {
	k, err := sim.Priors().With(
		sim.Set{Accelerator: "x", Values: map[string]float64{"t_step": 3, "moe_bandwidth": 0.99}, Spread: map[string]float64{"t_step": 0.05, "moe_bandwidth": 0.5}},
		sim.Set{Accelerator: "x", Format: arch.FP8, Values: map[string]float64{"gemm_compute": 0.2}, Spread: map[string]float64{"gemm_compute": 0.01}},
	)
	if err != nil {
		t.Fatal(err)
	}
	cfg := engine.Config{Engine: "vllm", GPU: arch.Accelerator{Name: "x1"}, Model: arch.Model{Format: arch.FP8}}
	var sum, square float64
	const n = 400
	for seed := range uint64(n) {
		d, err := drawConstants(k, cfg, seed)
		if err != nil {
			t.Fatal(err)
		}
		get := func(f arch.Format, name string) float64 {
			return d.Value(sim.Subject{Engine: "vllm", Accelerator: "x1", Format: f}, name)
		}
		x := math.Log(get(arch.FP8, "t_step") / 3)
		sum, square = sum+x, square+x*x
		if v := get(arch.FP8, "moe_bandwidth"); v > 1 {
			t.Fatalf("a share of %v", v)
		}
		if v := get(arch.FP8, "gemm_compute"); math.Abs(v/0.2-1) > 0.05 {
			t.Fatalf("FP8 products drawn at %v", v)
		}
		if v := get(arch.BF16, "gemm_compute"); v < 0.25 {
			t.Fatalf("16-bit products drawn at %v, which is FP8's", v)
		}
	}
	if sd := math.Sqrt(square/n - sum*sum/n/n); math.Abs(sd-0.05) > 0.006 {
		t.Errorf("spread %v, want 0.05", sd)
	}
}
