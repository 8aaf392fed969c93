// Package plot draws plots as SVG: a canvas with text and marks, axes, and the
// kinds of plots that are of plain numbers with names.
//
//	c := &plot.Canvas{Name: "ttft", W: plot.HalfWidth, H: 340}
//	c.Head("TTFT over load", simulated)
//	f := c.Field(64, 60, c.W-26, c.H-52, plot.Fit(1, 64, 6), plot.Fit(12, 900, 6).Milliseconds(), "Request rate (req/s)", "")
//	f.Polyline("l0", points)
//	file := c.Plot("TTFT over load").SVG
//
// Invariants: the same numbers give the same bytes. Text is escaped where it is
// drawn. What is simulated says so in its head.
//
// Deliberately absent: knowledge of runs, studies and metrics. Callers give
// numbers, names and the sentences of tooltips.
package plot

import (
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Plot is one picture as a complete SVG file.
type Plot struct {
	Name  string // file name without .svg: lower case letters, digits and -
	Title string
	SVG   string
	Phone string // the same drawn for a phone, without the style; "": the plot is small enough for one
	Half  bool   // stands beside another
}

// Width is the width of a plot that stands alone; plots of HalfWidth stand
// two in a row.
const (
	Width      = 880
	HalfWidth  = 440
	phoneWidth = 350
)

// Sized draws a plot that stands alone, and once more for a phone, on which the letters of the
// wide one could not be read. What it draws below the title goes by the width of the canvas.
func Sized(name, title string, simulated bool, draw func(c *Canvas)) Plot {
	wide := &Canvas{Name: name, W: Width}
	wide.Head(Clip(title, 92), simulated)
	draw(wide)
	phone := &Canvas{Name: name + "-phone", W: phoneWidth}
	phone.Head(title, simulated)
	draw(phone)
	p := wide.Plot(title)
	p.Phone = phone.Plot(title).Inline()
	return p
}

// Narrow reports whether the plot is for a phone.
func (c *Canvas) Narrow() bool { return c.W < HalfWidth }

// Pick is a measure of a plot for a page, or the one for a phone.
func (c *Canvas) Pick(wide, narrow float64) float64 {
	if c.Narrow() {
		return narrow
	}
	return wide
}

// Few is how many ticks an axis has: on a phone half as many.
func (c *Canvas) Few(n int) int {
	if c.Narrow() {
		return max(2, n/2)
	}
	return n
}

// Canvas collects the elements of one SVG file. Colours are classes of
// Style, so that a plot follows the reader's light or dark scheme both
// alone and inside a page.
type Canvas struct {
	Name string // makes ids unique within a page
	W, H float64
	b    strings.Builder

	head       strings.Builder // above what is drawn
	lift, foot float64         // room above and below H that long titles of a narrow plot take
}

// Style is the style sheet of every plot. Ten series: s fills, l strokes, d dots, a
// areas; base and best are the two sides of a comparison. It holds plain
// properties and no CSS variables, which some SVG viewers do not know.
const Style = `.pl{font:12px system-ui,-apple-system,"Segoe UI","Helvetica Neue",Arial,sans-serif}
.pl text{fill:#1f2328;font-variant-numeric:tabular-nums}.pl .bg{fill:#fff}.pl .m{fill:#59636e}.pl .h{font-size:14px;font-weight:600}.pl .b{font-weight:600}
.pl .sim{fill:#b35900;font-weight:700}.pl .g{stroke:#e4e8ec}.pl .ax{stroke:#818b98}.pl .ref{stroke:#59636e;stroke-dasharray:4 3}
.pl .ring{fill:none;stroke:#1f2328;stroke-width:1.5}.pl .hatch{stroke:#818b98}.pl .gap{stroke:#818b98;stroke-dasharray:3 3}.pl .best{fill:#2f9e5b}.pl .base{fill:#9aa4af}
.pl .s0{fill:#4269d0}.pl .s1{fill:#e0a100}.pl .s2{fill:#f0604f}.pl .s3{fill:#3fa796}.pl .s4{fill:#a463f2}.pl .s5{fill:#6b8e23}.pl .s6{fill:#e06fa0}.pl .s7{fill:#5aa7e8}.pl .s8{fill:#9c6b4e}.pl .s9{fill:#8a94a0}
.pl .l0,.pl .l1,.pl .l2,.pl .l3,.pl .l4,.pl .l5{fill:none;stroke:#4269d0;stroke-width:1.8;stroke-linejoin:round}.pl .l1{stroke:#e0a100}.pl .l2{stroke:#f0604f}.pl .l3{stroke:#3fa796}.pl .l4{stroke:#a463f2}.pl .l5{stroke:#6b8e23}
.pl .a0{fill:#4269d0;fill-opacity:.14}.pl .a2{fill:#f0604f;fill-opacity:.16}.pl .d0{fill:none;stroke:#4269d0;stroke-opacity:.35;stroke-width:4;stroke-linecap:round}.pl .far{fill:#4269d0}
.pl .steady{fill:#2f9e5b;fill-opacity:.13}.pl .drain{fill:#818b98;fill-opacity:.22}.pl .err,.pl .slo{fill:none;stroke:#cf222e;stroke-width:1.5}.pl .slo{stroke-dasharray:6 4}.pl .bad{fill:#cf222e}.pl .void{fill:#fff;stroke:#59636e;stroke-width:1.5}
@media(prefers-color-scheme:dark){.pl text{fill:#e6edf3}.pl .bg{fill:#0f1419}.pl .m{fill:#9aa5b1}.pl .sim{fill:#ffb45c}.pl .g{stroke:#2a313a}.pl .ax{stroke:#6b7682}.pl .ref{stroke:#9aa5b1}
.pl .ring{stroke:#e6edf3}.pl .hatch{stroke:#6b7682}.pl .gap{stroke:#6b7682}.pl .best{fill:#46c07a}.pl .base{fill:#6b7682}
.pl .s0{fill:#6f92f0}.pl .s2{fill:#ff7c6d}.pl .s3{fill:#55c2b0}.pl .s4{fill:#b98af7}.pl .s5{fill:#9bc04a}.pl .l0,.pl .d0{stroke:#6f92f0}.pl .l2{stroke:#ff7c6d}.pl .l3{stroke:#55c2b0}.pl .l4{stroke:#b98af7}.pl .l5{stroke:#9bc04a}.pl .a0,.pl .far{fill:#6f92f0}.pl .a2{fill:#ff7c6d}
.pl .steady{fill:#46c07a;fill-opacity:.2}.pl .drain{fill-opacity:.35}.pl .err,.pl .slo{stroke:#ff7b72}.pl .bad{fill:#ff7b72}.pl .void{fill:#0f1419;stroke:#9aa5b1}}
`

// Series is how many colours Style has.
const Series = 10

// SeriesClass is the class of the marks of series i.
func SeriesClass(i int) string { return fmt.Sprintf("s%d", i%Series) }

// Plot is the finished picture.
func (c *Canvas) Plot(title string) Plot {
	h, body := c.H+c.lift+c.foot, c.b.String()
	if c.head.Len() > 0 {
		body = fmt.Sprintf(`%s<g transform="translate(0 %s)">%s</g>`, c.head.String(), Px(c.lift), body)
	}
	svg := fmt.Sprintf(`<svg%s class="pl" role="img" viewBox="0 0 %s %s" width="%s" height="%s"><title>%s</title>%s<rect class="bg" width="%s" height="%s" rx="6"/>%s</svg>`+"\n",
		namespace, Px(c.W), Px(h), Px(c.W), Px(h), esc(title), styleElement, Px(c.W), Px(h), body)
	return Plot{Name: c.Name, Title: title, SVG: svg, Half: c.W <= HalfWidth}
}

// What a plot as a file has beyond one within a page.
const (
	namespace    = ` xmlns="http://www.w3.org/2000/svg"`
	styleElement = "<style>" + Style + "</style>"
)

// Inline is the picture for use within a page that has the style already. The
// text of a plot is escaped when it is drawn.
func (p Plot) Inline() string {
	return strings.Replace(strings.Replace(p.SVG, namespace, "", 1), styleElement, "", 1)
}

// Head writes the title, and SIMULATED opposite to it.
func (c *Canvas) Head(title string, simulated bool) {
	if c.Narrow() {
		lines := wrapped(title, 38) // bold letters
		for i, l := range lines {
			c.headText("h", 24+18*float64(i), l)
		}
		if simulated {
			lines = append(lines, "")
			c.headText("sim", 6+18*float64(len(lines)), "SIMULATED")
		}
		c.lift = 18 * float64(len(lines)-1)
		return
	}
	c.Text("h", 16, 24, "start", title)
	if simulated {
		c.Text("sim", c.W-16, 24, "end", "SIMULATED")
	}
}

// headText writes a line of the head of a narrow plot.
func (c *Canvas) headText(class string, y float64, s string) {
	fmt.Fprintf(&c.head, `<text class="%s" x="16" y="%s" text-anchor="start">%s</text>`, class, Px(y), esc(s))
}

// Under writes the title of an axis below it, in the middle; on a phone in lines from the left,
// for which it makes room.
func (c *Canvas) Under(x, y float64, s string) {
	if !c.Narrow() {
		c.Text("m", x, y, "middle", s)
		return
	}
	lines := wrapped(s, phoneLine)
	for i, l := range lines {
		c.Text("m", 16, y+lineHeight*float64(i), "start", l)
	}
	c.foot += lineHeight * float64(len(lines)-1)
}

// What a line of text takes on a phone.
const (
	phoneLine  = 47 // letters
	lineHeight = 15.0
)

// wrapped breaks a text into lines of at most n letters.
func wrapped(s string, n int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(s) {
		word = Clip(word, n)
		switch {
		case line == "":
			line = word
		case len([]rune(line))+1+len([]rune(word)) <= n:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	return append(lines, line)
}

func (c *Canvas) Text(class string, x, y float64, anchor, s string) {
	fmt.Fprintf(&c.b, `<text class="%s" x="%s" y="%s" text-anchor="%s">%s</text>`, class, Px(x), Px(y), anchor, esc(s))
}

// upright writes text along a vertical axis, from bottom to top.
func (c *Canvas) upright(x, y float64, s string) {
	fmt.Fprintf(&c.b, `<text class="m" transform="translate(%s %s) rotate(-90)" text-anchor="middle">%s</text>`, Px(x), Px(y), esc(s))
}

func (c *Canvas) Line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&c.b, `<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`, class, Px(x1), Px(y1), Px(x2), Px(y2))
}

func (c *Canvas) Rect(class string, x, y, w, h float64, tip string) {
	fmt.Fprintf(&c.b, `<rect class="%s" x="%s" y="%s" width="%s" height="%s" rx="2">%s</rect>`, class, Px(x), Px(y), Px(max(w, 0.5)), Px(h), tooltip(tip))
}

func (c *Canvas) Circle(class string, x, y, r float64, tip string) {
	fmt.Fprintf(&c.b, `<circle class="%s" cx="%s" cy="%s" r="%s">%s</circle>`, class, Px(x), Px(y), Px(r), tooltip(tip))
}

func (c *Canvas) Path(class, d, tip string) {
	fmt.Fprintf(&c.b, `<path class="%s" d="%s">%s</path>`, class, d, tooltip(tip))
}

// Hatched draws a field that says: nothing was measured here.
func (c *Canvas) Hatched(x, y, w, h float64, tip string) {
	id := "hatch-" + c.Name
	if !strings.Contains(c.b.String(), id) {
		fmt.Fprintf(&c.b, `<defs><pattern id="%s" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line class="hatch" x1="0" y1="0" x2="0" y2="6"/></pattern></defs>`, esc(id))
	}
	fmt.Fprintf(&c.b, `<rect class="gap" x="%s" y="%s" width="%s" height="%s" rx="2" fill="url(#%s)">%s</rect>`, Px(x), Px(y), Px(w), Px(h), esc(id), tooltip(tip))
}

// Legend writes swatches with names from x on and returns the height used.
func (c *Canvas) Legend(x, y float64, classes, names []string) float64 {
	at, row := x, 0.0
	for i, n := range names {
		n = Clip(n, int(c.Pick(40, 36)))
		w := TextWidth(n) + 34
		if at+w > c.W-16 && at > x {
			at, row = x, row+20
		}
		c.Rect(classes[i], at, y+row-9, 11, 11, "")
		c.Text("m", at+17, y+row, "start", n)
		at += w
	}
	return row + 20
}

// Label is the name of a point.
type Label struct {
	X, Y        float64
	Text, Class string
}

// NamePoints names points, each at the first place around it that covers neither
// another point nor a name already written. A name of class m that finds none is
// left to its point's title.
func (c *Canvas) NamePoints(points []Label) {
	var taken []box
	for _, p := range points {
		taken = append(taken, box{p.X - 6, p.Y - 6, p.X + 6, p.Y + 6})
	}
	for _, p := range points {
		w := TextWidth(p.Text)
		if p.Class == "b" { // bold faces are up to a quarter wider
			w *= 1.25
		}
		var at place
		found := false
		for i, q := range []place{{12, 4, "start"}, {12, -10, "start"}, {12, 18, "start"}, {-12, 4, "end"}, {-12, -10, "end"}, {-12, 18, "end"}, {0, 28, "middle"}, {0, -20, "middle"}} {
			b := q.box(p, w)
			free := b.x1 < c.W-8 && (b.x0 > 8 || !c.Narrow()) && !slices.ContainsFunc(taken, b.hits)
			if i == 0 || free {
				at = q
			}
			if free {
				found = true
				break
			}
		}
		if !found && p.Class == "m" {
			continue
		}
		taken = append(taken, at.box(p, w))
		c.Text(p.Class, p.X+at.dx, p.Y+at.dy, at.anchor, p.Text)
	}
}

// Apart leaves one name to points that lie on each other, the first.
func Apart(labels []Label) []Label {
	var out []Label
	for _, l := range labels {
		if !slices.ContainsFunc(out, func(o Label) bool { return math.Abs(o.X-l.X) < 6 && math.Abs(o.Y-l.Y) < 6 }) {
			out = append(out, l)
		}
	}
	return out
}

// box is an area of the picture.
type box struct{ x0, y0, x1, y1 float64 }

func (a box) hits(b box) bool { return a.x0 < b.x1 && b.x0 < a.x1 && a.y0 < b.y1 && b.y0 < a.y1 }

// place is where a name stands, from its point.
type place struct {
	dx, dy float64
	anchor string
}

// box is the area that a name w wide covers.
func (q place) box(p Label, w float64) box {
	x := p.X + q.dx
	switch q.anchor {
	case "end":
		x -= w
	case "middle":
		x -= w / 2
	}
	return box{x, p.Y + q.dy - 11, x + w, p.Y + q.dy + 2}
}

func tooltip(s string) string {
	if s == "" {
		return ""
	}
	return "<title>" + esc(s) + "</title>"
}

// esc escapes text for XML content and attributes; what XML cannot hold is
// replaced.
func esc(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder never fails
	return b.String()
}

// Px prints a coordinate to a hundredth.
func Px(v float64) string {
	return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64)
}

