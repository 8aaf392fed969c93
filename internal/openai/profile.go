package openai

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// stopTimeout is how long a profiler may take to write what it found: gigabytes of
// a long run.
const stopTimeout = 10 * time.Minute

// StartProfile has the server's profiler begin, as vLLM and SGLang have it.
func (c *Client) StartProfile(ctx context.Context) error {
	return c.profile(ctx, "/start_profile", probeTimeout)
}

// StopProfile has the server's profiler end, and waits until it has written.
func (c *Client) StopProfile(ctx context.Context) error {
	return c.profile(ctx, "/stop_profile", stopTimeout)
}

func (c *Client) profile(ctx context.Context, path string, timeout time.Duration) error {
	a, err := c.askWithin(ctx, timeout, http.MethodPost, path, nil)
	switch {
	case errors.Is(err, errProbe) && ctx.Err() == nil:
		return &EndpointError{Text: fmt.Sprintf("%s%s has not answered within %v", c.root, path, timeout), Do: "look into the server's log", Err: err}
	case err != nil:
		return c.unreachable(ctx, err)
	case a.status == http.StatusOK:
		return nil
	}
	return &EndpointError{
		Text: fmt.Sprintf("%s%s answers %d: %s", c.root, path, a.status, c.redact(clean([]byte(c.redact(string(a.body)))))),
		Do:   `start vLLM with --profiler-config '{"profiler": "torch", "torch_profiler_dir": "DIR"}', or measure without a profile`,
	}
}
