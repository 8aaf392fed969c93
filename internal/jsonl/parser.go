package jsonl

import "bytes"

// Parser reads a line as Writer writes it. Each method reads one value and is false where it is written in another
// way, or is another value.
type Parser struct {
	b     []byte            // what is left of the line
	names map[string]string // texts that many lines share
}

// Line reads an object that is a whole line, the value of each key by field.
func (p *Parser) Line(line []byte, field func(key []byte) bool) bool {
	p.b = line
	return p.Object(field) && len(p.b) == 0
}

// Object reads an object, the value of each key by field.
func (p *Parser) Object(field func(key []byte) bool) bool {
	if !p.char('{') {
		return false
	}
	for first := true; !p.char('}'); first = false {
		if !first && !p.char(',') {
			return false
		}
		key, ok := p.text()
		if !ok || !p.char(':') || !field(key) {
			return false
		}
	}
	return true
}

// Text reads a text of plain ASCII, once for all lines that have it as far as these
// are few.
func (p *Parser) Text(to *string) bool {
	b, ok := p.text()
	*to = p.shared(b)
	return ok
}

// Own reads a text of plain ASCII that other lines do not have.
func (p *Parser) Own(to *string) bool {
	b, ok := p.text()
	*to = string(b)
	return ok
}

// shared is the text, once for all lines that have it.
func (p *Parser) shared(b []byte) string {
	const most, long = 1000, 64
	if s, ok := p.names[string(b)]; ok {
		return s
	}
	s := string(b)
	if p.names == nil {
		p.names = map[string]string{}
	}
	if len(s) <= long && len(p.names) < most {
		p.names[s] = s
	}
	return s
}

func (p *Parser) char(c byte) bool {
	if len(p.b) == 0 || p.b[0] != c {
		return false
	}
	p.b = p.b[1:]
	return true
}

func (p *Parser) text() ([]byte, bool) {
	if !p.char('"') {
		return nil, false
	}
	for i, c := range p.b {
		switch {
		case c == '"':
			s := p.b[:i]
			p.b = p.b[i+1:]
			return s, true
		case c == '\\' || c < ' ' || c >= 0x7f:
			return nil, false
		}
	}
	return nil, false
}

// Yes reads what is true.
func (p *Parser) Yes(to *bool) bool {
	if !bytes.HasPrefix(p.b, []byte("true")) {
		return false
	}
	p.b, *to = p.b[4:], true
	return true
}

// number reads an integer of so many digits that it cannot overflow.
func (p *Parser) number() (v int64, ok bool) {
	i, minus := 0, len(p.b) > 0 && p.b[0] == '-'
	if minus {
		i = 1
	}
	from := i
	for ; i < len(p.b) && p.b[i]-'0' <= 9; i++ {
		v = 10*v + int64(p.b[i]-'0')
	}
	n := i - from
	if n == 0 || n > 18 || n > 1 && p.b[from] == '0' || minus && v == 0 {
		return 0, false
	}
	p.b = p.b[i:]
	if minus {
		v = -v
	}
	return v, true
}

// Pairs reads a list of lists of integers.
func (p *Parser) Pairs(to *[][]int64) bool {
	if !p.char('[') {
		return false
	}
	*to = nil
	for !p.char(']') {
		var pair []int64
		if len(*to) > 0 && !p.char(',') || !Numbers(p, &pair) {
			return false
		}
		*to = append(*to, pair)
	}
	return true
}

// Number reads an integer that T holds; what is no integer shows as no comma or bracket after it.
func Number[T ~int | ~int32 | ~int64](p *Parser, to *T) bool {
	v, ok := p.number()
	*to = T(v)
	return ok && int64(*to) == v
}

// Numbers reads a list of integers into the room that the list has.
func Numbers[T int32 | int64](p *Parser, to *[]T) bool {
	if !p.char('[') {
		return false
	}
	*to = (*to)[:0]
	if p.char(']') {
		return true
	}
	for {
		v, ok := p.number()
		if !ok || int64(T(v)) != v {
			return false
		}
		*to = append(*to, T(v))
		if p.char(']') {
			return true
		}
		if !p.char(',') {
			return false
		}
	}
}
