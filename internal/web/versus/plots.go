package versus

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"perflab/internal/result"
	"perflab/internal/store"
	"perflab/internal/store/reduction"
	"perflab/internal/store/scan"
	"perflab/internal/web/figure"
	"perflab/internal/web/page"
)

// plot is a figure of the page, with what is read where there is no script.
type plot struct {
	Title string
	JSON  template.JS
	Plain string
}

func drawn(f figure.Figure, plain string) (plot, error) {
	b, err := f.JSON()
	if err != nil {
		return plot{}, fmt.Errorf("draw %s: %w", f.Title, err)
	}
	return plot{Title: f.Title, JSON: template.JS(b), Plain: plain}, nil
}

// stats are the percentiles of a front, by their prefixes in the metric table.
var stats = []string{"mean", "median", "p90", "p95", "p99"}

// front is throughput per GPU against the tokens that one user gets in a second: what is to be
// had of both at once. GPUs that are not known are no GPU: then the throughput is the whole.
func (c *chosen) front(sides []side) (plot, bool, error) {
	perGPU := true
	fronts := c.fronts(sides)
	points := 0
	for _, f := range fronts {
		for _, l := range f.Launches {
			if _, ok := l.Figures["output_throughput_per_gpu"]; !ok {
				perGPU = false
			}
			points++
		}
	}
	if points < 2 {
		return plot{}, false, nil
	}
	y := "output_throughput"
	if perGPU {
		y = "output_throughput_per_gpu"
	}
	p := figure.Pareto{X: "interactivity", Y: y, Stat: "median", Stats: stats, Fronts: fronts, Measures: []figure.Measure{
		{Name: "interactivity", Label: "Output tokens a second for one user (1 / TPOT)", Unit: "tok/s", Better: "higher", ByStat: true},
		{Name: "tpot", Label: "TPOT", Unit: "ms", Better: "lower", ByStat: true},
		{Name: "e2el", Label: "E2E latency", Unit: "ms", Better: "lower", ByStat: true},
		{Name: "ttft", Label: "TTFT", Unit: "ms", Better: "lower", ByStat: true},
	}}
	for _, name := range throughputs {
		p.Measures = append(p.Measures, measure(name))
	}
	out, err := drawn(figure.Figure{
		Name: "front", Title: "Throughput against interactivity", Pareto: &p, Simulated: c.simulated(),
		Caption: "Each point is a run. The steps join those that no other beats in both: between two of them nothing was measured.",
	}, fmt.Sprintf("%d runs; the figures are in the tables.", points))
	return out, true, err
}

// fronts are the runs by configuration: what one configuration gives under several loads is one
// front. Those of studies and series are with the runs that are compared.
func (c *chosen) fronts(sides []side) []figure.Front {
	var out []figure.Front
	at := map[string]int{}
	add := func(name, group string, e store.Entry) {
		key := name
		if e.Known {
			key = e.Config
		}
		i, ok := at[key]
		if !ok {
			i, at[key] = len(out), len(out)
			out = append(out, figure.Front{Name: name, Group: group})
		}
		out[i].Launches = append(out[i].Launches, launches([]store.Entry{e})...)
	}
	for _, s := range sides {
		for _, e := range s.Entries {
			add(s.Name, "compared", e)
		}
	}
	for _, e := range c.entries {
		if e.Kind == scan.Run || e.Kind == scan.Import {
			continue
		}
		for _, p := range c.parts[e.ID] {
			add(cmp.Or(p.Label, p.Called())+" of "+e.Called(), e.Called(), p)
		}
	}
	return out
}

func measure(name string) figure.Measure {
	m, err := result.Lookup(name)
	if err != nil {
		return figure.Measure{Name: name, Label: name, Better: "higher"}
	}
	return figure.Measure{Name: name, Label: strings.TrimSuffix(strings.TrimSuffix(m.Label, ")"), " ("+m.Unit), Unit: m.Unit, Better: "higher"}
}

// What a front may show.
var (
	throughputs = []string{"output_throughput", "total_token_throughput", "output_throughput_per_gpu", "total_token_throughput_per_gpu"}
	latencies   = []string{"tpot", "e2el", "ttft"}
)

