package openai

import (
	"bytes"
	"math"
	"unicode/utf16"
	"unicode/utf8"

	"perflab/internal/result"
)

// chunk is what one JSON object of an answer says. Its slices are valid as
// long as the object and until the next one is read.
type chunk struct {
	token   bool   // something was generated
	answer  bool   // and not all of it was reasoning
	choices bool   // it is about the output, whether or not it carries a token
	whole   bool   // it holds what an API that generates nothing was asked for
	end     bool   // the API's word that nothing follows
	finish  []byte // finish_reason, still escaped
	unknown []byte // name of a non-empty string field of a delta that is not known here
	failure []byte // the value of "error", or the whole object if that is an error
	counted bool   // usage is there
	usage   result.Usage
}

// scanner reads one JSON object of a stream, or a whole answer, into a chunk.
// It accepts exactly the objects that encoding/json accepts, allocates nothing
// and looks only at the fields that its API needs. Of OpenAI's completions:
//
//	choices[].delta (or .message).{content, refusal, reasoning, reasoning_content, tool_calls, function_call, audio}
//	choices[].text, choices[].finish_reason
//	usage.{prompt_tokens, completion_tokens, prompt_tokens_details.cached_tokens,
//	       completion_tokens_details.reasoning_tokens}
//	error, object
type scanner struct {
	api    *dialect // nil: chat
	b      []byte
	i      int
	depth  int
	c      chunk
	in     bool   // usage has prompt_tokens
	out    bool   // usage has completion_tokens
	filled bool   // a string of the part being read is not empty
	keep   bool   // collect text
	text   []byte // what was generated, in the order of the fields; cleared by the caller
	name   []byte // backs a key with escapes
	field  []byte // backs chunk.unknown

	kind  []byte // type of the event, still escaped: first by its event line, then by the object
	piece []byte // the string that is judged once the type is known, still escaped
	label []byte // type of the part being read, or status of the answer, still escaped
	cause []byte // why the answer is incomplete, still escaped
	named bool   // the event's item has a name or arguments
	all   int    // prompt tokens, where a usage has no other count than the total

	state streamState
}

// streamState is what a scanner knows of a stream from one event to the next.
type streamState struct {
	input, created, cached int  // prompt tokens by kind
	in                     bool // any of them came
	seen                   int  // completion tokens so far
	pieces                 bool // texts are pieces and not all so far
}

// maxDepth of nesting is encoding/json's.
const maxDepth = 10000

// parse reads one object and reports whether b is one. It begins with the
// event's type where a line of its own gave one.
func (s *scanner) parse(b, kind []byte) bool {
	s.b, s.i, s.depth, s.c, s.in, s.out = b, 0, 0, chunk{}, false, false
	s.kind, s.piece, s.label, s.cause, s.named, s.all = kind, nil, nil, nil, false, 0
	top := (*scanner).choicesTop
	if s.api != nil {
		top = s.api.top
	}
	s.space()
	ok := false
	if s.isArray() {
		ok = s.array(s.api.item)
	} else {
		ok = s.object(top)
	}
	s.space()
	s.c.counted = s.in && s.out
	if ok = ok && s.i == len(b); ok && s.api != nil && s.api.after != nil {
		s.api.after(s)
	}
	return ok
}

// isArray reports whether an array begins that the API may answer with.
func (s *scanner) isArray() bool { return s.api != nil && s.api.item != nil && s.peek() == '[' }

func (s *scanner) choicesTop(key []byte) bool {
	switch string(key) {
	case "choices":
		return s.list((*scanner).choice)
	case "usage":
		return s.fields((*scanner).usage)
	}
	return s.common(key)
}

// common reads what any API's object may have: an error, or it is one.
func (s *scanner) common(key []byte) bool {
	switch string(key) {
	case "error":
		from := s.i
		ok := s.skip()
		if v := s.b[from:s.i]; ok && string(v) != "null" && string(v) != `""` && string(v) != "false" {
			s.c.failure = v
		}
		return ok
	case "object":
		v, _, ok := s.stringOrSkip()
		if string(v) == "error" && s.c.failure == nil {
			s.c.failure = s.b
		}
		return ok
	}
	return s.skip()
}

func (s *scanner) choice() bool {
	s.c.choices = true
	return s.fields((*scanner).choiceField)
}

func (s *scanner) choiceField(key []byte) bool {
	switch string(key) {
	case "delta", "message":
		return s.fields((*scanner).delta)
	case "text":
		return s.payload(true)
	case "finish_reason":
		v, isString, ok := s.stringOrSkip()
		if isString && len(v) > 0 {
			s.c.finish = v
		}
		return ok
	}
	return s.skip()
}

func (s *scanner) delta(key []byte) bool {
	switch string(key) {
	case "content", "refusal":
		return s.payload(true)
	case "reasoning", "reasoning_content":
		return s.payload(false)
	case "tool_calls":
		return s.part((*scanner).toolCalls)
	case "function_call":
		return s.part((*scanner).functionCall)
	case "audio":
		return s.part((*scanner).audio)
	case "role", "name", "type", "id", "object":
		return s.skip()
	}
	return s.stranger(key)
}

// stranger reads a field of a delta that is not known here.
func (s *scanner) stranger(key []byte) bool {
	v, isString, ok := s.stringOrSkip()
	if isString && len(v) > 0 && len(s.c.unknown) == 0 {
		s.field = append(s.field[:0], key...)
		s.c.unknown = s.field
	}
	return ok
}

