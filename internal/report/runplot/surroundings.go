package runplot

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"perflab/internal/gauge"
	"perflab/internal/report/plot"
	"perflab/internal/result"
)

// Heights of the panels of readings, in the places of the time line's first ones.
const (
	besideHeight = 78
	besideGap    = 36
)

// gaugePanel is a panel of readings: one or two gauges of a source over time.
type gaugePanel struct {
	title string
	unit  string // of its axis: "", "%", "W"
	lines []gaugeLine
}

type gaugeLine struct {
	class  string // l0 to l5: the stroke; the swatch is s0 to s5
	name   string // beside its swatch; "" for the only one
	points []dot
}

// dot is a reading as drawn; apart says that there is none between it and the one
// before.
type dot struct {
	at    time.Duration
	v     float64
	apart bool
}

// surroundings draws what was read beside the calls over the axis of the time line:
// requests in the engine, its KV cache, GPUs, and the hosts' CPU.
func surroundings(sim bool, calls []result.Call, readings []gauge.Reading) (plot.Plot, bool) {
	end := runLength(calls)
	if end <= 0 {
		return plot.Plot{}, false
	}
	panels := gaugePanels(readings, end)
	if len(panels) == 0 {
		return plot.Plot{}, false
	}
	return plot.Sized("telemetry", aroundTitle(readings), sim, func(c *plot.Canvas) { drawPanels(c, panels, calls, end) }), true
}

// drawPanels draws the panels one above the other; on a phone each has its legend in a line of
// its own.
func drawPanels(c *plot.Canvas, panels []gaugePanel, calls []result.Call, end time.Duration) {
	gap, first := c.Pick(besideGap, besideGap+40), c.Pick(flightTop, flightTop+44)
	bottom := first + float64(len(panels))*(besideHeight+gap) - gap
	c.H = bottom + 48
	x := timeAxis(c, end)
	shade(c, x, calls, end, bottom)
	for i, p := range panels {
		top, under := first+float64(i)*(besideHeight+gap), ""
		if i == len(panels)-1 {
			under = "time since the start of the run"
		}
		title := p.title
		if c.Narrow() {
			title = ""
			c.Text("m", 16, top-46, "start", plot.Clip(p.title, 46))
		}
		f := c.Field(panelLeft, top, c.W-panelRight, top+besideHeight, x, p.axis(), under, title)
		classes, names := []string{}, []string{}
		for _, l := range p.lines {
			l.draw(f)
			if l.name != "" {
				classes, names = append(classes, "s"+l.class[1:]), append(names, l.name)
			}
		}
		c.Legend(c.Pick(panelLeft+plot.TextWidth(p.title)+24, 16), top-c.Pick(8, 28), classes, names)
	}
}

