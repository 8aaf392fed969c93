package plot

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/stat"
)

// Axis is a scale with its ticks, linear or logarithmic.
type Axis struct {
	Scale
	Log   bool
	Ticks []float64
	Label func(v float64) string
}

// At maps a value to a pixel. A logarithmic axis puts what is not above its
// first tick there.
func (a Axis) At(v float64) float64 {
	if a.Log {
		v = math.Log10(max(v, a.Ticks[0]))
	}
	return a.Scale.At(v)
}

// wide is the ratio of largest to smallest value from which an axis is
// logarithmic: below it a linear one still shows the small values apart.
const wide = 30

// Fit makes an axis over values from lo to hi with about n ticks: logarithmic
// when their range asks for it, else linear from 0.
func Fit(lo, hi float64, n int) Axis {
	if lo > 0 && hi/lo >= wide {
		t := decades(lo, hi, n)
		return Axis{Scale{Lo: math.Log10(t[0]), Hi: math.Log10(t[len(t)-1])}, true, t, plainLabel}
	}
	return Linear(hi, n)
}

// Linear makes an axis from 0 to hi.
func Linear(hi float64, n int) Axis {
	t := Ticks(0, hi, n)
	return Axis{Scale{Lo: t[0], Hi: t[len(t)-1]}, false, t, func(v float64) string { return TickLabel(v, t) }}
}

// Padded makes a linear axis over values from lo to hi and a little more, which
// need not show 0.
func Padded(lo, hi float64, n int) Axis {
	pad := max(0.1*(hi-lo), 0.02*hi)
	t := Ticks(max(0, lo-pad), hi+pad, n)
	return Axis{Scale{Lo: t[0], Hi: t[len(t)-1]}, false, t, func(v float64) string { return TickLabel(v, t) }}
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

// Milliseconds makes the labels of an axis in ms carry their unit, each the one
// that reads best.
func (a Axis) Milliseconds() Axis {
	top := a.Ticks[len(a.Ticks)-1]
	a.Label = func(v float64) string {
		switch {
		case v == 0:
			return "0"
		case a.Log && v >= 1000, !a.Log && top >= 2000:
			return strconv.FormatFloat(v/1000, 'g', 4, 64) + " s"
		case a.Log && v < 1, !a.Log && top < 1:
			return strconv.FormatFloat(v*1000, 'g', 4, 64) + " µs"
		}
		return strconv.FormatFloat(v, 'g', 4, 64) + " ms"
	}
	return a
}

// Field is the area of a plot between its axes.
type Field struct {
	Canvas                   *Canvas
	X, Y                     Axis
	Left, Top, Right, Bottom float64 // edges in pixels
}

// Field places two axes and draws their grid and ticks. Titles stand under
// the x axis and above the y axis, where they read without turning the head.
func (c *Canvas) Field(left, top, right, bottom float64, x, y Axis, xtitle, ytitle string) Field {
	titles := []string{ytitle}
	if c.Narrow() && ytitle != "" {
		titles = wrapped(ytitle, phoneLine)
		top += lineHeight * float64(len(titles)-1)
	}
	x.From, x.To, y.From, y.To = left, right, bottom, top
	f := Field{c, x, y, left, top, right, bottom}
	for _, v := range y.Ticks {
		c.Line("g", left, y.At(v), right, y.At(v))
		c.Text("m", left-8, y.At(v)+4, "end", y.Label(v))
	}
	for _, v := range x.Ticks {
		c.Line("g", x.At(v), top, x.At(v), bottom)
		if xtitle != "" {
			c.Text("m", x.At(v), bottom+18, "middle", x.Label(v))
		}
	}
	c.Line("ax", left, bottom, right, bottom)
	c.Line("ax", left, top, left, bottom)
	if xtitle != "" {
		c.Under((left+right)/2, bottom+36, xtitle)
	}
	for i, line := range titles {
		if line != "" {
			c.Text("m", c.Pick(left, 16), top-8-lineHeight*float64(len(titles)-1-i), "start", line)
		}
	}
	return f
}

// Dots draws points as round caps on lines of no length, a dozen bytes each.
// They are dealt to a few paths: a path covers itself without growing darker,
// several show where points are dense.
func (f Field) Dots(class string, points [][2]float64) {
	var paths [4]strings.Builder
	for i, p := range points {
		fmt.Fprintf(&paths[i%len(paths)], "M%s %sh0", Px1(f.X.At(p[0])), Px1(f.Y.At(p[1])))
	}
	for i := range paths[:min(len(paths), len(points))] {
		f.Canvas.Path(class, paths[i].String(), "")
	}
}

// Band draws, slice by slice, the area between two quantiles, or of one the
// line. A slice without calls is a gap.
func (f Field) Band(bins [][]float64, width, from, to float64) {
	var d strings.Builder
	joined := false
	for i, s := range bins {
		if len(s) == 0 {
			joined = false
			continue
		}
		slices.Sort(s)
		a, b := f.X.At(width*float64(i)), min(f.X.At(width*float64(i+1)), f.Right)
		lo, hi := f.Y.At(stat.Quantile(s, from)), f.Y.At(stat.Quantile(s, to))
		switch {
		case from != to:
			fmt.Fprintf(&d, "M%s %sV%sH%sV%sZ", Px1(a), Px1(lo), Px1(hi), Px1(b), Px1(lo))
		case joined:
			fmt.Fprintf(&d, "V%sH%s", Px1(lo), Px1(b))
		default:
			fmt.Fprintf(&d, "M%s %sH%s", Px1(a), Px1(lo), Px1(b))
		}
		joined = true
	}
	class := "l2"
	if from != to {
		class = "a2"
	}
	f.Canvas.Path(class, d.String(), "")
}

// Area draws one value per slice of the axis as a filled step line.
func (f Field) Area(width float64, v []float64) {
	var d strings.Builder
	for i, y := range v {
		x0, x1 := f.X.At(width*float64(i)), f.X.At(width*float64(i+1))
		if i == 0 {
			fmt.Fprintf(&d, "M%s %s", Px1(x0), Px1(f.Y.At(y)))
		}
		fmt.Fprintf(&d, "V%sH%s", Px1(f.Y.At(y)), Px1(min(x1, f.Right)))
	}
	base := Px1(f.Bottom)
	f.Canvas.Path("a0", d.String()+"V"+base+"H"+Px1(f.Left)+"Z", "")
	f.Canvas.Path("l0", d.String(), "")
}

// Point is one of a line; apart says that it is not joined to the one before.
type Point struct {
	X, Y  float64
	Apart bool
}

// Polyline joins points by straight lines.
func (f Field) Polyline(class string, points []Point) {
	var d strings.Builder
	for i, p := range points {
		op := "L"
		if i == 0 || p.Apart {
			op = "M"
		}
		fmt.Fprintf(&d, "%s%s %s", op, Px1(f.X.At(p.X)), Px1(f.Y.At(p.Y)))
	}
	f.Canvas.Path(class, d.String(), "")
}

// Diagonal draws y = x into a field whose axes have one range.
func (f Field) Diagonal() {
	f.Canvas.Line("ref", f.Left, f.Bottom, f.Right, f.Top)
}

// Px1 prints a coordinate to a tenth, for what there are thousands of.
func Px1(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

// Every thins n things to at most most, evenly by their order: it is the step
// from one that is kept to the next.
func Every(n, most int) int { return max(1, (n+most-1)/most) }
