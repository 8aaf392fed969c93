package audit

import (
	"fmt"

	"slices"
	"strings"
	"testing"

	"perflab/internal/interop"
)

// printed is a block of 1000 requests, 200 tokens in and out, unless told
// otherwise: "total", "ttft", "tpot", "n", "in", "out", "latency", "medtpot".
func printed(figures map[string]string) string {
	get := func(key, other string) string {
		if v, ok := figures[key]; ok {
			return v
		}
		return other
	}
	var b strings.Builder
	line := func(label, value string) { fmt.Fprintf(&b, "%-41s%s\n", label+":", value) }
	b.WriteString("============ Serving Benchmark Result ============\n")
	line("Successful requests", get("n", "1000"))
	line("Benchmark duration (s)", "100.00")
	line("Total input tokens", get("in", "200000"))
	line("Total generated tokens", get("out", "200000"))
	line("Output token throughput (tok/s)", get("output", "2000.00"))
	line("Total Token throughput (tok/s)", get("total", "4000.00"))
	if v, ok := figures["latency"]; ok {
		b.WriteString("----------------------Latency---------------------\n")
		line("Mean Latency(s)", v)
	}
	b.WriteString("---------------Time to First Token----------------\n")
	line("Mean TTFT (ms)", get("ttft", "900.00"))
	line("P99 TTFT (ms)", get("p99ttft", "2000.00"))
	b.WriteString("-----Time per Output Token (excl. 1st token)------\n")
	line("Mean TPOT (ms)", get("tpot", "50.00"))
	line("Median TPOT (ms)", get("medtpot", "50.00"))
	b.WriteString("---------------Inter-token Latency----------------\n")
	line("Median ITL (ms)", get("itl", "50.00"))
	b.WriteString("==================================================\n")
	return b.String()
}

// section is a heading with a serving script and a block.
func section(heading, command string, figures map[string]string) string {
	return heading + "\n\n??? info \"Serving script\"\n    ```bash\n    " + command + "\n    ```\n\n??? info \"Benchmark result\"\n    ```\n" +
		strings.ReplaceAll("    "+printed(figures), "\n", "\n    ") + "\n    ```\n\n"
}

type figs = map[string]string

// twoRuns is a document with a baseline of 4000 and an optimised run of 6000
// tok/s, and something said before and after.
func twoRuns(before, after string) string {
	return "# Study of a model\n\n" + before + "\n\n## Results\n\n" +
		section("### Engine\n\nvLLM", "vllm serve acme/Model-7B -tp 8", figs{"total": "4000.00"}) +
		section("### Quantization", "vllm serve acme/Model-7B-FP8 -tp 8", figs{"total": "6000.00", "output": "3000.00", "tpot": "40.00", "ttft": "800.00"}) + after
}

// gains is a table of gains.
func gains(fresh string) string {
	return "| Case | Baseline | Optimized |\n|---|---|---|\n| **Chat** | Total TPS: 4000.00<br>Mean TPOT(ms): 50.00 | " + fresh + " |\n"
}

// found are the findings of claims as "severity type: expected".
func found(t *testing.T, text string) []string {
	t.Helper()
	f := interop.Read("study.md", []byte(text))
	for _, fault := range f.Faults {
		t.Fatalf("the test's own document does not read: %s", fault)
	}
	var out []string
	for _, x := range claims(&f, Options{}) {
		if x.Place.File != "study.md" || x.Place.Line == 0 || x.Text == "" {
			t.Errorf("finding without a place or text: %+v", x)
		}
		if !slices.ContainsFunc(claimChecks(), func(c Check) bool { return c.Type == x.Type }) {
			t.Errorf("type %q is not listed", x.Type)
		}
		out = append(out, fmt.Sprintf("%s %s: %s", x.Severity, x.Type, x.Expected))
	}
	return out
}

