package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// read reads a whole file. The model comes first, since everything else asks
// its vocabulary.
func (t *Tokenizer) read(data []byte) error {
	sections := map[string][]byte{}
	s := &scan{b: data}
	err := s.object(func(key []byte) error {
		name := string(key)
		if name == "model" {
			return t.readModel(s)
		}
		raw, err := s.raw()
		sections[name] = raw
		return err
	})
	if err == nil && s.peek() != 0 {
		err = s.fail()
	}
	if err != nil {
		return err
	}
	if v, ok := sections["version"]; ok && string(v) != `"1.0"` {
		return fmt.Errorf("version %s is not supported, only \"1.0\" is", v)
	}
	if t.model == nil {
		return errors.New("no model; a tokenizer.json of the Hugging Face library is expected")
	}
	for _, step := range []struct {
		name string
		use  func(part) error
	}{
		{"normalizer", t.useNormalizer},
		{"pre_tokenizer", t.usePreTokenizer},
		{"post_processor", t.useProcessor},
		{"decoder", t.useDecoder},
	} {
		if err := useSection(sections[step.name], step.use); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	if len(t.decode) == 0 && isNull(sections["decoder"]) {
		t.joiner = " "
	}
	t.finishSplitters()
	return t.readAdded(sections["added_tokens"])
}

func useSection(raw []byte, use func(part) error) error {
	if isNull(raw) {
		return nil
	}
	var p part
	if err := json.Unmarshal(raw, &p); err != nil {
		return err
	}
	return use(p)
}

func (t *Tokenizer) useNormalizer(p part) error {
	add := func(n normalizer) { t.norm = append(t.norm, n) }
	switch p.Type {
	case "Sequence":
		for _, q := range p.Normalizers {
			if err := t.useNormalizer(q); err != nil {
				return err
			}
		}
	case "NFC":
		add(formC)
	case "NFD":
		add(formD)
	case "NFKC":
		add(formKC)
	case "NFKD":
		add(formKD)
	case "Lowercase":
		add(lowercase{})
	case "StripAccents":
		add(drop(isMark))
	case "Strip":
		add(strip{p.StripLeft, p.StripRight})
	case "Prepend":
		add(prepend(p.Prepend))
	case "Nmt":
		add(nmt{})
	case "ByteLevel":
		add(byteLevel{})
	case "Replace":
		n, err := t.newReplace(p)
		if err != nil {
			return err
		}
		add(n)
	case "Precompiled":
		n, err := newPrecompiled(p.Charsmap)
		if err != nil {
			return fmt.Errorf("precompiled_charsmap: %w", err)
		}
		add(n)
	case "BertNormalizer":
		add(bertText{p.CleanText, p.Ideographs})
		if p.StripAccents == nil && p.Lowercase || p.StripAccents != nil && *p.StripAccents {
			add(formD)
			add(drop(isAccent))
		}
		if p.Lowercase {
			add(lowercase{})
		}
	default:
		return errUnknown(p)
	}
	return nil
}

func (t *Tokenizer) newReplace(p part) (*replace, error) {
	text, re, err := t.pattern(p)
	return &replace{text: text, re: re, with: p.Content}, err
}

// pattern reads {"String": s} or {"Regex": s}.
func (t *Tokenizer) pattern(p part) (text string, re *pattern, err error) {
	if s, ok := p.Pattern["String"]; ok && s != "" && len(p.Pattern) == 1 {
		return s, nil, nil
	}
	if s, ok := p.Pattern["Regex"]; ok && len(p.Pattern) == 1 {
		re, err := compilePattern(s, t.uni)
		return "", re, err
	}
	return "", nil, fmt.Errorf("%s: pattern %v is not supported; a String or a Regex is expected", p.Type, p.Pattern)
}

// gpt2 is the pattern that ByteLevel splits by.
const gpt2 = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

func (t *Tokenizer) usePreTokenizer(p part) error {
	add := func(s splitter) { t.pre = append(t.pre, s) }
	switch p.Type {
	case "Sequence":
		for _, q := range p.PreTokenizers {
			if err := t.usePreTokenizer(q); err != nil {
				return err
			}
		}
	case "ByteLevel":
		return t.addByteLevel(p)
	case "Split":
		return t.addSplit(p)
	case "Digits":
		how := contiguous
		if p.Individual {
			how = isolated
		}
		add(splitClass{isNumeric, how})
	case "Metaspace":
		return t.addMetaspace(p)
	case "BertPreTokenizer":
		add(splitClass{isSpace, removed})
		add(splitClass{isPunct, isolated})
	case "Whitespace":
		add(splitWords{})
	case "WhitespaceSplit":
		add(splitClass{isSpace, removed})
	case "Punctuation":
		how, ok := isolated, true
		if p.Behavior != "" {
			how, ok = parseBehavior(p.Behavior)
		}
		if !ok {
			return fmt.Errorf("type Punctuation: behavior %q is not supported", p.Behavior)
		}
		add(splitClass{isPunct, how})
	case "CharDelimiterSplit", "Delimiter":
		r, size := utf8.DecodeRuneInString(p.Delimiter)
		if size == 0 || size != len(p.Delimiter) {
			return fmt.Errorf("%s: delimiter %q is not one character", p.Type, p.Delimiter)
		}
		add(splitRune(r))
	case "FixedLength":
		n := 5
		if p.Length != nil {
			n = *p.Length
		}
		if n < 1 {
			return fmt.Errorf("type FixedLength: length %d is not positive", n)
		}
		add(splitLength(n))
	default:
		return errUnknown(p)
	}
	return nil
}

func (t *Tokenizer) addByteLevel(p part) error {
	if p.AddPrefixSpace == nil {
		return errors.New("type ByteLevel: add_prefix_space is missing")
	}
	if *p.AddPrefixSpace {
		t.pre = append(t.pre, prefixSpace{})
	}
	if p.UseRegex == nil || *p.UseRegex {
		re, err := compilePattern(gpt2, t.uni)
		if err != nil {
			return err
		}
		t.pre = append(t.pre, &splitPattern{re: re, how: isolated})
	}
	t.pre = append(t.pre, mapBytes{})
	return nil
}

func (t *Tokenizer) addSplit(p part) error {
	how, ok := parseBehavior(p.Behavior)
	if !ok {
		return fmt.Errorf("type Split: behavior %q is not supported", p.Behavior)
	}
	text, re, err := t.pattern(p)
	if err != nil {
		return err
	}
	if re == nil {
		re = literalPattern(text, t.uni)
	}
	t.pre = append(t.pre, &splitPattern{re: re, how: how, invert: p.Invert})
	return nil
}

// metaspaceOf reads mark and scheme of a Metaspace, splitter or decoder.
func metaspaceOf(p part) (*metaspace, error) {
	m := &metaspace{mark: p.Replacement, scheme: p.PrependScheme, cut: p.Split == nil || *p.Split}
	if utf8.RuneCountInString(m.mark) != 1 {
		return nil, fmt.Errorf("type Metaspace: replacement %q is not one character", m.mark)
	}
	switch m.scheme {
	case "":
		m.scheme = "always"
	case "always", "first", "never":
	default:
		return nil, fmt.Errorf("type Metaspace: prepend_scheme %q is not supported", m.scheme)
	}
	if p.AddPrefixSpace != nil && !*p.AddPrefixSpace {
		if p.PrependScheme != "" && p.PrependScheme != "never" {
			return nil, errors.New("type Metaspace: add_prefix_space is false and prepend_scheme is not never")
		}
		m.scheme = "never"
	}
	return m, nil
}

func (t *Tokenizer) addMetaspace(p part) error {
	m, err := metaspaceOf(p)
	if err == nil {
		t.pre = append(t.pre, m)
	}
	return err
}

// finishSplitters leaves the mapping to bytes to the words the cache has not
// seen, where it is the last step; and cuts unsplit text where that is the
// same.
func (t *Tokenizer) finishSplitters() {
	if n := len(t.pre); n > 0 {
		if _, ok := t.pre[n-1].(mapBytes); ok {
			t.pre, t.bytes = t.pre[:n-1], true
			return
		}
	}
	if m, ok := t.model.(*bpe); ok && m.cut != nil {
		t.pre = append(t.pre, &cutBefore{mark: m.cut})
	}
}

func (t *Tokenizer) useDecoder(p part) error {
	add := func(d decoder) { t.decode = append(t.decode, d) }
	switch p.Type {
	case "Sequence":
		for _, q := range p.Decoders {
			if err := t.useDecoder(q); err != nil {
				return err
			}
		}
	case "ByteLevel":
		add(decodeBytes{})
	case "ByteFallback":
		add(byteFallback{})
	case "Fuse":
		add(fuse{})
	case "Replace":
		n, err := t.newReplace(p)
		if err != nil {
			return err
		}
		add(decodeReplace(n))
	case "Metaspace":
		m, err := metaspaceOf(p)
		if err != nil {
			return err
		}
		add(decodeMetaspace(m.mark, m.scheme == "never"))
	case "Strip":
		r, size := utf8.DecodeRuneInString(p.Content)
		if size == 0 || size != len(p.Content) {
			return fmt.Errorf("type Strip: content %q is not one character", p.Content)
		}
		add(decodeStrip(r, p.Start, p.Stop))
	case "WordPiece":
		add(decodeWordPiece(p.Prefix, p.Cleanup))
	case "BPEDecoder":
		add(decodeSuffix(p.Suffix))
	default:
		return errUnknown(p)
	}
	return nil
}
