package tokenizer

import (
	"bytes"
	"fmt"
	"math"
	"unicode/utf8"
)

// bpe merges the code points of a word pair by pair, the earliest merge of the
// file first.
type bpe struct {
	v         vocab
	merges    mergeTable
	unknown   *string
	prefix    string // of a symbol that does not begin the word
	suffix    string // of the symbol that ends it
	fuse      bool   // a run of unknown code points is one token
	whole     bool   // a word that is a token is not merged (ignore_merges)
	fallsBack bool
	bytes     [256]int32
	narrow    [0x144]int32 // ids of the single code points of byte-level words, -1: none
	cut       []byte       // words may be cut before this mark, see build
}

func (a merge) before(b merge) bool {
	return a.rank < b.rank || a.rank == b.rank && a.pos < b.pos
}

// mergeTable finds the merge of two ids: open addressing, keys and values side
// by side.
type mergeTable struct {
	slots []mergeSlot
	used  int
}

type mergeSlot struct {
	key   uint64 // left<<32 | right, plus one
	value uint64 // rank<<32 | id
}

const noMerge = math.MaxUint64

func (t *mergeTable) slot(key uint64) *mergeSlot {
	mask := uint64(len(t.slots) - 1)
	h := key * 0x9E3779B97F4A7C15
	for i := (h ^ h>>32) & mask; ; i = (i + 1) & mask {
		if s := &t.slots[i]; s.key == key || s.key == 0 {
			return s
		}
	}
}

// get returns rank and id of a pair, noMerge where there is none.
func (t *mergeTable) get(a, b int32) uint64 {
	if s := t.slot(uint64(a)<<32 | uint64(uint32(b)) + 1); s.key != 0 {
		return s.value
	}
	return noMerge
}

// put notes a merge; a pair that comes twice has its later rank.
func (t *mergeTable) put(a, b int32, rank int, id int32) {
	if 2*t.used >= len(t.slots) {
		old := t.slots
		t.slots = make([]mergeSlot, max(64, 2*len(old)))
		for _, s := range old {
			if s.key != 0 {
				*t.slot(s.key) = s
			}
		}
	}
	key := uint64(a)<<32 | uint64(uint32(b)) + 1
	s := t.slot(key)
	if s.key == 0 {
		t.used++
	}
	s.key, s.value = key, uint64(rank)<<32|uint64(uint32(id))
}

func (m *bpe) vocab() *vocab { return &m.v }

// readMerges reads ["a b", ...] or [["a", "b"], ...].
func (m *bpe) readMerges(data []byte) error {
	guess := 64
	for guess < len(data)/8 {
		guess *= 2
	}
	m.merges.slots = make([]mergeSlot, guess)
	s := &scan{b: data}
	var pair, second []byte
	rank := 0
	err := s.array(func() error {
		if s.peek() == '"' {
			text, err := s.text()
			if err != nil {
				return err
			}
			if bytes.HasPrefix(text, []byte("#version")) {
				return nil
			}
			a, b, ok := bytes.Cut(text, []byte(" "))
			if !ok || bytes.IndexByte(b, ' ') >= 0 {
				return fmt.Errorf("%q is not two tokens", text)
			}
			pair, second = append(pair[:0], a...), append(second[:0], b...)
		} else if err := s.pair(&pair, &second); err != nil {
			return err
		}
		rank++
		return m.addMerge(pair, second, rank-1)
	})
	if err != nil {
		return fmt.Errorf("merges: %w", err)
	}
	return nil
}

// pair reads ["a", "b"].
func (s *scan) pair(a, b *[]byte) error {
	if !s.eat('[') {
		return s.fail()
	}
	text, err := s.text()
	if err != nil {
		return err
	}
	*a = append((*a)[:0], text...)
	if !s.eat(',') {
		return s.fail()
	}
	if text, err = s.text(); err != nil {
		return err
	}
	*b = append((*b)[:0], text...)
	if !s.eat(']') {
		return s.fail()
	}
	return nil
}

