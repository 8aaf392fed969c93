package audit

import (
	"slices"
	"strings"
	"testing"

	"perflab/internal/interop"
)

// changed is a block with some of its lines put otherwise, "label: old=new".
func changed(t *testing.T, block string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(block, pairs[i]) {
			t.Fatalf("the block has no %q", pairs[i])
		}
		block = strings.Replace(block, pairs[i], pairs[i+1], 1)
	}
	return block
}

// typesOf are the types of the findings on a text that are no notes, and their
// texts.
func typesOf(t *testing.T, text string) (types []string, said string) {
	t.Helper()
	f := interop.Read("x.md", []byte(text))
	if len(f.Runs) == 0 {
		t.Fatalf("no block is read of:\n%s", text)
	}
	for _, x := range Runs(&f, Options{}) {
		if x.Severity != Note {
			types = append(types, x.Type)
		}
		said += string(x.Severity) + " " + x.Type + ": " + x.Text + "; " + x.Expected + "\n"
	}
	return types, said
}

// TestBlockGaps: what a block does not have, or has above what can be, each with
// a block beside it that is clean.
func TestBlockGaps(t *testing.T) {
	zeroITL := []string{"Mean ITL (ms):                           41.50", "Mean ITL (ms):                           0.00",
		"Median ITL (ms):                         35.00", "Median ITL (ms):                         0.00",
		"P99 ITL (ms):                            90.00", "P99 ITL (ms):                            0.00"}
	oneToken := append(slices.Clone(zeroITL), "Total generated tokens:                  20000", "Total generated tokens:                  200",
		"Output token throughput (tok/s):         400.00", "Output token throughput (tok/s):         4.00",
		"Total token throughput (tok/s):          2400.00", "Total token throughput (tok/s):          2004.00",
		"Peak output token throughput (tok/s):    620.00", "Peak output token throughput (tok/s):    9.00",
		"Mean TPOT (ms):                          40.00", "Mean TPOT (ms):                          0.00",
		"Median TPOT (ms):                        38.00", "Median TPOT (ms):                        0.00",
		"P99 TPOT (ms):                           70.00", "P99 TPOT (ms):                           0.00",
		"Mean E2EL (ms):                          4280.00", "Mean E2EL (ms):                          300.00",
		"Median E2EL (ms):                        4100.00", "Median E2EL (ms):                        250.00",
		"P99 E2EL (ms):                           9500.00", "P99 E2EL (ms):                           900.00")
	capped := func(cap, peak string) string {
		return changed(t, vllmBlock, "Peak concurrent requests:                40.00", "Maximum request concurrency:             "+cap+"\nPeak concurrent requests:                "+peak)
	}
	for name, c := range map[string]struct {
		text string
		want []string // types, in order
		says string
	}{
		"zeros for times between tokens":    {changed(t, vllmBlock, zeroITL...), []string{"unmeasured-zeros"}, "of answers of 100 tokens"},
		"zeros in seconds and milliseconds": {changed(t, guideBlock, "Mean Latency(s):                          4.29", "Mean Latency(s):                          0.00", "Median Latency(s):                        4.10", "Median Latency(s):                        0.00", "P95 Latency(s):                           8.00", "P95 Latency(s):                           0.00", "P99 Latency(s):                           9.50", "P99 Latency(s):                           0.00"), []string{"tpot-includes-first", "unmeasured-zeros"}, "P99 Latency(s) are 0: the client measured nothing"},
		"answers of one token":              {changed(t, vllmBlock, oneToken...), nil, ""},
		"a percentile that is not given":    {changed(t, vllmBlock, "P99 TTFT (ms):                           900.00", "P99 TTFT (ms):                           N/A"), []string{"figure-not-given"}, "P99 TTFT (ms) is N/A beside Mean TTFT (ms) 300.00: how the slow requests fared is not known"},
		"percentiles with a dash":           {changed(t, guideBlock, "P95 ITL (ms):                            55.00", "P95 ITL (ms):                            -", "P99 ITL (ms):                            65.00", "P99 ITL (ms):                            -"), []string{"figure-not-given", "tpot-includes-first"}, "P95 ITL (ms) and P99 ITL (ms) are - beside"},
		"a mean that is not given":          {changed(t, vllmBlock, "Mean TPOT (ms):                          40.00", "Mean TPOT (ms):                          none"), []string{"figure-not-given"}, "the figure was left out"},
		"a limit that is not set":           {changed(t, vllmBlock, "Peak concurrent", "Maximum request concurrency:             not set\nPeak concurrent"), nil, ""},
		"a mean ITL above its P99":          {changed(t, vllmBlock, "Mean ITL (ms):                           41.50", "Mean ITL (ms):                           99.00"), []string{"mean-above-percentile"}, "the 1.0 % of the samples beyond it take at least 989.0 ms each"},
		"a mean TPOT above its P99":         {changed(t, vllmBlock, "Mean TPOT (ms):                          40.00", "Mean TPOT (ms):                          80.00", "Mean E2EL (ms):                          4280.00", "Mean E2EL (ms):                          8220.00"), []string{"mean-above-percentile"}, "Mean TPOT (ms) 80.00 is above P99 TPOT (ms) 70.00"},
		"a mean that no tail explains":      {changed(t, vllmBlock, "Mean ITL (ms):                           41.50", "Mean ITL (ms):                           900.00"), []string{"mean-impossible"}, "longer than the 50.00 s of the whole run"},
		"a mean above its P99 by a hair":    {changed(t, vllmBlock, "Mean ITL (ms):                           41.50", "Mean ITL (ms):                           91.00"), nil, ""},
		"of few requests":                   {changed(t, vllmBlock, "Successful requests:                     200", "Successful requests:                     50", "Request throughput (req/s):              4.00", "Request throughput (req/s):              1.00", "Total generated tokens:                  20000", "Total generated tokens:                  5000", "Output token throughput (tok/s):         400.00", "Output token throughput (tok/s):         100.00", "Total token throughput (tok/s):          2400.00", "Total token throughput (tok/s):          2100.00", "Mean TPOT (ms):                          40.00", "Mean TPOT (ms):                          71.00", "Mean E2EL (ms):                          4280.00", "Mean E2EL (ms):                          7320.00"), []string{"mean-impossible"}, "of 50 requests, that percentile is the largest"},
		"a latency that parts do not make":  {changed(t, vllmBlock, "Mean E2EL (ms):                          4280.00", "Mean E2EL (ms):                          8560.00"), []string{"latency-doubtful"}, "make 4.26 s for 100 tokens, and the mean latency is 8.56 s"},
		"a latency below its parts":         {changed(t, vllmBlock, "Mean E2EL (ms):                          4280.00", "Mean E2EL (ms):                          3000.00"), []string{"latency-doubtful"}, "and the mean latency is 3 s"},
		"a peak above its cap":              {capped("18", "120.00"), []string{"peak-above-cap"}, "Peak concurrent requests 120.00 is above Maximum request concurrency 18"},
		"a peak that seconds explain":       {capped("32", "40.00"), nil, ""},
		"said of a publication":             {"# Study\n" + capped("32", "40.00") + vllmBlock, nil, "note peak-above-cap"},
		"a peak below its cap":              {capped("40", "40.00"), nil, ""},
		"a cap of the command": {"# Study\n\n```bash\nvllm bench serve --model acme/Model-7B --dataset-name random --num-prompts 200 --random-input-len 500 --random-output-len 100 --max-concurrency 18\n```\n\n```" + changed(t, vllmBlock, "40.00", "180.00") + "```\n",
			[]string{"peak-above-cap"}, "above the limit of 18 that the client was given"},
	} {
		t.Run(name, func(t *testing.T) {
			got, said := typesOf(t, c.text)
			slices.Sort(got)
			if !slices.Equal(got, c.want) || !strings.Contains(said, c.says) {
				t.Errorf("found %v, want %v and %q; it said:\n%s", got, c.want, c.says, said)
			}
		})
	}
}

