package plot

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Ratio is a ratio with its interval.
type Ratio struct {
	Name, Under      string // under stands below the name
	Class            string
	Value, Low, High float64  // high 0: no interval is known
	Mark             *float64 // what was predicted
	Basis            string   // what the interval rests on
}

// Forest draws ratios with their intervals on a logarithmic axis that has 1.
// Without rows there is no plot.
func Forest(name, title string, simulated bool, classes, names []string, rows []Ratio) []Plot {
	if len(rows) == 0 {
		return nil
	}
	return []Plot{Sized(name, title, simulated, func(c *Canvas) { forest(c, classes, names, rows) })}
}

// forest draws them below the title.
func forest(c *Canvas, classes, names []string, rows []Ratio) {
	const most = 46
	right := c.Pick(196, 16)
	lo, hi, line, left := 0.99, 1.01, 26.0, 120.0
	for _, r := range rows {
		for _, v := range []float64{r.Value, r.Low, r.High, *cmp.Or(r.Mark, new(1.0))} {
			if v > 0 {
				lo, hi = min(lo, v), max(hi, v)
			}
		}
		if r.Under != "" {
			line = 40
		}
		left = max(left, 36+TextWidth(Clip(r.Name, most)), 36+TextWidth(Clip(r.Under, most)))
	}
	left, line = c.Pick(left, 16), c.Pick(line, 54)
	lo, hi = max(lo, 0.01), min(hi, 100)
	pad := math.Pow(hi/lo, 0.04)
	top := 52 + c.Legend(16, 48, classes, names)
	c.H = top + line*float64(len(rows)) + 52
	s := Scale{math.Log(lo / pad), math.Log(hi * pad), left, c.W - right}
	at := func(v float64) float64 { return s.At(min(max(math.Log(v), s.Lo), s.Hi)) }
	bottom := c.H - 48
	for _, v := range ratioTicks(lo/pad, hi*pad, c.Few(6)) {
		c.Line("g", at(v), top-4, at(v), bottom)
		c.Text("m", at(v), bottom+18, "middle", strconv.FormatFloat(v, 'f', -1, 64)+"x")
	}
	c.Under((s.From+s.To)/2, bottom+38, "ratio; right of the dashed line is better")
	c.Line("ref", at(1), top-4, at(1), bottom)
	for i, r := range rows {
		r.draw(c, top+line*(float64(i)+c.Pick(0.5, 0.82)), left, most, at)
	}
}

// ratioTicks are about n round ratios from lo to hi, 1 among them.
func ratioTicks(lo, hi float64, n int) []float64 {
	all := Ticks(lo, hi, n)
	if hi/lo > 6 {
		all = decades(lo, hi, n+1)
	}
	var in []float64
	for _, v := range all {
		if v = math.Round(v*1e6) / 1e6; v >= lo && v <= hi {
			in = append(in, v)
		}
	}
	if !slices.Contains(in, 1) {
		in = append(in, 1)
	}
	return in
}

func (r Ratio) draw(c *Canvas, y, left float64, most int, at func(float64) float64) {
	below := 4.0
	switch {
	case c.Narrow():
		c.Text("", 16, y-28, "start", Clip(r.Name, most))
		c.Text("m", 16, y-13, "start", Clip(r.Under, 24))
	case r.Under != "":
		below = -3
		c.Text("m", left-12, y+13, "end", Clip(r.Under, most))
		fallthrough
	default:
		c.Text("", left-12, y+below, "end", Clip(r.Name, most))
	}
	text := Times(r.Value)
	if r.High > 0 {
		text += fmt.Sprintf(" [%.3f, %.3f]", r.Low, r.High)
		class := r.Class
		if class == "void" {
			class = "base"
		}
		c.Rect(class, at(r.Low), y-3, at(r.High)-at(r.Low), 6, r.Name+": "+text)
	} else {
		text += " (no interval)"
	}
	c.Circle(r.Class, at(r.Value), y, 5, r.Name+": "+text)
	if r.Mark != nil && *r.Mark > 0 {
		c.Path("ring", fmt.Sprintf("M%s %sl5 5 -5 5 -5 -5z", Px(at(*r.Mark)), Px(y-5)), r.Name+": predicted "+Times(*r.Mark))
	}
	c.Text("", c.W-16, y+c.Pick(4, -13), "end", text)
}

