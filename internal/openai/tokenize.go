package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"perflab/internal/workload"
)

// Tokenize returns the server's own ids of a text; special adds what its
// tokenizer puts around one. vLLM and SGLang can be asked, beside /v1.
func (c *Client) Tokenize(ctx context.Context, text string, special bool) ([]int32, error) {
	var reply struct {
		Tokens []int32 `json:"tokens"`
	}
	err := c.exchange(ctx, "/tokenize", map[string]any{"model": c.cfg.Model, "prompt": text, "add_special_tokens": special}, &reply)
	if err == nil && reply.Tokens == nil {
		err = fmt.Errorf("%s/tokenize answers without tokens", c.root)
	}
	return reply.Tokens, err
}

// Detokenize returns the server's text of ids, special tokens left out where
// it can.
func (c *Client) Detokenize(ctx context.Context, ids []int32) (string, error) {
	if ids == nil {
		ids = []int32{}
	}
	var reply struct {
		Prompt *string `json:"prompt"` // vLLM
		Text   *string `json:"text"`   // SGLang
	}
	err := c.exchange(ctx, "/detokenize", map[string]any{"model": c.cfg.Model, "tokens": ids, "skip_special_tokens": true}, &reply)
	switch {
	case err != nil:
		return "", err
	case reply.Prompt != nil:
		return *reply.Prompt, nil
	case reply.Text != nil:
		return *reply.Text, nil
	}
	return "", fmt.Errorf("%s/detokenize answers without a text", c.root)
}

// exchange posts a question to the server and decodes its answer.
func (c *Client) exchange(ctx context.Context, path string, question map[string]any, reply any) error {
	if question["model"] == "" {
		delete(question, "model")
	}
	body, err := json.Marshal(question)
	if err != nil {
		return fmt.Errorf("ask %s: %w", path, err)
	}
	a, err := c.ask(ctx, http.MethodPost, path, body)
	switch {
	case err != nil:
		return c.unreachable(ctx, err)
	case a.status == http.StatusNotFound || a.status == http.StatusMethodNotAllowed:
		return &EndpointError{
			Text: fmt.Sprintf("%s has no %s (%d)", c.root, path, a.status),
			Do:   "vLLM and SGLang have it, and gateways before them may not: name the engine itself in the base URL, or use a tokenizer file",
		}
	case a.status != http.StatusOK:
		return &EndpointError{
			Text: fmt.Sprintf("%s%s answers %d: %s", c.root, path, a.status, c.redact(clean([]byte(c.redact(string(a.body)))))),
			Do:   "check the model name and the key in OPENAI_API_KEY",
		}
	}
	if err := json.Unmarshal(a.body, reply); err != nil {
		return fmt.Errorf("%s%s is not what vLLM and SGLang answer: %s", c.root, path, c.redact(clean(a.body)))
	}
	return nil
}

// ServerTokenizer is the tokenizer of a server, asked over HTTP for each text.
// It ends with no context: a question ends by itself after 10 s.
type ServerTokenizer struct{ c *Client }

var _ workload.Tokenizer = ServerTokenizer{}

// Tokenizer returns the server's tokenizer.
func (c *Client) Tokenizer() ServerTokenizer { return ServerTokenizer{c} }

// Encode returns the server's ids of a text.
func (t ServerTokenizer) Encode(text string, special bool) ([]int32, error) {
	return t.c.Tokenize(context.Background(), text, special)
}

// Decode returns the server's text of ids.
func (t ServerTokenizer) Decode(ids []int32) (string, error) {
	return t.c.Detokenize(context.Background(), ids)
}

// Ordinary returns nil: a server does not tell which ids are special.
func (t ServerTokenizer) Ordinary() []int32 { return nil }

// Name says which server counts, and for which model.
func (t ServerTokenizer) Name() string {
	name := "server " + t.c.root + "/tokenize"
	if t.c.cfg.Model != "" {
		name += " of " + t.c.cfg.Model
	}
	return name
}
