// Package openai sends one request to a server that speaks OpenAI's API, or
// Anthropic's or SGLang's, and observes the answer that comes back.
//
//	c, err := openai.New(openai.Config{BaseURL: "http://127.0.0.1:8000", Backend: "openai-chat", Model: "m"})
//	info, err := c.Probe(ctx)
//	call := c.Send(ctx, start, workload.Request{Prompt: "Hello", Output: 16})
//
// Invariants: every read of a body is stamped before a byte of it is looked
// at, and all events decoded from one read share its stamp; a failed request is
// a Call with a class and keeps the chunks it got; Send returns soon after its
// context ends; the API key and the values of headers appear in no error, log
// or JSON, also when a server repeats them.
//
// Each API is a dialect with a file of its own: its endpoint, its body and the
// fields of its answers. A token is a non-empty text, content, reasoning,
// refusal, audio or tool call in any choice; where every event counts the
// tokens so far, what the count grew by. An event that only sets the role, the
// finish reason or the usage is not one; it is stamped in Call.Empty. A string
// field of a delta that is not known here counts from its second event on (with
// the first one's stamp), so that a server's rename of a field shows as
// Call.Field and not as an empty report. An answer of an API that generates
// nothing, as for embeddings, is a success without a token.
//
// Deliberately absent: HTTP/2 (one connection for many streams blurs the
// arrival of each), redirects, retries, compression, decoding of anything but
// what a Call needs.
package openai

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"perflab/internal/redact"
	"perflab/internal/wire"
	"perflab/internal/workload"
)

// Client sends requests to one server. It is safe for concurrent use.
type Client struct {
	cfg      Config
	root     string // scheme, host and path before /v1, without a slash at the end
	endpoint *url.URL
	api      *dialect
	header   http.Header // of every request; shared, never written after New
	body     template
	wire     *wire.Transport
	secrets  redact.Values
}

// New checks the configuration and prepares a client; it sends nothing.
func New(cfg Config) (*Client, error) {
	cfg = cfg.withDefaults()
	api, err := cfg.dialect()
	if err != nil {
		return nil, err
	}
	if cfg.Endpoint == "" {
		cfg.Endpoint = api.path
	}
	root, err := cfg.root()
	if err != nil {
		return nil, err
	}
	if err := cfg.checkHeaders(); err != nil {
		return nil, err
	}
	endpoint, err := url.Parse(root + cfg.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("endpoint %q: %w", cfg.Endpoint, err)
	}
	body, err := newTemplate(cfg, api)
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, root: root, endpoint: endpoint, api: api, header: cfg.header(api), body: body, secrets: cfg.secrets()}
	c.wire = wire.New(wire.Config{
		URL: endpoint, Header: c.header, Insecure: cfg.Insecure, Concurrency: cfg.Concurrency,
		Dial: cfg.Dial, Standard: cfg.Standard,
	})
	return c, nil
}

// Close closes idle connections; calls in flight go on.
func (c *Client) Close() { c.wire.Close() }

// Clock says who stamps what arrives: result.ClockKernel or ClockMonotonic.
func (c *Client) Clock() string { return c.wire.Clock() }

// Sockets says how many connections were open at most, and how many were
// opened, since the last call.
func (c *Client) Sockets() (most, opened int) { return c.wire.Sockets() }

// redact takes the secrets out of what a server said about a request: those that
// it was sent, and what looks like one.
func (c *Client) redact(s string) string { return c.secrets.Text(s) }

func (cfg Config) withDefaults() Config {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&cfg.FirstTokenTimeout, DefaultFirstToken)
	set(&cfg.IdleTimeout, DefaultIdle)
	set(&cfg.TotalTimeout, DefaultTotal)
	if cfg.Backend == "" {
		cfg.Backend = BackendOf(cfg.Endpoint)
	}
	return cfg
}

func (cfg Config) header(api *dialect) http.Header {
	accept := "text/event-stream"
	if api.pooled {
		accept = "application/json"
	}
	h := http.Header{
		"Accept":       {accept},
		"Content-Type": {"application/json"},
		"User-Agent":   {"perflab"},
	}
	if cfg.APIKey != "" {
		h.Set("Authorization", "Bearer "+cfg.APIKey)
	}
	for k, v := range api.header {
		h.Set(k, v)
	}
	if api.keyHeader != "" && cfg.APIKey != "" {
		h.Set(api.keyHeader, cfg.APIKey)
	}
	for k, v := range cfg.Headers {
		h.Set(k, v)
	}
	return h
}

// Accepts says why a request cannot be sent by the client's backend, as when
// it holds an image and the API has no place for one. Sending it anyway would
// leave that out.
func (c *Client) Accepts(r workload.Request) error {
	d, name := c.api, c.cfg.Backend
	switch {
	case len(r.IDs) > 0 && !d.ids:
		return fmt.Errorf("backend %s takes no token ids: send text, or use backend %s or %s", name, BackendCompletions, BackendSGLang)
	case len(r.Images) > 0 && !d.images:
		return fmt.Errorf("backend %s takes no images: use backend %s, %s, %s or %s", name, BackendChat, BackendResponses, BackendAnthropic, BackendSGLang)
	case len(r.Documents) > 0 && !d.documents:
		return fmt.Errorf("backend %s takes no documents: use backend %s, %s or %s", name, BackendRerank, BackendScore, BackendEmbeddings)
	case len(r.IDs) > 0 && len(r.Documents) > 0:
		return fmt.Errorf("backend %s takes token ids or several texts, not both", name)
	case len(r.Documents) == 0 && (d.name == BackendRerank || d.name == BackendScore):
		return fmt.Errorf("backend %s needs documents to compare the prompt with: use a dataset that has them", name)
	case d.needsLimit && r.Output == 0:
		return fmt.Errorf("backend %s needs a number of output tokens for each request: the API has no default", name)
	}
	if len(r.Fields) > 0 {
		if _, err := object(r.Fields); err != nil {
			return errors.New("the request's own fields are not a JSON object")
		}
	}
	return nil
}
