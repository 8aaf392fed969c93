package result

import (
	"slices"
	"time"
)

// family is a distribution over calls or chunks, of which a run has
// statistics. Its unit is the millisecond.
type family struct {
	name, label, section string
	doc, formula         string
	// value is the sample of one call in ms; nil when samples are pooled over
	// the chunks of all calls.
	value  func(c *Call, limit int) (ms float64, ok bool)
	steady bool // of the calls sent in the steady window alone
}

// Pooled families.
const (
	familyITL      = "itl"
	familyITLToken = "itl_token"
)

// families returns the distributions, those of the block first and in its
// order.
func families() []family {
	all := []family{
		{name: "ttft", label: "TTFT", section: "Time to First Token",
			doc:     "Time to first token, from the sending.",
			formula: "t_first - Sent", value: since(sentAt, (*Call).FirstToken)},
		{name: "tpot", label: "TPOT", section: "Time per Output Token (excl. 1st token)",
			doc:     "Time per output token after the first read, one sample a call; undefined for a call whose tokens all came in one read.",
			formula: "(t_last - t_first) / (n - k), k tokens in the first read", value: tpotMS},
		{name: familyITL, label: "ITL", section: "Inter-token Latency",
			doc:     "Gap between successive reads that carried tokens, pooled over all calls; one sample a read, whatever its tokens.",
			formula: "t_i - t_(i-1), merged chunks left out"},
		{name: "e2el", label: "E2EL", section: "End-to-end Latency",
			doc:     "End-to-end latency up to the last token, from the sending; up to the end of an answer that generates none, as an embedding.",
			formula: "t_last - Sent", value: since(sentAt, (*Call).last)},
		{name: "ttft_due", label: "TTFT from due", section: "Queue-inclusive Time to First Token",
			doc:     "Time to first token, from when the schedule wanted the request sent.",
			formula: "t_first - Due", value: since(dueAt, (*Call).FirstToken)},
		{name: "e2el_due", label: "E2EL from due", section: "Queue-inclusive End-to-end Latency",
			doc:     "End-to-end latency up to the last token, from when the schedule wanted the request sent.",
			formula: "t_last - Due", value: since(dueAt, (*Call).last)},
		{name: "ttfa", label: "TTFA", section: "Time to First Answer Token",
			doc:     "Time to the first token that is not reasoning, from the sending; undefined for a call that only reasons.",
			formula: "t_answer - Sent", value: since(sentAt, (*Call).firstAnswer)},
		{name: "ttfa_due", label: "TTFA from due", section: "Queue-inclusive Time to First Answer Token",
			doc:     "Time to the first token that is not reasoning, from when the schedule wanted the request sent.",
			formula: "t_answer - Due", value: since(dueAt, (*Call).firstAnswer)},
		{name: "ttfb", label: "TTFB", section: "Time to First Byte",
			doc:     "Time to the first byte of the answer, from the sending: its status line, which a server may send long before it has a token.",
			formula: "t_byte - Sent", value: since(sentAt, (*Call).firstByte)},
		{name: "headers", label: "Headers", section: "Time to Response Headers",
			doc:     "Time until the response headers were whole, from the sending.",
			formula: "t_headers - Sent", value: since(sentAt, (*Call).headers)},
		{name: "connect", label: "Connect", section: "Time to Connect",
			doc:     "Time to open a connection, DNS and TLS included, for the calls that needed a new one; it is before the sending and so in no latency counted from there.",
			formula: "t_connected - t_dial", value: connectMS},
		{name: familyITLToken, label: "ITL per token", section: "Inter-token Latency per Token",
			doc:     "Gap between successive reads divided by the tokens it brought, each token one sample; where usage alone counts them, each chunk after the first is taken to carry the same.",
			formula: "(t_i - t_(i-1)) / tokens of read i"},
		{name: "stream", label: "Stream", section: "Time to End of Stream",
			doc:     "Time from the sending to the end of the stream, usage and [DONE] included.",
			formula: "End - Sent", value: since(sentAt, (*Call).end)},
		{name: "stream_due", label: "Stream from due", section: "Queue-inclusive Time to End of Stream",
			doc:     "Time from when the schedule wanted the request sent to the end of the stream.",
			formula: "End - Due", value: since(dueAt, (*Call).end)},
		{name: "queue", label: "Queue", section: "Client-side Queueing",
			doc: "Wait for the concurrency limit; absent without one.", formula: "Ready - Due",
			value: func(c *Call, limit int) (float64, bool) { return ms(c.Ready - c.Due), limit > 0 }},
		{name: "dispatch_lag", label: "Dispatch lag", section: sectionClient,
			doc:     "How much later than possible the load generator sent the request.",
			formula: "Sent - connect - max(Due, Ready) with a concurrency limit, else Sent - connect - Due",
			value:   func(c *Call, limit int) (float64, bool) { return ms(c.Lag(limit)), true }},
	}
	for _, name := range []string{"ttft", "tpot", "e2el"} {
		f := all[slices.IndexFunc(all, func(f family) bool { return f.name == name })]
		f.doc = "As " + f.name + ", of the calls that were sent in the steady window."
		f.name, f.label, f.section, f.steady = "steady_"+f.name, "Steady "+f.label, "Steady "+f.section, true
		all = append(all, f)
	}
	return all
}

