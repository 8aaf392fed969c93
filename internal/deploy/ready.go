package deploy

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"time"
)

// health polls one URL until it answers as ready.
type health struct {
	client *http.Client
	path   string
	first  time.Duration // pause after the first probe; doubled up to 20 times it
	ready  func(status int) bool
}

const (
	defaultPoll  = 50 * time.Millisecond
	pollGrowth   = 20 // longest pause over the first: 1 s at the default
	probeTimeout = 5 * time.Second
)

func newHealth(s Spec, poll time.Duration, ready func(int) bool) *health {
	return &health{
		// No proxy: an engine's address is meant literally, and a proxy would
		// answer in its place.
		client: &http.Client{
			Transport: &http.Transport{DisableKeepAlives: true},
			Timeout:   probeTimeout,
		},
		path:  cmp.Or(s.Health, "/health"),
		first: cmp.Or(poll, defaultPoll),
		ready: ready,
	}
}

// await returns nil when base is ready and ctx's cause when ctx ends before.
// The last answer, if any, is told through seen.
func (h *health) await(ctx context.Context, base string, seen *error) error {
	pause := h.first
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
		}
		ok, err := h.probe(ctx, base)
		if ok {
			return nil
		}
		if ctx.Err() == nil {
			*seen = err
		}
		timer.Reset(pause)
		pause = min(2*pause, pollGrowth*h.first)
	}
}

// probe asks once; err says what kept the server from being ready.
func (h *health) probe(ctx context.Context, base string) (bool, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+h.path, nil)
	if err != nil {
		return false, err
	}
	resp, err := h.client.Do(req)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 4096) // only the status counts
	if !h.ready(resp.StatusCode) {
		return false, statusError{req.URL.String(), resp.Status}
	}
	return true, nil
}

// statusError is an answer that means "not ready".
type statusError struct{ url, status string }

func (e statusError) Error() string { return e.url + " answers " + e.status }
