package workload

import (
	"cmp"
	"slices"

	"perflab/internal/field"
)

// madeOfWords says whether the prompts are random words.
func (s Spec) madeOfWords() bool {
	switch s.Dataset {
	case "random":
		return s.RandomRNG == "" && !s.RandomIDs
	case "azure", "mooncake", "burstgpt", "prefix_repetition", "shared-prefix":
		return true
	}
	return false
}

// fillRandom writes the defaults of the random dataset. Texts that get no
// answer have no end to ignore.
func (s *Spec) fillRandom() {
	s.NumPrompts = cmp.Or(s.NumPrompts, 1000)
	if s.Scenario == "" {
		s.RandomInputLen = cmp.Or(s.RandomInputLen, 1024)
		s.RandomOutputLen = cmp.Or(s.RandomOutputLen, 128)
	}
	if sc, err := parseScenario(s.Scenario); err == nil && sc.documents() {
		s.RandomBatchSize = cmp.Or(s.RandomBatchSize, 1)
		return
	}
	s.IgnoreEOS = true
}

// madeLength is a whole number that belongs to one dataset that is made up.
type madeLength struct {
	path     string
	of       string // dataset
	value    *int
	standard int
	limit    int
}

// madeLengths are the numbers of the datasets that are made up, random aside.
func (s *Spec) madeLengths() []madeLength {
	return []madeLength{
		{"sonnet_input_len", "sonnet", &s.SonnetInputLen, 550, maxTokens},
		{"sonnet_output_len", "sonnet", &s.SonnetOutputLen, 150, maxTokens},
		{"sonnet_prefix_len", "sonnet", &s.SonnetPrefixLen, 200, maxTokens},
		{"prefix_repetition_prefix_len", "prefix_repetition", &s.PrefixRepetitionPrefixLen, 256, maxTokens / 2},
		{"prefix_repetition_suffix_len", "prefix_repetition", &s.PrefixRepetitionSuffixLen, 256, maxTokens / 2},
		{"prefix_repetition_num_prefixes", "prefix_repetition", &s.PrefixRepetitionNumPrefixes, 10, maxRequests},
		{"prefix_repetition_output_len", "prefix_repetition", &s.PrefixRepetitionOutputLen, 128, maxTokens},
		{"gsp_num_groups", "shared-prefix", &s.GSPNumGroups, 64, maxRequests},
		{"gsp_prompts_per_group", "shared-prefix", &s.GSPPromptsPerGroup, 16, maxRequests},
		{"gsp_system_prompt_len", "shared-prefix", &s.GSPSystemPromptLen, 2048, maxTokens / 2},
		{"gsp_question_len", "shared-prefix", &s.GSPQuestionLen, 128, maxTokens / 2},
		{"gsp_output_len", "shared-prefix", &s.GSPOutputLen, 256, maxTokens},
	}
}

// fillMade writes the defaults of a dataset that is made up. Prompts of words
// have no natural answer and ignore EOS; those of a poem have.
func (s *Spec) fillMade() {
	for _, l := range s.madeLengths() {
		if l.of == s.Dataset {
			*l.value = cmp.Or(*l.value, l.standard)
		}
	}
	switch s.Dataset {
	case "sonnet":
		s.NumPrompts = cmp.Or(s.NumPrompts, 1000)
	case "prefix_repetition":
		s.IgnoreEOS = true
		n := max(1, s.PrefixRepetitionNumPrefixes)
		s.NumPrompts = cmp.Or(s.NumPrompts, max(1, 1000/n)*n)
	case "shared-prefix":
		s.IgnoreEOS = true
		if s.GSPNumGroups <= maxRequests && s.GSPPromptsPerGroup <= maxRequests { // else it is refused
			s.NumPrompts = cmp.Or(s.NumPrompts, s.GSPNumGroups*s.GSPPromptsPerGroup)
		}
	}
}

