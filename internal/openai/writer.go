package openai

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"perflab/internal/workload"
)

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
	w.own, _ = object(r.Fields) // Accepts has seen the error
	if w.own == nil {
		w.own = map[string]json.RawMessage{}
	}
	if key := w.t.model; r.Model != "" && w.own[key] == nil {
		w.own[key] = appendString(nil, r.Model)
	}
	w.b = append(w.b, '{')
	for _, p := range w.t.parts {
		_, replaced := w.own[p.key]
		if w.t.extra[p.key] || !replaced && (p.key != "stream_options" || !oneAnswer(w.own)) {
			w.part(p)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(w.own)) {
		if v := w.own[key]; !w.t.extra[key] && string(v) != "null" {
			w.part(part{key, v})
		}
	}
}

func (w *writer) part(p part) {
	if len(w.b) > 1 {
		w.b = append(w.b, ',')
	}
	w.b = append(append(appendString(w.b, p.key), ':'), p.value...)
}

// key begins a field of ours, unless another of that name takes its place.
func (w *writer) key(name string) bool {
	if _, own := w.own[name]; own || w.t.extra[name] {
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
		if c < utf8.RuneSelf && inString[c] {
			i++
			continue
		}
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

// object decodes the top level of a JSON object; nothing at all is an empty one.
func object(raw json.RawMessage) (map[string]json.RawMessage, error) {
	var o map[string]json.RawMessage
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, err
	}
	if o == nil {
		return nil, errors.New("it is null")
	}
	return o, nil
}

// oneAnswer reports whether fields ask for an answer that does not stream.
func oneAnswer(fields map[string]json.RawMessage) bool {
	v, ok := fields["stream"]
	return ok && string(v) != "true"
}

// template is the part of a request's body that all requests share.
type template struct {
	write func(w *writer, r *workload.Request) // appends the fields that differ between requests
	model string                               // key of a request's own model
	parts []part
	head  []byte          // parts as an object without its closing brace
	extra map[string]bool // keys of the extra body: it replaces ours
	group *template       // of the dialect's group; nil: it has none
}
