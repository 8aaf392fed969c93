package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"

	"perflab/internal/workload"
)

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
	return &d
}

// pooledAnswer is the whole of an answer, in the forms of all these APIs.
type pooledAnswer struct {
	Object  string          `json:"object"`
	Error   json.RawMessage `json:"error"`
	Data    []json.RawMessage
	Results []json.RawMessage
	Vectors []json.RawMessage `json:"embeddings"`
	Usage   pooledUsage
	Meta    struct { // Cohere's place for usage
		Tokens pooledUsage
	}
}

// pooledUsage is the count of prompt tokens, by one of its names.
type pooledUsage struct {
	Prompt  tokenCount `json:"prompt_tokens"`
	Input   tokenCount `json:"input_tokens"`
	Total   tokenCount `json:"total_tokens"`
	Details struct {
		Cached tokenCount `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// tokenCount is a whole number from 0 to maxCount; another value is none.
type tokenCount struct {
	n     int
	known bool
}

func (c *tokenCount) UnmarshalJSON(b []byte) error {
	if n, err := strconv.ParseUint(string(b), 10, 31); err == nil {
		c.n, c.known = int(n), true
	}
	return nil
}

// readPooled reads an answer of an API that generates nothing.
func readPooled(b []byte) (c chunk, ok bool) {
	if bytes.HasPrefix(bytes.TrimSpace(b), []byte("[")) {
		return readRanking(b)
	}
	var a pooledAnswer
	if !decoded(b, &a) {
		return c, false
	}
	switch text := string(a.Error); {
	case text != "" && text != "null" && text != `""` && text != "false":
		c.failure = a.Error
	case a.Object == "error":
		c.failure = b
	}
	c.whole = len(a.Data)+len(a.Results)+len(a.Vectors) > 0
	for _, u := range []pooledUsage{a.Usage, a.Meta.Tokens} {
		for _, n := range []tokenCount{u.Total, u.Prompt, u.Input} { // the total is the prompt's where that is all there is
			if n.known {
				c.usage.Prompt, c.counted = n.n, true
			}
		}
		c.usage.Cached = max(c.usage.Cached, u.Details.Cached.n)
	}
	return c, true
}

// readRanking reads an answer of SGLang's rerank, an array of results.
func readRanking(b []byte) (c chunk, ok bool) {
	var list []struct {
		Meta struct {
			Prompt tokenCount `json:"prompt_tokens"`
		} `json:"meta_info"`
	}
	if !decoded(b, &list) {
		return c, false
	}
	c.whole = len(list) > 0
	for _, item := range list {
		c.usage.Prompt += item.Meta.Prompt.n
		c.counted = c.counted || item.Meta.Prompt.known
	}
	return c, true
}

// decoded decodes JSON; a value of another type than expected is left out.
func decoded(b []byte, v any) bool {
	err := json.Unmarshal(b, v)
	_, mismatch := errors.AsType[*json.UnmarshalTypeError](err)
	return err == nil || mismatch
}
