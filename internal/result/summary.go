package result

import (
	"fmt"
	"iter"
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

// AskedPercentiles are those asked for, else those that every summary has.
func (o Options) AskedPercentiles() []float64 {
	if len(o.Percentiles) == 0 {
		return percentiles
	}
	return o.Percentiles
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
// order of the calls does not matter. The summary has no verdict: a caller who
// wants one calls verdict.Summarize.
func Summarize(h Header, c *Client, o Options, calls iter.Seq[Call]) (Summary, error) {
	a, err := Analyze(h, c, o, calls)
	if err != nil {
		return Summary{}, err
	}
	return a.Summary(), nil
}

// Analysis is a run with its figures and with what they were computed from, for
// a judge of them. The figures are by our own definitions.
type Analysis struct {
	CallSet
	statistics
	Header  Header
	Client  *Client // nil: the run left no record of it
	Options Options

	Simulated bool
	Partial   bool // calls are missing

	OutputTokens, InputTokens int // over the successful calls
	CachedTokens              int // of the input, by usage
	Chunks, Merged            int // over the successful calls

	Peak      float64 // tokens in the busiest 1 s window
	Steady    Window
	Telemetry Telemetry // of a run with readings
}

// Analyze computes every figure of a run, as Summarize does.
func Analyze(h Header, c *Client, o Options, calls iter.Seq[Call]) (*Analysis, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	met, err := o.GoodputTest(h.Limit)
	if err != nil {
		return nil, err
	}
	a := &Analysis{Header: h, Client: c, Options: o, statistics: newStatistics(o.Percentiles)}
	for call := range calls {
		a.Add(&call)
	}
	a.Sort()
	a.Simulated = h.Simulated || h.Predicted || a.simulated
	a.Partial = a.partial()
	a.counts()
	a.rates(met)
	a.flow()
	a.latencies()
	a.measured()
	return a, nil
}

// Summary returns the figures, by the definitions that were asked for and
// without a verdict.
func (a *Analysis) Summary() Summary {
	s := Summary{
		Simulated: a.Simulated,
		Predicted: a.Header.Predicted,
		Partial:   a.Partial,
		Compat:    a.Options.Compat,
		Currency:  a.Options.Price.Currency,
		Failures:  a.Failures,
	}
	x := a.statistics
	if a.Options.Compat == VLLM {
		x = a.asVLLM()
		s.Definitions = DefinitionsOf(VLLM)
	}
	s.Figures, s.Samples, s.Intervals = x.Figures, x.Samples, x.Intervals
	return s
}

// partial reports whether calls are missing: the client says that it stopped,
// or left no record, or fewer calls came than were planned. The later turns of
// a conversation that failed are accounted for and not missing.
func (a *Analysis) partial() bool {
	if a.Client == nil {
		return !a.Header.Predicted || a.Total < a.Header.Requests
	}
	return a.Client.Partial || a.Total+a.Client.Unsent < a.Header.Requests
}

// counts sets totals, ratios of counts and what follows from the first and the
// last call.
func (a *Analysis) counts() {
	f := a.Figures
	if a.Header.Limit > 0 {
		f["max_concurrency"] = float64(a.Header.Limit)
	}
	if a.Header.HasRate() {
		f["request_rate"] = a.Header.Rate
	}
	f["completed"] = float64(len(a.Succeeded))
	f["failed"] = float64(a.Total - len(a.Succeeded))
	if a.Total == 0 {
		return
	}
	f["duration"] = (a.End - a.Start).Seconds()
	f["drain_s"] = max(0, (a.End - a.lastSent).Seconds())
	f["success_rate"] = float64(len(a.Succeeded)) / float64(a.Total)
	if len(a.Succeeded) == 0 {
		return
	}
	opened, connections := 0, false
	for _, c := range a.Succeeded {
		n, _ := c.Output()
		p, _ := c.Input()
		a.OutputTokens, a.InputTokens = a.OutputTokens+n, a.InputTokens+p
		if c.Usage != nil {
			a.CachedTokens += c.Usage.Cached
		}
		connections = connections || c.connected()
		if c.New {
			opened++
		}
	}
	if a.CachedTokens > 0 {
		f["total_cached_tokens"] = float64(a.CachedTokens)
	}
	if connections {
		f["new_connections"] = float64(opened)
	}
	f["total_input_tokens"] = float64(a.InputTokens)
	if !a.Pooling() {
		f["total_output_tokens"] = float64(a.OutputTokens)
	}
}

// rates sets what is divided by the duration, and the goodput, which counts the
// calls that met says; nil says that nothing was asked.
func (a *Analysis) rates(met func(*Call) bool) {
	f, good := a.Figures, 0
	if met != nil && a.Total > 0 {
		for _, c := range a.Succeeded {
			if met(c) {
				good++
			}
		}
		f["goodput_ratio"] = float64(good) / float64(a.Total)
	}
	d := f["duration"]
	if len(a.Succeeded) == 0 || d <= 0 {
		return
	}
	f["request_throughput"] = float64(len(a.Succeeded)) / d
	if !a.Pooling() {
		f["output_throughput"] = float64(a.OutputTokens) / d
	}
	f["total_token_throughput"] = float64(a.OutputTokens+a.InputTokens) / d
	if met != nil {
		f["request_goodput"] = float64(good) / d
	}
}
