package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"perflab/internal/workload"
)

// Backends: one for each API that is spoken, by the names of vLLM's client
// where it has one.
const (
	BackendChat        = "openai-chat"       // /v1/chat/completions
	BackendCompletions = "openai"            // /v1/completions
	BackendVLLM        = "vllm"              // the same
	BackendResponses   = "openai-responses"  // /v1/responses
	BackendAnthropic   = "anthropic"         // /v1/messages
	BackendSGLang      = "sglang"            // /generate
	BackendEmbeddings  = "openai-embeddings" // /v1/embeddings
	BackendPooling     = "pooling"           // /pooling
	BackendRerank      = "rerank"            // /v1/rerank
	BackendScore       = "score"             // /score
)

// dialect is one API: where it is asked, how a request is written and how its
// answer is read. Each has a file of its own.
type dialect struct {
	name    string
	aliases []string
	path    string // usual endpoint
	suffix  string // every endpoint ends in it

	noModel   bool              // requests name no model
	adapter   string            // key for Request.Model; "": model
	fixed     []field           // sent with each request, in front of sampling
	sampled   []string          // keys of the sampling parameters that the API has; nil: all
	group     string            // key of an object that holds the sampling parameters; "": none
	header    map[string]string // of each request
	keyHeader string            // that holds the API key as well; "": none
	pooled    bool              // nothing is generated: an answer is whole, without a token

	ids, images, documents bool // what of a request the API has a place for
	needsLimit             bool // requests must say how many tokens to make

	write   func(w *writer, r *workload.Request) // appends the fields that differ between requests
	grammar                                      // of answers; those of pooled ones are read whole
}

// dialects returns every API, each with the name that is preferred.
func dialects() []*dialect {
	return []*dialect{chat(), completions(), responses(), anthropic(), sglang(), embeddings(), pooling(), rerank(), score()}
}

// Backends returns the names of all backends, without aliases.
func Backends() []string {
	var names []string
	for _, d := range dialects() {
		names = append(names, d.name)
	}
	return names
}

// BackendOf returns the backend whose endpoints end as this one, and plain
// completions where none does.
func BackendOf(endpoint string) string {
	if d := owner(endpoint); d != nil {
		return d.name
	}
	return BackendCompletions
}

// owner returns the API that an endpoint is of by its end, chat before the
// completions that end alike; nil for none.
func owner(endpoint string) *dialect {
	all := dialects()
	if i := slices.IndexFunc(all, func(d *dialect) bool { return strings.HasSuffix(endpoint, d.suffix) }); i >= 0 {
		return all[i]
	}
	return nil
}

// dialect finds the backend's API and rejects an endpoint of another and
// parameters that it does not have.
func (cfg Config) dialect() (*dialect, error) {
	all := dialects()
	i := slices.IndexFunc(all, func(d *dialect) bool {
		return d.name == cfg.Backend || slices.Contains(d.aliases, cfg.Backend)
	})
	if i < 0 {
		return nil, fmt.Errorf("backend %q is not known: use %s", cfg.Backend, strings.Join(Backends(), ", "))
	}
	d := all[i]
	if of := owner(cfg.Endpoint); cfg.Endpoint != "" && (of == nil || of.name != d.name) {
		err := fmt.Errorf("backend %s needs an endpoint that ends in %s, not %s", cfg.Backend, d.suffix, cfg.Endpoint)
		if of != nil {
			err = fmt.Errorf("%w: use backend %s for that", err, of.name)
		}
		return nil, err
	}
	for _, f := range cfg.sampling() {
		if f.set && !d.samples(f.key) {
			return nil, fmt.Errorf("backend %s has no %s: leave it out", cfg.Backend, f.key)
		}
	}
	if t := cfg.Temperature; t != nil && !(*t >= 0 && *t <= math.MaxFloat64) {
		return nil, fmt.Errorf("temperature is %g: it must be a number from 0 on", *t)
	}
	if p := cfg.TopP; p != nil && !(*p > 0 && *p <= 1) {
		return nil, fmt.Errorf("top_p is %g: it must be above 0 and at most 1", *p)
	}
	return d, nil
}

// Generates reports whether a backend's answers are made token by token, so
// that they have a TTFT and a TPOT.
func Generates(backend string) bool {
	return !slices.ContainsFunc(dialects(), func(d *dialect) bool {
		return d.pooled && (d.name == backend || slices.Contains(d.aliases, backend))
	})
}

func (d *dialect) samples(key string) bool {
	return !d.pooled && (d.sampled == nil || slices.Contains(d.sampled, key))
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

// object decodes the top level of a JSON object; nothing at all is an empty one.
func object(raw json.RawMessage) (map[string]json.RawMessage, error) {
	var o map[string]json.RawMessage
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, err
	}
	if o == nil {
		return nil, errors.New("it is null")
	}
	return o, nil
}
