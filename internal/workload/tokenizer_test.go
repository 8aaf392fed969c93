package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// toy is the tokenizer that the fixtures of testdata were made with: greedy
// longest match over few pieces, one special token in front of a text, and
// texts whose tokens are others than those they were decoded from.
type toy struct {
	pieces  []string
	special []int32
}

func newToy(lastSpecial bool) *toy {
	plain := strings.Split("a b c d e f g h", " ")
	plain = append(plain, " ")
	plain = append(plain, strings.Split("ab,ba,abc,cd,de,def,fg,gh,ha, a, b, ab,  ,hab,cde, h,efg,bcd,aa,ccc", ",")...)
	if lastSpecial {
		return &toy{append(plain, "<end>"), []int32{int32(len(plain))}}
	}
	return &toy{append([]string{"<s>", "</s>"}, plain...), []int32{0, 1}}
}

func (t *toy) Name() string   { return "toy" }
func (t *toy) VocabSize() int { return len(t.pieces) }

// added is a tokenizer to which ordinary tokens were added.
type added struct{ *toy }

func (a added) Ordinary() []int32 {
	last := int32(a.VocabSize())
	return append(a.toy.Ordinary(), last+3, last+4)
}

func (t *toy) isSpecial(id int32) bool { return slices.Contains(t.special, id) }

func (t *toy) Ordinary() (ids []int32) {
	for id := range int32(len(t.pieces)) {
		if !t.isSpecial(id) {
			ids = append(ids, id)
		}
	}
	return ids
}

func (t *toy) Decode(ids []int32) (string, error) {
	var b strings.Builder
	for _, id := range ids {
		if !t.isSpecial(id) {
			b.WriteString(t.pieces[id])
		}
	}
	return b.String(), nil
}

func (t *toy) Encode(text string, special bool) (ids []int32, err error) {
	if special {
		ids = append(ids, t.special[0])
	}
	for text != "" {
		n := min(3, len(text))
		for ; n > 0; n-- {
			id := int32(slices.Index(t.pieces, text[:n]))
			if id >= 0 && !t.isSpecial(id) {
				ids = append(ids, id)
				break
			}
		}
		if n == 0 {
			return nil, fmt.Errorf("no piece for %q", text[:1])
		}
		text = text[n:]
	}
	return ids, nil
}

// splitter counts pieces of a text as words do, for what needs a length only.
type splitter struct {
	count  func(text string, special bool) int
	vocab  []int32
	failed error
}

func (s splitter) Name() string                       { return "splitter" }
func (s splitter) Ordinary() []int32                  { return s.vocab }
func (s splitter) Decode(ids []int32) (string, error) { return strings.Repeat("x", len(ids)), s.failed }
func (s splitter) Encode(text string, special bool) ([]int32, error) {
	return make([]int32, s.count(text, special)), s.failed
}

// sized is a splitter that knows its vocabulary.
type sized struct{ splitter }

func (s sized) VocabSize() int { return len(s.vocab) }

// readJSON reads a fixture.
func readJSON(t *testing.T, path string, v any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatal(err)
	}
}

