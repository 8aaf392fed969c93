package verdict

import (
	"cmp"
	"fmt"
	"math"

	"perflab/internal/result"
)

// tokenSlack is the share by which counted tokens may differ from usage before
// it is worth a word.
const tokenSlack = 0.01

// textSlack is the share by which the run's tokenizer may differ from n: what
// was made token by token need not be the text's own tokens, and special ones
// are not in it.
const textSlack = 0.05

// percentOff writes how far a count is from another, in percent.
func percentOff(count, from int) string {
	return fmt.Sprintf("%+.1f %%", 100*(float64(count)/float64(max(1, from))-1))
}

// countedText says how the counts compare.
func countedText(t result.TokenCounts) string {
	inStream := t.Usage + t.Over - t.Under
	text := fmt.Sprintf("%d counted in the stream, %d by usage", inStream, t.Usage)
	if inStream != t.Usage {
		text += fmt.Sprintf(" (stream %s)", percentOff(inStream, t.Usage))
	}
	return text + recountText(t)
}

// recountText says what the run's tokenizer made of the text.
func recountText(t result.TokenCounts) string {
	if t.WithText == 0 {
		return ""
	}
	return fmt.Sprintf(", %d by the tokenizer in the text of %d calls (%s)", t.Text, t.WithText, percentOff(t.Text, t.TextOutput))
}

// judgeTokens says who counted the output tokens and reconciles the counts,
// those of stream and usage call by call, so that errors in both directions do
// not cancel. The server's count is the larger when a chunk carries several
// tokens (speculation, a stream interval) or when tokens are not streamed at
// all (hidden reasoning): n is right, and inter-token latencies are per chunk.
// It cannot be the smaller by more than a stray flush: then chunks that are no
// tokens were counted, TTFT may be theirs, and the run is void.
func judgeTokens(a *result.Analysis) (result.Status, string) {
	if a.Pooling() {
		return judgePrompts(a)
	}
	t := a.Counted
	if t.WithUsage == 0 {
		return judgeWithoutUsage(a, t)
	}
	counted := countedText(t)
	switch {
	case float64(t.Over) > tokenSlack*float64(t.Usage):
		return result.Voided, fmt.Sprintf("more tokens streamed than the server says it made: %s", counted)
	case t.OneRead > 0:
		return result.Noted, fmt.Sprintf("%d of %d calls got all their tokens in one read: their TTFT is their end, they have no TPOT or ITL (%s)", t.OneRead, a.Completed, counted)
	case float64(t.Under) > tokenSlack*float64(t.Usage):
		text := fmt.Sprintf("a chunk carries %.2f tokens on average (%s): ITL is per chunk, TPOT per token",
			float64(t.Usage)/float64(max(1, t.Usage+t.Over-t.Under)), counted)
		if t.Reasoning > 0 {
			text += fmt.Sprintf("; %d of the tokens were reasoning, which the server may not stream", t.Reasoning)
		}
		return result.Noted, text
	case t.WithUsage < a.Completed:
		return result.Noted, fmt.Sprintf("usage came with %d of %d calls (%s); the others' tokens were counted %s", t.WithUsage, a.Completed, counted, otherSource(a))
	case t.Over > 0:
		return result.Noted, fmt.Sprintf("%d chunks more than tokens (%s)", t.Over, counted)
	}
	if off := t.Text - t.TextOutput; math.Abs(float64(off)) > textSlack*float64(t.TextOutput) {
		return result.Remark, "the tokenizer counts other tokens in the text than the server made, as when it is another model's or text was not kept: " + counted
	}
	return result.Sound, "output tokens by usage: " + counted
}

// judgeWithoutUsage judges the count where no call has usage.
func judgeWithoutUsage(a *result.Analysis, t result.TokenCounts) (result.Status, string) {
	switch {
	case a.Header.Predicted:
		return result.Sound, fmt.Sprintf("%d output tokens predicted", a.OutputTokens)
	case t.WithText > 0:
		return result.Noted, fmt.Sprintf("the server sent no usable usage: %d output tokens were counted %s, %d in the stream (%s)",
			a.OutputTokens, otherSource(a), t.Streamed, percentOff(t.Streamed, a.OutputTokens))
	}
	return result.Noted, fmt.Sprintf("the server sent no usable usage: %d output tokens were counted in the stream, one a chunk", a.OutputTokens)
}

