package interop

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"perflab/internal/result"
)

// What a request may claim; more is no count.
const mostTokens = 1 << 30

// guideSim is how the ids of our simulator's answers begin.
var guideSim = []string{"chatcmpl-sim", "cmpl-sim"}

// guideCall is a request on the way to a call, with times since the epoch.
type guideCall struct {
	result.Call
	session    string
	unstreamed bool
}

// calls takes the requests as calls if the file has all of them.
func (r *guideRun) calls() {
	q := r.b.Requests
	if q == nil || len(q.Successful)+len(q.Incomplete)+len(q.Errored) == 0 {
		return
	}
	var calls []guideCall
	bad := 0
	for _, group := range []struct {
		class result.Class
		list  []json.RawMessage
	}{{result.OK, q.Successful}, {result.Cancelled, q.Incomplete}, {result.BadBody, q.Errored}} {
		for i, raw := range group.list {
			c, err := r.call(raw, group.class)
			if err == nil {
				calls = append(calls, c)
			} else if bad++; bad == 1 {
				r.fault(r.line, "request %d of %s cannot be read (%v)", i+1, guideGroup(group.class), err)
			}
		}
	}
	if calls = r.measured(calls); calls == nil {
		return
	}
	r.run.Header.Requests = len(calls)
	r.place(calls)
}

func guideGroup(c result.Class) string {
	switch c {
	case result.OK:
		return "requests.successful"
	case result.Cancelled:
		return "requests.incomplete"
	}
	return "requests.errored"
}

// measured returns the calls that the figures are of: all of the file, or those
// of the time between warm-up and cooldown. Where these are not as many as the
// file has counted, its calls are a sample and say nothing of the run.
func (r *guideRun) measured(calls []guideCall) []guideCall {
	want := r.b.Metrics.Totals
	count := func(calls []guideCall) (n guideCounts) {
		for i := range calls {
			switch calls[i].Class {
			case result.OK:
				n.Successful++
			case result.Cancelled:
				n.Incomplete++
			default:
				n.Errored++
			}
		}
		return n
	}
	if want == nil || count(calls) == *want {
		return calls
	}
	from, to := r.b.Scheduler.MeasureStart, r.b.Scheduler.MeasureEnd
	if from.ok && to.ok {
		inside := slices.DeleteFunc(slices.Clone(calls), func(c guideCall) bool {
			return int64(c.End) < from.ns || int64(c.Sent) > to.ns
		})
		if len(inside) > 0 && count(inside) == *want {
			return inside
		}
	}
	r.fault(r.line, "the file keeps %d requests of the %d that its figures are of: they are a sample and are not imported, the figures are",
		len(calls), want.Successful+want.Incomplete+want.Errored)
	return nil
}

// call makes a call of a request, with epoch times.
func (r *guideRun) call(raw json.RawMessage, class result.Class) (guideCall, error) {
	var q guideRequest
	if err := json.Unmarshal(raw, &q); err != nil {
		return guideCall{}, err
	}
	t := &q.Info.Timings
	sent, end := firstInstant(t.Start, t.ResolveStart, t.Dequeued, t.Targeted), firstInstant(t.End, t.ResolveEnd)
	if !sent.ok || !end.ok {
		return guideCall{}, errors.New("it has no request_start or no request_end")
	}
	due := firstInstant(t.Targeted, sent)
	ready := due
	if t.Dequeued.ok {
		ready.ns = max(due.ns, t.Dequeued.ns)
	}
	at := func(i guideTime) time.Duration { return time.Duration(i.ns) }
	c := guideCall{session: q.Info.Conversation}
	c.Call = result.Call{Turn: max(0, q.Info.Turn), Due: at(due), Ready: at(ready), Sent: at(sent), End: at(end), Class: class}
	if t.Answer.ok {
		c.Answer = at(t.Answer)
	}
	if class != result.OK {
		c.Class, c.Error = guideClass(class, q.Info.Error), q.Info.Error
	}
	c.Sim = slices.ContainsFunc(guideSim, func(p string) bool { return strings.HasPrefix(q.ResponseID, p) })
	in, out := max(q.In.Total, q.In.Text), max(q.Out.Total, q.Out.Text)
	if most := max(in, out, t.Events, q.In.Cached); most > mostTokens || min(in, out, t.Events, q.In.Cached) < 0 {
		return guideCall{}, errors.New("its counts of tokens cannot be")
	}
	if out > 0 {
		c.Usage = &result.Usage{Prompt: in, Completion: out, Cached: q.In.Cached}
	} else {
		c.WantIn, out = in, t.Events
	}
	c.unstreamed = class == result.OK && t.Events <= 1 && out > 1 && r.run.Header.Imported.Client != clientPerflab
	c.stamp(t.First, t.Last, out)
	return c, nil
}

