package audit

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/interop"
	"perflab/internal/result"
)

// perToken is a mean time per token that a latency can be made of.
type perToken struct {
	name  string
	first bool // the first token's time is in it
	exact bool // by its definition, the identity holds between means
}

// perTokens lists the times per token of a run.
func perTokens(g figures) []perToken {
	var out []perToken
	for _, name := range []string{"mean_tpot_ms", "mean_itl_ms"} {
		if _, ok := g.by[name]; !ok {
			continue
		}
		switch g.definition(name) {
		case result.E2EPerTokenWeighted:
			out = append(out, perToken{name, true, true})
		case result.E2EPerToken:
			out = append(out, perToken{name, true, false})
		case result.DecodePerTokenWeighted:
			out = append(out, perToken{name, false, true})
		case result.DecodePerToken:
			out = append(out, perToken{name, false, false})
		case result.Ours:
			if name == "mean_tpot_ms" {
				out = append(out, perToken{name, false, false})
			}
		}
	}
	return out
}

// sum is the latency in ms that the time per token makes for n tokens.
func (p perToken) sum(g figures, ttft, n Interval) Interval {
	v, _ := g.get(p.name)
	if p.first {
		return v.times(n)
	}
	return ttft.plus(v.times(n.minus(exactly(1))))
}

// What is allowed for between a latency and the sum of its parts.
const (
	streamEnd     = 0.1 // of the latency, for what comes after the last token
	variedLengths = 3   // times, where means are over requests of varied length
)

// latency checks TTFT and time per token against the end-to-end latency.
func latency(g figures) []Finding {
	n, ok := g.outputPerRequest()
	if !ok || n.Lo < 1 {
		return nil
	}
	one := g.by["completed"].Value == 1
	v, ok := g.all("mean_e2el_ms", "mean_ttft_ms")
	if !ok {
		return outlasts(g, n, one)
	}
	e2e, ttft := v[0], v[1]
	roughly := Interval{e2e.Lo / variedLengths, e2e.Hi * variedLengths}
	times := perTokens(g)
	if len(times) == 0 {
		return nil
	}
	worst, below := times[0], true
	// Of answers of one length, as far as the totals tell, means add up too.
	even := n.Lo == n.Hi && n.Lo == math.Round(n.Lo) && n.Lo > 1 && times[0].name == "mean_tpot_ms" && g.definition("mean_tpot_ms") == result.DecodePerToken
	exact := one || slices.ContainsFunc(times, func(p perToken) bool { return p.exact })
	for _, p := range times {
		for _, first := range []bool{p.first, !p.first} {
			sum := perToken{p.name, first, p.exact}.sum(g, ttft, n)
			if (exact || even) && sum.Meets(e2e.widen(streamEnd)) || !exact && !even && sum.Meets(roughly) {
				return nil
			}
			below = below && e2e.above(sum)
		}
		if p.name == "mean_itl_ms" {
			worst = p
		}
	}
	sum := worst.sum(g, ttft, n)
	kind, severity, why := "latency-doubtful", Warning, ""
	switch {
	case exact && (below || one):
		kind, severity = "latency-identity", Error
		if below && !one {
			why = ": the client saw only part of the stream; latency and TTFT stand, TPOT, ITL and peak do not"
		}
	case !even && sum.Meets(roughly):
		return nil
	}
	expected := ""
	if n.Lo >= 2 {
		expected = num(e2e.minus(ttft).Over(n.minus(exactly(1))).mid()) + " ms per token"
	}
	return []Finding{g.finding(kind, severity, expected,
		fmt.Sprintf("%s %s and TTFT make %s s for %s tokens, and the mean latency is %s s%s%s", g.by[worst.name].Label, g.text(worst.name), num(sum.mid()/1000), num(n.mid()), num(e2e.mid()/1000), comma(expected), why),
		worst.name, "mean_e2el_ms", "mean_ttft_ms", "total_output_tokens", "completed")}
}

// outlasts finds a single request whose tokens take longer than the run.
func outlasts(g figures, n Interval, one bool) []Finding {
	v, ok := g.all("mean_ttft_ms", "mean_tpot_ms", "duration")
	if !ok || !one {
		return nil
	}
	p := perToken{name: "mean_tpot_ms", first: g.definition("mean_tpot_ms") == result.E2EPerToken || g.definition("mean_tpot_ms") == result.E2EPerTokenWeighted}
	least := p.sum(g, v[0], n)
	if whole := v[1].times(n); whole.Lo < least.Lo {
		least = whole // the first token may be in it, whatever the label says
	}
	if !least.scale(0.001).above(v[2]) {
		return nil
	}
	return []Finding{g.finding("latency-beyond-duration", Error, "at least "+num(least.Lo/1000)+" s",
		fmt.Sprintf("the one request takes %s s by its TTFT and TPOT, longer than the %s s of the whole run", num(least.Lo/1000), g.text("duration")), "duration", "mean_ttft_ms", "mean_tpot_ms")}
}

