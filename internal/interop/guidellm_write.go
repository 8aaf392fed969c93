package interop

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"perflab/internal/result"
)

// guideShape is the version of guidellm whose layout is written.
const guideShape = "0.8.1"

// exportedClasses are our classes of failures, which begin the error of a
// request in a report of ours.
var exportedClasses = []result.Class{
	result.Connect, result.HTTPStatus, result.BadBody, result.StreamError, result.EarlyClose, result.ZeroTokens,
	result.TimeoutFirstToken, result.TimeoutIdle, result.TimeoutTotal, result.Cancelled,
}

// GuideLLM writes a run as a report that guidellm reads, in the layout of its
// versions 0.7 and 0.8. All figures are computed from the calls by guidellm's
// definitions, so they are not those of our summary: see result.Definition. A
// simulated run says so in the labels of its configuration.
func GuideLLM(h result.Header, calls []result.Call) ([]byte, error) {
	return newGuideWriter(h, calls).bytes()
}

// GuideFigures are the figures that a report of guidellm has of these calls.
func GuideFigures(h result.Header, calls []result.Call) (Run, error) {
	w := newGuideWriter(h, calls)
	w.lean = true
	data, err := w.bytes()
	if err != nil {
		return Run{}, err
	}
	if f := Read("report", data); len(f.Runs) == 1 {
		return f.Runs[0], nil
	}
	return Run{}, errors.New("the report of guidellm has no benchmark")
}

// newGuideWriter takes a run in.
func newGuideWriter(h result.Header, calls []result.Call) *guideWriter {
	w := &guideWriter{h: h, base: h.Started.UnixNano()}
	if h.Started.Unix() < 1e6 {
		w.base = 1e6 * 1e9 // of no known start: times must be positive
	}
	for i := range calls {
		w.add(&calls[i])
	}
	return w
}

// bytes is the report as JSON.
func (w *guideWriter) bytes() ([]byte, error) {
	data, err := json.MarshalIndent(w.report(), "", " ")
	if err != nil {
		return nil, fmt.Errorf("encode the run as a report of guidellm: %w", err)
	}
	return append(data, '\n'), nil
}

// guideWriter is a run while it is written.
type guideWriter struct {
	h        result.Header
	base     int64          // epoch nanoseconds of the run's start
	groups   [3][]guideStat // successful, incomplete, errored
	from, to time.Duration  // of the run
	sim      bool
	n        int
	lean     bool // figures alone, without the requests
}

// guideGroups are guidellm's names of the groups.
var guideGroups = [3]string{"successful", "incomplete", "errored"}

// guideStat is a call with what guidellm derives of it.
type guideStat struct {
	c                    *result.Call
	in, out, events      int
	first, last          time.Duration
	stamped              bool
	tpot, itl, ttft, e2e float64 // ms, ms, ms, s; zero where missing, as guidellm has it
}

func (w *guideWriter) add(c *result.Call) {
	s := guideStat{c: c, events: len(c.Chunks), e2e: (c.End - c.Sent).Seconds()}
	s.in, _ = c.Input()
	s.out, _ = c.Output()
	end := c.End
	if s.first, s.stamped = c.FirstToken(); s.stamped {
		s.last, _ = c.LastToken()
		s.ttft, end = guideMS(s.first-c.Sent), s.last
		if s.out > 1 {
			s.itl = guideMS(s.last-s.first) / float64(s.out-1)
		}
	}
	if s.out > 0 {
		s.tpot = guideMS(end-c.Sent) / float64(s.out)
	}
	group := 0
	switch {
	case c.Class == result.Cancelled:
		group = 1
	case !c.OK():
		group = 2
	}
	w.groups[group] = append(w.groups[group], s)
	begin := c.Due
	if c.OK() {
		begin = min(begin, c.Sent)
	}
	if w.n == 0 {
		w.from, w.to = begin, c.End
	}
	w.from, w.to = min(w.from, begin), max(w.to, c.End)
	w.sim = w.sim || c.Sim
	w.n++
}

func guideMS(d time.Duration) float64 { return float64(d) / 1e6 }

// guideObject is an object; encoding/json writes its keys in order.
type guideObject = map[string]any

