package tokenizer

import (
	"bytes"
	"unicode/utf8"
)

// behavior says what becomes of a delimiter.
type behavior int

const (
	removed behavior = iota
	isolated
	mergedWithPrevious
	mergedWithNext
	contiguous
)

func parseBehavior(s string) (behavior, bool) {
	switch s {
	case "Removed":
		return removed, true
	case "Isolated":
		return isolated, true
	case "MergedWithPrevious":
		return mergedWithPrevious, true
	case "MergedWithNext":
		return mergedWithNext, true
	case "Contiguous":
		return contiguous, true
	}
	return 0, false
}

// cutter hands on the stretches of a piece, delimiters and what is between, as
// its behavior says.
type cutter struct {
	e          *encoder
	next       int
	p          piece
	how        behavior
	invert     bool
	done       int // end of the last stretch
	start, end int // held back
	held, was  bool
}

// cut takes the next delimiter.
func (c *cutter) cut(start, end int) {
	if c.done != start {
		c.take(c.done, start, c.invert)
	}
	c.take(start, end, !c.invert)
	c.done = end
}

// finish takes what is behind the last delimiter.
func (c *cutter) finish() {
	if c.done != len(c.p.b) {
		c.take(c.done, len(c.p.b), c.invert)
	}
	if c.held {
		c.emit(c.start, c.end)
	}
}

func (c *cutter) emit(start, end int) { c.e.split(c.next, c.p.slice(start, end)) }

func (c *cutter) take(start, end int, match bool) {
	merge := false
	switch c.how {
	case removed:
		if !match {
			c.emit(start, end)
		}
		return
	case isolated:
		c.emit(start, end)
		return
	case contiguous:
		merge = match == c.was
	case mergedWithPrevious:
		merge = match && !c.was
	case mergedWithNext:
		merge = !match && c.was
	}
	c.was = match
	if merge && c.held {
		c.end = end
		return
	}
	if c.held {
		c.emit(c.start, c.end)
	}
	c.start, c.end, c.held = start, end, true
}

// splitPattern cuts at the matches of a pattern.
type splitPattern struct {
	re     *pattern
	how    behavior
	invert bool
}

func (s *splitPattern) split(e *encoder, next int, p piece) {
	c := cutter{e: e, next: next, p: p, how: s.how, invert: s.invert}
	for it := s.re.matches(p.b); ; {
		start, end, ok := it.next()
		if !ok {
			if it.gaveUp() {
				e.err = errTooLong
			}
			break
		}
		c.cut(start, end)
	}
	c.finish()
}

// splitClass cuts at code points that have any of its bits.
type splitClass struct {
	bits uint64
	how  behavior
}

func (s splitClass) split(e *encoder, next int, p piece) {
	c := cutter{e: e, next: next, p: p, how: s.how}
	for i := 0; i < len(p.b); {
		r, size := utf8.DecodeRune(p.b[i:])
		if e.t.uni.mask(r)&s.bits != 0 {
			c.cut(i, i+size)
		}
		i += size
	}
	c.finish()
}

// splitRune cuts a code point out.
type splitRune rune

func (s splitRune) split(e *encoder, next int, p piece) {
	c := cutter{e: e, next: next, p: p, how: removed}
	for i, r := range runesOf(p.b) {
		if r == rune(s) {
			c.cut(i, i+utf8.RuneLen(r))
		}
	}
	c.finish()
}

func runesOf(b []byte) func(yield func(int, rune) bool) {
	return func(yield func(int, rune) bool) {
		for i := 0; i < len(b); {
			r, size := utf8.DecodeRune(b[i:])
			if !yield(i, r) {
				return
			}
			i += size
		}
	}
}

// splitWords is \w+|[^\w\s]+: words, and what is neither word nor space.
type splitWords struct{}

func (splitWords) split(e *encoder, next int, p piece) {
	const space, word, other = 0, 1, 2
	kind := func(r rune) int {
		switch m := e.t.uni.mask(r); {
		case m&isWord != 0:
			return word
		case m&isSpace != 0:
			return space
		}
		return other
	}
	start, was := 0, space
	for i, r := range runesOf(p.b) {
		if k := kind(r); k != was {
			if was != space {
				e.split(next, p.slice(start, i))
			}
			start, was = i, k
		}
	}
	if was != space {
		e.split(next, p.slice(start, len(p.b)))
	}
}

// splitLength cuts into stretches of so many code points.
type splitLength int

func (s splitLength) split(e *encoder, next int, p piece) {
	start, n := 0, 0
	for i := range runesOf(p.b) {
		if n == int(s) {
			e.split(next, p.slice(start, i))
			start, n = i, 0
		}
		n++
	}
	e.split(next, p.slice(start, len(p.b)))
}

// prefixSpace makes every piece begin with a space.
type prefixSpace struct{}

func (prefixSpace) split(e *encoder, next int, p piece) {
	if p.b[0] != ' ' {
		p = prepend(" ").normalize(e, p)
	}
	e.split(next, p)
}

// mapBytes writes a piece in the alphabet of byte-level models.
type mapBytes struct{}

func (mapBytes) split(e *encoder, next int, p piece) {
	e.split(next, byteLevel{}.normalize(e, p))
}

// metaspace writes spaces as its mark, puts one before a piece as its scheme
// says, and cuts before each.
type metaspace struct {
	mark   string
	scheme string // always, first, never
	cut    bool
}

func (m *metaspace) split(e *encoder, next int, p piece) {
	top := len(e.arena)
	origin := p.origin
	p = (&replace{text: " ", with: m.mark}).normalize(e, p)
	if !bytes.HasPrefix(p.b, []byte(m.mark)) && (m.scheme == "always" || m.scheme == "first" && origin) {
		p = prepend(m.mark).normalize(e, p)
	}
	if !m.cut {
		e.split(next, p)
	} else {
		c := cutter{e: e, next: next, p: p, how: mergedWithNext}
		for i := 0; ; {
			k := bytes.Index(p.b[i:], []byte(m.mark))
			if k < 0 {
				break
			}
			c.cut(i+k, i+k+len(m.mark))
			i += k + len(m.mark)
		}
		c.finish()
	}
	e.arena = e.arena[:top]
}

// cutBefore cuts before a mark that follows something else; see bpe.build.
type cutBefore struct{ mark []byte }

func (s *cutBefore) split(e *encoder, next int, p piece) {
	start := 0
	for i := 0; ; {
		k := bytes.Index(p.b[i:], s.mark)
		if k < 0 {
			break
		}
		if k > 0 {
			e.split(next, p.slice(start, i+k))
			start = i + k
		}
		i += k + len(s.mark)
	}
	e.split(next, p.slice(start, len(p.b)))
}
