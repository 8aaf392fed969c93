package plot

import "fmt"

// Curves are figures over a load, with limits, in a plot of half the width.
type Curves struct {
	Name, Title    string
	Simulated      bool
	X, Y           Axis
	XTitle         string
	Diagonal       bool     // y = x is drawn too
	Classes, Names []string // of the legend
	Lines          []CurveLine
	Limits         []Limit
}

// CurveLine is a line through marks.
type CurveLine struct {
	Colour string // number of the series
	Marks  []Mark
	Steps  bool // from the left edge to a mark its value holds, back to the mark before
}

// Mark is a point of a line. A hollow one is off the line.
type Mark struct {
	Point
	Ringed, Hollow bool
	Tip            string
}

// Limit is a value that a line is not to pass, with its name.
type Limit struct {
	At   float64
	Text string
}

// Draw draws the curves.
func (k Curves) Draw() Plot {
	c := &Canvas{Name: k.Name, W: HalfWidth, H: 340}
	c.Head(k.Title, k.Simulated)
	top := 44 + c.Legend(16, 46, k.Classes, k.Names)
	c.H += top - 64
	f := c.Field(64, top, c.W-26, c.H-52, k.X, k.Y, k.XTitle, "")
	if k.Diagonal {
		f.Diagonal()
	}
	for _, l := range k.Lines {
		l.draw(f)
	}
	for _, limit := range k.Limits {
		y := f.Y.At(limit.At)
		c.Path("slo", fmt.Sprintf("M%s %sH%s", Px(f.Left), Px(y), Px(f.Right)), limit.Text)
		if y -= 5; y < f.Top+10 {
			y += 19 // under the line, where above is the legend
		}
		c.Text("m", f.Right-4, y, "end", limit.Text)
	}
	return c.Plot(k.Title)
}

func (l CurveLine) draw(f Field) {
	var line []Point
	from := f.X.Lo
	for _, m := range l.Marks {
		if m.Hollow {
			continue
		}
		if l.Steps {
			line = append(line, Point{X: from, Y: m.Y})
			from = m.X
		}
		line = append(line, m.Point)
	}
	f.Polyline("l"+l.Colour, line)
	for _, m := range l.Marks {
		class := "s" + l.Colour
		if m.Hollow {
			class = "void"
		}
		if m.Ringed {
			f.Canvas.Circle("ring", f.X.At(m.X), f.Y.At(m.Y), 6, "")
		}
		f.Canvas.Circle(class, f.X.At(m.X), f.Y.At(m.Y), 3.6, m.Tip)
	}
}
