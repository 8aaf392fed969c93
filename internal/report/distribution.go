package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"perflab/internal/stat"
)

// sample is a sorted sample in ms, with the name of the run it is of.
type sample struct {
	name string
	x    []float64
}

// strokes is how many lines plotStyle can tell apart.
const strokes = 6

// ownMarks says that a plot is not by the definitions that the run's figures
// are by: the calls are drawn as perflab sees them.
const ownMarks = "by perflab's definitions, not --compat's"

// distribution draws the share of calls (of chunks, for ITL) at or below each
// latency, for one run with its percentiles marked or for several. compat says
// that figures of the runs are by another client's definitions.
func distribution(name, what string, sim, compat bool, runs []sample) (Plot, bool) {
	runs = slices.DeleteFunc(slices.Clone(runs), func(s sample) bool { return len(s.x) == 0 })
	if len(runs) == 0 {
		return Plot{}, false
	}
	lo, hi := math.Inf(1), 0.0
	for _, s := range runs {
		lo, hi = min(lo, s.x[0]), max(hi, s.x[len(s.x)-1])
	}
	x := fit(lo, hi, 6)
	if !x.log && lo > hi/2 { // all far from 0
		t := ticks(lo, hi, 5)
		x.scale, x.ticks = scale{lo: t[0], hi: t[len(t)-1]}, t
	}
	x = x.milliseconds()
	y := linear(100, 5)
	y.label = func(v float64) string { return fmt.Sprintf("%g %%", v) }

	title := what + ": share at or below"
	c := &canvas{name: "cdf-" + name, w: halfWidth, h: 320}
	c.head(title, sim)
	top := 60.0
	if len(runs) > 1 {
		classes, names := make([]string, len(runs)), make([]string, len(runs))
		for i, s := range runs {
			classes[i], names[i] = fmt.Sprintf("s%d", i%strokes), s.name
		}
		top = 40 + c.legend(16, 44, classes, names)
	} else {
		unit := "calls"
		if name == "itl" {
			unit = "gaps"
		}
		c.text("m", 16, 44, "start", fmt.Sprintf("%s %s%s", tally(len(runs[0].x)), unit, logNote(x)))
	}
	if compat {
		c.text("m", 16, top, "start", ownMarks)
		top += 18
	}
	c.h += top - 60
	f := c.field(54, top, c.w-26, c.h-34, x, y, " ", "")
	for i, s := range runs {
		c.path(fmt.Sprintf("l%d", i%strokes), f.steps(s.x), s.name)
	}
	if len(runs) == 1 {
		f.percentiles(runs[0].x)
	}
	return c.plot(title), true
}

// logNote says that an axis is logarithmic.
func logNote(a axis) string {
	if a.log {
		return ", logarithmic axis"
	}
	return ""
}

// steps is the distribution function of a sorted sample: exact at every
// pixel, whatever the size of the sample.
func (f field) steps(x []float64) string {
	var d strings.Builder
	first := f.x.at(x[0])
	fmt.Fprintf(&d, "M%s %s", px1(first), px1(f.y.at(0)))
	last := px1(f.y.at(0))
	n := 0
	for p := first; n < len(x); p++ {
		n = f.upTo(x, n, p)
		if y := px1(f.y.at(100 * float64(n) / float64(len(x)))); y != last {
			fmt.Fprintf(&d, "H%sV%s", px1(p), y)
			last = y
		}
	}
	fmt.Fprintf(&d, "H%s", px1(f.right))
	return d.String()
}

// upTo returns how many values of the sorted x lie at or left of pixel p,
// given that n do. It searches, since samples may be millions.
func (f field) upTo(x []float64, n int, p float64) int {
	more, _ := slices.BinarySearchFunc(x[n:], p, func(v, p float64) int {
		if f.x.at(v) <= p {
			return -1
		}
		return 1
	})
	return n + more
}

// percentiles marks p50, p90 and p99 of a sorted sample.
func (f field) percentiles(x []float64) {
	for _, p := range []float64{50, 90, 99} {
		v := stat.Quantile(x, p/100)
		at, y := f.x.at(v), f.y.at(p)
		text := fmt.Sprintf("p%g %s", p, milli(v))
		f.c.line("ref", at, y, at, f.bottom)
		f.c.circle("s0", at, y, 3, text)
		anchor, dx, dy := "start", 7.0, 16.0 // under the curve
		if f.right-at < textWidth(text)+12 {
			anchor, dx, dy = "end", -7, -7 // over it
		}
		f.c.text("b", at+dx, y+dy, anchor, text)
	}
}
