package study

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"perflab/internal/bench"
	"perflab/internal/field"
	"perflab/internal/gauge"
	"perflab/internal/result"
)

// loadSearches checks the workloads whose load is looked for.
func (c *checker) loadSearches() {
	for i, w := range c.s.Workloads {
		if w.FindMax == nil {
			continue
		}
		at := c.s.workloadAt(i)
		c.loadSearchKeys(at+".find_max", w.FindMax)
		c.loadSearchConflicts(at, w.Name, w.FindMax)
		if len(c.s.RunSLOs()) == 0 {
			c.add(at+".find_max", "find_max needs objective.slos: what the load must meet, such as p99_ttft_ms <= 500")
		}
	}
}

// loadSearchKeys checks the keys of one search.
func (c *checker) loadSearchKeys(at string, f *LoadSearch) {
	whole := func(v float64) bool { return f.Axis != bench.AxisConcurrency || v == math.Trunc(v) }
	switch f.Axis {
	case bench.AxisRate, bench.AxisConcurrency:
	case "":
		c.add(at+".axis", "axis is missing: rate or concurrency")
	default:
		c.add(at+".axis", "find_max axis %q is not known: rate or concurrency", f.Axis)
	}
	if !(f.From > 0) || math.IsInf(f.From, 1) || !whole(f.From) {
		c.add(at+".from", "from is %g: it must be above 0, and a whole number of a concurrency", f.From)
	}
	if f.To != 0 && !(f.To >= f.From) || math.IsInf(f.To, 1) || !whole(f.To) {
		c.add(at+".to", "to is %g: it must be at least from, %g, and a whole number of a concurrency", f.To, f.From)
	}
	if !(f.Precision > 0 && f.Precision < 1) {
		c.add(at+".precision", "precision is %g: it is a share between 0 and 1", f.Precision)
	}
	if f.Points < 2 || f.Points > mostPoints {
		c.add(at+".points", "points is %d: a search takes from 2 runs, the edge and the edge again, to %d", f.Points, mostPoints)
	}
	if f.Requests < 0 {
		c.add(at+".requests", "requests is %d: it must be above 0", f.Requests)
	}
	if s := *f.Seconds; !(s >= 0 && s <= 86400) {
		c.add(at+".seconds", "seconds is %g: it must be from 0 to a day", s)
	}
}

// mostPoints keeps the seeds of a search below those of what is measured again.
const mostPoints = 100

// loadSearchConflicts refuses what a search sets itself.
func (c *checker) loadSearchConflicts(at, name string, f *LoadSearch) {
	for _, key := range []string{"num_prompts", "duration", "until_precision", "until_metric"} {
		if present(c.doc, at, key) {
			c.add(at+"."+key, "%s of workload %s does not apply with find_max: its requests and seconds say how long each run is at least", key, name)
		}
	}
	c.loadConflicts(at, name, f.Axis, "find_max")
}

// precisions checks the workloads whose runs end when their figure is known: such runs differ in
// length, and compare by their steady part alone.
func (c *checker) precisions() {
	metric, err := result.Lookup(c.s.Objective.Metric)
	if err != nil {
		return // said already
	}
	for i, w := range c.s.Workloads {
		at := c.s.workloadAt(i)
		if w.UntilPrecision == "" || w.FindMax != nil {
			continue
		}
		if err := bench.WatchedFigure(w.UntilMetric, w.Spec); err != nil && w.UntilMetric != metric.Name {
			c.add(at+".until_metric", "workload %s: %v", w.Name, err)
		} else if err := bench.WatchedFigure(metric.Name, w.Spec); err != nil {
			c.add(at+".until_precision", "workload %s: runs that end when their figure is known differ in length, and compare by a figure of their steady part: as objective.metric %v", w.Name, err)
		}
	}
}

// objectiveNeeds checks that the study has what the figures of its objective are made of:
// without it every trial would have none, or miss, hours later.
func (c *checker) objectiveNeeds() {
	c.figureNeeds("objective.metric", c.s.Objective.Metric)
	for i, text := range c.s.Objective.SLOs {
		if slo, err := result.ParseSLO(text); err == nil {
			c.figureNeeds(field.Index("objective.slos", i), slo.Metric)
		}
	}
}

func (c *checker) figureNeeds(at, metric string) {
	m, err := result.Lookup(metric)
	if err != nil {
		return // said already
	}
	for _, need := range m.Needs() {
		if text := c.s.missingFor(m, need); text != "" {
			c.add(at, "%s", text)
			return
		}
	}
}

// missingFor says what is missing for a figure, "" for nothing.
func (f *File) missingFor(m result.Metric, need string) string {
	reading := gauge.IsSource(need)
	switch n := f.Bench.TelemetryS; {
	case need == result.NeedPrice && f.Hardware.Price.IsZero():
		return m.Name + " needs hardware.price_per_hour: what all of the hardware costs an hour, with the currency, such as 98.32 USD"
	case need == result.NeedGPUs && f.OnCPU():
		return fmt.Sprintf("%s counts GPUs, and the hardware has none: use %s", m.Name, strings.TrimSuffix(m.Name, "_per_gpu"))
	case need == result.NeedSearch:
		return f.missingLoadSearch(m)
	case reading && f.Runtime.Kind == Predicted:
		return m.Name + " is made of readings of a server that runs, and runtime kind predicted starts none: its model has time and memory, and no power. Use another runtime kind, or a figure of the calls or of the price"
	case need == gauge.SourceGPU && f.Runtime.Kind == Simulated:
		return m.Name + " is made of readings of GPUs, and a simulated engine uses none. Use another runtime kind, or a figure of the calls or of the price"
	case need == gauge.SourceGPU && f.OnCPU():
		return m.Name + " is made of readings of GPUs, and the hardware has none"
	case reading && n != nil && *n == 0:
		return m.Name + " is made of readings, and bench.telemetry_interval_s is 0: leave it out, or give the seconds between readings"
	}
	return ""
}

// missingLoadSearch says why the workload that the search of the study is judged by has no
// figure of a search for the load, "" where it has.
func (f *File) missingLoadSearch(m result.Metric) string {
	if len(f.Workloads) == 0 {
		return "" // said already
	}
	axis := bench.AxisRate
	served := strings.HasPrefix(m.Name, result.AgentsServed)
	if served || strings.Contains(m.Name, bench.AxisConcurrency) {
		axis = bench.AxisConcurrency
	}
	w, others := f.Workloads[0], slices.DeleteFunc(slices.Clone(f.Workloads[1:]), func(w Workload) bool { return f.Objective.Weights[w.Name] == 0 })
	for _, x := range others {
		if x.FindMax == nil || x.FindMax.Axis != axis {
			return fmt.Sprintf("%s is found by a search over the load: give workload %s, which has a weight in the objective, find_max: {axis: %s, from: 1}", m.Name, x.Name, axis)
		}
	}
	if served && !w.Spec.Defaults().CountsSessions() {
		return fmt.Sprintf("%s counts sessions of agents, or conversations, and the primary workload, %s, has none: use goodput_concurrency", m.Name, w.Name)
	}
	if w.FindMax != nil && w.FindMax.Axis == axis {
		return ""
	}
	return fmt.Sprintf("%s is found by a search over the load: give the primary workload, %s, find_max: {axis: %s, from: 1}", m.Name, w.Name, axis)
}
