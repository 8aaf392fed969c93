package interop

import (
	"fmt"
	"math"
	"path"
	"strings"

	"perflab/internal/result"
)

const inferencePerfClient = "inference-perf"

// knowsInferencePerf knows a lifecycle summary, of a run or of a stage.
func knowsInferencePerf(o object) bool { return o.has("load_summary", "successes", "failures") }

// knowsInferencePerfRequest knows an element of
// per_request_lifecycle_metrics.json.
func knowsInferencePerfRequest(o object) bool { return o.has("start_time", "end_time", "info") }

// inferencePerfFamilies are the distributions, in seconds, by the name of ours.
var inferencePerfFamilies = map[string]string{
	"request_latency": "e2el", "time_per_output_token": "tpot", "time_to_first_token": "ttft", "inter_token_latency": "itl",
}

// inferencePerfRates are the figures of throughput by the name of ours.
var inferencePerfRates = map[string]string{
	"output_tokens_per_sec": "output_throughput", "total_tokens_per_sec": "total_token_throughput", "requests_per_sec": "request_throughput",
}

// readInferencePerf reads a lifecycle summary.
func readInferencePerf(o object) ([]Run, []Fault) {
	r := newReading(o, inferencePerfClient, FormatInferencePerf)
	r.run.Defs = map[string]result.Definition{
		"ttft": result.FirstChunk, "tpot": result.DecodePerToken, "itl": result.TokenGapZeros, "e2el": result.StreamEnd,
	}
	if stage, ok := strings.CutPrefix(path.Base(o.file), "stage_"); ok {
		if n, _, found := strings.Cut(stage, "_lifecycle_metrics"); found {
			r.labels()[result.LabelCase] = "stage " + n
		}
	}
	for _, m := range o.members {
		switch m.key {
		case "benchmark_time_seconds":
			r.figure("duration", m.key, m, 1)
		case "load_summary":
			r.inferencePerfLoad(m)
		case "successes":
			r.inferencePerfSuccesses(m)
		case "failures":
			for inner := range items(m.raw, m.line) {
				if inner.key == "count" {
					r.figure("failed", "failures.count", inner, 1)
				} else {
					r.other("failures."+inner.key, inner)
				}
			}
		default:
			r.goodput(m)
		}
	}
	return r.done()
}

// inferencePerfLoad takes what was sent.
func (r *reading) inferencePerfLoad(load member) {
	for m := range items(load.raw, load.line) {
		switch m.key {
		case "count":
			r.run.Header.Requests, _ = r.count(m)
		case "requested_rate":
			r.rate(m)
		case "concurrency":
			r.limit(m)
		default:
			r.other("load_summary."+m.key, m)
		}
	}
}

// inferencePerfSuccesses takes the figures of the requests that succeeded.
func (r *reading) inferencePerfSuccesses(ok member) {
	for m := range items(ok.raw, ok.line) {
		label := "successes." + m.key
		switch m.key {
		case "count":
			r.figure("completed", label, m, 1)
		case "latency":
			for inner := range items(m.raw, m.line) {
				r.inferencePerfLatency(label+"."+inner.key, inner)
			}
		case "throughput":
			for inner := range items(m.raw, m.line) {
				if name := inferencePerfRates[inner.key]; name != "" {
					r.figure(name, label+"."+inner.key, inner, 1)
				} else {
					r.other(label+"."+inner.key, inner)
				}
			}
		case "prompt_tokens":
			r.total("total_input_tokens", label, m)
		case "output_tokens":
			r.outputTotal(ok, m)
		default:
			r.goodput(member{label, m.raw, m.line})
		}
	}
}

// inferencePerfLatency takes one distribution.
func (r *reading) inferencePerfLatency(label string, m member) {
	family := inferencePerfFamilies[m.key]
	if family == "" {
		r.other(label, m)
		return
	}
	for inner := range items(m.raw, m.line) {
		r.statistic(family, label+"."+inner.key, inner, 1e3)
	}
}

// total takes the total of a distribution as a figure of that name, if any.
func (r *reading) total(name, label string, m member) {
	total, ok := at(m, "total")
	if !ok || name == "" {
		r.other(label, m)
		return
	}
	r.figure(name, label+".total", total, 1)
	r.rest(label, m, "total")
}

// outputTotal takes the output tokens that the server counted, as a figure
// only where the client counted the same: its rates are of its own count.
func (r *reading) outputTotal(successes, tokens member) {
	name := "total_output_tokens"
	ours, theirs := math.NaN(), math.NaN()
	lengths, _ := at(successes, "output_len")
	if take(lengths, "mean", &ours) != nil || take(tokens, "mean", &theirs) != nil || !(math.Abs(ours-theirs) <= 1e-9*math.Abs(ours)) {
		name = ""
	}
	r.total(name, "successes.output_tokens", tokens)
}

// goodput takes the rate of good requests from where versions put it.
func (r *reading) goodput(m member) {
	good, ok := at(m, "request_goodput")
	if !ok {
		r.other(m.key, m)
		return
	}
	r.figure("request_goodput", m.key+".request_goodput", good, 1)
	r.rest(m.key, m, "request_goodput")
}

