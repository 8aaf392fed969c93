// Package verdict says whether a run's figures can be believed: a list of
// checks, each with its evidence in a sentence.
//
//	s, err := verdict.Summarize(header, client, result.Options{}, slices.Values(calls))
//	fmt.Print(s.Verdict.Text())
//
// Invariants: Judge is pure and does not change what it judges; it looks at our
// own definitions, whatever definitions the summary is asked for; a check
// without data says that it did not judge and stays sound; how many failures
// are too many is the caller's limit.
//
// Deliberately absent: the types of a verdict, which a summary carries and which
// are in package result.
package verdict

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"perflab/internal/result"
	"perflab/internal/stat"
)

// Summarize computes the figures of a run, as result.Summarize does, and judges
// them.
func Summarize(h result.Header, c *result.Client, o result.Options, calls iter.Seq[result.Call]) (result.Summary, error) {
	a, err := result.Analyze(h, c, o, calls)
	if err != nil {
		return result.Summary{}, err
	}
	s := a.Summary()
	s.Verdict = Judge(a)
	return s, nil
}

// Judge runs every check on a run's figures by our own definitions. A check
// without data is sound and says that it did not judge; a simulated run begins
// with the sentence that says so.
func Judge(a *result.Analysis) result.Verdict {
	v := result.Verdict{Status: result.Sound}
	add := func(name string, s result.Status, text string) {
		v.Add(result.Check{Name: name, Status: s, Text: text})
	}
	run := func(checks ...check) {
		for _, c := range checks {
			s, text := c.judge(a)
			add(c.name, s, text)
		}
	}
	if a.Simulated {
		add("simulated", result.Sound, simulatedText(a))
	}
	run(check{"partial", judgePartial})
	if len(a.Succeeded) == 0 {
		run(check{"failures", judgeFailures})
		add("no_calls", result.Voided, "no call succeeded: there is nothing to measure")
		return v
	}
	run(callChecks...)
	run(telemetryChecks(a)...)
	if a.Header.SelfCheck != nil && !a.Header.Predicted {
		add("self_check", result.Sound, selfCheckText(a.Header.SelfCheck))
	}
	return v
}

// check is one thing to look at in a run that has successful calls.
type check struct {
	name  string
	judge func(*result.Analysis) (result.Status, string)
}

// callChecks are the checks of the calls and of the client, in the order of the
// verdict.
var callChecks = []check{
	{"failures", judgeFailures},
	{"time_order", judgeOrder},
	{"tokens", judgeTokens},
	{"counts", judgeCounts},
	{"lengths", judgeLengths},
	{"prefix_cache", judgeCache},
	{"new_field", judgeField},
	{"merged", judgeMerged},
	{"identity", judgeIdentity},
	{"gaps", judgeGaps},
	{"peak", judgePeak},
	{"clock", judgeClock},
	{"dispatch_lag", judgeLag},
	{"client_cpu", judgeCPU},
	{"scheduler", judgeScheduler},
	{"gc", judgeGC},
	{"stolen", judgeStolen},
	{"little", judgeLittle},
	{"burst", judgeBurst},
	{"saturation", judgeSaturation},
	{"samples", judgeSamples},
}

// notJudged returns the answer of a check that cannot judge.
func notJudged(why string) (result.Status, string) { return result.Sound, "not judged: " + why }

func simulatedText(a *result.Analysis) string {
	if a.Header.Predicted {
		return "SIMULATED: predicted in virtual time, no server was measured"
	}
	return "SIMULATED: a simulator answered, no hardware was measured"
}

func judgePartial(a *result.Analysis) (result.Status, string) {
	for i, c := range a.Succeeded[min(1, len(a.Succeeded)):] {
		if c.Index == a.Succeeded[i].Index { // they are in order
			return result.Voided, fmt.Sprintf("call %d is there more than once: these are the calls of several runs, or some of them twice", c.Index)
		}
	}
	if !a.Partial && a.Client != nil && a.Client.Unsent > 0 {
		return result.Noted, fmt.Sprintf("%d later turns of conversations were never sent because a turn before them failed; %d calls were made", a.Client.Unsent, a.Total)
	}
	if !a.Partial {
		return result.Sound, fmt.Sprintf("all %d calls of the run are here", a.Total)
	}
	why := "the run left no record of its client"
	if a.Client != nil {
		why = cmp.Or(a.Client.StopNote, "the run was stopped")
	}
	if a.Header.Requests > a.Total {
		return result.Noted, fmt.Sprintf("partial: %d of %d planned calls, %s", a.Total, a.Header.Requests, why)
	}
	return result.Noted, fmt.Sprintf("partial: %d calls, %s", a.Total, why)
}

