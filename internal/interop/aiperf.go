package interop

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"time"

	"perflab/internal/result"
)

const aiperfClient = "aiperf"

// knowsAIPerf knows profile_export_aiperf.json: metrics that are objects with a
// unit, around the input's configuration.
func knowsAIPerf(o object) bool {
	return o.has("input_config") && (o.has("schema_version") || o.has("aiperf_version") || o.has("was_cancelled")) &&
		(o.has("request_throughput") || o.has("request_latency") || o.has("request_count"))
}

// knowsAIPerfRequest knows a line of profile_export.jsonl.
func knowsAIPerfRequest(o object) bool {
	return o.has("metadata") && (o.has("metrics") || o.has("error")) && bytes.Contains(o.fields["metadata"], []byte(`"request_start_ns"`))
}

// aiperfScalars are the metrics of AIPerf that are one number, by the name of
// ours: of each the average is the number.
var aiperfScalars = map[string]string{
	"request_count": "completed", "error_request_count": "failed", "request_throughput": "request_throughput", "goodput": "request_goodput",
	"total_isl": "total_input_tokens", "total_osl": "total_output_tokens",
	"output_token_throughput": "output_throughput", "total_token_throughput": "total_token_throughput",
}

// aiperfFamilies are the metrics that are distributions. What AIPerf calls
// inter-token latency is one sample a request; see the run's definitions.
var aiperfFamilies = map[string]string{
	"time_to_first_token": "ttft", "time_to_first_output_token": "ttfa", "inter_token_latency": "itl", "request_latency": "e2el",
}

// readAIPerf reads AIPerf's summary.
func readAIPerf(o object) ([]Run, []Fault) {
	r := newReading(o, aiperfClient, FormatAIPerf)
	if _, many := at(member{raw: o.fields["request_throughput"]}, "cv"); many {
		r.faultf(o.line, "this is a summary over several runs: give their own profile_export_aiperf.json files")
		return nil, r.faults
	}
	r.run.Defs = map[string]result.Definition{"ttft": result.FirstText, "ttfa": result.FirstText, "itl": result.DecodePerToken}
	for _, m := range o.members {
		switch family, isFamily := aiperfFamilies[m.key]; {
		case m.key == "schema_version":
			r.labels()["schema_version"] = textOf(m)
		case m.key == "aiperf_version":
			r.run.Header.Imported.Version = textOf(m)
		case m.key == "start_time":
			r.startedFraction(m)
		case m.key == "input_config" || m.key == "run_info" || m.key == "benchmark_id" || m.key == "was_cancelled" || m.key == "is_complete" || m.key == "end_time":
			r.label(m.key, m)
		case m.key == "benchmark_duration":
			r.aiperfDuration(o, m)
		case m.key == "effective_concurrency":
			r.aiperfPeak(m)
		case aiperfScalars[m.key] != "":
			r.aiperfScalar(aiperfScalars[m.key], m)
		case isFamily:
			r.aiperfFamily(family, m)
		default:
			r.other(m.key, m)
		}
	}
	if !o.has("total_osl") {
		if m, ok := find(o, "total_output_tokens"); ok {
			r.aiperfScalar("total_output_tokens", m)
		}
	}
	r.aiperfConfig(o)
	return r.done()
}

// startedFraction takes an instant with fractions of a second.
func (r *reading) startedFraction(m member) {
	if t, err := time.Parse("2006-01-02T15:04:05.999999999", strings.TrimSuffix(textOf(m), "Z")); err == nil {
		r.run.Header.Started = t
		return
	}
	r.started(m)
}

// aiperfScalar takes a metric's one number.
func (r *reading) aiperfScalar(name string, m member) {
	avg, ok := at(m, "avg")
	if !ok {
		if !null(m.raw) {
			r.faultf(m.line, "%s has no avg: it is read as missing", m.key)
		}
		return
	}
	r.figure(name, m.key+".avg", avg, 1)
	r.rest(m.key, m, "avg", "unit")
}

// aiperfFamily takes a distribution in milliseconds.
func (r *reading) aiperfFamily(family string, m member) {
	scale := 1.0
	if unit, ok := at(m, "unit"); ok {
		switch u := textOf(unit); u {
		case "ms":
		case "s", "sec":
			scale = 1e3
		case "us":
			scale = 1e-3
		case "ns":
			scale = 1e-6
		default:
			r.faultf(m.line, "the unit of %s is %q, and ms is known: it is read as missing", m.key, u)
			return
		}
	}
	for inner := range items(m.raw, m.line) {
		if inner.key != "unit" {
			r.statistic(family, m.key+"."+inner.key, inner, scale)
		}
	}
}

