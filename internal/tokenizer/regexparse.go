package tokenizer

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// expr is a parsed pattern.
type expr struct {
	op       op // opLoop stands for any repetition, opAccept for nothing
	greed    greed
	neg      bool
	min, max int
	set      *set    // of opClass and opBehind
	list     []*expr // in sequence; of opAlt: the alternatives
}

// maxSteps bounds a pattern, whose repeated groups are copied out.
const maxSteps = 20_000

// size is about how many steps an expression compiles to.
func (x *expr) size() int {
	n := 1
	for _, y := range x.list {
		n = min(n+y.size(), maxSteps+1)
	}
	if x.op == opLoop {
		n *= max(x.min, x.max, 1)
	}
	return min(n, maxSteps+1)
}

// parser reads Oniguruma's syntax as far as it is known here to mean the
// same; anything else is an error, for a wrong guess would be a wrong count.
type parser struct {
	src  string
	i    int
	fold bool // (?i)
	uni  *tables
	last rune // the letter before, where case does not count
}

func (p *parser) errorf(format string, args ...any) error {
	return fmt.Errorf("pattern %q: %s at byte %d is not supported", p.src, fmt.Sprintf(format, args...), p.i)
}

func (p *parser) more() bool { return p.i < len(p.src) }

func (p *parser) eat(s string) bool {
	if strings.HasPrefix(p.src[p.i:], s) {
		p.i += len(s)
		return true
	}
	return false
}

func (p *parser) alternation() (*expr, error) {
	fold := p.fold
	defer func() { p.fold = fold }()
	alt := &expr{op: opAlt}
	for {
		x, err := p.sequence()
		if err != nil {
			return nil, err
		}
		alt.list = append(alt.list, x)
		if !p.eat("|") {
			break
		}
	}
	if len(alt.list) == 1 {
		return alt.list[0], nil
	}
	return alt, nil
}

func (p *parser) sequence() (*expr, error) {
	seq := &expr{op: opAccept}
	p.last = 0
	for p.more() && p.src[p.i] != '|' && p.src[p.i] != ')' {
		x, err := p.atom()
		if err != nil {
			return nil, err
		}
		x, err = p.repeats(x)
		if err != nil {
			return nil, err
		}
		seq.list = append(seq.list, x)
	}
	return seq, nil
}

// repeats reads the repetitions behind an atom.
func (p *parser) repeats(x *expr) (*expr, error) {
	for p.more() {
		lo, hi, interval := 0, -1, false
		switch c := p.src[p.i]; {
		case c == '*':
		case c == '+':
			lo = 1
		case c == '?':
			hi = 1
		case c == '{':
			var err error
			if lo, hi, err = p.interval(); err != nil {
				return nil, err
			}
			interval = true
		default:
			return x, nil
		}
		if !interval {
			p.i++
		}
		if x.op > opLoop && x.op != opAlt && x.op != opAtomic {
			return nil, p.errorf("a repeated assertion")
		}
		x = &expr{op: opLoop, min: lo, max: hi, list: []*expr{x}}
		p.last = 0
		switch {
		case p.eat("?"):
			if interval && lo == hi {
				return nil, p.errorf("{n}?")
			}
			x.greed = lazy
		case !interval && p.eat("+"):
			x.greed = possessive
		}
	}
	return x, nil
}

// interval reads {n}, {n,}, {n,m} or {,m}.
func (p *parser) interval() (lo, hi int, err error) {
	body, _, ok := strings.Cut(p.src[p.i+1:], "}")
	a, b, comma := strings.Cut(body, ",")
	if !ok || body == "" || body == "," {
		return 0, 0, p.errorf("{")
	}
	if a != "" {
		lo, err = strconv.Atoi(a)
	}
	hi = lo
	if comma {
		hi = -1
		if b != "" && err == nil {
			hi, err = strconv.Atoi(b)
		}
	}
	if err != nil || lo < 0 || lo > 1000 || hi > 1000 || hi >= 0 && hi < lo {
		return 0, 0, p.errorf("{%s}", body)
	}
	p.i += len(body) + 2
	return lo, hi, nil
}

