package result

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"
)

// Options choose what Summarize computes beyond the fixed figures.
type Options struct {
	Percentiles []float64 // in percent, "99.9" style names; nil: 50 90 95 99
	Goodput     []SLO     // all must hold for a request to count; see ParseGoodput
	Compat      string    // VLLM: figures that vllm bench serve has by its definitions; "": ours

	Readings []Reading // sampled beside the calls; nil: none were
	Price    Price     // of the deployment, where known
	GPUs     int       // allocated to it; 0: none, or not known
}

// Validate reports what Summarize would refuse.
func (o Options) Validate() error {
	for _, p := range o.Percentiles {
		if !(p >= 0 && p <= 100) {
			return fmt.Errorf("percentile %v is not between 0 and 100", p)
		}
	}
	if o.Compat != "" && o.Compat != VLLM {
		return fmt.Errorf("definitions of %q are unknown: use %s, or none for our own", o.Compat, VLLM)
	}
	return nil
}

// Summary is the figures computed from a run, by metric name. A figure that
// the data does not support is absent, never zero.
type Summary struct {
	Simulated bool
	Predicted bool
	Partial   bool
	Figures   map[string]float64
	Compat    string // Options.Compat; the verdict is on our own definitions all the same
	// Definitions of the figures that are not ours, by family ("ttft") or scalar; see Summary.Definition.
	Definitions map[string]Definition
	Failures    map[Class]int         // failed calls by class
	Currency    string                // of what the figures name a cost, where known
	Samples     map[string]int        // behind the figures of a family, by its name: "ttft"
	Intervals   map[string][2]float64 // 95 % intervals of means, medians and percentiles, by metric name
	Verdict     Verdict
}

// Get returns a figure by name or alias.
func (s Summary) Get(name string) (v float64, ok bool) {
	if v, ok = s.Figures[name]; ok {
		return v, true
	}
	m, err := Lookup(name)
	if err != nil {
		return 0, false
	}
	v, ok = s.Figures[m.Name]
	return v, ok
}

// Summarize computes every figure of a run. It is pure and exact, and the
// order of the calls does not matter.
func Summarize(h Header, c *Client, o Options, calls iter.Seq[Call]) (Summary, error) {
	if err := o.Validate(); err != nil {
		return Summary{}, err
	}
	r := run{h: h, c: c, o: o, figures: map[string]float64{}, samples: map[string]int{}, intervals: map[string][2]float64{}}
	for call := range calls {
		r.add(&call)
	}
	byIndex := func(a, b *Call) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Sent, b.Sent), cmp.Compare(a.End, b.End))
	}
	slices.SortStableFunc(r.ok, byIndex)
	s := Summary{
		Simulated: h.Simulated || h.Predicted || r.sim,
		Predicted: h.Predicted,
		Partial:   r.partial(),
		Compat:    o.Compat,
		Currency:  o.Price.Currency,
		Figures:   r.figures,
		Failures:  r.failures,
		Samples:   r.samples,
		Intervals: r.intervals,
	}
	bounds, err := r.bounds()
	if err != nil {
		return Summary{}, err
	}
	r.goodput(bounds)
	r.counts()
	r.flow()
	r.latencies()
	r.measured()
	s.Verdict = r.judge(s.Simulated, s.Partial)
	if o.Compat == VLLM {
		r.asVLLM()
		s.Definitions = DefinitionsOf(VLLM)
	}
	return s, nil
}

// run is a run while it is summarised.
type run struct {
	h Header
	c *Client
	o Options

	ok       []*Call // successful, by index
	total    int     // calls of any outcome
	failures map[Class]int
	example  map[Class]*Call // the first of each class, by index
	sim      bool
	fields   map[string]int // unknown growing fields -> calls
	failed   []span         // when failed calls were in flight
	broken   []int          // indices of calls whose count of tokens cannot be

	start, end, lastSent time.Duration // over all calls
	good                 int           // calls within the goodput bounds
	tokens, prompts      int           // over the successful calls
	cached               int           // of the prompts, by usage
	chunks, merged       int           // over the successful calls

	peak      float64 // tokens in the busiest 1 s window
	steady    window
	t         telemetry // of a run with readings
	figures   map[string]float64
	samples   map[string]int
	intervals map[string][2]float64
}

