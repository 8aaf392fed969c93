package openai

import "bytes"

// pattern is an object of a stream around the one text in it. The objects of a
// stream differ in little more than that text, so the next one that has the
// same bytes before and behind a text says the same, of another text.
type pattern struct {
	head, tail []byte // of the object, up to the text and from its end on
	c          chunk  // what the object says
}

// maxPattern is the longest object worth keeping: others, with probabilities of
// each token, are never alike.
const maxPattern = 4 << 10

// matches reads b if it is the object of the pattern with another text.
func (s *scanner) matches(b []byte) (text []byte, ok bool) {
	p := &s.last
	n := len(p.head)
	if n == 0 || len(b) <= n+len(p.tail) || !bytes.HasPrefix(b, p.head) || !bytes.HasSuffix(b, p.tail) {
		return nil, false
	}
	text = b[n : len(b)-len(p.tail)]
	for i := 0; i < len(text); i++ {
		if inString[text[i]] {
			continue
		}
		escape := 0
		if text[i] == '\\' {
			escape = escapeLen(text[i+1:])
		}
		if escape == 0 {
			return nil, false // the object only begins and ends like the other
		}
		i += escape
	}
	return text, true
}

// learn keeps the object that was read as a pattern, if all it holds beside
// fixed fields is one text.
func (s *scanner) learn() {
	p, c := &s.last, &s.c
	p.head, p.tail = p.head[:0], p.tail[:0]
	if s.texts != 1 || s.after != nil || len(s.b) > maxPattern || c.guessed || len(c.finish)+len(c.unknown)+len(c.failure) > 0 {
		return
	}
	p.head = append(p.head, s.b[:s.text0]...)
	p.tail = append(p.tail, s.b[s.text1:]...)
	p.c = *c
}