func (p *parser) atom() (*expr, error) {
	switch c := p.src[p.i]; c {
	case '(':
		p.i++
		return p.group()
	case '[':
		p.i++
		s, err := p.class()
		return &expr{op: opClass, set: s}, err
	case '.':
		p.i++
		return &expr{op: opClass, set: &set{neg: true, ranges: []rune{'\n', '\n'}}}, nil
	case '^':
		p.i++
		return &expr{op: opLineStart}, nil
	case '$':
		p.i++
		return &expr{op: opLineEnd}, nil
	case '*', '+', '?', '{':
		return nil, p.errorf("%c", c)
	case '\\':
		switch {
		case p.eat(`\A`):
			return &expr{op: opTextStart}, nil
		case p.eat(`\z`):
			return &expr{op: opTextEnd}, nil
		}
		s, _, err := p.escape(isWordAlone)
		return &expr{op: opClass, set: s}, err
	}
	r, size := utf8.DecodeRuneInString(p.src[p.i:])
	p.i += size
	s, err := p.letter(r)
	return &expr{op: opClass, set: s}, err
}

// letter is a literal code point, in both cases under (?i).
func (p *parser) letter(r rune) (*set, error) {
	s := &set{ranges: []rune{r, r}}
	if !p.fold {
		return s, nil
	}
	if r >= utf8.RuneSelf {
		return nil, p.errorf("%q where case does not count", r)
	}
	low := r
	if r >= 'A' && r <= 'Z' {
		low += 'a' - 'A'
	}
	// Without case these pairs match one code point as well: ß, ligatures.
	switch string([]rune{p.last, low}) {
	case "ss", "st", "ff", "fi", "fl":
		return nil, p.errorf("%q where case does not count", string([]rune{p.last, low}))
	}
	p.last = low
	if low >= 'a' && low <= 'z' {
		s.ranges = []rune{low, low, low - 'a' + 'A', low - 'a' + 'A'}
		for _, f := range p.uni.fold[low] {
			s.ranges = append(s.ranges, f, f)
		}
	}
	return s, nil
}

// group reads what follows an opening parenthesis.
func (p *parser) group() (*expr, error) {
	x := &expr{op: opAccept}
	fold := p.fold
	switch {
	case p.eat("?i:"):
		p.fold = true
	case p.eat("?-i:"):
		p.fold = false
	case p.eat("?:"):
	case p.eat("?="):
		x.op = opLook
	case p.eat("?!"):
		x.op, x.neg = opLook, true
	case p.eat("?<="):
		x.op = opBehind
	case p.eat("?<!"):
		x.op, x.neg = opBehind, true
	case p.eat("?>"):
		x.op = opAtomic
	case strings.HasPrefix(p.src[p.i:], "?"):
		return nil, p.errorf("(%.3s", p.src[p.i:])
	}
	body, err := p.alternation()
	if err != nil {
		return nil, err
	}
	p.fold = fold
	p.last = 0
	if !p.eat(")") {
		return nil, p.errorf("a missing )")
	}
	if x.op == opAccept {
		return body, nil
	}
	x.list = []*expr{body}
	if x.op == opBehind {
		for body.op == opAccept && len(body.list) == 1 {
			body = body.list[0]
		}
		if body.op != opClass {
			return nil, p.errorf("look-behind of more than one class")
		}
		x.set, x.list = body.set, nil
	}
	return x, nil
}

// class reads a bracketed class behind its opening bracket.
func (p *parser) class() (*set, error) {
	whole := &set{neg: p.eat("^")}
	part, empty := &set{}, true
	cut := (*set)(nil)
	for {
		switch {
		case !p.more():
			return nil, p.errorf("a missing ]")
		case p.eat("]"):
			if empty {
				return nil, p.errorf("an empty class")
			}
			part.and = cut
			whole.subs = append(whole.subs, part)
			return whole, nil
		case p.eat("&&"):
			if empty {
				return nil, p.errorf("an empty class")
			}
			part.and = cut
			cut = part
			part, empty = &set{}, true
		default:
			if err := p.member(part); err != nil {
				return nil, err
			}
			empty = false
		}
	}
}

// member reads one element of a class into it.
func (p *parser) member(s *set) error {
	if p.eat("[") {
		if p.more() && p.src[p.i] == ':' {
			return p.errorf("[:")
		}
		sub, err := p.class()
		s.subs = append(s.subs, sub)
		return err
	}
	sub, lo, err := p.single()
	if err != nil {
		return err
	}
	if lo < 0 && p.fold {
		return p.errorf("a property in a class where case does not count")
	}
	if lo < 0 {
		s.subs = append(s.subs, sub)
		return nil
	}
	hi := lo
	if rest := p.src[p.i:]; strings.HasPrefix(rest, "-") && !strings.HasPrefix(rest, "-]") {
		p.i++
		if _, hi, err = p.single(); err != nil {
			return err
		}
		if hi < lo {
			return p.errorf("a range that is not one")
		}
	}
	if !p.fold {
		s.ranges = append(s.ranges, lo, hi)
		return nil
	}
	for r := lo; r <= hi; r++ {
		p.last = 0
		one, err := p.letter(r)
		if err != nil {
			return err
		}
		s.ranges = append(s.ranges, one.ranges...)
	}
	p.last = 0
	return nil
}

