package openai

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// lexer reads the constructs of JSON one after another. Each method reads one
// at i and reports whether it is well formed. It allocates nothing.
type lexer struct {
	b     []byte
	i     int
	depth int
	name  []byte // backs a key with escapes
}

// maxDepth of nesting is encoding/json's.
const maxDepth = 10000

func (l *lexer) begin(b []byte) { l.b, l.i, l.depth = b, 0, 0 }

func (l *lexer) atEnd() bool { return l.i == len(l.b) }

func (l *lexer) peek() byte {
	if l.i < len(l.b) {
		return l.b[l.i]
	}
	return 0
}

func (l *lexer) eat(c byte) bool {
	if l.i < len(l.b) && l.b[l.i] == c {
		l.i++
		return true
	}
	return false
}

func (l *lexer) space() {
	for l.i < len(l.b) && l.b[l.i] <= ' ' {
		switch l.b[l.i] {
		case ' ', '\t', '\n', '\r':
			l.i++
		default:
			return
		}
	}
}

// open reads the begin of an object or array; more: an element follows.
func (l *lexer) open(begin, end byte) (more, ok bool) {
	if !l.eat(begin) {
		return false, false
	}
	if l.depth++; l.depth > maxDepth {
		return false, false
	}
	l.space()
	if l.eat(end) {
		l.depth--
		return false, true
	}
	return true, true
}

// more reads what stands behind an element: the end, or a comma before another.
func (l *lexer) more(end byte) (more, ok bool) {
	l.space()
	if l.eat(end) {
		l.depth--
		return false, true
	}
	if !l.eat(',') {
		return false, false
	}
	l.space()
	return true, true
}

// key reads an object's key, without escapes, and the colon behind it.
func (l *lexer) key() ([]byte, bool) {
	raw, escaped, ok := l.str()
	if ok && escaped {
		l.name = appendUnescaped(l.name[:0], raw)
		raw = l.name
	}
	l.space()
	if !ok || !l.eat(':') {
		return nil, false
	}
	l.space()
	return raw, true
}

// skip reads any value.
func (l *lexer) skip() bool {
	switch c := l.peek(); {
	case c == '"':
		_, _, ok := l.str()
		return ok
	case c == '{':
		more, ok := l.open('{', '}')
		for more {
			if _, isKey := l.key(); !isKey || !l.skip() {
				return false
			}
			more, ok = l.more('}')
		}
		return ok
	case c == '[':
		more, ok := l.open('[', ']')
		for more {
			if !l.skip() {
				return false
			}
			more, ok = l.more(']')
		}
		return ok
	case c == 't':
		return l.word("true")
	case c == 'f':
		return l.word("false")
	case c == 'n':
		return l.word("null")
	}
	return l.number()
}

// stringOrSkip reads a string, still escaped; any other value is skipped.
func (l *lexer) stringOrSkip() (v []byte, isString, ok bool) {
	if l.peek() != '"' {
		return nil, false, l.skip()
	}
	v, _, ok = l.str()
	return v, ok, ok
}

func (l *lexer) word(w string) bool {
	if len(l.b)-l.i < len(w) || string(l.b[l.i:l.i+len(w)]) != w {
		return false
	}
	l.i += len(w)
	return true
}

func (l *lexer) number() bool {
	l.eat('-')
	if !l.eat('0') && !l.digits() {
		return false
	}
	if l.eat('.') && !l.digits() {
		return false
	}
	if l.eat('e') || l.eat('E') {
		if !l.eat('+') {
			l.eat('-')
		}
		return l.digits()
	}
	return true
}

func (l *lexer) digits() bool {
	from := l.i
	for l.i < len(l.b) && '0' <= l.b[l.i] && l.b[l.i] <= '9' {
		l.i++
	}
	return l.i > from
}

// str reads a string and gives its inside.
func (l *lexer) str() (raw []byte, escaped, ok bool) {
	if !l.eat('"') {
		return nil, false, false
	}
	b, i := l.b, l.i
	for {
		for i < len(b) && inString[b[i]] {
			i++
		}
		if i == len(b) || b[i] < ' ' {
			return nil, false, false
		}
		if b[i] == '"' {
			raw, l.i = b[l.i:i], i+1
			return raw, escaped, true
		}
		n := escapeLen(b[i+1:])
		if n == 0 {
			return nil, false, false
		}
		escaped = true
		i += 1 + n
	}
}

// inString are the bytes that stand for themselves in a JSON string: no quote,
// no backslash, no control character.
var inString = func() (is [256]bool) {
	for c := ' '; c < 256; c++ {
		is[c] = c != '"' && c != '\\'
	}
	return is
}()

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
