package runplot

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"perflab/internal/report/plot"
	"perflab/internal/result"
)

// runLength is how long the calls lasted.
func runLength(calls []result.Call) time.Duration {
	var end time.Duration
	for _, c := range calls {
		end = max(end, c.End)
	}
	return end
}

// panels of the time line, one above the other with one axis of time.
const (
	panelLeft, panelRight = 66, 18 // from the edges
	flightTop, flightEnd  = 92, 192
	rateTop, rateEnd      = 228, 328
	ttftTop, ttftEnd      = 364, 514
)

// timeline draws the run over time: calls in flight, output tokens per second,
// and TTFT, with failed calls, the steady window and the drain marked.
func timeline(sim bool, calls []result.Call, every int) (plot.Plot, bool) {
	end := runLength(calls)
	if end <= 0 {
		return plot.Plot{}, false
	}
	return plot.Sized("timeline", notes("The run over time", oneIn(every)), sim, func(c *plot.Canvas) { drawTimeline(c, calls, end, every) }), true
}

// drawTimeline draws the panels.
func drawTimeline(c *plot.Canvas, calls []result.Call, end time.Duration, every int) {
	c.H = ttftEnd + 48
	x := timeAxis(c, end)
	shade(c, x, calls, end, ttftEnd)

	const parts = 300
	high := times(every, inFlight(calls, end, parts))
	f := c.Field(panelLeft, flightTop, c.W-panelRight, flightEnd, x, plot.Linear(slices.Max(high), 4), "", estimated("Calls in flight", every))
	f.Area(end.Seconds()/parts, high)

	rate, width := tokenRate(calls, end)
	if rate = times(every, rate); len(rate) > 0 {
		f = c.Field(panelLeft, rateTop, c.W-panelRight, rateEnd, x, plot.Linear(slices.Max(rate), 4), "", estimated("Output tokens/s of successful calls, in slices of "+plot.Milli(width*1000), every))
		f.Area(width, rate)
	}
	markFailures(ttftPanel(c, x, calls, end), calls)
}

// times are values for as many calls as there are, from one in every so many.
func times(every int, x []float64) []float64 {
	for i := range x {
		x[i] *= float64(every)
	}
	return x
}

// estimated is a title that says whether what is below it was counted.
func estimated(title string, every int) string {
	if every > 1 {
		return title + " (estimated)"
	}
	return title
}

// timeAxis is the axis that all panels of a run share.
func timeAxis(c *plot.Canvas, end time.Duration) plot.Axis {
	x := plot.Linear(end.Seconds(), c.Few(9))
	label := x.Label
	x.Label = func(v float64) string { return label(v) + " s" }
	x.Hi = end.Seconds()
	x.Ticks = slices.DeleteFunc(x.Ticks, func(v float64) bool { return v > x.Hi })
	x.From, x.To = panelLeft, c.W-panelRight
	return x
}

// shade marks the steady window and the drain over all panels, down to bottom, and
// names them.
func shade(c *plot.Canvas, x plot.Axis, calls []result.Call, end time.Duration, bottom float64) {
	classes, names := []string{}, []string{}
	mark := func(class, name string, from, to time.Duration) {
		if to <= from {
			return
		}
		a, b := x.At(from.Seconds()), x.At(to.Seconds())
		told := fmt.Sprintf("%s, %.4g to %.4g s", name, from.Seconds(), to.Seconds())
		if !c.Narrow() {
			name = told
		}
		c.Rect(class, a, flightTop, b-a, bottom-flightTop, told)
		classes, names = append(classes, class), append(names, name)
	}
	steady := result.NewCallSet(calls).SteadyWindow()
	if steady.OK {
		mark("steady", "steady window", steady.From, steady.To)
	}
	var sent time.Duration
	failed := 0
	for i := range calls {
		sent = max(sent, calls[i].Sent)
		if !calls[i].OK() {
			failed++
		}
	}
	mark("drain", "drain", sent, end)
	if failed > 0 {
		classes, names = append(classes, "bad"), append(names, plot.Tally(failed)+" failed")
	}
	if !steady.OK {
		names, classes = append(names, "no steady window"), append(classes, "bg")
	}
	c.Legend(16, 52, classes, names)
}

// inFlight is how many calls were open, as the highest count within each of a
// number of slices of the run.
func inFlight(calls []result.Call, end time.Duration, parts int) []float64 {
	type edge struct {
		at time.Duration
		by int
	}
	var edges []edge
	for i := range calls {
		edges = append(edges, edge{calls[i].Sent, 1}, edge{calls[i].End, -1})
	}
	// At one instant calls end before others begin.
	slices.SortFunc(edges, func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.at, b.at), a.by-b.by)
	})
	high := make([]float64, parts)
	open, at := 0, 0
	for _, e := range edges {
		to := min(int(float64(e.at)/float64(end)*float64(parts)), parts-1)
		for ; at < to; at++ {
			high[at+1] = float64(open)
		}
		open += e.by
		high[at] = max(high[at], float64(open))
	}
	return high
}

