package result

import "time"

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
