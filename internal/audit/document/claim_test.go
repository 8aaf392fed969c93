package document

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"perflab/internal/audit"
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
	line("Benchmark duration (s)", get("duration", durationOf(get("in", "200000"), get("out", "200000"), get("total", "4000.00"))))
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
	if v, ok := figures["medttft"]; ok {
		line("Median TTFT (ms)", v)
		line("P95 TTFT (ms)", figures["p95ttft"])
	}
	line("P99 TTFT (ms)", get("p99ttft", "2000.00"))
	b.WriteString("-----Time per Output Token (excl. 1st token)------\n")
	line("Mean TPOT (ms)", get("tpot", "50.00"))
	line("Median TPOT (ms)", get("medtpot", "50.00"))
	b.WriteString("---------------Inter-token Latency----------------\n")
	line("Median ITL (ms)", get("itl", "50.00"))
	b.WriteString("==================================================\n")
	return b.String()
}

// durationOf is the duration in which a run has its total throughput.
func durationOf(in, out, total string) string {
	number := func(s string) float64 {
		v, _ := strconv.ParseFloat(s, 64)
		return v
	}
	return fmt.Sprintf("%.4f", (number(in)+number(out))/number(total))
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
		if fault.Kind == interop.Unread {
			t.Fatalf("the test's own document does not read: %s", fault)
		}
	}
	var out []string
	for _, x := range ofDocument(&f, audit.Options{}, claimRules) {
		if x.Place.File != "study.md" || x.Place.Line == 0 || x.Text == "" {
			t.Errorf("finding without a place or text: %+v", x)
		}
		if !slices.ContainsFunc(Checks(), func(c audit.Check) bool { return c.Type == x.Type }) {
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
		"a clean document":                     {twoRuns(gains("Total TPS: 6000.00 (+50.0%)<br>Mean TPOT(ms): 40.00"), "Result: FP8 (6000.00 tok/s) > vLLM (4000.00 tok/s)\n"), nil},
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
		"an accuracy is no gain":               {twoRuns("", "| Mode | Accuracy |\n|---|---|\n| pass@1 | 98.9% (29/30) |\n| Quantization | **100.0%** |\n"), nil},
		"a table of other measurements":        {twoRuns("", "| Model | Accuracy | Output Throughput (tok/s) |\n|---|---|---|\n| A | 0.745 | 8041.739 |\n| B | 0.170 | 1559.914 |\n"), nil},
		"more rows than blocks":                {twoRuns("", "| Variant | Total TPS |\n|---|---|\n| A | 4000.00 |\n| B | 7123.00 |\n| C | 8123.00 |\n"), []string{"warning figure-unmatched: ", "warning figure-unmatched: "}},
		"a column of differences, in seconds":  {twoRuns("", "| Metric | Before | After | Change | Improvement(%) |\n|---|---|---|---|---|\n| Total TPS | 4000.00 | 6000.00 | +2000.00 | +50.0% |\n| Mean TTFT (sec) | 0.9 | 0.8 | -0.1 | +11.1% |\n"), nil},
		"an aim in a row's label":              {twoRuns("", "| Scenario | GPUs | max-model-len |\n|---|---|---|\n| High Throughput | 1 | 37364 |\n| Low Latency | 2 | 4096 |\n"), nil},
		"prose, about":                         {twoRuns("", "It reaches ~6k tok/s total, and TPOT drops from 50ms to 40ms.\n"), nil},
		"prose, of no block":                   {twoRuns("", "It has a TPOT of 70ms.\n"), []string{"warning figure-unmatched: "}},
		"prose, numbers that are none":         {twoRuns("", "The H100 has 80 GB, and less than 1% accuracy is lost by FP8; see 2 of 3, v0.11.0 and 8x A100.\n"), nil},
		"an option untried":                    {twoRuns("", "| Option | Throughput Improvement |\n|---|---|\n| Quantization | +50.0% |\n| Attention Backend | - |\n"), []string{"warning option-without-run: "}},
		"an option's gain of no pair":          {twoRuns("", "| Option | Throughput Improvement |\n|---|---|\n| Quantization | +42.0% |\n"), []string{"error percentage-wrong: nearest: +50.0 %, 6000.00 against 4000.00"}},
		"hidden cost":                          {costly("4000.00", "2000.00"), []string{"warning hidden-cost: Mean TTFT +122 %, Mean TPOT +40 %"}},
		"no hidden cost without a gain":        {costly("4000.00", "900.00"), []string{"note hidden-cost: Mean TPOT +40 %"}},
		"a stall is no cost":                   {stalled("860.00", "900.00"), nil},
		"a cost beside a stall":                {stalled("1700.00", "1800.00"), []string{"warning hidden-cost: Median TTFT +100 %"}},
		"recommended command never run":        {twoRuns("## Conclusion\n\n???+ tip \"Serving Command\"\n    ```bash\n    vllm serve acme/Model-7B-FP8 -tp 8 --max-num-seqs 64\n    ```\n", ""), []string{"warning recommended-not-measured: vllm serve acme/Model-7B-FP8 -tp 8"}},
		"recommended command run":              {twoRuns("## Conclusion\n\n???+ tip \"Serving Command\"\n    ```bash\n    vllm serve acme/Model-7B-FP8 -tp 8 --port 80\n    ```\n", ""), nil},
		"cited TPOT that the latency denies":   {brokenTPOT("2.00", "0.10"), []string{"warning claim-on-broken-figure: 2.00x"}},
		"cited TPOT that the latency confirms": {brokenTPOT("20.00", "19.00"), nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			same(t, found(t, c.text), c.want)
		})
	}
}