// inferencePerfRequests makes one run of the elements of
// per_request_lifecycle_metrics.json.
type inferencePerfRequests struct {
	r     *reading
	calls []inferencePerfCall
}

// inferencePerfCall is a call whose instants are the client's clock's.
type inferencePerfCall struct {
	result.Call
	sent, end float64 // s
	chunks    column
}

// add takes one element.
func (g *inferencePerfRequests) add(o object) {
	if g.r == nil {
		g.r = newReading(o, inferencePerfClient, FormatInferencePerf)
	}
	g.r.run.Place.End, g.r.run.Header.Imported.End = o.end, o.end
	c := inferencePerfCall{Call: result.Call{Index: len(g.calls)}, sent: math.NaN(), end: math.NaN()}
	top := member{raw: o.raw, line: o.line}
	for key, target := range map[string]*float64{"start_time": &c.sent, "end_time": &c.end} {
		if err := take(top, key, target); err != nil || math.IsNaN(*target) {
			g.r.faultf(o.line, "the request is not read: it has no %s that is a number", key)
			return
		}
	}
	g.info(top, &c)
	if failure, ok := find(o, "error"); ok && !null(failure.raw) {
		c.Error, c.Class = failed(failure, "error_type", "error_msg")
	}
	g.calls = append(g.calls, c)
}

// info takes the counts of a request and when its chunks came.
func (g *inferencePerfRequests) info(top member, c *inferencePerfCall) {
	value := func(keys ...string) int {
		m, ok := at(top, keys...)
		if !ok || null(m.raw) {
			return 0
		}
		v, err := jsonNumber(m.raw)
		if err != nil {
			g.r.faultf(m.line, "%s of request %d %v: it is read as missing", strings.Join(keys, "."), c.Index, err)
			return 0
		}
		return column{v}.wholeAt(0)
	}
	if c.WantIn = value("info", "request_metrics", "text", "input_tokens"); c.WantIn == 0 {
		c.WantIn = value("info", "input_tokens")
	}
	if c.Recount = value("info", "response_metrics", "output_tokens"); c.Recount == 0 {
		c.Recount = value("info", "output_tokens")
	}
	if usage, ok := at(top, "info", "response_metrics", "server_usage"); ok && !null(usage.raw) {
		key := []string{"info", "response_metrics", "server_usage"}
		c.Usage = &result.Usage{
			Prompt: value(append(key, "prompt_tokens")...), Completion: value(append(key, "completion_tokens")...),
			Cached: value(append(key, "prompt_tokens_details", "cached_tokens")...),
		}
	}
	for _, keys := range [][]string{{"info", "response_metrics", "output_token_times"}, {"info", "output_token_times"}} {
		if m, ok := at(top, keys...); ok && kind(m.raw) == "a list" {
			c.chunks = g.r.numbers(m)
			return
		}
	}
}

// run returns the run of the elements. Its calls count from when the first was
// sent: when they were due the file does not say.
func (g *inferencePerfRequests) run() ([]Run, []Fault) {
	zero := math.Inf(1)
	for _, c := range g.calls {
		zero = min(zero, c.sent)
	}
	r := g.r
	for _, c := range g.calls {
		call, err := c.since(zero)
		if err != nil {
			r.faultf(r.run.Place.Line, "request %d is not read: %v", c.Index, err)
			continue
		}
		r.run.Calls = append(r.run.Calls, call)
	}
	r.run.Header.Requests = len(g.calls)
	return r.done()
}

// since returns the call with its instants counted from zero. The tokens of one
// instant are those of one chunk, as its tokenizer counts them.
func (c *inferencePerfCall) since(zero float64) (result.Call, error) {
	call := c.Call
	sent, ok1 := span(c.sent - zero)
	end, ok2 := span(max(c.sent, c.end) - zero)
	if !ok1 || !ok2 {
		return call, fmt.Errorf("it was sent %v s after the first", c.sent-zero)
	}
	call.Due, call.Ready, call.Sent, call.End = sent, sent, sent, end
	for i := range c.chunks {
		at, ok := span(c.chunks[i] - zero)
		if !ok || at < sent {
			return call, fmt.Errorf("its token %d came %v s after the first was sent", i, c.chunks[i]-zero)
		}
		if n := len(call.Chunks); n > 0 && call.Chunks[n-1].At >= at {
			call.Chunks[n-1].Tokens++
			continue
		}
		call.Chunks = append(call.Chunks, result.Chunk{At: at, Tokens: 1, Read: int32(len(call.Chunks))})
	}
	if n := len(call.Chunks); n > 0 {
		call.End = max(end, call.Chunks[n-1].At)
	}
	if u := call.Usage; u != nil && u.Completion > 0 && u.Completion != call.Counted() {
		for i := range call.Chunks { // two ways of counting tokens make no rate
			call.Chunks[i].Tokens = 1
		}
	}
	return call, nil
}
