package tokenizer

import (
	"fmt"
	"unicode/utf8"
)

// addedToken is a token beside the model's vocabulary, found in a text before
// anything else.
type addedToken struct {
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

// added are all of them.
type added struct {
	ids     map[string]int32
	byID    map[int32]addedToken
	shown   map[int32]string // what a token decodes from, where it is not its content
	special map[string]bool
	raw     *tokenSet // found in the text as it came
	normal  *tokenSet // found in the normalized text
}

// tokenSet finds the leftmost longest of some tokens.
type tokenSet struct {
	trie  *trie
	first [256]bool
	rules map[int32]addedToken
	uni   *tables
}

func newTokenSet(uni *tables) *tokenSet {
	return &tokenSet{trie: newTrie(64), rules: map[int32]addedToken{}, uni: uni}
}

func (s *tokenSet) add(text string, id int32, k addedToken) error {
	node := int32(0)
	for i := range len(text) {
		if node = s.trie.step(node, text[i]); node == 0 {
			break
		}
	}
	if text == "" || node != 0 && s.trie.value[node] >= 0 {
		return fmt.Errorf("added_tokens: the token %q cannot be told from another once it is normalized", k.Content)
	}
	s.trie.insert(text, id)
	s.first[text[0]] = true
	s.rules[id] = k
	return nil
}

// find returns the first token at or after from; id -1: there is none.
func (s *tokenSet) find(b []byte, from int) (id int32, start, end int) {
	for i := from; i < len(b); i++ {
		if !s.first[b[i]] {
			continue
		}
		id, end := int32(-1), 0
		for node, j := int32(0), i; j < len(b); j++ {
			if node = s.trie.step(node, b[j]); node == 0 {
				break
			}
			if v := s.trie.value[node]; v >= 0 {
				id, end = v, j+1
			}
		}
		if id >= 0 {
			return id, i, end
		}
	}
	return -1, 0, 0
}

// segments walks a text cut at a set's tokens.
type segments struct {
	set    *tokenSet
	b      []byte
	at     int   // where to look on
	done   int   // what is before was given out
	token  int32 // found, to be given out behind the text before it
	stop   int   // where that token ends
	queued bool
}

// next returns the next stretch of the text and the token it is, -1 for text.
func (s *segments) next() (id int32, start, end int, ok bool) {
	if s.queued {
		s.queued = false
		start, s.done = s.done, s.stop
		return s.token, start, s.stop, true
	}
	for {
		id, start, end := s.set.find(s.b, s.at)
		if id < 0 {
			break
		}
		s.at = end
		k := s.set.rules[id]
		if k.SingleWord && !s.set.alone(s.b, start, end) {
			continue
		}
		if k.LStrip {
			start = max(s.set.spaceBefore(s.b, start), s.done)
		}
		if k.RStrip {
			end = s.set.spaceAfter(s.b, end)
		}
		if s.done < start {
			text := s.done
			s.token, s.stop, s.queued, s.done = id, end, true, start
			return -1, text, start, true
		}
		s.done = end
		return id, start, end, true
	}
	if s.done < len(s.b) {
		start, s.done = s.done, len(s.b)
		s.at = len(s.b)
		return -1, start, s.done, true
	}
	return -1, 0, 0, false
}

func (s *tokenSet) alone(b []byte, start, end int) bool {
	before, _ := utf8.DecodeLastRune(b[:start])
	after, _ := utf8.DecodeRune(b[end:])
	return (start == 0 || s.uni.mask(before)&isWord == 0) && (end == len(b) || s.uni.mask(after)&isWord == 0)
}

func (s *tokenSet) spaceBefore(b []byte, i int) int {
	for i > 0 {
		r, size := utf8.DecodeLastRune(b[:i])
		if s.uni.mask(r)&isSpace == 0 {
			break
		}
		i -= size
	}
	return i
}

func (s *tokenSet) spaceAfter(b []byte, i int) int {
	for i < len(b) {
		r, size := utf8.DecodeRune(b[i:])
		if s.uni.mask(r)&isSpace == 0 {
			break
		}
		i += size
	}
	return i
}