// Scale maps values to pixels.
type Scale struct{ Lo, Hi, From, To float64 }

func (s Scale) At(v float64) float64 {
	if s.Hi == s.Lo {
		return s.From
	}
	return s.From + (v-s.Lo)/(s.Hi-s.Lo)*(s.To-s.From)
}

// Ticks returns about n round values that span lo to hi: steps of 1, 2 or 5
// times a power of ten. A span that is none, or too small to cut into steps,
// is taken for 1.
func Ticks(lo, hi float64, n int) []float64 {
	if !(hi-lo > 1e-300) || math.IsInf(hi-lo, 0) {
		hi = lo + 1
	}
	raw := (hi - lo) / float64(n)
	step := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 5, 10} {
		if step*m >= raw*0.999999 {
			step *= m
			break
		}
	}
	var t []float64
	first := math.Floor(lo/step + 1e-9)
	for i := first; ; i++ {
		v := i * step
		t = append(t, v)
		if v >= hi-step*1e-9 {
			return t
		}
	}
}

// Frame is the area of a plot with two axes.
type Frame struct {
	Canvas *Canvas
	X, Y   Scale
}

// Axes draws a frame with grid, ticks and axis titles for values 0..xmax and
// 0..ymax (both rounded up to a tick).
func Axes(c *Canvas, left, top, right, bottom float64, xs, ys []float64, xtitle, ytitle string) Frame {
	f := Frame{c, Scale{xs[0], xs[len(xs)-1], left, c.W - right}, Scale{ys[0], ys[len(ys)-1], c.H - bottom, top}}
	for _, v := range ys {
		c.Line("g", left, f.Y.At(v), c.W-right, f.Y.At(v))
		c.Text("m", left-8, f.Y.At(v)+4, "end", TickLabel(v, ys))
	}
	for _, v := range xs {
		c.Line("g", f.X.At(v), top, f.X.At(v), c.H-bottom)
		c.Text("m", f.X.At(v), c.H-bottom+18, "middle", TickLabel(v, xs))
	}
	c.Line("ax", left, c.H-bottom, c.W-right, c.H-bottom)
	c.Line("ax", left, top, left, c.H-bottom)
	c.Under((left+c.W-right)/2, c.H-bottom+38, xtitle)
	c.upright(18, (top+c.H-bottom)/2, ytitle)
	return f
}