// aroundTitle names what was read.
func aroundTitle(readings []gauge.Reading) string {
	var names []string
	for _, k := range []struct{ source, one, many string }{
		{gauge.SourceEngine, "engine", "engines"}, {gauge.SourcePrefill, "prefill engine", "prefill engines"}, {gauge.SourceGPU, "GPU", "GPUs"}, {gauge.SourceHost, "host", "hosts"},
	} {
		switch n := places(readings, k.source); {
		case n == 1:
			names = append(names, k.one)
		case n > 1:
			names = append(names, k.many)
		}
	}
	text := strings.Join(names, ", ")
	if n := len(names); n > 1 {
		text = strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return strings.ToUpper(text[:1]) + text[1:] + " over the same time"
}

// axis is one from 0 to the highest value; of shares to 100 %.
func (p gaugePanel) axis() plot.Axis {
	hi := 0.0
	for _, l := range p.lines {
		for _, d := range l.points {
			hi = max(hi, d.v)
		}
	}
	if p.unit == "%" {
		hi = 100
	}
	y := plot.Linear(max(hi, 1e-9), 3)
	if label := y.Label; p.unit != "" {
		y.Label = func(v float64) string { return label(v) + " " + p.unit }
	}
	return y
}

// gaugePanels are the panels that have readings within the run.
func gaugePanels(readings []gauge.Reading, end time.Duration) []gaugePanel {
	course := func(source, name string, of func(gauge.Moment) float64) []dot {
		return thinned(gauge.Series(readings, source, name), end, of)
	}
	sum := func(m gauge.Moment) float64 { return m.Sum }
	percent := func(m gauge.Moment) float64 { return 100 * m.High }
	mean := func(m gauge.Moment) float64 { return 100 * m.Sum / float64(m.N) }
	replicas, gpus, hosts := places(readings, gauge.SourceEngine), places(readings, gauge.SourceGPU), places(readings, gauge.SourceHost)
	use := []gaugeLine{{"l0", "", course(gauge.SourceGPU, gauge.GPUUtilization, mean)}}
	useTitle := "GPU utilisation"
	if gpus > 1 {
		use[0].name = "mean of " + plot.Count(gpus, "GPU")
		use = append(use, gaugeLine{"l3", "highest", course(gauge.SourceGPU, gauge.GPUUtilization, percent)})
	}
	held := func(m gauge.Moment) float64 { return 100 * m.Sum / float64(m.N) }
	for _, k := range []struct{ gauge, class, name string }{
		{gauge.ThrottleThermal, "l2", "held back by heat"}, {gauge.ThrottleHW, "l4", "by the hardware"}, {gauge.ThrottlePower, "l1", "by the power limit"},
	} {
		d := course(gauge.SourceGPU, k.gauge, held)
		if slices.ContainsFunc(d, func(x dot) bool { return x.v > 0 }) {
			use = append(use, gaugeLine{k.class, k.name, d})
			use[0].name = cmp.Or(use[0].name, "utilisation")
		}
	}
	prefills := places(readings, gauge.SourcePrefill)
	all := []gaugePanel{
		{"Requests in prefill" + several(prefills, "engine", ", sum of "), "", []gaugeLine{
			{"l0", "running", course(gauge.SourcePrefill, "running", sum)}, {"l1", "waiting", course(gauge.SourcePrefill, "waiting", sum)}}},
		{"Requests in the engine" + several(replicas, "replica", ", sum of "), "", []gaugeLine{
			{"l0", "running", course(gauge.SourceEngine, "running", sum)}, {"l1", "waiting", course(gauge.SourceEngine, "waiting", sum)}}},
		{"KV cache in use" + several(replicas, "replica", ", highest of "), "%", []gaugeLine{{"l3", "", course(gauge.SourceEngine, "kv_usage", percent)}}},
		{useTitle, "%", use},
		{"Power" + several(gpus, "GPU", ", sum of "), "W", []gaugeLine{{"l2", "", course(gauge.SourceGPU, gauge.GPUPower, sum)}}},
		{"Host CPU" + several(hosts, "machine", ", highest of "), "%", []gaugeLine{{"l5", "", course(gauge.SourceHost, gauge.CPUUtilization, percent)}}},
	}
	return slices.DeleteFunc(all, func(p gaugePanel) bool {
		return !slices.ContainsFunc(p.lines, func(l gaugeLine) bool { return len(l.points) > 1 })
	})
}

// several ends a title where it is of more than one.
func several(n int, noun, how string) string {
	if n < 2 {
		return ""
	}
	return how + plot.Count(n, noun)
}

// places counts the devices, replicas or machines that a source tells of.
func places(readings []gauge.Reading, source string) int {
	seen := map[string]bool{}
	for _, r := range readings {
		if r.Source == source && r.Error == "" {
			seen[fmt.Sprint(r.Node, " ", r.Index)] = true
		}
	}
	return len(seen)
}

// besideParts is into how many slices a run is cut at most: of the readings in one
// the highest is drawn.
const besideParts = 600

// thinned are the moments within the run, the highest of each slice of it. Moments
// more than three times their usual distance apart are not joined.
func thinned(all []gauge.Moment, end time.Duration, of func(gauge.Moment) float64) []dot {
	var dots []dot
	slice := -1
	for _, m := range all {
		if m.At < 0 || m.At > end {
			continue
		}
		k := min(int(float64(m.At)/float64(end)*besideParts), besideParts-1)
		if v := of(m); k != slice {
			dots = append(dots, dot{at: m.At, v: v})
		} else if v > dots[len(dots)-1].v {
			dots[len(dots)-1].v = v
		}
		slice = k
	}
	var gaps []time.Duration
	for i := 1; i < len(dots); i++ {
		gaps = append(gaps, dots[i].at-dots[i-1].at)
	}
	if len(gaps) > 0 {
		sorted := slices.Sorted(slices.Values(gaps))
		for i, g := range gaps {
			dots[i+1].apart = g > 3*sorted[len(sorted)/2]
		}
	}
	return dots
}

// draw draws the line, with gaps where there are no readings.
func (l gaugeLine) draw(f plot.Field) {
	points := make([]plot.Point, len(l.points))
	for i, p := range l.points {
		points[i] = plot.Point{X: p.at.Seconds(), Y: max(0, p.v), Apart: p.apart}
	}
	if len(points) > 0 {
		f.Polyline(l.class, points)
	}
}
