package plot

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"perflab/internal/stat"
)

// Sample is a sorted sample in ms, with the name of the run it is of.
type Sample struct {
	Name   string
	Values []float64
}

// Strokes is how many lines plotStyle can tell apart.
const Strokes = 6

// Distribution draws the share at or below each value, for one sample of so many
// units with its percentiles marked or for several. A note stands under the title.
func Distribution(name, what, unit, note string, simulated bool, runs []Sample) (Plot, bool) {
	runs = slices.DeleteFunc(slices.Clone(runs), func(s Sample) bool { return len(s.Values) == 0 })
	if len(runs) == 0 {
		return Plot{}, false
	}
	lo, hi := math.Inf(1), 0.0
	for _, s := range runs {
		lo, hi = min(lo, s.Values[0]), max(hi, s.Values[len(s.Values)-1])
	}
	x := Fit(lo, hi, 6)
	if !x.Log && lo > hi/2 { // all far from 0
		t := Ticks(lo, hi, 5)
		x.Scale, x.Ticks = Scale{Lo: t[0], Hi: t[len(t)-1]}, t
	}
	x = x.Milliseconds()
	y := Linear(100, 5)
	y.Label = func(v float64) string { return fmt.Sprintf("%g %%", v) }

	title := what + ": share at or below"
	c := &Canvas{Name: "cdf-" + name, W: HalfWidth, H: 320}
	c.Head(title, simulated)
	top := 60.0
	if len(runs) > 1 {
		classes, names := make([]string, len(runs)), make([]string, len(runs))
		for i, s := range runs {
			classes[i], names[i] = fmt.Sprintf("s%d", i%Strokes), s.Name
		}
		top = 40 + c.Legend(16, 44, classes, names)
	} else {
		c.Text("m", 16, 44, "start", fmt.Sprintf("%s %s%s", Tally(len(runs[0].Values)), unit, logNote(x)))
	}
	if note != "" {
		c.Text("m", 16, top, "start", note)
		top += 18
	}
	c.H += top - 60
	f := c.Field(54, top, c.W-26, c.H-34, x, y, " ", "")
	for i, s := range runs {
		c.Path(fmt.Sprintf("l%d", i%Strokes), f.steps(s.Values), s.Name)
	}
	if len(runs) == 1 {
		f.percentiles(runs[0].Values)
	}
	return c.Plot(title), true
}

// logNote says that an axis is logarithmic.
func logNote(a Axis) string {
	if a.Log {
		return ", logarithmic axis"
	}
	return ""
}

// steps is the distribution function of a sorted sample: exact at every
// pixel, whatever the size of the sample.
func (f Field) steps(x []float64) string {
	var d strings.Builder
	first := f.X.At(x[0])
	fmt.Fprintf(&d, "M%s %s", Px1(first), Px1(f.Y.At(0)))
	last := Px1(f.Y.At(0))
	n := 0
	for p := first; n < len(x); p++ {
		n = f.upTo(x, n, p)
		if y := Px1(f.Y.At(100 * float64(n) / float64(len(x)))); y != last {
			fmt.Fprintf(&d, "H%sV%s", Px1(p), y)
			last = y
		}
	}
	fmt.Fprintf(&d, "H%s", Px1(f.Right))
	return d.String()
}

// upTo returns how many values of the sorted x lie at or left of pixel p,
// given that n do. It searches, since samples may be millions.
func (f Field) upTo(x []float64, n int, p float64) int {
	more, _ := slices.BinarySearchFunc(x[n:], p, func(v, p float64) int {
		if f.X.At(v) <= p {
			return -1
		}
		return 1
	})
	return n + more
}

// percentiles marks p50, p90 and p99 of a sorted sample.
func (f Field) percentiles(x []float64) {
	for _, p := range []float64{50, 90, 99} {
		v := stat.Quantile(x, p/100)
		at, y := f.X.At(v), f.Y.At(p)
		text := fmt.Sprintf("p%g %s", p, Milli(v))
		f.Canvas.Line("ref", at, y, at, f.Bottom)
		f.Canvas.Circle("s0", at, y, 3, text)
		anchor, dx, dy := "start", 7.0, 16.0 // under the curve
		if f.Right-at < TextWidth(text)+12 {
			anchor, dx, dy = "end", -7, -7 // over it
		}
		f.Canvas.Text("b", at+dx, y+dy, anchor, text)
	}
}
