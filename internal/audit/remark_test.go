package audit

import (
	"slices"
	"strings"
	"testing"
)

// burstBlock is 100 short answers sent at once.
const burstBlock = `
============ Serving Benchmark Result ============
Successful requests:                     100
Benchmark duration (s):                  10.00
Total input tokens:                      12800
Total generated tokens:                  400
Request throughput (req/s):              10.00
Output token throughput (tok/s):         40.00
Peak output token throughput (tok/s):    100.00
Peak concurrent requests:                100.00
Total token throughput (tok/s):          1320.00
---------------Time to First Token----------------
Mean TTFT (ms):                          6500.00
Median TTFT (ms):                        6450.00
P99 TTFT (ms):                           9500.00
-----Time per Output Token (excl. 1st token)------
Mean TPOT (ms):                          200.00
Median TPOT (ms):                        200.00
P99 TPOT (ms):                           300.00
---------------Inter-token Latency----------------
Mean ITL (ms):                           150.00
Median ITL (ms):                         160.00
P99 ITL (ms):                            300.00
==================================================
`

// Remarks are for documents that publish: a block alone has none of them.
func TestRemarks(t *testing.T) {
	setup := "# Doc\n\nPrompts of 128 input tokens, 4 output tokens.\n\n"
	pair := func(block string) string { return setup + "```\n" + block + "```\n\n```\n" + block + "```\n" }
	burst := []string{"note burst", "note ingestion", "note itl-zero-gap"}
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"alone", setup + "```\n" + burstBlock + "```\n", nil},
		{"published", pair(burstBlock), burst},
		{"clean", pair(vllmBlock), nil},
		{"gaps as many as between tokens", pair(with(t, burstBlock, "Mean ITL (ms): 200.00")), burst[:2]},
		{"a limit", pair(with(t, burstBlock, "Peak concurrent requests: 90.00")), burst[2:]},
		{"first tokens from the start", pair(with(t, burstBlock, "Mean TTFT (ms): 5000.00", "Median TTFT (ms): 5000.00")), []string{burst[0], burst[2]}},
		{"short answers", pair(with(t, burstBlock, "Total generated tokens: 390", "Output token throughput (tok/s): 39.00", "Total token throughput (tok/s): 1319.00")),
			[]string{"note burst", "note ingestion", "note short-outputs"}},
		{"short prompts", pair(with(t, burstBlock, "Total input tokens: 12750", "Total token throughput (tok/s): 1315.00")), append(slices.Clone(burst), "note short-inputs")},
		{"stalls", pair(with(t, vllmBlock, "P99 ITL (ms): 106.00")), []string{"note itl-stalls"}},
		{"prompts alone", pair(with(t, vllmBlock, "Total input tokens: 2000000", "Total token throughput (tok/s): 40400.00")), []string{"note mostly-prompt"}},
		{"few", pair(with(t, vllmBlock, "Successful requests: 99", "Request throughput (req/s): 1.98", "Peak concurrent requests: 40.00")), []string{"note few-samples"}},
	} {
		if got := types(audited(t, tt.text)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	for _, f := range audited(t, pair(burstBlock)) {
		if len(f.Also) != 1 || strings.Contains(f.Text, "NaN") {
			t.Errorf("%s of %d blocks: %s", f.Type, 1+len(f.Also), f.Text)
		}
	}
}
