package redefine

import (
	"math"
	"slices"
	"time"

	"perflab/internal/result"
)

// scalar sets one number, or says why it cannot.
func (b *builder) scalar(name string, d result.Definition) string {
	if len(b.calls) == 0 {
		return "no call succeeded"
	}
	f := b.Summary.Figures
	switch {
	case name == "max_output_tokens_per_s" && d == result.MessageBuckets:
		if b.defs["itl"] == result.TokenGapMean && !b.single() {
			return "that client counts tokens on the engine's own API and messages on others, and here they are not the same"
		}
		f[name] = result.PeakMessages(b.timelines())
	case name == "max_concurrent_requests" && d == result.SecondBuckets:
		f[name] = mostCalls(b.timelines())
	case name == "max_concurrent_requests" && d == result.MeanInFlight:
		sum := 0.0
		for _, t := range b.timelines() {
			sum += (t.End - t.Start).Seconds()
		}
		return b.fromOwn(name, "duration", func(d float64) float64 { return sum / d })
	case name == "max_concurrency" && d == result.MeasuredMaximum:
		return b.fromOwn(name, "max_concurrent_requests", func(most float64) float64 { return most })
	default:
		return noWay(d)
	}
	return ""
}

// fromOwn sets a number that follows from a figure of perflab's.
func (b *builder) fromOwn(name, figure string, value func(float64) float64) string {
	own, err := b.own()
	if err != nil {
		return err.Error()
	}
	v, ok := own[figure]
	if !ok || v <= 0 {
		return "the run has no " + figure
	}
	b.Summary.Figures[name] = value(v)
	return ""
}

// single reports whether every chunk of every call is known to have brought one token.
func (b *builder) single() bool {
	return !slices.ContainsFunc(b.calls, func(c *result.Call) bool {
		return !whole(c) || slices.ContainsFunc(c.Chunks, func(k result.Chunk) bool { return k.Tokens != 1 })
	})
}

// timelines are the calls as the definitions see them.
func (b *builder) timelines() []result.Timeline {
	out := make([]result.Timeline, len(b.calls))
	for i, c := range b.calls {
		out[i] = timeline(b.defs, c)
	}
	return out
}

// began is when the first call was sent.
func began(calls []result.Timeline) time.Duration {
	zero := time.Duration(math.MaxInt64)
	for _, t := range calls {
		zero = min(zero, t.Start)
	}
	return zero
}

// mostCalls is the most calls that touch one whole second since the first sending.
func mostCalls(calls []result.Timeline) float64 {
	zero := began(calls)
	in, most := map[time.Duration]int{}, 0
	for _, t := range calls {
		for second := (t.Start - zero) / time.Second; second <= (t.End-zero)/time.Second; second++ {
			in[second]++
			most = max(most, in[second])
		}
	}
	return float64(most)
}
