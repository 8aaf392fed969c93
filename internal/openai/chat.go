package openai

import "perflab/internal/workload"

// streamed are the fields that ask for a stream with usage at its end.
func streamed() []field {
	return []field{{"stream", true, true}, {"stream_options", true, map[string]bool{"include_usage": true}}}
}

// chat is OpenAI's chat completions. The limit is what vLLM's own client sends:
// chat has deprecated max_tokens.
func chat() *dialect {
	return &dialect{
		name: BackendChat, path: "/v1/chat/completions", suffix: "/chat/completions",
		fixed: streamed(), images: true,
		write: func(w *writer, r *workload.Request) {
			if w.key("messages") {
				w.turns(r, r.System, messageParts{"text", func(w *writer, url string) {
					w.b = append(w.b, `{"type":"image_url","image_url":{"url":`...)
					w.string(url)
					w.b = append(w.b, '}', '}')
				}})
			}
			w.number("max_completion_tokens", r.Output)
			w.yes("ignore_eos", !r.EOS)
		},
		grammar: grammar{top: chatTop},
	}
}

// completions is OpenAI's plain completions.
func completions() *dialect {
	return &dialect{
		name: BackendCompletions, aliases: []string{BackendVLLM}, path: "/v1/completions", suffix: "/completions",
		fixed: streamed(), ids: true,
		write: func(w *writer, r *workload.Request) {
			if w.key("prompt") {
				w.prompt(r)
			}
			w.number("max_tokens", r.Output)
			w.yes("ignore_eos", !r.EOS)
		},
		grammar: grammar{top: chatTop},
	}
}

func chatTop(s *scanner, key []byte) bool {
	switch string(key) {
	case "choices":
		return s.list(chatChoice)
	case "usage":
		return s.fields(chatUsage)
	case "metrics":
		return s.fields(chatMetrics)
	case "timings":
		return guessObject(s)
	case "sglext":
		return s.fields(chatExtension)
	}
	return s.common(key)
}

func chatChoice(s *scanner) bool {
	s.c.choices = true
	return s.fields(chatChoiceField)
}

func chatChoiceField(s *scanner, key []byte) bool {
	switch string(key) {
	case "delta", "message":
		return s.fields(chatDelta)
	case "text":
		return s.payload(true)
	case "finish_reason":
		v, isString, ok := s.stringOrSkip()
		if isString && len(v) > 0 {
			s.c.finish = v
		}
		return ok
	case "avg_decoded_tokens_per_iter":
		return s.meanTokens()
	}
	return s.skip()
}

func chatDelta(s *scanner, key []byte) bool {
	switch string(key) {
	case "content", "refusal":
		return s.payload(true)
	case "reasoning", "reasoning_content":
		return s.payload(false)
	case "tool_calls":
		return s.part(chatToolCalls)
	case "function_call":
		return s.part(chatFunctionCall)
	case "audio":
		return s.part(chatAudio)
	case "role", "name", "type", "id", "object":
		return s.skip()
	}
	return s.unknownField(key)
}

func chatToolCalls(s *scanner) bool    { return s.list(chatToolCall) }
func chatToolCall(s *scanner) bool     { return s.fields(chatToolField) }
func chatFunctionCall(s *scanner) bool { return s.fields(chatFunctionField) }
func chatAudio(s *scanner) bool        { return s.fields(chatAudioField) }

func chatToolField(s *scanner, key []byte) bool {
	switch string(key) {
	case "function", "custom":
		return chatFunctionCall(s)
	}
	return s.skip()
}

func chatFunctionField(s *scanner, key []byte) bool {
	switch string(key) {
	case "name", "arguments", "input":
		return s.fill()
	}
	return s.skip()
}

func chatAudioField(s *scanner, key []byte) bool {
	switch string(key) {
	case "data", "transcript":
		return s.fill()
	}
	return s.skip()
}

func chatUsage(s *scanner, key []byte) bool {
	switch string(key) {
	case "prompt_tokens":
		return s.count(&s.c.usage.Prompt, &s.in)
	case "completion_tokens":
		return s.count(&s.c.usage.Completion, &s.out)
	case "prompt_tokens_details":
		return s.fields(promptDetail)
	case "completion_tokens_details":
		return s.fields(completionDetail)
	}
	return s.skip()
}

func promptDetail(s *scanner, key []byte) bool {
	if string(key) == "cached_tokens" {
		return s.count(&s.c.usage.Cached, nil)
	}
	return s.skip()
}

func completionDetail(s *scanner, key []byte) bool {
	if string(key) == "reasoning_tokens" {
		return s.count(&s.c.usage.Reasoning, nil)
	}
	return s.skip()
}