// TestWeightsFit: weights held against the memory of the devices that a document
// names.
func TestWeightsFit(t *testing.T) {
	doc := func(hardware, command string) string {
		return "# A study\n\n## Hardware\n\n" + hardware + "\n\n## Results\n\n```bash\n" + command + "\n```\n\n```" + vllmBlock + "```\n"
	}
	for name, c := range map[string]struct {
		hardware, command string
		want              bool
	}{
		"too large for one":              {"NVIDIA H100", "vllm serve Qwen/Qwen3-235B-A22B", true},
		"too large for two":              {"8x NVIDIA H100", "vllm serve Qwen/Qwen3-235B-A22B -tp 2", true},
		"sglang, two of the smaller":     {"8 x NVIDIA A100 40GB", "python3 -m sglang.launch_server --model-path Qwen/Qwen3-235B-A22B --tp-size 4", true},
		"fits eight":                     {"8x NVIDIA H100", "vllm serve Qwen/Qwen3-235B-A22B -tp 8", false},
		"fits in FP8":                    {"NVIDIA H200", "vllm serve Qwen/Qwen3-32B-FP8", false},
		"weights in main memory":         {"NVIDIA H100", "vllm serve Qwen/Qwen3-235B-A22B --cpu-offload-gb 600", false},
		"flags alone do not tell":        {"NVIDIA H100 GPUs", "--max-model-len=32768", false},
		"a format that is not looked up": {"NVIDIA H100", "vllm serve Qwen/Qwen3-235B-A22B --quantization bitsandbytes", false},
		"pipelines over nodes":           {"2 nodes of 8x NVIDIA H100", "vllm serve Qwen/Qwen3-235B-A22B -tp 4 -pp 2", false},
	} {
		t.Run(name, func(t *testing.T) {
			got, said := typesOf(t, doc(c.hardware, c.command))
			if slices.Contains(got, "weights-do-not-fit") != c.want {
				t.Errorf("found %v; it said:\n%s", got, said)
			}
		})
	}
}
