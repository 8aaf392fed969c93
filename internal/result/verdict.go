package result

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"perflab/internal/stat"
)

// Status of a verdict or of one of its checks.
type Status string

// Sound: believe the figures. Noted: believe them with what is said. Void: do
// not. A check may also remark on what the figures mean (few samples, a burst,
// an unsteady load, a saturated server); that casts no doubt on them, so a verdict with remarks
// alone is sound.
const (
	Sound  Status = "sound"
	Remark Status = "remark"
	Noted  Status = "noted"
	Voided Status = "void"
)

// Check is one thing looked at, with its figures in the sentence.
type Check struct {
	Name   string `json:"name"` // stable: dispatch_lag, client_cpu, gc, tokens, little, identity, peak, failures ...
	Status Status `json:"status"`
	Text   string `json:"text"`
}

// Verdict says whether a run's figures can be believed, with reasons.
type Verdict struct {
	Status Status  `json:"status"` // the worst of its checks; remarks do not count
	Checks []Check `json:"checks"`
}

// Check returns a check by its name.
func (v Verdict) Check(name string) (Check, bool) {
	for _, c := range v.Checks {
		if c.Name == name {
			return c, true
		}
	}
	return Check{}, false
}

// Add adds a check, and worsens the status by it; a remark does not.
func (v *Verdict) Add(c Check) {
	v.Checks = append(v.Checks, c)
	if v.Status = cmp.Or(v.Status, Sound); c.Status != Remark && c.Status.rank() > v.Status.rank() {
		v.Status = c.Status
	}
}

// rank orders statuses from good to bad.
func (s Status) rank() int { return slices.Index([]Status{Sound, Remark, Noted, Voided}, s) }

// judge runs every check. A check without data is sound and says that it did
// not judge; a simulated run begins with the sentence that says so.
func (r *run) judge(simulated, partial bool) Verdict {
	v := Verdict{Status: Sound}
	add := func(name string, s Status, text string) { v.Add(Check{name, s, text}) }
	if simulated {
		add("simulated", Sound, r.simulatedText())
	}
	s, text := r.judgePartial(partial)
	add("partial", s, text)
	if len(r.ok) == 0 {
		s, text = r.judgeFailures()
		add("failures", s, text)
		add("no_calls", Voided, "no call succeeded: there is nothing to measure")
		return v
	}
	for _, check := range append(r.checks(), r.telemetryChecks()...) {
		s, text := check.judge()
		add(check.name, s, text)
	}
	if r.h.SelfCheck != nil && !r.h.Predicted {
		add(checkSelf, Sound, selfCheckText(r.h.SelfCheck))
	}
	return v
}

// checkSelf is the check that cites the machine's self check; a run on a
// machine without one does not have it.
const checkSelf = "self_check"

// check is one thing to look at in a run that has successful calls.
type check struct {
	name  string
	judge func() (Status, string)
}

// checks returns them in the order of the verdict.
func (r *run) checks() []check {
	return []check{
		{"failures", r.judgeFailures},
		{"time_order", r.judgeOrder},
		{"tokens", r.judgeTokens},
		{"counts", r.judgeCounts},
		{"lengths", r.judgeLengths},
		{"prefix_cache", r.judgeCache},
		{"new_field", r.judgeField},
		{"merged", r.judgeMerged},
		{"identity", r.judgeIdentity},
		{"gaps", r.judgeGaps},
		{"peak", r.judgePeak},
		{"clock", r.judgeClock},
		{"dispatch_lag", r.judgeLag},
		{"client_cpu", r.judgeCPU},
		{"scheduler", r.judgeScheduler},
		{"gc", r.judgeGC},
		{"stolen", r.judgeStolen},
		{"little", r.judgeLittle},
		{"burst", r.judgeBurst},
		{"saturation", r.judgeSaturation},
		{"samples", r.judgeSamples},
	}
}

// not returns the answer of a check that cannot judge.
func not(why string) (Status, string) { return Sound, "not judged: " + why }

