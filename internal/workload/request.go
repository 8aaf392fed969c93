package workload

import (
	"encoding/json"
	"time"
)

// Request is what to send and when it is due.
type Request struct {
	Index  int
	Due    time.Duration // offset from the start of the run
	Prompt string        // the last user message, or the text to complete, embed or rank against
	Input  int           // prompt tokens by the workload's own count, history and system text included
	Output int           // max_tokens; 0: the server's default
	EOS    bool          // the server may stop early; false sends ignore_eos

	IDs       []int32         // token ids to send in place of Prompt, where the API takes them
	System    string          // system message before everything else
	History   []Message       // turns of the conversation before Prompt, oldest first
	Images    []string        // of the last user message: data: or http URLs
	Documents []string        // to rank against Prompt, or further texts to embed
	Model     string          // in place of the run's model: a LoRA adapter's name
	Fields    json.RawMessage // JSON object merged into the body: tools, response_format and the like

	Body []byte `json:"-"` // the request as a sender built it ahead; nil: not yet

	Session int // conversation, from 1; 0: the request stands alone
	Turn    int // of the conversation, from 0
	Turns   int // requests of it that the workload has in all
}

// IgnoresEOS reports whether the body, once built, tells the server to go on to the
// length asked for: at its top, or among the sampling parameters of an object in it.
func (r Request) IgnoresEOS() bool {
	type eos struct {
		Ignore bool `json:"ignore_eos"`
	}
	var body struct {
		eos
		Sampling eos `json:"sampling_params"`
	}
	return json.Unmarshal(r.Body, &body) == nil && (body.Ignore || body.Sampling.Ignore)
}

// Message is one turn of a conversation.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Tokenizer turns text into a model's tokens and back. It is safe for
// concurrent use. One that knows its vocabulary may also have VocabSize() int,
// the number of its ids without added tokens, which random_rng vllm needs; one
// that counts faster than it encodes may have Count(text string) int, without
// special tokens, -1 where Encode fails.
type Tokenizer interface {
	// Encode returns the ids of a text; special adds what the model's own
	// template puts around one, such as a beginning-of-text token.
	Encode(text string, special bool) ([]int32, error)
	// Decode returns the text of ids, special tokens left out.
	Decode(ids []int32) (string, error)
	// Ordinary returns the ids below the vocabulary's size that are not
	// special, ascending; nil where that is not known.
	Ordinary() []int32
	// Name says which it is, for the record: a file and its hash, or a server.
	Name() string
}

// Values of Spec.Tokenizer that name no file and no model.
const (
	ServerTokenizer   = "server"   // the server under test is asked
	EstimateTokenizer = "estimate" // package token's approximation, also where the model's tokenizer is at hand
)

// Extent is the length of a request in tokens.
type Extent struct {
	Input  int // of the prompt, by the workload's own count
	Output int // asked for; 0: the server's default
}

func (e Extent) total() int { return e.Input + e.Output }

// Totals are the sums over a workload's requests.
type Totals struct {
	Requests int
	Input    int           // prompt tokens by the tokenizer, or by package token without one
	Output   int           // tokens asked for
	Span     time.Duration // due time of the last request
}

// Drop is one kind of dataset row that was left out.
type Drop struct {
	Reason string // reads after "rows": "with no output tokens"
	Rows   int
}
