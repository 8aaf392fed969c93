package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxDepth is how deep values may nest. No client comes near it, and it bounds
// the work on a file of brackets.
const maxDepth = 40

// jsonScanner walks over JSON text without building anything, so that a file of
// any size costs its own bytes. It takes NaN, Infinity and -Infinity, which
// Python writes, as values, and counts them.
type jsonScanner struct {
	data  []byte
	at    int
	odd   int // NaN and infinities met
	oddAt int // where the first of them is
}

// space skips white space.
func (s *jsonScanner) space() {
	for s.at < len(s.data) {
		switch s.data[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

// peek returns the next byte, 0 at the end.
func (s *jsonScanner) peek() byte {
	if s.at < len(s.data) {
		return s.data[s.at]
	}
	return 0
}

// wrong says what stands where something else should.
func (s *jsonScanner) wrong(want string) error {
	if s.at >= len(s.data) {
		return fmt.Errorf("it ends where %s should be", want)
	}
	return fmt.Errorf("%q stands where %s should be", s.data[s.at], want)
}

// value skips one value.
func (s *jsonScanner) value() error {
	var open []byte // closing brackets of what is open, innermost last
	for {
		s.space()
		switch c := s.peek(); {
		case c == '{' || c == '[':
			if len(open) == maxDepth {
				return fmt.Errorf("it nests deeper than %d", maxDepth)
			}
			open = append(open, c+2) // in ASCII
			s.at++
			if s.space(); s.peek() != c+2 {
				if err := s.key(c); err != nil {
					return err
				}
				continue
			}
		default:
			if err := s.leaf(c); err != nil {
				return err
			}
			if len(open) == 0 {
				return nil
			}
		}
		more, err := s.after(&open)
		if err != nil || !more {
			return err
		}
	}
}

// leaf skips a value that holds no other.
func (s *jsonScanner) leaf(c byte) error {
	switch {
	case c == '"':
		return s.text()
	case c == '-' || c >= '0' && c <= '9':
		return s.number()
	}
	if slices.ContainsFunc([]string{"true", "false", "null", "NaN", "Infinity"}, s.word) {
		return nil
	}
	return s.wrong("a value")
}

// key skips the key and colon before a value, in an object.
func (s *jsonScanner) key(bracket byte) error {
	if bracket != '{' {
		return nil
	}
	s.space()
	if err := s.text(); err != nil {
		return err
	}
	if s.space(); s.peek() != ':' {
		return s.wrong("a colon")
	}
	s.at++
	return nil
}

// after goes on after a value, or at the closing bracket of an empty list: to
// the next value, or out of what closes here. It reports whether there is more.
func (s *jsonScanner) after(open *[]byte) (more bool, err error) {
	for len(*open) > 0 {
		end := (*open)[len(*open)-1]
		s.space()
		switch s.peek() {
		case ',':
			s.at++
			return true, s.key(end - 2)
		case end:
			s.at++
			*open = (*open)[:len(*open)-1]
		default:
			return false, s.wrong("a comma or " + string(end))
		}
	}
	return false, nil
}

// word skips a word if it stands here.
func (s *jsonScanner) word(word string) bool {
	if !bytes.HasPrefix(s.data[s.at:], []byte(word)) {
		return false
	}
	if word == "NaN" || strings.HasSuffix(word, "Infinity") {
		if s.odd == 0 {
			s.oddAt = s.at
		}
		s.odd++
	}
	s.at += len(word)
	return true
}

// text skips a string.
func (s *jsonScanner) text() error {
	if s.peek() != '"' {
		return s.wrong("a string")
	}
	for s.at++; s.at < len(s.data); s.at++ {
		switch c := s.data[s.at]; {
		case c == '"':
			s.at++
			return nil
		case c < ' ':
			return fmt.Errorf("a string is not closed on its line")
		case c == '\\':
			s.at++
			if c := s.peek(); c == 'u' {
				for range 4 {
					if s.at++; !strings.ContainsRune("0123456789abcdefABCDEF", rune(s.peek())) {
						return s.wrong("a hexadecimal digit")
					}
				}
			} else if !strings.ContainsRune(`"\/bfnrt`, rune(c)) {
				return s.wrong("an escape")
			}
		}
	}
	return s.wrong("the end of a string")
}

// number skips a number, or -Infinity.
func (s *jsonScanner) number() error {
	if s.word("-Infinity") {
		return nil
	}
	if s.peek() == '-' {
		s.at++
	}
	if s.peek() == '0' {
		s.at++
	} else if !s.digits() {
		return s.wrong("a digit")
	}
	if s.peek() == '.' {
		if s.at++; !s.digits() {
			return s.wrong("a digit")
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.at++
		if c := s.peek(); c == '+' || c == '-' {
			s.at++
		}
		if !s.digits() {
			return s.wrong("a digit")
		}
	}
	return nil
}

func (s *jsonScanner) digits() bool {
	from := s.at
	for c := s.peek(); c >= '0' && c <= '9'; c = s.peek() {
		s.at++
	}
	return s.at > from
}

// unquoted returns the text of a JSON string, all of it.
func unquoted(raw []byte) string {
	if inner := raw[1 : len(raw)-1]; bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner)
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return string(raw)
	}
	return s
}

// member is one key of an object, or one element of an array, and its value.
type member struct {
	key  string // decoded; "" of an element
	raw  json.RawMessage
	line int // where the value begins
}

// items yields the members of an object or the elements of an array, whose
// text a jsonScanner has found good and which begins on the given line. Of other
// values it yields nothing.
func items(raw []byte, line int) iter.Seq[member] {
	return func(yield func(member) bool) {
		s := jsonScanner{data: raw}
		s.space()
		end := s.peek() + 2 // of { and [ in ASCII
		if end != '}' && end != ']' {
			return
		}
		seen := 0
		s.at++
		for {
			if s.space(); s.at >= len(raw) || s.peek() == end {
				return
			}
			m := member{}
			if end == '}' {
				from := s.at
				if s.text() != nil {
					return
				}
				m.key = unquoted(raw[from:s.at])
				s.space()
				s.at++ // the colon
				s.space()
			}
			from := s.at
			if s.value() != nil {
				return
			}
			line += bytes.Count(raw[seen:from], []byte("\n"))
			seen = from
			m.raw, m.line = raw[from:s.at], line
			if !yield(m) {
				return
			}
			if s.space(); s.peek() == ',' {
				s.at++
			}
		}
	}
}

// finite returns JSON text with null in the place of NaN and infinities, on the
// same lines. An infinite request_rate stays, as text: it is how Python's
// clients write that all requests are due at once.
func finite(raw []byte) (clean []byte, missing int) {
	s := jsonScanner{data: raw}
	from := 0
	key := ""
	for s.at < len(raw) {
		at := s.at
		switch c := raw[at]; {
		case c == '"':
			if s.text() != nil {
				return raw, 0
			}
			key = string(raw[at:s.at])
		case c == 'N' || c == 'I' || c == '-' && bytes.HasPrefix(raw[at:], []byte("-I")):
			word := "NaN"
			if c != 'N' {
				word = "Infinity"
			}
			s.at = at + bytes.Index(raw[at:], []byte(word)) + len(word)
			clean = append(clean, raw[from:at]...)
			if key == `"request_rate"` && c == 'I' {
				clean = append(clean, `"inf"`...)
			} else {
				clean = append(clean, "null"...)
				missing++
			}
			from = s.at
		default:
			s.at++
		}
	}
	return append(clean, raw[from:]...), missing
}
