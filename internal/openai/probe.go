package openai

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Info is what a server says about itself.
type Info struct {
	Models    []string // served model ids; nil if the server has no list
	Owner     string   // of the first of them, by which engines can be told: "vllm", "sglang", "llamacpp"
	Simulated bool     // the server is perflab's simulator
	Version   string   // of the server, where /version tells
	Note      string   // what could not be checked, for the user
}

// EndpointError says why a server cannot be measured.
type EndpointError struct {
	Text string
	Do   string // what the user can do
	Err  error  // cause, where there is one
}

func (e *EndpointError) Error() string { return e.Text }

// Hint says how to go on.
func (e *EndpointError) Hint() string { return e.Do }

func (e *EndpointError) Unwrap() error { return e.Err }

const (
	probeTimeout = 10 * time.Second
	probeBody    = 4 << 20
	pollFirst    = 50 * time.Millisecond
	pollMost     = time.Second
)

// Probe asks the server which models it serves and checks the configured name
// against them. A server without that list is no error: Info.Note tells.
func (c *Client) Probe(ctx context.Context) (Info, error) {
	var info Info
	a, err := c.get(ctx, "/v1/models")
	if err != nil {
		return info, c.unreachable(ctx, err)
	}
	info.Simulated = a.header.Get(simHeader) == "1"
	switch {
	case a.status == http.StatusUnauthorized || a.status == http.StatusForbidden:
		return info, &EndpointError{
			Text: fmt.Sprintf("%s refuses access (%d): %s", c.root, a.status, c.redact(clean(a.body))),
			Do:   "give the server's key in OPENAI_API_KEY, or another credential in a header",
		}
	case a.status != http.StatusOK:
		info.Note = fmt.Sprintf("%s/v1/models answers %d: the model name could not be checked", c.root, a.status)
		return info, nil
	}
	var list struct {
		Data []struct {
			ID    string `json:"id"`
			Owner string `json:"owned_by"`
		} `json:"data"`
	}
	if err := json.Unmarshal(a.body, &list); err != nil || list.Data == nil {
		return info, &EndpointError{
			Text: fmt.Sprintf("%s/v1/models is not an OpenAI-compatible list of models: %s", c.root, c.redact(clean(a.body))),
			Do:   "check the base URL: another service may listen there",
		}
	}
	for _, m := range list.Data {
		info.Models = append(info.Models, m.ID)
		info.Owner = cmp.Or(info.Owner, m.Owner)
	}
	info.Version = c.version(ctx)
	return info, c.checkModel(info.Models)
}

func (c *Client) checkModel(served []string) error {
	if c.cfg.Model == "" || slices.Contains(served, c.cfg.Model) {
		return nil
	}
	if len(served) == 0 {
		return &EndpointError{Text: fmt.Sprintf("%s serves no model", c.root), Do: "look into the server's log"}
	}
	return &EndpointError{
		Text: fmt.Sprintf("%s does not serve model %q; it serves %s", c.root, c.cfg.Model, quoted(served)),
		Do:   "use the model name " + served[0],
	}
}

func quoted(names []string) string {
	const most = 8
	var q []string
	for _, n := range names[:min(most, len(names))] {
		q = append(q, fmt.Sprintf("%q", n))
	}
	if rest := len(names) - most; rest > 0 {
		q = append(q, fmt.Sprintf("and %d more", rest))
	}
	return strings.Join(q, ", ")
}

func (c *Client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	text := reason(err)
	if errors.Is(err, errProbe) {
		text = fmt.Sprintf("no answer within %v", probeTimeout)
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return &EndpointError{
			Text: fmt.Sprintf("the certificate of %s cannot be trusted: %s", c.root, c.redact(strings.TrimPrefix(text, "tls: failed to verify certificate: "))),
			Do:   "use the name that it is for, let SSL_CERT_FILE name who signed it, or accept any certificate",
			Err:  err,
		}
	}
	return &EndpointError{
		Text: fmt.Sprintf("no server answers at %s: %s", c.root, c.redact(text)),
		Do:   "start the server, or check the base URL (host, port, http or https)",
		Err:  err,
	}
}

// version is best effort: few servers tell.
func (c *Client) version(ctx context.Context) string {
	a, err := c.get(ctx, "/version")
	if err != nil || a.status != http.StatusOK {
		return ""
	}
	var v struct {
		Version string `json:"version"`
	}
	if json.Unmarshal(a.body, &v) != nil {
		return ""
	}
	return v.Version
}

// Ready waits until the server answers 200 on /health, or on /v1/models where
// it has no /health, for at most timeout.
func (c *Client) Ready(ctx context.Context, timeout time.Duration) error {
	limited, cancel := context.WithTimeoutCause(ctx, timeout, errProbe)
	defer cancel()
	var last string
	for wait := pollFirst; ; wait = min(2*wait, pollMost) {
		ok, why := c.healthy(limited)
		if ok {
			return nil
		}
		if limited.Err() == nil {
			last = why
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
			continue
		case <-limited.Done():
			timer.Stop()
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if last == "" {
			last = "no answer"
		}
		return &EndpointError{
			Text: fmt.Sprintf("%s was not ready within %v: %s", c.root, timeout, last),
			Do:   "look into the server's log, or wait longer for it",
		}
	}
}

func (c *Client) healthy(ctx context.Context) (ok bool, why string) {
	for _, path := range []string{"/health", "/v1/models"} {
		a, err := c.get(ctx, path)
		if err != nil {
			return false, c.redact(reason(err))
		}
		if a.status == http.StatusOK {
			return true, ""
		}
		why = fmt.Sprintf("%s answers %d", path, a.status)
		if a.status != http.StatusNotFound && a.status != http.StatusMethodNotAllowed {
			return false, why
		}
	}
	return false, why
}

type answer struct {
	status int
	header http.Header
	body   []byte
}

// errProbe is the cause of a question that took too long.
var errProbe = errors.New("no answer in time")

func (c *Client) get(ctx context.Context, path string) (answer, error) {
	return c.ask(ctx, http.MethodGet, path, nil)
}

// ask sends a question that is no part of a measurement, with a JSON body
// unless it is nil.
func (c *Client) ask(ctx context.Context, method, path string, body []byte) (answer, error) {
	return c.askWithin(ctx, probeTimeout, method, path, body)
}

func (c *Client) askWithin(ctx context.Context, timeout time.Duration, method, path string, body []byte) (answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errProbe)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.root+path, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	req.Header, req.Host = c.header.Clone(), c.header.Get("Host")
	if body == nil {
		req.Header.Del("Content-Type")
	}
	req.Header.Set("Accept", "application/json, text/plain;q=0.9")
	resp, err := c.wire.HTTP().RoundTrip(req)
	if err == nil {
		defer resp.Body.Close()
		a := answer{status: resp.StatusCode, header: resp.Header}
		if a.body, err = io.ReadAll(io.LimitReader(resp.Body, probeBody)); err == nil {
			return a, nil
		}
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return answer{}, err
}

// Open opens connections until n are idle, where that is possible, so that a
// burst does not pay for them.
func (c *Client) Open(ctx context.Context, n int) error {
	if err := c.wire.Open(ctx, n); err != nil {
		return c.unreachable(ctx, err)
	}
	return nil
}
