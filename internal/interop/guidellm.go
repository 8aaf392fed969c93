package interop

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"perflab/internal/result"
)

// guideReader reads the reports of guidellm 0.4 and later, and the two files
// that benchmark-runner makes of one.
//
// A report has several benchmarks, each a run. It keeps of a request when it
// was sent, when its first and its last token came and how many there were. Its
// calls have two chunks for that, the first of one token and the last of the
// rest: what gaps lay between nobody knows, so what is made of gaps or of
// tokens over time is in Run.Lacks. Where the client saw at most one event of
// an answer of several tokens, it did not see them come: both chunks are then
// of one read, which has no gap at all, and the answer ends with its stream.
func guideReader() jsonReader {
	return jsonReader{format: FormatGuideLLM, knows: knowsGuide, read: readGuide}
}

func knowsGuide(o object) bool {
	return o.has("benchmarks") && (o.has("args") || o.has("config") || o.has("metadata") || bytes.Contains(o.raw, []byte(`"run_stats"`)))
}

// guideOther says which other file of guidellm's this is; "" for none.
func guideOther(data []byte) string {
	switch head := data[:min(len(data), 4096)]; {
	case bytes.HasPrefix(head, []byte("Run Info,Run Info,")):
		return "CSV"
	case bytes.HasPrefix(head, []byte("args:\n")), bytes.HasPrefix(head, []byte("benchmarks:\n- config:")):
		return "YAML"
	}
	return ""
}

// readGuide reads a report.
func readGuide(o object) ([]Run, []Fault) {
	var head guideReport
	var runs []Run
	var faults []Fault
	fault := func(line int, format string, args ...any) {
		faults = append(faults, Fault{Place: Place{File: o.file, Line: line}, Text: fmt.Sprintf(format, args...)})
	}
	for key, into := range map[string]any{"metadata": &head.Metadata, "args": &head.Args, "config": &head.Config} {
		if raw, ok := o.fields[key]; ok {
			if err := json.Unmarshal(raw, into); err != nil {
				fault(o.line, "%s of the report is not as guidellm writes it (%v): what it says may be missing", key, err)
			}
		}
	}
	if n := len(head.Config.Metadata.Labels); n > mostGuideLabels {
		fault(o.line, "the report has %d labels, and at most %d are taken: they are left out", n, mostGuideLabels)
		head.Config.Metadata.Labels = nil
	}
	head.data = guideData(guideFirst(head.Args.Data, head.Config.Spec.Data))
	list, _ := find(o, "benchmarks")
	if kind(list.raw) != "a list" {
		fault(o.line, "benchmarks of the report is no list: give the JSON as guidellm wrote it")
		return nil, faults
	}
	for b := range items(list.raw, list.line) {
		r := guideRun{o: o, head: &head, line: b.line, end: b.line + bytes.Count(b.raw, []byte("\n"))}
		if run, ok := r.read(b); ok {
			runs = append(runs, run)
		}
		faults = append(faults, r.faults...)
	}
	if len(runs) == 0 && len(faults) == 0 {
		fault(o.line, "the report has no benchmark")
	}
	return runs, faults
}

// read reads one benchmark.
func (r *guideRun) read(b member) (Run, bool) {
	sections := keyed(b) // once: the requests are most of the file
	if _, old := sections["run_stats"]; old {
		r.fault(r.line, "this benchmark is of guidellm before 0.4, whose figures are made by other definitions: it is not read")
		return Run{}, false
	}
	metrics, ok := sections["metrics"]
	if !ok {
		r.fault(r.line, "this benchmark has no metrics: give the report as guidellm wrote it")
		return Run{}, false
	}
	for _, x := range []struct {
		key  string
		into any
	}{
		{"config", &r.b.Config}, {"scheduler_metrics", &r.b.Scheduler}, {"metrics", &r.b.Metrics}, {"requests", &r.b.Requests}, {"requests_truncated", &r.b.Truncated},
	} {
		if f, ok := sections[x.key]; ok {
			if err := json.Unmarshal(f.raw, x.into); err != nil {
				r.fault(f.line, "%s of the benchmark is not as guidellm writes it (%v): what it says may be missing", f.key, err)
			}
		}
	}
	r.run = Run{Place: Place{File: r.o.file, Line: r.line, End: r.end}, Defs: map[string]result.Definition{}}
	r.header()
	r.figures(metrics)
	if d, ok := sections["duration"]; ok {
		r.scalar("duration", "duration", d, 1)
	}
	r.configured()
	r.calls()
	return r.run, true
}