// madeFaults names what is wrong with the fields of datasets that are made up
// and of tokens; d is s with its defaults.
func (s Spec) madeFaults(d Spec) (faults []error) {
	fault := func(path, format string, a ...any) { faults = append(faults, field.Errorf(path, format, a...)) }
	for _, l := range s.madeLengths() {
		switch v := *l.value; {
		case v == 0:
		case l.of != d.Dataset:
			fault(l.path, "applies to [dataset_name] %s, not %s", l.of, d.Dataset)
		case v < 0:
			fault(l.path, "%d must not be negative", v)
		case v > l.limit:
			fault(l.path, "%d is over the limit of %d", v, l.limit)
		}
	}
	if len(faults) > 0 {
		return faults
	}
	switch d.Dataset {
	case "random":
		return s.randomFaults(d)
	case "sharegpt":
		if !slices.Contains([]string{"vllm", "guidellm"}, d.ShareGPTFilter) {
			return append(faults, unknown("sharegpt_filter", d.ShareGPTFilter, []string{"vllm", "guidellm"}))
		}
		if d.ShareGPTFilter == "guidellm" && s.DisableShuffle {
			fault("disable_shuffle", "applies to [sharegpt_filter] vllm: guidellm keeps the file's order anyway")
		}
	case "sonnet":
		if d.SonnetPrefixLen >= d.SonnetInputLen {
			fault("sonnet_prefix_len", "%d must be below [sonnet_input_len] %d, of which it is a part", d.SonnetPrefixLen, d.SonnetInputLen)
		}
	case "prefix_repetition":
		if n := d.PrefixRepetitionNumPrefixes; d.NumPrompts > 0 && !d.timed() && d.NumPrompts%n != 0 {
			fault("num_prompts", "%d must be a multiple of [prefix_repetition_num_prefixes] %d, each of which has as many prompts: give %d", d.NumPrompts, n, max(1, d.NumPrompts/n)*n)
		}
	case "shared-prefix":
		if n := d.GSPNumGroups * d.GSPPromptsPerGroup; d.NumPrompts > 0 && !d.timed() && d.NumPrompts != n {
			fault("num_prompts", "%d is not the %d of %d groups with %d prompts each: change [gsp_num_groups] or [gsp_prompts_per_group] instead", d.NumPrompts, n, d.GSPNumGroups, d.GSPPromptsPerGroup)
		} else if n > maxRequests {
			fault("gsp_num_groups", "%d times [gsp_prompts_per_group] %d is over the limit of %d requests", d.GSPNumGroups, d.GSPPromptsPerGroup, maxRequests)
		}
	}
	return faults
}

// randomFaults names what cannot go together in the random dataset.
func (s Spec) randomFaults(d Spec) (faults []error) {
	fault := func(path, format string, a ...any) { faults = append(faults, field.Errorf(path, format, a...)) }
	if s.RandomRNG != "" && s.RandomRNG != "vllm" {
		return append(faults, unknown("random_rng", s.RandomRNG, []string{"vllm"}))
	}
	if s.Tokenizer == "" {
		if s.RandomRNG == "vllm" {
			fault("random_rng", "vllm needs [tokenizer]: vLLM's prompts are made of the ids of its model's tokenizer.json")
		} else if s.RandomIDs {
			fault("random_ids", "needs [tokenizer]: the ids are of the model's tokenizer.json")
		}
	} else if s.Tokenizer == ServerTokenizer && (s.RandomRNG != "" || s.RandomIDs) {
		fault("tokenizer", "server does not say which ids there are: [random_rng] vllm and [random_ids] need the model's tokenizer.json")
	}
	if s.Scenario == "" {
		if s.RandomBatchSize != 0 {
			fault("random_batch_size", "applies to [scenario] E(...) and R(...), whose requests have several texts")
		}
		return faults
	}
	for _, f := range []struct {
		path string
		set  bool
	}{
		{"random_input_len", s.RandomInputLen != 0},
		{"random_output_len", s.RandomOutputLen != 0},
		{"random_range_ratio", s.RandomRangeRatio != 0},
		{"random_rng", s.RandomRNG != ""},
	} {
		if f.set {
			fault(f.path, "does not apply with [scenario], which says the lengths")
		}
	}
	sc, err := parseScenario(s.Scenario)
	switch {
	case err != nil:
		faults = append(faults, err)
	case !sc.documents() && s.RandomBatchSize != 0:
		fault("random_batch_size", "applies to [scenario] E(...) and R(...), not %s", s.Scenario)
	case sc.documents() && s.IgnoreEOS:
		fault("ignore_eos", "does not apply with [scenario] %s, whose requests get no answer", s.Scenario)
	case sc.documents() && s.RandomPrefixLen != 0:
		fault("random_prefix_len", "does not apply with [scenario] %s, whose texts share nothing", s.Scenario)
	case sc.documents() && s.RandomIDs:
		fault("random_ids", "does not apply with [scenario] %s, whose requests are texts", s.Scenario)
	}
	return faults
}
