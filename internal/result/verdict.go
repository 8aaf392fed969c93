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

// rank orders statuses from good to bad.
func (s Status) rank() int { return slices.Index([]Status{Sound, Remark, Noted, Voided}, s) }

// judge runs every check. A check without data is sound and says that it did
// not judge; a simulated run begins with the sentence that says so.
func (r *run) judge(simulated, partial bool) Verdict {
	v := Verdict{Status: Sound}
	add := func(name string, s Status, text string) {
		v.Checks = append(v.Checks, Check{name, s, text})
		if s != Remark && s.rank() > v.Status.rank() {
			v.Status = s
		}
	}
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
	for _, check := range []struct {
		name  string
		judge func() (Status, string)
	}{
		{"failures", r.judgeFailures},
		{"time_order", r.judgeOrder},
		{"tokens", r.judgeTokens},
		{"lengths", r.judgeLengths},
		{"prefix_cache", r.judgeCache},
		{"new_field", r.judgeField},
		{"identity", r.judgeIdentity},
		{"peak", r.judgePeak},
		{"dispatch_lag", r.judgeLag},
		{"client_cpu", r.judgeCPU},
		{"gc", r.judgeGC},
		{"little", r.judgeLittle},
		{"burst", r.judgeBurst},
		{"saturation", r.judgeSaturation},
		{"samples", r.judgeSamples},
	} {
		s, text := check.judge()
		add(check.name, s, text)
	}
	return v
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

// judgeOrder looks for stamps that cannot be: due <= ready <= sent <= headers
// <= chunks, each not before the last, <= end, none negative. Headers and
// Answer are zero when unknown.
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
		step(c.Sent, "sent")
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

// tokenSlack is the share by which counted tokens may differ from usage before
// it is worth a word.
const tokenSlack = 0.01

// judgeTokens reconciles the tokens counted in the stream with usage, call by
// call, so that errors in both directions do not cancel. The server's count
// is the larger when a chunk carries several tokens (speculation, a stream
// interval) or when tokens are not streamed at all (hidden reasoning): n is
// right, and inter-token latencies are per chunk. It cannot be the smaller by
// more than a stray flush: then chunks that are no tokens were counted, TTFT
// may be theirs, and the run is void.
func (r *run) judgeTokens() (Status, string) {
	if r.pooled() {
		return r.judgePrompts()
	}
	usage, over, under, reasoning, told, whole := 0, 0, 0, 0, 0, 0
	for _, c := range r.ok {
		n, from := c.Output()
		if _, later := c.opening(); n > 1 && !later {
			whole++
		}
		if from != FromUsage {
			continue
		}
		told++
		usage += n
		reasoning += c.Usage.Reasoning
		over += max(0, c.Counted()-n)
		under += max(0, n-c.Counted())
	}
	if told == 0 && r.h.Predicted {
		return Sound, fmt.Sprintf("%d output tokens predicted", r.tokens)
	}
	if told == 0 {
		return Noted, fmt.Sprintf("the server sent no usage: %d output tokens were counted in the stream, one a chunk", r.tokens)
	}
	counted := fmt.Sprintf("%d counted in the stream, %d by usage", usage+over-under, usage)
	switch {
	case float64(over) > tokenSlack*float64(usage):
		return Voided, fmt.Sprintf("more tokens streamed than the server says it made: %s", counted)
	case whole > 0:
		return Noted, fmt.Sprintf("%d of %d calls got all their tokens in one read: their TTFT is their end, they have no TPOT or ITL (%s)", whole, len(r.ok), counted)
	case float64(under) > tokenSlack*float64(usage):
		text := fmt.Sprintf("a chunk carries %.2f tokens on average (%s): ITL is per chunk, TPOT per token",
			float64(usage)/float64(max(1, usage+over-under)), counted)
		if reasoning > 0 {
			text += fmt.Sprintf("; %d of the tokens were reasoning, which the server may not stream", reasoning)
		}
		return Noted, text
	case told < len(r.ok):
		return Noted, fmt.Sprintf("usage came with %d of %d calls (%s); the others' tokens were counted in the stream", told, len(r.ok), counted)
	case over > 0:
		return Noted, fmt.Sprintf("%d chunks more than tokens (%s)", over, counted)
	}
	return Sound, "output tokens: " + counted
}

// judgePrompts says who counted the prompts where nothing is generated.
func (r *run) judgePrompts() (Status, string) {
	told := 0
	for _, c := range r.ok {
		if _, from := c.Input(); from == FromUsage {
			told++
		}
	}
	text := fmt.Sprintf("nothing is generated: %d whole answers to %d input tokens", len(r.ok), r.prompts)
	if told < len(r.ok) {
		return Noted, fmt.Sprintf("%s, of which the server counted those of %d calls and the workload the others'", text, told)
	}
	return Sound, text
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

// judgeCache remarks on prompts that the server did not have to compute: the
// seed of an earlier run finds its prompts again, and such a run looks faster
// than the engine is.
func (r *run) judgeCache() (Status, string) {
	const share = 0.01 // of the prompt tokens; a chat template alone is less
	if float64(r.cached) <= share*float64(r.prompts) {
		return Sound, fmt.Sprintf("%d of %d prompt tokens came from the server's prefix cache, as far as it tells", r.cached, r.prompts)
	}
	return Remark, fmt.Sprintf("%.1f %% of the prompt tokens (%d of %d) came from the server's prefix cache: if the workload shares no prefixes, use another --seed than the last run",
		100*float64(r.cached)/float64(r.prompts), r.cached, r.prompts)
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

// lagVoid is how many times its limit the dispatch lag may be before the run
// is void: latencies count from the sending, so a little lag shifts arrivals
// and falsifies no latency, but a client that is late by far offered another
// load than was asked for.
const lagVoid = 10

// judgeLag judges whether the client was on time: p99 of the lag within 1 ms or
// 1 % of the median TTFT, whichever is more. When all requests are due at once
// the limit is 50 ms or 5 %, because writing a thousand requests takes time
// that no client can save.
func (r *run) judgeLag() (Status, string) {
	lag, ok := r.figures["p99_dispatch_lag_ms"]
	if !ok {
		return not("no call was sent")
	}
	floor, share := 1.0, 0.01
	if r.burst() {
		floor, share = 50, 0.05
	}
	limit := max(floor, share*r.answerMS())
	if lag > limit {
		status := Noted
		if lag > lagVoid*limit {
			status = Voided
		}
		return status, fmt.Sprintf("the load generator was late: dispatch lag p99 %.3f ms is above %.3f ms (void above %.3f ms)", lag, limit, lagVoid*limit)
	}
	return Sound, fmt.Sprintf("dispatch lag p50 %.3f ms, p99 %.3f ms, allowed %.3f ms", r.figures["p50_dispatch_lag_ms"], lag, limit)
}

// answerMS is the latency that the client's own delays are measured against:
// the median to the first token, or to the end where there is none.
func (r *run) answerMS() float64 {
	return cmp.Or(r.figures["median_ttft_ms"], r.figures["median_e2el_ms"])
}

// noClient says why there is nothing to judge the client by.
func (r *run) noClient() string {
	if r.h.Predicted {
		return "predicted, no client ran"
	}
	return "the run left no record of its client"
}

func (r *run) judgeCPU() (Status, string) {
	if r.c == nil || r.c.Wall <= 0 || r.c.Procs <= 0 {
		return not(r.noClient())
	}
	share := float64(r.c.CPU) / (float64(r.c.Wall) * float64(r.c.Procs))
	text := fmt.Sprintf("the load generator used %.0f %% of its %d processors", 100*share, r.c.Procs)
	switch {
	case share > 0.95:
		return Voided, text + ": it measured itself"
	case share > 0.8:
		return Noted, text + ": use more of them or less load"
	}
	return Sound, text
}

func (r *run) judgeGC() (Status, string) {
	if r.c == nil {
		return not(r.noClient())
	}
	limit := max(5, 0.05*r.answerMS())
	text := fmt.Sprintf("longest garbage collection pause %.3f ms, allowed %.3f ms", ms(r.c.GCMax), limit)
	if ms(r.c.GCMax) > limit {
		return Noted, text
	}
	return Sound, text
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
	asked := r.o.Percentiles
	if asked == nil {
		asked = percentiles
	}
	var thin []string
	for _, p := range asked {
		if need := stat.MinSamples(p / 100); p > 0 && p < 100 && len(r.ok) < need {
			thin = append(thin, fmt.Sprintf("%s needs %d", strings.ToUpper(pName(p)), need))
		}
	}
	if len(thin) == 0 {
		return Sound, fmt.Sprintf("%d calls are enough for the percentiles", len(r.ok))
	}
	return Remark, fmt.Sprintf("%d calls are few: %s", len(r.ok), strings.Join(thin, ", "))
}
