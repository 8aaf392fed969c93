package result

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"perflab/internal/stat"
)

// Options choose what Summarize computes beyond the fixed figures.
type Options struct {
	Percentiles []float64 // in percent, "99.9" style names; nil: 50 90 95 99
	Goodput     []SLO     // all must hold for a request to count; see ParseGoodput
}

// Summary is the figures computed from a run, by metric name. A figure that
// the data does not support is absent, never zero.
type Summary struct {
	Simulated bool
	Predicted bool
	Partial   bool
	Figures   map[string]float64
	Failures  map[Class]int // failed calls by class
	Verdict   Verdict
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

// maxChunkTokens bounds what one chunk may claim: a server's running count
// that leaps further is broken, and its tokens are not worth the memory.
const maxChunkTokens = 1 << 20

// Summarize computes every figure of a run. It is pure and exact, and the
// order of the calls does not matter.
func Summarize(h Header, c *Client, o Options, calls iter.Seq[Call]) (Summary, error) {
	for _, p := range o.Percentiles {
		if !(p >= 0 && p <= 100) {
			return Summary{}, fmt.Errorf("percentile %v is not between 0 and 100", p)
		}
	}
	r := run{h: h, c: c, o: o, figures: map[string]float64{}}
	for call := range calls {
		if err := r.add(&call); err != nil {
			return Summary{}, err
		}
	}
	byIndex := func(a, b *Call) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Sent, b.Sent), cmp.Compare(a.End, b.End))
	}
	slices.SortStableFunc(r.ok, byIndex)
	s := Summary{
		Simulated: h.Simulated || h.Predicted || r.sim,
		Predicted: h.Predicted,
		Partial:   r.partial(),
		Figures:   r.figures,
		Failures:  r.failures,
	}
	if err := r.goodput(); err != nil {
		return Summary{}, err
	}
	r.counts()
	r.flow()
	r.latencies()
	s.Verdict = r.judge(s.Simulated, s.Partial)
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

	start, end, lastSent time.Duration // over all calls
	good                 int           // calls within the goodput bounds
	tokens, prompts      int           // over the successful calls
	cached               int           // of the prompts, by usage

	peak    float64 // tokens in the busiest 1 s window
	steady  window
	figures map[string]float64
}

// add takes one call in.
func (r *run) add(c *Call) error {
	for _, k := range c.Chunks {
		if k.Tokens < 0 || k.Tokens > maxChunkTokens {
			return fmt.Errorf("call %d has a chunk of %d tokens: its count is broken", c.Index, k.Tokens)
		}
	}
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
		return nil
	}
	r.ok = append(r.ok, c)
	return nil
}

// partial reports whether calls are missing: the client says that it stopped,
// or left no record, or fewer calls came than were planned.
func (r *run) partial() bool {
	if r.c == nil {
		return !r.h.Predicted || r.total < r.h.Requests
	}
	return r.c.Partial || r.total < r.h.Requests
}