// judgeFailures only notes: how many failures are too many is the caller's
// limit.
func judgeFailures(a *result.Analysis) (result.Status, string) {
	if len(a.Failures) == 0 {
		return result.Sound, fmt.Sprintf("none of %d calls failed", a.Total)
	}
	return result.Noted, a.FailureText()
}

// judgeOrder looks for stamps that cannot be: due <= ready <= connecting <=
// sent <= first byte <= headers <= chunks, each not before the last, <= end, none negative.
// Dial, First, Headers and Answer are zero when unknown.
func judgeOrder(a *result.Analysis) (result.Status, string) {
	for _, c := range a.Succeeded {
		prev, prevName := time.Duration(0), "the start"
		bad := ""
		step := func(at time.Duration, name string) {
			if bad == "" && at < prev {
				bad = fmt.Sprintf("call %d: %s at %v is before %s at %v", c.Index, name, at, prevName, prev)
			}
			prev, prevName = at, name
		}
		step(c.Due, "due")
		step(c.Ready, "ready")
		if c.Dial != 0 {
			step(c.Sent-c.Dial, "asking for a connection")
		}
		step(c.Sent, "sent")
		if c.First != 0 {
			step(c.First, "the first byte")
		}
		if c.Headers != 0 {
			step(c.Headers, "headers")
		}
		for _, k := range c.Chunks {
			step(k.At, "a chunk")
		}
		step(c.End, "end")
		first, _ := c.FirstToken()
		if last, _ := c.LastToken(); bad == "" && c.Answer != 0 && (c.Answer < first || c.Answer > last) {
			bad = fmt.Sprintf("call %d: first answer token at %v is not between first and last token", c.Index, c.Answer)
		}
		if bad != "" {
			return result.Voided, "stamps are out of order, " + bad
		}
	}
	return result.Sound, fmt.Sprintf("the stamps of %d calls are in order", len(a.Succeeded))
}

// promptSlack is the share by which the server's count of the prompts may
// differ from the workload's: a chat template adds some tokens to each.
const promptSlack = 0.1

// judgeLengths compares the work that was done with the work that was asked
// for. Fewer tokens are the server's right unless it was told to ignore the end
// of the text, but then two servers do not do the same work; more than
// max_tokens are not.
func judgeLengths(a *result.Analysis) (result.Status, string) {
	asked, made, short, over := 0, 0, 0, 0
	planned, told := 0, 0
	for _, c := range a.Succeeded {
		if n, _ := c.Output(); c.Want > 0 && !a.Pooling() {
			asked, made = asked+c.Want, made+n
			if n < c.Want {
				short++
			} else if n > c.Want {
				over++
			}
		}
		if p, from := c.Input(); from == result.FromUsage && c.WantIn > 0 {
			planned, told = planned+c.WantIn, told+p
		}
	}
	if asked == 0 && planned == 0 {
		return notJudged("neither lengths were asked for nor did the server count")
	}
	text := fmt.Sprintf("%d of %d output tokens asked for, %d prompt tokens by usage of %d by the workload", made, asked, told, planned)
	switch {
	case over > 0:
		return result.Noted, fmt.Sprintf("%d calls got more tokens than max_tokens allows: %s", over, text)
	case float64(asked-made) > tokenSlack*float64(asked):
		return result.Remark, fmt.Sprintf("%d calls ended before the tokens asked for, another server may do another amount of work: %s", short, text)
	case math.Abs(float64(told-planned)) > promptSlack*float64(planned):
		return result.Remark, "the server's tokenizer makes other prompts than the workload planned: " + text
	}
	return result.Sound, text
}

func judgeField(a *result.Analysis) (result.Status, string) {
	if len(a.NewFields) == 0 {
		return result.Sound, "every field that grew is known"
	}
	names := strings.Join(slices.Sorted(maps.Keys(a.NewFields)), ", ")
	return result.Noted, "the server streams text in a field not known to carry tokens, counted as tokens: " + names
}

