package tokenizer

import "unicode/utf8"

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

func (t *Tokenizer) encoder() *encoder {
	e := t.pool.Get().(*encoder)
	e.ids, e.arena, e.err = e.ids[:0], e.arena[:0], nil
	return e
}

// release keeps an encoder for the next text, unless it has grown out of
// proportion.
func (t *Tokenizer) release(e *encoder) {
	if cap(e.arena) < 1<<22 && cap(e.ids) < 1<<20 {
		t.pool.Put(e)
	}
}

// begin marks where a made text starts; since returns it.
func (e *encoder) begin() int { return len(e.arena) }

func (e *encoder) since(start int) []byte { return e.arena[start:len(e.arena):len(e.arena)] }

// load copies the text, each byte that is not UTF-8 as U+FFFD.
func (e *encoder) load(text string) []byte {
	start := e.begin()
	if utf8.ValidString(text) {
		e.arena = append(e.arena, text...)
	} else {
		for _, r := range text {
			e.arena = utf8.AppendRune(e.arena, r)
		}
	}
	return e.since(start)
}

// run appends the ids of a text: added tokens as they stand, what is between
// them normalized, cut at the added tokens that are normalized too, split, and
// given to the model word by word.
func (e *encoder) run(text string) error {
	raw := segments{set: e.t.added.raw, b: e.load(text)}
	top := len(e.arena)
	for {
		id, start, end, ok := raw.next()
		if !ok || e.err != nil {
			return e.err
		}
		if id >= 0 {
			e.ids = append(e.ids, id)
			continue
		}
		p := piece{b: raw.b[start:end]}
		if start == 0 {
			p = wholePiece(p.b)
		}
		e.segment(e.normalize(p))
		e.arena = e.arena[:top]
	}
}

func (e *encoder) normalize(p piece) piece {
	for _, n := range e.t.norm {
		p = n.normalize(e, p)
	}
	return p
}

func (e *encoder) segment(p piece) {
	top := len(e.arena)
	normal := segments{set: e.t.added.normal, b: p.b}
	for {
		id, start, end, ok := normal.next()
		switch {
		case !ok:
			return
		case id >= 0:
			e.ids = append(e.ids, id)
		default:
			e.split(0, p.slice(start, end))
			e.arena = e.arena[:top]
		}
	}
}

// split hands a piece to step i of the splitters, or to the model behind the
// last.
func (e *encoder) split(i int, p piece) {
	switch {
	case len(p.b) == 0 || e.err != nil:
	case i < len(e.t.pre):
		e.t.pre[i].split(e, i+1, p)
	default:
		e.word(p.b)
	}
}

// word appends the ids of a word, from the cache where it is there.
func (e *encoder) word(b []byte) {
	if len(b) > maxCached {
		e.err = e.model(b)
		return
	}
	slot, hit := e.t.cache.find(b)
	if hit != nil {
		e.ids = append(e.ids, hit.ids...)
		return
	}
	start := len(e.ids)
	if e.err = e.model(b); e.err == nil {
		e.t.cache.put(slot, b, e.ids[start:])
	}
}

func (e *encoder) model(b []byte) error {
	if !e.t.bytes {
		return e.t.model.tokenize(e, b)
	}
	start := e.begin()
	e.appendMapped(b)
	err := e.t.model.tokenize(e, e.since(start))
	e.arena = e.arena[:start]
	return err
}

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
