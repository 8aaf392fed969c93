package openai

import (
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

// Sampling are the parameters by which tokens are drawn; nil: the server's default.
type Sampling struct {
	Temperature       *float64 `json:"temperature,omitempty"`
	TopP              *float64 `json:"top_p,omitempty"`
	TopK              *int     `json:"top_k,omitempty"`
	MinP              *float64 `json:"min_p,omitempty"`
	FrequencyPenalty  *float64 `json:"frequency_penalty,omitempty"`
	PresencePenalty   *float64 `json:"presence_penalty,omitempty"`
	RepetitionPenalty *float64 `json:"repetition_penalty,omitempty"`
}

// Config says which server to ask, how, and for how long to wait. The zero
// value of every field but BaseURL is useful.
type Config struct {
	BaseURL  string `json:"base_url"`           // http://host:port, with or without /v1
	Backend  string `json:"backend,omitempty"`  // one of Backends, or an alias; "": by the endpoint
	Endpoint string `json:"endpoint,omitempty"` // "": by the backend
	Model    string `json:"model,omitempty"`

	APIKey string `json:"-"` // sent as a bearer token
	// SessionHeader is sent with each request of a session and is the same for all of
	// it, for routers that keep one at a replica: SessionRun and the session's number. "": none.
	SessionHeader string `json:"session_header,omitempty"`
	SessionRun    string `json:"session_run,omitempty"`

	Headers map[string]string `json:"headers,omitempty"` // added to, or in place of, our own; values are not printed

	// ExtraBody is a JSON object merged into the top level of every request.
	// Its keys replace our own of that name; a null takes our key away.
	ExtraBody json.RawMessage `json:"extra_body,omitempty"`

	Sampling

	// Traceparent gives each request a W3C trace context of its own, by which the spans
	// of an engine are found that belong to it.
	Traceparent bool `json:"traceparent,omitempty"`

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

// MarshalJSON leaves out the key, the values of headers and secrets in the body.
func (cfg Config) MarshalJSON() ([]byte, error) {
	type plain Config
	p := plain(cfg)
	p.Headers = maps.Clone(cfg.Headers)
	for k := range p.Headers {
		p.Headers[k] = "(not shown)"
	}
	p.ExtraBody = redact.Values{}.JSON(p.ExtraBody)
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

// secrets are what may be in no error, log or file: the API key, the values of
// the caller's headers, the credential alone of those that name a scheme
// ("Bearer abc"), and those of the body that is added.
func (cfg Config) secrets() redact.Values {
	var v redact.Values
	v.Add(cfg.APIKey, "[API key]")
	for name, value := range cfg.Headers {
		v.AddHeader(value, "[header "+name+"]")
	}
	var body any
	if json.Unmarshal(cfg.ExtraBody, &body) == nil { // New refuses one that is no object
		v.LearnTree("", body)
	}
	return v
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
		shown := cfg.BaseURL[:strings.IndexAny(cfg.BaseURL, "?#")] // keys are given in queries
		return "", fmt.Errorf("base URL %q has a query or a fragment: leave it out", shown)
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
		case canonical == "Traceparent" && cfg.Traceparent:
			return errors.New("header traceparent is sent already, another one with each request: leave it out")
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

// sampling are the parameters that decide which tokens are drawn.
func (cfg Config) sampling() []field {
	return []field{
		{"temperature", cfg.Temperature != nil, cfg.Temperature},
		{"top_p", cfg.TopP != nil, cfg.TopP},
		{"top_k", cfg.TopK != nil, cfg.TopK},
		{"min_p", cfg.MinP != nil, cfg.MinP},
		{"frequency_penalty", cfg.FrequencyPenalty != nil, cfg.FrequencyPenalty},
		{"presence_penalty", cfg.PresencePenalty != nil, cfg.PresencePenalty},
		{"repetition_penalty", cfg.RepetitionPenalty != nil, cfg.RepetitionPenalty},
	}
}