// goodput counts the calls that meet every bound.
func (r *run) goodput() error {
	if len(r.o.Goodput) == 0 {
		return nil
	}
	bounds := make([]func(*Call) bool, len(r.o.Goodput))
	for i, slo := range r.o.Goodput {
		met, err := slo.perCall(r.h.Limit)
		if err != nil {
			return err
		}
		bounds[i] = met
	}
	for _, c := range r.ok {
		if !slices.ContainsFunc(bounds, func(met func(*Call) bool) bool { return !met(c) }) {
			r.good++
		}
	}
	return nil
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
	for _, c := range r.ok {
		n, _ := c.Output()
		p, _ := c.Input()
		r.tokens, r.prompts = r.tokens+n, r.prompts+p
		if c.Usage != nil {
			r.cached += c.Usage.Cached
		}
	}
	if r.cached > 0 {
		f["total_cached_tokens"] = float64(r.cached)
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

// latencies sets the statistics of every family.
func (r *run) latencies() {
	gaps, perToken, merged := r.gaps()
	if len(r.ok) > 0 && !r.pooled() {
		r.figures["merged_chunks"] = float64(merged)
	}
	for _, f := range families() {
		var x []float64
		switch {
		case f.name == "itl":
			x = gaps
		case f.name == "itl_token":
			x = perToken
		default:
			for _, c := range r.ok {
				if v, ok := f.value(c, r.h.Limit); ok {
					x = append(x, v)
				}
			}
		}
		r.distribution(f, x)
	}
}

// distribution sets the statistics of one family from its samples, which it
// sorts: sums over sorted values do not depend on the order of the calls.
func (r *run) distribution(f family, x []float64) {
	if len(x) == 0 {
		return
	}
	if !slices.IsSorted(x) {
		slices.Sort(x)
	}
	set := func(stat string, v float64) { r.figures[stat+"_"+f.name+"_ms"] = v }
	set("mean", stat.Mean(x))
	set("median", stat.Quantile(x, 0.5))
	set("std", stat.StdDev(x))
	set("min", x[0])
	set("max", x[len(x)-1])
	for _, p := range r.percentiles() {
		set(pName(p), stat.Quantile(x, p/100))
	}
}

// percentiles returns those every summary has and those asked for.
func (r *run) percentiles() []float64 {
	p := slices.Concat(percentiles, r.o.Percentiles)
	slices.Sort(p)
	return slices.Compact(p)
}

// gaps pools, over all calls, the gaps between reads that carried tokens, and
// the same per token. Chunks with their predecessor's stamp came in its read:
// they have no gap and are counted in merged.
func (r *run) gaps() (gaps, perToken []float64, merged int) {
	plain := true // every read brought one token: both pools are the same
	for _, c := range r.ok {
		k := c.Chunks
		plain = plain && c.weight() == 1
		for i := 1; i < len(k); i++ {
			if gap := k[i].At - k[i-1].At; gap != 0 {
				gaps = append(gaps, ms(gap))
			} else {
				merged++
			}
			plain = plain && k[i].Tokens == 1
		}
	}
	if plain && merged == 0 {
		return gaps, gaps, merged
	}
	for _, c := range r.ok {
		perToken = c.appendPerToken(perToken)
	}
	return gaps, perToken, merged
}

// weight is how many output tokens one counted token of the call stands for,
// so that a call's chunks sum to n. Without a counted token it is 0.
func (c *Call) weight() float64 {
	n, from := c.Output()
	if from == FromChunks {
		return 1
	}
	counted := c.Counted()
	if counted == 0 {
		return 0
	}
	return float64(n) / float64(counted)
}

// appendPerToken appends, for every read after the first, its gap divided by
// its tokens, once a counted token.
func (c *Call) appendPerToken(x []float64) []float64 {
	w := c.weight()
	for i := 1; i < len(c.Chunks); {
		at, before, tokens := c.Chunks[i].At, c.Chunks[i-1].At, 0
		for ; i < len(c.Chunks) && c.Chunks[i].At == at; i++ {
			tokens += int(c.Chunks[i].Tokens)
		}
		if at == before || w == 0 {
			continue // still the first read, or nothing counted
		}
		v := ms(at-before) / (float64(tokens) * w)
		for range tokens {
			x = append(x, v)
		}
	}
	return x
}

// ms is a duration in milliseconds.
func ms(d time.Duration) float64 { return float64(d) / 1e6 }

// from makes a family's value of a call's duration.
func from(d func(*Call) (time.Duration, bool)) func(*Call, int) (float64, bool) {
	return func(c *Call, _ int) (float64, bool) {
		v, ok := d(c)
		return ms(v), ok
	}
}

func tpotMS(c *Call, _ int) (float64, bool) {
	ns, ok := c.TPOT()
	return ns / 1e6, ok
}

// Names of a summary's JSON that are not figures.
const (
	keySimulated = "simulated"
	keyPredicted = "predicted"
	keyPartial   = "partial"
	keyFailures  = "failures_by_class"
	keyVerdict   = "verdict"
)

// MarshalJSON writes one flat object: the figures under their names in the
// order of the metric table, then simulated, predicted, partial,
// failures_by_class and verdict.
func (s Summary) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for _, name := range s.names() {
		v := s.Figures[name]
		figure, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("encode summary: figure %s: %w", name, err)
		}
		b = append(appendString(b, name), ':')
		b = append(append(b, figure...), ',')
	}
	failures := s.Failures
	if failures == nil {
		failures = map[Class]int{}
	}
	tail, err := json.Marshal(struct {
		Simulated bool          `json:"simulated"`
		Predicted bool          `json:"predicted"`
		Partial   bool          `json:"partial"`
		Failures  map[Class]int `json:"failures_by_class"`
		Verdict   Verdict       `json:"verdict"`
	}{s.Simulated, s.Predicted, s.Partial, failures, s.Verdict})
	if err != nil {
		return nil, err
	}
	return append(b, tail[1:]...), nil
}

// names returns the figures' names in the order of the metric table, unknown
// percentiles beside their family and the rest at the end.
func (s Summary) names() []string {
	rank := map[string]int{}
	for i, m := range Metrics() {
		rank[m.Name] = i
	}
	place := func(name string) int {
		if i, ok := rank[name]; ok {
			return i
		}
		if m, err := Lookup(name); err == nil && m.Family != "" {
			return rank[pName(99)+"_"+m.Family+"_ms"]
		}
		return len(rank)
	}
	return slices.SortedFunc(maps.Keys(s.Figures), func(a, b string) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a, b))
	})
}

// UnmarshalJSON reads what MarshalJSON writes. A null is an absent figure.
func (s *Summary) UnmarshalJSON(data []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	*s = Summary{Figures: map[string]float64{}}
	targets := map[string]any{
		keySimulated: &s.Simulated, keyPredicted: &s.Predicted, keyPartial: &s.Partial,
		keyFailures: &s.Failures, keyVerdict: &s.Verdict,
	}
	for name, raw := range fields {
		if bytes.Equal(raw, []byte("null")) {
			continue
		}
		if target, ok := targets[name]; ok {
			if err := json.Unmarshal(raw, target); err != nil {
				return fmt.Errorf("decode summary: %s: %w", name, err)
			}
			continue
		}
		var v float64
		if err := json.Unmarshal(raw, &v); err != nil {
			return fmt.Errorf("decode summary: figure %s: %w", name, err)
		}
		s.Figures[name] = v
	}
	if len(s.Failures) == 0 {
		s.Failures = nil
	}
	return nil
}
