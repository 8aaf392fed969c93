package result

import (
	"maps"
	"slices"
	"time"

	"perflab/internal/stat"
)

// asVLLM returns the figures with those that vllm bench serve has by its
// definitions in the place of ours. Which calls failed stays our judgement, and
// a figure without data stays absent where vLLM prints zero.
func (a *Analysis) asVLLM() statistics {
	t := a.statistics
	t.Figures, t.Samples, t.Intervals, t.Approximate = maps.Clone(a.Figures), maps.Clone(a.Samples), maps.Clone(a.Intervals), maps.Clone(a.Approximate)
	t.OverCalls = maps.Clone(a.OverCalls)
	t.Bounds, t.doubts = maps.Clone(a.Bounds), nil // which are of our definitions
	for name := range vllmSamplers {
		t.forget(name)
	}
	if a.Completed == 0 {
		return t
	}
	calls := make([]Timeline, len(a.Succeeded))
	for i, c := range a.Succeeded {
		calls[i] = c.vllmTimeline()
	}
	if a.large != nil {
		a.large.VLLM.figures(a, t, calls)
		return t
	}
	tokens := 0
	for _, c := range calls {
		tokens += c.Output
	}
	a.vllmTotals(t, tokens)
	t.Figures["max_concurrent_requests"] = vllmInFlight(calls)
	if !a.Pooling() {
		t.Figures["max_output_tokens_per_s"] = PeakMessages(calls)
	}
	for name, appendTo := range vllmSamplers {
		x, ends := vllmSamples(calls, appendTo)
		if name != familyITL {
			ends = nil // one sample a call
		}
		t.addDistribution(name, x, ends)
	}
	return t
}

// vllmSamples gathers the samples of a family.
func vllmSamples(calls []Timeline, appendTo func(Timeline, []float64) []float64) (x []float64, ends []int) {
	ends = make([]int, len(calls))
	for i, call := range calls {
		x = appendTo(call, x)
		ends[i] = len(x)
	}
	return x, ends
}

// figures sets those of a large run; calls are those at hand.
func (v *largeVLLM) figures(a *Analysis, t statistics, calls []Timeline) {
	a.vllmTotals(t, v.Output)
	most, bound := atMost(v.Flow.MaxInFlight())
	t.set("max_concurrent_requests", most, bound)
	if !a.Pooling() {
		most, bound = v.peak()
		t.set("max_output_tokens_per_s", most, bound)
	}
	for name, sketch := range v.Families {
		t.addSingle(name, sketch)
	}
	x, ends := vllmSamples(calls, Timeline.appendGaps)
	t.addPooled(familyITL, v.Gaps, stat.Clusters{Samples: x, Ends: ends})
}

// vllmTotals sets the figures that are one number. What counts output stays
// absent where nothing is generated.
func (a *Analysis) vllmTotals(t statistics, tokens int) {
	f := t.Figures
	if !a.Pooling() {
		f["total_output_tokens"] = float64(tokens)
	}
	asked := len(a.Options.Goodput) > 0
	if asked {
		f["goodput_ratio"] = float64(a.goodVLLM) / float64(a.Total)
	}
	d := a.End.Seconds() // from the run's start, not from the first request's due time
	if d <= 0 {
		return
	}
	f["duration"] = d
	f["request_throughput"] = float64(a.Completed) / d
	f["total_token_throughput"] = float64(tokens+a.InputTokens) / d
	if !a.Pooling() {
		f["output_throughput"] = float64(tokens) / d
	}
	if asked {
		f["request_goodput"] = float64(a.goodVLLM) / d
	}
}

// PeakMessages is the fullest of the whole seconds since the first sending, every
// message counting as one token.
func PeakMessages(calls []Timeline) float64 {
	zero := slices.MinFunc(calls, func(a, b Timeline) int { return int(a.Start - b.Start) }).Start
	buckets, most := map[time.Duration]int{}, 0
	for _, t := range calls {
		for _, at := range t.Messages {
			second := (at - zero) / time.Second
			buckets[second]++
			most = max(most, buckets[second])
		}
	}
	return float64(most)
}

// vllmInFlight is the most calls between start and last message, or end.
func vllmInFlight(calls []Timeline) float64 {
	spans := make([]span, len(calls))
	for i, t := range calls {
		spans[i] = span{t.Start, t.End}
	}
	return float64(maxSpans(spans))
}

// vllmGood reports whether a call is within every bound, of which vLLM knows TTFT,
// TPOT and E2EL; the others are judged as ours.
func (o Options) vllmGood(c *Call, limit int) bool {
	t := c.vllmTimeline()
	for _, bound := range o.Goodput {
		var x float64
		ok := true
		switch bound.Metric {
		case "ttft_ms":
			x, ok = t.ttft()
		case "tpot_ms":
			x, _ = t.tpot()
		case "e2el_ms":
			x = t.e2el()
		default:
			if test, err := bound.perCall(limit); err != nil || !test(c) {
				return false
			}
			continue
		}
		if !ok || !bound.Holds(x) {
			return false
		}
	}
	return true
}
