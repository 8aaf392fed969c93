package tokenizer

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// byteToken is the name of a byte in vocabularies that can fall back to bytes.
func byteToken(b int) string { return fmt.Sprintf("<0x%02X>", b) }

// byteIDs returns the ids of the 256 byte tokens, -1 where there is none.
func (v *vocab) byteIDs() (ids [256]int32) {
	for b := range ids {
		ids[b] = -1
		if id, ok := v.ids[byteToken(b)]; ok {
			ids[b] = id
		}
	}
	return ids
}

// fallBack appends the byte tokens of a text, if there is one for each byte.
func fallBack(dst []int32, bytes *[256]int32, s []byte) ([]int32, bool) {
	n := len(dst)
	for _, b := range s {
		if bytes[b] < 0 {
			return dst[:n], false
		}
		dst = append(dst, bytes[b])
	}
	return dst, true
}

// wordPiece takes the longest known beginning of a word, then of what is left
// with a prefix before it.
type wordPiece struct {
	v       vocab
	unknown string
	prefix  string
	limit   int // code points of a word
	longest int // bytes of a token
}

func (m *wordPiece) vocab() *vocab { return &m.v }

func (m *wordPiece) tokenize(e *encoder, word []byte) error {
	if utf8.RuneCount(word) > m.limit {
		return m.miss(e)
	}
	first := len(e.ids)
	mark := e.begin()
	for start := 0; start < len(word); {
		e.arena = e.arena[:mark]
		if start > 0 {
			e.arena = append(e.arena, m.prefix...)
		}
		lead := len(e.arena)
		end := min(len(word), start+m.longest)
		for end < len(word) && !utf8.RuneStart(word[end]) {
			end--
		}
		e.arena = append(e.arena, word[start:end]...)
		id, ok := int32(0), false
		for end > start {
			if id, ok = m.v.ids[string(e.arena[mark:lead+end-start])]; ok {
				break
			}
			for end--; end > start && !utf8.RuneStart(word[end]); end-- {
			}
		}
		if !ok {
			e.arena, e.ids = e.arena[:mark], e.ids[:first]
			return m.miss(e)
		}
		e.ids = append(e.ids, id)
		start = end
	}
	e.arena = e.arena[:mark]
	return nil
}

func (m *wordPiece) miss(e *encoder) error { return e.unknown(&m.v, m.unknown) }

// unknown appends the id of the token for unknown words.
func (e *encoder) unknown(v *vocab, token string) error {
	id, ok := v.ids[token]
	if !ok {
		return fmt.Errorf("the text has a word that the vocabulary lacks, and the unknown token %q is not in it either", token)
	}
	e.ids = append(e.ids, id)
	return nil
}

// wordLevel knows whole words.
type wordLevel struct {
	v       vocab
	unknown string
}

func (m *wordLevel) vocab() *vocab { return &m.v }

func (m *wordLevel) tokenize(e *encoder, word []byte) error {
	if id, ok := m.v.ids[string(word)]; ok {
		e.ids = append(e.ids, id)
		return nil
	}
	return e.unknown(&m.v, m.unknown)
}

// scores reads a Unigram vocabulary, [["token", score], ...].
func (v *vocab) scores(s *scan) ([]float64, error) {
	var scores []float64
	err := s.array(func() error {
		if !s.eat('[') {
			return s.fail()
		}
		token, err := s.text()
		if err != nil {
			return err
		}
		v.add(token, int32(len(scores)))
		if !s.eat(',') {
			return s.fail()
		}
		n, err := s.number()
		if err != nil {
			return err
		}
		score, err := strconv.ParseFloat(string(n), 64)
		if err != nil {
			return err
		}
		scores = append(scores, score)
		if !s.eat(']') || len(scores) > maxID {
			return s.fail()
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("vocab: %w", err)
	}
	v.seal()
	v.size = len(scores)
	return scores, nil
}
