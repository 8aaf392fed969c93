// Package runplot draws a run from its calls and the readings beside them: its
// course over time, the distributions of its latencies, latency against length
// and its slowest calls. A plot without data is left out.
package runplot

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"perflab/internal/gauge"
	"perflab/internal/report/plot"
	"perflab/internal/result"
)

// Plots draws a single run from its calls and the readings beside them: its
// course over time, the distributions of its latencies, latency against length, and its slowest
// calls. A plot without data is left out. compat names the definitions of the
// run's figures where they are not perflab's: the plots, which are, say so. Of a very
// long run calls are one in every so many, which the plots say as well; calls in
// flight and tokens are then estimates, as many times what is drawn from.
func Plots(h result.Header, calls []result.Call, every int, readings []gauge.Reading, compat string) []plot.Plot {
	every = max(1, every)
	sim := h.Simulated || h.Predicted || slices.ContainsFunc(calls, func(c result.Call) bool { return c.Sim })
	var out []plot.Plot
	add := func(p plot.Plot, ok bool) {
		if ok {
			out = append(out, p)
		}
	}
	add(timeline(sim, calls, every))
	add(surroundings(sim, calls, readings))
	for _, d := range distributions {
		add(plot.Distribution(d.family, d.what, d.unit, notes(definedBy(compat != ""), oneIn(every)), sim, []plot.Sample{{Values: result.FamilySamples(h, calls, d.family)}}))
	}
	add(scatter("ttft-by-prompt", "TTFT against prompt length", "prompt tokens", sim, calls, every, (*result.Call).Input, (*result.Call).TTFT))
	add(scatter("e2e-by-output", "E2E latency against output length", "output tokens", sim, calls, every, (*result.Call).Output, (*result.Call).E2E))
	add(context(sim, calls, every))
	add(waterfall(sim, calls, every))
	return out
}

// Run is one of several runs that are drawn over each other.
type Run struct {
	Name   string
	Header result.Header
	Calls  []result.Call
	Every  int // of so many calls one is there; up to 1: all are
}

// Overlaid draws the distributions of the runs' latencies, each family's into one
// plot. compat says that figures of the runs are by other definitions.
func Overlaid(runs []Run, compat, simulated bool) []plot.Plot {
	var out []plot.Plot
	for _, d := range distributions {
		var all []plot.Sample
		some := ""
		for _, r := range runs[:min(len(runs), plot.Strokes)] {
			if r.Every > 1 {
				some = "long runs of one call in many"
			}
			all = append(all, plot.Sample{Name: r.Name, Values: result.FamilySamples(r.Header, r.Calls, d.family)})
		}
		if p, ok := plot.Distribution(d.family, d.what, d.unit, notes(definedBy(compat), some), simulated, all); ok {
			out = append(out, p)
		}
	}
	return out
}

// distributions are the families whose distribution is drawn.
var distributions = [...]struct{ family, what, unit string }{
	{"ttft", "TTFT", "calls"}, {"tpot", "TPOT", "calls"}, {"itl", "ITL", "gaps"}, {"e2el", "E2E latency", "calls"},
}

// definedBy says that a plot is not by the definitions that the run's figures
// are by: the calls are drawn as perflab sees them.
func definedBy(compat bool) string {
	if compat {
		return "by perflab's definitions, not --compat's"
	}
	return ""
}

// oneIn says of which calls a plot is where it is not of all; "" where it is.
func oneIn(every int) string {
	if every <= 1 {
		return ""
	}
	return fmt.Sprintf("of one call in %s", plot.Tally(every))
}

// notes joins those that say something.
func notes(all ...string) string {
	return strings.Join(slices.DeleteFunc(all, func(s string) bool { return s == "" }), ", ")
}

// most bounds the dots of a plot: beyond some thousands they cover each other
// and make the page heavy.
const most = 3000

// scatter draws a dot per successful call: a latency against a length. Of many
// calls it draws some, evenly by their order, and always the slowest.
func scatter(name, title, xtitle string, sim bool, calls []result.Call, every int, length func(*result.Call) (int, result.Source), latency func(*result.Call) (time.Duration, bool)) (plot.Plot, bool) {
	type dot struct {
		index int
		x, y  float64
	}
	var all []dot
	lo, hi := [2]float64{math.Inf(1), math.Inf(1)}, [2]float64{}
	for i := range calls {
		c := &calls[i]
		n, _ := length(c)
		d, ok := latency(c)
		if !c.OK() || !ok || n <= 0 {
			continue
		}
		k := dot{c.Index, float64(n), float64(d) / 1e6}
		all = append(all, k)
		lo = [2]float64{min(lo[0], k.x), min(lo[1], k.y)}
		hi = [2]float64{max(hi[0], k.x), max(hi[1], k.y)}
	}
	const alike = 0.98 // of one length there is nothing to see
	if len(all) < 2 || lo[0] > alike*hi[0] {
		return plot.Plot{}, false
	}
	slices.SortStableFunc(all, func(a, b dot) int { return a.index - b.index })
	c := &plot.Canvas{Name: name, W: plot.HalfWidth, H: 340}
	c.Head(title, sim)
	f := c.Field(64, 60, c.W-26, c.H-52, plot.Fit(lo[0], hi[0], 6), plot.Fit(lo[1], hi[1], 7).Milliseconds(), xtitle, "")
	step := plot.Every(len(all), most)
	var points [][2]float64
	for i := 0; i < len(all); i += step {
		points = append(points, [2]float64{all[i].x, all[i].y})
	}
	f.Dots("d0", points)
	slices.SortStableFunc(all, func(a, b dot) int {
		switch {
		case a.y > b.y:
			return -1
		case a.y < b.y:
			return 1
		}
		return 0
	})
	slowest := all[:min(len(all), 20)]
	for _, k := range slowest {
		c.Circle("far", f.X.At(k.x), f.Y.At(k.y), 2.4, fmt.Sprintf("call %d: %s %s, %s", k.index, plot.Tally(int(k.x)), xtitle, plot.Milli(k.y)))
	}
	note := fmt.Sprintf("%s calls, one dot each", plot.Tally(len(all)))
	if step > 1 {
		note = fmt.Sprintf("%s calls: every %d%s drawn, and the %d slowest", plot.Tally(len(all)), step, ordinal(step), len(slowest))
	}
	c.Text("m", 16, 44, "start", notes(note, oneIn(every)))
	return c.Plot(title), true
}

// ordinal is the ending of an ordinal number.
func ordinal(n int) string {
	if n%100 >= 11 && n%100 <= 13 {
		return "th"
	}
	switch n % 10 {
	case 1:
		return "st"
	case 2:
		return "nd"
	case 3:
		return "rd"
	}
	return "th"
}
