package bench

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"perflab/internal/result"
	"perflab/internal/workload"
)

// profiled is a server with a profiler, and what it was asked in order, with one entry
// for all of a load.
func profiled(t *testing.T, l *listener) (url string, asked func() []string) {
	t.Helper()
	var mu sync.Mutex
	var log []string
	mux := http.NewServeMux()
	note := func(what string, next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			if len(log) == 0 || log[len(log)-1] != what {
				log = append(log, what)
			}
			mu.Unlock()
			if next != nil {
				next.ServeHTTP(w, r)
			}
		})
	}
	mux.Handle("POST /start_profile", note("start", nil))
	mux.Handle("POST /stop_profile", note("stop", nil))
	mux.Handle("GET /v1/models", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte(`{"data":[{"id":"first"},{"id":"second"}]}`))
	}))
	mux.Handle("POST /v1/completions", note("load", http.HandlerFunc(l.answer)))
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL, func() []string { mu.Lock(); defer mu.Unlock(); return slices.Clone(log) }
}

// TestProfile: the profiler runs around the load and not the warm-up, and the verdict
// says that figures are of a server that it slows.
func TestProfile(t *testing.T) {
	l := listen(t)
	url, asked := profiled(t, l)
	spec := l.spec(workload.Spec{NumPrompts: 4, RandomInputLen: 8, RandomOutputLen: 2})
	spec.Targets, spec.Model, spec.Profile, spec.Warmups = []string{url}, "first", true, 1
	out, err := Runner{Spec: spec}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := asked(), []string{"load", "start", "load", "stop"}; !slices.Equal(got, want) {
		t.Errorf("asked %q, want %q", got, want)
	}
	i := slices.IndexFunc(out.Summary.Verdict.Checks, func(c result.Check) bool { return c.Name == "profiled" })
	if i < 0 || out.Summary.Verdict.Checks[i].Status != result.Noted {
		t.Errorf("verdict %+v", out.Summary.Verdict)
	}

	l = listen(t)
	spec.Targets, spec.Model = []string{l.url}, "m"
	if _, err := (Runner{Spec: spec}).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "/start_profile answers 404") {
		t.Errorf("without a profiler: %v", err)
	}
}

// TestFirstModel: a spec without a model is of the first that the server lists.
func TestFirstModel(t *testing.T) {
	l := listen(t)
	url, _ := profiled(t, l)
	if got, err := (Runner{Spec: Spec{Targets: []string{url}}}).FirstModel(t.Context()); got != "first" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := (Runner{Spec: Spec{Targets: []string{l.url}}}).FirstModel(t.Context()); err == nil || !strings.Contains(err.Error(), "names no model: give --model") {
		t.Errorf("without a list: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("given up"))
	if _, err := (Runner{Spec: Spec{Targets: []string{url}}}).FirstModel(ctx); err == nil || err.Error() != "given up" {
		t.Errorf("interrupted: %v", err)
	}
}