// otherSource says who counted the tokens of calls without usage.
func otherSource(a *result.Analysis) string {
	text, chunks := a.Counted.ByText > 0, a.Counted.ByChunks > 0
	by := "by the tokenizer " + cmp.Or(a.Header.Tokenizer, "of the run")
	switch {
	case text && chunks:
		return by + " in the text, and for calls without text in the stream"
	case text:
		return by + " in the text"
	}
	return "in the stream"
}

// judgeCounts notes the calls whose count of tokens is broken.
func judgeCounts(a *result.Analysis) (result.Status, string) {
	if a.BadCounts == 0 {
		return result.Sound, "every count of tokens is plausible"
	}
	return result.Noted, fmt.Sprintf("%d calls report impossible counts of tokens: more than %d, more than %d in the prompt, or fewer than 0 (the first is call %d); their counts are ignored and each of their chunks counts as one token",
		a.BadCounts, result.MaxCallTokens, result.MaxPromptTokens, a.FirstBadCount)
}

// judgeCache says what state the server's prefix cache was in: prompts that it
// does not have to compute make a run look faster than the engine is. Prompts
// that were meant to be new to the server and were not are worth a note;
// without a policy, hits are worth a remark.
func judgeCache(a *result.Analysis) (result.Status, string) {
	const share, meant = 0.01, 0.05 // of the prompt tokens; a chat template alone is less
	hit := float64(a.CachedTokens) / float64(max(1, a.InputTokens))
	text := fmt.Sprintf("%d of %d prompt tokens (%.1f %%) came from the server's prefix cache, as far as its usage tells", a.CachedTokens, a.InputTokens, 100*hit)
	if u := cacheUse(a); u != nil {
		found := u.Hits / max(1, u.Queries)
		text += fmt.Sprintf("; by %s %.0f of %.0f (%.1f %%)", cmp.Or(u.From, "its counters"), u.Hits, u.Queries, 100*found)
		hit = max(hit, found)
	}
	if hit > 1 {
		return result.Noted, "more of the prompts came from the cache than they have tokens, so the counts are wrong: " + text
	}
	switch a.Header.Cache {
	case result.CacheUnique:
		if hit > meant && a.Header.Sharing {
			return result.Remark, "the workload shares prefixes within the run: " + text
		}
		if hit > meant {
			return result.Noted, "the prompts were to be new to the server (cache unique) and were not: " + text
		}
		return result.Sound, "prompts new to the server (cache unique): " + text
	case result.CacheReset:
		if u := cacheUse(a); u != nil && !u.Reset {
			return result.Noted, "the prefix cache was to be emptied before the run (cache reset) and was not: " + text
		}
		return result.Sound, "prefix cache emptied before the run (cache reset): " + text
	case result.CacheWarm, result.CacheShared:
		status := result.Sound
		if hit > share {
			status = result.Remark
		}
		return status, fmt.Sprintf("hits are part of the workload (cache %s): %s", a.Header.Cache, text)
	}
	if hit > share {
		return result.Remark, text + ": if the workload shares no prefixes, use another seed than the last run"
	}
	return result.Sound, text
}

func cacheUse(a *result.Analysis) *result.CacheUse {
	if a.Client == nil {
		return nil
	}
	return a.Client.Cache
}

// judgePrompts says who counted the prompts where nothing is generated.
func judgePrompts(a *result.Analysis) (result.Status, string) {
	text := fmt.Sprintf("nothing is generated: %d whole answers to %d input tokens", a.Completed, a.InputTokens)
	if counted := a.InputByUsage; counted < a.Completed {
		return result.Noted, fmt.Sprintf("%s, of which the server counted those of %d calls and the workload the others'", text, counted)
	}
	return result.Sound, text
}
