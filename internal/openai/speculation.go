package openai

import (
	"math"
	"strconv"

	"perflab/internal/result"
)

// Engines tell what came of the guesses for one request each in an object and under names
// of their own:
//
//	vLLM          metrics.speculative_decoding of the chunk with usage, with
//	              --per-request-spec-decode-metrics summary or detailed (0.29 on)
//	SGLang        meta_info of the last event of /generate; of the OpenAI calls
//	              sglext.spec_tokens_details, where the request has return_spec_tokens_details
//	llama.cpp     timings, without the steps
//	TensorRT-LLM  avg_decoded_tokens_per_iter of a choice, with speculation and without
//
// Newer versions of SGLang write some counts under two names.

// mostByStep is how many counts by step are kept: who guesses more tokens at a time?
const mostByStep = 1 << 10

// guessObject reads such an object.
func guessObject(s *scanner) bool {
	s.guesses = result.Speculation{}
	return s.fields(guessField)
}

// guessField reads a field of one.
func guessField(s *scanner, key []byte) bool {
	g := &s.guesses
	switch string(key) {
	case "num_spec_steps", "spec_verify_ct":
		return s.count(&g.Steps, nil)
	case "num_draft_tokens", "spec_num_proposed_drafts", "spec_proposed_drafts", "spec_draft_token_num", "draft_n":
		return s.count(&g.Drafted, nil)
	case "num_accepted_draft_tokens", "spec_num_correct_drafts", "spec_accepted_drafts", "spec_accept_token_num", "draft_n_accepted":
		return s.count(&g.Accepted, &s.c.guessed)
	case "acceptance_histogram", "spec_correct_drafts_histogram", "spec_accept_histogram":
		s.byStep = s.byStep[:0]
		ok := s.list(guessCount)
		g.ByStep = s.byStep
		return ok
	}
	return s.skip()
}

// guessCount reads how many steps accepted so many guesses. What is no count is kept as
// -1, which no figure is made of.
func guessCount(s *scanner) bool {
	n := -1
	ok := s.count(&n, nil)
	if len(s.byStep) < mostByStep {
		s.byStep = append(s.byStep, int32(n))
	}
	return ok
}

// chatMetrics reads the object in which vLLM says what a request took.
func chatMetrics(s *scanner, key []byte) bool {
	if string(key) == "speculative_decoding" {
		return guessObject(s)
	}
	return s.skip()
}

// chatExtension reads the object of what SGLang adds to the API.
func chatExtension(s *scanner, key []byte) bool {
	if string(key) == "spec_tokens_details" {
		return guessObject(s)
	}
	return s.skip()
}

// mostDigits is more than a mean is written with.
const mostDigits = 32

// meanTokens keeps the mean of tokens that a pass yielded so far, as it is written.
func (s *scanner) meanTokens() bool {
	from := s.i
	ok := s.skip()
	if s.i-from <= mostDigits {
		s.state.mean = append(s.state.mean[:0], s.b[from:s.i]...)
	}
	return ok
}

// speculation is what the server told of the guesses for the request; nil for nothing.
func (s *stream) speculation() *result.Speculation {
	if s.guessed {
		g := s.guesses // a copy, as of usage
		return &g
	}
	if s.used {
		return passes(s.usage.Completion, s.scan.state.mean)
	}
	return nil
}

// passes is what a mean of tokens a pass says, which counts the pass of the prompt and its
// token: of the others each yields the model's own token and those accepted. The mean is
// of so many tokens only if a whole number of passes gives it.
func passes(tokens int, mean []byte) *result.Speculation {
	v, err := strconv.ParseFloat(string(mean), 64)
	if err != nil || !(v >= 1) || tokens < 1 {
		return nil
	}
	n := math.Round(float64(tokens) / v)
	if n < 1 || math.Abs(n*v-float64(tokens)) > 0.25 {
		return nil
	}
	return &result.Speculation{Steps: int(n) - 1, Accepted: tokens - int(n)}
}
