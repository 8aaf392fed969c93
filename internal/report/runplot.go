package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"perflab/internal/result"
)

// RunPlots draws a single run from its calls: the distributions of time to
// first token and of end-to-end latency, and over time the requests in flight
// and the tokens per second. A plot without data is left out.
func RunPlots(h result.Header, calls []result.Call) []Plot {
	var ttft, e2e []float64
	sim := h.Simulated || h.Predicted
	for _, c := range calls {
		sim = sim || c.Sim
		if !c.OK() {
			continue
		}
		if d, ok := c.TTFT(); ok {
			ttft = append(ttft, d.Seconds())
		}
		if d, ok := c.E2E(); ok {
			e2e = append(e2e, d.Seconds())
		}
	}
	var out []Plot
	for _, draw := range []func() (Plot, bool){
		func() (Plot, bool) { return cdf("ttft", "Time to first token", sim, ttft) },
		func() (Plot, bool) { return cdf("e2e-latency", "End-to-end latency", sim, e2e) },
		func() (Plot, bool) { return inFlight(sim, calls) },
		func() (Plot, bool) { return tokenRate(sim, calls) },
	} {
		if p, ok := draw(); ok {
			out = append(out, p)
		}
	}
	return out
}

// cdf draws the share of requests that took at most x.
func cdf(name, what string, sim bool, seconds []float64) (Plot, bool) {
	if len(seconds) == 0 {
		return Plot{}, false
	}
	s := slices.Sorted(slices.Values(seconds))
	unit, by := "s", 1.0
	if s[len(s)-1] < 1 {
		unit, by = "ms", 1000
	}
	title := what + ": share of requests at or below"
	c := &canvas{name: name, w: plotWidth, h: 340}
	c.head(title, sim)
	f := axes(c, 70, 48, 30, 60, ticks(0, s[len(s)-1]*by, 8), []float64{0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100},
		fmt.Sprintf("%s (%s)", what, unit), "successful requests (%)")
	var d strings.Builder
	fmt.Fprintf(&d, "M%s %s", px(f.x.at(s[0]*by)), px(f.y.at(0)))
	step := max(1, len(s)/600)
	for i := range s {
		if i%step == 0 || i == len(s)-1 {
			fmt.Fprintf(&d, "V%sH%s", px(f.y.at(100*float64(i+1)/float64(len(s)))), px(f.x.at(s[min(i+step, len(s)-1)]*by)))
		}
	}
	c.path("l0", d.String(), title)
	return Plot{name, title, c.standalone(title)}, true
}

// span is how long the calls lasted.
func span(calls []result.Call) time.Duration {
	var end time.Duration
	for _, c := range calls {
		end = max(end, c.End)
	}
	return end
}

// inFlight draws how many requests were open, as the highest count within
// each of a few hundred slices of the run.
func inFlight(sim bool, calls []result.Call) (Plot, bool) {
	end := span(calls)
	if end <= 0 {
		return Plot{}, false
	}
	type edge struct {
		at time.Duration
		by int
	}
	var edges []edge
	for _, c := range calls {
		edges = append(edges, edge{c.Sent, 1}, edge{c.End, -1})
	}
	// At one instant calls end before others begin.
	slices.SortFunc(edges, func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.at, b.at), a.by-b.by)
	})
	const parts = 300
	high := make([]float64, parts)
	open, at := 0, 0
	for _, e := range edges {
		to := min(int(float64(e.at)/float64(end)*parts), parts-1)
		for ; at < to; at++ {
			high[at+1] = float64(open)
		}
		open += e.by
		high[at] = max(high[at], float64(open))
	}
	return overTime("requests-in-flight", "Requests in flight", "requests", sim, end, high)
}

// tokenRate draws output tokens per second in slices of a round length.
func tokenRate(sim bool, calls []result.Call) (Plot, bool) {
	end := span(calls)
	if end <= 0 {
		return Plot{}, false
	}
	t := ticks(0, end.Seconds(), 120)
	width := t[1] - t[0]
	rate := make([]float64, int(math.Ceil(end.Seconds()/width)))
	any := false
	for _, c := range calls {
		for _, k := range c.Chunks {
			i := min(int(k.At.Seconds()/width), len(rate)-1)
			rate[max(i, 0)] += float64(k.Tokens) / width
			any = true
		}
	}
	if !any {
		return Plot{}, false
	}
	title := fmt.Sprintf("Output tokens per second, in slices of %s s", tickLabel(width, t))
	return overTime("tokens-per-second", title, "output tokens/s", sim, time.Duration(width*float64(len(rate))*float64(time.Second)), rate)
}

// overTime draws one value per slice of the run as a filled step line.
func overTime(name, title, what string, sim bool, end time.Duration, v []float64) (Plot, bool) {
	c := &canvas{name: name, w: plotWidth, h: 300}
	c.head(title, sim)
	f := axes(c, 78, 48, 30, 60, ticks(0, end.Seconds(), 8), ticks(0, slices.Max(v), 5), "time since the start of the run (s)", what)
	var d strings.Builder
	for i, y := range v {
		x0 := f.x.at(end.Seconds() * float64(i) / float64(len(v)))
		x1 := f.x.at(end.Seconds() * float64(i+1) / float64(len(v)))
		if i == 0 {
			fmt.Fprintf(&d, "M%s %s", px(x0), px(f.y.at(y)))
		}
		fmt.Fprintf(&d, "V%sH%s", px(f.y.at(y)), px(x1))
	}
	base := px(f.y.at(0))
	c.path("a0", d.String()+"V"+base+"H"+px(f.x.at(0))+"Z", "")
	c.path("l0", d.String(), title)
	return Plot{name, title, c.standalone(title)}, true
}
