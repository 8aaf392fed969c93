package calib

import (
	"math"
	"reflect"
	"testing"

	"perflab/internal/arch"
	"perflab/internal/engine"
)

func observed(id, gpu, engineName, apart string, l Load) Observation {
	return Observation{ID: id, Apart: apart, Load: l, Config: engine.Config{
		Engine: engineName, GPU: arch.Accelerator{Name: gpu}, GPUs: 2, Model: arch.Model{Name: "m", Format: arch.BF16},
	}}
}

func TestErrors(t *testing.T) {
	obs := []Observation{
		observed("a", "x", "vllm", "", Load{}), observed("b", "x", "vllm", "", Load{}), observed("c", "x", "vllm", "", Load{}),
		observed("spec", "x", "vllm", "speculation", Load{}), observed("odd", "x", "sglang", "ambiguous: no", Load{}),
		observed("s", "x", "sglang", "speculation", Load{}),
	}
	residual := func(id, metric string, measured, value float64, n Novelty) Residual {
		return Residual{ID: id, Metric: metric, Measured: measured, Value: value, New: n}
	}
	held := []Residual{
		residual("a", Throughput, 100, 110, NothingNew), residual("b", Throughput, 100, 100, NothingNew), residual("c", Throughput, 100, 90.9091, NothingNew),
		residual("spec", Throughput, 100, 300, NothingNew), residual("odd", Throughput, 100, 300, NothingNew), residual("s", Throughput, 100, 120, SeveralNew),
		residual("a", MeanTTFT, 0, 1, NothingNew), residual("nobody", Throughput, 1, 1, NothingNew),
	}
	got := Errors(obs, held)
	if len(got) != 4 {
		t.Fatalf("%+v", got)
	}
	// Logarithms -0.0953, 0, 0.0953 around a median of 0: 1.6449 * 0.0953 nine in ten.
	for i, engine := range []string{"", "vllm"} {
		if e := got[i]; e.Engine != engine || e.New != NothingNew || e.Runs != 3 || math.Abs(e.Bias) > 1e-4 || math.Abs(e.Spread-0.1568) > 2e-4 {
			t.Errorf("%+v", e)
		}
	}
	if e := got[3]; e.Engine != "sglang" || e.New != SeveralNew || e.Runs != 1 || e.Bias != 0 || math.Abs(e.Spread-math.Log(1.2)) > 1e-4 {
		t.Errorf("%+v", e)
	}
}

func TestEnvelopes(t *testing.T) {
	obs := []Observation{
		observed("a", "x", "vllm", "", Load{Requests: 100, Rate: 8, Input: Lengths{Mean: 10}, Output: Lengths{Mean: 5}}),
		observed("b", "x", "vllm", "", Load{Requests: 100, Rate: 2, Input: Lengths{Mean: 30}, Output: Lengths{Mean: 5}}),
		observed("c", "x", "vllm", "", Load{Requests: 100, Input: Lengths{Mean: 20}, Output: Lengths{Mean: 7}}),
		observed("d", "x", "vllm", "", Load{Requests: 1000, Concurrency: 32, Input: Lengths{Mean: 20}, Output: Lengths{Mean: 7}}),
	}
	obs[0].Replicas = 2
	obs[2].Config.SpecTokens = 1
	want := []Envelope{{
		Accelerator: "x", Engine: "vllm", Models: []string{"m"}, Formats: []string{"bf16"}, GPUs: []int{2},
		Input: [2]float64{10, 30}, Output: [2]float64{5, 7}, Rate: [2]float64{2, 4}, Burst: [2]int{32, 100}, Speculation: true,
	}}
	if got := Envelopes(obs); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}