func openWith(t *testing.T, s Spec, tok Tokenizer) *Workload {
	t.Helper()
	s.Tokenizer = "toy"
	w, err := OpenWith(s, tok)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// testdata/vllm_random.json holds what the random dataset of vLLM's Python
// client (2026) draws with the toy tokenizer, and the ids before it decodes
// them.
func TestRandomIsVLLMs(t *testing.T) {
	var cases []struct {
		Last                  bool
		Seed                  uint64
		Prefix, Input, Output int
		Ratio                 float64
		Requests              []struct {
			Prompt        string
			Input, Output int
			IDs           []int32 `json:"ids"`
		}
	}
	readJSON(t, "testdata/vllm_random.json", &cases)
	for _, c := range cases {
		s := Spec{RandomRNG: "vllm", Seed: c.Seed, NumPrompts: len(c.Requests), RandomPrefixLen: c.Prefix,
			RandomRangeRatio: c.Ratio, RandomInputLen: c.Input, RandomOutputLen: c.Output}
		w := openWith(t, s, added{newToy(c.Last)})
		reqs := slices.Collect(w.All())
		s.RandomIDs = true
		ids := slices.Collect(openWith(t, s, newToy(c.Last)).All())
		for i, want := range c.Requests {
			r := reqs[i]
			if r.Prompt != want.Prompt || r.Input != want.Input || r.Output != want.Output || r.IDs != nil || r.EOS {
				t.Errorf("seed %d, request %d: %+v\nwant %+v", c.Seed, i, r, want)
			}
			if d := cmp.Diff(want.IDs, ids[i].IDs); d != "" || ids[i].Prompt != "" || ids[i].Input != len(want.IDs) || ids[i].Output != want.Output {
				t.Errorf("seed %d, request %d as ids: %+v (-want +got):\n%s", c.Seed, i, ids[i], d)
			}
		}
		if got := w.Totals().Input; got != openWith(t, w.Spec(), newToy(c.Last)).Totals().Input {
			t.Errorf("seed %d: the filled spec gives other totals", c.Seed)
		}
	}
}

// A text that never gets its length is taken as it is after ten corrections.
func TestFitGivesUp(t *testing.T) {
	calls := 0
	short := sized{splitter{vocab: []int32{0, 1, 2}, count: func(text string, special bool) int {
		calls++
		return len(text) / 2
	}}}
	w := openWith(t, Spec{RandomRNG: "vllm", NumPrompts: 1, RandomInputLen: 8}, short)
	if got := w.Totals().Input; got != 4 || calls != 2+11 {
		t.Errorf("%d tokens after %d encodings, want 4 after the 2 of an empty prompt and 11", got, calls)
	}
}

// Every word is one token but those of more than six letters, as in a small
// vocabulary: prompts are made of the short ones, and have their length.
func TestWordsAreTheTokenizers(t *testing.T) {
	count := func(text string, special bool) int {
		n := strings.Count(text, "\n")
		for word := range strings.FieldsSeq(text) {
			n += 1 + (len(word)-1)/6
		}
		return n
	}
	tok := splitter{count: count}
	for name, s := range specs(t) {
		if s.Dataset == "sharegpt" { // natural text
			continue
		}
		for r := range openWith(t, s, tok).All() {
			n := count(r.Prompt, false)
			for _, d := range r.Documents {
				n += count(d, false)
			}
			if n != r.Input {
				t.Errorf("%s: request %d has %d tokens, Input says %d", name, r.Index, n, r.Input)
			}
		}
	}
	none := splitter{count: func(text string, _ bool) int { return len(text) }}
	if _, err := OpenWith(Spec{Tokenizer: "x"}, none); err == nil || !strings.Contains(err.Error(), "are single tokens of splitter, which is too few") {
		t.Errorf("a tokenizer without words: %v", err)
	}
}

func TestTokenizerFaults(t *testing.T) {
	broken := sized{splitter{count: func(string, bool) int { return 1 }, failed: errors.New("server gone"), vocab: []int32{0, 1}}}
	sharegpt := file(t, shareGPTFile([2]int{5, 6}))
	for name, s := range map[string]Spec{
		"words":    {},
		"vllm":     {RandomRNG: "vllm"},
		"sharegpt": {Dataset: "sharegpt", Path: sharegpt},
		"jsonl":    {Dataset: "jsonl", Path: file(t, `{"prompt": "a"}`)},
		"sonnet":   {Dataset: "sonnet"},
	} {
		s.Tokenizer = "server"
		if s.RandomRNG != "" || s.RandomIDs {
			s.Tokenizer = "file"
		}
		if _, err := OpenWith(s, broken); err == nil || !strings.Contains(err.Error(), "server gone") || !strings.Contains(err.Error(), "splitter") {
			t.Errorf("%s: %v", name, err)
		}
	}
	unknown := splitter{count: func(string, bool) int { return 1 }}
	for _, tt := range []struct {
		spec Spec
		tok  Tokenizer
		want string
	}{
		{Spec{Tokenizer: "x"}, nil, "tokenizer: x was not opened, so that no length can be measured by it"},
		{Spec{RandomRNG: "vllm", Tokenizer: "x"}, unknown, "random_rng: vllm needs a tokenizer whose vocabulary is known, which splitter is not: give tokenizer a tokenizer.json"},
		{Spec{RandomRNG: "vllm", Tokenizer: "x"}, splitter{count: func(string, bool) int { return 1 }, vocab: []int32{1}}, "random_rng: vllm needs the size of the vocabulary, which splitter does not say"},
		{Spec{RandomIDs: true, Tokenizer: "x"}, unknown, "random_ids: needs a tokenizer whose vocabulary is known, which splitter is not: give tokenizer a tokenizer.json"},
		{Spec{RandomRNG: "vllm", Tokenizer: "x", RandomInputLen: 1}, newToy(false), "random_input_len: 1 leaves prompts without a token, of which the tokenizer adds 1 itself: choose a longer one or a random_prefix_len"},
	} {
		if _, err := OpenWith(tt.spec, tt.tok); err == nil || err.Error() != tt.want {
			t.Errorf("got %v\nwant %s", err, tt.want)
		}
	}
}

func TestRandomIDs(t *testing.T) {
	s := Spec{RandomIDs: true, NumPrompts: 50, RandomInputLen: 20, RandomRangeRatio: 0.5, RandomPrefixLen: 6}
	w := openWith(t, s, newToy(false))
	reqs := slices.Collect(w.All())
	seen := map[int32]bool{}
	for _, r := range reqs {
		if len(r.IDs) != r.Input || r.Prompt != "" || !slices.Equal(r.IDs[:6], reqs[0].IDs[:6]) {
			t.Fatalf("request %+v", r)
		}
		for _, id := range r.IDs {
			seen[id] = true
		}
	}
	if got := len(seen); got != 29 || seen[0] || seen[1] {
		t.Errorf("%d different ids, special ones %v and %v: want each of the 29 ordinary ones", got, seen[0], seen[1])
	}
	if got, want := w.Describe(), "Random dataset of token ids: 6 shared and 10 to 30 input tokens, 64 to 192 output tokens, 50 requests, all at once"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}

	// A nonce moves them one to one: lengths and what is shared stay.
	s.Nonce = "another run"
	moved := openWith(t, s, newToy(false))
	for i, r := range slices.Collect(moved.All()) {
		to := map[int32]int32{}
		for j, id := range r.IDs {
			from := reqs[i].IDs[j]
			if was, ok := to[from]; ok && was != id {
				t.Fatalf("id %d becomes %d and %d", from, was, id)
			}
			to[from] = id
		}
		if len(r.IDs) != r.Input || slices.Equal(r.IDs, reqs[i].IDs) {
			t.Fatalf("request %+v", r)
		}
	}
	if w.Totals() != moved.Totals() || w.Fingerprint() == moved.Fingerprint() {
		t.Error("a nonce must leave the lengths and change the ids")
	}
	if !strings.HasSuffix(moved.Describe(), "ids of this run alone") {
		t.Error(moved.Describe())
	}
}

