package tokenizer

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "tokenizer.json")
	if err := os.WriteFile(file, unzip(t, "testdata/llama3.json.gz"), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if a.Name() != b.Name() || !strings.HasPrefix(a.Name(), "tokenizer.json sha256:") || len(a.Name()) != len("tokenizer.json sha256:")+12 {
		t.Errorf("names %q and %q", a.Name(), b.Name())
	}
	if got, want := fixture(t, "llama3").Name(), "tokenizer"+strings.TrimPrefix(a.Name(), "tokenizer.json"); got != want {
		t.Errorf("parsed without a file it is named %q, want %q", got, want)
	}
	if _, err := Open(filepath.Join(dir, "none")); err == nil {
		t.Error("a file that is not there was opened")
	}
}

// tiny is a tokenizer whose parts tests replace.
const tiny = `{"version":"1.0","truncation":null,"padding":null,"added_tokens":[],"normalizer":null,"pre_tokenizer":null,` +
	`"post_processor":null,"decoder":null,"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}}`

func TestWhatIsNotUnderstoodIsNamed(t *testing.T) {
	for _, c := range []struct{ from, to, says string }{
		{`"1.0"`, `"2.0"`, `version "2.0"`},
		{`"normalizer":null`, `"normalizer":{"type":"Rot13"}`, `normalizer: type "Rot13"`},
		{`"normalizer":null`, `"normalizer":{"type":"Sequence","normalizers":[{"type":"X"}]}`, `type "X"`},
		{`"normalizer":null`, `"normalizer":{"type":"Replace","pattern":{"Glob":"*"},"content":""}`, `Glob`},
		{`"normalizer":null`, `"normalizer":{"type":"Replace","pattern":{"Regex":"(?<n>a)"},"content":""}`, `(?<n`},
		{`"normalizer":null`, `"normalizer":{"type":"Precompiled","precompiled_charsmap":"AA"}`, `precompiled_charsmap`},
		{`"normalizer":null`, `"normalizer":{"type":"Strip"}`, `Strip lacks strip_left`},
		{`"pre_tokenizer":null`, `"pre_tokenizer":{"type":"UnicodeScripts"}`, `pre_tokenizer: type "UnicodeScripts"`},
		{`"pre_tokenizer":null`, `"pre_tokenizer":{"type":"Split","pattern":{"String":" "},"behavior":"Gone","invert":false}`, `behavior "Gone"`},
		{`"pre_tokenizer":null`, `"pre_tokenizer":{"type":"Metaspace","replacement":"__"}`, `"__" is not one character`},
		{`"pre_tokenizer":null`, `"pre_tokenizer":{"type":"Metaspace","replacement":"_","prepend_scheme":"last"}`, `"last"`},
		{`"post_processor":null`, `"post_processor":{"type":"Other"}`, `post_processor: type "Other"`},
		{`"post_processor":null`, `"post_processor":{"type":"TemplateProcessing","single":[],"special_tokens":{}}`, `0 times`},
		{`"decoder":null`, `"decoder":{"type":"CTC"}`, `decoder: type "CTC"`},
		{`"type":"BPE"`, `"type":"Neural"`, `model: type "Neural"`},
		{`"type":"BPE"`, `"type":"BPE","dropout":0.1`, `dropout 0.1`},
		{`"type":"BPE"`, `"type":"BPE","surprise":true`, `surprise`},
		{`"merges":["a b"]`, `"merges":["a c"]`, `"c" is not in the vocabulary`},
		{`"merges":["a b"]`, `"merges":["a b c"]`, `not two tokens`},
		{`"merges":["a b"]`, `"merges":[["b","a"]]`, `"ba", of "b" and "a"`},
		{`"merges":["a b"]`, `"x":1`, `x`},
		{`"ab":2`, `"ab":-2`, `not valid JSON`},
		{`"ab":2`, `"ab":4000000000`, `too large`},
		{`"ab":2`, `"a\uD800":2`, `not valid JSON`},
		{`"added_tokens":[]`, `"added_tokens":{}`, `added_tokens`},
		{`{"version"`, `{version`, `not valid JSON`},
		{`]}}`, `]}} x`, `not valid JSON`},
		{`"model":{`, `"other":{`, `no model`},
	} {
		text := strings.Replace(tiny, c.from, c.to, 1)
		if text == tiny {
			t.Fatalf("%s is not in the tokenizer", c.from)
		}
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v does not say %s", c.to, err, c.says)
		}
	}
	if _, err := Parse([]byte(tiny)); err != nil {
		t.Error(err)
	}
}

