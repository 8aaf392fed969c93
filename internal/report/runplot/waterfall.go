package runplot

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"perflab/internal/report/plot"
	"perflab/internal/result"
)

// phases of a call as the waterfall colours them, in order.
var phases = [...]struct{ class, name string }{
	{"s9", "queue in the client"}, {"s4", "connect"}, {"s1", "to the headers"}, {"s2", "to the first token"}, {"s0", "stream"},
}

// stages returns when each phase of a call ended, from Due on; a phase without
// a stamp of its own takes no time.
func stages(c *result.Call) (ends [len(phases)]time.Duration) {
	first, _ := c.FirstToken()
	last, _ := c.LastToken()
	at := c.Due
	for i, end := range [len(phases)]time.Duration{c.Sent - c.Dial, c.Sent, c.Headers, first, last} {
		at = max(at, end)
		ends[i] = at - c.Due
	}
	return ends
}

// waterfall draws where the time of the slowest calls went, from when each was
// due to its last token.
func waterfall(sim bool, calls []result.Call, every int) (plot.Plot, bool) {
	const rows = 20
	var all []*result.Call
	for i := range calls {
		if _, ok := calls[i].E2E(); ok && calls[i].OK() {
			all = append(all, &calls[i])
		}
	}
	if len(all) < 2 {
		return plot.Plot{}, false
	}
	slices.SortStableFunc(all, func(a, b *result.Call) int {
		if x, y := lasted(a), lasted(b); x != y {
			return int(min(max(y-x, -1), 1))
		}
		return a.Index - b.Index
	})
	of := len(all)
	all = all[:min(rows, of)]
	title := fmt.Sprintf("The %d slowest of %s successful calls, from due to last token", len(all), plot.Tally(of))
	title = notes(title, oneIn(every))
	return plot.Sized("slowest-calls", title, sim, func(c *plot.Canvas) { drawSlowest(c, all) }), true
}

// drawSlowest draws the bars of calls, the slowest first.
func drawSlowest(c *plot.Canvas, all []*result.Call) {
	const row = 19
	var classes, names []string
	for _, p := range phases {
		classes, names = append(classes, p.class), append(names, p.name)
	}
	top := 50 + c.Legend(16, 50, classes, names)
	c.H = top + 6 + row*float64(len(all)) + 46
	x := plot.Linear(float64(lasted(all[0]))/1e6, c.Few(8)).Milliseconds()
	none := plot.Axis{Label: func(float64) string { return "" }}
	f := c.Field(c.Pick(190, 56), top, c.W-c.Pick(80, 64), c.H-46, x, none, "time since the call was due", "")
	for i, call := range all {
		y := f.Top + row*float64(i) + 3
		in, _ := call.Input()
		out, _ := call.Output()
		name := fmt.Sprintf("#%d", call.Index)
		if !c.Narrow() {
			name += fmt.Sprintf(": %s in, %s out", plot.Tally(in), plot.Tally(out))
		}
		c.Text("m", f.Left-8, y+11, "end", name)
		var from time.Duration
		ends := stages(call)
		told := make([]string, 0, len(phases))
		for k, end := range ends {
			if end > from {
				told = append(told, phases[k].name+" "+plot.Milli(float64(end-from)/1e6))
			}
			from = end
		}
		from = 0
		for k, end := range ends {
			if end > from {
				c.Rect(phases[k].class, f.X.At(float64(from)/1e6), y, f.X.At(float64(end)/1e6)-f.X.At(float64(from)/1e6), row-6, strings.Join(told, ", "))
			}
			from = end
		}
		c.Text("m", f.X.At(float64(from)/1e6)+6, y+11, "start", plot.Milli(float64(from)/1e6))
	}
}

// lasted is from when a call was due to its last token.
func lasted(c *result.Call) time.Duration { return stages(c)[len(phases)-1] }