// payload reads a field that carries generated text: a string, or a list of
// parts as some servers write it.
func (s *scanner) payload(answer bool) bool {
	if s.peek() == '[' {
		filled := false
		ok := s.notEmpty(&filled)
		if filled {
			s.mark(answer)
		}
		return ok
	}
	v, _, ok := s.stringOrSkip()
	s.say(v, answer)
	return ok
}

// say takes text that was generated, still escaped.
func (s *scanner) say(v []byte, answer bool) {
	if len(v) == 0 {
		return
	}
	s.mark(answer)
	if s.keep {
		s.text = appendUnescaped(s.text, v)
	}
}

// read reads a string into to, still escaped; another value leaves it alone.
func (s *scanner) read(to *[]byte) bool {
	v, isString, ok := s.stringOrSkip()
	if isString {
		*to = v
	}
	return ok
}

func (s *scanner) mark(answer bool) {
	s.c.token = true
	s.c.answer = s.c.answer || answer
}

// part reads a value whose strings count as one token if any is not empty.
func (s *scanner) part(read func(*scanner) bool) bool {
	s.filled = false
	ok := read(s)
	if ok && s.filled {
		s.mark(true)
	}
	return ok
}

func (s *scanner) toolCalls() bool    { return s.list((*scanner).toolCall) }
func (s *scanner) toolCall() bool     { return s.fields((*scanner).toolField) }
func (s *scanner) functionCall() bool { return s.fields((*scanner).functionField) }
func (s *scanner) audio() bool        { return s.fields((*scanner).audioField) }

func (s *scanner) toolField(key []byte) bool {
	switch string(key) {
	case "function", "custom":
		return s.functionCall()
	}
	return s.skip()
}

func (s *scanner) functionField(key []byte) bool {
	switch string(key) {
	case "name", "arguments", "input":
		return s.fill()
	}
	return s.skip()
}

func (s *scanner) audioField(key []byte) bool {
	switch string(key) {
	case "data", "transcript":
		return s.fill()
	}
	return s.skip()
}

// countedString reads a string that counts as generated if it is not empty, but is no
// text.
func (s *scanner) countedString() bool {
	return s.part((*scanner).fill)
}

func (s *scanner) fill() bool {
	v, isString, ok := s.stringOrSkip()
	s.filled = s.filled || isString && len(v) > 0
	return ok
}

// notEmpty reads any value and sets to true at a list that has an element.
func (s *scanner) notEmpty(set *bool) bool {
	from, isList := s.i, s.peek() == '['
	ok := s.skip()
	*set = *set || ok && isList && len(bytes.TrimSpace(s.b[from+1:s.i-1])) > 0
	return ok
}

func (s *scanner) usage(key []byte) bool {
	switch string(key) {
	case "prompt_tokens":
		return s.count(&s.c.usage.Prompt, &s.in)
	case "completion_tokens":
		return s.count(&s.c.usage.Completion, &s.out)
	case "prompt_tokens_details":
		return s.fields((*scanner).promptDetail)
	case "completion_tokens_details":
		return s.fields((*scanner).completionDetail)
	}
	return s.skip()
}

func (s *scanner) promptDetail(key []byte) bool {
	if string(key) == "cached_tokens" {
		return s.count(&s.c.usage.Cached, nil)
	}
	return s.skip()
}

func (s *scanner) completionDetail(key []byte) bool {
	if string(key) == "reasoning_tokens" {
		return s.count(&s.c.usage.Reasoning, nil)
	}
	return s.skip()
}

// maxCount bounds a token count: a larger one is not a count.
const maxCount = math.MaxInt32

// count reads a whole number from 0 to maxCount into to and sets seen; another
// value leaves both alone.
func (s *scanner) count(to *int, seen *bool) bool {
	from := s.i
	ok := s.skip()
	n := 0
	for _, d := range s.b[from:s.i] {
		if d < '0' || d > '9' || n > maxCount {
			return ok
		}
		n = n*10 + int(d-'0')
	}
	if n > maxCount {
		return ok
	}
	*to = n
	if seen != nil {
		*seen = true
	}
	return ok
}

// unescaped is the text of a JSON string that stood between quotes.
func unescaped(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		return string(raw)
	}
	return string(appendUnescaped(nil, raw))
}

// appendUnescaped appends the text of a valid JSON string's inside, as
// encoding/json reads it: what is not UTF-8 or half a surrogate pair becomes
// U+FFFD.
func appendUnescaped(dst, raw []byte) []byte {
	for i := 0; i < len(raw); {
		c := raw[i]
		switch {
		case c == '\\' && raw[i+1] == 'u':
			r := hex4(raw[i+2:])
			i += 6
			if utf16.IsSurrogate(r) {
				low := rune(utf8.RuneError)
				if i+6 <= len(raw) && raw[i] == '\\' && raw[i+1] == 'u' {
					low = utf16.DecodeRune(r, hex4(raw[i+2:]))
				}
				if r = low; r != utf8.RuneError {
					i += 6
				}
			}
			dst = utf8.AppendRune(dst, r)
		case c == '\\':
			dst = append(dst, plainEscape(raw[i+1]))
			i += 2
		case c < utf8.RuneSelf:
			dst = append(dst, c)
			i++
		default:
			r, n := utf8.DecodeRune(raw[i:])
			dst = utf8.AppendRune(dst, r)
			i += n
		}
	}
	return dst
}

func plainEscape(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

func hex4(b []byte) rune {
	var r rune
	for _, c := range b[:4] {
		r <<= 4
		switch {
		case c <= '9':
			r += rune(c - '0')
		default:
			r += rune(c|0x20-'a') + 10
		}
	}
	return r
}
