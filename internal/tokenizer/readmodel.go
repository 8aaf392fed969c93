package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
)

// modelFields are the small fields of a model.
type modelFields struct {
	Type         string   `json:"type"`
	Dropout      *float64 `json:"dropout"`
	UnkToken     *string  `json:"unk_token"`
	UnkID        *int32   `json:"unk_id"`
	Prefix       *string  `json:"continuing_subword_prefix"`
	Suffix       *string  `json:"end_of_word_suffix"`
	FuseUnk      bool     `json:"fuse_unk"`
	ByteFallback bool     `json:"byte_fallback"`
	IgnoreMerges bool     `json:"ignore_merges"`
	MaxChars     *int     `json:"max_input_chars_per_word"`
}

// readModel reads the model section. A field that no model has is an error: it
// would change the tokens.
func (t *Tokenizer) readModel(s *scan) error {
	var (
		f              modelFields
		v              vocab
		scores         []float64
		list           bool
		merges         []byte
		hasVocab, some bool
	)
	small := []byte{'{'}
	err := s.object(func(key []byte) error {
		switch string(key) {
		case "vocab":
			hasVocab = true
			if list = s.peek() == '['; list {
				var err error
				scores, err = v.scores(s)
				return err
			}
			return v.object(s)
		case "merges":
			var err error
			merges, err = s.raw()
			return err
		}
		name, err := json.Marshal(string(key))
		if err != nil {
			return err
		}
		raw, err := s.raw()
		if some {
			small = append(small, ',')
		}
		some = true
		small = append(append(append(small, name...), ':'), raw...)
		return err
	})
	if err == nil {
		err = strict(append(small, '}'), &f)
	}
	if err == nil && !hasVocab {
		err = errors.New("vocab is missing")
	}
	if err == nil {
		t.model, err = newModel(f, v, scores, list, merges)
	}
	if err != nil {
		return fmt.Errorf("model: %w", err)
	}
	return nil
}

func newModel(f modelFields, v vocab, scores []float64, list bool, merges []byte) (model, error) {
	switch kind := f.kind(list, merges != nil); kind {
	case "BPE":
		if merges == nil || list {
			return nil, errors.New("type BPE needs vocab as an object, and merges")
		}
		return newBPE(f, v, merges)
	case "Unigram":
		return newUnigram(f, v, scores, list)
	case "WordPiece":
		if list || f.UnkToken == nil || f.Prefix == nil || f.MaxChars == nil {
			return nil, errors.New("type WordPiece needs vocab, unk_token, continuing_subword_prefix and max_input_chars_per_word")
		}
		m := &wordPiece{v: v, unknown: *f.UnkToken, prefix: *f.Prefix, limit: *f.MaxChars}
		for token := range v.ids {
			m.longest = max(m.longest, len(token))
		}
		return m, nil
	case "WordLevel":
		if list || f.UnkToken == nil {
			return nil, errors.New("type WordLevel needs vocab and unk_token")
		}
		return &wordLevel{v: v, unknown: *f.UnkToken}, nil
	default:
		return nil, fmt.Errorf("type %q is not supported", kind)
	}
}

// kind is the model's type; files of the first versions do not name it.
func (f modelFields) kind(list, merges bool) string {
	switch {
	case f.Type != "":
		return f.Type
	case merges:
		return "BPE"
	case list:
		return "Unigram"
	case f.MaxChars != nil:
		return "WordPiece"
	}
	return "WordLevel"
}

func newBPE(f modelFields, v vocab, merges []byte) (*bpe, error) {
	if f.Dropout != nil && *f.Dropout != 0 {
		return nil, fmt.Errorf("dropout %v is not supported: the tokens of a text would be random", *f.Dropout)
	}
	m := &bpe{v: v, unknown: f.UnkToken, fuse: f.FuseUnk, whole: f.IgnoreMerges, fallsBack: f.ByteFallback}
	if f.Prefix != nil {
		m.prefix = *f.Prefix
	}
	if f.Suffix != nil {
		m.suffix = *f.Suffix
	}
	if err := m.readMerges(merges); err != nil {
		return nil, err
	}
	m.build()
	return m, nil
}

func newUnigram(f modelFields, v vocab, scores []float64, list bool) (*unigram, error) {
	if !list {
		return nil, errors.New("type Unigram needs vocab as a list")
	}
	m := &unigram{v: v, scores: scores, unknown: -1, fallsBack: f.ByteFallback}
	if f.UnkID != nil {
		if *f.UnkID < 0 || int(*f.UnkID) >= len(scores) {
			return nil, fmt.Errorf("unk_id %d is not in the vocabulary of %d", *f.UnkID, len(scores))
		}
		m.unknown = *f.UnkID
	}
	m.build()
	return m, nil
}
