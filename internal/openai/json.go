package openai

// The grammar of JSON under the scanner: each method reads one construct at i
// and reports whether it is well formed.

func (s *scanner) peek() byte {
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

func (s *scanner) eat(c byte) bool {
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

// object reads an object and calls field at each value with its key.
func (s *scanner) object(field func(*scanner, []byte) bool) bool {
	if !s.eat('{') || !s.enter() {
		return false
	}
	s.space()
	if s.eat('}') {
		s.depth--
		return true
	}
	for {
		key, ok := s.key()
		s.space()
		if !ok || !s.eat(':') {
			return false
		}
		s.space()
		if !field(s, key) {
			return false
		}
		s.space()
		if s.eat('}') {
			s.depth--
			return true
		}
		if !s.eat(',') {
			return false
		}
		s.space()
	}
}

// array reads an array and calls item at each element.
func (s *scanner) array(item func(*scanner) bool) bool {
	if !s.eat('[') || !s.enter() {
		return false
	}
	s.space()
	if s.eat(']') {
		s.depth--
		return true
	}
	for {
		if !item(s) {
			return false
		}
		s.space()
		if s.eat(']') {
			s.depth--
			return true
		}
		if !s.eat(',') {
			return false
		}
		s.space()
	}
}

func (s *scanner) enter() bool {
	s.depth++
	return s.depth <= maxDepth
}

// fields reads an object; any other value is skipped.
func (s *scanner) fields(field func(*scanner, []byte) bool) bool {
	if s.peek() != '{' {
		return s.skip()
	}
	return s.object(field)
}

// list reads an array; any other value is skipped.
func (s *scanner) list(item func(*scanner) bool) bool {
	if s.peek() != '[' {
		return s.skip()
	}
	return s.array(item)
}

// stringOrSkip reads a string, still escaped; any other value is skipped.
func (s *scanner) stringOrSkip() (v []byte, isString, ok bool) {
	if s.peek() != '"' {
		return nil, false, s.skip()
	}
	v, _, ok = s.str()
	return v, ok, ok
}

// key reads an object's key without escapes.
func (s *scanner) key() ([]byte, bool) {
	raw, escaped, ok := s.str()
	if !ok || !escaped {
		return raw, ok
	}
	s.name = appendUnescaped(s.name[:0], raw)
	return s.name, true
}

func (s *scanner) skip() bool {
	switch c := s.peek(); {
	case c == '"':
		_, _, ok := s.str()
		return ok
	case c == '{':
		return s.object(func(s *scanner, _ []byte) bool { return s.skip() })
	case c == '[':
		return s.array((*scanner).skip)
	case c == 't':
		return s.word("true")
	case c == 'f':
		return s.word("false")
	case c == 'n':
		return s.word("null")
	}
	return s.number()
}

func (s *scanner) word(w string) bool {
	if len(s.b)-s.i < len(w) || string(s.b[s.i:s.i+len(w)]) != w {
		return false
	}
	s.i += len(w)
	return true
}

func (s *scanner) number() bool {
	s.eat('-')
	if !s.eat('0') && !s.digits() {
		return false
	}
	if s.eat('.') && !s.digits() {
		return false
	}
	if s.eat('e') || s.eat('E') {
		if !s.eat('+') {
			s.eat('-')
		}
		return s.digits()
	}
	return true
}

func (s *scanner) digits() bool {
	from := s.i
	for s.i < len(s.b) && '0' <= s.b[s.i] && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i > from
}

// str reads a string and gives its inside.
func (s *scanner) str() (raw []byte, escaped, ok bool) {
	if !s.eat('"') {
		return nil, false, false
	}
	b, from := s.b, s.i
	for i := from; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			s.i = i + 1
			return b[from:i], escaped, true
		case c < ' ':
			return nil, false, false
		case c == '\\':
			escaped = true
			n := escapeLen(b[i+1:])
			if n == 0 {
				return nil, false, false
			}
			i += n
		}
	}
	return nil, false, false
}

// escapeLen is how many bytes after the backslash belong to the escape; 0: it
// is not one.
func escapeLen(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	switch b[0] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 1
	case 'u':
		if len(b) < 5 {
			return 0
		}
		for _, c := range b[1:5] {
			if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
				return 0
			}
		}
		return 5
	}
	return 0
}
