package workload

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"perflab/internal/stat"
)

// openRandom makes prompts of random words: a prefix that all share, then
// words that no other prompt has in that order. Unlike the consecutive token
// ids of other clients the words are common English ones, each one token, so
// the length survives any server's tokenizer nearly unchanged.
func openRandom(s Spec) source {
	in := stat.Stream(s.Seed, "random input length")
	out := stat.Stream(s.Seed, "random output length")
	src := source{rows: make([]row, s.NumPrompts)}
	for i := range src.rows {
		src.rows[i] = row{
			input:  s.RandomPrefixLen + around(in, s.RandomInputLen, s.RandomRangeRatio),
			output: around(out, s.RandomOutputLen, s.RandomRangeRatio),
		}
	}
	var b strings.Builder
	writeWords(&b, stat.Stream(s.Seed, "random prefix"), s.RandomPrefixLen)
	prefix := b.String()
	src.prompt = func(i int) string {
		n := src.rows[i].input - s.RandomPrefixLen
		var b strings.Builder
		b.Grow(len(prefix) + bytesFor(n))
		b.WriteString(prefix)
		writeWords(&b, stat.Stream(s.Seed, "prompt "+strconv.Itoa(i)), n)
		return trimSpace(&b)
	}
	return src
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