func TestClaims(t *testing.T) {
	cases := map[string]struct {
		text string
		want []string // in any order; all of them and no other
	}{
		"a clean document":                     {twoRuns(gains("Total TPS: 6000.00 (+50.0%)<br>Mean TPOT(ms): 40.00"), "Result: FP8 (6000.00 tok/s) > vLLM (4000.00 tok/s)\n"), []string{"note baseline-not-best: +0.0 %"}},
		"a percentage of nothing":              {twoRuns(gains("Total TPS: 6000.00 (+10.7%)<br>Mean TPOT(ms): 40.00"), ""), []string{"error percentage-wrong: +50.0 %"}},
		"a percentage rounded up":              {twoRuns(gains("Total TPS: 6000.00 (+50.1%)<br>Mean TPOT(ms): 40.00"), ""), []string{"note percentage-wrong: +50.0 %"}},
		"a sign reversed":                      {twoRuns(gains("Total TPS: 6000.00 (-50.0%)<br>Mean TPOT(ms): 40.00"), ""), []string{"error percentage-wrong: +50.0 %"}},
		"a figure of no block":                 {twoRuns(gains("Total TPS: 6123.00 (+53.1%)<br>Mean TPOT(ms): 40.00"), ""), []string{"error figure-unmatched: nearest: 6000.00"}},
		"a table cell in another unit":         {twoRuns("| GPU | Memory (GiB) |\n|---|---|\n| A | 80 |\n", ""), nil},
		"replicas multiplied":                  {twoRuns(gains("Total TPS: 6000.00x2 (+200.0%)<br>Mean TPOT(ms): 40.00"), ""), []string{"error replicas-not-measured: +50.0 %"}},
		"replicas multiplied wrongly":          {twoRuns(gains("Total TPS: 6000.00x2 (+50.0%)<br>Mean TPOT(ms): 40.00"), ""), []string{"error replicas-not-measured: +50.0 %", "error percentage-wrong: +200.0 %"}},
		"a ranking":                            {twoRuns("", "Result: vLLM (4000.00 tok/s) > FP8 (6000.00 tok/s) > TensorRT (Not supported)\n"), []string{"error ranking-wrong: 4000.00 tok/s < 6000.00 tok/s"}},
		"a ranking of one":                     {twoRuns("", "Result: vLLM (4000.00 tok/s) > SGLang (Not supported)\n"), nil},
		"from and to":                          {twoRuns("", "Throughput improved from 4000.00 tok/s to 6000.00 tok/s, achieving 80% higher throughput.\n"), []string{"error percentage-wrong: 50 %"}},
		"from and to, rightly":                 {twoRuns("", "Throughput improved from 4000.00 tok/s to 6000.00 tok/s, achieving 50% higher throughput.\n"), nil},
		"a difference":                         {twoRuns("", "- Summary: `FP8` Total TPS = 6000.00, `BF16` Total TPS = 4000.00. `FP8` is faster by 1000.00 tok/s (50.00%); Mean TPOT = 40.00 ms vs 50.00 ms, reduced by 10.00 ms (20.00%).\n"), []string{"error difference-wrong: +2000.00 tok/s"}},
		"a direction reversed":                 {twoRuns("", "- Summary: `FP8` Total TPS = 6000.00, `BF16` Total TPS = 4000.00. `FP8` is faster by 2000.00 tok/s (50.00%); Mean TPOT = 40.00 ms vs 50.00 ms, increased by 10.00 ms (1.25x faster).\n"), []string{"error difference-wrong: -10.00 ms"}},
		"a factor":                             {twoRuns("", "- Summary: Mean TPOT = 40.00 ms vs 50.00 ms, reduced by 10.00 ms (1.50x faster).\n"), []string{"error factor-wrong: 1.25x"}},
		"slower called slower":                 {twoRuns("", "- Summary: Mean TPOT = 50.00 ms vs 40.00 ms, increased by 10.00 ms (1.25x slower).\n"), nil},
		"prose, about":                         {twoRuns("", "It reaches ~6k tok/s total, and TPOT drops from 50ms to 40ms.\n"), nil},
		"prose, of no block":                   {twoRuns("", "It has a TPOT of 70ms.\n"), []string{"warning figure-unmatched: "}},
		"prose, numbers that are none":         {twoRuns("", "The H100 has 80 GB, and less than 1% accuracy is lost by FP8; see 2 of 3, v0.11.0 and 8x A100.\n"), nil},
		"an option untried":                    {twoRuns("", "| Option | Throughput Improvement |\n|---|---|\n| Quantization | +50.0% |\n| Attention Backend | - |\n"), []string{"warning option-without-run: "}},
		"an option's gain of no pair":          {twoRuns("", "| Option | Throughput Improvement |\n|---|---|\n| Quantization | +42.0% |\n"), []string{"error percentage-wrong: "}},
		"hidden cost":                          {costly("4000.00", "2000.00"), []string{"warning hidden-cost: Mean TTFT +122 %, Mean TPOT +40 %"}},
		"no hidden cost without a gain":        {costly("4000.00", "900.00"), []string{"note hidden-cost: Mean TPOT +40 %"}},
		"recommended command never run":        {twoRuns("## Conclusion\n\n???+ tip \"Serving Command\"\n    ```bash\n    vllm serve acme/Model-7B-FP8 -tp 8 --max-num-seqs 64\n    ```\n", ""), []string{"warning recommended-not-measured: vllm serve acme/Model-7B-FP8 -tp 8"}},
		"recommended command run":              {twoRuns("## Conclusion\n\n???+ tip \"Serving Command\"\n    ```bash\n    vllm serve acme/Model-7B-FP8 -tp 8 --port 80\n    ```\n", ""), nil},
		"cited TPOT that the latency denies":   {brokenTPOT("2.00", "0.10"), []string{"warning claim-on-broken-figure: 2.00x"}},
		"cited TPOT that the latency confirms": {brokenTPOT("20.00", "19.00"), nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := found(t, c.text)
			slices.Sort(got)
			want := slices.Clone(c.want)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("found\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
			}
		})
	}
}

