package openai

import (
	"bytes"

	"perflab/internal/workload"
)

// responses is OpenAI's Responses API. Its stream is typed events; the last is
// response.completed, .incomplete or .failed with the whole answer and usage.
func responses() *dialect {
	return &dialect{
		name: BackendResponses, path: "/v1/responses", suffix: "/responses",
		// Servers keep what they answered, unless told not to.
		fixed: []field{{"stream", true, true}, {"store", true, false}}, images: true,
		sampled: []string{"temperature", "top_p", "top_k"},
		write: func(w *writer, r *workload.Request) {
			if r.System != "" && w.key("instructions") {
				w.string(r.System)
			}
			if w.key("input") {
				if len(r.History) == 0 && len(r.Images) == 0 {
					w.string(r.Prompt)
				} else {
					w.turns(r, "", messageParts{"input_text", func(w *writer, url string) {
						w.b = append(w.b, `{"type":"input_image","image_url":`...)
						w.string(url)
						w.b = append(w.b, '}')
					}})
				}
			}
			w.number("max_output_tokens", r.Output)
			w.yes("ignore_eos", !r.EOS)
		},
		grammar: grammar{responseTop, responseEvent},
	}
}

// responseTop reads an event, or an answer that does not stream.
func responseTop(s *scanner, key []byte) bool {
	switch string(key) {
	case "type":
		return s.read(&s.kind)
	case "delta":
		return s.read(&s.piece)
	case "output_index":
		s.c.choices = true
		return s.skip()
	case "item":
		return s.fields(responseItem)
	case "response":
		return s.fields(responseState)
	case "output":
		return s.list(responseOutput)
	}
	return responseState(s, key)
}

// responseState reads what an answer says of itself. The output within an
// event is what streamed before.
func responseState(s *scanner, key []byte) bool {
	switch string(key) {
	case "status":
		return s.read(&s.label)
	case "incomplete_details":
		return s.fields(func(s *scanner, key []byte) bool {
			if string(key) == "reason" {
				return s.read(&s.cause)
			}
			return s.skip()
		})
	case "usage":
		return s.fields(responseUsage)
	}
	return s.common(key)
}

// responseItem reads the item that an event begins or ends.
func responseItem(s *scanner, key []byte) bool {
	switch string(key) {
	case "name", "arguments", "input":
		v, _, ok := s.stringOrSkip()
		s.named = s.named || len(v) > 0
		return ok
	}
	return s.skip()
}

// responseOutput reads an item of an answer that does not stream.
func responseOutput(s *scanner) bool {
	s.c.choices = true
	return s.fields(func(s *scanner, key []byte) bool {
		switch string(key) {
		case "content", "summary":
			return s.list(responsePart)
		case "name", "arguments", "input":
			return s.countedString()
		}
		return s.skip()
	})
}

// responsePart reads a piece of an item; its type may follow its text.
func responsePart(s *scanner) bool {
	var text, kind []byte
	ok := s.fields(func(s *scanner, key []byte) bool {
		switch string(key) {
		case "text", "refusal":
			return s.read(&text)
		case "type":
			return s.read(&kind)
		}
		return s.skip()
	})
	s.addText(text, !bytes.HasPrefix(kind, []byte("reasoning")) && !bytes.HasPrefix(kind, []byte("summary")))
	return ok
}

// responseUsage is usage as the Responses API names its parts.
func responseUsage(s *scanner, key []byte) bool {
	switch string(key) {
	case "input_tokens":
		return s.count(&s.c.usage.Prompt, &s.in)
	case "output_tokens":
		return s.count(&s.c.usage.Completion, &s.out)
	case "input_tokens_details":
		return s.fields(promptDetail)
	case "output_tokens_details":
		return s.fields(completionDetail)
	}
	return s.skip()
}

// responseEvent judges an event by its type, which may come after its delta.
func responseEvent(s *scanner) {
	switch string(s.kind) {
	case "response.output_text.delta", "response.refusal.delta":
		s.addText(s.piece, true)
	case "response.reasoning_text.delta", "response.reasoning_summary_text.delta",
		"response.reasoning.delta", "response.reasoning_summary.delta":
		s.addText(s.piece, false)
	case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta",
		"response.mcp_call_arguments.delta", "response.mcp_call.arguments.delta", "response.code_interpreter_call_code.delta",
		"response.audio.delta", "response.audio.transcript.delta",
		"response.output_audio.delta", "response.output_audio_transcript.delta":
		if s.c.size = len(s.piece); s.c.size > 0 {
			s.mark(true)
		}
	case "response.output_item.added":
		if s.named {
			s.mark(true)
		}
	case "response.completed", "response.incomplete", "response.done":
		s.c.end = true
		responseStatus(s)
	case "response.failed", "response.cancelled", "error":
		s.broken()
	case "": // not an event
		responseStatus(s)
	default:
		if len(s.piece) > 0 && bytes.HasSuffix(s.kind, []byte(".delta")) {
			s.c.unknown = s.kind
		}
	}
}

// responseStatus takes the status of a whole answer for its finish reason.
func responseStatus(s *scanner) {
	switch string(s.label) {
	case "failed", "cancelled":
		s.broken()
	}
	s.c.finish = s.label
	if len(s.cause) > 0 {
		s.c.finish = s.cause
	}
}
