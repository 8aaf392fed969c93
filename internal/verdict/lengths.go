package verdict

import (
	"fmt"
	"math"

	"perflab/internal/result"
)

// Shares by which the work may differ from what was asked for.
const (
	// outputVoid is the share of the output tokens that may be missing where the server
	// was told to generate all of them. E2E latency, the tokens in the KV cache and the
	// calls in flight follow the length of answers in proportion; a tenth is twice the
	// 5 % that comparisons are usually made to find.
	outputVoid = 0.10
	// promptSlack is the share by which the server's count of the prompts may differ
	// from the workload's: vocabularies differ by some percent in prose.
	promptSlack = 0.10
	// promptVoid is the share of the prompts' tokens that may be missing: no vocabulary in
	// use joins a quarter of words that are one token each, so prompts were cut or lost.
	promptVoid = 0.25
	// promptTwice is by how much the prompts may be longer: a vocabulary that
	// splits words adds a third.
	promptTwice = 1.0
)

// judgeLengths compares the work that was done with the work that was asked for.
func judgeLengths(a *result.Analysis) (result.Status, string) {
	l := a.Asked
	if a.Pooling() {
		l = result.AskedLengths{Planned: l.Planned, Counted: l.Counted, Fewer: l.Fewer, More: l.More}
	}
	if l.Wanted == 0 && l.Planned == 0 {
		return notJudged("no lengths were asked for and the server counted none")
	}
	status, text := judgeOutput(l, a.Header.Lengths)
	s, prompts := judgeInput(l, a.Header.KnownInput)
	if s.WorseThan(status) {
		status, text = s, prompts
	} else if s != result.Sound && s == status {
		text += "; " + prompts
	}
	if text != "" {
		text += ": "
	}
	return status, fmt.Sprintf("%s%d of %d output tokens asked for, %d prompt tokens by usage of %d by the workload", text, l.Generated, l.Wanted, l.Counted, l.Planned)
}

// judgeOutput judges the answers. Fewer tokens are the server's right unless it was
// told to ignore the end of the text: then the work is not what was asked for. More
// than max_tokens never are.
func judgeOutput(l result.AskedLengths, asked string) (result.Status, string) {
	share := float64(l.Missing) / float64(max(1, l.Wanted))
	slack := tokenSlack
	if l.ByText > 0 {
		slack = textSlack
	}
	switch {
	case asked == result.LengthsExact && share > slack:
		text := fmt.Sprintf("not the work that was asked for, %d calls have fewer output tokens than the server was told to generate (ignore_eos), %.1f %% of all are missing%s", l.Short, 100*share, whyShort(l))
		if share > outputVoid {
			return result.Voided, text
		}
		return result.Noted, text
	case l.Over > 0:
		return result.Noted, fmt.Sprintf("%d calls got more tokens than max_tokens allows", l.Over)
	case asked == result.LengthsFixed && share > slack:
		return result.Noted, fmt.Sprintf("not the work that was planned, %d answers ended before their length, %.1f %% of the output tokens are missing; this API cannot be told to go on", l.Short, 100*share)
	case share > slack:
		return result.Remark, fmt.Sprintf("%d calls ended before the tokens asked for, another server may do another amount of work", l.Short)
	}
	return result.Sound, ""
}

// whyShort says what is known of short answers.
func whyShort(l result.AskedLengths) string {
	switch {
	case l.ByChunks > 0:
		return fmt.Sprintf("; the tokens of %d were counted in the stream, one a chunk, and a chunk may carry several", l.ByChunks)
	case l.Stopped > 0:
		return fmt.Sprintf("; the server ended %d of them with finish_reason stop", l.Stopped)
	}
	return ""
}

// judgeInput judges the prompts. Where their lengths are estimates, as of a file's
// texts without the model's tokenizer, a difference is a remark on the estimate.
func judgeInput(l result.AskedLengths, known bool) (result.Status, string) {
	planned := float64(max(1, l.Planned))
	fewer, more := float64(l.Fewer)/planned, float64(l.More)/planned
	switch {
	case known && (fewer > promptVoid || more > promptTwice):
		return result.Voided, fmt.Sprintf("not the prompts that were planned, by usage they have %s", apart(fewer, more))
	case known && max(fewer, more) > promptSlack:
		return result.Noted, fmt.Sprintf("not the prompts that were planned, by usage they have %s: another vocabulary, or prompts were changed", apart(fewer, more))
	case !known && math.Abs(float64(l.Counted-l.Planned)) > promptSlack*planned:
		return result.Remark, "the server's tokenizer makes other prompts than the workload planned"
	}
	return result.Sound, ""
}

// apart says by which share prompts are shorter or longer.
func apart(fewer, more float64) string {
	if fewer > more {
		return fmt.Sprintf("%.1f %% fewer tokens", 100*fewer)
	}
	return fmt.Sprintf("%.1f %% more tokens than template and plan", 100*more)
}
