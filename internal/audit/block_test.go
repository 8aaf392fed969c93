package audit

import (
	"slices"
	"strings"
	"testing"

	"perflab/internal/interop"
)

// A block of vLLM's client, one of guidellm's as GPUStack prints them, and one
// of a single request. All figures are made up and agree with each other.
const (
	vllmBlock = `
============ Serving Benchmark Result ============
Successful requests:                     200
Failed requests:                         0
Benchmark duration (s):                  50.00
Total input tokens:                      100000
Total generated tokens:                  20000
Request throughput (req/s):              4.00
Output token throughput (tok/s):         400.00
Peak output token throughput (tok/s):    620.00
Peak concurrent requests:                40.00
Total token throughput (tok/s):          2400.00
---------------Time to First Token----------------
Mean TTFT (ms):                          300.00
Median TTFT (ms):                        250.00
P99 TTFT (ms):                           900.00
-----Time per Output Token (excl. 1st token)------
Mean TPOT (ms):                          40.00
Median TPOT (ms):                        38.00
P99 TPOT (ms):                           70.00
---------------Inter-token Latency----------------
Mean ITL (ms):                           41.50
Median ITL (ms):                         35.00
P99 ITL (ms):                            90.00
----------------End-to-end Latency----------------
Mean E2EL (ms):                          4280.00
Median E2EL (ms):                        4100.00
P99 E2EL (ms):                           9500.00
==================================================
`
	guideBlock = `
============ Serving Benchmark Result ============
Successful requests:                     200
Maximum request concurrency:             40
Benchmark duration (s):                  50.00
Total input tokens:                      100000
Total generated tokens:                  20000
Request throughput (req/s):              4.00
Output token throughput (tok/s):         400.00
Peak output token throughput (tok/s):    9000.00
Peak concurrent requests:                40.00
Total Token throughput (tok/s):          2400.00
----------------------Latency---------------------
Mean Latency(s):                          4.29
Median Latency(s):                        4.10
P95 Latency(s):                           8.00
P99 Latency(s):                           9.50
---------------Time to First Token----------------
Mean TTFT (ms):                          300.00
Median TTFT (ms):                        250.00
P95 TTFT (ms):                           600.00
P99 TTFT (ms):                           900.00
-----Time per Output Token (excl. 1st token)------
Mean TPOT (ms):                          42.90
Median TPOT (ms):                        41.00
P95 TPOT (ms):                           60.00
P99 TPOT (ms):                           70.00
---------------Inter-token Latency----------------
Mean ITL (ms):                           40.30
Median ITL (ms):                         38.00
P95 ITL (ms):                            55.00
P99 ITL (ms):                            65.00
==================================================
`
	singleBlock = `
============ Serving Benchmark Result ============
Successful requests:                     1
Failed requests:                         0
Benchmark duration (s):                  5.30
Total input tokens:                      1000
Total generated tokens:                  101
Request throughput (req/s):              0.19
Output token throughput (tok/s):         19.06
Peak output token throughput (tok/s):    20.00
Peak concurrent requests:                1.00
Total token throughput (tok/s):          207.74
---------------Time to First Token----------------
Mean TTFT (ms):                          300.01
Median TTFT (ms):                        300.01
P99 TTFT (ms):                           300.01
-----Time per Output Token (excl. 1st token)------
Mean TPOT (ms):                          50.00
Median TPOT (ms):                        50.00
P99 TPOT (ms):                           50.00
---------------Inter-token Latency----------------
Mean ITL (ms):                           50.00
Median ITL (ms):                         49.00
P99 ITL (ms):                            61.00
==================================================
`
)

// failedBlock is a run of which no request succeeded.
const failedBlock = `
============ Serving Benchmark Result ============
Successful requests:                     0
Failed requests:                         8
Benchmark duration (s):                  5.00
Total input tokens:                      0
Total generated tokens:                  0
Request throughput (req/s):              0.00
Output token throughput (tok/s):         0.00
Total token throughput (tok/s):          0.00
---------------Time to First Token----------------
Mean TTFT (ms):                          0.00
Median TTFT (ms):                        0.00
P99 TTFT (ms):                           0.00
==================================================
`

