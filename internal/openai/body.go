package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"perflab/internal/workload"
)

// template is the part of a request's body that all requests share.
type template struct {
	chat   bool
	head   []byte // an object without its closing brace
	prompt bool   // no field of the extra body replaces these
	limit  bool
	eos    bool
}

// Names of the fields that differ between requests.
func promptKey(chat bool) string {
	if chat {
		return "messages"
	}
	return "prompt"
}

// limitKey is what vLLM's own client sends: chat has deprecated max_tokens.
func limitKey(chat bool) string {
	if chat {
		return "max_completion_tokens"
	}
	return "max_tokens"
}

func newTemplate(cfg Config, chat bool) (template, error) {
	var extra map[string]json.RawMessage
	if len(bytes.TrimSpace(cfg.ExtraBody)) > 0 {
		if err := json.Unmarshal(cfg.ExtraBody, &extra); err != nil || extra == nil {
			return template{}, fmt.Errorf("extra body %.60q is not a JSON object", cfg.ExtraBody)
		}
	}
	free := func(key string) bool { _, taken := extra[key]; return !taken }
	t := template{chat: chat, prompt: free(promptKey(chat)), limit: free(limitKey(chat)), eos: free("ignore_eos")}

	head := []byte{'{'}
	add := func(key string, value any) error {
		b, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("request field %s: %w", key, err)
		}
		if len(head) > 1 {
			head = append(head, ',')
		}
		head = appendString(head, key)
		head = append(append(head, ':'), b...)
		return nil
	}
	for _, f := range cfg.fields() {
		if !f.set || !free(f.key) {
			continue
		}
		if err := add(f.key, f.value); err != nil {
			return template{}, err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(extra)) {
		if string(extra[key]) == "null" {
			continue
		}
		if err := add(key, extra[key]); err != nil {
			return template{}, err
		}
	}
	t.head = head
	return t, nil
}

type field struct {
	key   string
	set   bool
	value any
}

func (cfg Config) fields() []field {
	return []field{
		{"model", cfg.Model != "", cfg.Model},
		{"stream", true, true},
		{"stream_options", true, map[string]bool{"include_usage": true}},
		{"temperature", cfg.Temperature != nil, cfg.Temperature},
		{"top_p", cfg.TopP != nil, cfg.TopP},
		{"top_k", cfg.TopK != nil, cfg.TopK},
		{"min_p", cfg.MinP != nil, cfg.MinP},
		{"frequency_penalty", cfg.FrequencyPenalty != nil, cfg.FrequencyPenalty},
		{"presence_penalty", cfg.PresencePenalty != nil, cfg.PresencePenalty},
		{"repetition_penalty", cfg.RepetitionPenalty != nil, cfg.RepetitionPenalty},
	}
}

// build writes the body of one request into a buffer of its own: the transport
// may still read it after an answer came, so it is not reused.
func (t *template) build(r workload.Request) []byte {
	b := make([]byte, 0, len(t.head)+len(r.Prompt)+len(r.Prompt)/16+128)
	b = append(b, t.head...)
	key := func(name string) {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), name...), `":`...)
	}
	if t.prompt {
		key(promptKey(t.chat))
		if t.chat {
			b = append(b, `[{"role":"user","content":`...)
			b = append(appendString(b, r.Prompt), `}]`...)
		} else {
			b = appendString(b, r.Prompt)
		}
	}
	if t.limit && r.Output > 0 {
		key(limitKey(t.chat))
		b = strconv.AppendInt(b, int64(r.Output), 10)
	}
	if t.eos && !r.EOS {
		key("ignore_eos")
		b = append(b, "true"...)
	}
	return append(b, '}')
}

const hex = "0123456789abcdef"

// appendString appends s as a JSON string. Bytes that are not UTF-8 become
// U+FFFD, as encoding/json has it.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	done := 0
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				b = append(append(b, s[done:i]...), "\ufffd"...)
				done = i + 1
			}
			i += n
			continue
		case c == '"' || c == '\\':
			b = append(append(b, s[done:i]...), '\\', c)
			done = i + 1
		case c == '\n':
			b = append(append(b, s[done:i]...), '\\', 'n')
			done = i + 1
		case c < ' ':
			b = append(append(b, s[done:i]...), '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			done = i + 1
		}
		i++
	}
	return append(append(b, s[done:]...), '"')
}
