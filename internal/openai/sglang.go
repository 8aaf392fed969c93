package openai

import (
	"bytes"

	"perflab/internal/result"
	"perflab/internal/workload"
)

// sglang is SGLang's own /generate. Each event holds all text so far and how
// many tokens that is, so that the tokens of an event are known exactly.
func sglang() *dialect {
	return &dialect{
		name: BackendSGLang, path: "/generate", suffix: "/generate",
		fixed: []field{{"stream", true, true}}, group: "sampling_params",
		noModel: true, adapter: "lora_path", ids: true, images: true,
		write: func(w *writer, r *workload.Request) {
			switch {
			case len(r.IDs) > 0:
				if w.key("input_ids") {
					w.ids(r.IDs)
				}
			case w.key("text"):
				w.prompt(r)
			}
			if len(r.Images) > 0 && w.key("image_data") {
				w.strings(r.Images)
			}
			if !w.key("sampling_params") {
				return
			}
			in := writer{t: w.t.group, b: append(w.b, w.t.group.head...)}
			in.number("max_new_tokens", r.Output)
			in.yes("ignore_eos", !r.EOS)
			w.b = append(in.b, '}')
		},
		grammar: grammar{generateTop, generateEvent},
	}
}

func generateTop(s *scanner, key []byte) bool {
	switch string(key) {
	case "text":
		s.c.choices = true
		return s.read(&s.piece)
	case "output_ids":
		return s.notEmpty(&s.named)
	case "meta_info":
		s.c.choices, s.guesses = true, result.Speculation{}
		return s.fields(generateMeta)
	}
	return s.common(key)
}

func generateMeta(s *scanner, key []byte) bool {
	switch string(key) {
	case "prompt_tokens":
		return s.count(&s.c.usage.Prompt, &s.in)
	case "completion_tokens":
		return s.count(&s.c.usage.Completion, &s.out)
	case "cached_tokens":
		return s.count(&s.c.usage.Cached, nil)
	case "reasoning_tokens":
		return s.count(&s.c.usage.Reasoning, nil)
	case "finish_reason":
		return generateFinish(s)
	}
	return guessField(s, key)
}

// generateFinish reads why the text ended: an object whose type is the reason,
// or an error when it is abort.
func generateFinish(s *scanner) bool {
	from := s.i
	if s.peek() != '{' {
		return s.read(&s.c.finish)
	}
	ok := s.fields(func(s *scanner, key []byte) bool {
		if string(key) == "type" {
			return s.read(&s.c.finish)
		}
		return s.skip()
	})
	if ok && string(s.c.finish) == "abort" && s.c.failure == nil {
		s.c.failure = s.b[from:s.i]
	}
	return ok
}

// generateEvent judges an event by whether the count of tokens grew; without a
// count by whether there is text or a token.
func generateEvent(s *scanner) {
	grew := len(s.piece) > 0 || s.named
	if s.out {
		grew = s.c.usage.Completion > s.state.seen
		s.state.seen = max(s.state.seen, s.c.usage.Completion)
	}
	if grew {
		s.mark(true)
	}
	if s.keep && len(s.piece) > 0 {
		growText(s, s.piece)
	}
}

// growText keeps a text that holds all text before it, or from a server that was
// told to stream pieces the piece.
func growText(s *scanner, raw []byte) {
	from := len(s.text)
	s.text = appendUnescaped(s.text, raw)
	if s.state.pieces = s.state.pieces || !bytes.HasPrefix(s.text[from:], s.text[:from]); !s.state.pieces {
		s.text = s.text[:copy(s.text, s.text[from:])]
	}
}
