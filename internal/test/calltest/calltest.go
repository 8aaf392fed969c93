// Package calltest makes calls for tests.
package calltest

import (
	"time"

	"perflab/internal/result"
	"perflab/internal/stat"
)

// Stream returns a call sent at sent whose chunks of one token come at the
// given times after it; the stream ends 1 ms after the last.
func Stream(index int, sent time.Duration, at ...time.Duration) result.Call {
	c := result.Call{Index: index, Due: sent, Ready: sent, Sent: sent, WantIn: 10, Usage: &result.Usage{Prompt: 10, Completion: len(at)}}
	for _, t := range at {
		c.Chunks = append(c.Chunks, result.Chunk{At: sent + t, Tokens: 1})
	}
	c.End = sent + at[len(at)-1] + time.Millisecond
	return c
}

// Steady returns n calls, one each gap, of 2 to 20 tokens, TTFT 40 to 60 ms
// and 9 to 11 ms between tokens.
func Steady(n int, gap time.Duration) []result.Call {
	const msec = time.Millisecond
	rng := stat.Stream(1, "calls")
	calls := make([]result.Call, n)
	for i := range calls {
		at := 40*msec + time.Duration(rng.Int64N(int64(20*msec)))
		stamps := []time.Duration{at}
		for range 1 + rng.IntN(19) {
			at += 9*msec + time.Duration(rng.Int64N(int64(2*msec)))
			stamps = append(stamps, at)
		}
		calls[i] = Stream(i, time.Duration(i)*gap, stamps...)
	}
	return calls
}

// Fail turns a call into a failed one.
func Fail(c result.Call, class result.Class) result.Call {
	c.Class, c.Error, c.Chunks, c.Usage = class, "it broke", nil, nil
	return c
}
