package interop

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"perflab/internal/result"
)

// knowsVLLM knows the flat object of vllm bench serve, and of what writes the
// same: older benchmark_serving.py, its sweeps' summaries, and perflab.
func knowsVLLM(o object) bool {
	return o.has("duration", "completed") && (o.has("model_id") || o.has("request_throughput") || knowsPerflab(o))
}

// knowsPerflab tells perflab's own result by keys that no other client writes.
func knowsPerflab(o object) bool { return o.has("verdict", "failures_by_class") }

// vllmConfig are the keys that say what was run, besides text, which metadata
// may add under any key.
var vllmConfig = []string{
	"burstiness", "max_model_len", "best_of", "use_beam_search", "ramp_up_start_rps", "ramp_up_end_rps", "rps_change_events",
	"num_conversations", "turns_per_conversation", "multi_turn_concurrency", "inter_turn_delay_ms", "no_history_accumulation",
	"prefix_global_ratio", "prefix_conversation_ratio", "prefix_unique_ratio",
}

// vllmLists are the keys that hold a value a request.
var vllmLists = []string{
	"input_lens", "output_lens", "ttfts", "itls", "latencies", "start_times", "queue_times", "generated_texts", "errors",
}

// readVLLM reads one result of vllm bench serve, of the Python client or the
// Rust one.
func readVLLM(o object) ([]Run, []Fault) {
	r := newReading(o, "vllm bench serve", FormatVLLM)
	own := knowsPerflab(o)
	if own {
		r.run.Header.Imported.Client, r.exact = "perflab bench", true
	}
	r.vllmDefinitions(o, own)
	for _, m := range o.members {
		if !r.vllmHead(m) && !slices.Contains(vllmLists, m.key) {
			r.vllmMember(m, own)
		}
	}
	r.vllmCalls(o, own)
	return r.done()
}

// vllmDefinitions says by which definitions the figures were made.
func (r *reading) vllmDefinitions(o object, own bool) {
	if own {
		if raw := o.fields["compat"]; !null(raw) {
			r.run.Defs = result.DefinitionsOf(plain(raw))
		}
		for m := range items(o.fields["definitions"], 0) {
			if r.run.Defs == nil {
				r.run.Defs = map[string]result.Definition{}
			}
			r.run.Defs[m.key] = result.Definition(plain(m.raw))
		}
		return
	}
	r.run.Defs = result.DefinitionsOf(result.VLLM)
	r.run.Defs["e2el_due"] = result.LastMessage
	if rust := o.has("max_model_len") || o.has("steady_state"); rust || !o.has("queue_times") {
		// Of the Python client, those that count the peak exactly keep the queue times.
		r.run.Defs["max_concurrent_requests"] = result.SecondBuckets
	}
}

// vllmHead takes the keys that have a place in the header.
func (r *reading) vllmHead(m member) bool {
	h := &r.run.Header
	switch m.key {
	case "date":
		r.started(m)
	case "model_id":
		h.Model = textOf(m)
	case "backend":
		h.Backend = textOf(m)
	case "endpoint_type":
		if h.Backend == "" {
			h.Backend = textOf(m)
		}
	case "tokenizer_id":
		h.Tokenizer = textOf(m)
	case "num_prompts":
		h.Requests, _ = r.count(m)
	case "request_rate":
		r.rate(m)
	case "max_concurrency":
		r.limit(m)
	default:
		return false
	}
	return true
}

// vllmMember takes a figure, or what else the file has.
func (r *reading) vllmMember(m member, own bool) {
	name := strings.TrimSuffix(m.key, ":") // older ones wrote "request_goodput:"
	name = strings.Replace(name, "_client_queue_time_ms", "_queue_ms", 1)
	name = strings.Replace(name, "_e2el_including_client_queue_ms", "_e2el_due_ms", 1)
	metric, err := result.Lookup(name)
	switch {
	case err == nil && (metric.Name == name || kind(m.raw) != "text"): // other text is metadata
		r.figure(name, m.key, m, 1)
	case own && m.key == "simulated":
		r.run.Sim = string(m.raw) == "true"
		r.run.Header.Simulated = r.run.Sim
	case own && m.key == "verdict":
		if err := json.Unmarshal(m.raw, &r.run.Verdict); err != nil {
			r.faultf(m.line, "the verdict cannot be read: %v", err)
		}
	case own && m.key == "predicted":
		r.run.Header.Predicted = string(m.raw) == "true"
	case kind(m.raw) == "text" || slices.Contains(vllmConfig, m.key):
		r.label(m.key, m)
	default:
		r.other(m.key, m)
	}
}

// vllmLog is the lists of a detailed result.
type vllmLog struct {
	starts, ttfts, latencies, queues, inputs, outputs column
	gaps                                              []column
	texts, errs                                       []string
}

// vllmCalls makes calls of the lists, where the file says when requests were
// sent. Their chunks are vLLM's messages: what one of them carried is not
// known, so each is one token of the stream.
func (r *reading) vllmCalls(o object, own bool) {
	log, n, ok := r.vllmLists(o)
	if !ok {
		return
	}
	zero := 0.0
	if !own {
		zero = log.zero(n)
	}
	for i := range n {
		c, err := log.call(i, zero)
		if err != nil {
			r.faultf(o.line, "request %d of the lists is not read: %v", i, err)
			continue
		}
		if r.run.Header.Limit == 0 && own {
			c.Due = c.Sent
		}
		r.run.Calls = append(r.run.Calls, c)
	}
	if own { // when a request was due stands in no list of vLLM's
		r.classes(o)
		r.run.Lacks = append(r.run.Lacks, "ttft_due", "ttfa_due", "e2el_due", "stream_due", "dispatch_lag")
	}
}