// testdata/vllm_sharegpt.json holds the samples that vLLM's Python client
// takes from testdata/sharegpt.json, both with the toy tokenizer.
func TestShareGPTIsVLLMs(t *testing.T) {
	var cases []struct {
		Seed           uint64
		N              int
		OutputLen      int  `json:"output_len"`
		DisableShuffle bool `json:"disable_shuffle"`
		Rows           []struct {
			Prompt        string
			Input, Output int
		}
	}
	readJSON(t, "testdata/vllm_sharegpt.json", &cases)
	for _, c := range cases {
		w := openWith(t, Spec{Dataset: "sharegpt", Path: "testdata/sharegpt.json", Seed: c.Seed, NumPrompts: c.N,
			ShareGPTOutputLen: c.OutputLen, DisableShuffle: c.DisableShuffle}, newToy(false))
		if w.Len() != len(c.Rows) || w.Len() != c.N {
			t.Fatalf("%d requests, want %d", w.Len(), c.N)
		}
		for i, r := range slices.Collect(w.All()) {
			want := c.Rows[i]
			if !strings.HasPrefix(r.Prompt, want.Prompt) || r.Input != want.Input || r.Output != want.Output {
				t.Errorf("seed %d, request %d: %d and %d tokens of %.24q, want %+v", c.Seed, i, r.Input, r.Output, r.Prompt, want)
			}
		}
	}
}

