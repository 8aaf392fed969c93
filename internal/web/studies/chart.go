package studies

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/gauge"
	"perflab/internal/web/figure"
	"perflab/internal/web/page"
)

// plotted is a chart of the telemetry of a load.
type plotted struct {
	name, title string
	axes        []figure.Axis
	lines       []plottedLine
}

// plottedLine is a gauge on one of the axes.
type plottedLine struct {
	name, source, gauge string
	axis                int
	of                  func(gauge.Moment) float64
	text                string // format of its last value, where there is no script
}

func sum(m gauge.Moment) float64     { return m.Sum }
func mean(m gauge.Moment) float64    { return 100 * m.Sum / float64(m.N) }
func highest(m gauge.Moment) float64 { return 100 * m.High }

// allCharts are the charts that there can be.
var allCharts = []plotted{
	{"engine", "Engine: requests and KV cache", []figure.Axis{{Label: "Requests"}, {Label: "KV cache in use", Unit: "%"}}, []plottedLine{
		{"running", gauge.SourceEngine, "running", 0, sum, "%.0f running"},
		{"waiting", gauge.SourceEngine, "waiting", 0, sum, "%.0f waiting"},
		{"KV cache, highest of replicas", gauge.SourceEngine, "kv_usage", 1, highest, "KV cache at %.0f %%"},
	}},
	{"gpu", "GPUs: utilisation and power", []figure.Axis{{Label: "Utilisation", Unit: "%"}, {Label: "Power, sum", Unit: "W"}}, []plottedLine{
		{"utilisation, mean", gauge.SourceGPU, gauge.GPUUtilization, 0, mean, "GPUs %.0f %% busy"},
		{"power, sum", gauge.SourceGPU, gauge.GPUPower, 1, sum, "%.0f W"},
	}},
	{"host", "Host: CPU", []figure.Axis{{Label: "CPU", Unit: "%"}}, []plottedLine{
		{"CPU, highest of hosts", gauge.SourceHost, gauge.CPUUtilization, 0, highest, "CPU %.0f %% busy"},
	}},
}

// has reports whether readings have something of a chart.
func (p plotted) has(readings []gauge.Reading) bool {
	return slices.ContainsFunc(readings, func(x gauge.Reading) bool {
		return slices.ContainsFunc(p.lines, func(l plottedLine) bool { _, ok := x.Values[l.gauge]; return ok && x.Source == l.source })
	})
}

// chartNames are the charts that readings give.
func chartNames(readings []gauge.Reading) (names []string) {
	for _, p := range allCharts {
		if p.has(readings) {
			names = append(names, p.name)
		}
	}
	return names
}

// newest is in how many of the last readings a source is looked for.
const newest = 200

// latest are the newest values in words, by chart.
func latest(readings []gauge.Reading) map[string]string {
	out := map[string]string{}
	readings = readings[max(0, len(readings)-newest):]
	for _, p := range allCharts {
		var parts []string
		for _, l := range p.lines {
			if all := gauge.Series(readings, l.source, l.gauge); len(all) > 0 {
				parts = append(parts, fmt.Sprintf(l.text, l.of(all[len(all)-1])))
			}
		}
		if len(parts) > 0 {
			out[p.name] = strings.Join(parts, ", ")
		}
	}
	return out
}

// charts are those of the load under way.
func charts(address string, now *scene) (out []chart) {
	words := latest(now.readings)
	for _, p := range allCharts {
		if slices.Contains(now.charts, p.name) {
			out = append(out, chart{p.name, p.title, address + "/chart/" + p.name, words[p.name]})
		}
	}
	return out
}

// mostPoints is how many points of a line are drawn.
const mostPoints = 600

// figure is the chart as the page's script draws it.
func (p plotted) figure(now *scene, simulated bool) figure.Figure {
	t := &figure.Time{Clock: "load", Axes: p.axes}
	for _, l := range p.lines {
		all := gauge.Series(now.readings, l.source, l.gauge)
		if len(all) == 0 {
			continue
		}
		x := figure.Line{Name: l.name, Axis: l.axis, Step: l.axis == 0 && p.name == "engine"}
		every := (len(all) + mostPoints - 1) / mostPoints
		for i, m := range all {
			if i%every == 0 || i == len(all)-1 {
				x.Seconds = append(x.Seconds, figure.Number(m.At.Seconds()))
				x.Values = append(x.Values, figure.Number(l.of(m)))
			}
		}
		t.Series = append(t.Series, x)
	}
	return figure.Figure{Name: p.name, Title: p.title, Caption: now.load, Simulated: simulated, Time: t}
}

// showChart gives one chart.
func (s *screen) showChart(w http.ResponseWriter, r *http.Request) error {
	sub, err := s.subject(r)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(allCharts, func(p plotted) bool { return p.name == r.PathValue("name") })
	if i < 0 || sub.Dir == "" {
		return page.NotFound("there is no chart " + strconv.Quote(r.PathValue("name")))
	}
	now := s.watchers.seen(sub.Dir)
	var head studyView
	head.heading(sub, now)
	b, err := allCharts[i].figure(now, head.Simulated).JSON()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(b) // a browser that left needs none
	return nil
}
