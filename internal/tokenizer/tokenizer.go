// Package tokenizer reads a Hugging Face tokenizer.json and turns text into
// exactly the tokens the reference library gives, and back.
//
//	t, err := tokenizer.Open("/models/llama-3")
//	ids, err := t.Encode("Hello, world", true)
//
// Invariants: what is not known to mean the same as in the reference is an
// error of Open that names it, never a guess; code points have the classes,
// cases and decompositions the reference gives them (testdata/unicode.py
// measures them); a text's tokens depend on nothing but the file and the text.
//
// Deliberately absent: pairs of texts, offsets, truncation and padding (a file
// that asks for them is read as if it did not), dropout, and the decoders and
// splitters that no served language model uses. A byte that is not UTF-8
// counts as U+FFFD, as encoding/json sends it.
package tokenizer

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"perflab/internal/input"
)

// mostFile is the size of the file that is read. The largest that are published,
// of a vocabulary of 260,000 tokens, have 35 MB.
const mostFile = 128 << 20

// Open reads a tokenizer.json, or the one in a directory.
func Open(path string) (*Tokenizer, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "tokenizer.json")
	}
	data, err := input.File(path, mostFile)
	if err != nil {
		return nil, fmt.Errorf("read tokenizer: %w", err)
	}
	t, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("read tokenizer %s: %w", path, err)
	}
	t.name = filepath.Base(path) + t.name[len(anyName):]
	return t, nil
}

const anyName = "tokenizer"

// Parse reads the text of a tokenizer.json.
func Parse(data []byte) (*Tokenizer, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("not UTF-8 text; a tokenizer.json is expected")
	}
	sum := sha256.Sum256(data)
	t := &Tokenizer{
		name:  anyName + " sha256:" + hex.EncodeToString(sum[:6]),
		uni:   unicodeTables(),
		cache: newCache(),
	}
	t.pool.New = func() any { return &encoder{t: t} }
	if err := t.read(data); err != nil {
		return nil, err
	}
	return t, nil
}

// Name returns the file's name and the start of its SHA-256.
func (t *Tokenizer) Name() string { return t.name }

// VocabSize returns the number of tokens without added ones.
func (t *Tokenizer) VocabSize() int { return len(t.model.vocab().ids) }

// Encode returns the ids of a text; special adds what the file's template puts
// around one.
func (t *Tokenizer) Encode(text string, special bool) ([]int32, error) {
	e := t.encoder()
	defer t.release(e)
	if special {
		e.ids = append(e.ids, t.before...)
	}
	if err := e.run(text); err != nil {
		return nil, err
	}
	if special {
		e.ids = append(e.ids, t.after...)
	}
	return append(make([]int32, 0, len(e.ids)), e.ids...), nil
}

// Count returns the number of ids of a text without the template's, -1 where
// the text cannot be encoded.
func (t *Tokenizer) Count(text string) int {
	e := t.encoder()
	defer t.release(e)
	if err := e.run(text); err != nil {
		return -1
	}
	return len(e.ids)
}

// Decode returns the text of ids, special tokens and unknown ids left out.
func (t *Tokenizer) Decode(ids []int32) (string, error) {
	tokens := make([]string, 0, len(ids))
	for _, id := range ids {
		s, ok := t.added.token(id)
		if !ok {
			s, ok = t.model.vocab().token(id)
		}
		if ok && !t.added.special[s] {
			tokens = append(tokens, s)
		}
	}
	return t.join(tokens), nil
}

// Ordinary returns the ids of the tokens that are not special, ascending.
func (t *Tokenizer) Ordinary() []int32 {
	var ids []int32
	v := t.model.vocab()
	for id, known := range v.known {
		if known && !t.added.special[v.tokens[id]] {
			ids = append(ids, int32(id))
		}
	}
	for id, k := range t.added.byID {
		if _, inModel := v.token(id); !inModel && !k.Special {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
