package interop

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"time"

	"perflab/internal/result"
)

// aiperfRequests makes one run of the lines of profile_export.jsonl.
type aiperfRequests struct {
	r        *reading
	calls    []aiperfCall
	sessions map[string]int // conversations, from 1
	turns    bool           // some conversation has more than one
	warmups  int
}

// aiperfCall is a call whose instants still are the wall clock's.
type aiperfCall struct {
	result.Call
	due, sent, end int64  // ns; 0 where it is not known
	chunks         column // ms since sent
}

// add takes one line.
func (g *aiperfRequests) add(o object) {
	if g.r == nil {
		g.r = newReading(o, aiperfClient, FormatAIPerf)
		g.sessions = map[string]int{}
	}
	g.r.run.Place.End, g.r.run.Header.Imported.End = o.end, o.end
	about, _ := find(o, "metadata")
	metadata := keyed(about)
	if textOf(metadata["benchmark_phase"]) == "warmup" || textOf(metadata["phase_kind"]) == "warmup" {
		g.warmups++
		return
	}
	c := aiperfCall{Call: result.Call{Index: len(g.calls)}}
	for _, at := range []struct {
		key    string
		target *int64
	}{{"request_start_ns", &c.sent}, {"request_end_ns", &c.end}, {"credit_issued_ns", &c.due}} {
		if err := instant(metadata[at.key], at.key, at.target); err != nil {
			g.r.faultf(o.line, "the request is not read: %v", err)
			return
		}
	}
	if c.sent <= 0 {
		g.r.faultf(o.line, "the request is not read: it has no request_start_ns")
		return
	}
	g.conversation(metadata, &c)
	metrics, _ := find(o, "metrics")
	g.metrics(keyed(metrics), &c)
	if failure, ok := find(o, "error"); ok && !null(failure.raw) {
		c.fail(failure)
	} else if string(metadata["was_cancelled"].raw) == "true" {
		c.Class, c.Error = result.Cancelled, "the client cancelled it"
	}
	g.calls = append(g.calls, c)
}

// instant reads nanoseconds, which are more than a float holds exactly. A
// value that is not there leaves the target as it is.
func instant(m member, key string, target *int64) error {
	if null(m.raw) {
		return nil
	}
	v, err := strconv.ParseInt(string(m.raw), 10, 64)
	if err != nil || v < 0 {
		return fmt.Errorf("%s is %s where nanoseconds should be", key, short(string(m.raw)))
	}
	*target = v
	return nil
}

// conversation takes what a request is a turn of.
func (g *aiperfRequests) conversation(metadata map[string]member, c *aiperfCall) {
	if turn, err := jsonNumber(metadata["turn_index"].raw); err == nil && turn > 0 && turn < maxCount {
		c.Turn, g.turns = int(turn), true
	}
	key := cmp.Or(textOf(metadata["x_correlation_id"]), textOf(metadata["conversation_id"]))
	if g.sessions[key] == 0 {
		g.sessions[key] = len(g.sessions) + 1
	}
	c.Session = g.sessions[key]
}

// metrics takes the figures of a request that make a call.
func (g *aiperfRequests) metrics(metrics map[string]member, c *aiperfCall) {
	value := func(key string) float64 {
		v := math.NaN()
		if m, ok := metrics[key]; ok {
			if err := take(m, "value", &v); err != nil {
				g.r.faultf(m.line, "%s of request %d: %v: it is read as missing", key, c.Index, err)
			}
		}
		return v
	}
	counts := column{
		value("input_sequence_length"), value("output_sequence_length"), value("usage_prompt_tokens"), value("usage_completion_tokens"),
		value("usage_reasoning_tokens"),
	}
	if c.WantIn = counts.wholeAt(0); c.WantIn == 0 {
		c.WantIn = column{value("error_isl")}.wholeAt(0)
	}
	c.Recount = counts.wholeAt(1)
	if counts.has(2) || counts.has(3) {
		c.Usage = &result.Usage{Prompt: counts.wholeAt(2), Completion: counts.wholeAt(3), Reasoning: counts.wholeAt(4)}
	}
	first := value("time_to_first_token")
	if math.IsNaN(first) {
		return
	}
	c.chunks = column{first}
	if list, ok := at(metrics["inter_chunk_latency"], "value"); ok {
		list.key = "inter_chunk_latency"
		c.chunks = append(c.chunks, g.r.numbers(list)...)
	} else if last := value("request_latency"); !(last-first < 1e-3) {
		c.chunks = nil // of its chunks the first alone is known
	}
}

// fail takes what went wrong with a request.
func (c *aiperfCall) fail(failure member) {
	c.Error, c.Class = failed(failure, "type", "message")
	code := math.NaN()
	_ = take(failure, "code", &code)
	if code >= 400 && code < 600 && code != 499 {
		c.Class, c.Status = result.HTTPStatus, int(code)
	}
}

// run returns the run of the lines. Its calls count from when the first of
// them was due.
func (g *aiperfRequests) run() ([]Run, []Fault) {
	zero := int64(math.MaxInt64)
	for _, c := range g.calls {
		if zero = min(zero, c.sent); c.due > 0 {
			zero = min(zero, c.due)
		}
	}
	r := g.r
	for _, c := range g.calls {
		call, err := c.since(zero)
		if err != nil {
			r.faultf(r.run.Place.Line, "request %d is not read: %v", c.Index, err)
			continue
		}
		if !g.turns {
			call.Session = 0
		}
		r.run.Calls = append(r.run.Calls, call)
	}
	if len(g.calls) > 0 {
		r.run.Header.Requests = len(g.calls)
		r.run.Header.Started = time.Unix(0, zero).UTC()
	}
	if g.warmups > 0 {
		r.labels()["warmup_requests"] = fmt.Sprint(g.warmups)
	}
	return r.done()
}

// since returns the call with its instants counted from zero.
func (c *aiperfCall) since(zero int64) (result.Call, error) {
	call := c.Call
	sent, end := time.Duration(c.sent-zero), time.Duration(max(c.end, c.sent)-zero)
	if end > longest*time.Second {
		return call, fmt.Errorf("it ended %v after the first was sent", end)
	}
	call.Due, call.Ready, call.Sent, call.End = sent, sent, sent, end
	if c.due > 0 {
		call.Due = min(time.Duration(c.due-zero), sent)
	}
	if len(c.chunks) == 0 {
		return call, nil
	}
	first, ok := span(c.chunks[0] / 1e3)
	if !ok {
		return call, fmt.Errorf("its time to first token is %v ms", c.chunks[0])
	}
	gaps := make(column, 0, len(c.chunks)-1)
	for _, ms := range c.chunks[1:] {
		gaps = append(gaps, ms/1e3)
	}
	chunks, err := gapChunks(sent+first, gaps)
	if err != nil {
		return call, err
	}
	call.Chunks, call.End = chunks, max(end, chunks[len(chunks)-1].At)
	return call, nil
}
