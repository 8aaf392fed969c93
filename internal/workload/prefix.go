package workload

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/reuse"
	"perflab/internal/stat"
)

// prefixRepetition is vLLM's dataset of a few prefixes, each repeated.
func prefixRepetition() dataset {
	return dataset{
		name: "prefix_repetition", group: groupMadeUp,
		params: []param{
			groupByGroup,
			{key: "prefix_repetition_prefix_len", help: "tokens of a shared prefix", standard: 256, limit: maxTokens / 2},
			{key: "prefix_repetition_suffix_len", help: "tokens of a prompt behind its prefix", standard: 256, limit: maxTokens / 2},
			{key: "prefix_repetition_num_prefixes", help: "different prefixes, each for as many prompts", standard: 10, limit: maxRequests},
			{key: "prefix_repetition_output_len", help: "output tokens", standard: 128},
		},
		fill: func(s *Spec) {
			s.IgnoreEOS = true
			n := max(1, s.PrefixRepetitionNumPrefixes)
			s.NumPrompts = cmp.Or(s.NumPrompts, max(1, 1000/n)*n)
		},
		size: func(s *Spec, n int) {
			s.NumPrompts = roundUp(n, s.PrefixRepetitionNumPrefixes)
		},
		check: func(_, d Spec, f *faults) {
			if n := d.PrefixRepetitionNumPrefixes; d.NumPrompts > 0 && !d.timed() && d.NumPrompts%n != 0 {
				f.add("num_prompts", "%d must be a multiple of [prefix_repetition_num_prefixes] %d, each of which has as many prompts: give %d",
					d.NumPrompts, n, max(1, d.NumPrompts/n)*n)
			}
		},
		open: openPrefixRepetition, isMadeUp: withoutFile, ofWords: always, shares: always,
		title: func(Spec) string { return "Prefix repetition dataset" },
		lengths: func(s Spec) string {
			return fmt.Sprintf("%d prefixes of %d tokens, %d further input tokens, %d output tokens",
				s.PrefixRepetitionNumPrefixes, s.PrefixRepetitionPrefixLen, s.PrefixRepetitionSuffixLen, s.PrefixRepetitionOutputLen)
		},
	}
}

// sharedPrefix is SGLang's dataset of groups behind long system prompts.
func sharedPrefix() dataset {
	return dataset{
		name: "shared-prefix", group: groupMadeUp,
		params: []param{
			groupByGroup,
			{key: "gsp_num_groups", help: "groups of prompts that share a prefix", standard: 64, limit: maxRequests},
			{key: "gsp_prompts_per_group", help: "prompts of a group", standard: 16, limit: maxRequests},
			{key: "gsp_system_prompt_len", help: "tokens that a group shares", standard: 2048, limit: maxTokens / 2},
			{key: "gsp_question_len", help: "tokens of a prompt alone", standard: 128, limit: maxTokens / 2},
			{key: "gsp_output_len", help: "output tokens", standard: 256},
			{key: "gsp_zipf_alpha", help: "prompts go to group g, counted from 1, in proportion to g^-alpha (default: to all alike)", positive: true},
		},
		fill: func(s *Spec) {
			s.IgnoreEOS = true
			if s.GSPNumGroups <= maxRequests && s.GSPPromptsPerGroup <= maxRequests { // else it is refused
				s.NumPrompts = cmp.Or(s.NumPrompts, s.GSPNumGroups*s.GSPPromptsPerGroup)
			}
		},
		size: func(s *Spec, n int) { // another number in each group would share more or less
			s.NumPrompts = roundUp(n, s.GSPPromptsPerGroup)
			s.GSPNumGroups = s.NumPrompts / s.GSPPromptsPerGroup
		},
		check: checkSharedPrefix,
		open:  openSharedPrefix, isMadeUp: withoutFile, ofWords: always, shares: always,
		title: func(Spec) string { return "Shared prefix dataset" },
		lengths: func(s Spec) string {
			text := fmt.Sprintf("%d groups that share %d input tokens", s.GSPNumGroups, s.GSPSystemPromptLen)
			if s.GSPZipfAlpha > 0 {
				text += fmt.Sprintf(" (Zipf, exponent %g)", s.GSPZipfAlpha)
			}
			return text + fmt.Sprintf(", %d further ones, %d output tokens", s.GSPQuestionLen, s.GSPOutputLen)
		},
	}
}

func checkSharedPrefix(_, d Spec, f *faults) {
	f.finite("gsp_zipf_alpha", d.GSPZipfAlpha)
	if n := d.GSPNumGroups * d.GSPPromptsPerGroup; d.NumPrompts > 0 && !d.timed() && d.NumPrompts != n {
		f.add("num_prompts", "%d is not the %d of %d groups with %d prompts each: change [gsp_num_groups] or [gsp_prompts_per_group] instead",
			d.NumPrompts, n, d.GSPNumGroups, d.GSPPromptsPerGroup)
	} else if n > maxRequests {
		f.add("gsp_num_groups", "%d times [gsp_prompts_per_group] %d is over the limit of %d requests", d.GSPNumGroups, d.GSPPromptsPerGroup, maxRequests)
	}
}

// roundUp is the least multiple of a unit that is n or more.
func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }

// openPrefixRepetition makes prompts that begin with one of a few prefixes,
// each as often as any other, in random order.
func openPrefixRepetition(s Spec, p promptBuilder) (source, error) {
	group := evenGroups(s, s.PrefixRepetitionNumPrefixes)
	r := row{input: s.PrefixRepetitionPrefixLen + s.PrefixRepetitionSuffixLen, output: s.PrefixRepetitionOutputLen}
	return grouped(s, p, r, s.PrefixRepetitionPrefixLen, group), nil
}

// openSharedPrefix makes prompts of groups that share a long prefix, as a
// system prompt or a document is shared, each with a question of its own, in
// random order. With an exponent a the prompts go to groups at random instead
// of evenly: to group g, counted from 1, in proportion to g^-a.
func openSharedPrefix(s Spec, p promptBuilder) (source, error) {
	group := evenGroups(s, s.GSPNumGroups)
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
	return grouped(s, p, r, s.GSPSystemPromptLen, group), nil
}

// evenGroups gives each of n groups as many of the requests as any other. Where
// time decides how many there are, each request draws its group by itself, or
// unshuffled takes the next one: no later request then changes an earlier one.
func evenGroups(s Spec, n int) (group func(i int) int) {
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
func grouped(s Spec, p promptBuilder, r row, shared int, group func(i int) int) source {
	src := source{rows: slices.Repeat([]row{r}, s.NumPrompts)}
	src.shared = func(i int) []reuse.Piece {
		return []reuse.Piece{{ID: reuse.Name("prefix", int64(group(i))), Tokens: shared}}
	}
	src.prompt = func(i int) string {
		var b strings.Builder
		b.Grow(bytesFor(r.input))
		p.writeWords(&b, stat.Stream(s.Seed, "prefix "+strconv.Itoa(group(i))), shared)
		p.writeWords(&b, promptStream(s.Seed, i), r.input-shared)
		return trimSpace(&b)
	}
	return src
}