// statistic takes one statistic of a distribution by the name that numpy's
// users give it. The median has our name for it alone.
func (r *reading) statistic(family, label string, m member, scale float64) {
	stat := m.key
	switch stat {
	case "avg":
		stat = "mean"
	case "p50":
		stat = "median"
	case "count", "sum":
		r.other(label, m)
		return
	}
	r.figure(stat+"_"+family+"_ms", label, m, scale)
}

// aiperfPeak takes the peak concurrency, which is exact.
func (r *reading) aiperfPeak(m member) {
	if most, ok := at(m, "max"); ok {
		r.figure("max_concurrent_requests", m.key+".max", most, 1)
	}
	r.rest(m.key, m, "max", "unit")
}

// aiperfClock is how exact the difference of two of AIPerf's instants is.
const aiperfClock = 2e-6 // s

// aiperfDuration takes the time that the rates are over: the benchmark's
// duration, from the first request to the last answer, or in newer versions
// that of the phase, which the file has as two instants.
func (r *reading) aiperfDuration(o object, m member) {
	avg, ok := at(m, "avg")
	if !ok {
		r.faultf(m.line, "%s has no avg: it is read as missing", m.key)
		return
	}
	begin, err1 := time.Parse("2006-01-02T15:04:05.999999999", plain(o.fields["start_time"]))
	end, err2 := time.Parse("2006-01-02T15:04:05.999999999", plain(o.fields["end_time"]))
	phase := end.Sub(begin).Seconds()
	if err1 == nil && err2 == nil && phase > 0 {
		rate, n := aiperfAverage(o, "request_throughput"), aiperfAverage(o, "request_count")
		given, err := jsonNumber(avg.raw)
		if err == nil && rate > 0 && math.Abs(n/rate-phase) <= aiperfClock && math.Abs(n/rate-given) > aiperfClock {
			r.other(m.key, m)
			r.names["duration"], r.derived = true, "duration"
			r.run.Figures = append(r.run.Figures, Figure{
				Name: "duration", Label: "end_time - start_time", Text: fmt.Sprintf("%.6f", phase), Value: phase, Half: aiperfClock, Line: m.line,
			})
			return
		}
	}
	r.figure("duration", m.key+".avg", avg, 1)
}

// aiperfAverage returns a metric's average, 0 for none.
func aiperfAverage(o object, key string) float64 {
	m, ok := at(member{raw: o.fields[key]}, "avg")
	if !ok {
		return 0
	}
	v, _ := jsonNumber(m.raw)
	return v
}

// aiperfConfig takes what the configuration says of the load. Older versions
// have it under loadgen and endpoint, newer ones as phases and models.
func (r *reading) aiperfConfig(o object) {
	config, ok := find(o, "input_config")
	if !ok {
		return
	}
	h := &r.run.Header
	for _, path := range [][]string{{"models", "items", "0", "name"}, {"endpoint", "model_names", "0"}, {"endpoint", "model_name"}} {
		if m, ok := atIndex(config, path); ok && kind(m.raw) == "text" && h.Model == "" {
			h.Model = plain(m.raw)
		}
	}
	if m, ok := at(config, "endpoint", "type"); ok {
		h.Backend = textOf(m)
	}
	load, ok := at(config, "loadgen")
	if phases, found := at(config, "phases"); found {
		for phase := range items(phases.raw, phases.line) {
			if kind, _ := at(phase, "kind"); textOf(kind) != "warmup" {
				load, ok = phase, true
			}
		}
	}
	if ok {
		for m := range items(load.raw, load.line) {
			switch m.key {
			case "requests", "request_count":
				h.Requests, _ = r.count(m)
			case "concurrency":
				r.limit(m)
			case "rate", "request_rate":
				r.rate(m)
			}
		}
	}
	if m, ok := at(member{raw: o.fields["run_info"]}, "cli_command"); ok {
		r.labels()[result.LabelBenchCommand] = textOf(m)
	} else if m, ok := at(config, "cli_command"); ok {
		r.labels()[result.LabelBenchCommand] = textOf(m)
	}
}
