package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"perflab/internal/stat"
	"perflab/internal/token"
)

// maxBody bounds a request's body, as no prompt of a model's length needs more.
const maxBody = 64 << 20

func (s *Server) routes() {
	s.mux = http.NewServeMux()
	s.mux.HandleFunc("GET /health", s.whenReady(func(w http.ResponseWriter, _ *http.Request) {}))
	s.mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]string{"version": "perflab-sim " + s.cfg.Engine})
	})
	s.mux.HandleFunc("GET /v1/models", s.whenReady(s.models))
	s.mux.HandleFunc("GET /metrics", s.whenReady(s.metrics))
	s.mux.HandleFunc("GET /prometheus/metrics", s.whenReady(s.metrics)) // where TensorRT-LLM keeps them
	s.mux.HandleFunc("POST /tokenize", s.whenReady(s.tokenize))
	s.mux.HandleFunc("POST /v1/chat/completions", s.whenReady(func(w http.ResponseWriter, r *http.Request) { s.complete(w, r, true) }))
	s.mux.HandleFunc("POST /v1/completions", s.whenReady(func(w http.ResponseWriter, r *http.Request) { s.complete(w, r, false) }))
}

// ServeHTTP answers under the OpenAI API and the engine's own paths. Every
// response carries X-Perflab-Simulated.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Perflab-Simulated", "1")
	if !s.authorised(r) {
		writeJSON(w, http.StatusUnauthorized, map[string]string{"error": "Unauthorized"})
		return
	}
	s.mux.ServeHTTP(w, r)
}

// authorised asks for the key where the engines do: vLLM under /v1, SGLang
// everywhere but for health and metrics.
func (s *Server) authorised(r *http.Request) bool {
	open := !strings.HasPrefix(r.URL.Path, "/v1")
	if s.cfg.Engine == "sglang" {
		open = strings.HasPrefix(r.URL.Path, "/health") || strings.HasPrefix(r.URL.Path, "/metrics")
	}
	return s.apiKey == "" || open || r.Header.Get("Authorization") == "Bearer "+s.apiKey
}

func (s *Server) whenReady(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if _, ok := s.now(); !ok {
			writeError(w, http.StatusServiceUnavailable, "ServiceUnavailableError", "The engine is still loading the model.")
			return
		}
		h(w, r)
	}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v) // the client may be gone
}

// writeError answers in the OpenAI form, as vLLM words it.
func writeError(w http.ResponseWriter, status int, kind, message string) {
	writeJSON(w, status, map[string]any{"error": map[string]any{"message": message, "type": kind, "param": nil, "code": status}})
}

func badRequest(w http.ResponseWriter, message string) {
	writeError(w, http.StatusBadRequest, "BadRequestError", message)
}

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	var data []any
	for _, name := range append([]string{s.name}, s.aliases...) {
		data = append(data, map[string]any{
			"id": name, "object": "model", "created": s.epoch.Unix(), "owned_by": "perflab-sim",
			"root": s.cfg.Model.Name, "parent": nil, "max_model_len": s.cfg.MaxLen,
		})
	}
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": data})
}

// request is the body of both completion calls and of /tokenize; fields that
// change nothing here (temperature and the like) are accepted and ignored, as
// the engines do.
type request struct {
	Model     string    `json:"model"`
	Messages  []message `json:"messages"`
	Prompt    content   `json:"prompt"`
	MaxTokens *int      `json:"max_tokens"`
	MaxOutput *int      `json:"max_completion_tokens"`
	MinTokens int       `json:"min_tokens"`
	IgnoreEOS bool      `json:"ignore_eos"`
	N         *int      `json:"n"`
	Stream    bool      `json:"stream"`
	Guesses   bool      `json:"return_spec_tokens_details"` // of SGLang
	Options   struct {
		Usage      bool `json:"include_usage"`
		Continuous bool `json:"continuous_usage_stats"`
	} `json:"stream_options"`
}

type message struct {
	Role    string  `json:"role"`
	Content content `json:"content"`
}

// content is a prompt in any form of the API: text, a list with one text,
// token ids, or the parts of a chat message. Images count nothing.
type content struct {
	text string
	ids  []uint32
}

