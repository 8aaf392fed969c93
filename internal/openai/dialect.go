package openai

import (
	"slices"

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

func (d *dialect) samples(key string) bool {
	return !d.pooled && (d.sampled == nil || slices.Contains(d.sampled, key))
}
