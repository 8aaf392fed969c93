package openai

import (
	"strings"

	"perflab/internal/workload"
)

// anthropicVersion is the only one that the Messages API has had since 2023.
const anthropicVersion = "2023-06-01"

// anthropic is the Messages API of Anthropic, vLLM and SGLang. It has no
// ignore_eos: answers may end before the tokens asked for, which the verdict
// tells.
func anthropic() *dialect {
	return &dialect{
		name: BackendAnthropic, path: "/v1/messages", suffix: "/messages",
		fixed: []field{{"stream", true, true}}, images: true, needsLimit: true,
		sampled: []string{"temperature", "top_p", "top_k"},
		header:  map[string]string{"Anthropic-Version": anthropicVersion}, keyHeader: "X-Api-Key",
		write: func(w *writer, r *workload.Request) {
			if r.System != "" && w.key("system") {
				w.string(r.System)
			}
			if w.key("messages") {
				w.turns(r, "", messageParts{"text", anthropicImage})
			}
			w.number("max_tokens", r.Output)
		},
		grammar: grammar{messageTop, messageEvent},
	}
}

// anthropicImage writes an image: its bytes where the URL holds them.
func anthropicImage(w *writer, url string) {
	w.b = append(w.b, `{"type":"image","source":{"type":`...)
	if head, data, ok := strings.Cut(url, ";base64,"); ok && strings.HasPrefix(head, "data:") {
		w.b = append(w.b, `"base64","media_type":`...)
		w.string(strings.TrimPrefix(head, "data:"))
		w.b = append(w.b, `,"data":`...)
		w.string(data)
	} else {
		w.b = append(w.b, `"url","url":`...)
		w.string(url)
	}
	w.b = append(w.b, '}', '}')
}

// messageTop reads an event, or an answer that does not stream.
func messageTop(s *scanner, key []byte) bool {
	switch string(key) {
	case "type":
		return s.read(&s.kind)
	case "index":
		s.c.choices = true
		return s.skip()
	case "delta":
		return s.fields(messageDelta)
	case "content_block":
		return s.fields(messageBlock)
	case "content":
		return s.list(func(s *scanner) bool {
			s.c.choices = true
			return s.fields(messageBlock)
		})
	case "message":
		return s.fields(func(s *scanner, key []byte) bool {
			if string(key) == "usage" {
				return s.fields(messageInput)
			}
			return s.skip()
		})
	case "stop_reason":
		return s.read(&s.c.finish)
	case "usage":
		return s.fields(messageUsage)
	}
	return s.common(key)
}

func messageDelta(s *scanner, key []byte) bool {
	switch string(key) {
	case "text":
		return s.payload(true)
	case "thinking":
		return s.payload(false)
	case "partial_json":
		return s.countedString()
	case "stop_reason":
		return s.read(&s.c.finish)
	case "type", "signature", "stop_sequence":
		return s.skip()
	}
	return s.unknownField(key)
}

// messageBlock reads the begin of a block, or a whole one: a tool's name was
// generated, and in a whole answer all of its text.
func messageBlock(s *scanner, key []byte) bool {
	switch string(key) {
	case "text":
		return s.payload(true)
	case "thinking":
		return s.payload(false)
	case "name":
		return s.countedString()
	}
	return s.skip()
}

// messageUsage counts the output as well; that of the first event is before
// any was made.
func messageUsage(s *scanner, key []byte) bool {
	if string(key) == "output_tokens" {
		return s.count(&s.c.usage.Completion, &s.out)
	}
	return messageInput(s, key)
}

// messageInput counts the prompt, whose three parts may come in one event or
// the other.
func messageInput(s *scanner, key []byte) bool {
	switch string(key) {
	case "input_tokens":
		return s.count(&s.state.input, &s.state.in)
	case "cache_creation_input_tokens":
		return s.count(&s.state.created, &s.state.in)
	case "cache_read_input_tokens":
		return s.count(&s.state.cached, &s.state.in)
	}
	return s.skip()
}

func messageEvent(s *scanner) {
	s.c.usage.Prompt = s.state.input + s.state.created + s.state.cached
	s.c.usage.Cached = s.state.cached
	s.c.counted = s.out && s.state.in
	switch string(s.kind) {
	case "message_stop":
		s.c.end = true
	case "error":
		s.broken()
	}
}