// tokenRate is output tokens per second in slices of a round width in s. The
// tokens of a call sum to its n, as in the figures.
func tokenRate(calls []result.Call, end time.Duration) (rate []float64, width float64) {
	t := plot.Ticks(0, end.Seconds(), 160)
	width = t[1] - t[0]
	rate = make([]float64, int(math.Ceil(end.Seconds()/width)))
	any := false
	for i := range calls {
		c := &calls[i]
		if !c.OK() {
			continue
		}
		n, _ := c.Output()
		counted := c.Counted()
		for _, k := range c.Chunks {
			tokens := float64(n) / float64(len(c.Chunks)) // usage alone knows
			if counted > 0 {
				tokens = float64(k.Tokens) * float64(n) / float64(counted)
			}
			at := min(int(k.At.Seconds()/width), len(rate)-1)
			rate[max(at, 0)] += tokens / width
			any = true
		}
	}
	if !any {
		return nil, 0
	}
	return rate, width
}

// ttftPanel draws TTFT over time: of some thousands of calls a dot each, of
// more the band from median to p99.
func ttftPanel(c *plot.Canvas, x plot.Axis, calls []result.Call, end time.Duration) plot.Field {
	when, said := sending(calls, end)
	var at, ttft []float64
	lo, hi := math.Inf(1), 0.0
	for i := range calls {
		d, ok := calls[i].TTFT()
		if !calls[i].OK() || !ok {
			continue
		}
		v := float64(d) / 1e6
		at, ttft = append(at, when(&calls[i]).Seconds()), append(ttft, v)
		lo, hi = min(lo, v), max(hi, v)
	}
	if len(at) == 0 {
		return c.Field(panelLeft, ttftTop, c.W-panelRight, ttftEnd, x, plot.Linear(1, 1), "time since the start of the run", "TTFT: no call has one")
	}
	const perSlice = 25 // calls, so that a slice's figures mean something
	t := plot.Ticks(0, end.Seconds(), min(max(len(at)/perSlice, 8), 100))
	width := t[1] - t[0]
	slice := make([][]float64, int(math.Ceil(end.Seconds()/width)))
	for i, s := range at {
		k := max(min(int(s/width), len(slice)-1), 0)
		slice[k] = append(slice[k], ttft[i])
	}
	y := plot.Fit(lo, hi, 6).Milliseconds()
	text := fmt.Sprintf("TTFT by %s; line: median of each %s", said, plot.Milli(width*1000))
	if len(at) <= most {
		text += "; dot: a call"
	} else {
		text += "; band: up to its p99"
	}
	f := c.Field(panelLeft, ttftTop, c.W-panelRight, ttftEnd, x, y, "time since the start of the run", text)
	if len(at) <= most {
		points := make([][2]float64, len(at))
		for i := range at {
			points[i] = [2]float64{at[i], ttft[i]}
		}
		f.Dots("d0", points)
	} else {
		f.Band(slice, width, 0.5, 0.99)
	}
	f.Band(slice, width, 0.5, 0.5)
	return f
}

// sending chooses the instant at which a call stands on the axis of time: its
// sending, or in a burst, whose calls all have that in common, its first token.
func sending(calls []result.Call, end time.Duration) (when func(*result.Call) time.Duration, said string) {
	var last time.Duration
	for i := range calls {
		last = max(last, calls[i].Sent)
	}
	if last > end/20 {
		return func(c *result.Call) time.Duration { return c.Sent }, "time of sending"
	}
	return func(c *result.Call) time.Duration { t, _ := c.FirstToken(); return t }, "time of the first token (all were sent at the start)"
}

// markFailures marks failed calls at their ends with a cross at the foot of the
// panel, one per few pixels.
func markFailures(f plot.Field, calls []result.Call) {
	seen := map[int]int{}
	for i := range calls {
		if !calls[i].OK() {
			seen[int(f.X.At(calls[i].End.Seconds())/4)]++
		}
	}
	for _, k := range slices.Sorted(maps.Keys(seen)) {
		x, y := float64(k)*4+2, f.Bottom-6
		f.Canvas.Path("err", fmt.Sprintf("M%s %sl7 7m0 -7l-7 7", plot.Px(x-3.5), plot.Px(y-3.5)), plot.Count(seen[k], "failed call"))
	}
}
