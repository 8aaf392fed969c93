package load

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"perflab/internal/stat"
)

// WriteMetrics writes a run's progress in Prometheus' text format.
func (p *Progress) WriteMetrics(w io.Writer) error {
	var b strings.Builder
	one := func(name, kind, help string, v int64) {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n%s %d\n", name, help, name, kind, name, v)
	}
	one("perflab_requests_sent_total", "counter", "Requests sent.", p.Sent.Load())
	one("perflab_requests_done_total", "counter", "Calls that ended, failed ones included.", p.Done.Load())
	one("perflab_requests_in_flight", "gauge", "Calls under way.", p.InFlight.Load())
	one("perflab_requests_planned", "gauge", "Requests of the whole run; 0 when not known.", p.Planned.Load())
	one("perflab_output_tokens_total", "counter", "Output tokens as counted in the streams.", p.Tokens.Load())
	const failed = "perflab_requests_failed_total"
	fmt.Fprintf(&b, "# HELP %s Failed calls by class.\n# TYPE %s counter\n", failed, failed)
	classes := p.Failures()
	for _, c := range slices.Sorted(maps.Keys(classes)) {
		fmt.Fprintf(&b, "%s{class=%q} %d\n", failed, c, classes[c])
	}
	writeHistogram(&b, "perflab_ttft_seconds", "Time to first token, from the sending.", &p.TTFT)
	writeHistogram(&b, "perflab_itl_seconds", "Gap between reads that brought tokens.", &p.ITL)
	_, err := io.WriteString(w, b.String())
	return err
}

// bounds are the upper ends of the buckets, in seconds. What lies within 3 % of
// one may be counted above it.
var bounds = []float64{0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100}

func writeHistogram(b *strings.Builder, name, help string, h *stat.Histogram) {
	fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s histogram\n", name, help, name)
	n, sum := h.Total()
	for _, le := range bounds {
		fmt.Fprintf(b, "%s_bucket{le=\"%g\"} %d\n", name, le, min(h.Below(int64(le*1e9)), n))
	}
	fmt.Fprintf(b, "%s_bucket{le=\"+Inf\"} %d\n%s_sum %g\n%s_count %d\n", name, n, name, float64(sum)/1e9, name, n)
}
