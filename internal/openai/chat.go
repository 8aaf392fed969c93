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
		top: (*scanner).choicesTop,
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
		top: (*scanner).choicesTop,
	}
}
