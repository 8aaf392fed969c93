package deploy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/proc"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestHealthBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var at []time.Duration
		h := newHealth(Spec{}, 0, func(status int) bool { return status == 200 })
		h.client.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.URL.String() != "http://h/health" {
				t.Errorf("asks %s", r.URL)
			}
			at = append(at, time.Since(began))
			resp := &http.Response{StatusCode: 503, Status: "503 Loading", Body: io.NopCloser(strings.NewReader("")), Request: r}
			if len(at) == 1 {
				return nil, syscall.ECONNREFUSED
			}
			if len(at) == 8 {
				resp.StatusCode = 200
			}
			return resp, nil
		})
		var seen error
		if err := h.await(t.Context(), "http://h", &seen); err != nil {
			t.Error(err)
		}
		want := []time.Duration{0, 50, 150, 350, 750, 1550, 2550, 3550}
		for i := range want {
			want[i] *= time.Millisecond
		}
		if diff := cmp.Diff(want, at); diff != "" {
			t.Errorf("probes (-want +got):\n%s", diff)
		}
		if answer, ok := errors.AsType[statusError](seen); !ok || answer.status != "503 Loading" {
			t.Errorf("last answer %v", seen)
		}
	})
}

func TestHealthEndsWithTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := &LateError{Limit: time.Minute}
		ctx, cancel := context.WithTimeoutCause(t.Context(), 7*time.Second, late)
		defer cancel()
		h := newHealth(Spec{Health: "/ping"}, 0, func(int) bool { return true })
		var cut []time.Duration
		began := time.Now()
		h.client.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			cut = append(cut, time.Since(began))
			return nil, fmt.Errorf("cut %d", len(cut))
		})
		var seen error
		if err := h.await(ctx, "http://h", &seen); !errors.Is(err, late) {
			t.Errorf("await: %v, want %v", err, late)
		}
		if took := time.Since(began); took != 7*time.Second {
			t.Errorf("await ends after %v, want 7s", took)
		}
		if diff := cmp.Diff([]time.Duration{5 * time.Second, 7 * time.Second}, cut); diff != "" {
			t.Errorf("probes are cut at (-want +got):\n%s", diff)
		}
		// What ctx cut tells nothing about the server.
		if seen == nil || !strings.Contains(seen.Error(), "cut 1") {
			t.Errorf("last answer %v, want the first probe's", seen)
		}
	})
}

type sent struct {
	After  time.Duration
	Signal syscall.Signal
}

func TestEndAll(t *testing.T) {
	one := []proc.Process{{ID: identity{PID: 1}}}
	for _, c := range []struct {
		name  string
		dies  time.Duration // by itself
		hurry time.Duration
		wants int // SIGKILLs until it ends; 0: it does by itself
		first sent
		last  sent
		left  int
	}{
		{name: "obedient", dies: time.Second, first: sent{0, syscall.SIGTERM}, last: sent{0, syscall.SIGTERM}},
		{name: "stubborn", dies: time.Hour, wants: 1, first: sent{0, syscall.SIGTERM}, last: sent{10 * time.Second, syscall.SIGKILL}},
		{name: "forking", dies: time.Hour, wants: 3, first: sent{0, syscall.SIGTERM}, last: sent{10*time.Second + 200*time.Millisecond, syscall.SIGKILL}},
		{name: "hurried", dies: time.Hour, hurry: 3 * time.Second, wants: 1, first: sent{0, syscall.SIGTERM}, last: sent{3 * time.Second, syscall.SIGKILL}},
		{name: "hanging", dies: time.Hour, wants: 1e6, first: sent{0, syscall.SIGTERM}, last: sent{19900 * time.Millisecond, syscall.SIGKILL}, left: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var got []sent
				hurry := make(chan struct{})
				if c.hurry > 0 {
					time.AfterFunc(c.hurry, func() { close(hurry) })
				}
				find := func() []proc.Process {
					kills := slices.IndexFunc(got, func(s sent) bool { return s.Signal == syscall.SIGKILL })
					if time.Since(began) >= c.dies || (kills >= 0 && len(got)-kills >= c.wants) {
						return nil
					}
					return one
				}
				signal := func(sig syscall.Signal) { got = append(got, sent{time.Since(began), sig}) }
				left := endAll(find, signal, 10*time.Second, hurry)
				if len(left) != c.left || got[0] != c.first || got[len(got)-1] != c.last {
					t.Errorf("%d left after %v ... %v; want %d, %v ... %v", len(left), got[0], got[len(got)-1], c.left, c.first, c.last)
				}
			})
		})
	}
}

func TestFreePortsAreDistinct(t *testing.T) {
	const n = 400
	ports, err := local{}.Ports(t.Context(), "", n)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(ports)
	if got := len(slices.Compact(ports)); got != n {
		t.Errorf("%d distinct ports of %d", got, n)
	}
}