// single reads one code point of a class, or an escape that stands for many.
func (p *parser) single() (*set, rune, error) {
	if !p.more() {
		return nil, 0, p.errorf("a missing ]")
	}
	if p.src[p.i] == '\\' {
		return p.escape(isWordInside)
	}
	r, size := utf8.DecodeRuneInString(p.src[p.i:])
	p.i += size
	return nil, r, nil
}

// escape reads a backslash and what it stands for: one code point, or a set
// with the code point -1. Word are the bits of \w where it stands.
func (p *parser) escape(word uint64) (*set, rune, error) {
	p.i++
	if !p.more() {
		return nil, 0, p.errorf(`\`)
	}
	c, size := utf8.DecodeRuneInString(p.src[p.i:])
	p.i += size
	one := func(r rune) (*set, rune, error) { return &set{ranges: []rune{r, r}}, r, nil }
	any := func(mask uint64) (*set, rune, error) { return &set{mask: mask}, -1, nil }
	none := func(mask uint64) (*set, rune, error) { return &set{notAny: []uint64{mask}}, -1, nil }
	switch c {
	case 's':
		return any(isSpace)
	case 'S':
		return none(isSpace)
	case 'd':
		return any(catNd)
	case 'D':
		return none(catNd)
	case 'w':
		return any(word)
	case 'W':
		return none(word)
	case 'p', 'P':
		return p.property(c == 'P')
	case 'x', 'u':
		r, err := p.hex(c)
		if err != nil {
			return nil, 0, err
		}
		return one(r)
	case 'n':
		return one('\n')
	case 'r':
		return one('\r')
	case 't':
		return one('\t')
	case 'f':
		return one('\f')
	case 'v':
		return one('\v')
	}
	if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf {
		return nil, 0, p.errorf(`\%c`, c)
	}
	return one(c)
}

// hex reads \xHH, \x{H...} or \uHHHH behind its letter.
func (p *parser) hex(kind rune) (rune, error) {
	digits, braced := 4, false
	if kind == 'x' {
		digits, braced = 2, p.eat("{")
		if braced {
			if digits = strings.IndexByte(p.src[p.i:], '}'); digits < 0 {
				return 0, p.errorf("a missing }")
			}
			defer p.eat("}")
		}
	}
	if p.i+digits > len(p.src) {
		return 0, p.errorf(`a short \%c`, kind)
	}
	n, err := strconv.ParseUint(p.src[p.i:p.i+digits], 16, 32)
	if err != nil || !utf8.ValidRune(rune(n)) || kind == 'x' && !braced && n > 0x7F {
		return 0, p.errorf(`\%c%s`, kind, p.src[p.i:p.i+digits])
	}
	p.i += digits
	return rune(n), nil
}

// property reads the {name} of \p or \P.
func (p *parser) property(neg bool) (*set, rune, error) {
	name, _, ok := strings.Cut(p.src[p.i:], "}")
	if !ok || !strings.HasPrefix(name, "{") {
		return nil, 0, p.errorf(`\p without {}`)
	}
	bits, known := propertyBits(strings.TrimPrefix(name[1:], "^"))
	if !known {
		return nil, 0, p.errorf(`the property %s}`, name)
	}
	if strings.HasPrefix(name, "{^") {
		neg = !neg
	}
	p.i += len(name) + 1
	if neg {
		return &set{notAny: []uint64{bits}}, -1, nil
	}
	return &set{mask: bits}, -1, nil
}

func propertyBits(name string) (uint64, bool) {
	switch name {
	case "Han":
		return isHan, true
	case "Hiragana":
		return isHiragana, true
	case "Katakana":
		return isKatakana, true
	case "Hangul":
		return isHangul, true
	}
	const order = "LuLlLtLmLoMnMcMeNdNlNoPcPdPsPePiPfPoSmScSkSoZsZlZpCcCfCoCn"
	bits := uint64(0)
	for i := 0; i < len(order); i += 2 {
		if order[i:i+2] == name || order[i:i+1] == name {
			bits |= 1 << (i / 2)
		}
	}
	return bits, bits != 0
}