// stamp gives the call the chunks that two instants tell of.
func (c *guideCall) stamp(first, last guideTime, n int) {
	if !first.ok || n <= 0 {
		return
	}
	if !last.ok {
		last = first
	}
	c.Chunks = []result.Chunk{{At: time.Duration(first.ns), Tokens: 1}}
	switch {
	case n == 1:
	case c.unstreamed:
		c.Chunks = append(c.Chunks, result.Chunk{At: max(c.End, time.Duration(first.ns)), Tokens: int32(n - 1)})
		c.Reads = 1
	case last == first:
		c.Chunks[0].Tokens = int32(n)
	default:
		c.Chunks = append(c.Chunks, result.Chunk{At: time.Duration(last.ns), Tokens: int32(n - 1)})
	}
}

// firstInstant returns the first that is there.
func firstInstant(list ...guideTime) guideTime {
	for _, t := range list {
		if t.ok {
			return t
		}
	}
	return guideTime{}
}

// guideClass is our class of a failure that guidellm tells of in words; ours
// come back as they were written.
func guideClass(class result.Class, text string) result.Class {
	if head, _, ok := strings.Cut(text, ": "); ok && slices.Contains(exportedClasses, result.Class(head)) {
		return result.Class(head)
	}
	if class == result.Cancelled {
		return class
	}
	low := strings.ToLower(text)
	for _, w := range []struct {
		word  string
		class result.Class
	}{
		{"connecttimeout", result.Connect}, {"connecterror", result.Connect}, {"connection", result.Connect}, {"refused", result.Connect},
		{"timeout", result.TimeoutTotal}, {"timed out", result.TimeoutTotal},
		{"client error", result.HTTPStatus}, {"server error", result.HTTPStatus}, {"status", result.HTTPStatus},
		{"remoteprotocolerror", result.EarlyClose}, {"incomplete", result.EarlyClose},
	} {
		if strings.Contains(low, w.word) {
			return w.class
		}
	}
	return class
}

// place numbers the calls by their sending and counts their times from the
// start of the scheduler.
func (r *guideRun) place(calls []guideCall) {
	slices.SortStableFunc(calls, func(a, b guideCall) int { return int(min(1, max(-1, a.Sent-b.Sent))) })
	zero := time.Duration(math.MaxInt64)
	for i := range calls {
		zero = min(zero, calls[i].Due, calls[i].Sent)
	}
	if s := r.b.Scheduler.Start; s.ok {
		zero = min(zero, time.Duration(s.ns))
	}
	r.run.Header.Started = time.Unix(0, int64(zero)).UTC()
	turns := slices.ContainsFunc(calls, func(c guideCall) bool { return c.Turn > 0 })
	sessions, unstreamed, done := map[string]int{}, 0, 0
	r.run.Calls = make([]result.Call, len(calls))
	for i := range calls {
		c := &calls[i]
		if turns && c.session != "" {
			if sessions[c.session] == 0 {
				sessions[c.session] = len(sessions) + 1
			}
			c.Session = sessions[c.session]
		}
		c.Index = i
		c.Due, c.Ready, c.Sent, c.End = c.Due-zero, c.Ready-zero, c.Sent-zero, c.End-zero
		if c.Answer > 0 {
			c.Answer -= zero
		}
		for k := range c.Chunks {
			c.Chunks[k].At -= zero
		}
		if c.OK() {
			done++
		}
		if c.unstreamed {
			unstreamed++
		}
		r.run.Sim = r.run.Sim || c.Sim
		r.run.Calls[i] = c.Call
	}
	r.run.Header.Simulated = r.run.Sim
	r.run.Lacks = twoStamps()
	for family, of := range map[string]string{"ttft_due": "ttft", "steady_ttft": "ttft"} {
		if d, ok := r.run.Defs[of]; ok {
			r.run.Defs[family] = d
		}
	}
	r.run.Defs["steady_tpot"] = result.DecodePerToken
	if unstreamed > 0 {
		r.run.Header.Imported.Labels[labelUnstreamed] = fmt.Sprintf("%d of %d", unstreamed, done)
		r.fault(r.line, "of %d successful requests %d have several output tokens and at most one token event: the client did not see their tokens come, "+
			"so its TPOT, ITL and peak throughput are not to be believed, and none is computed from these requests", done, unstreamed)
	}
}

// twoStamps is what calls cannot give of which only the first and the last
// token have a stamp.
func twoStamps() []string {
	return []string{
		"itl", "itl_token", "max_output_tokens_per_s", "merged_chunks", "tokens_per_chunk", "tokens_per_read",
		"steady_output_throughput", "steady_total_token_throughput", "full_load_output_throughput", "full_load_total_token_throughput",
	}
}