// firstTokenRounding is how far the printed means of a client that is known to
// include the first token are apart, as a share.
const firstTokenRounding = 0.03

// firstToken finds a TPOT with the first token in it under a title that
// excludes it.
func firstToken(g figures) []Finding {
	itl, n, ok := g.firstInTPOT()
	if !ok {
		return nil
	}
	expected, cite := "", []string{"mean_tpot_ms", "mean_itl_ms", "mean_ttft_ms"}
	if itl.Hi > 0 {
		expected = num(itl.mid()) + " ms"
	}
	return []Finding{g.finding("tpot-includes-first", Warning, expected,
		fmt.Sprintf("%s %s includes the first token, whatever the title of its section: it is (TTFT + ITL x %s) / %s; what other clients call TPOT is the ITL of this block",
			g.by["mean_tpot_ms"].Label, g.text("mean_tpot_ms"), num(n.mid()-1), num(n.mid())), cite...)}
}

// firstInTPOT reports whether the printed TPOT of a text block has the first
// token in it, with the block's ITL and the tokens of a request.
func (g figures) firstInTPOT() (itl, n Interval, ok bool) {
	n, ok = g.outputPerRequest()
	v, ok2 := g.all("mean_tpot_ms", "mean_ttft_ms")
	if !ok || !ok2 || n.Lo < 2 || g.run.Header.Imported == nil || g.run.Header.Imported.Format != interop.FormatText {
		return itl, n, false
	}
	itl, measured := g.get("mean_itl_ms")
	if zeros := familyOf(g.run.Unmeasured, "itl"); !measured && len(zeros) > 0 {
		itl, measured = Interval{0, zeros[0].Half}, true // as it was printed
	}
	if !measured || g.definition("mean_itl_ms") == result.ChunkGap && g.definition("mean_tpot_ms") == result.DecodePerToken {
		return itl, n, false // known from the client: means of varied lengths meet by chance
	}
	tpot, ttft := v[0], v[1]
	sum := ttft.plus(itl.times(n.minus(exactly(1))))
	if d := g.definition("mean_tpot_ms"); d == result.E2EPerToken || d == result.E2EPerTokenWeighted {
		sum = sum.widen(firstTokenRounding)
	}
	return itl, n, tpot.above(itl) && tpot.times(n).Meets(sum)
}

// FirstInTPOT reports whether the TPOT of a run has the first token in it, by
// the definition of its client or by its own figures.
func FirstInTPOT(r *interop.Run) bool {
	if d := r.Definition("mean_tpot_ms"); d == result.E2EPerToken || d == result.E2EPerTokenWeighted {
		return true
	}
	_, _, ok := figuresOf(r).firstInTPOT()
	return ok
}

// zeroMedian finds times per token of which half are nothing.
func zeroMedian(g figures) []Finding {
	n, ok := g.outputPerRequest()
	if !ok || n.Lo < 2 {
		return nil
	}
	for _, family := range []string{"itl", "tpot"} {
		median, mean := "median_"+family+"_ms", "mean_"+family+"_ms"
		v, ok := g.all(median, mean)
		if !ok || v[0].Lo > 0 || v[1].Lo <= 2*(v[0].Hi-v[0].Lo) || g.definition(median) == result.TokenGapZeros {
			continue
		}
		why := "chunks reached the client several at once"
		if d := g.definition(median); d == result.DecodePerToken || d == result.DecodePerTokenWeighted {
			why = "the client saw all tokens of these answers at one instant"
		}
		return []Finding{g.finding("zero-median", Warning, "",
			fmt.Sprintf("%s is %s beside a mean of %s ms: no server decodes in no time; %s", g.by[median].Label, g.text(median), g.text(mean), why), median, mean)}
	}
	return nil
}

// inFlight checks the sum of latencies against duration and concurrency.
func inFlight(g figures) []Finding {
	v, ok := g.all("completed", "duration")
	if !ok || g.trimmed() {
		return nil
	}
	latency := "mean_e2el_ms"
	if _, ok := g.by[latency]; !ok {
		latency = "mean_ttft_ms"
	}
	each, ok := g.get(latency)
	if !ok {
		return nil
	}
	mean := v[0].times(each).scale(0.001).Over(v[1])
	for _, name := range []string{"max_concurrent_requests", "max_concurrency"} {
		most, ok := g.get(name)
		if !ok || most.Hi <= 0 || g.definition(name) == result.MeanInFlight || !mean.above(most) {
			continue
		}
		return []Finding{g.finding("in-flight", Error, "at least "+num(mean.Lo),
			fmt.Sprintf("%s requests of %s ms each in %s s are %s in flight on average, above %s %s", g.text("completed"), g.text(latency), g.text("duration"), num(mean.Lo), g.by[name].Label, g.text(name)),
			name, latency, "completed", "duration")}
	}
	return nil
}

