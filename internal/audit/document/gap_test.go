package document

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"perflab/internal/audit"
	"perflab/internal/interop"
)

// guide is a block of a client that counts the first token into its TPOT and
// makes throughput of local rates: 100 requests of 100 tokens in and out, unless
// told otherwise. Latency and TTFT are in ms; rate is how much its printed
// throughputs are above tokens over duration.
type guide struct {
	latency, ttft, tpot, itl float64
	duration                 float64 // s; 0: 10
	rate                     float64 // 0: 1
	zeros                    bool    // its ITL
}

func (g guide) String() string {
	if g.duration == 0 {
		g.duration = 10
	}
	if g.rate == 0 {
		g.rate = 1
	}
	var b strings.Builder
	line := func(label, format string, v float64) { fmt.Fprintf(&b, "%-41s"+format+"\n", label+":", v) }
	b.WriteString("============ Serving Benchmark Result ============\n")
	line("Successful requests", "%.0f", 100)
	line("Benchmark duration (s)", "%.2f", g.duration)
	line("Total input tokens", "%.0f", 10000)
	line("Total generated tokens", "%.0f", 10000)
	line("Request throughput (req/s)", "%.2f", 100/g.duration*g.rate)
	line("Output token throughput (tok/s)", "%.2f", 10000/g.duration*g.rate)
	line("Total Token throughput (tok/s)", "%.2f", 20000/g.duration*g.rate)
	b.WriteString("----------------------Latency---------------------\n")
	line("Mean Latency(s)", "%.2f", g.latency/1000)
	line("P99 Latency(s)", "%.2f", 1.2*g.latency/1000)
	b.WriteString("---------------Time to First Token----------------\n")
	line("Mean TTFT (ms)", "%.2f", g.ttft)
	line("P99 TTFT (ms)", "%.2f", 1.2*g.ttft)
	b.WriteString("-----Time per Output Token (excl. 1st token)------\n")
	line("Mean TPOT (ms)", "%.2f", g.tpot)
	line("P99 TPOT (ms)", "%.2f", 1.2*g.tpot)
	b.WriteString("---------------Inter-token Latency----------------\n")
	if g.zeros {
		g.itl = 0
	}
	line("Mean ITL (ms)", "%.2f", g.itl)
	line("Median ITL (ms)", "%.2f", g.itl)
	line("P99 ITL (ms)", "%.2f", 1.2*g.itl)
	b.WriteString("==================================================\n")
	return b.String()
}

// queued is a run whose TPOT is made by the wait for the first token.
func queued(ttft, decode float64) guide {
	return guide{latency: ttft + 99*decode, ttft: ttft, tpot: (ttft + 99*decode) / 100, itl: decode}
}

// twoGuides is a document of a baseline and a change, with something said.
func twoGuides(base, changed guide, said string) string {
	return "# Study of a model\n\n## Results\n\n### Baseline\n\n```bash\nvllm serve acme/Model-7B\n```\n\n```\n" + base.String() +
		"```\n\n### Chunked prefill\n\n```bash\nvllm serve acme/Model-7B --enable-chunked-prefill\n```\n\n```\n" + changed.String() + "```\n\n### Summary\n\n" + said + "\n"
}