// add takes one call in.
func (r *run) add(c *Call) {
	first := c.Due
	if c.OK() {
		first = min(first, c.Sent)
	}
	if r.total == 0 {
		r.start, r.end, r.lastSent = first, c.End, c.Sent
	}
	r.total++
	r.start, r.end, r.lastSent = min(r.start, first), max(r.end, c.End), max(r.lastSent, c.Sent)
	r.sim = r.sim || c.Sim
	if c.Field != "" {
		if r.fields == nil {
			r.fields = map[string]int{}
		}
		r.fields[c.Field]++
	}
	if !c.OK() {
		if r.failures == nil {
			r.failures, r.example = map[Class]int{}, map[Class]*Call{}
		}
		r.failures[c.Class]++
		if e := r.example[c.Class]; e == nil || c.Index < e.Index {
			r.example[c.Class] = c
		}
		r.failed = append(r.failed, span{max(c.Sent, c.Ready), c.End})
		return
	}
	c, believed := c.believed()
	if !believed {
		r.broken = append(r.broken, c.Index)
	}
	r.ok = append(r.ok, c)
}

// partial reports whether calls are missing: the client says that it stopped,
// or left no record, or fewer calls came than were planned. The later turns of
// a conversation that failed are accounted for and not missing.
func (r *run) partial() bool {
	if r.c == nil {
		return !r.h.Predicted || r.total < r.h.Requests
	}
	return r.c.Partial || r.total+r.c.Unsent < r.h.Requests
}

// bounds returns the tests of one call by the goodput bounds.
func (r *run) bounds() ([]func(*Call) bool, error) {
	bounds := make([]func(*Call) bool, len(r.o.Goodput))
	for i, slo := range r.o.Goodput {
		met, err := slo.perCall(r.h.Limit)
		if err != nil {
			return nil, err
		}
		bounds[i] = met
	}
	return bounds, nil
}

// goodput counts the calls that meet every bound.
func (r *run) goodput(bounds []func(*Call) bool) {
	if len(bounds) == 0 {
		return
	}
	for _, c := range r.ok {
		if !slices.ContainsFunc(bounds, func(met func(*Call) bool) bool { return !met(c) }) {
			r.good++
		}
	}
}

// counts sets totals, rates and ratios.
func (r *run) counts() {
	f := r.figures
	if r.h.Limit > 0 {
		f["max_concurrency"] = float64(r.h.Limit)
	}
	if finite(r.h.Rate) {
		f["request_rate"] = r.h.Rate
	}
	f["completed"] = float64(len(r.ok))
	f["failed"] = float64(r.total - len(r.ok))
	if r.total == 0 {
		return
	}
	d := (r.end - r.start).Seconds()
	f["duration"] = d
	f["drain_s"] = max(0, (r.end - r.lastSent).Seconds())
	f["success_rate"] = float64(len(r.ok)) / float64(r.total)
	if len(r.o.Goodput) > 0 {
		f["goodput_ratio"] = float64(r.good) / float64(r.total)
	}
	if len(r.ok) == 0 {
		return
	}
	opened, connections := 0, false
	for _, c := range r.ok {
		n, _ := c.Output()
		p, _ := c.Input()
		r.tokens, r.prompts = r.tokens+n, r.prompts+p
		if c.Usage != nil {
			r.cached += c.Usage.Cached
		}
		connections = connections || c.connected()
		if c.New {
			opened++
		}
	}
	if r.cached > 0 {
		f["total_cached_tokens"] = float64(r.cached)
	}
	if connections {
		f["new_connections"] = float64(opened)
	}
	f["total_input_tokens"] = float64(r.prompts)
	if !r.pooled() {
		f["total_output_tokens"] = float64(r.tokens)
	}
	if d <= 0 {
		return
	}
	f["request_throughput"] = float64(len(r.ok)) / d
	if !r.pooled() {
		f["output_throughput"] = float64(r.tokens) / d
	}
	f["total_token_throughput"] = float64(r.tokens+r.prompts) / d
	if len(r.o.Goodput) > 0 {
		f["request_goodput"] = float64(r.good) / d
	}
}

// pooled reports whether calls succeeded and none of them generated a token, as
// with an API for embeddings: then there are no figures of output.
func (r *run) pooled() bool {
	return r.tokens == 0 && len(r.ok) > 0 && !slices.ContainsFunc(r.ok, func(c *Call) bool { return len(c.Chunks) > 0 })
}