// costly compares two runs of which the second has worse times.
func costly(total, ttft string) string {
	return "# Study\n\n| Case | Baseline | Optimized |\n|---|---|---|\n| Chat | Total TPS: " + total + "<br>Mean TPOT(ms): 50.00 | Total TPS: 6000.00 (+50.0%)<br>Mean TPOT(ms): 70.00 |\n\n## Results\n\n" +
		section("### Engine", "vllm serve acme/Model-7B -tp 8", figs{"total": total}) +
		section("### Quantization", "vllm serve acme/Model-7B-FP8 -tp 8", figs{"total": "6000.00", "output": "3000.00", "tpot": "70.00", "ttft": ttft})
}

// stalled compares two runs of which the second has a mean TTFT above its P95.
func stalled(median, p95 string) string {
	return "# Study\n\n" + gains("Total TPS: 6000.00 (+50.0%)") + "\n## Results\n\n" +
		section("### Engine", "vllm serve acme/Model-7B -tp 8", figs{"ttft": "900.00", "medttft": "850.00", "p95ttft": "1500.00"}) +
		section("### Quantization", "vllm serve acme/Model-7B-FP8 -tp 8", figs{"total": "6000.00", "output": "3000.00", "ttft": "2000.00", "medttft": median, "p95ttft": p95, "p99ttft": "30000.00"})
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

// combined is a latency study with a table of combined options.
func combined(quant, both, ratio string) string {
	var text strings.Builder
	text.WriteString("# Latency\n\n## Results\n\n" +
		section("### Engine", "vllm serve acme/Model-7B", figs{"latency": "10.80", "ttft": "900.00"}))
	for name, latency := range map[string]string{"### Quantization": quant, "### Cache && Quantization": both} {
		text.WriteString(section(name, "vllm serve acme/Model-7B --"+strings.ToLower(name[4:8]), figs{"latency": latency, "ttft": "600.00", "tpot": "30.00"}))
	}
	return text.String() + "### Summary\n\n| Case | Group | Optimized | Baseline | Comparison |\n|---|---|---:|---:|---|\n" +
		"| Chat | Quantization | " + quant + "s | 10.80s | (1.66x faster) |\n| Chat | Cache && Quantization | " + both + "s | 10.80s | " + ratio + " |\n"
}

// dearer gives the combined option a worse TTFT than that of its part, and a
// better one than that of the baseline.
func dearer(doc string) string {
	at := strings.Index(doc, "### Cache && Quantization")
	return doc[:at] + strings.Replace(doc[at:], "600.00", "800.00", 1)
}

func TestClaimsOfOptions(t *testing.T) {
	half := figs{"total": "3000.00", "output": "1500.00"}
	start := "# Study of throughput\n\n## Conclusion\n\n???+ tip \"Serving Command\"\n    ```bash\n    vllm serve acme/Model-7B-FP8 -tp 4\n    ```\n\n" +
		"| Case | Baseline | Optimized |\n|---|---|---|\n| Chat | Total TPS: 4000.00 | %s |\n\n## Setup\n\n### Hardware\n\n%s\n\n## Results\n\n" +
		section("### 1. Engine\n\nvLLM", "vllm serve acme/Model-7B -tp 8", figs{"total": "4000.00"}) +
		section("SGLang", "python3 -m sglang.launch_server --model-path acme/Model-7B --tp-size 8", figs{"total": "5000.00", "output": "2500.00"}) +
		"Result: SGLang (5000.00 tok/s) > vLLM (4000.00 tok/s)\n\n" +
		section("### 2. Parallelism", "vllm serve acme/Model-7B-FP8 -tp 4", half) + "%s"
	gain := "### Options\n\n| Option | Throughput Improvement |\n|---|---|\n| Parallelism | %s |\n"
	cases := map[string]struct {
		text string
		want []string
	}{
		"two replicas on paper": {fmt.Sprintf(start, "Total TPS: 3000.00x2 (+50.0%)", "8 × NVIDIA A100 GPUs", fmt.Sprintf(gain, "+50.0%")), []string{
			"error replicas-not-measured: -25.0 %", "warning recommended-underuses-gpus: 3000.00 instead of 4000.00 tok/s (-25.0 %)",
			"warning baseline-not-best: +20.0 %", "warning baseline-mixed: -25.0 % without the multiplication"}},
		"one replica on the GPUs it has":     {fmt.Sprintf(start, "Total TPS: 3000.00", "4 × NVIDIA A100 GPUs", ""), nil},
		"no gain left":                       {combined("6.50", "6.80", "(1.59x faster)"), []string{"warning baseline-mixed: Cache && Quantization 0.96x against Quantization"}},
		"some gain left":                     {combined("6.50", "5.40", "(2.00x faster)"), []string{"warning baseline-mixed: Cache && Quantization 1.20x against Quantization"}},
		"a wrong factor":                     {combined("6.50", "5.40", "(2.50x faster)"), []string{"error factor-wrong: 2.00x", "warning baseline-mixed: Cache && Quantization 1.20x against Quantization"}},
		"a gain that costs against its part": {dearer(combined("6.50", "5.40", "(2.00x faster)")), []string{"warning baseline-mixed: Cache && Quantization 1.20x against Quantization", "warning hidden-cost: Mean TTFT +33 %"}},
		"no gain, no cost of it":             {dearer(combined("6.50", "6.80", "(1.59x faster)")), []string{"warning baseline-mixed: Cache && Quantization 0.96x against Quantization"}},
		"other values of a combined option": {strings.Replace(combined("6.50", "5.40", "(2.00x faster)"), "### Summary", "### Cache && Quantization\n\n"+section("#### Size 2", "vllm serve acme/Model-7B --size 2", figs{"latency": "6.50", "ttft": "600.00", "tpot": "30.00"})+"### Summary", 1),
			[]string{"warning baseline-mixed: Cache && Quantization 1.20x against Quantization (Size 2 1.00x)"}},
		"a choice by noise": {twoRuns("", "- Summary: `A` Total TPS = 6000.00, `B` Total TPS = 5950.00. `A` is faster by 50.00 tok/s (0.84%).\n"+section("### Other", "vllm serve acme/Model-7B-FP8 -tp 8 --max-num-seqs 9", figs{"total": "5950.00"})), []string{"warning within-noise: more than 2 %, the noise of single runs"}},
		"a gain by noise": {twoRuns("", section("### Seqs", "vllm serve acme/Model-7B-FP8 -tp 8 --max-num-seqs 9", figs{"total": "6060.00"})+
			"### Options\n\n| Option | Throughput Improvement |\n|---|---|\n| Max Num Seqs | +1.0% |\n"), []string{"warning within-noise: below 2 %"}},
		"no gain claimed, none to see": {twoRuns("", section("### Max Num Seqs", "vllm serve acme/Model-7B-FP8 -tp 8 --max-num-seqs 9", figs{"total": "6060.00"})+
			"### Options\n\n| Option | Throughput Improvement |\n|---|---|\n| Max Num Seqs | - |\n"), []string{"note within-noise: +1.0 %"}},
		"two values, none to see": {twoRuns("", section("### Max Num Seqs", "vllm serve acme/Model-7B-FP8 -tp 8 --max-num-seqs 9", figs{"total": "6060.00"})+section("### Max Num Seqs again", "vllm serve acme/Model-7B-FP8 -tp 8 --max-num-seqs 8", figs{"total": "5988.00"})+
			"### Options\n\n| Option | Throughput Improvement |\n|---|---|\n| Max Num Seqs | - |\n"), []string{"note within-noise: +1.0 %", "note within-noise: -0.2 %"}},
		"no gain claimed, a loss to see": {twoRuns("", section("### Max Num Seqs", "vllm serve acme/Model-7B-FP8 -tp 8 --max-num-seqs 9", figs{"total": "3060.00"})+
			"### Options\n\n| Option | Throughput Improvement |\n|---|---|\n| Max Num Seqs | - |\n"), nil},
		"one flag of one option": {twoRuns("", section("### Max Num Seqs", "vllm serve acme/Model-7B-FP8 -tp 8 --max-num-seqs 9", figs{"total": "6600.00"})+
			"### Options\n\n| Option | Throughput Improvement |\n|---|---|\n| Max Num Seqs | +10.0% |\n"), nil},
		"two flags of one option": {twoRuns("", section("### Max Num Seqs", "vllm serve acme/Model-7B-FP8 -tp 8 --max-num-seqs 9 --swap 4", figs{"total": "6600.00"})+
			"### Options\n\n| Option | Throughput Improvement |\n|---|---|\n| Max Num Seqs | +10.0% |\n"), []string{"warning baseline-mixed: "}},
		"less generated": {"# Study\n\n" + gains("Total TPS: 6000.00 (+50.0%)<br>Mean TPOT(ms): 40.00") + "\n## Results\n\n" + section("### Engine", "vllm serve acme/Model-7B", figs{}) +
			section("### Quantization", "vllm serve acme/Model-7B-FP8", figs{"total": "6000.00", "output": "3000.00", "tpot": "40.00", "out": "197000"}), []string{"note unequal-work: ratio 0.985"}},
		"other prompts": {strings.Replace(strings.Replace(twoRuns(gains("Total TPS: 6000.00 (+50.0%)<br>Mean TPOT(ms): 40.00"), ""), "200000", "190000", 1), "100.0000", "97.5000", 1), []string{"warning unequal-work: ratio 1.053"}},
		"a column of changes": {"# Notes\n\n| Metric | Without | With | Change |\n|---|---|---|---|\n| Total TPS | 400.00 | 500.00 | +25.0% |\n| Mean TTFT (ms) | 80.00 | 60.00 | -30.0% |\n",
			[]string{"error percentage-wrong: -25.0 %"}},
		"rows against one of them": {"# Notes\n\n| Method | Throughput (tok/s) | Mean TTFT (ms) |\n|---|---|---|\n| A | 500.00 (+25.0%) | 60.00 (-25.0%) |\n| B | 600.00 (+55.0%) | 40.00 (-50.0%) |\n| C | 400.00 | 80.00 |\n",
			[]string{"error percentage-wrong: +50.0 %"}},
		"rows against none of them": {"# Notes\n\n| Method | Throughput (tok/s) |\n|---|---|\n| A | 500.00 (+21.0%) |\n| B | 600.00 (+55.0%) |\n| C | 400.00 |\n", nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { same(t, found(t, c.text), c.want) })
	}
}

// same compares findings without their order.
func same(t *testing.T, got, want []string) {
	t.Helper()
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		t.Errorf("found\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// loads are blocks of 1, 10 and 100 prompts of a model: its TTFT and P99 TTFT
// at each in ms, its TPOT and total throughput at 100.
func loads(heading string, ttft [3]int, tpot, total int, without ...int) string {
	var text strings.Builder
	text.WriteString(heading + "\n\n")
	for i, n := range []int{1, 10, 100} {
		if slices.Contains(without, n) {
			continue
		}
		text.WriteString(printed(figs{"n": fmt.Sprint(n), "in": fmt.Sprint(1000 * n), "out": fmt.Sprint(100 * n), "ttft": fmt.Sprintf("%d.00", ttft[i]), "p99ttft": fmt.Sprintf("%d.00", ttft[i]),
			"tpot": fmt.Sprintf("%d.00", tpot*(i+1)), "itl": fmt.Sprintf("%d.00", tpot*(i+1)), "total": fmt.Sprintf("%d.00", total*n/100), "output": fmt.Sprintf("%d.00", total*n/1100)}))
	}
	return text.String()
}

func TestClaimsOfProse(t *testing.T) {
	forum := func(said string, without ...int) string {
		return "4x Spark setup\n\nGPT-OSS-120B\n\n4 nodes (tp)\n\n" + loads("", [3]int{40, 1600, 16000}, 15, 4400) +
			"\n8 nodes (tp)\n\n" + loads("", [3]int{900, 1500, 15000}, 15, 5500) +
			"\nnvidia/Llama-3.3-70B-Instruct-NVFP4\n\n4 nodes (tp)\n\n" + loads("", [3]int{700, 7000, 70000}, 40, 1100) +
			"\nzai-org/GLM-4.6-FP8\n\n4 nodes (tp)\n\n" + loads("", [3]int{800, 8000, 80000}, 150, 600, without...) + "\nSummary\n\n" + said + "\n"
	}
	cases := map[string]struct {
		said    string
		without []int
		want    []string
	}{
		"nothing said":        {"", nil, []string{"note count-contradiction: 8 nodes"}},
		"a load missing":      {"", []int{100}, []string{"note count-contradiction: 8 nodes", "note missing-cell: 3 of 4 configurations have it"}},
		"a cached TTFT":       {"GPT-OSS-120B is the snappiest (TTFT 40ms).", nil, []string{"note count-contradiction: 8 nodes", "warning claim-on-cached-ttft: 160 ms"}},
		"a fresh TTFT":        {"Llama-3.3-70B-NVFP4 has a TTFT of 700ms.", nil, []string{"note count-contradiction: 8 nodes"}},
		"high beside cached":  {"Of Llama-3.3-70B-NVFP4 the single-request TTFT is higher (700ms).", nil, []string{"note count-contradiction: 8 nodes", "warning claim-on-cached-ttft: "}},
		"the worse setup":     {"GPT-OSS-120B reaches ~4.4k tok/s total at 100 requests.", nil, []string{"note count-contradiction: 8 nodes", "note selective-citation: 5500.00 (+25.0 %, -38 % per node)", "note totals-across-workloads: 400 tok/s generated"}},
		"both setups":         {"GPT-OSS-120B reaches 4400 tok/s output on 4 and 5500 tok/s total on 8 nodes, ~4.4k tok/s total on 4.", nil, []string{"note count-contradiction: 8 nodes", "warning figure-unmatched: ", "note totals-across-workloads: 500 tok/s generated"}},
		"a size by the total": {"Despite Llama-3.3-70B-NVFP4 being smaller than GPT-OSS-120B, it is slower.", nil, []string{"note count-contradiction: 8 nodes", "note size-claim: 69.5B against 5.1B active parameters"}},
		"a size that holds":   {"GPT-OSS-120B is smaller than Llama-3.3-70B-NVFP4 in what a token reads.", nil, []string{"note count-contradiction: 8 nodes"}},
		"not the hardest":     {"GLM-4.6-FP8 degrades the hardest.", nil, []string{"note count-contradiction: 8 nodes", "note degradation-claim: 100x against 400x"}},
		"the hardest":         {"GPT-OSS-120B degrades the hardest.", nil, []string{"note count-contradiction: 8 nodes"}},
		"latency-bound":       {"GLM-4.6-FP8 is latency-bound.", nil, []string{"note count-contradiction: 8 nodes", "note bound-claim: 325 ms to read the weights"}},
		"latency-bound it is": {"Llama-3.3-70B-NVFP4 is latency-bound.", nil, []string{"note count-contradiction: 8 nodes"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { same(t, found(t, forum(c.said, c.without...)), c.want) })
	}
}

func TestWarm(t *testing.T) {
	forum := func(ttft [3]int) string {
		return "2x Spark setup\n\nGPT-OSS-120B\n\n2 nodes (tp)\n\n" + loads("", ttft, 15, 4400) + "\nSummary\n\nIt is the snappiest (TTFT 50ms).\n"
	}
	same(t, found(t, forum([3]int{50, 2000, 20000})), []string{"warning claim-on-cached-ttft: 200 ms"})
	same(t, found(t, forum([3]int{50, 1000, 9000})), nil) // each prompt took as long in a batch, nearly
}

// FuzzClaims holds that no document makes the checks of claims panic, and that
// every finding has a place and a sentence.
func FuzzClaims(f *testing.F) {
	f.Add(twoRuns(gains("Total TPS: 6000.00x2 (+10.7%)<br>Mean TPOT(ms): 40.00"), "Result: vLLM (4000.00 tok/s) > FP8 (6000.00 tok/s)\n"))
	f.Add(twoRuns("| Option | Gain |\n|---|---|\n| A && B | +1% |\n", "- Summary: `A` TPOT = 1 ms vs 0 ms, reduced by 1 ms (-0x faster).\n"))
	f.Add(brokenTPOT("2.00", "0.10"))
	f.Add("# 6x\n\n| a | b (ms) |\n|-|\n| 1 | 2 (+3%) | 4\n\nTTFT ~9k tok/s × 2 from 1 to ≈2ms; −3% 1.00x2.5")
	f.Fuzz(func(t *testing.T, text string) {
		file := interop.Read("x.md", []byte(text))
		if file.Doc == nil {
			return
		}
		for _, x := range ofDocument(&file, audit.Options{}, claimRules) {
			if x.Place.Line < 1 || x.Text == "" || x.Severity == "" {
				t.Errorf("%+v", x)
			}
		}
	})
}