// header fills what is said around the figures.
func (r *guideRun) header() {
	b, labels := &r.b, result.Labels{}
	maps.Copy(labels, r.head.Config.Metadata.Labels)
	im := &result.Imported{Client: "guidellm", Version: r.head.Metadata.Guide, Format: FormatGuideLLM, File: r.o.file, Line: r.line, End: r.end, Labels: labels}
	if labels[labelClient] == clientPerflab {
		im.Client, im.Version = clientPerflab, labels[labelVersion]
		delete(labels, labelClient)
		delete(labels, labelVersion)
	}
	r.run.Sim = labels[labelSimulated] == "true"
	set := func(key, v string) {
		if v != "" {
			labels[key] = v
		}
	}
	set(labelGuideID, strings.Trim(b.Config.RunID+"/"+b.Config.ID, "/"))
	set(labelGuideProfile, b.Config.Strategy.Type)
	set(result.LabelDataset, r.head.data)
	h := result.Header{
		Model:    cmp.Or(b.Config.Backend.Model, r.head.Args.Model, r.head.Config.Spec.Backend.Model),
		Backend:  guideAPI(cmp.Or(r.head.Args.Format, b.Config.Backend.Format, r.head.Config.Spec.Backend.Format)),
		Workload: labels[result.LabelDataset], Imported: im, Simulated: r.run.Sim,
	}
	if target := cmp.Or(b.Config.Backend.Target, r.head.Args.Target, r.head.Config.Spec.Backend.Target); target != "" {
		h.Targets = []string{target}
	}
	if b.Scheduler.Start.ok {
		h.Started = time.Unix(0, b.Scheduler.Start.ns).UTC()
	}
	switch s := b.Config.Strategy; s.Type {
	case "concurrent":
		h.Limit, labels[result.LabelRate] = max(0, s.Streams), "inf"
	case "synchronous":
		h.Limit, labels[result.LabelRate] = 1, "inf"
	case "throughput":
		h.Limit, labels[result.LabelRate] = max(0, s.Limit), "inf"
	default:
		h.Limit = max(0, b.Config.Profile.Limit) // the strategy's is only as many as its workers can hold
		if s.Rate > 0 {
			h.Rate, labels[result.LabelRate] = s.Rate, strconv.FormatFloat(s.Rate, 'f', -1, 64)
		}
	}
	if t := b.Truncated; t != nil {
		for _, raw := range slices.Concat(t.Errored, t.Incomplete) {
			var q guideRequest
			if json.Unmarshal(raw, &q) == nil && q.Info.Error != "" {
				labels[labelFirstError] = q.Info.Error
				break
			}
		}
	}
	r.run.Header = h
}

// guideMetric says which of our figures one of guidellm's distributions over
// the successful requests has.
type guideMetric struct {
	family string            // of which all statistics are taken
	stats  map[string]string // or: statistic -> scalar
	scale  float64           // into our unit
	def    result.Definition
}

// guideMetrics are those that have an equal here, in name if not by definition.
// The others are of guidellm's own machinery, of other media than text, or
// follow from these.
func guideMetrics(version int) map[string]guideMetric {
	scalar := func(stat, name string, def result.Definition) guideMetric {
		return guideMetric{stats: map[string]string{stat: name}, scale: 1, def: def}
	}
	first := result.FirstIteration
	if version >= 2 {
		first = result.FirstText
	}
	return map[string]guideMetric{
		"requests_per_second":           scalar("mean", "request_throughput", result.RateWeighted),
		"tokens_per_second":             scalar("mean", "total_token_throughput", result.RateWeighted),
		"output_tokens_per_second":      {stats: map[string]string{"mean": "output_throughput", "max": "max_output_tokens_per_s"}, scale: 1, def: result.RateWeighted},
		"prompt_token_count":            scalar("total_sum", "total_input_tokens", result.Ours),
		"output_token_count":            scalar("total_sum", "total_output_tokens", result.Ours),
		"request_concurrency":           scalar("max", "max_concurrent_requests", result.Ours),
		"time_to_first_token_ms":        {family: "ttft", scale: 1, def: first},
		"time_to_first_output_token_ms": {family: "ttfa", scale: 1},
		"time_per_output_token_ms":      {family: "tpot", scale: 1, def: result.E2EPerTokenWeighted},
		"inter_token_latency_ms":        {family: "itl", scale: 1, def: result.DecodePerTokenWeighted},
		"request_latency":               {family: "e2el", scale: 1000, def: result.StreamEnd},
		"request_scheduled_latency":     {family: "e2el_due", scale: 1000, def: result.StreamEnd},
	}
}

