package redefine

import (
	"fmt"
	"time"

	"perflab/internal/result"
)

// timeline is a call as other definitions see it. Every other client's clock
// starts before a connection is asked for.
func timeline(defs map[string]result.Definition, c *result.Call) result.Timeline {
	own := c.Timeline("")
	t := c.Timeline(result.VLLM)
	if defs["ttft"] != result.FirstMessage {
		t.Messages, t.Output = own.Messages, own.Output
	}
	switch {
	case defs["e2el"] == result.StreamEnd && c.Done > 0:
		t.End = c.Done
	case defs["e2el"] == result.StreamEnd:
		t.End = c.End
	case defs["e2el"] == result.Ours:
		t.End = own.End
	}
	return t
}

// sampler appends what a call gives to a family, or says why it cannot.
type sampler func(c *result.Call, x []float64) (_ []float64, why string)

// first is the time to the first message.
func first(t result.Timeline) (float64, bool) {
	if len(t.Messages) == 0 {
		return 0, false
	}
	return ms(t.Messages[0] - t.Start), true
}

// perToken is the time after the first message by the tokens after the first.
func perToken(t result.Timeline) (float64, bool) {
	if len(t.Messages) == 0 || t.Output <= 1 {
		return 0, false
	}
	return ms(t.End-t.Messages[0]) / float64(t.Output-1), true
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }

// samplerOf is the sampler of a family by one of the definitions.
func samplerOf(defs map[string]result.Definition, name string) (sampler, string) {
	d := defs[name]
	one := func(value func(*result.Call, result.Timeline) (float64, bool)) sampler {
		return func(c *result.Call, x []float64) ([]float64, string) {
			if v, ok := value(c, timeline(defs, c)); ok {
				x = append(x, v)
			}
			return x, ""
		}
	}
	const itl = "itl"
	switch {
	case name == "ttft" && (d == result.FirstMessage || d == result.FirstText || d == result.FirstChunk):
		return one(func(_ *result.Call, t result.Timeline) (float64, bool) { return first(t) }), ""
	case name == "ttft" && d == result.FirstIteration:
		return firstIteration, ""
	case name == "ttfa" && d == result.FirstText:
		return one(func(c *result.Call, t result.Timeline) (float64, bool) { return ms(c.Answer - t.Start), c.Answer > 0 }), ""
	case name == "e2el" && (d == result.LastMessage || d == result.StreamEnd):
		return one(func(_ *result.Call, t result.Timeline) (float64, bool) { return ms(t.End - t.Start), true }), ""
	case name == "e2el_due" && (d == result.LastMessage || d == result.StreamEnd):
		return one(func(c *result.Call, t result.Timeline) (float64, bool) { return ms(t.End - c.Due), true }), ""
	case (name == "tpot" || name == itl) && d == result.DecodePerToken:
		return one(func(_ *result.Call, t result.Timeline) (float64, bool) { return perToken(t) }), ""
	case (name == "tpot" || name == itl) && d == result.E2EPerToken:
		return one(func(_ *result.Call, t result.Timeline) (float64, bool) {
			return ms(t.End-t.Start) / float64(max(1, t.Output)), t.Output > 0
		}), ""
	case name == itl && (d == result.MessageGap || d == result.ChunkGap):
		return func(c *result.Call, x []float64) ([]float64, string) { return gaps(timeline(defs, c), x), "" }, ""
	case name == itl && d == result.TokenGapMean:
		return tokenGaps, ""
	case name == itl && d == result.TokenGapZeros:
		return tokenZeros, ""
	}
	return nil, noWay(d)
}

// noWay is why a definition is not computed.
func noWay(d result.Definition) string { return fmt.Sprintf("no way from calls to %s is known", d) }

// gaps appends those between messages.
func gaps(t result.Timeline, x []float64) []float64 {
	for i := 1; i < len(t.Messages); i++ {
		x = append(x, ms(t.Messages[i]-t.Messages[i-1]))
	}
	return x
}

// sameFirst is how far apart, as a share, two readings of a first message may be to
// count as one.
const sameFirst = 0.01

// firstIteration is the time to the first message, as long as it does not matter
// whether the empty message of the role is one.
func firstIteration(c *result.Call, x []float64) ([]float64, string) {
	at, ok := c.FirstToken()
	if !ok {
		return x, ""
	}
	start := c.Sent - c.Dial
	if len(c.Empty) > 0 && float64(at-c.Empty[0].At) > sameFirst*float64(at-start) {
		return x, "of some handlers of that client the message of the role counts as the first, of others not, and here the two are apart"
	}
	return append(x, ms(at-start)), ""
}

// whole reports whether the tokens of the chunks are all there are, so that what
// each chunk brought is known.
func whole(c *result.Call) bool {
	n, _ := c.Output()
	return n == c.Counted()
}

// unknownTokens is why gaps cannot be divided among tokens.
const unknownTokens = "which message brought how many tokens is not recorded of every call"

// tokenGaps divides the gap of each chunk among its tokens.
func tokenGaps(c *result.Call, x []float64) ([]float64, string) {
	if !whole(c) {
		return x, unknownTokens
	}
	for i := 1; i < len(c.Chunks); i++ {
		n := int(c.Chunks[i].Tokens)
		for range n {
			x = append(x, ms(c.Chunks[i].At-c.Chunks[i-1].At)/float64(n))
		}
	}
	return x, ""
}

// tokenZeros gives the gap of each chunk to its first token and none to the others.
func tokenZeros(c *result.Call, x []float64) ([]float64, string) {
	if !whole(c) {
		return x, unknownTokens
	}
	for i, k := range c.Chunks {
		for j := range int(k.Tokens) {
			switch {
			case j > 0:
				x = append(x, 0)
			case i > 0:
				x = append(x, ms(k.At-c.Chunks[i-1].At))
			}
		}
	}
	return x, ""
}
