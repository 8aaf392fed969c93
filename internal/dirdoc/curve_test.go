package dirdoc

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/bench"
	"perflab/internal/block"
	"perflab/internal/report/doc"
	"perflab/internal/result"
	"perflab/internal/seriesdoc"
)

// TestCurveOf: a series' points become a curve's: their rates, what they missed
// and whether to believe them, and an end that was not the plan's is said.
func TestCurveOf(t *testing.T) {
	figures := map[string]float64{"completed": 9, "failed": 1, "output_throughput": 12.5, "median_ttft_ms": 10, "p99_ttft_ms": 20, "median_e2el_ms": 100}
	facts := &bench.SeriesFacts{Kind: bench.KindSweep, Model: "m", Workload: "random", SLOs: []result.SLO{{Metric: "p99_ttft_ms", Op: "<=", Limit: 15}}, Stop: bench.Stop{Code: "interrupted", Text: "enough"}, Points: []bench.Point{
		{Load: bench.Load{Axis: bench.Throughput}, Seed: 8, Achieved: 9, Missed: []string{}, Summary: result.Summary{Figures: figures, Verdict: result.Verdict{Status: result.Sound}}},
		{Load: bench.Load{Axis: bench.Synchronous}, Seed: 9, Achieved: 0.5, Missed: []string{}, Summary: result.Summary{Figures: figures, Verdict: result.Verdict{Status: result.Sound}}},
		{Load: bench.Load{Axis: bench.AxisRate, Value: 4}, Seed: 10, Offered: 4, Achieved: 3.5, Saturated: true, Missed: []string{"p99_ttft_ms 20 > 15"},
			Summary: result.Summary{Figures: figures, Verdict: result.Verdict{Status: result.Sound}}},
		{Load: bench.Load{Axis: bench.AxisRate, Value: 8}, Seed: 11, Offered: 8, Achieved: 7, Void: true, Missed: []string{},
			Summary: result.Summary{Figures: figures, Verdict: result.Verdict{Status: result.Voided, Checks: []result.Check{{Name: "dispatch_lag", Status: result.Voided, Text: "it was late"}}}}},
		{Load: bench.Load{Axis: bench.AxisRate, Value: 9}, Seed: 12, Offered: 9, Achieved: 7, Partial: true, Missed: []string{},
			Summary: result.Summary{Figures: figures, Verdict: result.Verdict{Status: result.Noted}}},
	}}
	text := func(facts *bench.SeriesFacts) (got []string) {
		var b strings.Builder
		if err := doc.Text(&b, Series(facts, "", block.Style{Percentiles: []float64{99}}).Document); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			got = append(got, strings.Join(strings.Fields(line), " "))
		}
		return got
	}
	table := []string{
		"load offered req/s achieved req/s output tok/s TTFT p50/p99 ms E2E p50/p99 ms failed verdict SLO",
		"synchronous - 0.50 12.50 10.0/20.0 100/- 1 sound met",
		"rate 4 4.00 3.50 (saturated) 12.50 10.0/20.0 100/- 1 sound missed",
		"rate 8 8.00 - - -/- -/- 1 void n/a",
		"rate 9 9.00 7.00 12.50 10.0/20.0 100/- 1 partial n/a",
		"throughput - 9.00 12.50 10.0/20.0 100/- 1 sound met",
		"rate 4 missed p99_ttft_ms 20 > 15",
		"rate 8 is void and in no conclusion: it was late",
		"rate 9 was stopped before its end and is in no conclusion",
	}
	if d := cmp.Diff(append(table,
		"sweep ended (interrupted): enough",
		"Every SLO holds up to synchronous, of the loads that were measured; at rate 4: p99_ttft_ms 20 > 15.",
		"The server falls behind what is offered from rate 4 on.",
	), text(facts)); d != "" {
		t.Error(d)
	}
	facts.Kind, facts.Max = bench.KindFindMax, &bench.Max{Load: bench.Load{Axis: bench.AxisRate, Value: 4}, Tested: 2}
	facts.Stop = bench.Stop{Code: "bracket", Text: "it closed"}
	if d := cmp.Diff(append(table,
		"max rate meeting p99_ttft_ms <= 15: 4 req/s (edge tested twice)",
		"search ended (bracket): it closed",
		"The server falls behind what is offered from rate 4 on.",
	), text(facts)); d != "" {
		t.Error(d)
	}
	if c := seriesdoc.Curve(facts); c.Title != "Search for the highest rate of m under random" || !c.Offered || c.Facts[2].Value != "8 to 12" {
		t.Errorf("%+v", c)
	}
}
