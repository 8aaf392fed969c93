package study

import (
	"strings"
	"testing"

	"perflab/internal/bench"
	"perflab/internal/workload"
)

// sought is the good study with a search for the highest rate.
var sought = strings.NewReplacer(
	"metric: total_token_throughput", "metric: goodput_rate, slos: [p99_ttft_ms <= 400, success_rate >= 0.99]",
	"num_prompts: 10}", "random_input_len: 8, random_output_len: 2, arrival: constant, find_max: {axis: rate, from: 1, to: 64, precision: 0.05, seconds: 60}}",
).Replace(small)

// SLOs that no run can be judged by are not the search's.
func TestSearchBounds(t *testing.T) {
	s := &File{Objective: Objective{SLOs: []string{"p99_ttft_ms <= 5", "goodput_rate >= 3", "accuracy >= baseline - 2pt", "success_rate >= 99%"}}}
	var names []string
	for _, slo := range s.RunSLOs() {
		names = append(names, slo.Metric)
	}
	if got := strings.Join(names, " "); got != "p99_ttft_ms success_rate" {
		t.Error(got)
	}
}

// TestGoalErrors: an objective whose figures cannot be had is refused.
func TestGoalErrors(t *testing.T) {
	const find = "find_max: {axis: rate, from: 1, to: 64, precision: 0.05, seconds: 60}"
	for _, tt := range []struct{ name, old, new, want string }{
		{"no search", find, "num_prompts: 10", "t.yaml:4:21: goodput_rate is found by a search over the load: give the primary workload, a, find_max: {axis: rate, from: 1}"},
		{"other axis", "axis: rate", "axis: concurrency", "t.yaml:4:21: goodput_rate is found"},
		{"unknown axis", "axis: rate", "axis: load", `t.yaml:6:116: find_max axis "load" is not known: rate or concurrency`},
		{"no axis", "axis: rate, ", "", `axis is missing: rate or concurrency`},
		{"from", "from: 1", "from: -1", "t.yaml:6:128: from is -1"},
		{"to", "to: 64", "to: 0.5", "t.yaml:6:135: to is 0.5: it must be at least from, 1"},
		{"precision", "precision: 0.05", "precision: 5", "t.yaml:6:150: precision is 5"},
		{"points", "seconds: 60", "points: 1", "t.yaml:6:164: points is 1"},
		{"requests", "seconds: 60", "requests: -1", "t.yaml:6:166: requests is -1"},
		{"seconds", "seconds: 60", "seconds: -1", "t.yaml:6:165: seconds is -1"},
		{"unknown key", "seconds: 60", "second: 60", `t.yaml:6:156: unknown key "second"`},
		{"half a request", "rate, from: 1,", "concurrency, from: 1.5,", "from is 1.5: it must be above 0, and a whole number of a concurrency"},
		{"rate beside", "arrival: constant", "request_rate: 4", "t.yaml:6:94: request_rate of workload a does not apply with find_max rate"},
		{"number beside", "arrival: constant", "num_prompts: 40", "t.yaml:6:93: num_prompts of workload a does not apply with find_max: its requests"},
		{"time beside", "arrival: constant", "duration: 30s", "t.yaml:6:90: duration of workload a"},
		{"no SLO", ", slos: [p99_ttft_ms <= 400, success_rate >= 0.99]", "", "t.yaml:6:109: find_max needs objective.slos"},
		{"no SLO of a run", "slos: [p99_ttft_ms <= 400, success_rate >= 0.99]", "slos: [goodput_rate >= 3]", "find_max needs objective.slos"},
		{"no price", "metric: goodput_rate", "metric: cost_per_million_tokens", "t.yaml:4:21: cost_per_million_tokens needs hardware.price_per_hour"},
		{"bound without price", "success_rate >= 0.99", "cost_per_million_tokens <= 2", "t.yaml:4:62: cost_per_million_tokens needs hardware.price_per_hour"},
		{"predicted energy", "metric: goodput_rate", "metric: energy_per_token_j", "t.yaml:4:21: energy_per_token_j is made of readings of a server that runs, and runtime kind predicted starts none"},
		{"predicted power", "metric: goodput_rate", "metric: output_tokens_per_s_per_w", "runtime kind predicted starts none"},
	} {
		text := strings.Replace(sought, tt.old, tt.new, 1)
		if text == sought {
			t.Fatalf("%s: the edit %q changes nothing", tt.name, tt.old)
		}
		if _, err := Parse("t.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s:\ngot  %v\nwant %s", tt.name, err, tt.want)
		}
	}
	for _, tt := range []struct{ name, metric, runtime, hardware, want string }{
		{"simulated energy", "energy_j", "simulated", "h100-sxm, gpus: 2", "energy_j is made of readings of GPUs, and a simulated engine uses none"},
		{"energy on a CPU", "energy_per_output_token_j", "process", "cpu, gpus: 1", "and the hardware has none"},
		{"per GPU on a CPU", "output_throughput_per_gpu", "process", "cpu, gpus: 1", "output_throughput_per_gpu counts GPUs, and the hardware has none: use output_throughput"},
		{"no readings", "energy_j", "process}\nbench: {telemetry_interval_s: 0", "h100-sxm, gpus: 2", "bench.telemetry_interval_s is 0"},
		{"readings", "energy_per_token_j", "process", "h100-sxm, gpus: 2", ""},
		{"queue of a simulated engine", "mean_engine_queue_ms", "simulated", "h100-sxm, gpus: 2", ""},
	} {
		text := strings.NewReplacer("total_token_throughput", tt.metric, "kind: predicted", "kind: "+tt.runtime, "h100-sxm, gpus: 2", tt.hardware, ", set: {tp: 2}", "").Replace(small)
		_, err := Parse("t.yaml", []byte(text))
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

// A workload's first load is what it is described and checked by.
func TestSearchFirst(t *testing.T) {
	var none *LoadSearch
	w := workload.Spec{NumPrompts: 7}
	if none.first(w, nil).NumPrompts != 7 {
		t.Error("a load that is given was changed")
	}
	f := &LoadSearch{Axis: bench.AxisConcurrency, From: 4}
	f.fill()
	if w = f.first(workload.Spec{}.Defaults(), nil); w.MaxConcurrency != 4 || w.NumPrompts != bench.MinRequests(nil) {
		t.Errorf("the first is %+v", w)
	}
}

// TestPrecisionErrors: runs that end when their figure is known have different lengths, so a study compares
// them by a figure of their steady part.
func TestPrecisionErrors(t *testing.T) {
	until := strings.NewReplacer("metric: total_token_throughput", "metric: steady_total_token_throughput",
		"num_prompts: 10}", "num_prompts: 1000, max_concurrency: 8, until_precision: 2%}").Replace(small)
	s, err := Parse("t.yaml", []byte(until))
	if err != nil {
		t.Fatal(err)
	}
	if got := s.WorkloadSpec("a", 0); got.UntilMetric != "steady_total_token_throughput" || got.UntilPrecision != "2%" {
		t.Errorf("%+v", got)
	}
	part := s.ShortenedSpec("a", 0, 0.25)
	if part.UntilPrecision != "4%" || part.NumPrompts != 250 {
		t.Errorf("a quarter of the load asks for %s of %d requests", part.UntilPrecision, part.NumPrompts)
	}
	for _, tt := range []struct{ old, new, want string }{
		{"steady_total_token_throughput", "total_token_throughput", "runs that end when their figure is known differ in length, and compare by a figure of their steady part: as objective.metric total_token_throughput cannot be watched"},
		{"until_precision: 2%", "until_precision: 2%, until_metric: mean_ttft_ms", "workload a: mean_ttft_ms cannot be watched"},
		{"max_concurrency: 8", "request_rate: 8", "as objective.metric steady_total_token_throughput is that of the arrivals where requests come at a rate: use mean_steady_e2el_ms"},
		{", max_concurrency: 8", "", "until_precision needs a steady state, which a burst has not: give max_concurrency or request_rate"},
		{"num_prompts: 1000", "num_prompts: 100", "cannot end a run of 100 requests"},
		{"until_precision: 2%", "until_precision: most", `"most" is no share`},
	} {
		text := strings.Replace(until, tt.old, tt.new, 1)
		if text == until {
			t.Fatalf("the edit %q changes nothing", tt.old)
		}
		if _, err := Parse("t.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s:\ngot  %v\nwant %s", tt.new, err, tt.want)
		}
	}
	text := strings.Replace(sought, "arrival: constant", "until_precision: 2%", 1)
	if _, err := Parse("t.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), "until_precision of workload a does not apply with find_max") {
		t.Error(err)
	}
}
