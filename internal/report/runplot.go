package report

import (
	"fmt"
	"math"
	"slices"
	"time"

	"perflab/internal/result"
)

// halfWidth is the width of plots that stand two in a row.
const halfWidth = 440

// RunPlots draws a single run from its calls and the readings beside them: its
// course over time, the distributions of its latencies, latency against length, and its slowest
// calls. A plot without data is left out. compat names the definitions of the
// run's figures where they are not perflab's: the plots, which are, say so.
func RunPlots(h result.Header, calls []result.Call, readings []result.Reading, compat string) []Plot {
	sim := h.Simulated || h.Predicted || slices.ContainsFunc(calls, func(c result.Call) bool { return c.Sim })
	var out []Plot
	add := func(p Plot, ok bool) {
		if ok {
			out = append(out, p)
		}
	}
	add(timeline(sim, calls))
	add(surroundings(sim, calls, readings))
	for _, d := range distributions {
		add(distribution(d.family, d.what, sim, compat != "", []sample{{"", result.Samples(h, calls, d.family)}}))
	}
	add(scatter("ttft-by-prompt", "TTFT against prompt length", "prompt tokens", sim, calls, (*result.Call).Input, (*result.Call).TTFT))
	add(scatter("e2e-by-output", "E2E latency against output length", "output tokens", sim, calls, (*result.Call).Output, (*result.Call).E2E))
	add(waterfall(sim, calls))
	return out
}

// distributions are the families whose distribution is drawn.
var distributions = [...]struct{ family, what string }{
	{"ttft", "TTFT"}, {"tpot", "TPOT"}, {"itl", "ITL"}, {"e2el", "E2E latency"},
}

// most bounds the dots of a plot: beyond some thousands they cover each other
// and make the page heavy.
const most = 3000

// scatter draws a dot per successful call: a latency against a length. Of many
// calls it draws some, evenly by their order, and always the slowest.
func scatter(name, title, xtitle string, sim bool, calls []result.Call, length func(*result.Call) (int, result.Source), latency func(*result.Call) (time.Duration, bool)) (Plot, bool) {
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
		return Plot{}, false
	}
	slices.SortStableFunc(all, func(a, b dot) int { return a.index - b.index })
	c := &canvas{name: name, w: halfWidth, h: 340}
	c.head(title, sim)
	f := c.field(64, 60, c.w-26, c.h-52, fit(lo[0], hi[0], 6), fit(lo[1], hi[1], 7).milliseconds(), xtitle, "")
	step := every(len(all), most)
	var points [][2]float64
	for i := 0; i < len(all); i += step {
		points = append(points, [2]float64{all[i].x, all[i].y})
	}
	f.dots("d0", points)
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
		c.circle("far", f.x.at(k.x), f.y.at(k.y), 2.4, fmt.Sprintf("call %d: %s %s, %s", k.index, tally(int(k.x)), xtitle, milli(k.y)))
	}
	note := fmt.Sprintf("%s calls, one dot each", tally(len(all)))
	if step > 1 {
		note = fmt.Sprintf("%s calls: every %d%s drawn, and the %d slowest", tally(len(all)), step, ordinal(step), len(slowest))
	}
	c.text("m", 16, 44, "start", note)
	return c.plot(title), true
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
