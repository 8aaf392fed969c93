package result

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// compatLine stands under a block whose figures are vLLM's.
const compatLine = "figures by vllm bench serve's definitions (--compat vllm)"

// vllmCall is a call as vllm bench serve sees it. Every message that has
// choices counts, with a token or without: the role message begins the first
// token, the finishing message is one more gap and moves the end. Messages of
// one read follow each other at once. The clock starts before a connection is
// asked for.
type vllmCall struct {
	start time.Duration
	at    []time.Duration // of the messages; none where nothing is generated
	end   time.Duration   // of the last of them, or of an answer without
	n     int             // output tokens
}

// asVLLM returns vLLM's view of a call.
func (c *Call) asVLLM() vllmCall {
	v := vllmCall{start: c.Sent - c.Dial, at: make([]time.Duration, 0, len(c.Chunks)+len(c.Empty))}
	empty := c.Empty
	for _, k := range c.Chunks {
		for len(empty) > 0 && empty[0].At <= k.At {
			v.at, empty = append(v.at, empty[0].At), empty[1:]
		}
		v.at = append(v.at, k.At)
	}
	for _, s := range empty {
		v.at = append(v.at, s.At)
	}
	if v.end = c.End; len(v.at) == 0 {
		return v
	}
	v.end = v.at[len(v.at)-1]
	var from Source
	if v.n, from = c.Output(); from == FromChunks {
		v.n = 1 // vLLM without a tokenizer
	}
	return v
}

func (v vllmCall) ttft() (_ float64, ok bool) {
	if len(v.at) == 0 {
		return 0, false
	}
	return ms(v.at[0] - v.start), true
}

func (v vllmCall) e2el() float64 { return ms(v.end - v.start) }

// tpot is 0 for goodput when there is one token; no sample is made of it.
func (v vllmCall) tpot() (_ float64, sample bool) {
	ttft, ok := v.ttft()
	if !ok || v.n <= 1 {
		return 0, false
	}
	return (v.e2el() - ttft) / float64(v.n-1), true
}

func (v vllmCall) appendGaps(x []float64) []float64 {
	for i := 1; i < len(v.at); i++ {
		x = append(x, ms(v.at[i]-v.at[i-1]))
	}
	return x
}

// vllmSamplers append the samples that a call gives to the families that vLLM
// has.
var vllmSamplers = map[string]func(v vllmCall, x []float64) []float64{
	"ttft": func(v vllmCall, x []float64) []float64 {
		if ms, ok := v.ttft(); ok {
			x = append(x, ms)
		}
		return x
	},
	"tpot": func(v vllmCall, x []float64) []float64 {
		if ms, ok := v.tpot(); ok {
			x = append(x, ms)
		}
		return x
	},
	familyITL: vllmCall.appendGaps,
	"e2el":    func(v vllmCall, x []float64) []float64 { return append(x, v.e2el()) },
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
	calls := make([]vllmCall, len(a.Succeeded))
	for i, c := range a.Succeeded {
		calls[i] = c.asVLLM()
	}
	a.vllmTotals(t.Figures, calls)
	for name, appendTo := range vllmSamplers {
		var x []float64
		ends := make([]int, len(calls))
		for i, v := range calls {
			x = appendTo(v, x)
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
func (a *Analysis) vllmTotals(f map[string]float64, calls []vllmCall) {
	tokens := 0
	for _, v := range calls {
		tokens += v.n
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
func vllmPeak(calls []vllmCall) float64 {
	zero := slices.MinFunc(calls, func(a, b vllmCall) int { return int(a.start - b.start) }).start
	buckets, most := map[time.Duration]int{}, 0
	for _, v := range calls {
		for _, at := range v.at {
			second := (at - zero) / time.Second
			buckets[second]++
			most = max(most, buckets[second])
		}
	}
	return float64(most)
}

// vllmInFlight is the most calls between start and last message, or end.
func vllmInFlight(calls []vllmCall) float64 {
	spans := make([]span, len(calls))
	for i, v := range calls {
		spans[i] = span{v.start, v.end}
	}
	return float64(maxSpans(spans))
}

// vllmGood counts the calls within every bound, of which vLLM knows TTFT, TPOT
// and E2EL; the others are judged as ours.
func (a *Analysis) vllmGood(calls []vllmCall) int {
	good := 0
	for i, v := range calls {
		met := true
		for _, bound := range a.Options.Goodput {
			var x float64
			switch bound.Metric {
			case "ttft_ms":
				var ok bool
				x, ok = v.ttft()
				met = met && ok
			case "tpot_ms":
				x, _ = v.tpot()
			case "e2el_ms":
				x = v.e2el()
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
