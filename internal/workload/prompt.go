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

// newPromptBuilder returns a builder that measures by a tokenizer. For prompts
// of words it keeps those that are single tokens of it, so that a prompt of n
// words has n of its tokens as well.
func newPromptBuilder(tok Tokenizer, ofWords bool) (promptBuilder, error) {
	p := promptBuilder{tok: tok, words: make([]string, token.Words())}
	for i := range p.words {
		p.words[i] = token.Word(i)
	}
	if tok == nil || !ofWords {
		return p, nil
	}
	all := len(p.words)
	for _, single := range []func([]string) (bool, error){p.singleInside, p.singleAtStart} {
		words, err := singleTokens(p.words, single)
		if err != nil {
			return promptBuilder{}, fmt.Errorf("find words that are single tokens of %s: %w", tok.Name(), err)
		}
		p.words = words
	}
	if len(p.words) < minWords {
		return promptBuilder{}, field.Errorf("", "%d of the %d words that prompts are made of are single tokens of %s, which is too few: give [tokenizer] estimate, or [random_rng] vllm",
			len(p.words), all, tok.Name())
	}
	return p, nil
}

// singleTokens returns the words that are single tokens; single answers for
// several at once, so that a vocabulary with all of them is asked once.
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

func (p promptBuilder) singleInside(words []string) (bool, error) {
	one, err := p.count("the", false)
	if err != nil {
		return false, err
	}
	n, err := p.count("the"+strings.Join(words, ""), false)
	return n == one+len(words), err
}

// singleAtStart asks for several words on lines of their own, which counts too
// much where a vocabulary marks the start of a text; for one word it is exact.
func (p promptBuilder) singleAtStart(words []string) (bool, error) {
	n, err := p.count(strings.ReplaceAll(strings.Join(words, ""), " ", "\n")[1:], false)
	return n == 2*len(words)-1, err
}

// count returns the tokens of a text by the tokenizer, or by package token.
func (p promptBuilder) count(text string, special bool) (int, error) {
	if text == "" && !special {
		return 0, nil
	}
	if p.tok == nil {
		return token.Count(text), nil
	}
	if c, ok := p.tok.(interface{ Count(text string) int }); ok && !special {
		if n := c.Count(text); n >= 0 {
			return n, nil
		}
	}
	ids, err := p.tok.Encode(text, special)
	if err != nil {
		return 0, fmt.Errorf("count tokens by %s: %w", p.tok.Name(), err)
	}
	return len(ids), nil
}

// prompt returns the words of request i alone, one token each.
func (p promptBuilder) prompt(seed uint64, i, n int) string {
	return p.text(promptStream(seed, i), n)
}

// text returns n random words, one token each.
func (p promptBuilder) text(rng *rand.Rand, n int) string {
	var b strings.Builder
	b.Grow(bytesFor(n))
	p.writeWords(&b, rng, n)
	return trimSpace(&b)
}

// writeWords appends n random words, each with its leading space.
func (p promptBuilder) writeWords(b *strings.Builder, rng *rand.Rand, n int) {
	for range n {
		b.WriteString(p.words[rng.IntN(len(p.words))])
	}
}

// promptStream is what the words of request i alone are drawn from.
func promptStream(seed uint64, i int) *rand.Rand {
	return stat.Stream(seed, "prompt "+strconv.Itoa(i))
}

// countRequest counts all texts of a request.
func (p promptBuilder) countRequest(r Request) (n int, err error) {
	texts := append([]string{r.System, r.Prompt}, r.Documents...)
	for _, m := range r.History {
		texts = append(texts, m.Content)
	}
	for _, text := range texts {
		tokens, err := p.count(text, false)
		if err != nil {
			return 0, err
		}
		n += tokens
	}
	return n, nil
}

// trimSpace returns the text without the first word's space.
func trimSpace(b *strings.Builder) string { return strings.TrimPrefix(b.String(), " ") }

// bytesFor is how much n words take: just over the mean of 7.2 bytes each.
func bytesFor(n int) int { return 8*n + 64 }

// ordinary returns the ids that prompts may be made of.
func (p promptBuilder) ordinary(path, value string) ([]int32, error) {
	if p.tok == nil {
		return nil, field.Errorf(path, value+"needs a tokenizer, whose ids it sends: give [tokenizer] a tokenizer.json")
	}
	ids := p.tok.Ordinary()
	if len(ids) == 0 {
		return nil, field.Errorf(path, value+"needs a tokenizer whose vocabulary is known, which %s is not: give [tokenizer] a tokenizer.json", p.tok.Name())
	}
	return ids, nil
}

// vocabulary returns the ids that prompts may be made of and the number of all
// ids, both without tokens that were added to the vocabulary, special or not.
// That number cannot be told from the ids: a vocabulary may end with special
// ones.
func (p promptBuilder) vocabulary(path, value string) (allowed []int32, size int, err error) {
	ids, err := p.ordinary(path, value)
	if err != nil {
		return nil, 0, err
	}
	tok, ok := p.tok.(interface{ VocabSize() int })
	if !ok {
		return nil, 0, field.Errorf(path, value+"needs the size of the vocabulary, which %s does not say", p.tok.Name())
	}
	size = tok.VocabSize()
	end, _ := slices.BinarySearch(ids, int32(size))
	if end == 0 {
		return nil, 0, field.Errorf(path, value+"needs an ordinary token, which the vocabulary of %s has not", p.tok.Name())
	}
	return ids[:end], size, nil
}

// specials returns how many tokens the tokenizer puts around a text.
func (p promptBuilder) specials() (int, error) {
	with, err := p.count("a", true)
	if err != nil {
		return 0, err
	}
	without, err := p.count("a", false)
	return with - without, err
}