func (r *run) simulatedText() string {
	if r.h.Predicted {
		return "SIMULATED: predicted in virtual time, no server was measured"
	}
	return "SIMULATED: a simulator answered, no hardware was measured"
}

func (r *run) judgePartial(partial bool) (Status, string) {
	for i, c := range r.ok[min(1, len(r.ok)):] {
		if c.Index == r.ok[i].Index { // they are in order
			return Voided, fmt.Sprintf("call %d is there more than once: these are the calls of several runs, or some of them twice", c.Index)
		}
	}
	if !partial && r.c != nil && r.c.Unsent > 0 {
		return Noted, fmt.Sprintf("%d later turns of conversations were never sent because a turn before them failed; %d calls were made", r.c.Unsent, r.total)
	}
	if !partial {
		return Sound, fmt.Sprintf("all %d calls of the run are here", r.total)
	}
	why := "the run left no record of its client"
	if r.c != nil {
		why = cmp.Or(r.c.StopNote, "the run was stopped")
	}
	if r.h.Requests > r.total {
		return Noted, fmt.Sprintf("partial: %d of %d planned calls, %s", r.total, r.h.Requests, why)
	}
	return Noted, fmt.Sprintf("partial: %d calls, %s", r.total, why)
}

// judgeFailures only notes: how many failures are too many is the caller's
// limit. It quotes one error of the most frequent class.
func (r *run) judgeFailures() (Status, string) {
	if len(r.failures) == 0 {
		return Sound, fmt.Sprintf("none of %d calls failed", r.total)
	}
	classes := slices.SortedFunc(maps.Keys(r.failures), func(a, b Class) int {
		return cmp.Or(cmp.Compare(r.failures[b], r.failures[a]), cmp.Compare(a, b))
	})
	parts := make([]string, len(classes))
	for i, c := range classes {
		parts[i] = fmt.Sprintf("%s %d", c, r.failures[c])
	}
	text := fmt.Sprintf("%d of %d calls failed (%s) and are in no latency or throughput figure",
		r.total-len(r.ok), r.total, strings.Join(parts, ", "))
	if e := r.example[classes[0]]; e.Error != "" {
		text += fmt.Sprintf("; call %d: %s", e.Index, e.Error)
	}
	return Noted, text
}

// judgeOrder looks for stamps that cannot be: due <= ready <= connecting <=
// sent <= first byte <= headers <= chunks, each not before the last, <= end, none negative.
// Dial, First, Headers and Answer are zero when unknown.
func (r *run) judgeOrder() (Status, string) {
	for _, c := range r.ok {
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
			return Voided, "stamps are out of order, " + bad
		}
	}
	return Sound, fmt.Sprintf("the stamps of %d calls are in order", len(r.ok))
}

// promptSlack is the share by which the server's count of the prompts may
// differ from the workload's: a chat template adds some tokens to each.
const promptSlack = 0.1

// judgeLengths compares the work that was done with the work that was asked
// for. Fewer tokens are the server's right unless it was told to ignore the end
// of the text, but then two servers do not do the same work; more than
// max_tokens are not.
func (r *run) judgeLengths() (Status, string) {
	asked, made, short, over := 0, 0, 0, 0
	planned, told := 0, 0
	for _, c := range r.ok {
		if n, _ := c.Output(); c.Want > 0 && !r.pooled() {
			asked, made = asked+c.Want, made+n
			if n < c.Want {
				short++
			} else if n > c.Want {
				over++
			}
		}
		if p, from := c.Input(); from == FromUsage && c.WantIn > 0 {
			planned, told = planned+c.WantIn, told+p
		}
	}
	if asked == 0 && planned == 0 {
		return not("neither lengths were asked for nor did the server count")
	}
	text := fmt.Sprintf("%d of %d output tokens asked for, %d prompt tokens by usage of %d by the workload", made, asked, told, planned)
	switch {
	case over > 0:
		return Noted, fmt.Sprintf("%d calls got more tokens than max_tokens allows: %s", over, text)
	case float64(asked-made) > tokenSlack*float64(asked):
		return Remark, fmt.Sprintf("%d calls ended before the tokens asked for, another server may do another amount of work: %s", short, text)
	case math.Abs(float64(told-planned)) > promptSlack*float64(planned):
		return Remark, "the server's tokenizer makes other prompts than the workload planned: " + text
	}
	return Sound, text
}

