package result

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// compatLine stands under a block whose figures are vLLM's.
const compatLine = "figures by vllm bench serve's definitions (--compat vllm)"

// Timeline is a call as definitions see it: when it began, when its messages
// came and when it was done.
type Timeline struct {
	Start    time.Duration
	Messages []time.Duration // none where nothing is generated
	End      time.Duration   // of the last of them, or of an answer without
	Output   int             // tokens
}

// Timeline returns the call as we see it, its messages being those that carried
// tokens; or, for VLLM, as vllm bench serve does: every message that has choices
// counts, with a token or without, so that the role message begins the first
// token and the finishing message is one more gap and moves the end. Messages of
// one read follow each other at once. Its clock starts before a connection is
// asked for.
func (c *Call) Timeline(compat string) Timeline {
	if compat == VLLM {
		return c.vllmTimeline()
	}
	t := Timeline{Start: c.Sent}
	t.End, _ = c.last()
	t.Output, _ = c.Output()
	for _, k := range c.Chunks {
		t.Messages = append(t.Messages, k.At)
	}
	return t
}

func (c *Call) vllmTimeline() Timeline {
	t := Timeline{Start: c.Sent - c.Dial, Messages: make([]time.Duration, 0, len(c.Chunks)+len(c.Empty)), End: c.End}
	empty := c.Empty
	for _, k := range c.Chunks {
		for len(empty) > 0 && empty[0].At <= k.At {
			t.Messages, empty = append(t.Messages, empty[0].At), empty[1:]
		}
		t.Messages = append(t.Messages, k.At)
	}
	for _, s := range empty {
		t.Messages = append(t.Messages, s.At)
	}
	if len(t.Messages) == 0 {
		return t
	}
	t.End = t.Messages[len(t.Messages)-1]
	var from Source
	if t.Output, from = c.Output(); from == FromChunks {
		t.Output = 1 // vLLM without a tokenizer
	}
	return t
}

func (t Timeline) ttft() (_ float64, ok bool) {
	if len(t.Messages) == 0 {
		return 0, false
	}
	return ms(t.Messages[0] - t.Start), true
}

func (t Timeline) e2el() float64 { return ms(t.End - t.Start) }

// tpot is 0 for goodput when there is one token; no sample is made of it.
func (t Timeline) tpot() (_ float64, sample bool) {
	ttft, ok := t.ttft()
	if !ok || t.Output <= 1 {
		return 0, false
	}
	return (t.e2el() - ttft) / float64(t.Output-1), true
}

func (t Timeline) appendGaps(x []float64) []float64 {
	for i := 1; i < len(t.Messages); i++ {
		x = append(x, ms(t.Messages[i]-t.Messages[i-1]))
	}
	return x
}

// vllmSamplers append the samples that a call gives to the families that vLLM
// has.
var vllmSamplers = map[string]func(t Timeline, x []float64) []float64{
	"ttft": func(t Timeline, x []float64) []float64 {
		if ms, ok := t.ttft(); ok {
			x = append(x, ms)
		}
		return x
	},
	"tpot": func(t Timeline, x []float64) []float64 {
		if ms, ok := t.tpot(); ok {
			x = append(x, ms)
		}
		return x
	},
	familyITL: Timeline.appendGaps,
	"e2el":    func(t Timeline, x []float64) []float64 { return append(x, t.e2el()) },
}

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
		t.distribution(name, x, ends)
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

// forget drops the figures of a family.
func (t *statistics) forget(family string) {
	delete(t.Samples, family)
	suffix := "_" + family + "_ms"
	for figure := range t.Figures {
		if stat, ok := strings.CutSuffix(figure, suffix); ok && !strings.Contains(stat, "_") {
			delete(t.Figures, figure)
			delete(t.Intervals, figure)
		}
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