// report is the whole file.
func (w *guideWriter) report() any {
	labels := map[string]string{labelClient: clientPerflab, labelVersion: w.h.Version, labelSimulated: strconv.FormatBool(w.sim || w.h.Simulated || w.h.Predicted)}
	target := "http://localhost"
	if len(w.h.Targets) > 0 {
		target = w.h.Targets[0]
	}
	strategy, profile := w.strategy()
	backend := guideObject{"kind": "openai_http", "target": target, "model": w.h.Model, "request_format": guideFormat(w.h.Backend)}
	config := guideObject{
		"id_": "perflab", "run_id": cmp.Or(w.h.Fingerprint, "perflab") + "-" + strconv.FormatInt(w.base, 10), "run_index": 0,
		"strategy": strategy, "constraints": guideObject{}, "warnings": []any{},
		"profile": profile, "requests": guideObject{}, "backend": backend, "environment": guideObject{},
	}
	return guideObject{
		"metadata": guideObject{"version": 2, "guidellm_version": guideShape, "python_version": "none", "platform": cmp.Or(w.h.Host.OS, "unknown")},
		"config": guideObject{
			"metadata": guideObject{"labels": labels},
			"spec": guideObject{
				"backend": backend, "profile": profile,
				"data": []any{guideObject{"kind": "huggingface", "source": cmp.Or(w.h.Workload, "unknown")}},
			},
		},
		"benchmarks": []any{guideObject{
			"type_": "generative_benchmark", "config": config,
			"scheduler_state":   w.state(),
			"scheduler_metrics": w.scheduler(strategy["type_"]),
			"metrics":           w.metrics(),
			"requests":          w.requests(),
			"start_time":        w.at(w.from), "end_time": w.at(w.to), "duration": (w.to - w.from).Seconds(),
			"warmup_duration": 0, "cooldown_duration": 0,
		}},
	}
}

// guideFormat is guidellm's name of an API of ours.
func guideFormat(backend string) string {
	switch backend {
	case "openai":
		return "/v1/completions"
	case "openai-embeddings":
		return "/v1/embeddings"
	}
	return "/v1/chat/completions"
}

// strategy is the load in guidellm's words.
func (w *guideWriter) strategy() (strategy, profile guideObject) {
	var limit any
	if w.h.Limit > 0 {
		limit = w.h.Limit
	}
	switch {
	case w.h.Rate > 0:
		kind := "poisson"
		if w.even() {
			kind = "constant"
		}
		return guideObject{"type_": kind, "rate": w.h.Rate, "max_concurrency": limit}, guideObject{"kind": kind, "rate": []float64{w.h.Rate}, "max_concurrency": limit}
	case w.h.Limit > 0:
		return guideObject{"type_": "concurrent", "streams": w.h.Limit}, guideObject{"kind": "concurrent", "streams": []int{w.h.Limit}}
	}
	return guideObject{"type_": "throughput", "max_concurrency": nil}, guideObject{"kind": "throughput"}
}

// even reports whether calls are due at equal distances.
func (w *guideWriter) even() bool {
	var due []time.Duration
	for _, g := range w.groups {
		for _, s := range g {
			due = append(due, s.c.Due)
		}
	}
	slices.Sort(due)
	for i := 2; i < len(due); i++ {
		if d := (due[i] - due[i-1]) - (due[1] - due[0]); d < -time.Microsecond || d > time.Microsecond {
			return false
		}
	}
	return len(due) > 2
}

// at is an instant as epoch seconds with all digits.
func (w *guideWriter) at(d time.Duration) json.Number {
	ns := w.base + int64(d)
	sign := ""
	if ns < 0 {
		sign, ns = "-", -ns
	}
	return json.Number(fmt.Sprintf("%s%d.%09d", sign, ns/1e9, ns%1e9))
}

func (w *guideWriter) state() any {
	return guideObject{
		"node_id": 0, "num_processes": 1, "start_time": w.at(0), "end_time": w.at(w.to),
		"start_requests_time": w.at(w.from), "end_requests_time": w.at(w.to),
		"created_requests": w.n, "processed_requests": w.n,
		"successful_requests": len(w.groups[0]), "cancelled_requests": len(w.groups[1]), "errored_requests": len(w.groups[2]),
	}
}

func (w *guideWriter) counts() any {
	return guideObject{"successful": len(w.groups[0]), "incomplete": len(w.groups[1]), "errored": len(w.groups[2]), "total": w.n}
}

