package plot

// Bar is a whole with its parts.
type Bar struct {
	Name  string
	Parts []Part
}

// Part is a share of a bar.
type Part struct {
	Class string
	Share float64
	Tip   string
}

// Shares draws bars of one length, each with its parts in their order.
func Shares(name, title string, simulated bool, classes, names []string, bars []Bar) Plot {
	const row, gap = 26, 8
	c := &Canvas{Name: name, W: Width}
	c.Head(title, simulated)
	left := 0.0
	for _, b := range bars {
		left = max(left, 28+TextWidth(b.Name))
	}
	top := 44 + c.Legend(16, 48, classes, names)
	c.H = top + row*float64(len(bars)) + 16
	for i, b := range bars {
		y := top + row*float64(i) + gap/2
		c.Text("", left-8, y+row-gap-5, "end", b.Name)
		x, whole := left, c.W-24-left
		for _, p := range b.Parts {
			c.Rect(p.Class, x, y, p.Share*whole, row-gap, p.Tip)
			x += p.Share * whole
		}
	}
	return c.Plot(title)
}
