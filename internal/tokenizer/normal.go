package tokenizer

import (
	"bytes"
	"unicode/utf8"
)

// rewrite appends to the arena what f makes of each code point of a piece.
func (e *encoder) rewrite(p piece, f func(r rune, from []byte)) piece {
	start := e.begin()
	q := piece{origin: p.origin}
	for i := 0; i < len(p.b); {
		r, size := utf8.DecodeRune(p.b[i:])
		f(r, p.b[i:i+size])
		if p.origin && i < p.zero {
			q.zero = len(e.arena) - start
		}
		i += size
	}
	q.b = e.since(start)
	return q
}

// drop leaves out code points that have any of its bits.
type drop uint64

func (d drop) normalize(e *encoder, p piece) piece {
	bits := uint64(d)
	uni := e.t.uni
	if !bytes.ContainsFunc(p.b, func(r rune) bool { return uni.mask(r)&bits != 0 }) {
		return p
	}
	return e.rewrite(p, func(r rune, from []byte) {
		if uni.mask(r)&bits == 0 {
			e.arena = append(e.arena, from...)
		}
	})
}

// lowercase maps code point by code point, without regard to what is around.
type lowercase struct{}

func (lowercase) normalize(e *encoder, p piece) piece {
	uni := e.t.uni
	changes := func(r rune) bool {
		if r < utf8.RuneSelf {
			return r >= 'A' && r <= 'Z'
		}
		_, ok := uni.lower[r]
		return ok
	}
	if !bytes.ContainsFunc(p.b, changes) {
		return p
	}
	return e.rewrite(p, func(r rune, from []byte) {
		switch {
		case !changes(r):
			e.arena = append(e.arena, from...)
		case r < utf8.RuneSelf:
			e.arena = append(e.arena, byte(r)+'a'-'A')
		default:
			e.arena = append(e.arena, uni.lower[r]...)
		}
	})
}

// strip takes white space off the ends.
type strip struct{ left, right bool }

func (s strip) normalize(e *encoder, p piece) piece {
	space := func(r rune) bool { return e.t.uni.mask(r)&isSpace != 0 }
	b, cut := p.b, 0
	if s.left {
		b = bytes.TrimLeftFunc(b, space)
		cut = len(p.b) - len(b)
	}
	if s.right {
		b = bytes.TrimRightFunc(b, space)
	}
	return piece{b: b, origin: p.origin, zero: max(0, min(p.zero-cut, len(b)))}
}

// prepend puts a text before every piece.
type prepend string

func (s prepend) normalize(e *encoder, p piece) piece {
	if len(p.b) == 0 || s == "" {
		return p
	}
	start := e.begin()
	e.arena = append(append(e.arena, s...), p.b...)
	q := piece{b: e.since(start), origin: p.origin}
	if p.zero > 0 {
		q.zero = p.zero + len(s)
	}
	return q
}

// replace puts a text in the place of every match.
type replace struct {
	text string   // matched literally when there is no pattern
	re   *pattern // else
	with string
}

// found returns the matches in a text as pairs of offsets, good until the
// next call, and whether the pattern took too long.
func (n *replace) found(spans []int, b []byte) ([]int, bool) {
	spans = spans[:0]
	if n.re == nil {
		for i := 0; ; {
			k := bytes.Index(b[i:], []byte(n.text))
			if k < 0 {
				return spans, false
			}
			i += k + len(n.text)
			spans = append(spans, i-len(n.text), i)
		}
	}
	for it := n.re.matches(b); ; {
		start, end, ok := it.next()
		if !ok {
			return spans, it.gaveUp()
		}
		spans = append(spans, start, end)
	}
}

func (n *replace) normalize(e *encoder, p piece) piece {
	spans, gaveUp := n.found(e.spans, p.b)
	if e.spans = spans; gaveUp {
		e.err = errTooLong
	}
	if len(e.spans) == 0 {
		return p
	}
	begin := e.begin()
	q := piece{origin: p.origin}
	// What replaces a match counts as coming from the match's last byte.
	copied := func(from, to int) {
		e.arena = append(e.arena, p.b[from:to]...)
		if from < to && from < p.zero {
			q.zero = len(e.arena) - begin - (to - min(to, p.zero))
		}
	}
	done := 0
	for i := 0; i < len(e.spans); i += 2 {
		start, end := e.spans[i], e.spans[i+1]
		copied(done, start)
		e.arena = append(e.arena, n.with...)
		if n.with != "" && (end == 0 || end <= p.zero) {
			q.zero = len(e.arena) - begin
		}
		done = end
	}
	copied(done, len(p.b))
	if !p.origin {
		q.zero = 0
	}
	q.b = e.since(begin)
	return q
}

// bertText is BERT's cleaning: control characters go, all white space becomes
// a space, and ideographs get spaces around them.
type bertText struct{ clean, ideographs bool }

func (n bertText) normalize(e *encoder, p piece) piece {
	uni := e.t.uni
	return e.rewrite(p, func(r rune, from []byte) {
		m := uni.mask(r)
		switch {
		case n.clean && m&isControl != 0:
		case n.clean && m&isSpace != 0:
			e.arena = append(e.arena, ' ')
		case n.ideographs && isIdeograph(r):
			e.arena = append(e.arena, ' ')
			e.arena = append(e.arena, from...)
			e.arena = append(e.arena, ' ')
		default:
			e.arena = append(e.arena, from...)
		}
	})
}

// isIdeograph is BERT's own list of blocks, with its gaps.
func isIdeograph(r rune) bool {
	switch {
	case r < 0x3400:
		return false
	case r <= 0x4DBF, r >= 0x4E00 && r <= 0x9FFF, r >= 0xF900 && r <= 0xFAFF,
		r >= 0x20000 && r <= 0x2A6DF, r >= 0x2A700 && r <= 0x2B73F, r >= 0x2B740 && r <= 0x2B81F,
		r >= 0x2B920 && r <= 0x2CEAF, r >= 0x2F800 && r <= 0x2FA1F:
		return true
	}
	return false
}

// nmt is SentencePiece's cleaning for translation models.
type nmt struct{}

func (nmt) normalize(e *encoder, p piece) piece {
	return e.rewrite(p, func(r rune, from []byte) {
		switch {
		case r >= 1 && r <= 8, r == 0xB, r >= 0xE && r <= 0x1F, r == 0x7F, r == 0x8F, r == 0x9F:
		case r == '\t', r == '\n', r == 0xC, r == '\r', r == 0x1680, r >= 0x200B && r <= 0x200F,
			r == 0x2028, r == 0x2029, r == 0x2581, r == 0xFEFF, r == 0xFFFD:
			e.arena = append(e.arena, ' ')
		default:
			e.arena = append(e.arena, from...)
		}
	})
}

// byteLevel writes a text in the alphabet of byte-level models.
type byteLevel struct{}

func (byteLevel) normalize(e *encoder, p piece) piece {
	return e.rewrite(p, func(_ rune, from []byte) { e.appendMapped(from) })
}