// TestGapsOfClaims: claims on figures that mislead, in several wordings, each
// with documents beside it that say the truth.
func TestGapsOfClaims(t *testing.T) {
	// 1000 ms of waiting and 20 ms a token: TPOT 29.80; less waiting and slower
	// tokens: 500 ms and 22 ms, TPOT 26.78.
	slow, worse := queued(1000, 20), queued(500, 22)
	better := queued(600, 15) // TPOT 20.85
	short := guide{latency: 3000, ttft: 500, tpot: 30, itl: 25.25, rate: 1.01, duration: 10}
	shorter := guide{latency: 3000, ttft: 500, tpot: 30, itl: 25.25, rate: 1.08, duration: 10.2}
	even := guide{latency: 3000, ttft: 500, tpot: 30, itl: 25.25, duration: 8}
	lost := guide{latency: 2000, ttft: 300, tpot: 3, zeros: true}
	found := guide{latency: 2000, ttft: 400, tpot: 4, zeros: true}
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"a sentence of faster decoding": {twoGuides(slow, worse, "- Summary: `Chunked prefill` Mean TPOT = 26.78 ms, `Baseline` Mean TPOT = 29.80 ms. TPOT = 26.78 ms vs 29.80 ms, reduced by 3.02 ms (1.11x faster)."), []string{"warning claim-on-broken-figure: 0.91x"}},
		"from and to":                   {twoGuides(slow, worse, "Mean TPOT dropped from 29.80 ms to 26.78 ms with chunked prefill."), []string{"warning claim-on-broken-figure: 0.91x"}},
		"a table of before and after":   {twoGuides(slow, worse, "| Metric | Before | After | Change |\n|---|---|---|---|\n| Mean TPOT (ms) | 29.80 | 26.78 | -10.1% |\n"), []string{"warning claim-on-broken-figure: 0.91x"}},
		"a table of cells":              {twoGuides(slow, worse, "| Case | Baseline | Optimized |\n|---|---|---|\n| Chat | Mean TPOT(ms): 29.80 | Mean TPOT(ms): 26.78 |\n"), []string{"warning claim-on-broken-figure: 0.91x"}},
		"a table of times":              {twoGuides(slow, worse, "| Case | Group | Optimized | Baseline | Comparison |\n|---|---|---:|---:|---|\n| Chat | Chunked prefill | 26.78ms | 29.80ms | (1.11x faster) |\n"), []string{"warning claim-on-broken-figure: 0.91x"}},
		"an arrow":                      {twoGuides(slow, worse, "- Mean TPOT: 29.80 ms → 26.78 ms (10.1% lower)"), []string{"warning claim-on-broken-figure: 0.91x"}},
		"a gain of more than it is":     {twoGuides(queued(4000, 20), queued(500, 18), "Mean TPOT dropped from 59.80 ms to 22.82 ms."), []string{"warning claim-on-broken-figure: 1.11x"}},
		"decoding that is faster":       {twoGuides(slow, better, "Mean TPOT dropped from 29.80 ms to 20.85 ms."), nil},
		"the ITL, which is right":       {twoGuides(slow, worse, "Mean ITL rose from 20.00 ms to 22.00 ms."), nil},
		"TPOT of zeros between tokens":  {twoGuides(found, lost, "Mean TPOT dropped from 4.00 ms to 3.00 ms."), []string{"warning claim-on-broken-figure: 0.94x"}},
		"a gain over shorter windows":   {twoGuides(short, shorter, "| Case | Baseline | Optimized |\n|---|---|---|\n| Chat | Total TPS: 2020.00 | Total TPS: 2117.65 (+4.8%) |\n"), []string{"warning gain-not-by-duration: -2.0 %"}},
		"in a sentence":                 {twoGuides(short, shorter, "Throughput rose from 2020.00 tok/s to 2117.65 tok/s, 4.8% higher."), []string{"warning gain-not-by-duration: -2.0 %"}},
		"as a factor":                   {twoGuides(short, shorter, "- Summary: Output throughput = 1058.82 tok/s vs 1010.00 tok/s (1.05x higher)."), []string{"warning gain-not-by-duration: 0.98x"}},
		"as an option's percentage":     {twoGuides(short, shorter, "| Option | Throughput Improvement |\n|---|---|\n| Chunked Prefill | +4.8% |\n"), []string{"warning gain-not-by-duration: -2.0 %"}},
		"in a ranking":                  {twoGuides(short, shorter, "Result: Chunked prefill (2117.65 tok/s) > Baseline (2020.00 tok/s)"), []string{"warning gain-not-by-duration: -2.0 %"}},
		"less of a gain":                {twoGuides(short, even, "| Case | Baseline | Optimized |\n|---|---|---|\n| Chat | Total TPS: 2020.00 | Total TPS: 2500.00 (+23.8%) |\n"), []string{"warning gain-not-by-duration: +25.0 %"}},
		"a hundredth of a point":        {twoGuides(guide{latency: 3000, ttft: 500, tpot: 30, itl: 25.25, rate: 1.002}, even, "| Case | Baseline | Optimized |\n|---|---|---|\n| Chat | Total TPS: 2004.00 | Total TPS: 2500.00 (+24.8%) |\n"), []string{"note gain-not-by-duration: +25.0 %"}},
		"a gain that duration gives":    {twoGuides(guide{latency: 3000, ttft: 500, tpot: 30, itl: 25.25}, even, "| Case | Baseline | Optimized |\n|---|---|---|\n| Chat | Total TPS: 2000.00 | Total TPS: 2500.00 (+25.0%) |\n"), nil},
		"windows that are short alike":  {twoGuides(guide{latency: 3000, ttft: 500, tpot: 30, itl: 25.25, rate: 1.02}, guide{latency: 3000, ttft: 500, tpot: 30, itl: 25.25, rate: 1.02, duration: 8}, "| Case | Baseline | Optimized |\n|---|---|---|\n| Chat | Total TPS: 2040.00 | Total TPS: 2550.00 (+25.0%) |\n"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := slices.DeleteFunc(foundIn(t, c.text), func(f string) bool {
				return !strings.Contains(f, "claim-on-broken") && !strings.Contains(f, "by-duration") && !strings.HasPrefix(f, "error")
			})
			same(t, got, c.want)
		})
	}
}