func TestKnown(t *testing.T) {
	qwen := func(length int) Tokenizer {
		return known{splitter{count: func(text string, _ bool) int { return length }}}
	}
	one := shareGPTFile([2]int{30, 30})
	one = one[1 : len(one)-2]
	s := Spec{Dataset: "sharegpt", Path: file(t, "["+strings.Repeat(one+",", 999)+one+"]")}
	for _, tt := range []struct {
		name string
		spec func(*Spec)
		tok  Tokenizer
		want string
	}{
		{"another file", func(*Spec) {}, qwen(217), "217000 input tokens in 1000 prompts, where the sample of vllm bench serve with seed 0 has 217393: the file is not ShareGPT_V3"},
		{"a nonce does not count", func(s *Spec) { s.Nonce = "x" }, qwen(217), "217000 input tokens in 1000 prompts, where"},
		{"another tokenizer", func(*Spec) {}, splitter{count: func(string, bool) int { return 217 }}, ""},
		{"none", func(*Spec) {}, nil, ""},
		{"another seed", func(s *Spec) { s.Seed = 1 }, qwen(217), ""},
		{"file order", func(s *Spec) { s.DisableShuffle = true }, qwen(217), ""},
		{"fewer", func(s *Spec) { s.NumPrompts = 10 }, qwen(217), ""},
		{"fixed output", func(s *Spec) { s.ShareGPTOutputLen = 10 }, qwen(217), ""},
		{"guidellm", func(s *Spec) { s.ShareGPTFilter = "guidellm" }, qwen(342), "342000 input and 342000 output tokens in 1000 prompts, where the published sample of guidellm has 342058 and 281412: the file is not"},
		{"right", func(*Spec) {}, known{splitter{count: counts(217_393)}}, "217393 input tokens in 1000 prompts: the sample of vllm bench serve with seed 0, as published for Qwen3 models"},
		{"right guidellm", func(s *Spec) { s.ShareGPTFilter = "guidellm" }, known{splitter{count: counts(342_058, 281_412)}}, "342058 input and 281412 output tokens in 1000 prompts: the sample of guidellm as"},
		{"right guidellm but for the template", func(s *Spec) { s.ShareGPTFilter = "guidellm" }, known{splitter{count: counts(334_058, 281_412)}}, "as GPUStack's benchmark-runner feeds it; the published 342058 count 8 further tokens of each request's chat template"},
	} {
		spec := s
		tt.spec(&spec)
		if tt.tok != nil {
			spec.Tokenizer = "x"
		}
		w, err := OpenWith(spec, tt.tok)
		if err != nil {
			t.Fatal(err)
		}
		if got := w.Known(); !strings.Contains(got, tt.want) || (got == "") != (tt.want == "") {
			t.Errorf("%s: %q\nwant %q", tt.name, got, tt.want)
		}
	}
}

// counts returns lengths that sum to each total in 1,000 calls, prompts and
// answers in turn.
func counts(totals ...int) func(string, bool) int {
	calls := 0
	return func(string, bool) int {
		kind, i := calls%2, calls/2
		calls++
		total := totals[min(kind, len(totals)-1)]
		if i == 0 {
			return total/1000 + total%1000
		}
		return total / 1000
	}
}

// known is a tokenizer that looks like Qwen's.
type known struct{ splitter }

func (k known) Encode(text string, special bool) ([]int32, error) {
	if text == "Hello, world! 123" {
		return []int32{9707, 11, 1879, 0, 220, 16, 17, 18}, nil
	}
	return k.splitter.Encode(text, special)
}