// vllmLists reads the lists of a detailed result. Where they do not belong
// together there are no calls, and what is there is told of.
func (r *reading) vllmLists(o object) (log vllmLog, n int, ok bool) {
	present := []member{}
	for _, m := range o.members {
		if slices.Contains(vllmLists, m.key) && kind(m.raw) == "a list" {
			present = append(present, m)
		}
	}
	if !o.has("start_times") || !(o.has("ttfts") || o.has("latencies")) {
		for _, m := range present {
			r.run.Other = append(r.run.Other, Pair{m.key, fmt.Sprintf("a list of %d", length(m)), m.line})
		}
		return log, 0, false
	}
	ok = true
	for _, m := range o.members {
		if slices.Contains(vllmLists, m.key) && kind(m.raw) != "a list" && !null(m.raw) {
			r.faultf(m.line, "%s is %s where a list should be: the requests are not read", m.key, kind(m.raw))
			ok = false
		}
	}
	starts := false
	lengths := map[string]int{}
	for _, m := range present {
		lengths[m.key] = length(m)
	}
	n, starts = lengths["start_times"]
	for _, m := range present {
		if got := lengths[m.key]; starts && got != n {
			r.faultf(m.line, "%s has %d entries where start_times has %d: the requests are not read", m.key, got, n)
			ok = false
		}
	}
	if !ok || !starts {
		return log, 0, false
	}
	for _, m := range present {
		r.vllmList(&log, m)
	}
	return log, n, true
}

// vllmList reads one of the lists.
func (r *reading) vllmList(log *vllmLog, m member) {
	switch m.key {
	case "itls":
		log.gaps = r.lists(m)
	case "generated_texts":
		log.texts = r.texts(m)
	case "errors":
		log.errs = r.texts(m)
	default:
		*map[string]*column{
			"start_times": &log.starts, "ttfts": &log.ttfts, "latencies": &log.latencies, "queue_times": &log.queues,
			"input_lens": &log.inputs, "output_lens": &log.outputs,
		}[m.key] = r.numbers(m)
	}
}

// zero returns when the run began on the client's clock: when the first request
// was due. Requests that failed before they had a start have 0 for it.
func (l *vllmLog) zero(n int) float64 {
	zero := math.Inf(1)
	for i := range n {
		if !l.starts.has(i) || l.failed(i) && l.starts[i] == 0 {
			continue
		}
		wait := 0.0
		if l.queues.has(i) {
			wait = max(0, l.queues[i])
		}
		zero = min(zero, l.starts[i]-wait)
	}
	if math.IsInf(zero, 0) {
		return 0
	}
	return zero
}

// failed reports whether a request failed: it has an error, or nothing came.
func (l *vllmLog) failed(i int) bool {
	if i < len(l.errs) && l.errs[i] != "" {
		return true
	}
	timed := l.ttfts.has(i) && l.ttfts[i] > 0 || l.latencies.has(i) && l.latencies[i] > 0
	return !timed && l.outputs.wholeAt(i) == 0
}

// call makes the call of request i.
func (l *vllmLog) call(i int, zero float64) (result.Call, error) {
	c := result.Call{Index: i, WantIn: l.inputs.wholeAt(i)}
	if !l.starts.has(i) {
		return c, fmt.Errorf("it has no start time")
	}
	ok := false
	if c.Sent, ok = span(max(0, l.starts[i]-zero)); !ok {
		return c, fmt.Errorf("its start time is %v s", l.starts[i])
	}
	c.Due, c.Ready, c.End = c.Sent, c.Sent, c.Sent
	if l.queues.has(i) {
		wait, ok := span(max(0, l.queues[i]))
		if !ok {
			return c, fmt.Errorf("its queue time is %v s", l.queues[i])
		}
		c.Due = max(0, c.Sent-wait)
	}
	if i < len(l.texts) {
		c.Text = l.texts[i]
	}
	if err := l.stream(i, &c); err != nil {
		return c, err
	}
	if l.failed(i) {
		c.Class, c.Error = result.HTTPStatus, "the client gives no reason"
		if i < len(l.errs) && l.errs[i] != "" {
			c.Class, c.Error = classOf(l.errs[i]), lastLine(l.errs[i])
		}
		return c, nil
	}
	c.Usage = &result.Usage{Prompt: c.WantIn, Completion: l.outputs.wholeAt(i)}
	return c, nil
}

// stream sets when a call's messages came, and its end.
func (l *vllmLog) stream(i int, c *result.Call) error {
	if l.latencies.has(i) {
		d, ok := span(l.latencies[i])
		if !ok {
			return fmt.Errorf("its latency is %v s", l.latencies[i])
		}
		c.End = c.Sent + d
	}
	if !l.ttfts.has(i) || l.failed(i) && l.ttfts[i] == 0 {
		return nil
	}
	ttft, ok := span(l.ttfts[i])
	if !ok {
		return fmt.Errorf("its time to first token is %v s", l.ttfts[i])
	}
	var gaps column
	if i < len(l.gaps) {
		gaps = l.gaps[i]
	}
	chunks, err := gapChunks(c.Sent+ttft, gaps)
	if err != nil {
		return err
	}
	c.Chunks = chunks
	c.End = max(c.End, chunks[len(chunks)-1].At)
	return nil
}

// classes gives failed calls of perflab the class that its summary counted,
// where there is one alone.
func (r *reading) classes(o object) {
	var all []result.Class
	for m := range items(o.fields["failures_by_class"], 0) {
		all = append(all, result.Class(m.key))
	}
	for i := range r.run.Calls {
		if c := &r.run.Calls[i]; !c.OK() && len(all) == 1 {
			c.Class = all[0]
		}
	}
}