func (c *content) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		c.text = text
		return nil
	}
	var ids []uint32
	if json.Unmarshal(b, &ids) == nil {
		c.ids = ids
		return nil
	}
	var idLists [][]uint32
	if json.Unmarshal(b, &idLists) == nil && len(idLists) == 1 {
		c.ids = idLists[0]
		return nil
	}
	var texts []string
	if json.Unmarshal(b, &texts) == nil {
		if len(texts) != 1 {
			return fmt.Errorf("prompt holds %d texts: the simulator takes one a request", len(texts))
		}
		c.text = texts[0]
		return nil
	}
	var parts []struct{ Text string }
	if json.Unmarshal(b, &parts) != nil {
		return errors.New("prompt or content must be a string, a list of token ids or a list of text parts")
	}
	for _, p := range parts {
		c.text += p.Text
	}
	return nil
}

// tokens are the prompt's ids. The chat template adds none, so that the count
// is the text's own.
func (q *request) tokens() []uint32 {
	if q.Prompt.ids != nil {
		return q.Prompt.ids
	}
	ids := token.Append(nil, q.Prompt.text)
	for _, m := range q.Messages {
		ids = append(ids, m.Content.ids...)
		ids = token.Append(ids, m.Content.text)
	}
	return ids
}

// text is the prompt as it was written, "" where it came as ids.
func (q *request) text() string {
	if len(q.Messages) == 1 && q.Prompt.text == "" {
		return q.Messages[0].Content.text
	}
	var b strings.Builder
	b.WriteString(q.Prompt.text)
	for _, m := range q.Messages {
		b.WriteString(m.Content.text)
	}
	return b.String()
}

// read takes a request's body and says when it had been read.
func (s *Server) read(w http.ResponseWriter, r *http.Request) (q request, at time.Duration, ok bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	at, _ = s.now()
	if err == nil {
		err = json.Unmarshal(body, &q)
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		badRequest(w, fmt.Sprintf("Invalid request body: %s must not be a JSON %s.", wrong.Field, wrong.Value))
		return q, at, false
	}
	if err != nil {
		badRequest(w, "Invalid request body: "+err.Error())
		return q, at, false
	}
	if q.Model != "" && q.Model != s.name && !slices.Contains(s.aliases, q.Model) {
		writeError(w, http.StatusNotFound, "NotFoundError", fmt.Sprintf("The model `%s` does not exist.", q.Model))
		return q, at, false
	}
	return q, at, true
}

func (s *Server) tokenize(w http.ResponseWriter, r *http.Request) {
	q, _, ok := s.read(w, r)
	if !ok {
		return
	}
	ids := slices.Clone(q.tokens())
	for i := range ids {
		ids[i] &= math.MaxInt32 // clients read ids as signed numbers of 32 bits
	}
	writeJSON(w, http.StatusOK, map[string]any{"count": len(ids), "max_model_len": s.cfg.MaxLen, "tokens": ids})
}

// complete serves a chat or a text completion.
func (s *Server) complete(w http.ResponseWriter, r *http.Request, chat bool) {
	q, at, ok := s.read(w, r)
	if !ok {
		return
	}
	if n := q.N; n != nil && *n != 1 {
		badRequest(w, "The simulator gives one choice a request; n must be 1.")
		return
	}
	if chat && len(q.Messages) == 0 {
		badRequest(w, "messages must hold at least one message")
		return
	}
	prompt := q.tokens()
	a := answer{chat: chat, model: s.quoted, prompt: len(prompt), seed: chain(0, prompt), created: time.Now().Unix()}
	a.output, a.finish = s.length(&q, a.seed, len(prompt), chat)
	s.declare(&a, q.text())
	a.tell = s.tells(&q)
	a.guesses.ByStep = make([]int, 1+s.cfg.SpecTokens)
	if chat && s.reasoning {
		a.reasoning = max(1, a.output/3)
	}
	st, done, err := s.submit(at, prompt, a.output)
	if err != nil {
		s.refuse(w, err)
		return
	}
	defer done()
	kind := "cmpl"
	if chat {
		kind = "chatcmpl"
	}
	a.id = fmt.Sprintf("%s-sim%016x", kind, mix(a.seed^uint64(at)))
	a.trace = s.follow(r, st.arrive, len(prompt))
	defer func() { s.export(a.trace, a.id) }()
	if q.Stream {
		a.usage, a.continuous = q.Options.Usage, q.Options.Continuous
		s.stream(w, r, st, &a)
	} else {
		s.collect(w, r, st, &a)
	}
}

