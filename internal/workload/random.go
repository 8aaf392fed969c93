package workload

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"perflab/internal/field"
	"perflab/internal/stat"
)

// openRandom makes prompts of random words: a prefix that all share, then
// words that no other prompt has in that order. Unlike the consecutive token
// ids of other clients the words are common English ones, each one token, so
// the length survives any server's tokenizer nearly unchanged.
func openRandom(s Spec, k promptBuilder) (source, error) {
	if s.RandomRNG == "vllm" {
		return openVLLMRandom(s, k)
	}
	var sc scenario
	if s.Scenario != "" {
		var err error
		if sc, err = parseScenario(s.Scenario); err != nil {
			return source{}, err
		}
	}
	src := randomLengths(s, sc)
	if s.RandomIDs {
		return randomIDs(s, k, src)
	}
	var b strings.Builder
	k.writeWords(&b, stat.Stream(s.Seed, "random prefix"), s.RandomPrefixLen)
	prefix := b.String()
	own := func(i int) int { return src.rows[i].input - s.RandomPrefixLen }
	if sc.documents() {
		own = func(int) int { return sc.prompt() }
		if n := sc.beside(s.RandomBatchSize); n > 0 {
			src.fill = func(i int, r *Request) { r.Documents = k.documents(s, i, n, sc.in[0]) }
		}
	}
	src.prompt = func(i int) string {
		n := own(i)
		var b strings.Builder
		b.Grow(len(prefix) + bytesFor(n))
		b.WriteString(prefix)
		k.writeWords(&b, promptStream(s.Seed, i), n)
		return trimSpace(&b)
	}
	return src, nil
}

// randomLengths draws the lengths of all requests, by the scenario if its kind
// is set.
func randomLengths(s Spec, sc scenario) source {
	in := stat.Stream(s.Seed, "random input length")
	out := stat.Stream(s.Seed, "random output length")
	src := source{rows: make([]row, s.NumPrompts)}
	for i := range src.rows {
		var r row
		if sc.kind != 0 {
			r = sc.draw(in, out, s.RandomBatchSize)
		} else {
			r.input = around(in, s.RandomInputLen, s.RandomRangeRatio)
			r.output = around(out, s.RandomOutputLen, s.RandomRangeRatio)
		}
		r.input += s.RandomPrefixLen
		src.rows[i] = r
	}
	return src
}

// documents returns the texts that stand beside the prompt of request i, each
// of n words of its own.
func (k promptBuilder) documents(s Spec, i, count, n int) []string {
	rng := stat.Stream(s.Seed, "documents "+strconv.Itoa(i))
	out := make([]string, count)
	for d := range out {
		var b strings.Builder
		b.Grow(bytesFor(n))
		k.writeWords(&b, rng, n)
		out[d] = trimSpace(&b)
	}
	return out
}

// randomIDs makes prompts of token ids drawn evenly from the vocabulary, with
// no text whose tokens a server could count otherwise.
func randomIDs(s Spec, k promptBuilder, src source) (source, error) {
	allowed, err := k.ordinary("random_ids", "")
	if err != nil {
		return source{}, err
	}
	fill := func(dst []int32, rng *rand.Rand, n int) []int32 {
		for range n {
			dst = append(dst, allowed[rng.IntN(len(allowed))])
		}
		return dst
	}
	prefix := fill(nil, stat.Stream(s.Seed, "random prefix"), s.RandomPrefixLen)
	return src.ofIDs(func(i int) []int32 {
		n := src.rows[i].input
		ids := append(make([]int32, 0, n), prefix...)
		return fill(ids, promptStream(s.Seed, i), n-len(prefix))
	}), nil
}

// ofIDs returns the source with ids in place of prompts.
func (src source) ofIDs(ids func(i int) []int32) source {
	src.ids = true
	src.prompt = func(int) string { return "" }
	src.fill = func(i int, r *Request) { r.IDs = ids(i) }
	return src
}

// ordinary returns the ids that prompts may be made of.
func (k promptBuilder) ordinary(path, value string) ([]int32, error) {
	if k.tok == nil {
		return nil, field.Errorf(path, value+"needs a tokenizer, whose ids it sends: give [tokenizer] a tokenizer.json")
	}
	ids := k.tok.Ordinary()
	if len(ids) == 0 {
		return nil, field.Errorf(path, value+"needs a tokenizer whose vocabulary is known, which %s is not: give [tokenizer] a tokenizer.json", k.tok.Name())
	}
	return ids, nil
}

// lengthRange returns the bounds [floor(L(1-r)), ceil(L(1+r))], at least 1.
func lengthRange(length int, ratio float64) (lo, hi int) {
	l := float64(length)
	return max(1, int(math.Floor(l*(1-ratio)))), max(1, int(math.Ceil(l*(1+ratio))))
}

// around draws a length uniformly from its range.
func around(rng *rand.Rand, length int, ratio float64) int {
	lo, hi := lengthRange(length, ratio)
	return lo + rng.IntN(hi-lo+1)
}