// foundIn are the findings on a document as "severity type: expected", those on
// its blocks left out.
func foundIn(t *testing.T, text string) []string {
	t.Helper()
	f := interop.Read("study.md", []byte(text))
	var out []string
	for _, x := range ofDocument(&f, audit.Options{}, rules()) {
		out = append(out, fmt.Sprintf("%s %s: %s", x.Severity, x.Type, x.Expected))
	}
	return out
}

// options is a document of four steps, 4000, 6000, 6600 and 9900 tok/s with
// 1000, 800, 720 and 700 ms of TTFT, and a summary of them.
func options(summary string) string {
	return "# Study of a model\n\n## Results\n\n" +
		section("### Baseline", "vllm serve acme/Model-7B", figs{"total": "4000.00", "output": "2000.00", "ttft": "1000.00"}) +
		section("### Quantization", "vllm serve acme/Model-7B-FP8", figs{"total": "6000.00", "output": "3000.00", "ttft": "800.00"}) +
		section("### Chunked prefill", "vllm serve acme/Model-7B-FP8 --enable-chunked-prefill", figs{"total": "6600.00", "output": "3300.00", "ttft": "720.00"}) +
		section("### CUDA graphs", "vllm serve acme/Model-7B-FP8 --enable-chunked-prefill --max-cudagraph-capture-size 512", figs{"total": "9900.00", "output": "4950.00", "ttft": "700.00"}) +
		"### Summary\n\n" + summary
}

// TestGapsOfOptions: percentages without their operands, which are looked for
// among the blocks.
func TestGapsOfOptions(t *testing.T) {
	for name, c := range map[string]struct {
		summary string
		want    []string
	}{
		"all follow":                            {"| Option | Throughput Improvement |\n|---|---|\n| Quantization | +50.0% |\n| Chunked Prefill | +10.0% |\n| CUDA Graphs | +50.0% |\n", nil},
		"of another option":                     {"| Option | Throughput Improvement |\n|---|---|\n| Quantization | +50.0% |\n| Chunked Prefill | +50.0% |\n", []string{"warning percentage-wrong: nearest: +65.0 %, 6600.00 against 4000.00"}},
		"of none":                               {"| Option | Throughput Improvement |\n|---|---|\n| Quantization | +55.0% |\n", []string{"error percentage-wrong: nearest: +50.0 %, 6000.00 against 4000.00"}},
		"as factors":                            {"| Option | Speedup |\n|---|---|\n| Quantization | 1.50x |\n| Chunked Prefill | 1.25x |\n", []string{"error percentage-wrong: nearest: +10.0 %, 6600.00 against 6000.00"}},
		"several columns":                       {"| Option | Throughput | Mean TTFT | Notes |\n|---|---|---|---|\n| Quantization | +50.0% | -20.0% | FP8 |\n| Chunked Prefill | +10.0% | -10.0% | on |\n", nil},
		"a wrong one of several columns":        {"| Option | Throughput | Mean TTFT | Notes |\n|---|---|---|---|\n| Quantization | +50.0% | -35.0% | FP8 |\n| Chunked Prefill | +10.0% | -10.0% | on |\n", []string{"error percentage-wrong: nearest: -20.0 %, 800.00 against 1000.00"}},
		"in words":                              {"| Option | Effect on throughput |\n|---|---|\n| Quantization | 50.0% higher |\n| Chunked Prefill | 31.0% higher |\n", []string{"error percentage-wrong: nearest: +10.0 %, 6600.00 against 6000.00"}},
		"arrows":                                {"| Option | TTFT |\n|---|---|\n| Quantization | ↓ 20.0% |\n| Chunked Prefill | ↓ 33.0% |\n", []string{"error percentage-wrong: nearest: +38.9 %, 720.00 against 1000.00"}},
		"and all together":                      {"| Option | Throughput Improvement |\n|---|---|\n| Quantization | +50.0% |\n| Chunked Prefill | +10.0% |\n| CUDA Graphs | +50.0% |\n| Total | +147.5% |\n", nil},
		"a share of something else":             {"| Part | Share of time |\n|---|---|\n| Quantization | 12.0% |\n| Chunked Prefill | 88.0% |\n", nil},
		"a figure of the text that blocks lack": {"Quantization alone was 5000.00 tok/s in another run.\n\n| Option | Throughput Improvement |\n|---|---|\n| Quantization | +25.0% |\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			same(t, slices.DeleteFunc(foundIn(t, options(c.summary)), func(f string) bool { return !strings.Contains(f, "percentage-wrong") && !strings.HasPrefix(f, "error") }), c.want)
		})
	}
}

