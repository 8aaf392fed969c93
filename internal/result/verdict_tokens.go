package result

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// tokenSlack is the share by which counted tokens may differ from usage before
// it is worth a word.
const tokenSlack = 0.01

// textSlack is the share by which the run's tokenizer may differ from n: what
// was made token by token need not be the text's own tokens, and special ones
// are not in it.
const textSlack = 0.05

// tally is the output tokens of a run by who counted them.
type tally struct {
	told, usage, reasoning int // calls with usage, its tokens
	over, under            int // of those calls, by how much the stream exceeds usage and falls short of it, call by call
	streamed               int // counted in the stream, over all calls
	recounted, text        int // calls with a recount, its tokens
	stream                 int // of the calls with a recount, n by usage or stream
	whole                  int // calls of several tokens that came in one read
}

func (r *run) tally() tally {
	var t tally
	for _, c := range r.ok {
		n, from := c.Output()
		if _, later := c.opening(); n > 1 && !later {
			t.whole++
		}
		counted := c.Counted()
		t.streamed += counted
		if c.Recount > 0 {
			t.recounted++
			t.text += c.Recount
			if from == FromUsage {
				t.stream += n
			} else {
				t.stream += counted
			}
		}
		if from != FromUsage {
			continue
		}
		t.told++
		t.usage += n
		t.reasoning += c.Usage.Reasoning
		t.over += max(0, counted-n)
		t.under += max(0, n-counted)
	}
	return t
}

// off writes how far a count is from another, in percent.
func off(count, from int) string {
	return fmt.Sprintf("%+.1f %%", 100*(float64(count)/float64(max(1, from))-1))
}

// counted says how the counts compare.
func (t tally) counted() string {
	inStream := t.usage + t.over - t.under
	text := fmt.Sprintf("%d counted in the stream, %d by usage", inStream, t.usage)
	if inStream != t.usage {
		text += fmt.Sprintf(" (stream %s)", off(inStream, t.usage))
	}
	return text + t.recount()
}

// recount says what the run's tokenizer made of the text.
func (t tally) recount() string {
	if t.recounted == 0 {
		return ""
	}
	return fmt.Sprintf(", %d by the tokenizer in the text of %d calls (%s)", t.text, t.recounted, off(t.text, t.stream))
}

// judgeTokens says who counted the output tokens and reconciles the counts,
// those of stream and usage call by call, so that errors in both directions do
// not cancel. The server's count is the larger when a chunk carries several
// tokens (speculation, a stream interval) or when tokens are not streamed at
// all (hidden reasoning): n is right, and inter-token latencies are per chunk.
// It cannot be the smaller by more than a stray flush: then chunks that are no
// tokens were counted, TTFT may be theirs, and the run is void.
func (r *run) judgeTokens() (Status, string) {
	if r.pooled() {
		return r.judgePrompts()
	}
	t := r.tally()
	if t.told == 0 {
		return r.judgeUntold(t)
	}
	counted := t.counted()
	switch {
	case float64(t.over) > tokenSlack*float64(t.usage):
		return Voided, fmt.Sprintf("more tokens streamed than the server says it made: %s", counted)
	case t.whole > 0:
		return Noted, fmt.Sprintf("%d of %d calls got all their tokens in one read: their TTFT is their end, they have no TPOT or ITL (%s)", t.whole, len(r.ok), counted)
	case float64(t.under) > tokenSlack*float64(t.usage):
		text := fmt.Sprintf("a chunk carries %.2f tokens on average (%s): ITL is per chunk, TPOT per token",
			float64(t.usage)/float64(max(1, t.usage+t.over-t.under)), counted)
		if t.reasoning > 0 {
			text += fmt.Sprintf("; %d of the tokens were reasoning, which the server may not stream", t.reasoning)
		}
		return Noted, text
	case t.told < len(r.ok):
		return Noted, fmt.Sprintf("usage came with %d of %d calls (%s); the others' tokens were counted %s", t.told, len(r.ok), counted, r.otherSource())
	case t.over > 0:
		return Noted, fmt.Sprintf("%d chunks more than tokens (%s)", t.over, counted)
	}
	if off := t.text - t.stream; math.Abs(float64(off)) > textSlack*float64(t.stream) {
		return Remark, "the tokenizer counts other tokens in the text than the server made, as when it is another model's or text was not kept: " + counted
	}
	return Sound, "output tokens by usage: " + counted
}