// launches are the points of a front.
func launches(entries []store.Entry) []figure.Launch {
	var out []figure.Launch
	for _, e := range entries {
		l := figure.Launch{Label: strings.TrimSpace(cmp.Or(e.Label, e.Called()) + ", " + e.Load), Href: "/run/" + e.ID, Verdict: e.Verdict, Figures: map[string]figure.Range{}}
		for name, f := range e.Figures {
			r := figure.Range{Value: figure.Number(f.Value), Low: figure.Known(f.Low), High: figure.Known(f.High)}
			if r.Low > r.Value || r.Value > r.High { // an interval of another definition
				r.Low, r.High = figure.Missing, figure.Missing
			}
			stat, family, ok := strings.Cut(strings.TrimSuffix(name, "_ms"), "_")
			switch {
			case slices.Contains(throughputs, name):
				l.Figures[name] = r
			case ok && slices.Contains(stats, stat) && slices.Contains(latencies, family):
				l.Figures[stat+" "+family] = r
				if family == "tpot" && f.Value > 0 {
					l.Figures[stat+" interactivity"] = figure.Range{Value: 1000 / r.Value, Low: 1000 / r.High, High: 1000 / r.Low}
				}
			}
		}
		if len(l.Figures) > 0 {
			out = append(out, l)
		}
	}
	return out
}

func (c *chosen) simulated() bool {
	return slices.ContainsFunc(c.entries, func(e store.Entry) bool { return e.Simulated || e.Predicted })
}

// families of latencies, in the order of the page.
var families = []struct{ key, title string }{{"ttft", "TTFT"}, {"tpot", "TPOT"}, {"itl", "ITL"}, {"e2el", "E2E latency"}}

// mostDrawn bounds the runs that are drawn: no more can be told apart.
const mostDrawn = 8

// reduced are the runs that plots draw, of each side the first.
func (s *screen) reduced(ctx context.Context, sides []side) (names []string, all []reduction.Reduction, notes []string) {
	for _, d := range sides {
		if len(names) == mostDrawn {
			notes = append(notes, fmt.Sprintf("Plots draw the first %d sides.", mostDrawn))
			break
		}
		e := d.Entries[0]
		if e.Kind != scan.Run {
			continue
		}
		r, err := s.store.Reduction(ctx, e.ID)
		if err != nil {
			notes = append(notes, "What "+d.Name+" is drawn of cannot be read: "+err.Error()+".")
			continue
		}
		if r.Calls > 0 {
			names, all = append(names, d.Name), append(all, r)
		}
	}
	return names, all, notes
}

// distributions are the plots of latencies.
func distributions(names []string, all []reduction.Reduction, slos []result.SLO) ([]plot, error) {
	var out []plot
	for _, family := range families {
		f := figure.Figure{Name: "cdf-" + family.key, Title: "Distribution of " + family.title}
		c := figure.CDF{X: figure.Axis{Label: family.title, Unit: "ms"}}
		for i, r := range all {
			for _, d := range r.CDF {
				if d.Family == family.key && len(d.Values) > 1 {
					c.Sides = append(c.Sides, figure.Side{Name: names[i], Values: figure.Numbers(d.Values), Calls: d.Samples})
					f.Simulated = f.Simulated || r.Simulated || r.Predicted
				}
			}
		}
		if len(c.Sides) == 0 {
			continue
		}
		for _, slo := range slos {
			if m, err := result.Lookup(slo.Metric); err == nil && m.Family == family.key {
				c.SLOs = append(c.SLOs, figure.Mark{At: figure.Number(slo.Limit), Label: slo.String()})
			}
		}
		f.CDF = &c
		p, err := drawn(f, "Share of the calls that are at most so slow, for "+strings.Join(names, ", ")+".")
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// courses are the runs over their time, a plot for each thing, all on one clock.
func courses(names []string, all []reduction.Reduction) ([]plot, error) {
	var order []reduction.Line
	for _, r := range all {
		for _, l := range r.Lines {
			if !slices.ContainsFunc(order, func(o reduction.Line) bool { return o.Name == l.Name }) {
				order = append(order, l)
			}
		}
	}
	var out []plot
	for _, line := range order {
		f := figure.Figure{Name: "time-" + strings.ReplaceAll(strings.ToLower(line.Name), "_", "-"), Title: page.Capital(line.Doc)}
		t := figure.Time{Clock: "run", Axes: []figure.Axis{{Label: line.Doc, Unit: line.Unit}}}
		for i, r := range all {
			for _, l := range r.Lines {
				if l.Name == line.Name && slices.ContainsFunc(l.Values, func(v float64) bool { return !math.IsNaN(v) }) {
					t.Series = append(t.Series, figure.Line{Name: names[i], Seconds: seconds(len(l.Values), r.Step), Values: figure.Numbers(l.Values)})
					f.Simulated = f.Simulated || r.Simulated || r.Predicted
				}
			}
		}
		if len(t.Series) == 0 {
			continue
		}
		f.Time = &t
		p, err := drawn(f, line.Doc+", over the time of each run.")
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

func seconds(n int, step float64) []figure.Number {
	out := make([]figure.Number, n)
	for i := range out {
		out[i] = figure.Number(float64(i) * step)
	}
	return out
}
