package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// scan walks a JSON text without building values: a tokenizer file is ten
// megabytes of vocabulary, which encoding/json would take a second for.
type scan struct {
	b []byte
	i int
	t []byte // the last string that had escapes
}

var errJSON = errors.New("not valid JSON")

func (s *scan) fail() error {
	return fmt.Errorf("%w at byte %d", errJSON, s.i)
}

// peek skips white space and returns the next byte, 0 at the end.
func (s *scan) peek() byte {
	for ; s.i < len(s.b); s.i++ {
		switch s.b[s.i] {
		case ' ', '\n', '\t', '\r':
		default:
			return s.b[s.i]
		}
	}
	return 0
}

func (s *scan) eat(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.i++
	return true
}

// object calls f with each key, with the scan at its value. The key is good
// until the next string is read.
func (s *scan) object(f func(key []byte) error) error {
	if !s.eat('{') {
		return s.fail()
	}
	for first := true; !s.eat('}'); first = false {
		if !first && !s.eat(',') {
			return s.fail()
		}
		key, err := s.text()
		if err != nil {
			return err
		}
		if !s.eat(':') {
			return s.fail()
		}
		if err := f(key); err != nil {
			return err
		}
	}
	return nil
}

// array calls f with the scan at each element.
func (s *scan) array(f func() error) error {
	if !s.eat('[') {
		return s.fail()
	}
	for first := true; !s.eat(']'); first = false {
		if !first && !s.eat(',') {
			return s.fail()
		}
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// text reads a string; the result is good until the next string with escapes.
func (s *scan) text() ([]byte, error) {
	if !s.eat('"') {
		return nil, s.fail()
	}
	start := s.i
	for ; s.i < len(s.b); s.i++ {
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			return s.b[start : s.i-1], nil
		case c == '\\':
			return s.escaped(start)
		case c < ' ':
			return nil, s.fail()
		}
	}
	return nil, s.fail()
}

func (s *scan) escaped(start int) ([]byte, error) {
	s.t = append(s.t[:0], s.b[start:s.i]...)
	for s.i < len(s.b) {
		c := s.b[s.i]
		s.i++
		switch {
		case c == '"':
			return s.t, nil
		case c < ' ':
			return nil, s.fail()
		case c != '\\':
			s.t = append(s.t, c)
			continue
		case s.i == len(s.b):
			return nil, s.fail()
		}
		c = s.b[s.i]
		s.i++
		switch c {
		case '"', '\\', '/':
			s.t = append(s.t, c)
		case 'b':
			s.t = append(s.t, '\b')
		case 'f':
			s.t = append(s.t, '\f')
		case 'n':
			s.t = append(s.t, '\n')
		case 'r':
			s.t = append(s.t, '\r')
		case 't':
			s.t = append(s.t, '\t')
		case 'u':
			r, ok := s.unicode()
			if !ok {
				return nil, s.fail()
			}
			s.t = utf8.AppendRune(s.t, r)
		default:
			return nil, s.fail()
		}
	}
	return nil, s.fail()
}

// unicode reads the digits of a \u, and the second half of a pair.
func (s *scan) unicode() (rune, bool) {
	four := func() (rune, bool) {
		if s.i+4 > len(s.b) {
			return 0, false
		}
		n, err := strconv.ParseUint(string(s.b[s.i:s.i+4]), 16, 32)
		s.i += 4
		return rune(n), err == nil
	}
	r, ok := four()
	if !ok || !utf16.IsSurrogate(r) {
		return r, ok
	}
	if s.i+2 > len(s.b) || s.b[s.i] != '\\' || s.b[s.i+1] != 'u' {
		return 0, false
	}
	s.i += 2
	low, ok := four()
	r = utf16.DecodeRune(r, low)
	return r, ok && r != utf8.RuneError
}

// number returns the text of a number.
func (s *scan) number() ([]byte, error) {
	s.peek()
	start := s.i
	for ; s.i < len(s.b); s.i++ {
		switch c := s.b[s.i]; {
		case c >= '0' && c <= '9', c == '-', c == '+', c == '.', c == 'e', c == 'E':
			continue
		}
		break
	}
	if s.i == start {
		return nil, s.fail()
	}
	return s.b[start:s.i], nil
}

// id reads a token's id.
func (s *scan) id() (int32, error) {
	if c := s.peek(); c < '0' || c > '9' {
		return 0, s.fail()
	}
	n := int64(0)
	for ; s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9'; s.i++ {
		if n = n*10 + int64(s.b[s.i]-'0'); n >= maxID {
			return 0, fmt.Errorf("the id at byte %d is too large for a vocabulary", s.i)
		}
	}
	return int32(n), nil
}

// raw returns the value the scan is at, as it is written.
func (s *scan) raw() ([]byte, error) {
	s.peek()
	start := s.i
	err := s.skip()
	return s.b[start:s.i], err
}

func (s *scan) skip() error {
	switch s.peek() {
	case '{':
		return s.object(func([]byte) error { return s.skip() })
	case '[':
		return s.array(s.skip)
	case '"':
		_, err := s.text()
		return err
	}
	for _, word := range []string{"null", "true", "false"} {
		if len(s.b)-s.i >= len(word) && string(s.b[s.i:s.i+len(word)]) == word {
			s.i += len(word)
			return nil
		}
	}
	_, err := s.number()
	return err
}

// strict reads a small JSON text; a field that v lacks is an error.
func strict(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

// maxID bounds the ids of a vocabulary, so that a table by id is possible.
const maxID = 1 << 24
