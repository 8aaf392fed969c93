package tokenizer

import (
	_ "embed" // for the tables below
	"strconv"
	"strings"
)

// What the reference library takes each code point for, as measured by
// testdata/unicode.py. The library mixes five Unicode versions and Go has a
// sixth, so no package of tables would agree with it.
//
//go:embed unicode.txt.gz
var unicodeText []byte

// Bits of a code point's class. The first 29 are the general categories that
// the regular expressions see.
const (
	catLu = 1 << iota
	catLl
	catLt
	catLm
	catLo
	catMn
	catMc
	catMe
	catNd
	catNl
	catNo
	catPc
	catPd
	catPs
	catPe
	catPi
	catPf
	catPo
	catSm
	catSc
	catSk
	catSo
	catZs
	catZl
	catZp
	catCc
	catCf
	catCo
	catCn
	isSpace      // \s, and what strips
	isWordAlone  // \w of a pattern, outside a class
	isWord       // \w of the built-in splitters and of single_word
	isNumeric    // Digits
	isPunct      // Punctuation, BertPreTokenizer
	isAccent     // BertNormalizer's strip_accents
	isControl    // BertNormalizer's clean_text
	isMark       // StripAccents
	isHan        // scripts
	isHiragana   //
	isKatakana   //
	isHangul     //
	isExtend     // grapheme clusters: joins the cluster before it
	isPrepend    // joins the cluster after it
	isBreak      // ends a cluster on both sides
	isPictograph // joins after a joiner
	isConsonant  // joins after a linker
	isLinker     //
	isWordInside // \w of a pattern, inside a class: without ², ³, ¹ and fractions
)

// tables are the measured facts; they are immutable once read.
type tables struct {
	page   [0x110000 >> 8]uint16
	class  []uint8 // by page and low byte: index into masks
	masks  []uint64
	lower  map[rune]string
	canon  map[rune]string // full canonical decomposition, Hangul apart
	compat map[rune]string // full compatibility decomposition where it differs
	order  map[rune]uint8  // combining class of marks
	pair   map[[2]rune]rune
	fold   map[rune][]rune // further code points a letter matches when case does not count
	active [4]bitset       // by form: code points a text must hold for the form to change it
}

type bitset []uint64

func (b bitset) has(r rune) bool {
	return int(r>>6) < len(b) && b[r>>6]>>(r&63)&1 != 0
}

func (b *bitset) add(r rune) {
	for int(r>>6) >= len(*b) {
		*b = append(*b, 0)
	}
	(*b)[r>>6] |= 1 << (r & 63)
}

// mask returns the bits of a code point.
func (t *tables) mask(r rune) uint64 {
	return t.masks[t.class[int(t.page[r>>8])<<8|int(r&0xFF)]]
}

func numbers(s string) ([]uint64, error) {
	var n []uint64
	for f := range strings.FieldsSeq(s) {
		v, err := strconv.ParseUint(f, 16, 64)
		if err != nil {
			return nil, err
		}
		n = append(n, v)
	}
	return n, nil
}

func (t *tables) add(kind string, n []uint64) {
	r := rune(n[0])
	text := func() string {
		var b strings.Builder
		for _, c := range n[1:] {
			b.WriteRune(rune(c))
		}
		return b.String()
	}
	switch kind {
	case "L":
		t.lower[r] = text()
	case "D":
		t.canon[r] = text()
	case "K":
		t.compat[r] = text()
	case "M":
		t.order[r] = uint8(n[1])
	case "P":
		t.pair[[2]rune{r, rune(n[1])}] = rune(n[2])
	case "F":
		t.fold[r] = append(t.fold[r], rune(n[1]))
	}
}

// pages shares equal pages of 256 classes.
func (t *tables) pages(flat []uint8) {
	seen := map[string]uint16{}
	for i := range t.page {
		p := flat[i<<8 : i<<8+256]
		at, ok := seen[string(p)]
		if !ok {
			at = uint16(len(t.class) >> 8)
			seen[string(p)] = at
			t.class = append(t.class, p...)
		}
		t.page[i] = at
	}
}

// form is one of the four Unicode normalization forms, over the code points
// the reference knows.
type form int

const (
	formC form = iota
	formD
	formKC
	formKD
)

const (
	hangulBase = 0xAC00
	hangulEnd  = 0xD7A4
	hangulL    = 0x1100
	hangulV    = 0x1161
	hangulT    = 0x11A7
	hangulVs   = 21
	hangulTs   = 28
)
