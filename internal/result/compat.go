package result

import (
	"maps"
	"slices"
	"time"
)

// asVLLM returns the figures with those that vllm bench serve has by its
// definitions in the place of ours. Which calls failed stays our judgement, and
// a figure without data stays absent where vLLM prints zero.
func (a *Analysis) asVLLM() statistics {
	t := statistics{maps.Clone(a.Figures), maps.Clone(a.Samples), maps.Clone(a.Intervals), a.percentiles}
	for name := range vllmSamplers {
		t.forget(name)
	}
	if len(a.Succeeded) == 0 {
		return t
	}
	calls := make([]Timeline, len(a.Succeeded))
	for i, c := range a.Succeeded {
		calls[i] = c.vllmTimeline()
	}
	a.vllmTotals(t.Figures, calls)
	for name, appendTo := range vllmSamplers {
		var x []float64
		ends := make([]int, len(calls))
		for i, call := range calls {
			x = appendTo(call, x)
			ends[i] = len(x)
		}
		if name != familyITL {
			ends = nil // one sample a call
		}
		t.addDistribution(name, x, ends)
	}
	return t
}

// vllmTotals sets the figures that are one number. What counts output stays
// absent where nothing is generated.
func (a *Analysis) vllmTotals(f map[string]float64, calls []Timeline) {
	tokens := 0
	for _, t := range calls {
		tokens += t.Output
	}
	f["max_concurrent_requests"] = vllmInFlight(calls)
	if !a.Pooling() {
		f["total_output_tokens"] = float64(tokens)
		f["max_output_tokens_per_s"] = vllmPeak(calls)
	}
	good := 0
	if len(a.Options.Goodput) > 0 {
		good = a.vllmGood(calls)
		f["goodput_ratio"] = float64(good) / float64(a.Total)
	}
	d := a.End.Seconds() // from the run's start, not from the first request's due time
	if d <= 0 {
		return
	}
	f["duration"] = d
	f["request_throughput"] = float64(len(a.Succeeded)) / d
	f["total_token_throughput"] = float64(tokens+a.InputTokens) / d
	if !a.Pooling() {
		f["output_throughput"] = float64(tokens) / d
	}
	if len(a.Options.Goodput) > 0 {
		f["request_goodput"] = float64(good) / d
	}
}

// vllmPeak is the fullest of the whole seconds since the first sending, every
// message counting as one token.
func vllmPeak(calls []Timeline) float64 {
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

// vllmGood counts the calls within every bound, of which vLLM knows TTFT, TPOT
// and E2EL; the others are judged as ours.
func (a *Analysis) vllmGood(calls []Timeline) int {
	good := 0
	for i, t := range calls {
		met := true
		for _, bound := range a.Options.Goodput {
			var x float64
			switch bound.Metric {
			case "ttft_ms":
				var ok bool
				x, ok = t.ttft()
				met = met && ok
			case "tpot_ms":
				x, _ = t.tpot()
			case "e2el_ms":
				x = t.e2el()
			default:
				test, err := bound.perCall(a.Header.Limit)
				met = met && err == nil && test(a.Succeeded[i])
				continue
			}
			met = met && bound.holds(x)
		}
		if met {
			good++
		}
	}
	return good
}
