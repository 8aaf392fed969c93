package result

import (
	"slices"
	"strings"
	"time"

	"perflab/internal/stat"
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

// asVLLM puts the figures that vllm bench serve has in the place of ours, by
// its definitions. Which calls failed stays our judgement, and a figure
// without data stays absent where vLLM prints zero.
func (r *run) asVLLM() {
	r.forget("ttft", "tpot", "itl", "e2el")
	if len(r.ok) == 0 {
		return
	}
	calls := make([]vllmCall, len(r.ok))
	var ttft, tpot, e2el []float64
	itl := stat.Clusters{Ends: make([]int, len(calls))}
	tokens := 0
	for i, c := range r.ok {
		v := c.asVLLM()
		calls[i] = v
		e2el = append(e2el, v.e2el())
		if x, ok := v.ttft(); ok {
			ttft = append(ttft, x)
		}
		if x, sample := v.tpot(); sample {
			tpot = append(tpot, x)
		}
		itl.Samples = v.appendGaps(itl.Samples)
		itl.Ends[i] = len(itl.Samples)
		tokens += v.n
	}
	r.vllmTotals(calls, tokens)
	r.distribution("ttft", ttft, nil)
	r.distribution("tpot", tpot, nil)
	r.distribution(familyITL, itl.Samples, itl.Ends)
	r.distribution("e2el", e2el, nil)
}

// vllmTotals sets the figures that are one number. What counts output stays
// absent where nothing is generated.
func (r *run) vllmTotals(calls []vllmCall, tokens int) {
	f := r.figures
	f["max_concurrent_requests"] = vllmInFlight(calls)
	if !r.pooled() {
		f["total_output_tokens"] = float64(tokens)
		f["max_output_tokens_per_s"] = vllmPeak(calls)
	}
	good := 0
	if len(r.o.Goodput) > 0 {
		good = r.vllmGood()
		f["goodput_ratio"] = float64(good) / float64(r.total)
	}
	d := r.end.Seconds() // from the run's start, not from the first request's due time
	if d <= 0 {
		return
	}
	f["duration"] = d
	f["request_throughput"] = float64(len(r.ok)) / d
	f["total_token_throughput"] = float64(tokens+r.prompts) / d
	if !r.pooled() {
		f["output_throughput"] = float64(tokens) / d
	}
	if len(r.o.Goodput) > 0 {
		f["request_goodput"] = float64(good) / d
	}
}

// forget drops the figures of families.
func (r *run) forget(names ...string) {
	for _, name := range names {
		delete(r.samples, name)
		suffix := "_" + name + "_ms"
		for figure := range r.figures {
			if stat, ok := strings.CutSuffix(figure, suffix); ok && !strings.Contains(stat, "_") {
				delete(r.figures, figure)
				delete(r.intervals, figure)
			}
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
func (r *run) vllmGood() int {
	good := 0
	for _, c := range r.ok {
		v := c.asVLLM()
		met := true
		for _, bound := range r.o.Goodput {
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
				test, err := bound.perCall(r.h.Limit)
				met = met && err == nil && test(c)
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
