package push

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"perflab/internal/field"
	"perflab/internal/push/manifest"
)

// client speaks with one server.
type client struct {
	o    Options
	base *url.URL
	http *http.Client
	told func(Progress)

	mu sync.Mutex
	at Progress
}

// Waits between tries: the first, and the longest.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 10 * time.Second
)

// header is how long a server may take to answer: it reads all files of a large directory again
// before it says that they are right.
const header = 30 * time.Minute

func newClient(o Options, told func(Progress)) (*client, error) {
	base, err := url.Parse(o.URL)
	switch {
	case err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https":
		return nil, field.Errorf("url", "is not the address of a laboratory: write it as https://host:port")
	case base.User != nil:
		return nil, field.Errorf("url", "has a user: a laboratory takes a token, in the environment variable "+TokenVariable)
	case base.RawQuery != "" || base.Fragment != "":
		return nil, field.Errorf("url", "has more than an address: write it as https://host:port")
	case o.Token != "" && base.Scheme == "http" && !loopback(base.Hostname()):
		return nil, field.Errorf("url", "is not https: the token would be read on the way")
	case o.Fingerprint != "" && base.Scheme == "http":
		return nil, field.Errorf("fingerprint", "does not apply with http, which has no certificate")
	}
	base.Path = strings.TrimRight(base.Path, "/")
	o.Patience = cmp.Or(o.Patience, time.Minute)
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = header
	transport.DisableCompression = true // lengths and ranges are of the files
	if transport.TLSClientConfig, err = pinned(o.Fingerprint); err != nil {
		return nil, err
	}
	if told == nil {
		told = func(Progress) {}
	}
	// A server that sends elsewhere gets no second request: the token is for the one that was named.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client{o: o, base: base, told: told, http: &http.Client{Transport: transport, CheckRedirect: stay}}, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// pinned trusts the certificate of a fingerprint and no other; nil where there is no fingerprint.
func pinned(fingerprint string) (*tls.Config, error) {
	if fingerprint == "" {
		return nil, nil
	}
	plain := strings.ToLower(strings.TrimPrefix(strings.NewReplacer(":", "", " ", "").Replace(fingerprint), "sha256"))
	want, err := hex.DecodeString(plain)
	if err != nil || len(want) != sha256.Size {
		return nil, field.Errorf("fingerprint", "is not 64 hexadecimal digits: perflab serve prints it when it starts")
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, // the certificate is held against its fingerprint instead
		VerifyConnection: func(s tls.ConnectionState) error {
			if got := sha256.Sum256(s.PeerCertificates[0].Raw); !bytes.Equal(got[:], want) {
				return &certificateError{hex.EncodeToString(got[:])}
			}
			return nil
		},
	}, nil
}

// certificateError says that somebody else answers, or that the certificate was renewed.
type certificateError struct{ got string }

func (e *certificateError) Error() string {
	return "the server's certificate has another fingerprint, " + e.got + ": ask who runs it whether it was renewed"
}

func (c *client) close() { c.http.CloseIdleConnections() }

// progress changes how far it is, and tells.
func (c *client) progress(change func(*Progress)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.at)
	c.told(c.at)
}

// call is one request. What it sends can be sent again.
type call struct {
	method, path string // escaped
	query        url.Values
	header       map[string]string
	body         func() io.Reader // nil: none
	size         int64            // of the body
}

func (c *client) request(ctx context.Context, k call) (*http.Request, error) {
	to := c.base.String() + k.path
	if len(k.query) > 0 {
		to += "?" + k.query.Encode()
	}
	var body io.Reader
	if k.body != nil && k.size > 0 {
		body = k.body()
	}
	r, err := http.NewRequestWithContext(ctx, k.method, to, body)
	if err != nil {
		return nil, err
	}
	if k.body != nil {
		r.ContentLength = k.size
		r.Header.Set("Content-Type", "application/json")
	}
	for name, value := range k.header {
		r.Header.Set(name, value)
	}
	r.Header.Set("User-Agent", "perflab")
	if c.o.Token != "" {
		r.Header.Set("Authorization", "Bearer "+c.o.Token)
	}
	return r, nil
}

// once makes a request and gives its answer, whose body the caller closes; an answer that is none is an
// *Error, which keeps the header for who can go on by it.
func (c *client) once(ctx context.Context, k call) (*http.Response, error) {
	r, err := c.request(ctx, k)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	return resp, problem(resp)
}

// problem reads why a server refuses.
func problem(resp *http.Response) error {
	b, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // what came says enough
	var p struct {
		Error, Hint string
	}
	if json.Unmarshal(b, &p) == nil && p.Error != "" {
		return &Error{resp.StatusCode, p.Error, p.Hint, resp.Header.Get(manifest.AgainHeader) != ""}
	}
	if to := resp.Header.Get("Location"); to != "" {
		return &Error{resp.StatusCode, "the server sends to another address: give that one", "", false}
	}
	text := "the server answered " + resp.Status
	if resp.StatusCode == http.StatusNotFound {
		text += ": it is no laboratory of perflab, or an older one"
	}
	return &Error{resp.StatusCode, text, "", false}
}

// do makes a request until it is answered.
func (c *client) do(ctx context.Context, k call, answer any) error {
	return c.patiently(ctx, func() (*http.Response, error) {
		resp, err := c.once(ctx, k)
		if err != nil {
			return resp, err
		}
		defer resp.Body.Close()
		if answer == nil {
			return resp, nil
		}
		if err := json.NewDecoder(resp.Body).Decode(answer); err != nil {
			return resp, fmt.Errorf("read the answer of the server: %w", err)
		}
		return resp, nil
	})
}

// patiently tries until it succeeds, or fails for good, or has failed for as long as the options say.
// What makes headway begins to count anew by calling it again.
func (c *client) patiently(ctx context.Context, try func() (*http.Response, error)) error {
	began, pause := time.Now(), firstPause
	for {
		resp, err := try()
		if err == nil || ctx.Err() != nil {
			return cmp.Or(err, context.Cause(ctx))
		}
		wait, again := retry(resp, err, pause)
		if !again {
			return err
		}
		if time.Since(began)+wait > c.o.Patience {
			if _, said := errors.AsType[*Error](err); said {
				return err
			}
			return &UnreachableError{c.base.Redacted(), reason(err)}
		}
		c.progress(func(p *Progress) { p.Waiting = reason(err).Error() })
		if err := sleep(ctx, wait); err != nil {
			return err
		}
		c.progress(func(p *Progress) { p.Waiting = "" })
		pause = min(2*pause, longestPause)
	}
}

// reason is an error of a request without its address.
func reason(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// retry says whether to try again after an error, and how long to wait before.
func retry(resp *http.Response, err error, pause time.Duration) (time.Duration, bool) {
	if _, wrong := errors.AsType[*certificateError](err); wrong {
		return 0, false
	}
	if _, wrong := errors.AsType[*tls.CertificateVerificationError](err); wrong {
		return 0, false
	}
	if _, local := errors.AsType[*localError](err); local {
		return 0, false
	}
	if _, said := errors.AsType[*Error](err); !said {
		return pause, true
	}
	switch resp.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable,
		http.StatusGatewayTimeout, http.StatusLocked:
		if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s >= 0 {
			return max(pause, time.Duration(min(s, 3600))*time.Second), true
		}
		return pause, true
	}
	return 0, false
}

// localError is what trying again does not mend.
type localError struct{ err error }

func (e *localError) Error() string { return e.err.Error() }

func (e *localError) Unwrap() error { return e.err }
