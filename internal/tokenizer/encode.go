package tokenizer

import "unicode/utf8"

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
