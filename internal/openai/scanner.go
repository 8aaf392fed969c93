package openai

import (
	"bytes"
	"math"

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
	guessed bool   // it tells of the request's speculation: scanner.guesses
	usage   result.Usage
	size    int // bytes of what was generated, as they are written; 0: not known
}

// grammar is how the answers of an API are read.
type grammar struct {
	top   func(s *scanner, key []byte) bool // reads a field of an answer's object
	after func(s *scanner)                  // judges an object once all of it was read; may be nil
}

// scanner reads one JSON object of a stream, or a whole answer, into a chunk.
// It accepts exactly the objects that encoding/json accepts, allocates nothing
// and looks only at the fields that its grammar asks for.
type scanner struct {
	lexer
	grammar
	c      chunk
	in     bool   // usage has prompt_tokens
	out    bool   // usage has completion_tokens
	filled bool   // a string of the part being read is not empty
	keep   bool   // collect text
	text   []byte // what was generated, in the order of the fields; cleared by the caller
	field  []byte // backs chunk.unknown

	guesses result.Speculation // of the object, if it is guessed
	byStep  []int32            // backs guesses.ByStep

	kind  []byte // type of the event, still escaped: first by its event line, then by the object
	piece []byte // the string that is judged once the type is known, still escaped
	label []byte // type of the part being read, or status of the answer, still escaped
	cause []byte // why the answer is incomplete, still escaped
	named bool   // the event's item has a name or arguments

	state streamState

	last         pattern
	texts        int // of the object: strings that carry generated text
	text0, text1 int // where the last of them begins and ends
}

// streamState is what a scanner knows of a stream from one event to the next.
type streamState struct {
	input, created, cached int    // prompt tokens by kind
	in                     bool   // any of them came
	seen                   int    // completion tokens so far
	pieces                 bool   // texts are pieces and not all so far
	mean                   []byte // tokens that a pass yielded so far, as it was written
}

// parse reads one object and reports whether b is one. It begins with the
// event's type where a line of its own gave one.
func (s *scanner) parse(b, kind []byte) bool {
	if text, ok := s.matches(b); ok {
		s.c = s.last.c
		if s.c.size = len(text); s.keep {
			s.text = appendUnescaped(s.text, text)
		}
		return true
	}
	s.begin(b)
	s.texts = 0
	s.c, s.in, s.out = chunk{}, false, false
	s.kind, s.piece, s.label, s.cause, s.named = kind, nil, nil, nil, false
	s.space()
	ok := s.object(s.top)
	s.space()
	s.c.counted = s.in && s.out
	if ok = ok && s.atEnd(); ok && s.after != nil {
		s.after(s)
	}
	if ok {
		s.learn()
	}
	return ok
}

// object reads an object and calls field at each value with its key.
func (s *scanner) object(field func(*scanner, []byte) bool) bool {
	more, ok := s.open('{', '}')
	for more {
		key, isKey := s.key()
		if !isKey || !field(s, key) {
			return false
		}
		more, ok = s.more('}')
	}
	return ok
}

// fields is object; any other value is skipped.
func (s *scanner) fields(field func(*scanner, []byte) bool) bool {
	if s.peek() != '{' {
		return s.skip()
	}
	return s.object(field)
}

// list reads an array and calls item at each element; any other value is
// skipped.
func (s *scanner) list(item func(*scanner) bool) bool {
	if s.peek() != '[' {
		return s.skip()
	}
	more, ok := s.open('[', ']')
	for more {
		if !item(s) {
			return false
		}
		more, ok = s.more(']')
	}
	return ok
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

// unknownField reads a field of a delta that is not known here.
func (s *scanner) unknownField(key []byte) bool {
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
	if len(v) > 0 {
		s.texts++
		s.text0, s.text1 = s.i-1-len(v), s.i-1 // before its closing quote
	}
	s.addText(v, answer)
	return ok
}

// addText takes text that was generated, still escaped.
func (s *scanner) addText(v []byte, answer bool) {
	if len(v) == 0 {
		return
	}
	s.mark(answer)
	if s.c.size += len(v); s.keep {
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

// countedString reads a string that counts as generated if it is not empty, but is no
// text.
func (s *scanner) countedString() bool {
	return s.part((*scanner).fill)
}

func (s *scanner) fill() bool {
	v, isString, ok := s.stringOrSkip()
	if isString && len(v) > 0 {
		s.filled, s.c.size = true, s.c.size+len(v)
	}
	return ok
}

// notEmpty reads any value and sets to true at a list that has an element.
func (s *scanner) notEmpty(set *bool) bool {
	from, isList := s.i, s.peek() == '['
	ok := s.skip()
	*set = *set || ok && isList && len(bytes.TrimSpace(s.b[from+1:s.i-1])) > 0
	return ok
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

// broken takes an object for an error, unless a part of it is one.
func (s *scanner) broken() {
	if s.c.failure == nil {
		s.c.failure = s.b
	}
}