// guideStats are guidellm's names of statistics and ours.
var guideStats = map[string]string{
	"mean": "mean", "median": "median", "std_dev": "std", "min": "min", "max": "max",
	"p001": "p0.1", "p01": "p1", "p05": "p5", "p10": "p10", "p25": "p25", "p50": "p50", "p75": "p75",
	"p90": "p90", "p95": "p95", "p99": "p99", "p999": "p99.9",
}

// figures takes the figures in the order of the file.
func (r *guideRun) figures(metrics member) {
	table := guideMetrics(r.head.version())
	for m := range items(metrics.raw, metrics.line) {
		if m.key == "request_totals" {
			r.totals(m)
			continue
		}
		g, known := table[m.key]
		if !known {
			continue
		}
		d, ok := at(m, "successful")
		if !ok {
			continue // a distribution that this version may leave out
		}
		r.distribution(m.key, g, d)
	}
}

// totals takes the counts. What was cut off at the end of the run is no
// success, so it counts as failed and is named besides.
func (r *guideRun) totals(m member) {
	t := r.b.Metrics.Totals
	if t == nil {
		return
	}
	count := func(name, label string, n int) {
		r.run.Figures = append(r.run.Figures, Figure{Name: name, Label: label, Text: strconv.Itoa(n), Value: float64(n), Line: m.line})
	}
	count("completed", "request_totals.successful", t.Successful)
	count("failed", "request_totals.errored + incomplete", t.Errored+t.Incomplete)
	r.run.Other = append(r.run.Other,
		Pair{"request_totals.errored", strconv.Itoa(t.Errored), m.line}, Pair{"request_totals.incomplete", strconv.Itoa(t.Incomplete), m.line})
}

// distribution takes the figures of one distribution. One over nothing has
// none: guidellm writes zeros there.
func (r *guideRun) distribution(key string, g guideMetric, d member) {
	if n, ok := at(d, "count"); ok && string(n.raw) == "0" {
		return
	}
	stats := slices.Collect(items(d.raw, d.line))
	if p, ok := at(d, "percentiles"); ok {
		stats = slices.AppendSeq(stats, items(p.raw, p.line))
	}
	before := len(r.run.Figures)
	for _, s := range stats {
		label := key + ".successful." + s.key
		if name, ok := g.stats[s.key]; ok {
			def := g.def
			if name == "max_output_tokens_per_s" {
				def = result.InverseGapPeak
			}
			if r.scalar(name, label, s, g.scale) && def != result.Ours {
				r.run.Defs[name] = def
			}
			continue
		}
		if stat, ok := guideStats[s.key]; ok && g.family != "" {
			r.scalar(stat+"_"+g.family+"_ms", label, s, g.scale)
		} else if key == "request_concurrency" && s.key == "mean" {
			r.run.Other = append(r.run.Other, Pair{label, string(s.raw), s.line})
		}
	}
	if g.family != "" && len(r.run.Figures) > before && g.def != result.Ours {
		r.run.Defs[g.family] = g.def
	}
}

// fullPrecision is how far arithmetic on numbers that are written with all
// their digits may be off, as a share of them.
const fullPrecision = 1e-9

// scalar takes one number.
func (r *guideRun) scalar(name, label string, m member, scale float64) bool {
	text := string(m.raw)
	if text == "null" {
		return false
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(v*scale, 0) || math.IsNaN(v) {
		r.fault(m.line, "%s is %.40q and no number: it is left out", label, text)
		return false
	}
	f := Figure{Name: name, Label: label, Text: text, Value: v * scale, Half: math.Abs(v*scale) * fullPrecision, Line: m.line}
	if whole := math.Round(v); strings.HasPrefix(name, "total_") && strings.HasSuffix(name, "_tokens") && math.Abs(v-whole) < 1e-6*max(1, whole) {
		f.Value, f.Half = whole, 0 // a sum that was made of a mean
	}
	r.run.Figures = append(r.run.Figures, f)
	return true
}

// configured adds the figures of the load as it was set.
func (r *guideRun) configured() {
	h := &r.run.Header
	if h.Limit > 0 {
		r.run.Figures = append(r.run.Figures, Figure{Name: "max_concurrency", Label: "config.strategy", Text: strconv.Itoa(h.Limit), Value: float64(h.Limit), Line: r.line})
	}
	if h.Rate > 0 {
		r.run.Figures = append(r.run.Figures, Figure{Name: "request_rate", Label: "config.strategy.rate", Text: h.Label(result.LabelRate), Value: h.Rate, Line: r.line})
	}
}

func guideFirst(a, b json.RawMessage) json.RawMessage {
	if len(a) > 0 {
		return a
	}
	return b
}