// judgeUntold judges the count where no call has usage.
func (r *run) judgeUntold(t tally) (Status, string) {
	switch {
	case r.h.Predicted:
		return Sound, fmt.Sprintf("%d output tokens predicted", r.tokens)
	case t.recounted > 0:
		return Noted, fmt.Sprintf("the server sent no usable usage: %d output tokens were counted %s, %d in the stream (%s)",
			r.tokens, r.otherSource(), t.streamed, off(t.streamed, r.tokens))
	}
	return Noted, fmt.Sprintf("the server sent no usable usage: %d output tokens were counted in the stream, one a chunk", r.tokens)
}

// otherSource says who counted the tokens of calls without usage.
func (r *run) otherSource() string {
	text, chunks := false, false
	for _, c := range r.ok {
		switch _, from := c.Output(); from {
		case FromText:
			text = true
		case FromChunks:
			chunks = true
		}
	}
	by := "by the tokenizer " + cmp.Or(r.h.Tokenizer, "of the run")
	switch {
	case text && chunks:
		return by + " in the text, and for calls without text in the stream"
	case text:
		return by + " in the text"
	}
	return "in the stream"
}

// judgeCounts notes the calls whose count of tokens is broken.
func (r *run) judgeCounts() (Status, string) {
	if len(r.broken) == 0 {
		return Sound, "every count of tokens can be"
	}
	return Noted, fmt.Sprintf("%d calls claim more than %d tokens, or %d of a prompt, or fewer than none (the first is call %d): the counts are not believed, a chunk of theirs is one token",
		len(r.broken), maxCallTokens, maxPromptTokens, slices.Min(r.broken))
}

// judgeMerged remarks on chunks that have no arrival of their own.
func (r *run) judgeMerged() (Status, string) {
	const share = 0.01
	if r.chunks == 0 {
		return not("no call has a chunk")
	}
	text := fmt.Sprintf("%d of %d chunks (%.1f %%) came in one read or packet with the chunk before them", r.merged, r.chunks, 100*float64(r.merged)/float64(r.chunks))
	if float64(r.merged) > share*float64(r.chunks) {
		return Remark, text + ": they are in no ITL, which is of reads; ITL per token spreads a read's gap over its tokens"
	}
	return Sound, text
}

// judgeCache says what state the server's prefix cache was in: prompts that it
// does not have to compute make a run look faster than the engine is. Prompts
// that were meant to be new to the server and were not are worth a note;
// without a policy, hits are worth a remark.
func (r *run) judgeCache() (Status, string) {
	const share, meant = 0.01, 0.05 // of the prompt tokens; a chat template alone is less
	hit := float64(r.cached) / float64(max(1, r.prompts))
	text := fmt.Sprintf("%d of %d prompt tokens (%.1f %%) came from the server's prefix cache, as far as its usage tells", r.cached, r.prompts, 100*hit)
	if u := r.cacheUse(); u != nil {
		found := u.Hits / max(1, u.Queries)
		text += fmt.Sprintf("; by %s %.0f of %.0f (%.1f %%)", cmp.Or(u.From, "its counters"), u.Hits, u.Queries, 100*found)
		hit = max(hit, found)
	}
	if hit > 1 {
		return Noted, "more of the prompts came from the cache than they have tokens, so the counts cannot be: " + text
	}
	switch r.h.Cache {
	case CacheUnique:
		if hit > meant && r.h.Sharing {
			return Remark, "the workload shares prefixes within the run: " + text
		}
		if hit > meant {
			return Noted, "the prompts were to be new to the server (cache unique) and were not: " + text
		}
		return Sound, "prompts new to the server (cache unique): " + text
	case CacheReset:
		if u := r.cacheUse(); u != nil && !u.Reset {
			return Noted, "the prefix cache was to be emptied before the run (cache reset) and was not: " + text
		}
		return Sound, "prefix cache emptied before the run (cache reset): " + text
	case CacheWarm, CacheShared:
		status := Sound
		if hit > share {
			status = Remark
		}
		return status, fmt.Sprintf("hits are part of the workload (cache %s): %s", r.h.Cache, text)
	}
	if hit > share {
		return Remark, text + ": if the workload shares no prefixes, use another --seed than the last run"
	}
	return Sound, text
}

func (r *run) cacheUse() *CacheUse {
	if r.c == nil {
		return nil
	}
	return r.c.Cache
}

// judgePrompts says who counted the prompts where nothing is generated.
func (r *run) judgePrompts() (Status, string) {
	told := 0
	for _, c := range r.ok {
		if _, from := c.Input(); from == FromUsage {
			told++
		}
	}
	text := fmt.Sprintf("nothing is generated: %d whole answers to %d input tokens", len(r.ok), r.prompts)
	if told < len(r.ok) {
		return Noted, fmt.Sprintf("%s, of which the server counted those of %d calls and the workload the others'", text, told)
	}
	return Sound, text
}
