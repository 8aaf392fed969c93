package tokenizer

import "fmt"

// vocab is a model's tokens and their ids.
type vocab struct {
	ids    map[string]int32
	tokens []string // by id; "" may also be a hole
	known  []bool   // by id
	size   int      // entries: where the ids of added tokens go on
	text   []byte   // what tokens are cut from, until they are sealed
	spans  []span
}

type span struct {
	start, end int
	id         int32
}

// add notes a token; seal makes it findable.
func (v *vocab) add(token []byte, id int32) {
	start := len(v.text)
	v.text = append(v.text, token...)
	v.spans = append(v.spans, span{start, len(v.text), id})
}

// seal builds the tables from what was added: one string for all tokens, and
// of two entries with one key the later.
func (v *vocab) seal() {
	text := string(v.text)
	size := int32(0)
	for _, s := range v.spans {
		size = max(size, s.id+1)
	}
	v.ids = make(map[string]int32, len(v.spans))
	v.tokens, v.known = make([]string, size), make([]bool, size)
	for _, s := range v.spans {
		token := text[s.start:s.end]
		v.ids[token] = s.id
		v.tokens[s.id], v.known[s.id] = token, true
	}
	v.size = len(v.ids)
	v.text, v.spans = nil, nil
}

// token returns the text of an id.
func (v *vocab) token(id int32) (string, bool) {
	if id < 0 || int(id) >= len(v.tokens) || !v.known[id] {
		return "", false
	}
	return v.tokens[id], true
}

// object reads a vocabulary written as {"token": id}.
func (v *vocab) object(s *scan) error {
	err := s.object(func(key []byte) error {
		// The key may lie in the scan's scratch, which the id does not touch.
		id, err := s.id()
		v.add(key, id)
		return err
	})
	if err != nil {
		return fmt.Errorf("vocab: %w", err)
	}
	v.seal()
	return nil
}
