package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// axis is a scale with its ticks, linear or logarithmic.
type axis struct {
	scale
	log   bool
	ticks []float64
	label func(v float64) string
}

// at maps a value to a pixel. A logarithmic axis puts what is not above its
// first tick there.
func (a axis) at(v float64) float64 {
	if a.log {
		v = math.Log10(max(v, a.ticks[0]))
	}
	return a.scale.at(v)
}

// wide is the ratio of largest to smallest value from which an axis is
// logarithmic: below it a linear one still shows the small values apart.
const wide = 30

// fit makes an axis over values from lo to hi with about n ticks: logarithmic
// when their range asks for it, else linear from 0.
func fit(lo, hi float64, n int) axis {
	if lo > 0 && hi/lo >= wide {
		t := decades(lo, hi, n)
		return axis{scale{lo: math.Log10(t[0]), hi: math.Log10(t[len(t)-1])}, true, t, plainLabel}
	}
	return linear(hi, n)
}

// linear makes an axis from 0 to hi.
func linear(hi float64, n int) axis {
	t := ticks(0, hi, n)
	return axis{scale{lo: t[0], hi: t[len(t)-1]}, false, t, func(v float64) string { return grouped(tickLabel(v, t)) }}
}

// decades returns ticks from at most lo to at least hi at 1, 2 and 5 times
// powers of ten; at 1 and 3, or powers alone, when those were more than n.
func decades(lo, hi float64, n int) []float64 {
	var t []float64
	for _, steps := range [][]float64{{1, 2, 5}, {1, 3}, {1}} {
		var all []float64
		for e := math.Floor(math.Log10(lo)); e <= math.Ceil(math.Log10(hi)); e++ {
			for _, s := range steps {
				all = append(all, s*math.Pow(10, e))
			}
		}
		from, to := 0, len(all)-1
		for from+1 < len(all) && all[from+1] <= lo*1.000001 {
			from++
		}
		for to > from+1 && all[to-1] >= hi*0.999999 {
			to--
		}
		if t = all[from : to+1]; len(t) <= n {
			break
		}
	}
	return t
}

// plainLabel prints a tick of a logarithmic axis.
func plainLabel(v float64) string {
	if v >= 1e6 {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	return grouped(strconv.FormatFloat(v, 'f', -1, 64))
}

// milliseconds makes the labels of an axis in ms carry their unit, each the one
// that reads best.
func (a axis) milliseconds() axis {
	top := a.ticks[len(a.ticks)-1]
	a.label = func(v float64) string {
		switch {
		case v == 0:
			return "0"
		case a.log && v >= 1000, !a.log && top >= 2000:
			return strconv.FormatFloat(v/1000, 'g', 4, 64) + " s"
		case a.log && v < 1, !a.log && top < 1:
			return strconv.FormatFloat(v*1000, 'g', 4, 64) + " µs"
		}
		return strconv.FormatFloat(v, 'g', 4, 64) + " ms"
	}
	return a
}

// milli writes a duration in ms with three digits: 4.21 ms, 13.4 s.
func milli(v float64) string {
	unit := " ms"
	switch {
	case v >= 1000:
		v, unit = v/1000, " s"
	case v > 0 && v < 1:
		v, unit = v*1000, " µs"
	}
	digits := 0
	if v > 0 {
		digits = min(max(0, 2-int(math.Floor(math.Log10(v)))), 2)
	}
	return strconv.FormatFloat(v, 'f', digits, 64) + unit
}

// grouped puts a comma between thousands: 12,345.5.
func grouped(s string) string {
	whole, rest, _ := strings.Cut(s, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if rest != "" {
		whole += "." + rest
	}
	return sign + whole
}

// tally writes a number of things: 12,345.
func tally(n int) string { return grouped(strconv.Itoa(n)) }

// field is the area of a plot between its axes.
type field struct {
	c                        *canvas
	x, y                     axis
	left, top, right, bottom float64 // edges in pixels
}

// field places two axes and draws their grid and ticks. Titles stand under
// the x axis and above the y axis, where they read without turning the head.
func (c *canvas) field(left, top, right, bottom float64, x, y axis, xtitle, ytitle string) field {
	x.from, x.to, y.from, y.to = left, right, bottom, top
	f := field{c, x, y, left, top, right, bottom}
	for _, v := range y.ticks {
		c.line("g", left, y.at(v), right, y.at(v))
		c.text("m", left-8, y.at(v)+4, "end", y.label(v))
	}
	for _, v := range x.ticks {
		c.line("g", x.at(v), top, x.at(v), bottom)
		if xtitle != "" {
			c.text("m", x.at(v), bottom+18, "middle", x.label(v))
		}
	}
	c.line("ax", left, bottom, right, bottom)
	c.line("ax", left, top, left, bottom)
	if xtitle != "" {
		c.text("m", (left+right)/2, bottom+36, "middle", xtitle)
	}
	if ytitle != "" {
		c.text("m", left, top-8, "start", ytitle)
	}
	return f
}

// dots draws points as round caps on lines of no length, a dozen bytes each.
// They are dealt to a few paths: a path covers itself without growing darker,
// several show where points are dense.
func (f field) dots(class string, points [][2]float64) {
	var paths [4]strings.Builder
	for i, p := range points {
		fmt.Fprintf(&paths[i%len(paths)], "M%s %sh0", px1(f.x.at(p[0])), px1(f.y.at(p[1])))
	}
	for i := range paths[:min(len(paths), len(points))] {
		f.c.path(class, paths[i].String(), "")
	}
}

// px1 prints a coordinate to a tenth, for what there are thousands of.
func px1(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

// every thins n things to at most most, evenly by their order: it is the step
// from one that is kept to the next.
func every(n, most int) int { return max(1, (n+most-1)/most) }