// scheduler is what guidellm says of its own machinery: -1 is its word for
// what is not known.
func (w *guideWriter) scheduler(strategy any) any {
	m := guideObject{
		"start_time": w.at(0), "request_start_time": w.at(w.from), "measure_start_time": w.at(w.from),
		"measure_end_time": w.at(w.to), "request_end_time": w.at(w.to), "end_time": w.at(w.to),
		"requests_made": w.counts(), "strategy_type": strategy,
	}
	for _, name := range []string{
		"queued_time_avg", "resolve_start_delay_avg", "resolve_targeted_start_delay_avg", "request_start_delay_avg", "request_targeted_start_delay_avg",
		"request_time_avg", "resolve_end_delay_avg", "resolve_time_avg", "finalized_delay_avg", "processed_delay_avg",
	} {
		m[name] = -1
	}
	return m
}

// byStatus is one distribution for each group and one for all.
func (w *guideWriter) byStatus(samples func(*guideStat) []weighed, dist func([]weighed) guideDist) any {
	out := guideObject{}
	var all []weighed
	for i, g := range w.groups {
		var x []weighed
		for k := range g {
			x = append(x, samples(&g[k])...)
		}
		out[guideGroups[i]] = dist(x)
		all = append(all, x...)
	}
	out["total"] = dist(all)
	return out
}

// values is the distribution of one value a request.
func (w *guideWriter) values(value func(*guideStat) (v, weight float64)) any {
	return w.byStatus(func(s *guideStat) []weighed {
		v, weight := value(s)
		return []weighed{{v, weight}}
	}, func(x []weighed) guideDist { return ofValues(x, -1) })
}

// rates is the distribution of a rate over the run.
func (w *guideWriter) rates(events func(*guideStat) []weighed) any {
	return w.byStatus(events, func(x []weighed) guideDist { return ofRates(x, w.from.Seconds(), w.to.Seconds()) })
}

// metrics are the figures.
func (w *guideWriter) metrics() any {
	prompt := func(s *guideStat) []weighed {
		at := s.c.End
		if s.stamped {
			at = s.first
		}
		return []weighed{{at.Seconds(), float64(s.in)}}
	}
	plain := func(value func(*guideStat) float64) any {
		return w.values(func(s *guideStat) (float64, float64) { return value(s), 1 })
	}
	counted := func(events func(*guideStat) []weighed) any {
		return w.byStatus(func(s *guideStat) (x []weighed) {
			for _, e := range events(s) {
				x = append(x, weighed{e.w, 1})
			}
			return x
		}, func(x []weighed) guideDist { return ofValues(x, -1) })
	}
	return guideObject{
		"request_totals":      w.counts(),
		"requests_per_second": w.rates(func(s *guideStat) []weighed { return []weighed{{s.c.End.Seconds(), 1}} }),
		"request_concurrency": w.byStatus(func(s *guideStat) []weighed { return []weighed{{s.c.Sent.Seconds(), s.c.End.Seconds()}} },
			func(x []weighed) guideDist { return ofOverlap(x, w.from.Seconds(), w.to.Seconds()) }),
		"request_latency":                    plain(func(s *guideStat) float64 { return s.e2e }),
		"request_streaming_iterations_count": plain(func(s *guideStat) float64 { return float64(s.events) }),
		"prompt_token_count":                 plain(func(s *guideStat) float64 { return float64(s.in) }),
		"output_token_count":                 plain(func(s *guideStat) float64 { return float64(s.out) }),
		"total_token_count":                  plain(func(s *guideStat) float64 { return float64(s.in + s.out) }),
		"time_to_first_token_ms": w.byStatus(func(s *guideStat) []weighed {
			if !s.stamped {
				return nil
			}
			return []weighed{{s.ttft, 1}}
		}, func(x []weighed) guideDist { return ofValues(x, -1) }),
		"time_to_first_output_token_ms": w.byStatus(func(s *guideStat) []weighed {
			if s.c.Answer <= 0 {
				return nil
			}
			return []weighed{{guideMS(s.c.Answer - s.c.Sent), 1}}
		}, func(x []weighed) guideDist { return ofValues(x, -1) }),
		"time_per_output_token_ms":    w.values(func(s *guideStat) (float64, float64) { return s.tpot, float64(s.out) }),
		"inter_token_latency_ms":      w.values(func(s *guideStat) (float64, float64) { return s.itl, float64(max(0, s.out-1)) }),
		"time_to_last_round_trip_ms":  plain(func(*guideStat) float64 { return 0 }),
		"avg_round_trip_time_ms":      plain(func(*guideStat) float64 { return 0 }),
		"prompt_tokens_per_second":    w.rates(prompt),
		"output_tokens_per_second":    w.rates((*guideStat).tokens),
		"tokens_per_second":           w.rates(func(s *guideStat) []weighed { return append(prompt(s), s.tokens()...) }),
		"output_tokens_per_iteration": counted((*guideStat).tokens),
		"iter_tokens_per_iteration":   counted((*guideStat).later),
		"text":                        guideObject{"tokens": nil, "words": nil, "characters": nil},
		"image":                       guideObject{"tokens": nil, "images": nil, "pixels": nil, "bytes": nil},
		"video":                       guideObject{"tokens": nil, "frames": nil, "seconds": nil, "bytes": nil},
		"audio":                       guideObject{"tokens": nil, "samples": nil, "seconds": nil, "bytes": nil},
		"tool_call":                   guideObject{"tokens": nil, "mixed_tokens": nil, "count": nil},
	}
}

