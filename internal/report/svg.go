package report

import (
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// canvas collects the elements of one SVG file. Colours are classes of
// plotStyle, so that a plot follows the reader's light or dark scheme both
// alone and inside a page.
type canvas struct {
	name string // makes ids unique within a page
	w, h float64
	b    strings.Builder
}

// plotStyle dresses every plot. Ten series: s fills, l strokes, d dots, a
// areas; base and best are the two sides of a comparison. It holds plain properties and no CSS
// variables, which some SVG viewers do not know.
const plotStyle = `.pl{font:12px system-ui,-apple-system,"Segoe UI","Helvetica Neue",Arial,sans-serif}
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

// series is how many colours plotStyle has.
const series = 10

// plot is the finished picture.
func (c *canvas) plot(title string) Plot {
	return Plot{Name: c.name, Title: title, SVG: c.standalone(title), half: c.w <= halfWidth}
}

// standalone is the picture as a file of its own.
func (c *canvas) standalone(title string) string {
	return c.wrap(title, ` xmlns="http://www.w3.org/2000/svg"`, "<style>"+plotStyle+"</style>")
}

func (c *canvas) wrap(title, ns, style string) string {
	return fmt.Sprintf(`<svg%s class="pl" role="img" viewBox="0 0 %s %s" width="%s" height="%s"><title>%s</title>%s<rect class="bg" width="%s" height="%s" rx="6"/>%s</svg>`+"\n",
		ns, px(c.w), px(c.h), px(c.w), px(c.h), esc(title), style, px(c.w), px(c.h), c.b.String())
}

// head writes the title, and SIMULATED opposite to it.
func (c *canvas) head(title string, simulated bool) {
	c.text("h", 16, 24, "start", title)
	if simulated {
		c.text("sim", c.w-16, 24, "end", "SIMULATED")
	}
}

func (c *canvas) text(class string, x, y float64, anchor, s string) {
	fmt.Fprintf(&c.b, `<text class="%s" x="%s" y="%s" text-anchor="%s">%s</text>`, class, px(x), px(y), anchor, esc(s))
}

// upright writes text along a vertical axis, from bottom to top.
func (c *canvas) upright(x, y float64, s string) {
	fmt.Fprintf(&c.b, `<text class="m" transform="translate(%s %s) rotate(-90)" text-anchor="middle">%s</text>`, px(x), px(y), esc(s))
}

func (c *canvas) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&c.b, `<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`, class, px(x1), px(y1), px(x2), px(y2))
}

func (c *canvas) rect(class string, x, y, w, h float64, tip string) {
	fmt.Fprintf(&c.b, `<rect class="%s" x="%s" y="%s" width="%s" height="%s" rx="2">%s</rect>`, class, px(x), px(y), px(max(w, 0.5)), px(h), tooltip(tip))
}

func (c *canvas) circle(class string, x, y, r float64, tip string) {
	fmt.Fprintf(&c.b, `<circle class="%s" cx="%s" cy="%s" r="%s">%s</circle>`, class, px(x), px(y), px(r), tooltip(tip))
}

func (c *canvas) path(class, d, tip string) {
	fmt.Fprintf(&c.b, `<path class="%s" d="%s">%s</path>`, class, d, tooltip(tip))
}

// hatched draws a field that says: nothing was measured here.
func (c *canvas) hatched(x, y, w, h float64, tip string) {
	id := "hatch-" + c.name
	if !strings.Contains(c.b.String(), id) {
		fmt.Fprintf(&c.b, `<defs><pattern id="%s" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line class="hatch" x1="0" y1="0" x2="0" y2="6"/></pattern></defs>`, esc(id))
	}
	fmt.Fprintf(&c.b, `<rect class="gap" x="%s" y="%s" width="%s" height="%s" rx="2" fill="url(#%s)">%s</rect>`, px(x), px(y), px(w), px(h), esc(id), tooltip(tip))
}

// legend writes swatches with names from x on and returns the height used.
func (c *canvas) legend(x, y float64, classes, names []string) float64 {
	at, row := x, 0.0
	for i, n := range names {
		n = clip(n, 40)
		w := textWidth(n) + 34
		if at+w > c.w-16 && at > x {
			at, row = x, row+20
		}
		c.rect(classes[i], at, y+row-9, 11, 11, "")
		c.text("m", at+17, y+row, "start", n)
		at += w
	}
	return row + 20
}

// label is the name of a point.
type label struct {
	x, y        float64
	text, class string
}

// label names points, each at the first place around it that covers neither
// another point nor a name already written. A name of class m that finds none is
// left to its point's title.
func (c *canvas) label(points []label) {
	var taken []box
	for _, p := range points {
		taken = append(taken, box{p.x - 6, p.y - 6, p.x + 6, p.y + 6})
	}
	for _, p := range points {
		w := textWidth(p.text)
		if p.class == "b" { // bold faces are up to a quarter wider
			w *= 1.25
		}
		var at place
		found := false
		for i, q := range []place{{12, 4, "start"}, {12, -10, "start"}, {12, 18, "start"}, {-12, 4, "end"}, {-12, -10, "end"}, {-12, 18, "end"}, {0, 28, "middle"}, {0, -20, "middle"}} {
			b := q.box(p, w)
			free := b.x1 < c.w-8 && !slices.ContainsFunc(taken, b.hits)
			if i == 0 || free {
				at = q
			}
			if free {
				found = true
				break
			}
		}
		if !found && p.class == "m" {
			continue
		}
		taken = append(taken, at.box(p, w))
		c.text(p.class, p.x+at.dx, p.y+at.dy, at.anchor, p.text)
	}
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
func (q place) box(p label, w float64) box {
	x := p.x + q.dx
	switch q.anchor {
	case "end":
		x -= w
	case "middle":
		x -= w / 2
	}
	return box{x, p.y + q.dy - 11, x + w, p.y + q.dy + 2}
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

// px prints a coordinate to a hundredth.
func px(v float64) string {
	return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64)
}

// textWidth estimates the width of s at 12 px: no font is at hand here, and
// 6.6 px is the mean advance of common sans-serif faces, rounded up.
func textWidth(s string) float64 { return 6.6 * float64(len([]rune(s))) }

// clip shortens s to n runes.
func clip(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return strings.TrimSpace(string(r[:n-1])) + "…"
}

// scale maps values to pixels.
type scale struct{ lo, hi, from, to float64 }

func (s scale) at(v float64) float64 {
	if s.hi == s.lo {
		return s.from
	}
	return s.from + (v-s.lo)/(s.hi-s.lo)*(s.to-s.from)
}

// ticks returns about n round values that span lo to hi: steps of 1, 2 or 5
// times a power of ten. A span that is none, or too small to cut into steps,
// is taken for 1.
func ticks(lo, hi float64, n int) []float64 {
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

// tickLabel prints a tick with as many decimals as the step needs.
func tickLabel(v float64, t []float64) string {
	d := 0
	if len(t) > 1 {
		d = max(0, int(math.Ceil(-math.Log10(t[1]-t[0])-1e-9)))
	}
	return strconv.FormatFloat(v, 'f', d, 64)
}

// frame is the area of a plot with two axes.
type frame struct {
	c    *canvas
	x, y scale
}

// axes draws a frame with grid, ticks and axis titles for values 0..xmax and
// 0..ymax (both rounded up to a tick).
func axes(c *canvas, left, top, right, bottom float64, xs, ys []float64, xtitle, ytitle string) frame {
	f := frame{c, scale{xs[0], xs[len(xs)-1], left, c.w - right}, scale{ys[0], ys[len(ys)-1], c.h - bottom, top}}
	for _, v := range ys {
		c.line("g", left, f.y.at(v), c.w-right, f.y.at(v))
		c.text("m", left-8, f.y.at(v)+4, "end", tickLabel(v, ys))
	}
	for _, v := range xs {
		c.line("g", f.x.at(v), top, f.x.at(v), c.h-bottom)
		c.text("m", f.x.at(v), c.h-bottom+18, "middle", tickLabel(v, xs))
	}
	c.line("ax", left, c.h-bottom, c.w-right, c.h-bottom)
	c.line("ax", left, top, left, c.h-bottom)
	c.text("m", (left+c.w-right)/2, c.h-bottom+38, "middle", xtitle)
	c.upright(18, (top+c.h-bottom)/2, ytitle)
	return f
}
