package tokenizer

import (
	"errors"
	"sync"
	"unicode/utf8"
)

// Tokenizer is a tokenizer.json. It is immutable and safe for concurrent use.
type Tokenizer struct {
	name  string
	uni   *tables
	model model
	cache *cache

	norm     []normalizer
	pre      []splitter
	bytes    bool // words are mapped to the byte alphabet before the model sees them
	added    *added
	before   []int32 // what the template puts around a text
	after    []int32
	template bool // the two are known
	decode   []decoder
	joiner   string // between tokens when there is no decoder

	pool sync.Pool // of *encoder
}

// decoder rewrites a list of tokens on its way to a text.
type decoder interface {
	decode(tokens []string) []string
}

// model turns a word into ids, which it appends to the encoder's.
type model interface {
	tokenize(e *encoder, word []byte) error
	vocab() *vocab
}

// normalizer rewrites a piece before it is split. A piece it does not change
// it returns as it is.
type normalizer interface {
	normalize(e *encoder, p piece) piece
}

// splitter cuts a piece and hands what it cuts to step next.
type splitter interface {
	split(e *encoder, next int, p piece)
}

var errTooLong = errors.New("a pattern of the tokenizer takes too long on this text, as it does in the reference")

// encoder is the scratch of one Encode; it is used again by the next.
type encoder struct {
	t   *Tokenizer
	ids []int32
	err error

	arena []byte // texts made on the way: a stack, the deepest step's on top
	runes []rune
	bpe   bpeScratch
	best  []path
	spans []int
	moved []change
}

// piece is a stretch of the text on its way to the model. The reference keeps
// for every byte where it comes from; all that ever decides a token is whether
// a piece is at the very start of the input.
type piece struct {
	b      []byte
	origin bool // begins where the input begins
	zero   int  // if so: how many of its bytes come from the input's first code point
}

func wholePiece(b []byte) piece {
	_, size := utf8.DecodeRune(b)
	return piece{b: b, origin: true, zero: size}
}

// slice cuts a piece.
func (p piece) slice(start, end int) piece {
	q := piece{b: p.b[start:end], origin: p.origin && start < p.zero}
	if q.origin {
		q.zero = min(p.zero-start, len(q.b))
	}
	return q
}

// begin marks where a made text starts; since returns it.
func (e *encoder) begin() int { return len(e.arena) }

func (e *encoder) since(start int) []byte { return e.arena[start:len(e.arena):len(e.arena)] }

// appendMapped writes bytes in the alphabet of byte-level models, one code
// point for each.
func (e *encoder) appendMapped(b []byte) {
	for _, c := range b {
		e.arena = utf8.AppendRune(e.arena, byteRune(c))
	}
}

// byteRune is GPT-2's code point of a byte: itself where it prints, else one
// from U+0100 on.
func byteRune(c byte) rune {
	switch {
	case c <= ' ':
		return 0x100 + rune(c)
	case c >= 0x7F && c <= 0xA0:
		return 0x121 + rune(c) - 0x7F
	case c == 0xAD:
		return 0x143
	}
	return rune(c)
}

// runeByte is the byte of a code point of that alphabet.
func runeByte(r rune) (byte, bool) {
	switch {
	case r >= 0x100 && r <= 0x120:
		return byte(r - 0x100), true
	case r >= 0x121 && r <= 0x142:
		return byte(r - 0x121 + 0x7F), true
	case r == 0x143:
		return 0xAD, true
	case r > ' ' && r < 0x7F, r > 0xA0 && r <= 0xFF && r != 0xAD:
		return byte(r), true
	}
	return 0, false
}