// judgeIdentity checks TTFT + TPOT*(n-k) = E2E for every call that has a TPOT,
// to 1 us or 1e-9 of E2E.
func judgeIdentity(a *result.Analysis) (result.Status, string) {
	judged := 0
	for _, c := range a.Succeeded {
		tpot, ok := c.TPOT()
		if !ok {
			continue
		}
		judged++
		ttft, _ := c.TTFT()
		e2e, _ := c.E2E()
		n, _ := c.Output()
		k, _ := c.FirstRead()
		sum := float64(ttft) + tpot*float64(n-k)
		if !(math.Abs(sum-float64(e2e)) <= max(1e3, 1e-9*float64(e2e))) || tpot < 0 {
			return result.Voided, fmt.Sprintf("call %d: TTFT + TPOT*(n-%d) is %.6f ms but E2E is %.6f ms", c.Index, k, sum/1e6, milliseconds(e2e))
		}
	}
	if judged == 0 {
		return notJudged("no call has tokens in more than one read")
	}
	return result.Sound, fmt.Sprintf("TTFT + TPOT*(n-k) = E2E for each of %d calls", judged)
}

// judgeGaps checks the inter-token latencies against the calls: their sum is
// what lies between first and last tokens, to 1e-9 of it, and half of them are
// above zero. A client that sees only some of the chunks, or stamps them when
// it parses them, fails one or the other.
func judgeGaps(a *result.Analysis) (result.Status, string) {
	n := a.Samples["itl"]
	if n == 0 {
		return notJudged("no call has tokens in more than one read")
	}
	sum, between := a.Figures["mean_itl_ms"]*float64(n), 0.0
	for _, c := range a.Succeeded {
		if len(c.Chunks) > 0 {
			between += milliseconds(c.Chunks[len(c.Chunks)-1].At - c.Chunks[0].At)
		}
	}
	text := fmt.Sprintf("%d gaps sum to %.3f s of %.3f s between first and last tokens, median %.3f ms", n, sum/1e3, between/1e3, a.Figures["median_itl_ms"])
	if !(math.Abs(sum-between) <= 1e-9*max(between, 1e6)) || !(a.Figures["median_itl_ms"] > 0) {
		return result.Voided, "the inter-token latencies cannot be: " + text
	}
	return result.Sound, text
}

// judgePeak checks the raw busiest second against what it must be: the tokens
// fit into ceil(D) windows of 1 s, so one of them holds at least sum n/ceil(D);
// and it cannot hold more than there are.
func judgePeak(a *result.Analysis) (result.Status, string) {
	mean, ok := a.Figures["output_throughput"]
	if !ok || a.Peak == 0 {
		return notJudged("no token has a stamp")
	}
	least := float64(a.OutputTokens) / math.Ceil(a.Figures["duration"]+1e-9)
	printed := a.Figures["max_output_tokens_per_s"]
	const rounding = 1e-6 // of sums over fractional weights
	if a.Peak < least*(1-rounding) || a.Peak > float64(a.OutputTokens)*(1+rounding) || printed < mean {
		return result.Voided, fmt.Sprintf("the busiest second holds %.2f tokens, of %d in %.2f s at a mean of %.2f tok/s", a.Peak, a.OutputTokens, a.Figures["duration"], mean)
	}
	return result.Sound, fmt.Sprintf("peak %.2f tok/s >= mean %.2f tok/s", printed, mean)
}

// judgeLittle compares the mean calls in flight L over the steady window with
// the throughput X of calls that end in it times their mean time R from Sent
// to End. The two differ exactly by what the calls cut by the window's ends
// have inside and outside, so a difference means that the load was not steady,
// as a trace's seldom is: a remark on what the figures mean, no doubt of them.
func judgeLittle(a *result.Analysis) (result.Status, string) {
	w := a.Steady
	switch {
	case !w.OK:
		return result.Sound, "not applicable: the run has no steady window"
	case w.InFlight == 0:
		return result.Sound, "not applicable: the calls take no time"
	case w.Seconds() < 3*w.CallTime || w.Ends < 100:
		return result.Sound, fmt.Sprintf("not applicable: the steady window of %.2f s holds %d ends of calls that take %.2f s; it needs 100 and 3 times as long", w.Seconds(), w.Ends, w.CallTime)
	}
	x := float64(w.Ends) / w.Seconds()
	apart := math.Abs(x*w.CallTime/w.InFlight - 1)
	text := fmt.Sprintf("%.2f calls in flight, %.2f req/s x %.3f s = %.2f, %.1f %% apart", w.InFlight, x, w.CallTime, x*w.CallTime, 100*apart)
	if apart > 0.15 {
		return result.Remark, "the load was not steady: " + text
	}
	return result.Sound, text
}

