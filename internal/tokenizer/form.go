package tokenizer

import (
	"bytes"
	"unicode/utf8"
)

func (f form) normalize(e *encoder, p piece) piece {
	t := e.t.uni
	active := t.active[f]
	if !bytes.ContainsFunc(p.b, active.has) {
		return p
	}
	runes := t.decompose(e.runes[:0], p.b, f == formKC || f == formKD)
	e.runes = runes
	if f == formC || f == formKC {
		runes = t.compose(runes)
	}
	out := e.begin()
	for _, r := range runes {
		e.arena = utf8.AppendRune(e.arena, r)
	}
	q := piece{b: e.since(out), origin: p.origin}
	if p.origin && p.zero > 0 {
		q.zero = t.startZero(q.b, p, f)
	}
	return q
}

// startZero returns how much of a normalized text comes from the part of the
// source that is at the very start of the input.
func (t *tables) startZero(out []byte, p piece, f form) int {
	runes := t.decompose(nil, p.b[:p.zero], f == formKC || f == formKD)
	if f == formC || f == formKC {
		runes = t.compose(runes)
	}
	n := 0
	for i, r := range runes {
		got, size := utf8.DecodeRune(out[n:])
		if i > 0 && got != r {
			break
		}
		n += size
	}
	return n
}

// decompose appends the full decomposition of a text, marks in order.
func (t *tables) decompose(dst []rune, s []byte, compat bool) []rune {
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRune(s[i:])
		i += size
		switch {
		case r < 0xA0:
			dst = append(dst, r)
		case r >= hangulBase && r < hangulEnd:
			n := r - hangulBase
			dst = append(dst, hangulL+n/(hangulVs*hangulTs), hangulV+n/hangulTs%hangulVs)
			if n%hangulTs != 0 {
				dst = append(dst, hangulT+n%hangulTs)
			}
		default:
			d, ok := "", false
			if compat {
				d, ok = t.compat[r]
			}
			if !ok {
				d, ok = t.canon[r]
			}
			if !ok {
				dst = append(dst, r)
			}
			for _, c := range d {
				dst = append(dst, c)
			}
		}
	}
	t.sortMarks(dst)
	return dst
}

// sortMarks puts each run of marks in the order of their classes; marks of
// one class keep theirs.
func (t *tables) sortMarks(s []rune) {
	for i := 1; i < len(s); i++ {
		c := t.rank(s[i])
		if c == 0 {
			continue
		}
		r, j := s[i], i
		for ; j > 0 && t.rank(s[j-1]) > c; j-- {
			s[j] = s[j-1]
		}
		s[j] = r
	}
}

// rank returns the combining class of a code point, 0 for all but marks.
func (t *tables) rank(r rune) uint8 {
	if r < 0x300 {
		return 0
	}
	return t.order[r]
}

// compose joins what has a joined form, in place.
func (t *tables) compose(s []rune) []rune {
	out, starter, last := s[:0], -1, uint8(0)
	for _, r := range s {
		c := t.rank(r)
		if starter >= 0 && (len(out)-1 == starter || last < c) {
			if joined, ok := t.join(out[starter], r); ok {
				out[starter] = joined
				continue
			}
		}
		if c == 0 {
			starter = len(out)
		}
		last = c
		out = append(out, r)
	}
	return out
}

func (t *tables) join(a, b rune) (rune, bool) {
	switch {
	case a >= hangulL && a < hangulL+19 && b >= hangulV && b < hangulV+hangulVs:
		return hangulBase + ((a-hangulL)*hangulVs+b-hangulV)*hangulTs, true
	case a >= hangulBase && a < hangulEnd && (a-hangulBase)%hangulTs == 0 && b > hangulT && b < hangulT+hangulTs:
		return a + b - hangulT, true
	case b < 0x300:
		return 0, false
	}
	r, ok := t.pair[[2]rune{a, b}]
	return r, ok
}