// with returns a block with the values of some labels replaced; a label that
// the block lacks comes before its closing rule.
func with(t *testing.T, block string, changes ...string) string {
	t.Helper()
	lines := strings.Split(block, "\n")
	for _, c := range changes {
		label, _, ok := strings.Cut(c, ":")
		if !ok {
			t.Fatalf("%q has no colon", c)
		}
		i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, label+":") })
		if i < 0 {
			i = slices.Index(lines, strings.Repeat("=", 50))
			lines = slices.Insert(lines, i, "")
		}
		lines[i] = c
	}
	return strings.Join(lines, "\n")
}

// audited returns the findings on a text.
func audited(t *testing.T, text string) []Finding {
	t.Helper()
	f := interop.Read("a.md", []byte(text))
	if len(f.Faults) > 0 || len(f.Runs) == 0 {
		t.Fatalf("%d runs, faults %v", len(f.Runs), f.Faults)
	}
	return filesAudited([]interop.File{f}, Options{})
}

// types are the types of findings with their severities, each once, sorted.
func types(fs []Finding) []string {
	var out []string
	for _, f := range fs {
		out = append(out, string(f.Severity)+" "+f.Type)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func TestOneBlock(t *testing.T) {
	for _, tt := range []struct {
		name, block string
		changes     []string
		want        []string
	}{
		{"clean vllm", vllmBlock, nil, nil},
		{"clean single", singleBlock, nil, nil},
		{"guidellm says excl. and includes", guideBlock, nil, []string{"warning tpot-includes-first"}},
		{"rounding down", vllmBlock, []string{"Benchmark duration (s): 49.94", "Request throughput (req/s): 4.00", "Output token throughput (tok/s): 400.5", "Total token throughput (tok/s): 2403"}, nil},
		{"none succeeded", failedBlock, nil, []string{"warning no-success"}},
		{"none sent", failedBlock, []string{"Failed requests: 0"}, nil},
		{"one succeeded", vllmBlock, []string{"Failed requests: 8"}, nil},
		{"request throughput", vllmBlock, []string{"Request throughput (req/s): 4.01"}, []string{"error throughput"}},
		{"output throughput", vllmBlock, []string{"Output token throughput (tok/s): 400.05"}, []string{"error throughput"}},
		{"total throughput", vllmBlock, []string{"Total token throughput (tok/s): 2401.00"}, []string{"error throughput"}},
		{"failed requests counted in", vllmBlock, []string{"Failed requests: 50", "Request throughput (req/s): 5.00"}, []string{"warning throughput-definition"}},
		{"window of the client", guideBlock, []string{"Output token throughput (tok/s): 404.00", "Total Token throughput (tok/s): 2424.00"},
			[]string{"warning throughput-window", "warning tpot-includes-first"}},
		{"window shorter than any wait", guideBlock, []string{"Output token throughput (tok/s): 800.00", "Total Token throughput (tok/s): 4800.00"},
			[]string{"error throughput", "warning tpot-includes-first"}},
		{"negative", vllmBlock, []string{"Median TTFT (ms): -1.00"}, []string{"error negative-figure"}},
		{"goodput", vllmBlock, []string{"Request goodput (req/s): 4.02"}, []string{"error counts"}},
		{"more in flight than there were", vllmBlock, []string{"Peak concurrent requests: 201.00"}, []string{"error peak-concurrency"}},
		{"peak below the mean in full seconds", vllmBlock, []string{"Peak output token throughput (tok/s): 399.00"}, []string{"warning peak-buckets"}},
		{"peak beyond the total", vllmBlock, []string{"Peak output token throughput (tok/s): 20500.00"}, []string{"error peak-beyond-total"}},
		{"peak of gaps", guideBlock, []string{"Peak output token throughput (tok/s): 20500.00"}, []string{"warning peak-inverse-gap", "warning tpot-includes-first"}},
		{"latency beyond the run", vllmBlock, []string{"P99 E2EL (ms): 50100.00"}, []string{"error latency-beyond-duration"}},
		{"percentiles", vllmBlock, []string{"Median TPOT (ms): 70.02"}, []string{"error percentile-order"}},
		{"mean too low", vllmBlock, []string{"Mean ITL (ms): 17.00"}, []string{"error mean-impossible"}},
		{"mean low and possible", vllmBlock, []string{"Mean ITL (ms): 18.10"}, nil},
		{"mean above max", vllmBlock, []string{"Max TTFT (ms): 290.00", "P99 TTFT (ms): 280.00"}, []string{"error mean-impossible"}},
		{"std too small", vllmBlock, []string{"Std TTFT (ms): 49.90"}, []string{"error std-impossible"}},
		{"std too large", vllmBlock, []string{"Std TTFT (ms): 900.00", "Min TTFT (ms): 100.00", "Max TTFT (ms): 1000.00"}, []string{"error std-impossible"}},
		{"std of samples that are alike", vllmBlock, []string{"Mean TTFT (ms): 299.999999999999", "Median TTFT (ms): 300.000000000000", "P99 TTFT (ms): 300.000000000000",
			"Std TTFT (ms): 0.0000000000036", "Min TTFT (ms): 300.000000000000", "Max TTFT (ms): 300.000000000000"}, nil},
		{"one request, two medians", singleBlock, []string{"P99 TPOT (ms): 50.02"}, []string{"error single-request"}},
		{"one request longer than the run", singleBlock, []string{"Benchmark duration (s): 5.00", "Request throughput (req/s): 0.20", "Output token throughput (tok/s): 20.20", "Total token throughput (tok/s): 220.20", "Peak output token throughput (tok/s): 21"},
			[]string{"error latency-beyond-duration"}},
		{"more in flight on average than at most", vllmBlock, []string{"Peak concurrent requests: 17.00"}, []string{"error in-flight"}},
		{"just as many", vllmBlock, []string{"Peak concurrent requests: 17.12"}, nil},
		{"part of the stream", guideBlock, []string{"Mean TPOT (ms): 5.10", "Mean ITL (ms): 2.10", "Median ITL (ms): 0.00", "Median TPOT (ms): 2.50", "P95 ITL (ms): 0.10", "P95 TPOT (ms): 6"},
			[]string{"error latency-identity", "warning tpot-includes-first", "warning zero-median"}},
		{"latency far from its parts", vllmBlock, []string{"Mean E2EL (ms): 1000.00", "Median E2EL (ms): 900.00", "P99 E2EL (ms): 1500.00"}, []string{"warning latency-doubtful"}},
		{"TPOT of the whole latency", vllmBlock, []string{"Mean TPOT (ms): 42.80", "Mean ITL (ms): 40.20"}, []string{"warning tpot-includes-first"}},
		{"zero median of messages", vllmBlock, []string{"Median ITL (ms): 0.00"}, []string{"warning zero-median"}},
		{"rate and drain", vllmBlock, []string{"Request rate configured (RPS): 4.40"}, nil},
		{"rate missed", vllmBlock, []string{"Request rate configured (RPS): 8.00", "Mean TPOT (ms): 40.00"}, []string{"warning offered-rate-missed"}},
		{"stall", guideBlock, []string{"P99 TTFT (ms): 9000.00", "Mean TTFT (ms): 320.00"}, []string{"warning first-token-stall", "warning tpot-includes-first"}},
		{"mean above P95", guideBlock, []string{"P95 TTFT (ms): 290.00"}, []string{"warning first-token-stall", "warning tpot-includes-first"}},
	} {
		if got := types(audited(t, with(t, tt.block, tt.changes...))); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
