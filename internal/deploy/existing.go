package deploy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Existing is the runtime of endpoints that are already up: it checks that they
// answer and leaves them alone. Spec.Replicas and Spec.Dir are not used.
type Existing struct {
	URLs []string      // base URLs, one a replica
	Poll time.Duration // first pause between probes; 0: 50 ms
}

var _ Runtime = Existing{}

// existingTimeout is short: what should be up already is not waited for long.
const existingTimeout = 5 * time.Second

// Start returns when every endpoint answers. Any answer below 500 will do, for
// a served endpoint may lack the health path or guard it with a key.
func (r Existing) Start(ctx context.Context, s Spec) (Deployment, error) {
	op := "reach the endpoint of " + s.name()
	targets, err := baseURLs(r.URLs)
	if err != nil {
		return nil, &InfraError{Op: op, Err: err, Help: "give base URLs such as http://127.0.0.1:8000"}
	}
	tooLate := errors.New("no answer in time")
	ctx, cancel := context.WithTimeoutCause(ctx, cmp.Or(s.Timeout, existingTimeout), tooLate)
	defer cancel()
	probe := newHealth(s, r.Poll, func(status int) bool { return status < 500 })
	errs, seen := make([]error, len(targets)), make([]error, len(targets))
	var wg sync.WaitGroup
	for i, t := range targets {
		wg.Go(func() { errs[i] = probe.await(ctx, t, &seen[i]) })
	}
	wg.Wait()
	for i, t := range targets {
		switch {
		case errs[i] == nil:
		case errors.Is(errs[i], tooLate):
			return nil, &InfraError{
				Op:   op,
				Err:  cmp.Or(seen[i], errs[i]),
				Help: fmt.Sprintf("start the server at %s, or correct its URL", t),
			}
		default:
			return nil, fmt.Errorf("%s: %w", op, errs[i])
		}
	}
	return &existing{targets: targets, done: make(chan struct{})}, nil
}

// Sweep finds nothing: an endpoint that is already up is not ours.
func (r Existing) Sweep(context.Context, string) ([]string, error) { return nil, nil }

// baseURLs checks the URLs and takes off what would double a slash.
func baseURLs(urls []string) ([]string, error) {
	if len(urls) == 0 {
		return nil, errors.New("no URL is given")
	}
	out := make([]string, len(urls))
	for i, s := range urls {
		u, err := url.Parse(s)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
			return nil, fmt.Errorf("%q is not an http or https URL", s)
		}
		out[i] = strings.TrimRight(s, "/")
	}
	return out, nil
}

// existing is a deployment that is not ours: it is never known to end.
type existing struct {
	targets []string
	done    chan struct{} // never closed
}

func (d *existing) Targets() []string          { return d.targets }
func (d *existing) Done() <-chan struct{}      { return d.done }
func (d *existing) Err() error                 { return nil }
func (d *existing) Stop(context.Context) error { return nil }