func (r *run) judgeField() (Status, string) {
	if len(r.fields) == 0 {
		return Sound, "every field that grew is known"
	}
	names := strings.Join(slices.Sorted(maps.Keys(r.fields)), ", ")
	return Noted, "the server streams text in a field not known to carry tokens, counted as tokens: " + names
}

// judgeIdentity checks TTFT + TPOT*(n-k) = E2E for every call that has a TPOT,
// to 1 us or 1e-9 of E2E.
func (r *run) judgeIdentity() (Status, string) {
	judged := 0
	for _, c := range r.ok {
		tpot, ok := c.TPOT()
		if !ok {
			continue
		}
		judged++
		ttft, _ := c.TTFT()
		e2e, _ := c.E2E()
		n, _ := c.Output()
		k, _ := c.opening()
		sum := float64(ttft) + tpot*float64(n-k)
		if !(math.Abs(sum-float64(e2e)) <= max(1e3, 1e-9*float64(e2e))) || tpot < 0 {
			return Voided, fmt.Sprintf("call %d: TTFT + TPOT*(n-%d) is %.6f ms but E2E is %.6f ms", c.Index, k, sum/1e6, ms(e2e))
		}
	}
	if judged == 0 {
		return not("no call has tokens in more than one read")
	}
	return Sound, fmt.Sprintf("TTFT + TPOT*(n-k) = E2E for each of %d calls", judged)
}

// judgeGaps checks the inter-token latencies against the calls: their sum is
// what lies between first and last tokens, to 1e-9 of it, and half of them are
// above zero. A client that sees only some of the chunks, or stamps them when
// it parses them, fails one or the other.
func (r *run) judgeGaps() (Status, string) {
	n := r.samples[familyITL]
	if n == 0 {
		return not("no call has tokens in more than one read")
	}
	sum, between := r.figures["mean_itl_ms"]*float64(n), 0.0
	for _, c := range r.ok {
		if len(c.Chunks) > 0 {
			between += ms(c.Chunks[len(c.Chunks)-1].At - c.Chunks[0].At)
		}
	}
	text := fmt.Sprintf("%d gaps sum to %.3f s of %.3f s between first and last tokens, median %.3f ms", n, sum/1e3, between/1e3, r.figures["median_itl_ms"])
	if !(math.Abs(sum-between) <= 1e-9*max(between, 1e6)) || !(r.figures["median_itl_ms"] > 0) {
		return Voided, "the inter-token latencies cannot be: " + text
	}
	return Sound, text
}

// judgePeak checks the raw busiest second against what it must be: the tokens
// fit into ceil(D) windows of 1 s, so one of them holds at least sum n/ceil(D);
// and it cannot hold more than there are.
func (r *run) judgePeak() (Status, string) {
	mean, ok := r.figures["output_throughput"]
	if !ok || r.peak == 0 {
		return not("no token has a stamp")
	}
	least := float64(r.tokens) / math.Ceil(r.figures["duration"]+1e-9)
	printed := r.figures["max_output_tokens_per_s"]
	const rounding = 1e-6 // of sums over fractional weights
	if r.peak < least*(1-rounding) || r.peak > float64(r.tokens)*(1+rounding) || printed < mean {
		return Voided, fmt.Sprintf("the busiest second holds %.2f tokens, of %d in %.2f s at a mean of %.2f tok/s", r.peak, r.tokens, r.figures["duration"], mean)
	}
	return Sound, fmt.Sprintf("peak %.2f tok/s >= mean %.2f tok/s", printed, mean)
}

