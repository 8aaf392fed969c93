package openai

import "perflab/internal/workload"

// The APIs of models that generate nothing: an answer is one JSON object with
// a vector or a score for each text, and usage counts the prompt alone.

// embeddings is OpenAI's embeddings. A request with documents sends them
// together with its prompt.
func embeddings() *dialect {
	return pooled(dialect{
		name: BackendEmbeddings, path: "/v1/embeddings", suffix: "/embeddings", ids: true, documents: true,
		write: writeInput,
	})
}

// pooling is vLLM's /pooling, asked as embeddings are.
func pooling() *dialect {
	return pooled(dialect{
		name: BackendPooling, aliases: []string{"vllm-pooling"}, path: "/pooling", suffix: "/pooling", ids: true, documents: true,
		write: writeInput,
	})
}

func writeInput(w *writer, r *workload.Request) {
	switch {
	case !w.key("input"):
	case len(r.Documents) == 0:
		w.prompt(r)
	default:
		w.strings(append([]string{conversation(r)}, r.Documents...))
	}
}

// rerank is the API of Jina and Cohere as vLLM and SGLang have it.
func rerank() *dialect {
	return pooled(dialect{
		name: BackendRerank, aliases: []string{"vllm-rerank"}, path: "/v1/rerank", suffix: "/rerank", documents: true,
		write: func(w *writer, r *workload.Request) {
			if w.key("query") {
				w.string(conversation(r))
			}
			if w.key("documents") {
				w.strings(compared(r))
			}
		},
	})
}

// score is vLLM's /score of pairs of texts.
func score() *dialect {
	return pooled(dialect{
		name: BackendScore, path: "/score", suffix: "/score", documents: true,
		write: func(w *writer, r *workload.Request) {
			if w.key("text_1") {
				w.string(conversation(r))
			}
			if w.key("text_2") {
				w.strings(compared(r))
			}
		},
	})
}

// compared are the texts to compare the prompt with. One that has none, as a
// warm-up's, is compared with itself.
func compared(r *workload.Request) []string {
	if len(r.Documents) == 0 {
		return []string{r.Prompt}
	}
	return r.Documents
}

// pooled fills in what these APIs share.
func pooled(d dialect) *dialect {
	d.pooled = true
	d.top, d.item, d.after = (*scanner).pooledTop, (*scanner).pooledItem, (*scanner).pooledUsage
	return &d
}

func (s *scanner) pooledTop(key []byte) bool {
	switch string(key) {
	case "data", "results", "embeddings":
		return s.notEmpty(&s.c.whole)
	case "usage":
		return s.fields((*scanner).pooledCount)
	case "meta": // Cohere's place for usage
		return s.fields(func(s *scanner, key []byte) bool {
			if string(key) == "tokens" {
				return s.fields((*scanner).pooledCount)
			}
			return s.skip()
		})
	}
	return s.common(key)
}

func (s *scanner) pooledCount(key []byte) bool {
	switch string(key) {
	case "prompt_tokens", "input_tokens":
		return s.count(&s.c.usage.Prompt, &s.in)
	case "total_tokens":
		return s.count(&s.all, &s.out)
	case "prompt_tokens_details":
		return s.fields((*scanner).promptDetail)
	}
	return s.skip()
}

// pooledItem reads a result of SGLang's rerank, whose answer is their array.
func (s *scanner) pooledItem() bool {
	s.c.whole = true
	return s.fields(func(s *scanner, key []byte) bool {
		if string(key) != "meta_info" {
			return s.skip()
		}
		return s.fields(func(s *scanner, key []byte) bool {
			if string(key) != "prompt_tokens" {
				return s.skip()
			}
			n := 0
			ok := s.count(&n, &s.in)
			s.c.usage.Prompt += n
			return ok
		})
	})
}

// pooledUsage takes the total for the prompt's where that is all there is.
func (s *scanner) pooledUsage() {
	if !s.in {
		s.c.usage.Prompt = s.all
	}
	s.c.counted = s.in || s.out
}
