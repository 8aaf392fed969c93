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
	return Sized(name, title, simulated, func(c *Canvas) {
		const bar, gap = 18, 8
		row, left := c.Pick(bar+gap, bar+gap+16), 0.0
		for _, b := range bars {
			left = max(left, 28+TextWidth(b.Name))
		}
		left = c.Pick(left, 16)
		top := 44 + c.Legend(16, 48, classes, names)
		c.H = top + row*float64(len(bars)) + 16
		for i, b := range bars {
			y := top + row*float64(i+1) - bar - gap/2
			c.Named("", left, y, bar, b.Name, 48)
			x, whole := left, c.W-24-left
			for _, p := range b.Parts {
				c.Rect(p.Class, x, y, p.Share*whole, bar, p.Tip)
				x += p.Share * whole
			}
		}
	})
}

// Named writes the name of a bar before it, on a phone above it.
func (c *Canvas) Named(class string, left, y, h float64, name string, most int) {
	if c.Narrow() {
		c.Text(class, 16, y-5, "start", Clip(name, min(most, 42)))
		return
	}
	c.Text(class, left-8, y+h-5, "end", Clip(name, most))
}
