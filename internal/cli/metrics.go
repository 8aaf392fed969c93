package cli

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"perflab/internal/load"
	"perflab/internal/stat"
)

// serveMetrics answers Prometheus while runs last; stop ends it.
// progress gives that of the run that is being made.
func (f *benchFlags) serveMetrics(env Env, progress func() *load.Progress) (stop func(), err error) {
	if f.metricsAddr == "" {
		return func() {}, nil
	}
	ln, err := net.Listen("tcp", f.metricsAddr)
	if err != nil {
		return nil, fmt.Errorf("serve --metrics-addr: %w", err)
	}
	fmt.Fprintf(env.Stderr, "metrics: http://%s/metrics\n", ln.Addr())
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		writeMetrics(w, progress()) // who asks may be gone
	})
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			fmt.Fprintf(env.Stderr, "perflab: serve --metrics-addr: %v\n", err)
		}
	}()
	return func() {
		srv.Close()
		<-done
	}, nil
}

// writeMetrics writes a run's progress in Prometheus' text format.
func writeMetrics(w io.Writer, p *load.Progress) error {
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
	histogram(&b, "perflab_ttft_seconds", "Time to first token, from the sending.", &p.TTFT)
	histogram(&b, "perflab_itl_seconds", "Gap between reads that brought tokens.", &p.ITL)
	_, err := io.WriteString(w, b.String())
	return err
}

// bounds are the upper ends of the buckets, in seconds. What lies within 3 % of
// one may be counted above it.
var bounds = []float64{0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100}

func histogram(b *strings.Builder, name, help string, h *stat.Histogram) {
	fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s histogram\n", name, help, name)
	n, sum := h.Total()
	for _, le := range bounds {
		fmt.Fprintf(b, "%s_bucket{le=\"%g\"} %d\n", name, le, min(h.Below(int64(le*1e9)), n))
	}
	fmt.Fprintf(b, "%s_bucket{le=\"+Inf\"} %d\n%s_sum %g\n%s_count %d\n", name, n, name, float64(sum)/1e9, name, n)
}
