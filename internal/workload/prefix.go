package workload

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/stat"
)

// openPrefixRepetition makes prompts that begin with one of a few prefixes,
// each as often as any other, in random order.
func openPrefixRepetition(s Spec, k promptBuilder) source {
	group := s.evenGroups(s.PrefixRepetitionNumPrefixes)
	r := row{input: s.PrefixRepetitionPrefixLen + s.PrefixRepetitionSuffixLen, output: s.PrefixRepetitionOutputLen}
	return grouped(s, k, r, s.PrefixRepetitionPrefixLen, group)
}

// openSharedPrefix makes prompts of groups that share a long prefix, as a
// system prompt or a document is shared, each with a question of its own, in
// random order. With an exponent a the prompts go to groups at random instead
// of evenly: to group g, counted from 1, in proportion to g^-a.
func openSharedPrefix(s Spec, k promptBuilder) source {
	group := s.evenGroups(s.GSPNumGroups)
	if s.GSPZipfAlpha > 0 {
		below := make([]float64, s.GSPNumGroups) // cumulated weights
		total := 0.0
		for g := range below {
			total += math.Pow(float64(g+1), -s.GSPZipfAlpha)
			below[g] = total
		}
		rng := stat.Stream(s.Seed, "shared prefix group")
		of := make([]int, s.NumPrompts)
		for i := range of {
			of[i], _ = slices.BinarySearch(below, rng.Float64()*total)
			of[i] = min(of[i], len(below)-1)
		}
		group = func(i int) int { return of[i] }
	}
	r := row{input: s.GSPSystemPromptLen + s.GSPQuestionLen, output: s.GSPOutputLen}
	return grouped(s, k, r, s.GSPSystemPromptLen, group)
}

// evenGroups gives each of n groups as many of the requests as any other. Where
// time decides how many there are, each request draws its group by itself, or
// unshuffled takes the next one: no later request then changes an earlier one.
func (s Spec) evenGroups(n int) (group func(i int) int) {
	switch {
	case !s.timed():
		order, per := shuffled(s, s.NumPrompts), s.NumPrompts/n
		return func(i int) int { return order[i] / per }
	case s.DisableShuffle:
		return func(i int) int { return i % n }
	}
	rng := stat.Stream(s.Seed, "group")
	of := make([]int, s.NumPrompts)
	for i := range of {
		of[i] = rng.IntN(n)
	}
	return func(i int) int { return of[i] }
}

// grouped returns prompts of one length, of which the first words are those of
// the request's group.
func grouped(s Spec, k promptBuilder, r row, shared int, group func(i int) int) source {
	src := source{rows: slices.Repeat([]row{r}, s.NumPrompts)}
	src.prompt = func(i int) string {
		var b strings.Builder
		b.Grow(bytesFor(r.input))
		k.writeWords(&b, stat.Stream(s.Seed, "prefix "+strconv.Itoa(group(i))), shared)
		k.writeWords(&b, promptStream(s.Seed, i), r.input-shared)
		return trimSpace(&b)
	}
	return src
}

// Sized returns the spec with n requests at least, as few as its dataset comes
// in: the same number for each prefix, or whole groups.
func (s Spec) Sized(n int) Spec {
	s = s.Defaults()
	s.NumPrompts = n
	up := func(n, unit int) int { return (n + unit - 1) / unit }
	switch {
	case s.timed():
	case s.Dataset == "prefix_repetition":
		s.NumPrompts = s.PrefixRepetitionNumPrefixes * up(n, s.PrefixRepetitionNumPrefixes)
	case s.Dataset == "shared-prefix": // another number in each group would share more or less
		s.GSPNumGroups = up(n, s.GSPPromptsPerGroup)
		s.NumPrompts = s.GSPNumGroups * s.GSPPromptsPerGroup
	}
	return s
}

// describePrefixes says how the prompts of these datasets are made.
func (s Spec) describePrefixes() string {
	if s.Dataset == "prefix_repetition" {
		return fmt.Sprintf("%d prefixes of %d tokens, %d further input tokens, %d output tokens",
			s.PrefixRepetitionNumPrefixes, s.PrefixRepetitionPrefixLen, s.PrefixRepetitionSuffixLen, s.PrefixRepetitionOutputLen)
	}
	text := fmt.Sprintf("%d groups that share %d input tokens", s.GSPNumGroups, s.GSPSystemPromptLen)
	if s.GSPZipfAlpha > 0 {
		text += fmt.Sprintf(" (Zipf, exponent %g)", s.GSPZipfAlpha)
	}
	return text + fmt.Sprintf(", %d further ones, %d output tokens", s.GSPQuestionLen, s.GSPOutputLen)
}
