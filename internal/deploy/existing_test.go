package deploy_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/deploy"
	"perflab/internal/test/deploytest"
)

func server(t *testing.T, status func() int) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status()) }))
	t.Cleanup(s.Close)
	return s.URL
}

func TestExisting(t *testing.T) {
	var asked atomic.Int32
	waking := server(t, func() int {
		if asked.Add(1) < 3 {
			return 503
		}
		return 200
	})
	guarded := server(t, func() int { return 401 })
	r := deploy.Existing{URLs: []string{waking + "/", guarded}, Poll: time.Millisecond}
	d := deploytest.Start(t, r, deploy.Spec{})
	if diff := cmp.Diff([]string{waking, guarded}, d.Targets()); diff != "" {
		t.Error(diff)
	}
	if n := asked.Load(); n != 3 {
		t.Errorf("asked %d times, want 3", n)
	}
	if err := d.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if status := deploytest.Get(t.Context(), guarded); status != 401 {
		t.Errorf("endpoint answers %d after stop, want 401", status)
	}
	select {
	case <-d.Done():
		t.Error("done is closed by a stop")
	default:
	}
}

func TestExistingUnreachable(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	up := server(t, func() int { return 200 })
	ailing := server(t, func() int { return 500 })
	for _, c := range []struct {
		urls []string
		want string // in error and hint
	}{
		{nil, "no URL"},
		{[]string{"localhost:8000"}, "not an http"},
		{[]string{"http://"}, "not an http"},
		{[]string{up, gone.URL}, "start the server at " + gone.URL},
		{[]string{ailing}, "answers 500"},
	} {
		r := deploy.Existing{URLs: c.urls, Poll: time.Millisecond}
		_, err := r.Start(t.Context(), deploy.Spec{Timeout: 200 * time.Millisecond})
		e, ok := errors.AsType[*deploy.InfraError](err)
		if !ok || !strings.Contains(e.Error()+" "+e.Hint(), c.want) || e.Hint() == "" {
			t.Errorf("%v: %v, want an InfraError with %q", c.urls, err, c.want)
		}
	}
	interrupted := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(interrupted)
	if _, err := (deploy.Existing{URLs: []string{up}}).Start(ctx, deploy.Spec{}); !errors.Is(err, interrupted) {
		t.Errorf("start: %v, want the cause %v", err, interrupted)
	}
}
