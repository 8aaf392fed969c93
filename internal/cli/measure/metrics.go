package measure

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"perflab/internal/cli/console"
	"perflab/internal/load"
)

// serveMetrics answers Prometheus while runs last; stop ends it.
// progress gives that of the run that is being made.
func (f *benchFlags) serveMetrics(env console.Env, progress func() *load.Progress) (stop func(), err error) {
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
		progress().WriteMetrics(w) // who asks may be gone
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