// tells is in which engine's form, and how much, the answer to a request tells of its
// speculation; tellNothing if it does not.
func (s *Server) tells(q *request) telling {
	switch {
	case s.cfg.SpecTokens == 0:
	case s.cfg.Engine == "sglang" && q.Guesses:
		return tellSGLang
	case s.cfg.Engine == "vllm" && s.guesses == "summary":
		return tellVLLM
	case s.cfg.Engine == "vllm" && s.guesses == "detailed":
		return tellSteps
	}
	return tellNothing
}

func (s *Server) refuse(w http.ResponseWriter, err error) {
	if _, ok := errors.AsType[*Refusal](err); ok {
		badRequest(w, err.Error())
		return
	}
	writeError(w, http.StatusInternalServerError, "InternalServerError", err.Error())
}

// length is how many tokens the answer has and why it ends. With a limit, or
// without an end of its own, it is as long as allowed; otherwise the prompt
// decides: log-normal about a mean of 200, as chats are.
func (s *Server) length(q *request, seed uint64, prompt int, chat bool) (n int, finish string) {
	const mean, sigma = 200, 0.9
	room := max(1, s.cfg.MaxLen-prompt)
	switch {
	case q.MaxOutput != nil:
		return *q.MaxOutput, "length"
	case q.MaxTokens != nil:
		return *q.MaxTokens, "length"
	case q.IgnoreEOS:
		return room, "length"
	case !chat:
		return min(room, 16), "length" // the API's default
	}
	z := stat.Stream(seed, "output length").NormFloat64()
	n = int(math.Exp(math.Log(mean) - sigma*sigma/2 + sigma*z))
	return min(room, max(1, n, q.MinTokens)), "stop"
}

// stream sends one event for each step's tokens and one flush for each time it
// wakes.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, st *stream, a *answer) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	rc := http.NewResponseController(w)
	w.WriteHeader(http.StatusOK)
	rc.Flush()
	var in []Progress
	var out []byte
	for done := false; !done; {
		var err error
		if in, err = s.take(r.Context(), st, in); err != nil {
			panic(http.ErrAbortHandler) // the client has gone, or the engine
		}
		out = out[:0]
		for _, p := range in {
			out = a.appendEvent(out, p)
			a.trace.took(p)
			done = p.Done
		}
		if done {
			out = a.appendEnd(out)
		}
		if _, err := w.Write(out); err != nil {
			return
		}
		if err := rc.Flush(); err != nil {
			return
		}
	}
}

// collect sends the whole answer at its end.
func (s *Server) collect(w http.ResponseWriter, r *http.Request, st *stream, a *answer) {
	var in []Progress
	for done := false; !done; {
		var err error
		if in, err = s.take(r.Context(), st, in); err != nil {
			panic(http.ErrAbortHandler)
		}
		for _, p := range in {
			a.sent += p.N
			a.took(p)
			a.trace.took(p)
			done = p.Done
		}
	}
	text := strings.Join(slices.Collect(a.words(a.reasoning, a.output)), "")
	choice := map[string]any{"index": 0, "finish_reason": a.finish, "logprobs": nil, "stop_reason": nil}
	object := "text_completion"
	if a.chat {
		object = "chat.completion"
		message := map[string]any{"role": "assistant", "content": text}
		if a.reasoning > 0 {
			message["reasoning"] = strings.Join(slices.Collect(a.words(0, a.reasoning)), "")
		}
		choice["message"] = message
	} else {
		choice["text"] = text
	}
	whole := map[string]any{
		"id": a.id, "object": object, "created": a.created, "model": s.name,
		"choices": []any{choice}, "usage": json.RawMessage(a.appendUsage(nil)),
	}
	if name, value := a.told(); name != "" {
		whole[name] = json.RawMessage(value)
	}
	writeJSON(w, http.StatusOK, whole)
}