// RatiosAround1 draws ratios with their intervals on a logarithmic axis that
// reaches as far to both sides of 1, hollow where there is no interval.
func RatiosAround1(name, title string, simulated bool, classes, names []string, rows []Ratio) Plot {
	return Sized(name, title, simulated, func(c *Canvas) { ratiosAround1(c, classes, names, rows) })
}

// ratiosAround1 draws them below the title.
func ratiosAround1(c *Canvas, classes, names []string, rows []Ratio) {
	line, left, right := c.Pick(22, 38), c.Pick(270, 24), c.Pick(140, 24)
	reach := math.Log(1.02)
	for _, r := range rows {
		reach = max(reach, math.Abs(math.Log(r.Value)))
		if r.High > 0 {
			reach = max(reach, math.Abs(math.Log(r.Low)), math.Abs(math.Log(r.High)))
		}
	}
	reach = min(1.05*reach, math.Log(100))
	top := 54 + c.Legend(16, 48, classes, names)
	c.H = top + line*float64(len(rows)) + 48
	x := Scale{-reach, reach, left, c.W - right}
	at := func(v float64) float64 { return x.At(max(-reach, min(reach, math.Log(v)))) }
	bottom := c.H - 40
	ticks := ticksAround1(reach)
	if c.Narrow() { // 1 and the farthest
		ticks = append(ticks[:1:1], ticks[max(1, len(ticks)-2):]...)
	}
	named := roomy(ticks, at)
	for _, v := range ticks {
		c.Line("g", at(v), top-8, at(v), bottom)
		if slices.Contains(named, v) {
			c.Text("m", at(v), bottom+18, "middle", fmt.Sprintf("%gx", v))
		}
	}
	c.Line("ref", at(1), top-8, at(1), bottom)
	for i, r := range rows {
		y := top + line*float64(i) + c.Pick(6, 24)
		if c.Narrow() {
			c.Text("m", 16, y-12, "start", Clip(r.Name, 38))
		} else {
			c.Text("m", left-12, y+4, "end", Clip(r.Name, 38))
		}
		text := Times(r.Value)
		tip := r.Name + ": " + text
		if r.High > 0 {
			tip += fmt.Sprintf(", 95 %% interval %s to %s, %s", Times(r.Low), Times(r.High), r.Basis)
			c.Rect(r.Class, at(r.Low), y-3, at(r.High)-at(r.Low), 6, tip)
		} else {
			tip += ", no interval"
			text += " ?"
		}
		c.Circle(r.Class, at(r.Value), y, 5, tip)
		c.Text("", c.W-16, y+c.Pick(4, -12), "end", text)
	}
}

// roomy are those of ticks around 1 whose names do not run into each other: 1, and from the
// farthest inwards.
func roomy(ticks []float64, at func(float64) float64) []float64 {
	out := ticks[:1:1]
	half := func(v float64) float64 { return TextWidth(fmt.Sprintf("%gx", v))/2 + 3 }
	for _, v := range slices.Backward(ticks[1:]) {
		if !slices.ContainsFunc(out, func(o float64) bool { return math.Abs(at(o)-at(v)) < half(o)+half(v) }) {
			out = append(out, v)
		}
	}
	return out
}

// ticksAround1 are round ratios within exp(±reach).
func ticksAround1(reach float64) []float64 {
	for _, steps := range [][]float64{{1.005, 1.01, 1.015, 1.02}, {1.01, 1.02, 1.03, 1.04}, {1.02, 1.05, 1.1}, {1.05, 1.1, 1.2}, {1.1, 1.25, 1.5}, {1.25, 1.5, 2}, {1.5, 2, 3, 5}, {2, 5, 10}, {3, 10, 30, 100}} {
		if math.Exp(reach) > steps[len(steps)-1]*1.15 && steps[0] < 3 {
			continue
		}
		out := []float64{1}
		for _, s := range steps {
			if math.Log(s) <= reach {
				out = append(out, s, math.Round(1e4/s)/1e4)
			}
		}
		return out
	}
	return []float64{1}
}