// costly compares two runs of which the second has worse times.
func costly(total, ttft string) string {
	return "# Study\n\n| Case | Baseline | Optimized |\n|---|---|---|\n| Chat | Total TPS: " + total + "<br>Mean TPOT(ms): 50.00 | Total TPS: 6000.00 (+50.0%)<br>Mean TPOT(ms): 70.00 |\n\n## Results\n\n" +
		section("### Engine", "vllm serve acme/Model-7B -tp 8", figs{"total": total}) +
		section("### Quantization", "vllm serve acme/Model-7B-FP8 -tp 8", figs{"total": "6000.00", "output": "3000.00", "tpot": "70.00", "ttft": ttft})
}

// brokenTPOT compares two runs of 10 and 20 ms per token by their latency. The
// first prints another TPOT.
func brokenTPOT(tpot, median string) string {
	ratio := map[string]string{"2.00": "(20.00x faster)", "20.00": "(2.00x faster)"}[tpot]
	first := figs{"latency": "2.49", "ttft": "500.00", "tpot": tpot, "medtpot": median, "itl": "0.00"}
	if tpot == "20.00" {
		first["latency"] = "4.48"
	}
	return "# Study\n\n## Results\n\n" + section("### First", "vllm serve acme/Model-7B", first) +
		section("### Second", "vllm serve acme/Model-7B --max-num-seqs 8", figs{"latency": map[string]string{"2.00": "4.48", "20.00": "8.46"}[tpot], "ttft": "500.00", "tpot": "40.00"}) +
		"- Summary: Mean TPOT = " + tpot + " ms vs 40.00 ms, reduced by " + map[string]string{"2.00": "38.00", "20.00": "20.00"}[tpot] + " ms " + ratio + ".\n"
}