// tokens are the events of output tokens as guidellm has them: one token at
// the first and the others evenly between it and the last.
func (s *guideStat) tokens() []weighed {
	if !s.stamped || s.events <= 1 {
		at := s.c.End
		if s.stamped {
			at = s.last
		}
		return []weighed{{at.Seconds(), float64(s.out)}}
	}
	return append([]weighed{{s.first.Seconds(), float64(min(1, s.out))}}, s.later()...)
}

// later are those after the first.
func (s *guideStat) later() []weighed {
	if !s.stamped || s.events <= 1 || s.out <= 1 {
		return nil
	}
	each := float64(s.out-1) / float64(s.events-1)
	step := (s.last - s.first).Seconds() / float64(s.events-1)
	x := make([]weighed, 0, s.events-1)
	for i := 1; i < s.events; i++ {
		x = append(x, weighed{s.first.Seconds() + float64(i)*step, each})
	}
	return x
}

// requests are the calls.
func (w *guideWriter) requests() any {
	out := guideObject{"total": nil}
	for i, g := range w.groups {
		list := make([]any, 0, len(g))
		if w.lean {
			g = nil
		}
		for k := range g {
			list = append(list, w.request(&g[k], []string{"completed", "cancelled", "errored"}[i]))
		}
		out[guideGroups[i]] = list
	}
	return out
}

func (w *guideWriter) request(s *guideStat, status string) any {
	c := s.c
	t := guideObject{
		"targeted_start": w.at(c.Due), "queued": w.at(c.Due), "dequeued": w.at(c.Ready), "scheduled_at": w.at(c.Ready),
		"resolve_start": w.at(c.Sent), "request_start": w.at(c.Sent),
		"request_iterations": s.events, "token_iterations": s.events, "request_end": w.at(c.End), "resolve_end": w.at(c.End), "finalized": w.at(c.End),
	}
	if s.stamped {
		t["first_token_iteration"], t["last_token_iteration"] = w.at(s.first), w.at(s.last)
	}
	if c.Answer > 0 {
		t["first_output_token_iteration"] = w.at(c.Answer)
	}
	id := "perflab-" + strconv.Itoa(c.Index)
	info := guideObject{"request_id": id, "status": status, "turn_index": c.Turn, "timings": t}
	if c.Session > 0 {
		info["conversation_id"] = "session-" + strconv.Itoa(c.Session)
	}
	if !c.OK() {
		info["error"] = string(c.Class) + ": " + c.Error
	}
	in, out := guideObject{"text_tokens": s.in, "total_tokens": s.in}, guideObject{"text_tokens": s.out, "total_tokens": s.out}
	if c.Usage != nil && c.Usage.Cached > 0 {
		in["cached_tokens"] = c.Usage.Cached
	}
	return guideObject{
		"type_": "generative_request_stats", "request_id": id, "info": info, "input_metrics": in, "output_metrics": out,
		"request_start_time": w.at(c.Sent), "request_end_time": w.at(c.End), "request_latency": s.e2e, "prompt_tokens": s.in, "output_tokens": s.out,
	}
}