// burst reports whether all requests were due at once.
func burst(a *result.Analysis) bool {
	return !slices.ContainsFunc(a.Succeeded, func(c *result.Call) bool { return c.Due != a.Succeeded[0].Due })
}

func judgeBurst(a *result.Analysis) (result.Status, string) {
	switch {
	case len(a.Succeeded) < 2 || !burst(a):
		return result.Sound, "requests were due one after another"
	case a.Header.Limit > 0 && a.Header.Limit < a.Total:
		return result.Sound, fmt.Sprintf("all requests were due at once and %d were let through at a time", a.Header.Limit)
	}
	latency := "TTFT"
	if a.Pooling() {
		latency = "the latency"
	}
	return result.Remark, fmt.Sprintf("burst: all %d requests were due at once, so %s is mostly the time in the server's queue", a.Total, latency)
}

// judgeSaturation compares the rate at which calls came due with the rate at
// which they ended, each between its 10 % and 90 % quantile, which leaves out
// filling and draining. A server that keeps up ends calls as fast as they
// come, one latency later. Because few long calls also stretch the ends, the
// latency must grow along the run as well: its mean over the last third at
// least 1.15 times that over the first.
func judgeSaturation(a *result.Analysis) (result.Status, string) {
	const least = 50
	switch {
	case burst(a):
		return notJudged("no request rate, all were due at once")
	case len(a.Succeeded) < least:
		return notJudged(fmt.Sprintf("%d calls succeeded, it takes %d", len(a.Succeeded), least))
	}
	calls := slices.SortedStableFunc(slices.Values(a.Succeeded), func(a, b *result.Call) int { return cmp.Compare(a.Due, b.Due) })
	due, end, took := make([]float64, len(calls)), make([]float64, len(calls)), make([]float64, len(calls))
	for i, c := range calls {
		due[i], end[i] = c.Due.Seconds(), c.End.Seconds()
		took[i] = (c.End - c.Due).Seconds()
	}
	slices.Sort(end)
	third := len(took) / 3
	first, last := stat.Mean(took[:third]), stat.Mean(took[len(took)-third:])
	spanDue, spanEnd := innerSpan(due), innerSpan(end)
	if spanDue <= 0 || spanEnd <= 0 {
		return notJudged("most requests were due at once")
	}
	inner := 0.8 * float64(len(calls)-1)
	offered, achieved := inner/spanDue, inner/spanEnd
	text := fmt.Sprintf("%.2f req/s ended of %.2f req/s offered; mean latency %.3f s in the first third, %.3f s in the last", achieved, offered, first, last)
	if achieved < 0.95*offered && last >= 1.15*first {
		return result.Remark, "the server is saturated, latency grows with the length of the run: " + text
	}
	return result.Sound, text
}

// innerSpan is the distance of the 10 % and 90 % quantiles.
func innerSpan(sorted []float64) float64 {
	return stat.Quantile(sorted, 0.9) - stat.Quantile(sorted, 0.1)
}

// judgeSamples remarks on percentiles that fewer calls than needed stand behind.
func judgeSamples(a *result.Analysis) (result.Status, string) {
	asked := slices.Sorted(slices.Values(a.Options.AskedPercentiles()))
	var thin []string
	for _, p := range slices.Compact(asked) {
		if need := stat.MinSamples(p / 100); p > 0 && p < 100 && len(a.Succeeded) < need {
			thin = append(thin, fmt.Sprintf("%s needs %d", strings.ToUpper(result.PercentileName(p)), need))
		}
	}
	if len(thin) == 0 {
		return result.Sound, fmt.Sprintf("%d calls are enough for the percentiles", len(a.Succeeded))
	}
	return result.Remark, fmt.Sprintf("%d calls are few: %s", len(a.Succeeded), strings.Join(thin, ", "))
}

// milliseconds is a duration in milliseconds.
func milliseconds(d time.Duration) float64 { return float64(d) / 1e6 }