// TestGapsOfRecommendations: recommended commands that no block was measured
// with, wherever and however they are recommended.
func TestGapsOfRecommendations(t *testing.T) {
	const fence = "```"
	runs := section("### Engine\n\nvLLM", "vllm serve acme/Model-7B -tp 8", figs{"total": "4000.00"}) +
		section("SGLang", "python3 -m sglang.launch_server --model-path acme/Model-7B --tp-size 8", figs{"total": "5000.00", "output": "2500.00"}) +
		section("### Quantization", "vllm serve acme/Model-7B-FP8 -tp 8", figs{"total": "6000.00", "output": "3000.00"})
	bare := "### Another\n\n" + fence + "\n" + printed(figs{"total": "6500.00", "output": "3250.00"}) + fence + "\n\n"
	show := func(command string) string { return fence + "bash\n" + command + "\n" + fence + "\n\n" }
	doc := func(before, results, after string) string {
		return "# Study of a model\n\n" + before + "## Results\n\n" + results + after
	}
	const never, runIt = "vllm serve acme/Model-7B-FP8 -tp 8 --max-num-seqs 64 --enable-chunked-prefill", "vllm serve acme/Model-7B-FP8 --tensor-parallel-size=8 --port 80"
	table := "| Case | Baseline | Optimized |\n|---|---|---|\n| Chat | Total TPS: 4000.00 | Total TPS: 6000.00 (+50.0%) |\n\n"
	for name, c := range map[string]struct {
		text string
		want bool
	}{
		"under a conclusion":                {doc("## Conclusion\n\n"+show(never), runs, ""), true},
		"at the end":                        {doc("", runs, "## Recommendation\n\n"+show(never)), true},
		"by the line above":                 {doc("", runs, "## Notes\n\nFor this load we recommend the following command:\n\n"+show(never)), true},
		"flags alone":                       {doc("", runs, "## Recommended flags\n\n"+show("--max-num-seqs 64\n--enable-chunked-prefill\n-tp 8")), true},
		"the second of two":                 {doc("## Conclusion\n\n"+show(runIt)+"For long prompts:\n\n"+show(never), runs, ""), true},
		"in a container":                    {doc("## Conclusion\n\n"+show("docker run --gpus all -p 80:8000 --ipc=host vllm/vllm-openai:v0.11.0 --model acme/Model-7B-FP8 -tp 4"), runs, ""), true},
		"of an engine that did not run":     {doc("## Conclusion\n\n"+show("trtllm-serve acme/Model-7B-FP8 --tp_size 8"), runs, ""), true},
		"a table of others, and a bare one": {doc("## Conclusion\n\n"+show(never)+table, runs+bare, ""), true},
		"a table of others, though it ran":  {doc("## Conclusion\n\n"+show("vllm serve acme/Model-7B -tp 8")+"| Case | Baseline | Optimized |\n|---|---|---|\n| Chat | Total TPS: 5000.00 | Total TPS: 6000.00 (+20.0%) |\n\n", runs, ""), true},
		"that ran":                          {doc("## Conclusion\n\n"+show(runIt)+table, runs, ""), false},
		"that ran, in a container":          {doc("## Conclusion\n\n"+show("docker run --gpus all -p 80:8000 --ipc=host vllm/vllm-openai:v0.11.0 --model acme/Model-7B-FP8 -tp 8"), runs, ""), false},
		"that ran, at the end":              {doc("", runs, "## Recommendation\n\n"+show(runIt)), false},
		"that a bare block may be of":       {doc("## Conclusion\n\n"+show(never), runs+bare, ""), false},
		"an example of use":                 {doc("## How to start it\n\n"+show(never), runs, ""), false},
	} {
		t.Run(name, func(t *testing.T) {
			got := foundIn(t, c.text)
			if slices.ContainsFunc(got, func(f string) bool { return strings.Contains(f, "recommended-not-measured") }) != c.want {
				t.Errorf("found %q", got)
			}
		})
	}
}

