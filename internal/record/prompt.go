package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"perflab/internal/token"
)

// APIs whose requests are recorded, by the end of their path.
var apis = []struct{ path, name string }{
	{"/chat/completions", "chat"},
	{"/completions", "completions"},
	{"/responses", "responses"},
	{"/v1/messages", "messages"},
	{"/generate", "generate"},
}

// apiOf is the API of a path; "": none that is recorded.
func apiOf(path string) string {
	for _, a := range apis {
		if strings.HasSuffix(path, a.path) {
			return a.name
		}
	}
	return ""
}

// body is what a request of any of the APIs asks for.
type body struct {
	Model         string   `json:"model"`
	Stream        bool     `json:"stream"`
	N             int      `json:"n"`
	MaxTokens     int      `json:"max_tokens"`
	MaxCompletion int      `json:"max_completion_tokens"`
	MaxOutput     int      `json:"max_output_tokens"`
	Temperature   *float64 `json:"temperature"`
	TopP          *float64 `json:"top_p"`
	TopK          *int     `json:"top_k"`

	Sampling struct {
		MaxTokens   int      `json:"max_new_tokens"`
		Temperature *float64 `json:"temperature"`
		TopP        *float64 `json:"top_p"`
		TopK        *int     `json:"top_k"`
	} `json:"sampling_params"`

	Tools        json.RawMessage `json:"tools"`
	System       json.RawMessage `json:"system"`
	Instructions json.RawMessage `json:"instructions"`
	Messages     json.RawMessage `json:"messages"`
	Input        json.RawMessage `json:"input"`
	Prompt       json.RawMessage `json:"prompt"`
	Text         json.RawMessage `json:"text"`
	IDs          json.RawMessage `json:"input_ids"`
}

// readBody reads a body, of which a field of another kind than it should be costs that field.
func readBody(text []byte) (b body, ok bool) {
	err := json.Unmarshal(text, &b)
	_, kind := errors.AsType[*json.UnmarshalTypeError](err)
	return b, err == nil || kind
}

// prompts are the fields that the prompt of an API is in, in their order.
func (b body) prompts(api string) []json.RawMessage {
	switch api {
	case "chat":
		return []json.RawMessage{b.Tools, b.Messages}
	case "responses":
		return []json.RawMessage{b.Tools, b.Instructions, b.Input}
	case "messages":
		return []json.RawMessage{b.Tools, b.System, b.Messages}
	case "generate":
		return []json.RawMessage{b.Text, b.IDs}
	}
	return []json.RawMessage{b.Prompt}
}

// Tokenizer turns a text into tokens, as package tokenizer does.
type Tokenizer interface {
	Encode(text string, special bool) ([]int32, error)
}

// cutter takes a prompt apart: into a number for each token and each mark between texts, with the
// places behind each whole block of tokens.
type cutter struct {
	tok   Tokenizer // nil: package token's estimate
	block int
	units []uint32
	ends  []int
	n     int // tokens
	err   error
}

// cut takes the prompt of a body apart. It is false for several prompts in one request.
func (c *cutter) cut(b body, api string) (one bool) {
	for i, raw := range b.prompts(api) {
		if len(raw) == 0 || string(raw) == "null" {
			continue
		}
		switch {
		case api == "completions" || api == "generate":
			if !c.plain(raw) {
				return false
			}
		case raw[0] == '[' && (i > 0 || api == "chat" && len(b.Tools) == 0):
			c.messages(raw)
		default:
			c.mark("part")
			c.value(raw)
		}
	}
	return true
}

// plain takes a prompt of a text or of ids, alone or as the only one of a list.
func (c *cutter) plain(raw json.RawMessage) (one bool) {
	var text string
	var ids []int32
	var list []json.RawMessage
	switch {
	case json.Unmarshal(raw, &text) == nil:
		c.text(text)
	case json.Unmarshal(raw, &ids) == nil:
		c.ids(ids)
	case json.Unmarshal(raw, &list) == nil && len(list) == 1:
		return c.plain(list[0])
	default:
		return false
	}
	return true
}

// messages takes a list of messages, or of the items of the Responses API.
func (c *cutter) messages(raw json.RawMessage) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return
	}
	for _, m := range list {
		var fields map[string]json.RawMessage
		if json.Unmarshal(m, &fields) != nil {
			c.value(m)
			continue
		}
		var role string
		_ = json.Unmarshal(fields["role"], &role) // none is none
		c.mark("role " + role)
		c.content(fields["content"])
		delete(fields, "role")
		delete(fields, "content")
		c.object(fields)
		c.mark("end")
	}
}

// content takes what a message says: a text, or parts.
func (c *cutter) content(raw json.RawMessage) {
	var parts []map[string]json.RawMessage
	if len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &parts) != nil {
		c.value(raw)
		return
	}
	for _, p := range parts {
		var kind string
		_ = json.Unmarshal(p["type"], &kind) // none is none
		switch kind {
		case "text", "input_text", "output_text":
			c.value(p["text"])
		case "image", "image_url", "input_image", "audio_url", "input_audio", "video_url", "file", "input_file", "document":
			c.mark(kind) // how many tokens it takes only the engine knows
			for _, k := range slices.Sorted(maps.Keys(p)) {
				c.mark(string(p[k]))
			}
		default:
			c.object(p)
		}
	}
}

// object takes fields as the JSON that they are. Where a cache is to begin is no part of a prompt.
func (c *cutter) object(fields map[string]json.RawMessage) {
	delete(fields, "cache_control")
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		if v := fields[k]; string(v) != "null" {
			c.mark(k)
			c.value(v)
		}
	}
}

// value takes a text as it is, and any other value as JSON.
func (c *cutter) value(raw json.RawMessage) {
	var text string
	switch {
	case len(raw) == 0 || string(raw) == "null":
	case raw[0] == '"' && json.Unmarshal(raw, &text) == nil:
		c.text(text)
	default:
		var b bytes.Buffer
		if json.Compact(&b, raw) == nil {
			c.text(b.String())
		}
	}
}

// mark keeps apart what is on either side of it, and counts for no token.
func (c *cutter) mark(text string) {
	h := fnv.New64a()
	h.Write([]byte(text))
	sum := h.Sum64()
	c.units = append(c.units, uint32(sum>>32)|1<<31, uint32(sum))
}

func (c *cutter) text(text string) {
	if c.tok == nil {
		for _, id := range token.Append(nil, text) {
			c.one(id)
		}
		return
	}
	ids, err := c.tok.Encode(text, false)
	if err != nil {
		c.err = err
	}
	c.ids(ids)
}

func (c *cutter) ids(ids []int32) {
	for _, id := range ids {
		c.one(uint32(id))
	}
}

func (c *cutter) one(id uint32) {
	c.units = append(c.units, id)
	if c.n++; c.n%c.block == 0 {
		c.ends = append(c.ends, len(c.units))
	}
}
