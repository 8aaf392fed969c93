package interop

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

	"perflab/internal/block"
	"perflab/internal/result"
)

// VLLMOptions choose what VLLM writes beyond the fixed keys.
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

// vllmReserved are the keys of a result, besides the metrics and the lists, that
// metadata may not take.
var vllmReserved = []string{
	"date", "endpoint_type", "backend", "label", "model_id", "tokenizer_id", "num_prompts", "burstiness",
	"ramp_up_strategy", "ramp_up_start_rps", "ramp_up_end_rps",
	"failures_by_class", "simulated", "compat", "definitions", "verdict",
}

// Validate reports what cannot be written; it needs no run, so that a caller
// can ask before one.
func (o VLLMOptions) Validate() error {
	if err := (block.Style{Sections: o.Sections, Percentiles: o.Percentiles}).Validate(); err != nil {
		return err
	}
	for _, k := range slices.Sorted(maps.Keys(o.Metadata)) {
		if m, err := result.Lookup(k); err == nil && m.Name == k || slices.Contains(vllmReserved, k) || slices.Contains(vllmLists, k) {
			return fmt.Errorf("metadata key %q is a key of the result: choose another", k)
		}
	}
	return nil
}

// VLLM writes a run as the flat JSON object of `vllm bench serve --save-result`,
// with failures_by_class, simulated, verdict and the definitions that are not
// ours added. What an imported run does not record is null. Only Detailed reads
// the calls. A figure that is absent is null, also in the arrays: vLLM's zeros
// for failed requests would enter means.
func VLLM(h result.Header, s result.Summary, calls []result.Call, o VLLMOptions) ([]byte, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("write vLLM result: %w", err)
	}
	h.Requests = cmp.Or(h.Requests, int(s.Figures["completed"]+s.Figures["failed"])) // time decided how many
	var w vllmWriter
	w.header(h, o)
	w.figures(s, o)
	failures := s.Failures
	if failures == nil {
		failures = map[result.Class]int{}
	}
	w.put("failures_by_class", failures)
	w.put("simulated", s.Simulated)
	if s.Compat != "" {
		w.put("compat", s.Compat)
	} else if len(s.Definitions) > 0 {
		w.put("definitions", s.Definitions)
	}
	w.put("verdict", s.Verdict)
	if o.Detailed {
		w.lists(h, s.Compat, calls)
	}
	return w.bytes()
}

// vllmWriter is a JSON object that keeps the order of its keys; of a key put
// twice the first value counts.
type vllmWriter struct {
	keys   []string
	values map[string]json.RawMessage
	err    error
}

func (w *vllmWriter) put(key string, v any) {
	if _, ok := w.values[key]; ok || w.err != nil {
		return
	}
	raw, err := json.Marshal(v)
	if err != nil {
		w.err = fmt.Errorf("write vLLM result: %s: %w", key, err)
		return
	}
	if w.values == nil {
		w.values = map[string]json.RawMessage{}
	}
	w.keys, w.values[key] = append(w.keys, key), raw
}

func (w *vllmWriter) bytes() ([]byte, error) {
	if w.err != nil {
		return nil, w.err
	}
	b := []byte{'{'}
	for i, k := range w.keys {
		key, err := json.Marshal(k)
		if err != nil {
			return nil, fmt.Errorf("write vLLM result: key %q: %w", k, err)
		}
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(append(b, key...), ": "...)
		b = append(b, w.values[k]...)
	}
	return append(b, '}'), nil
}

func (w *vllmWriter) header(h result.Header, o VLLMOptions) {
	var label *string
	if o.Label != "" {
		label = &o.Label
	}
	var limit *int
	if h.Limit > 0 {
		limit = &h.Limit
	}
	var date, rate, prompts any = h.Started.Format("20060102-150405"), "inf", h.Requests
	if h.Imported != nil && h.Label(result.LabelRate) != "inf" {
		rate = nil // not recorded
	}
	if h.HasRate() {
		rate = h.Rate
	}
	if h.Imported != nil && h.Requests == 0 {
		prompts = nil
	}
	if h.Imported != nil && h.Started.IsZero() {
		date = nil
	}
	w.put("date", date)
	w.put("endpoint_type", h.Backend)
	w.put("backend", h.Backend)
	w.put("label", label)
	w.put("model_id", h.Model)
	w.put("tokenizer_id", cmp.Or(o.Tokenizer, h.Model))
	w.put("num_prompts", prompts)
	w.put("request_rate", rate)
	if h.Imported == nil || o.Burstiness > 0 {
		w.put("burstiness", cmp.Or(o.Burstiness, 1))
	}
	w.put("max_concurrency", limit)
	if o.RampStrategy != "" {
		w.put("ramp_up_strategy", o.RampStrategy)
		w.put("ramp_up_start_rps", o.RampStart)
		w.put("ramp_up_end_rps", o.RampEnd)
	}
	for _, k := range slices.Sorted(maps.Keys(o.Metadata)) {
		w.put(k, o.Metadata[k])
	}
}

// figures writes those that the block shows.
func (w *vllmWriter) figures(s result.Summary, o VLLMOptions) {
	figure := func(name string) {
		if v, ok := s.Figures[name]; ok {
			w.put(name, v)
			return
		}
		w.put(name, nil)
	}
	for _, m := range result.Metrics() {
		if m.Headline() {
			figure(m.Name)
		}
	}
	style := block.Style{Sections: o.Sections, Percentiles: o.Percentiles}.WithDefaults()
	for _, family := range style.Sections {
		for _, stat := range []string{"mean", "median", "std"} {
			figure(stat + "_" + family + "_ms")
		}
		for _, p := range style.Percentiles {
			figure(result.PercentileName(p) + "_" + family + "_ms")
		}
	}
}

// lists writes the values a request, times in seconds, by the definitions of the
// summary.
func (w *vllmWriter) lists(h result.Header, compat string, calls []result.Call) {
	all := slices.Clone(calls)
	slices.SortStableFunc(all, func(a, b result.Call) int { return a.Index - b.Index })
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
			t := c.Timeline(compat)
			out, latency = t.Output, new((t.End - t.Start).Seconds())
			if len(t.Messages) > 0 {
				ttft = new((t.Messages[0] - t.Start).Seconds())
			}
			for j := 1; j < len(t.Messages); j++ {
				gaps = append(gaps, (t.Messages[j] - t.Messages[j-1]).Seconds())
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
	for i, list := range []any{inputs, outputs, ttfts, itls, latencies, starts, queues, texts, errs} {
		w.put(vllmLists[i], list)
	}
}

// VLLMFileName returns the file name that vLLM gives a result: label or
// backend, rate, concurrency, model, date. A rate is written as Python writes a
// float ("8.0"); the mean of a trace is cut to four decimals.
func VLLMFileName(h result.Header, o VLLMOptions) string {
	rate := "inf"
	switch {
	case o.RampStrategy != "":
		rate = fmt.Sprintf("ramp-up-%s-%gqps-%g", o.RampStrategy, o.RampStart, o.RampEnd)
	case h.HasRate():
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
