package tokenizer

import (
	"encoding/json"
	"fmt"
	"strings"
)

// part is any of the small parts of a file: what it does is its Type, the rest
// are the fields the known types have. As in the reference, a field that a
// type does not have says nothing.
type part struct {
	Type string `json:"type"`

	Normalizers   []part `json:"normalizers"`
	PreTokenizers []part `json:"pretokenizers"`
	Processors    []part `json:"processors"`
	Decoders      []part `json:"decoders"`

	StripLeft    bool   `json:"strip_left"`
	StripRight   bool   `json:"strip_right"`
	CleanText    bool   `json:"clean_text"`
	Ideographs   bool   `json:"handle_chinese_chars"`
	StripAccents *bool  `json:"strip_accents"`
	Lowercase    bool   `json:"lowercase"`
	Prepend      string `json:"prepend"`
	Charsmap     string `json:"precompiled_charsmap"`

	Pattern  map[string]string `json:"pattern"`
	Content  string            `json:"content"`
	Behavior string            `json:"behavior"`
	Invert   bool              `json:"invert"`

	AddPrefixSpace *bool  `json:"add_prefix_space"`
	UseRegex       *bool  `json:"use_regex"`
	Individual     bool   `json:"individual_digits"`
	Replacement    string `json:"replacement"`
	PrependScheme  string `json:"prepend_scheme"`
	Split          *bool  `json:"split"`
	Delimiter      string `json:"delimiter"`
	Length         *int   `json:"length"`

	Start   int    `json:"start"`
	Stop    int    `json:"stop"`
	Prefix  string `json:"prefix"`
	Suffix  string `json:"suffix"`
	Cleanup bool   `json:"cleanup"`

	Single        []templateItem          `json:"single"`
	SpecialTokens map[string]specialToken `json:"special_tokens"`
	Sep           tokenAndID              `json:"sep"`
	Cls           tokenAndID              `json:"cls"`
}

// needed are the fields without which a part's meaning would be a guess.
func needed(kind string) []string {
	switch kind {
	case "Strip":
		return []string{"strip_left|content", "strip_right|start"}
	case "BertNormalizer":
		return []string{"clean_text", "handle_chinese_chars", "lowercase"}
	case "Prepend":
		return []string{"prepend"}
	case "Precompiled":
		return []string{"precompiled_charsmap"}
	case "Replace":
		return []string{"pattern", "content"}
	case "Split":
		return []string{"pattern", "behavior", "invert"}
	case "Digits":
		return []string{"individual_digits"}
	case "Metaspace":
		return []string{"replacement"}
	case "WordPiece":
		return []string{"prefix", "cleanup"}
	case "BPEDecoder":
		return []string{"suffix"}
	case "Sequence":
		return []string{"normalizers|pretokenizers|processors|decoders"}
	}
	return nil
}

// UnmarshalJSON reads a part and checks that it says what it needs to.
func (p *part) UnmarshalJSON(data []byte) error {
	type fields part
	if err := json.Unmarshal(data, (*fields)(p)); err != nil {
		return err
	}
	var has map[string]json.RawMessage
	if err := json.Unmarshal(data, &has); err != nil {
		return err
	}
	for _, names := range needed(p.Type) {
		found := false
		for name := range strings.SplitSeq(names, "|") {
			_, ok := has[name]
			found = found || ok
		}
		if !found {
			return fmt.Errorf("%s lacks %s", p.Type, strings.ReplaceAll(names, "|", " or "))
		}
	}
	return nil
}

func isNull(raw []byte) bool { return len(raw) == 0 || string(raw) == "null" }

// errUnknown says that a file asks for what is not known here.
func errUnknown(p part) error {
	return fmt.Errorf("type %q is not supported", p.Type)
}

// templateItem is a step of a template: the text, or a special token.
type templateItem struct {
	Sequence     *templateID `json:"Sequence"`
	SpecialToken *templateID `json:"SpecialToken"`
}

type templateID struct {
	ID string `json:"id"`
}

// specialToken is what a name in a template stands for.
type specialToken struct {
	IDs []int32 `json:"ids"`
}

// tokenAndID is written ["[CLS]", 101].
type tokenAndID struct {
	known bool
	id    int32
}

// UnmarshalJSON reads the pair.
func (k *tokenAndID) UnmarshalJSON(data []byte) error {
	var token string
	pair := []any{&token, &k.id}
	if err := json.Unmarshal(data, &pair); err != nil {
		return err
	}
	if len(pair) != 2 {
		return fmt.Errorf("%s is not a token and its id", data)
	}
	k.known = true
	return nil
}
