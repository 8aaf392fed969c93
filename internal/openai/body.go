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
	api   *dialect
	parts []part
	head  []byte          // parts as an object without its closing brace
	taken map[string]bool // keys of the extra body: it replaces ours
	group *template       // of the dialect's group; nil: it has none
}

// part is one field, its value in JSON.
type part struct {
	key   string
	value json.RawMessage
}

// field is a part that is there or not, before it is encoded.
type field struct {
	key   string
	set   bool
	value any
}

func newTemplate(cfg Config, api *dialect) (template, error) {
	extra := map[string]json.RawMessage{}
	if len(bytes.TrimSpace(cfg.ExtraBody)) > 0 {
		var err error
		if extra, err = object(cfg.ExtraBody); err != nil {
			return template{}, fmt.Errorf("extra body %.60q is not a JSON object", cfg.ExtraBody)
		}
	}
	shared := []field{{"model", cfg.Model != "" && !api.noModel, cfg.Model}}
	for _, f := range api.fixed {
		f.set = f.key != "stream_options" || !oneAnswer(extra)
		shared = append(shared, f)
	}
	if api.group == "" {
		return compose(api, append(shared, cfg.sampling()...), extra)
	}
	// The extra body's object of that name is merged into the group, so that
	// one of its keys does not cost the request its limit.
	inner := map[string]json.RawMessage{}
	if o, err := object(extra[api.group]); err == nil {
		inner = o
		delete(extra, api.group)
	}
	group, err := compose(api, cfg.sampling(), inner)
	if err != nil {
		return template{}, err
	}
	t, err := compose(api, shared, extra)
	t.group = &group
	return t, err
}

// oneAnswer reports whether fields ask for an answer that does not stream.
func oneAnswer(fields map[string]json.RawMessage) bool {
	v, ok := fields["stream"]
	return ok && string(v) != "true"
}

// compose joins our fields and those of the extra body, which go first by
// right and last by place.
func compose(api *dialect, ours []field, extra map[string]json.RawMessage) (template, error) {
	t := template{api: api, taken: map[string]bool{}}
	for key := range extra {
		t.taken[key] = true
	}
	for _, f := range ours {
		if !f.set || t.taken[f.key] {
			continue
		}
		b, err := json.Marshal(f.value)
		if err != nil {
			return template{}, fmt.Errorf("request field %s: %w", f.key, err)
		}
		t.parts = append(t.parts, part{f.key, b})
	}
	for _, key := range slices.Sorted(maps.Keys(extra)) {
		if string(extra[key]) != "null" {
			t.parts = append(t.parts, part{key, extra[key]})
		}
	}
	w := writer{b: []byte{'{'}}
	for _, p := range t.parts {
		w.part(p)
	}
	t.head = w.b
	return t, nil
}