func (m *bpe) addMerge(a, b []byte, rank int) error {
	left, ok := m.v.ids[string(a)]
	if !ok {
		return fmt.Errorf("%q is not in the vocabulary", a)
	}
	right, ok := m.v.ids[string(b)]
	if !ok {
		return fmt.Errorf("%q is not in the vocabulary", b)
	}
	if len(b) < len(m.prefix) {
		return fmt.Errorf("%q is shorter than continuing_subword_prefix", b)
	}
	n := len(a)
	a = append(a, b[len(m.prefix):]...)
	id, ok := m.v.ids[string(a)]
	if !ok {
		return fmt.Errorf("%q, of %q and %q, is not in the vocabulary", a, a[:n], b)
	}
	m.merges.put(left, right, rank, id)
	return nil
}

// build prepares what tokenize looks up.
func (m *bpe) build() {
	m.bytes = m.v.byteIDs()
	for r := range m.narrow {
		m.narrow[r] = -1
		if id, ok := m.v.ids[string(rune(r))]; ok {
			m.narrow[r] = id
		}
	}
	// Texts of SentencePiece models come unsplit. Where no token goes on to
	// a mark after something else, no merge crosses the place before the
	// mark, so the text may be cut there: the same ids, in words that repeat.
	mark := []byte("▁")
	if _, ok := m.v.ids[string(mark)]; !ok || m.whole || m.prefix != "" || m.suffix != "" {
		return
	}
	for token := range m.v.ids {
		b := []byte(token)
		for len(b) > 0 && bytes.HasPrefix(b, mark) {
			b = b[len(mark):]
		}
		if bytes.Contains(b, mark) {
			return
		}
	}
	m.cut = mark
}

func (m *bpe) tokenize(e *encoder, word []byte) error {
	if m.whole {
		if id, ok := m.v.ids[string(word)]; ok {
			e.ids = append(e.ids, id)
			return nil
		}
	}
	if err := m.symbols(e, word); err != nil {
		return err
	}
	if len(e.bpe.symbols) <= 48 {
		m.mergeShort(e)
	} else {
		m.mergeLong(e)
	}
	return nil
}

// symbols makes the first symbols of a word: one for each code point, byte
// tokens or the unknown token for those the vocabulary lacks.
func (m *bpe) symbols(e *encoder, word []byte) error {
	sym := e.bpe.symbols[:0]
	add := func(id int32) { sym = append(sym, symbol{id: id}) }
	pending := int32(-1) // an unknown token not yet added
	flush := func() {
		if pending >= 0 {
			add(pending)
			pending = -1
		}
	}
	for i := 0; i < len(word); {
		r, size := utf8.DecodeRune(word[i:])
		text := word[i : i+size]
		id, ok := m.single(e, r, text, i == 0, i+size == len(word))
		i += size
		if ok {
			flush()
			add(id)
			continue
		}
		if m.fallsBack {
			// An unknown token that is pending stays so, as in the reference.
			ids := e.runes[:0]
			for _, b := range m.affixed(e, text, i == size, i == len(word)) {
				ids = append(ids, m.bytes[b])
			}
			e.runes = ids
			if !containsNegative(ids) {
				for _, id := range ids {
					add(id)
				}
				continue
			}
		}
		if m.unknown == nil {
			continue
		}
		id, ok = m.v.ids[*m.unknown]
		if !ok {
			return fmt.Errorf("the vocabulary lacks %q, and the unknown token %q is not in it either", text, *m.unknown)
		}
		if !m.fuse {
			flush()
		}
		pending = id
	}
	flush()
	e.bpe.symbols = sym
	return nil
}

func containsNegative(ids []int32) bool {
	for _, id := range ids {
		if id < 0 {
			return true
		}
	}
	return false
}