func TestUnknownTokenThatIsNotThere(t *testing.T) {
	k, err := Parse([]byte(strings.Replace(tiny, `"type":"BPE"`, `"type":"BPE","unk_token":"<unk>"`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Encode("abc", false); err == nil || !strings.Contains(err.Error(), `"<unk>"`) {
		t.Errorf("error %v does not name the unknown token", err)
	}
	if n := k.Count("abc"); n != -1 {
		t.Errorf("Count() = %d of a text that cannot be encoded", n)
	}
	if n := k.Count("abab"); n != 2 {
		t.Errorf("Count() = %d after an error, want 2", n)
	}
}

func TestPatternThatTakesTooLong(t *testing.T) {
	for pattern, text := range map[string]string{
		`(?:(?:a|a)*)*b`: strings.Repeat("a", 40),
		`(?:ab|c)*d`:     strings.Repeat("ab", maxDepth+1),
	} {
		split := `"pre_tokenizer":{"type":"Split","pattern":{"Regex":"` + pattern + `"},"behavior":"Isolated","invert":false}`
		k, err := Parse([]byte(strings.Replace(tiny, `"pre_tokenizer":null`, split, 1)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.Encode(text, false); err == nil || !strings.Contains(err.Error(), "too long") {
			t.Errorf("%s on %d bytes: error %v", pattern, len(text), err)
		}
		if n := k.Count("ab"); n != 1 {
			t.Errorf("%s: Count() = %d after an error, want 1", pattern, n)
		}
	}
}

// A long word is merged by another algorithm than a short one.
func TestLongWordsMergeAsShortOnes(t *testing.T) {
	k := fixture(t, "llama3")
	m := k.model.(*bpe)
	e := k.encoder()
	for _, text := range []string{"aaaaaaaaaaaa", "the throughput of the serverthetheinging", "ababababcabab", "é漢😀the"} {
		word := []byte(nil)
		for _, b := range []byte(text) {
			word = utf8.AppendRune(word, byteRune(b))
		}
		ids := [2][]int32{}
		for i, merge := range []func(*encoder){m.mergeShort, m.mergeLong} {
			e.ids = e.ids[:0]
			if err := m.symbols(e, word); err != nil {
				t.Fatal(err)
			}
			merge(e)
			ids[i] = slices.Clone(e.ids)
		}
		if !slices.Equal(ids[0], ids[1]) {
			t.Errorf("%q: %v and %v", text, ids[0], ids[1])
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	k := fixture(t, "o200k")
	var texts []string
	decodeJSON(t, unzip(t, "testdata/texts.gz"), &texts)
	counts := make([]int, len(texts))
	for i, s := range texts {
		counts[i] = k.Count(s)
	}
	k = fixture(t, "o200k")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i, s := range texts {
				if n := k.Count(s); n != counts[i] {
					t.Errorf("%+q: %d tokens, alone %d", s, n, counts[i])
				}
			}
		})
	}
	wg.Wait()
}

func TestWarmWordsAllocateNothing(t *testing.T) {
	for _, name := range []string{"llama3", "o200k", "deepseek", "llama2", "bert", "t5"} {
		k := fixture(t, name)
		text := strings.Repeat("the server sends tokens and the model reads them ", 20)
		k.Count(text)
		if n := testing.AllocsPerRun(20, func() { k.Count(text) }); n > 40 { // the race detector makes a pool forget
			t.Errorf("%s: %.0f allocations for 180 words that were seen before", name, n)
		}
	}
}

func TestBytesThatAreNotUTF8(t *testing.T) {
	k := fixture(t, "qwen2")
	got, err := k.Encode("a\xff\xe4\xbdb", false)
	if err != nil {
		t.Fatal(err)
	}
	want, err := k.Encode("a\ufffd\ufffd\ufffdb", false)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, want %v, %v", got, want, err)
	}
}

func TestByteAlphabet(t *testing.T) {
	seen := map[rune]bool{}
	for c := range 256 {
		r := byteRune(byte(c))
		if b, ok := runeByte(r); !ok || b != byte(c) || seen[r] {
			t.Errorf("byte %#x becomes %U becomes %#x", c, r, b)
		}
		seen[r] = true
	}
	for _, r := range []rune{' ', '\n', 0x7F, 0xAD, 0xA0, 0x144, '▁'} {
		if b, ok := runeByte(r); ok {
			t.Errorf("%U is taken for byte %#x", r, b)
		}
	}
}

func FuzzRoundTrip(f *testing.F) {
	for _, s := range []string{"", "Hello, world!\r\n", "e\u0301 漢字 👩‍👩‍👧 1234 '\u017f", " \u00a0\u3000x", "<|endoftext|>", "a\xffb"} {
		f.Add(s)
	}
	// These change no text: byte-level, nothing normalized.
	var exact []*Tokenizer
	for _, name := range []string{"llama3", "starcoder", "tiktoken", "kimi"} {
		exact = append(exact, fixture(f, name))
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, k := range exact {
			ids, err := k.Encode(s, false)
			if err != nil {
				t.Fatal(err)
			}
			for id := range k.added.byID {
				if slices.Contains(ids, id) {
					return // its white space and it may go
				}
			}
			want := string([]rune(s))
			if got, err := k.Decode(ids); err != nil || got != want {
				t.Fatalf("%q came back as %q, %v", want, got, err)
			}
		}
	})
}

func FuzzEncode(f *testing.F) {
	f.Add("``x <mask> word 漢 \u0600\x00 e\u0301\r\n", []byte{1, 2, 250, 0, 9})
	var all []*Tokenizer
	for _, name := range fixtures(f) {
		all = append(all, fixture(f, name))
	}
	f.Fuzz(func(t *testing.T, s string, raw []byte) {
		if len(s) > 200 {
			return
		}
		for _, k := range all {
			ids, err := k.Encode(s, true)
			if err != nil {
				continue
			}
			for _, b := range raw {
				ids = append(ids, int32(b)*7-100)
			}
			if _, err := k.Decode(ids); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(tiny))
	for _, name := range []string{"albert", "bert", "clip", "wordlevel"} {
		f.Add(unzip(f, "testdata/"+name+".json.gz"))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<17 {
			return
		}
		k, err := Parse(data)
		if err != nil {
			return
		}
		if ids, err := k.Encode("a ab\n1 漢", true); err == nil {
			if _, err := k.Decode(ids); err != nil {
				t.Fatal(err)
			}
		}
		k.Ordinary()
	})
}
