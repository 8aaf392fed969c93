package workload

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/field"
	"perflab/internal/stat"
	"perflab/internal/token"
)

// promptBuilder is what prompts are made of and measured with.
type promptBuilder struct {
	tok   Tokenizer // nil: package token's approximation
	words []string  // each with its leading space; one token each with it, and at the start of a text without
}

// minWords is how many words prompts may be made of at least: fewer, and
// prompts would begin alike by chance.
const minWords = 200

// newPromptBuilder returns the kit of a spec with its defaults filled in. With a
// tokenizer it keeps those words that are single tokens of it, so that a
// prompt of n words has n of its tokens as well.
func newPromptBuilder(s Spec, tok Tokenizer) (promptBuilder, error) {
	k := promptBuilder{tok: tok, words: make([]string, token.Words())}
	for i := range k.words {
		k.words[i] = token.Word(i)
	}
	if tok == nil || !s.madeOfWords() {
		return k, nil
	}
	all := len(k.words)
	for _, single := range []func([]string) (bool, error){k.singleInside, k.singleAtStart} {
		words, err := singleTokens(k.words, single)
		if err != nil {
			return promptBuilder{}, fmt.Errorf("find words that are single tokens of %s: %w", tok.Name(), err)
		}
		k.words = words
	}
	if len(k.words) < minWords {
		return promptBuilder{}, field.Errorf("", "%d of the %d words that prompts are made of are single tokens of %s, which is too few: run without [tokenizer], or with [random_rng] vllm",
			len(k.words), all, tok.Name())
	}
	return k, nil
}

// singleTokens returns the words that are single tokens; single answers for several at
// once, so that a vocabulary with all of them is asked once.
func singleTokens(words []string, single func([]string) (bool, error)) ([]string, error) {
	if len(words) == 0 {
		return nil, nil
	}
	ok, err := single(words)
	switch {
	case err != nil:
		return nil, err
	case ok:
		return words, nil
	case len(words) == 1:
		return nil, nil
	}
	half := len(words) / 2
	a, err := singleTokens(words[:half], single)
	if err != nil {
		return nil, err
	}
	b, err := singleTokens(words[half:], single)
	return append(a[:len(a):len(a)], b...), err
}

func (k promptBuilder) singleInside(words []string) (bool, error) {
	one, err := k.count("the", false)
	if err != nil {
		return false, err
	}
	n, err := k.count("the"+strings.Join(words, ""), false)
	return n == one+len(words), err
}

// singleAtStart asks for several words on lines of their own, which counts too
// much where a vocabulary marks the start of a text; for one word it is exact.
func (k promptBuilder) singleAtStart(words []string) (bool, error) {
	n, err := k.count(strings.ReplaceAll(strings.Join(words, ""), " ", "\n")[1:], false)
	return n == 2*len(words)-1, err
}

// count returns the tokens of a text by the tokenizer, or by package token.
func (k promptBuilder) count(text string, special bool) (int, error) {
	if text == "" && !special {
		return 0, nil
	}
	if k.tok == nil {
		return token.Count(text), nil
	}
	if c, ok := k.tok.(interface{ Count(text string) int }); ok && !special {
		if n := c.Count(text); n >= 0 {
			return n, nil
		}
	}
	ids, err := k.tok.Encode(text, special)
	if err != nil {
		return 0, fmt.Errorf("count tokens by %s: %w", k.tok.Name(), err)
	}
	return len(ids), nil
}

// prompt returns the words of request i alone, one token each.
func (k promptBuilder) prompt(seed uint64, i, n int) string {
	var b strings.Builder
	b.Grow(bytesFor(n))
	k.writeWords(&b, promptStream(seed, i), n)
	return trimSpace(&b)
}

// writeWords appends n random words, each with its leading space.
func (k promptBuilder) writeWords(b *strings.Builder, rng *rand.Rand, n int) {
	for range n {
		b.WriteString(k.words[rng.IntN(len(k.words))])
	}
}

// promptStream is what the words of request i alone are drawn from.
func promptStream(seed uint64, i int) *rand.Rand {
	return stat.Stream(seed, "prompt "+strconv.Itoa(i))
}

// measure sets the lengths that only the finished requests have: those of rows
// that were read before there was a tokenizer. The nonce comes after it.
func (w *Workload) measure(k promptBuilder) error {
	if k.tok != nil && w.spec.Dataset == "jsonl" {
		rows := slices.Clone(w.src.rows)
		for i := range rows {
			n, err := k.countRequest(w.request(i))
			if err != nil {
				return err
			}
			rows[i].input = n
		}
		w.src.rows = rows
		if w.more != nil {
			w.more.src = w.src
		}
	}
	var err error
	w.nonce, err = newNonce(w.spec.Nonce, w.src.ids, k)
	return err
}

// countRequest counts all texts of a request.
func (k promptBuilder) countRequest(r Request) (n int, err error) {
	texts := append([]string{r.System, r.Prompt}, r.Documents...)
	for _, m := range r.History {
		texts = append(texts, m.Content)
	}
	for _, text := range texts {
		tokens, err := k.count(text, false)
		if err != nil {
			return 0, err
		}
		n += tokens
	}
	return n, nil
}

// SharesPrefixes reports whether requests of a spec with its defaults have the
// same beginnings on purpose, which a server's prefix cache finds again.
func (s Spec) SharesPrefixes() bool {
	switch s.Dataset {
	case "mooncake", "prefix_repetition", "shared-prefix", "conversations":
		return true
	}
	return s.RandomPrefixLen > 0 || s.SonnetPrefixLen > 0
}
