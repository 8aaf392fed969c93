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
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"perflab/internal/redact"
	"perflab/internal/wire"
)

// Defaults of the three limits on a request's time.
const (
	DefaultFirstToken = 600 * time.Second
	DefaultIdle       = 120 * time.Second
	DefaultTotal      = 6 * time.Hour
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

// Open opens connections until n are idle, where that is possible, so that a
// burst does not pay for them.
func (c *Client) Open(ctx context.Context, n int) error {
	if err := c.wire.Open(ctx, n); err != nil {
		return c.unreachable(ctx, err)
	}
	return nil
}

// Sockets says how many connections were open at most, and how many were
// opened, since the last call.
func (c *Client) Sockets() (most, opened int) { return c.wire.Sockets() }

// redact takes the secrets out of a text that a server wrote.
func (c *Client) redact(s string) string { return c.secrets.Mask(s) }

// secrets are what may be in no error, log or file: the API key, the values of
// the caller's headers, and the credential alone of those that name a scheme
// ("Bearer abc").
func (cfg Config) secrets() redact.Values {
	var v redact.Values
	v.Add(cfg.APIKey, "[API key]")
	for name, value := range cfg.Headers {
		mark := "[header " + name + "]"
		v.AddLong(value, mark)
		if _, credential, ok := strings.Cut(value, " "); ok {
			v.AddLong(credential, mark)
		}
	}
	return v
}

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

// root is the base URL to which both the endpoint and /health are added. A
// base URL that already ends in /v1 loses it, since endpoints bring their own.
func (cfg Config) root() (string, error) {
	u, err := url.Parse(cfg.BaseURL)
	switch {
	case err != nil:
		return "", fmt.Errorf("base URL: %w", withoutURL(err))
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "", fmt.Errorf("base URL %q is not of the form http://host:port", u.Redacted())
	case u.User != nil:
		return "", errors.New("base URL holds a user name: give credentials in a header instead, so that they stay out of result files")
	case strings.ContainsAny(cfg.BaseURL, "?#"): // an empty one, too, would swallow the endpoint
		return "", fmt.Errorf("base URL %q has a query or a fragment: leave it out", cfg.BaseURL)
	}
	if !strings.HasPrefix(cfg.Endpoint, "/") {
		return "", fmt.Errorf("endpoint %q does not begin with a slash", cfg.Endpoint)
	}
	return strings.TrimSuffix(strings.TrimRight(cfg.BaseURL, "/"), "/v1"), nil
}

// withoutURL drops the URL that net/url puts into its errors: it may hold a
// password.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// checkHeaders refuses what HTTP cannot carry, as a line break that came with a
// key out of a file; a request would fail as if there were no server.
func (cfg Config) checkHeaders() error {
	control := func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }
	if strings.ContainsFunc(cfg.APIKey, control) {
		return errors.New("the API key holds a line break or another control character: look at the end of OPENAI_API_KEY")
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Headers)) {
		value := cfg.Headers[name]
		switch canonical := http.CanonicalHeaderKey(name); {
		case name == "" || strings.ContainsFunc(name, noToken):
			return errors.New("the name of a header (not shown: it may hold a value) has a character that HTTP does not allow: write NAME=VALUE")
		case strings.ContainsFunc(value, control):
			return fmt.Errorf("the value of header %q holds a line break or another control character", name)
		case slices.Contains([]string{"Content-Length", "Keep-Alive", "Trailer", "Transfer-Encoding", "Upgrade"}, canonical):
			return fmt.Errorf("header %q says how requests are sent, which the client decides: leave it out", name)
		case canonical == "Host" && (value == "" || strings.ContainsAny(value, " \t/?#@")):
			return errors.New("the value of header Host is no host name")
		}
	}
	return nil
}

// noToken tells the characters that the name of a header cannot hold.
func noToken(c rune) bool {
	return c > '~' || c <= ' ' || strings.ContainsRune("\"(),/:;<=>?@[\\]{}", c)
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

// Config says which server to ask, how, and for how long to wait. The zero
// value of every field but BaseURL is useful.
type Config struct {
	BaseURL  string `json:"base_url"`           // http://host:port, with or without /v1
	Backend  string `json:"backend,omitempty"`  // one of Backends, or an alias; "": by the endpoint
	Endpoint string `json:"endpoint,omitempty"` // "": by the backend
	Model    string `json:"model,omitempty"`

	APIKey  string            `json:"-"`                 // sent as a bearer token
	Headers map[string]string `json:"headers,omitempty"` // added to, or in place of, our own; values are not printed

	// ExtraBody is a JSON object merged into the top level of every request.
	// Its keys replace our own of that name; a null takes our key away.
	ExtraBody json.RawMessage `json:"extra_body,omitempty"`

	Temperature       *float64 `json:"temperature,omitempty"`
	TopP              *float64 `json:"top_p,omitempty"`
	TopK              *int     `json:"top_k,omitempty"`
	MinP              *float64 `json:"min_p,omitempty"`
	FrequencyPenalty  *float64 `json:"frequency_penalty,omitempty"`
	PresencePenalty   *float64 `json:"presence_penalty,omitempty"`
	RepetitionPenalty *float64 `json:"repetition_penalty,omitempty"`

	Insecure bool `json:"insecure,omitempty"` // skip the check of TLS certificates
	KeepText bool `json:"save_detailed,omitempty"`

	FirstTokenTimeout time.Duration `json:"timeout_first_token_ns,omitempty"` // from Sent; 0: DefaultFirstToken
	IdleTimeout       time.Duration `json:"timeout_idle_ns,omitempty"`        // between tokens, and to the end; 0: DefaultIdle
	TotalTimeout      time.Duration `json:"timeout_total_ns,omitempty"`       // 0: DefaultTotal

	// Concurrency is how many requests may be in flight at once, as far as
	// is known: it sizes the buffers. 0: unknown.
	Concurrency int `json:"concurrency,omitempty"`

	// Seen is told of each read that brought tokens as it comes: how many, and
	// the time since the sending, for the first, or since the read before. It
	// must not block.
	Seen func(tokens int, since time.Duration, first bool) `json:"-"`

	// Dial replaces the network, for tunnels and in-memory servers.
	Dial wire.DialFunc `json:"-"`

	// Standard takes net/http also where the event loop could do it.
	Standard bool `json:"standard_http,omitempty"`
}

// MarshalJSON leaves out the key and the values of headers.
func (cfg Config) MarshalJSON() ([]byte, error) {
	type plain Config
	p := plain(cfg)
	p.Headers = maps.Clone(cfg.Headers)
	for k := range p.Headers {
		p.Headers[k] = "(not shown)"
	}
	return json.Marshal(p)
}

// String is the configuration without secrets.
func (cfg Config) String() string {
	b, err := json.Marshal(cfg)
	if err != nil {
		return "openai.Config(" + cfg.BaseURL + ")"
	}
	return string(b)
}

// GoString is String: %#v must not show secrets either.
func (cfg Config) GoString() string { return cfg.String() }