// single returns the id of one code point of a word.
func (m *bpe) single(e *encoder, r rune, text []byte, first, last bool) (int32, bool) {
	if m.prefix == "" && m.suffix == "" && int(r) < len(m.narrow) {
		id := m.narrow[r]
		return id, id >= 0
	}
	id, ok := m.v.ids[string(m.affixed(e, text, first, last))]
	return id, ok
}

// affixed is a code point with the prefix or suffix of its place.
func (m *bpe) affixed(e *encoder, text []byte, first, last bool) []byte {
	if (first || m.prefix == "") && (!last || m.suffix == "") {
		return text
	}
	b := e.bpe.text[:0]
	if !first {
		b = append(b, m.prefix...)
	}
	b = append(b, text...)
	if last {
		b = append(b, m.suffix...)
	}
	e.bpe.text = b
	return b
}

// mergeShort merges by looking through all pairs each time.
func (m *bpe) mergeShort(e *encoder) {
	sym, ranks := e.bpe.symbols, e.bpe.ranks[:0]
	for i := range sym {
		rank := uint64(noMerge)
		if i+1 < len(sym) {
			rank = m.merges.get(sym[i].id, sym[i+1].id)
		}
		ranks = append(ranks, rank)
	}
	e.bpe.ranks = ranks
	for {
		at, low := -1, uint64(noMerge)
		for i, rank := range ranks {
			if rank < low {
				at, low = i, rank
			}
		}
		if at < 0 {
			break
		}
		sym[at].id = int32(uint32(low))
		sym = append(sym[:at+1], sym[at+2:]...)
		ranks = append(ranks[:at+1], ranks[at+2:]...)
		ranks[at] = noMerge
		if at+1 < len(sym) {
			ranks[at] = m.merges.get(sym[at].id, sym[at+1].id)
		}
		if at > 0 {
			ranks[at-1] = m.merges.get(sym[at-1].id, sym[at].id)
		}
	}
	for _, s := range sym {
		e.ids = append(e.ids, s.id)
	}
}

// mergeLong merges by a heap of candidates; one that a merge next to it made
// stale is passed over.
func (m *bpe) mergeLong(e *encoder) {
	sym, heap := e.bpe.symbols, e.bpe.heap[:0]
	for i := range sym {
		sym[i].prev, sym[i].next = int32(i)-1, int32(i)+1
	}
	last := &sym[len(sym)-1]
	last.next = -1
	offer := func(pos int32) {
		if pos < 0 || sym[pos].next < 0 {
			return
		}
		if v := m.merges.get(sym[pos].id, sym[sym[pos].next].id); v != noMerge {
			heap = push(heap, merge{rank: uint32(v >> 32), pos: pos, id: int32(uint32(v))})
		}
	}
	for i := range sym {
		offer(int32(i))
	}
	for len(heap) > 0 {
		top := heap[0]
		heap = pop(heap)
		s := &sym[top.pos]
		if s.dead || s.next < 0 {
			continue
		}
		right := &sym[s.next]
		if v := m.merges.get(s.id, right.id); v == noMerge || int32(uint32(v)) != top.id {
			continue
		}
		s.id, s.next, right.dead = top.id, right.next, true
		if s.next >= 0 {
			sym[s.next].prev = top.pos
		}
		offer(s.prev)
		offer(top.pos)
	}
	e.bpe.heap = heap
	for _, s := range sym {
		if !s.dead {
			e.ids = append(e.ids, s.id)
		}
	}
}

func push(h []merge, m merge) []merge {
	h = append(h, m)
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h[i].before(h[up]) {
			break
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
	return h
}

func pop(h []merge) []merge {
	h[0] = h[len(h)-1]
	h = h[:len(h)-1]
	for i := 0; ; {
		down := 2*i + 1
		if down >= len(h) {
			return h
		}
		if down+1 < len(h) && h[down+1].before(h[down]) {
			down++
		}
		if !h[down].before(h[i]) {
			return h
		}
		h[i], h[down] = h[down], h[i]
		i = down
	}
}
