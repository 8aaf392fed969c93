package result

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
)

// VLLMOptions choose what VLLMJSON writes beyond the fixed keys.
type VLLMOptions struct {
	Label       string            // label, also in the file's name; "" is null
	Tokenizer   string            // tokenizer_id; "": the model
	Burstiness  float64           // 0: 1
	Sections    []string          // --percentile-metrics; nil: ttft, tpot, itl
	Percentiles []float64         // --metric-percentiles; nil: 99
	Metadata    map[string]string // --metadata, flat
	Detailed    bool              // --save-detailed: per-request arrays, from calls

	RampStrategy       string // "": the rate does not ramp, and the ramp's keys are absent
	RampStart, RampEnd float64
}

// Validate reports what cannot be written; it needs no run, so that a caller
// can ask before one.
func (o VLLMOptions) Validate() error {
	if err := (Style{Sections: o.Sections, Percentiles: o.Percentiles}).Validate(); err != nil {
		return err
	}
	for _, k := range slices.Sorted(maps.Keys(o.Metadata)) {
		if m, err := Lookup(k); err == nil && m.Name == k || slices.Contains(reserved, k) {
			return fmt.Errorf("metadata key %q is a key of the result: choose another", k)
		}
	}
	return nil
}

// VLLMJSON returns the flat JSON object that `vllm bench serve
// --save-result` writes, with failures_by_class, simulated, verdict and the
// definitions that are not ours added. What an imported run does not record is null.
// Only Detailed reads the calls. A figure that is absent is null,
// also in the arrays: vLLM's zeros for failed requests would enter means.
func VLLMJSON(h Header, s Summary, calls []Call, o VLLMOptions) ([]byte, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("write vLLM result: %w", err)
	}
	style := Style{Sections: o.Sections, Percentiles: o.Percentiles}.filled()
	h.Requests = cmp.Or(h.Requests, len(calls)) // time decided how many
	var d object
	d.head(h, o)
	for _, m := range scalars() {
		if m.Section == SectionRun && m.Name != "max_concurrency" && m.Name != "request_rate" {
			d.figure(s, m.Name)
		}
	}
	for _, name := range style.Sections {
		for _, stat := range []string{"mean", "median", "std"} {
			d.figure(s, stat+"_"+name+"_ms")
		}
		for _, x := range style.Percentiles {
			d.figure(s, PercentileName(x)+"_"+name+"_ms")
		}
	}
	failures := s.Failures
	if failures == nil {
		failures = map[Class]int{}
	}
	d.put("failures_by_class", failures)
	d.put("simulated", s.Simulated)
	if s.Compat != "" {
		d.put(keyCompat, s.Compat)
	} else if len(s.Definitions) > 0 {
		d.put(keyDefinitions, s.Definitions)
	}
	d.put("verdict", s.Verdict)
	if o.Detailed {
		d.details(h, s.Compat, calls)
	}
	return d.bytes()
}

// object is a JSON object that keeps the order of its keys; of a key put
// twice the first value counts.
type object struct {
	keys   []string
	values map[string]json.RawMessage
	err    error
}

func (d *object) put(key string, v any) {
	if _, ok := d.values[key]; ok || d.err != nil {
		return
	}
	raw, err := json.Marshal(v)
	if err != nil {
		d.err = fmt.Errorf("write vLLM result: %s: %w", key, err)
		return
	}
	if d.values == nil {
		d.values = map[string]json.RawMessage{}
	}
	d.keys, d.values[key] = append(d.keys, key), raw
}

func (d *object) figure(s Summary, name string) {
	if v, ok := s.Figures[name]; ok {
		d.put(name, v)
		return
	}
	d.put(name, nil)
}

func (d *object) head(h Header, o VLLMOptions) {
	var label *string
	if o.Label != "" {
		label = &o.Label
	}
	var limit *int
	if h.Limit > 0 {
		limit = &h.Limit
	}
	var date, rate, prompts any = h.Started.Format("20060102-150405"), "inf", h.Requests
	if h.Imported != nil && h.Label(LabelRate) != "inf" {
		rate = nil // not recorded
	}
	if finite(h.Rate) {
		rate = h.Rate
	}
	if h.Imported != nil && h.Requests == 0 {
		prompts = nil
	}
	if h.Imported != nil && h.Started.IsZero() {
		date = nil
	}
	d.put("date", date)
	d.put("endpoint_type", h.Backend)
	d.put("backend", h.Backend)
	d.put("label", label)
	d.put("model_id", h.Model)
	d.put("tokenizer_id", cmp.Or(o.Tokenizer, h.Model))
	d.put("num_prompts", prompts)
	d.put("request_rate", rate)
	if h.Imported == nil || o.Burstiness > 0 {
		d.put("burstiness", cmp.Or(o.Burstiness, 1))
	}
	d.put("max_concurrency", limit)
	if o.RampStrategy != "" {
		d.put("ramp_up_strategy", o.RampStrategy)
		d.put("ramp_up_start_rps", o.RampStart)
		d.put("ramp_up_end_rps", o.RampEnd)
	}
	for _, k := range slices.Sorted(maps.Keys(o.Metadata)) {
		d.put(k, o.Metadata[k])
	}
}

