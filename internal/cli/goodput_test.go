package cli

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"perflab/internal/bench"
	"perflab/internal/lab"
	"perflab/internal/outcome"
	"perflab/internal/replay"
	"perflab/internal/result"
	"perflab/internal/study"
)

const goodputStudy = `name: goodput
model: Qwen/Qwen3-8B
strategy: survey
hardware: {gpu: h100-sxm, gpus: 2}
objective: {metric: METRIC, slos: [p99_ttft_ms <= 300, p99_tpot_ms <= 20]}
workloads:
WORKLOADS
candidates: [{label: base, engine: vllm}]
runtime: {kind: predicted}
`

// TestGoodputPredicted holds a search in virtual time against a dense sweep over the
// same configuration: no rate that the sweep met lies beyond the bracket, and none
// that it missed below the answer, but for the chance of two samples.
func TestGoodputPredicted(t *testing.T) {
	tuned := func(metric, workloads string) outcome.Study {
		text := strings.NewReplacer("METRIC", metric, "WORKLOADS", workloads).Replace(goodputStudy)
		s, err := study.Parse("t.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		f, err := lab.Tune(t.Context(), s, []byte(text), lab.Options{Dir: filepath.Join(t.TempDir(), "out"), Predictor: replay.Predictor{}})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	const load = "dataset_name: random, random_input_len: 512, random_output_len: 64"
	found := tuned("goodput_rate", "  - {name: chat, "+load+", find_max: {axis: rate, from: 8, requests: 600, seconds: 0}}")
	run := found.Trials[0].Runs[0]
	rate := run.Summary.Figures["goodput_rate"]
	if run.Search == nil || run.Search.Code != bench.StopBracket || run.Search.Met != 2 || !run.Summary.Predicted {
		t.Fatalf("%+v", run.Search)
	}
	var slos []result.SLO
	for _, text := range found.Objective.SLOs {
		slo, err := result.ParseSLO(text)
		if err != nil {
			t.Fatal(err)
		}
		if met, why := slo.Judge(run.Summary); !met {
			t.Errorf("the edge's run: %s", why)
		}
		slos = append(slos, slo)
	}
	var points []string
	var rates []float64
	for share := 0.7; share < 1.35; share += 0.05 {
		rates = append(rates, math.Round(share*rate))
		points = append(points, fmt.Sprintf("  - {name: r%d, %s, request_rate: %g, num_prompts: 600}", len(points), load, rates[len(points)]))
	}
	sweep := tuned("output_throughput", strings.Join(points, "\n"))
	if n := len(sweep.Trials[0].Runs); n != len(rates) || sweep.Ledger.Launches != 1 {
		t.Fatalf("%d of %d loads were run by %d launches", n, len(rates), sweep.Ledger.Launches)
	}
	for i, r := range sweep.Trials[0].Runs {
		met := true
		for _, slo := range slos {
			ok, _ := slo.Judge(r.Summary)
			met = met && ok
		}
		if met && rates[i] > 1.1*run.Search.Missed || !met && rates[i] < 0.9*rate {
			t.Errorf("the sweep at %g req/s: met is %v, the search found %g and missed %g", rates[i], met, rate, run.Search.Missed)
		}
	}
}
