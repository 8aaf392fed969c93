package runplot

import (
	"fmt"
	"slices"

	"perflab/internal/report/plot"
	"perflab/internal/result"
	"perflab/internal/stat"
)

// context draws how long the prompts of sessions are, by a request's place in its session: a dot each, and the medians
// joined.
func context(sim bool, calls []result.Call, every int) (plot.Plot, bool) {
	byTurn := map[int][]float64{}
	var points [][2]float64
	last, longest := 0, 0.0
	for i := range calls {
		c := &calls[i]
		n, _ := c.Input()
		if !c.OK() || c.Session == 0 || n <= 0 {
			continue
		}
		turn, v := c.Turn+1, float64(n)
		byTurn[turn] = append(byTurn[turn], v)
		points = append(points, [2]float64{float64(turn), v})
		last, longest = max(last, turn), max(longest, v)
	}
	if last < 2 {
		return plot.Plot{}, false
	}
	const title = "Prompt length over a session"
	c := &plot.Canvas{Name: "context", W: plot.HalfWidth, H: 340}
	c.Head(title, sim)
	f := c.Field(64, 60, c.W-26, c.H-52, plot.Linear(float64(last), 6), plot.Linear(longest, 7), "request of its session", "")
	step := plot.Every(len(points), most)
	var some [][2]float64
	for i := 0; i < len(points); i += step {
		some = append(some, points[i])
	}
	f.Dots("d0", some)
	var medians []plot.Point
	for turn := 1; turn <= last; turn++ {
		if all := byTurn[turn]; len(all) > 0 {
			slices.Sort(all)
			medians = append(medians, plot.Point{X: float64(turn), Y: stat.Quantile(all, 0.5)})
		}
	}
	f.Polyline("l2", medians)
	note := "prompt tokens, a dot each, and their median"
	if step > 1 {
		note = fmt.Sprintf("prompt tokens of every %d%s request, and the median of all", step, ordinal(step))
	}
	c.Text("m", 16, 44, "start", notes(note, oneIn(every)))
	return c.Plot(title), true
}