// judgeLittle compares the mean calls in flight L over the steady window with
// the throughput X of calls that end in it times their mean time R from Sent
// to End. The two differ exactly by what the calls cut by the window's ends
// have inside and outside, so a difference means that the load was not steady,
// as a trace's seldom is: a remark on what the figures mean, no doubt of them.
func (r *run) judgeLittle() (Status, string) {
	w := r.steady
	switch {
	case !w.ok:
		return Sound, "not applicable: the run has no steady window"
	case w.inflight == 0:
		return Sound, "not applicable: the calls take no time"
	case w.seconds() < 3*w.stream || w.ends < 100:
		return Sound, fmt.Sprintf("not applicable: the steady window of %.2f s holds %d ends of calls that take %.2f s; it needs 100 and 3 times as long", w.seconds(), w.ends, w.stream)
	}
	x := float64(w.ends) / w.seconds()
	apart := math.Abs(x*w.stream/w.inflight - 1)
	text := fmt.Sprintf("%.2f calls in flight, %.2f req/s x %.3f s = %.2f, %.1f %% apart", w.inflight, x, w.stream, x*w.stream, 100*apart)
	if apart > 0.15 {
		return Remark, "the load was not steady: " + text
	}
	return Sound, text
}

// burst reports whether all requests were due at once.
func (r *run) burst() bool {
	return !slices.ContainsFunc(r.ok, func(c *Call) bool { return c.Due != r.ok[0].Due })
}

func (r *run) judgeBurst() (Status, string) {
	switch {
	case len(r.ok) < 2 || !r.burst():
		return Sound, "requests were due one after another"
	case r.h.Limit > 0 && r.h.Limit < r.total:
		return Sound, fmt.Sprintf("all requests were due at once and %d were let through at a time", r.h.Limit)
	}
	latency := "TTFT"
	if r.pooled() {
		latency = "the latency"
	}
	return Remark, fmt.Sprintf("burst: all %d requests were due at once, so %s is mostly the time in the server's queue", r.total, latency)
}

// judgeSaturation compares the rate at which calls came due with the rate at
// which they ended, each between its 10 % and 90 % quantile, which leaves out
// filling and draining. A server that keeps up ends calls as fast as they
// come, one latency later. Because few long calls also stretch the ends, the
// latency must grow along the run as well: its mean over the last third at
// least 1.15 times that over the first.
func (r *run) judgeSaturation() (Status, string) {
	const least = 50
	switch {
	case r.burst():
		return not("no request rate, all were due at once")
	case len(r.ok) < least:
		return not(fmt.Sprintf("%d calls succeeded, it takes %d", len(r.ok), least))
	}
	calls := slices.SortedStableFunc(slices.Values(r.ok), func(a, b *Call) int { return cmp.Compare(a.Due, b.Due) })
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
		return not("most requests were due at once")
	}
	inner := 0.8 * float64(len(calls)-1)
	offered, achieved := inner/spanDue, inner/spanEnd
	text := fmt.Sprintf("%.2f req/s ended of %.2f req/s offered; mean latency %.3f s in the first third, %.3f s in the last", achieved, offered, first, last)
	if achieved < 0.95*offered && last >= 1.15*first {
		return Remark, "the server is saturated, latency grows with the length of the run: " + text
	}
	return Sound, text
}

// innerSpan is the distance of the 10 % and 90 % quantiles.
func innerSpan(sorted []float64) float64 {
	return stat.Quantile(sorted, 0.9) - stat.Quantile(sorted, 0.1)
}

// judgeSamples remarks on percentiles that fewer calls than needed stand behind.
func (r *run) judgeSamples() (Status, string) {
	asked := slices.Sorted(slices.Values(r.o.Percentiles))
	if asked == nil {
		asked = percentiles
	}
	var thin []string
	for _, p := range slices.Compact(asked) {
		if need := stat.MinSamples(p / 100); p > 0 && p < 100 && len(r.ok) < need {
			thin = append(thin, fmt.Sprintf("%s needs %d", strings.ToUpper(pName(p)), need))
		}
	}
	if len(thin) == 0 {
		return Sound, fmt.Sprintf("%d calls are enough for the percentiles", len(r.ok))
	}
	return Remark, fmt.Sprintf("%d calls are few: %s", len(r.ok), strings.Join(thin, ", "))
}