// sampling are the parameters that decide which tokens are drawn.
func (cfg Config) sampling() []field {
	return []field{
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
// may still read it after an answer came, so it is not reused. Of fields with
// one name the extra body's counts first, then the request's own, then ours.
func (t *template) build(r workload.Request) []byte {
	w := writer{t: t, b: make([]byte, 0, len(t.head)+size(&r)+128)}
	w.shared(&r)
	t.api.write(&w, &r)
	return append(w.b, '}')
}

// size is about how many bytes the request's own part takes.
func size(r *workload.Request) int {
	n := len(r.Prompt) + len(r.System) + len(r.Fields) + 8*len(r.IDs)
	for _, m := range r.History {
		n += len(m.Content) + 32
	}
	for _, s := range r.Images {
		n += len(s) + 64
	}
	for _, s := range r.Documents {
		n += len(s) + 8
	}
	return n + n/16
}

// writer writes the body of one request.
type writer struct {
	b   []byte
	t   *template
	own map[string]json.RawMessage // fields that this request brings
}

// shared writes what all requests share, but for what this one replaces.
func (w *writer) shared(r *workload.Request) {
	if len(r.Fields) == 0 && r.Model == "" {
		w.b = append(w.b, w.t.head...)
		return
	}
	w.own, _ = object(r.Fields) // Accepts has told
	if w.own == nil {
		w.own = map[string]json.RawMessage{}
	}
	if key := w.t.api.modelKey(); r.Model != "" && w.own[key] == nil {
		w.own[key] = appendString(nil, r.Model)
	}
	w.b = append(w.b, '{')
	for _, p := range w.t.parts {
		_, replaced := w.own[p.key]
		if w.t.taken[p.key] || !replaced && (p.key != "stream_options" || !oneAnswer(w.own)) {
			w.part(p)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(w.own)) {
		if v := w.own[key]; !w.t.taken[key] && string(v) != "null" {
			w.part(part{key, v})
		}
	}
}

func (d *dialect) modelKey() string {
	if d.adapter != "" {
		return d.adapter
	}
	return "model"
}

func (w *writer) part(p part) {
	if len(w.b) > 1 {
		w.b = append(w.b, ',')
	}
	w.b = append(append(appendString(w.b, p.key), ':'), p.value...)
}

// key begins a field of ours, unless another of that name takes its place.
func (w *writer) key(name string) bool {
	if _, own := w.own[name]; own || w.t.taken[name] {
		return false
	}
	w.name(name)
	return true
}

// name writes a key, after a comma where one is due. It needs no escapes.
func (w *writer) name(name string) {
	if w.b[len(w.b)-1] != '{' {
		w.b = append(w.b, ',')
	}
	w.b = append(append(append(w.b, '"'), name...), `":`...)
}

func (w *writer) string(s string) { w.b = appendString(w.b, s) }

// number writes a field of ours that is above 0.
func (w *writer) number(name string, n int) {
	if n > 0 && w.key(name) {
		w.b = strconv.AppendInt(w.b, int64(n), 10)
	}
}

// yes writes a field of ours that is true.
func (w *writer) yes(name string, on bool) {
	if on && w.key(name) {
		w.b = append(w.b, "true"...)
	}
}

// list writes n elements between brackets.
func (w *writer) list(n int, element func(i int)) {
	w.b = append(w.b, '[')
	for i := range n {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		element(i)
	}
	w.b = append(w.b, ']')
}

func (w *writer) ids(ids []int32) {
	w.list(len(ids), func(i int) { w.b = strconv.AppendInt(w.b, int64(ids[i]), 10) })
}

func (w *writer) strings(all []string) {
	w.list(len(all), func(i int) { w.string(all[i]) })
}

// prompt writes the value of an API that completes a text: the ids, or the
// whole conversation, a line break between its turns.
func (w *writer) prompt(r *workload.Request) {
	switch {
	case len(r.IDs) > 0:
		w.ids(r.IDs)
	case r.System == "" && len(r.History) == 0:
		w.string(r.Prompt)
	default:
		w.string(conversation(r))
	}
}

func conversation(r *workload.Request) string {
	var b []byte
	if r.System != "" {
		b = append(append(b, r.System...), '\n')
	}
	for _, m := range r.History {
		b = append(append(b, m.Content...), '\n')
	}
	return string(append(b, r.Prompt...))
}

// parts is how an API writes the pieces of a message that is not plain text.
type messageParts struct {
	text  string // type of a piece of text
	image func(w *writer, url string)
}

// turns writes the messages of a conversation, with the system's if it is not
// given elsewhere. The last is plain text where it has no image.
func (w *writer) turns(r *workload.Request, system string, p messageParts) {
	w.b = append(w.b, '[')
	begin := func(role string) {
		if w.b[len(w.b)-1] != '[' {
			w.b = append(w.b, ',')
		}
		w.b = append(appendString(append(w.b, `{"role":`...), role), `,"content":`...)
	}
	if system != "" {
		begin("system")
		w.string(system)
		w.b = append(w.b, '}')
	}
	for _, m := range r.History {
		begin(m.Role)
		w.string(m.Content)
		w.b = append(w.b, '}')
	}
	begin("user")
	if len(r.Images) == 0 {
		w.string(r.Prompt)
	} else {
		w.b = append(append(append(w.b, `[{"type":"`...), p.text...), `","text":`...)
		w.string(r.Prompt)
		w.b = append(w.b, '}')
		for _, url := range r.Images {
			w.b = append(w.b, ',')
			p.image(w, url)
		}
		w.b = append(w.b, ']')
	}
	w.b = append(w.b, '}', ']')
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
