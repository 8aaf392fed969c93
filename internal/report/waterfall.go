package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

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
func waterfall(sim bool, calls []result.Call) (Plot, bool) {
	const rows, row = 20, 19
	var all []*result.Call
	for i := range calls {
		if _, ok := calls[i].E2E(); ok && calls[i].OK() {
			all = append(all, &calls[i])
		}
	}
	if len(all) < 2 {
		return Plot{}, false
	}
	total := func(c *result.Call) time.Duration { return stages(c)[len(phases)-1] }
	slices.SortStableFunc(all, func(a, b *result.Call) int {
		if x, y := total(a), total(b); x != y {
			return int(min(max(y-x, -1), 1))
		}
		return a.Index - b.Index
	})
	of := len(all)
	all = all[:min(rows, of)]
	title := fmt.Sprintf("The %d slowest of %s successful calls, from due to last token", len(all), tally(of))
	c := &canvas{name: "slowest-calls", w: plotWidth, h: 76 + row*float64(len(all)) + 46}
	c.head(title, sim)
	var classes, names []string
	for _, p := range phases {
		classes, names = append(classes, p.class), append(names, p.name)
	}
	c.legend(16, 50, classes, names)
	x := linear(float64(total(all[0]))/1e6, 8).milliseconds()
	none := axis{label: func(float64) string { return "" }}
	f := c.field(190, 70, c.w-80, c.h-46, x, none, "time since the call was due", "")
	for i, call := range all {
		y := f.top + row*float64(i) + 3
		in, _ := call.Input()
		out, _ := call.Output()
		c.text("m", f.left-8, y+11, "end", fmt.Sprintf("#%d: %s in, %s out", call.Index, tally(in), tally(out)))
		var from time.Duration
		ends := stages(call)
		told := make([]string, 0, len(phases))
		for k, end := range ends {
			if end > from {
				told = append(told, phases[k].name+" "+milli(float64(end-from)/1e6))
			}
			from = end
		}
		from = 0
		for k, end := range ends {
			if end > from {
				c.rect(phases[k].class, f.x.at(float64(from)/1e6), y, f.x.at(float64(end)/1e6)-f.x.at(float64(from)/1e6), row-6, strings.Join(told, ", "))
			}
			from = end
		}
		c.text("m", f.x.at(float64(from)/1e6)+6, y+11, "start", milli(float64(from)/1e6))
	}
	return c.plot(title), true
}