// finite reports whether a rate is one, and not all requests at once.
func finite(rate float64) bool { return rate > 0 && !math.IsInf(rate, 1) }

// reserved are the keys of a result, besides the metrics, that metadata may
// not take.
var reserved = []string{
	"date", "endpoint_type", "backend", "label", "model_id", "tokenizer_id", "num_prompts", "burstiness",
	"ramp_up_strategy", "ramp_up_start_rps", "ramp_up_end_rps",
	keyFailures, keySimulated, keyCompat, keyDefinitions, keyVerdict,
	"input_lens", "output_lens", "ttfts", "itls", "latencies", "start_times", "queue_times", "generated_texts", "errors",
}

// details adds the per-request arrays, times in seconds, by vLLM's definitions
// where the summary is.
func (d *object) details(h Header, compat string, calls []Call) {
	all := slices.Clone(calls)
	slices.SortStableFunc(all, func(a, b Call) int { return a.Index - b.Index })
	inputs, outputs, starts, queues := []int{}, []int{}, []float64{}, []float64{}
	ttfts, latencies, itls := []*float64{}, []*float64{}, [][]float64{}
	texts, errs := []string{}, []string{}
	for i := range all {
		c, _ := all[i].Plausible()
		in, _ := c.Input()
		out := 0
		var ttft, latency *float64
		gaps := []float64{}
		if c.OK() {
			v := c.asVLLM()
			if compat != VLLM {
				v = c.asOurs()
			}
			out, latency = v.n, new((v.end - v.start).Seconds())
			if len(v.at) > 0 {
				ttft = new((v.at[0] - v.start).Seconds())
			}
			for j := 1; j < len(v.at); j++ {
				gaps = append(gaps, (v.at[j] - v.at[j-1]).Seconds())
			}
		}
		wait := 0.0
		if h.Limit > 0 {
			wait = (c.Ready - c.Due).Seconds()
		}
		inputs, outputs = append(inputs, in), append(outputs, out)
		starts, queues = append(starts, c.Sent.Seconds()), append(queues, wait)
		ttfts, latencies, itls = append(ttfts, ttft), append(latencies, latency), append(itls, gaps)
		texts, errs = append(texts, c.Text), append(errs, c.Error)
	}
	for _, a := range []struct {
		key  string
		list any
	}{
		{"input_lens", inputs}, {"output_lens", outputs}, {"ttfts", ttfts}, {"itls", itls}, {"latencies", latencies},
		{"start_times", starts}, {"queue_times", queues}, {"generated_texts", texts}, {"errors", errs},
	} {
		d.put(a.key, a.list)
	}
}

// asOurs returns our view of a call in the form of vLLM's: the messages are
// those that carried tokens.
func (c *Call) asOurs() vllmCall {
	v := vllmCall{start: c.Sent}
	v.end, _ = c.last()
	v.n, _ = c.Output()
	for _, k := range c.Chunks {
		v.at = append(v.at, k.At)
	}
	return v
}

func (d *object) bytes() ([]byte, error) {
	if d.err != nil {
		return nil, d.err
	}
	b := []byte{'{'}
	for i, k := range d.keys {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(appendString(b, k), ": "...)
		b = append(b, d.values[k]...)
	}
	return append(b, '}'), nil
}

// VLLMFileName returns the file name that vLLM gives a result: label or
// backend, rate, concurrency, model, date. A rate is written as Python writes a
// float ("8.0"); the mean of a trace is cut to four decimals.
func VLLMFileName(h Header, o VLLMOptions) string {
	rate := "inf"
	switch {
	case o.RampStrategy != "":
		rate = fmt.Sprintf("ramp-up-%s-%gqps-%g", o.RampStrategy, o.RampStart, o.RampEnd)
	case finite(h.Rate):
		rate = strconv.FormatFloat(math.Round(h.Rate*1e4)/1e4, 'f', -1, 64)
		if !strings.Contains(rate, ".") {
			rate += ".0"
		}
	}
	limit := ""
	if h.Limit > 0 {
		limit = fmt.Sprintf("-concurrency%d", h.Limit)
	}
	name := fmt.Sprintf("%s-%sqps%s-%s-%s.json", cmp.Or(o.Label, h.Backend), rate, limit, path.Base(h.Model), h.Started.Format("20060102-150405"))
	return strings.ReplaceAll(name, "/", "_")
}