// TestGapsOfLatencies: latencies of requests that blocks do not print.
func TestGapsOfLatencies(t *testing.T) {
	// 200 tokens of 50 ms after 900 ms: 10.85 s.
	for name, c := range map[string]struct {
		said string
		want bool
	}{
		"a column of latencies":      {"| Case | Mean TTFT (ms) | Mean TPOT (ms) | E2E latency (s) |\n|---|---|---|---|\n| Chat | 900.00 | 50.00 | 5.43 |\n", true},
		"in milliseconds":            {"| Case | TTFT (ms) | TPOT (ms) | E2E (ms) |\n|---|---|---|---|\n| Chat | 900.00 | 50.00 | 5425 |\n", true},
		"with the throughput":        {"| Case | Total throughput (tok/s) | Mean latency (s) |\n|---|---|---|\n| Chat | 4000.00 | 21.70 |\n", true},
		"a sentence":                 {"With a TTFT of 900ms and a TPOT of 50ms the mean latency is 4.2s.", true},
		"a sentence with a length":   {"With a TTFT of 900ms and a TPOT of 50ms the mean latency of a 400-token answer is 10.9s.", true},
		"a latency that follows":     {"| Case | Mean TTFT (ms) | Mean TPOT (ms) | E2E latency (s) |\n|---|---|---|---|\n| Chat | 900.00 | 50.00 | 10.85 |\n", false},
		"a sentence that is right":   {"With a TTFT of 900ms and a TPOT of 50ms the mean latency of a 400-token answer is 20.9s.", false},
		"a tail, which does not add": {"| Case | Mean TTFT (ms) | Mean TPOT (ms) | P99 E2E latency (s) |\n|---|---|---|---|\n| Chat | 900.00 | 50.00 | 40.00 |\n", false},
		"a table of latencies alone": {"| Case | Baseline | Optimized |\n|---|---|---|\n| Chat | Mean latency: 10.85s/req | Mean latency: 7.20s/req (1.51x faster) |\n", true},
		"that follow":                {"| Case | Baseline | Optimized |\n|---|---|---|\n| Chat | Mean latency: 10.85s/req | Mean latency: 8.76s/req (1.24x faster) |\n", false},
		"by the label of its row":    {"| Option | Mean latency | Total TPS |\n|---|---|---|\n| Engine | 10.85s | 4000.00 |\n| Quantization | 10.85s | - |\n", true},
		"other measurements of it":   {"| Option | WER | Avg Latency (s) |\n|---|---|---|\n| Engine | 23.86% | 0.212 |\n| Quantization | 29.55% | 0.366 |\n", false},
		"other measurements":         {"| Model | Accuracy | Latency (s) |\n|---|---|---|\n| A | 0.745 | 4.174 |\n| B | 0.805 | 16.148 |\n", false},
		"statistics in columns":      {"| Distribution | Mean | P90 | Max |\n|---|---|---|---|\n| TTFT (ms) | 900.00 | 1700.00 | 2100.00 |\n| TPOT (ms) | 50.00 | 60.00 | 70.00 |\n| E2EL (ms) | 10850.00 | 19000.00 | 30000.00 |\n", false},
		"wrong mean in a column":     {"| Distribution | Mean | P90 |\n|---|---|---|\n| TPOT (ms) | 50.00 | 60.00 |\n| E2EL (ms) | 5430.00 | 19000.00 |\n", true},
		"an aim":                     {"We want a mean latency below 2s.", false},
	} {
		t.Run(name, func(t *testing.T) {
			got := foundIn(t, twoRuns("", c.said+"\n"))
			if slices.ContainsFunc(got, func(f string) bool { return strings.Contains(f, "latency-not-derived") }) != c.want {
				t.Errorf("found %q", got)
			}
		})
	}
}

// TestTemplates: one script for several variants is a note, for a block of
// another value a warning.
func TestTemplates(t *testing.T) {
	const head = "# Study of a model\n\n## Results\n\n### Batched tokens\n\n```bash\nvllm serve acme/Model-7B --max-num-batched-tokens 4096\n```\n\n```\n"
	variant := func(n, total string) string {
		return "# --max-num-batched-tokens " + n + "\n" + printed(figs{"total": total}) + "\n"
	}
	for name, c := range map[string]struct{ text, want string }{
		"a comment for each variant": {head + variant("4096", "4000.00") + variant("8192", "4100.00") + "```\n", "note script-contradicts-block: "},
		"three, none of them its":    {head + variant("2048", "3900.00") + variant("8192", "4100.00") + variant("16384", "4200.00") + "```\n", "note script-contradicts-block: "},
		"another value alone":        {head + variant("8192", "4100.00") + "```\n", "warning script-contradicts-block: "},
		"its own value":              {head + variant("4096", "4000.00") + "```\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := slices.DeleteFunc(foundIn(t, c.text), func(f string) bool { return !strings.Contains(f, "script-contradicts") })
			if strings.Join(got, " ") != c.want {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}
