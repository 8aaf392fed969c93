package tokenizer

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strings"
	"unicode/utf8"
)

// precompiled is the character map of a SentencePiece model: a double array
// over UTF-8 whose values are offsets of texts that end in a zero byte.
type precompiled struct {
	units []uint32
	texts string
}

func newPrecompiled(encoded string) (*precompiled, error) {
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, err
	}
	if len(data) < 4 {
		return nil, errors.New("too short")
	}
	size := binary.LittleEndian.Uint32(data) / 4
	data = data[4:]
	if uint64(size)*4 > uint64(len(data)) || size == 0 {
		return nil, errors.New("too short")
	}
	p := &precompiled{units: make([]uint32, size), texts: string(data[size*4:])}
	for i := range p.units {
		p.units[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	if !utf8.ValidString(p.texts) {
		return nil, errors.New("replacements that are not UTF-8")
	}
	return p, nil
}

// lookup returns what the shortest key that b begins with is replaced by. That
// it need not be all of b is so in the reference as well.
func (p *precompiled) lookup(b []byte) (string, bool) {
	offset := func(u uint32) int { return int(u >> 10 << (u & (1 << 9) >> 6)) }
	at := offset(p.units[0])
	for _, c := range b {
		if c == 0 {
			break
		}
		at ^= int(c)
		if at >= len(p.units) {
			return "", false
		}
		u := p.units[at]
		if u&(1<<31|0xFF) != uint32(c) {
			return "", false
		}
		at ^= offset(u)
		if u>>8&1 == 1 {
			if at >= len(p.units) {
				return "", false
			}
			i := int(p.units[at] &^ (1 << 31))
			if i > len(p.texts) {
				return "", false
			}
			text, _, _ := strings.Cut(p.texts[i:], "\x00")
			return text, true
		}
	}
	return "", false
}

func (p *precompiled) normalize(e *encoder, q piece) piece {
	list, changed := e.moved[:0], false
	put := func(old []byte, with string) {
		n := 0
		for _, r := range with {
			list = append(list, change{r: r})
			n++
		}
		more := n - utf8.RuneCount(old)
		for i := range more {
			list[len(list)-1-i].taken = 1
		}
		if more < 0 && len(list) > 0 {
			list[len(list)-1].taken += more
		}
		changed = true
	}
	for i := 0; i < len(q.b); {
		end := e.t.uni.cluster(q.b, i)
		if with, ok := "", false; end-i < 6 {
			if with, ok = p.lookup(q.b[i:end]); ok {
				put(q.b[i:end], with)
				i = end
				continue
			}
		}
		for i < end {
			r, size := utf8.DecodeRune(q.b[i:])
			if with, ok := p.lookup(q.b[i : i+size]); ok {
				put(q.b[i:i+size], with)
			} else {
				list = append(list, change{r: r})
			}
			i += size
		}
	}
	e.moved = list
	if !changed {
		return q
	}
	return e.apply(q, list)
}

// apply writes a list of changes, following where each code point comes from.
func (e *encoder) apply(p piece, list []change) piece {
	start := e.begin()
	q := piece{origin: p.origin}
	at := 0
	take := func() {
		if at < len(p.b) {
			_, size := utf8.DecodeRune(p.b[at:])
			at += size
		}
	}
	for _, c := range list {
		from := at
		if c.taken > 0 {
			from = max(0, at-1)
		} else {
			for range 1 - c.taken {
				take()
			}
		}
		e.arena = utf8.AppendRune(e.arena, c.r)
		if p.origin && from < p.zero {
			q.zero = len(e.arena) - start
		}
	}
	q.b = e.since(start)
	return q
}

// cluster returns the end of the grapheme cluster at i. Flags, whose clusters
// are never under six bytes, are taken one by one: that changes nothing here.
func (t *tables) cluster(b []byte, i int) int {
	prev, size := utf8.DecodeRune(b[i:])
	i += size
	linked, joined := false, t.mask(prev)&isPictograph != 0 // ... consonant and linker; pictograph and marks
	conjunct := t.mask(prev)&isConsonant != 0
	for i < len(b) {
		r, size := utf8.DecodeRune(b[i:])
		was, is := t.mask(prev), t.mask(r)
		switch {
		case prev == '\r' && r == '\n':
		case was&isBreak != 0 || is&isBreak != 0:
			return i
		case is&isExtend != 0:
		case was&isPrepend != 0:
		case hangulJoins(prev, r):
		case joined && prev == 0x200D && is&isPictograph != 0:
		case conjunct && linked && is&isConsonant != 0:
		default:
			return i
		}
		if is&isExtend == 0 {
			conjunct, linked, joined = is&isConsonant != 0, false, is&isPictograph != 0
		} else if is&isLinker != 0 {
			linked = true
		}
		prev = r
		i += size
	}
	return i
}

// hangulJoins tells whether two Hangul code points are of one syllable.
func hangulJoins(a, b rune) bool {
	const (
		none = iota
		lead
		vowel
		tail
		open   // lead and vowel
		closed // lead, vowel and tail
	)
	kind := func(r rune) int {
		switch {
		case r >= 0x1100 && r <= 0x115F, r >= 0xA960 && r <= 0xA97C:
			return lead
		case r >= 0x1160 && r <= 0x11A7, r >= 0xD7B0 && r <= 0xD7C6:
			return vowel
		case r >= 0x11A8 && r <= 0x11FF, r >= 0xD7CB && r <= 0xD7FB:
			return tail
		case r >= hangulBase && r < hangulEnd && (r-hangulBase)%hangulTs == 0:
			return open
		case r >= hangulBase && r < hangulEnd:
			return closed
		}
		return none
	}
	switch x, y := kind(a), kind(b); x {
	case lead:
		return y == lead || y == vowel || y == open || y == closed
	case vowel, open:
		return y == vowel || y == tail
	case tail, closed:
		return y == tail
	}
	return false
}
