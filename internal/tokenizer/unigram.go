package tokenizer

import (
	"errors"
	"unicode/utf8"
)

// unknownPenalty is how much worse than the worst token an unknown code point
// scores.
const unknownPenalty = 10

// unigram cuts a word into the tokens of the highest summed score.
type unigram struct {
	v         vocab
	scores    []float64
	trie      *trie
	unknown   int32 // -1: none
	worst     float64
	fallsBack bool
	bytes     [256]int32
}

func (m *unigram) vocab() *vocab { return &m.v }

func (m *unigram) build() {
	m.trie = newTrie(2 * len(m.scores))
	m.worst = 0
	for id, score := range m.scores {
		if id == 0 || score < m.worst {
			m.worst = score
		}
		if s := m.v.tokens[id]; s != "" {
			m.trie.insert(s, int32(id))
		}
	}
	m.bytes = m.v.byteIDs()
}

var errNoUnknown = errors.New("the text has a code point that the vocabulary lacks, and the file names no unknown token (unk_id)")

func (m *unigram) tokenize(e *encoder, word []byte) error {
	best, err := m.best(e.best[:0], word)
	e.best = best
	if err != nil {
		return err
	}
	// Walk back; a run of unknown code points is one piece.
	spans := e.spans[:0]
	for end := len(word); end > 0; {
		start := int(best[end].from)
		if best[end].id == m.unknown {
			for start > 0 && best[start].id == m.unknown {
				start = int(best[start].from)
			}
			spans = append(spans, start, end, -1)
		} else {
			spans = append(spans, start, end, int(best[end].id))
		}
		end = start
	}
	e.spans = spans
	for i := len(spans) - 3; i >= 0; i -= 3 {
		if err := m.emit(e, word[spans[i]:spans[i+1]], int32(spans[i+2])); err != nil {
			return err
		}
	}
	return nil
}

// best fills in, for each place in the word, the best way there.
func (m *unigram) best(best []path, word []byte) ([]path, error) {
	for range len(word) + 1 {
		best = append(best, path{from: -1})
	}
	reach := func(end int, start int, score float64, id int32) {
		if b := &best[end]; b.from < 0 || score > b.score {
			*b = path{score: score, from: int32(start), id: id}
		}
	}
	for start := 0; start < len(word); {
		_, size := utf8.DecodeRune(word[start:])
		here, single := best[start].score, false
		for node, i := int32(0), start; i < len(word); i++ {
			if node = m.trie.step(node, word[i]); node == 0 {
				break
			}
			if id := m.trie.value[node]; id >= 0 {
				reach(i+1, start, here+m.scores[id], id)
				single = single || i+1 == start+size
			}
		}
		if !single {
			if m.unknown < 0 {
				return best, errNoUnknown
			}
			reach(start+size, start, here+m.worst-unknownPenalty, m.unknown)
		}
		start += size
	}
	return best, nil
}

// emit appends a piece's id; one that is unknown may still be a token when
// taken as a whole, or fall back to its bytes.
func (m *unigram) emit(e *encoder, s []byte, id int32) error {
	if id < 0 {
		known := false
		if id, known = m.v.ids[string(s)]; !known {
			if m.fallsBack {
				var ok bool
				if e.ids, ok = fallBack(e.ids, &m.bytes, s); ok {
					return nil
				}
			}
			id = m.unknown
		}
	}
	e.ids = append(e.ids, id)
	return nil
}