// collect appends the sample of a call, where it has one.
func (f family) collect(x []float64, c *Call, limit int, steady Window) []float64 {
	if f.steady && !(steady.OK && steady.Contains(c.Sent)) {
		return x
	}
	if v, ok := f.value(c, limit); ok {
		x = append(x, v)
	}
	return x
}

// since makes a family's value: from one instant of a call to another.
func since(from func(*Call) time.Duration, to func(*Call) (time.Duration, bool)) func(*Call, int) (float64, bool) {
	return func(c *Call, _ int) (float64, bool) {
		at, ok := to(c)
		return ms(at - from(c)), ok
	}
}

func sentAt(c *Call) time.Duration { return c.Sent }
func dueAt(c *Call) time.Duration  { return c.Due }

func (c *Call) firstAnswer() (time.Duration, bool) { return c.Answer, c.Answer > 0 }
func (c *Call) firstByte() (time.Duration, bool)   { return c.First, c.First > 0 }
func (c *Call) headers() (time.Duration, bool)     { return c.Headers, c.Headers > 0 }
func (c *Call) end() (time.Duration, bool)         { return c.End, true }

func tpotMS(c *Call, _ int) (float64, bool) {
	ns, ok := c.TPOT()
	return ns / 1e6, ok
}

func connectMS(c *Call, _ int) (float64, bool) { return ms(c.Dial), c.New }

// familyStats of a family that are not percentiles.
var familyStats = []struct{ name, label, doc string }{
	{"mean", "Mean", "Mean"},
	{"median", "Median", "Median"},
	{"std", "Std", "Population standard deviation"},
	{"min", "Min", "Smallest"},
	{"max", "Max", "Largest"},
}

// defaultPercentiles that every summary has, in percent.
var defaultPercentiles = []float64{50, 90, 95, 99}

// metric returns the row of one statistic of the family: "mean", "p99.9".
// The caller has checked that stat is one.
func (f family) metric(stat string) Metric {
	label, what := "", ""
	for _, s := range familyStats {
		if s.name == stat {
			label, what = s.label, s.doc
		}
	}
	if label == "" {
		label, what = "P"+stat[1:], stat[1:]+"th percentile (linear interpolation)"
	}
	return Metric{
		Name: stat + "_" + f.name + "_ms", Label: label + " " + f.label + " (ms)", Unit: "ms",
		Section: f.section, Family: f.name, Stat: stat, Better: Lower, Decimals: 2,
		Doc: what + " of: " + f.doc, Formula: f.formula,
	}
}

func familyOf(name string) (family, bool) {
	for _, f := range families() {
		if f.name == name {
			return f, true
		}
	}
	return family{}, false
}

// appendGaps appends the gaps between reads that carried tokens. A chunk that
// came with the one before it has no gap.
func (c *Call) appendGaps(x []float64) []float64 {
	for i := 1; i < len(c.Chunks); i++ {
		if !c.joined(i) {
			x = append(x, ms(c.Chunks[i].At-c.Chunks[i-1].At))
		}
	}
	return x
}

// appendPerToken appends, for every read after the first, its gap divided by
// its tokens, once a counted token.
func (c *Call) appendPerToken(x []float64) []float64 {
	_, each := c.spread()
	if each == 0 {
		return x // nothing counted, or nothing later
	}
	for i := 1; i < len(c.Chunks); i++ {
		if c.joined(i) {
			continue // of the read before, which has taken it in
		}
		tokens := int(c.Chunks[i].Tokens)
		for j := i + 1; j < len(c.Chunks) && c.joined(j); j++ {
			tokens += int(c.Chunks[j].Tokens)
		}
		v := ms(c.Chunks[i].At-c.Chunks[i-1].At) / (float64(tokens) * each)
		for range tokens {
			x = append(x, v)
		}
	}
	return x
}

// Families returns the names of the distributions, in the order of the table.
func Families() []string {
	var names []string
	for _, f := range families() {
		names = append(names, f.name)
	}
	return names
}