// offeredRate is the request rate that a run was meant to have.
func (g figures) offeredRate() (float64, bool) {
	if v, ok := g.get("request_rate"); ok && v.Lo > 0 {
		return v.mid(), true
	}
	rate, err := strconv.ParseFloat(strings.TrimSpace(g.run.Header.Label(result.LabelRate)), 64)
	if err != nil {
		rate = g.run.Header.Rate
	}
	return rate, rate > 0 && !math.IsInf(rate, 0) && !math.IsNaN(rate)
}

// What shows that a run lasted longer than its requests took to send and to be
// answered.
const (
	fewestOffered = 50  // requests: the arrivals of fewer vary too much
	poissonSpread = 3   // standard deviations of the time that sending takes
	longSending   = 3   // mean latencies that sending lasts, so that the drain is short beside it
	drainShare    = 0.1 // of the run, that comes after the sending
	minute        = 60  // s of sending, from which any latency is short beside it
	lateShare     = 0.5 // of that sending, that comes after it
)

// offered checks the duration against the time that sending takes.
func offered(g figures) []Finding {
	rate, ok := g.offeredRate()
	v, ok2 := g.all("completed", "duration", "request_throughput")
	each, ok3 := g.latencyOfOne()
	if !ok || !ok2 || !ok3 || v[1].Lo <= 0 {
		return nil
	}
	failed, _ := g.get("failed")
	sent := v[0].plus(failed).mid()
	sending := (sent - 1) / rate
	// Poisson arrivals of n requests take sqrt(n) / rate more or less.
	after := v[1].Lo - sending - poissonSpread*math.Sqrt(sent)/rate
	if g.by["request_rate"].Value == 0 { // of a constant rate, as far as is told
		after = v[1].Lo - sending
	}
	long := sending >= longSending*each && after > drainShare*v[1].Lo
	late := sending >= minute && after > lateShare*sending
	if sent < fewestOffered || !long && !late {
		return nil
	}
	return []Finding{g.finding("offered-rate-missed", Warning, num(sending)+" s to send",
		fmt.Sprintf("%s req/s of %s offered: sending %s requests takes %s s, the run took %s s, %s s more: the server fell behind, and latency grows with the length of the run, or the run is too short for its last answers",
			g.text("request_throughput"), strconv.FormatFloat(rate, 'f', -1, 64), num(sent), num(sending), g.text("duration"), num(v[1].mid()-sending)),
		"request_throughput", "duration", "completed")}
}

// latencyOfOne is the mean latency of a request in seconds, where it is printed
// or follows from TTFT and TPOT, roughly.
func (g figures) latencyOfOne() (float64, bool) {
	if v, ok := g.get("mean_e2el_ms"); ok {
		return v.mid() / 1000, true
	}
	v, ok := g.all("mean_ttft_ms", "mean_tpot_ms")
	n, ok2 := g.outputPerRequest()
	if !ok || !ok2 {
		return 0, false
	}
	return (v[0].mid() + v[1].mid()*max(0, n.mid()-1)) / 1000, true
}

// A stall of a few requests.
const (
	fewestStalled = 20 // requests, of which P95 is not the largest
	stallMedians  = 20 // times the median that a P99 is of a stall
	stallTails    = 5  // times the P95 that it is besides: no queue rises so late
)

// stall finds a few first tokens that took very long.
func stall(g figures) []Finding {
	v, ok := g.all("p99_ttft_ms", "p95_ttft_ms", "median_ttft_ms", "mean_ttft_ms")
	done, ok2 := g.get("completed")
	if !ok || !ok2 || done.Lo < fewestStalled {
		return nil
	}
	p99, p95, median, mean := v[0], v[1], v[2], v[3]
	if !(p99.Lo > stallMedians*median.Hi && p99.Lo > stallTails*p95.Hi) && !mean.above(p95) {
		return nil
	}
	return []Finding{g.finding("first-token-stall", Warning, "",
		fmt.Sprintf("P99 TTFT %s ms at a median of %s ms, with P95 %s ms and mean %s ms: a few requests met a stall, as of compilation on a cold server; the run does not compare with warm ones",
			g.text("p99_ttft_ms"), g.text("median_ttft_ms"), g.text("p95_ttft_ms"), g.text("mean_ttft_ms")),
		"p99_ttft_ms", "p95_ttft_ms", "median_ttft_ms", "mean_ttft_ms")}
}

// Stalled reports whether a few requests of a run waited very long for their
// first token, which makes a mean of them.
func Stalled(r *interop.Run) bool { return len(stall(figuresOf(r))) > 0 }
