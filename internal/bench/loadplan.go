package bench

import "time"

// Step is what a plan wants measured next.
type Step struct {
	Load     Load
	Requests int           // 0: as many as the spec says
	Early    *Early        // how the run may end before; nil: it may not
	For      time.Duration // how long it sends; 0: as the spec says
}

// LoadPlan decides which loads a series measures, one after the other. It is pure:
// the same points told give the same steps.
type LoadPlan interface {
	Ask() (Step, bool) // false: nothing more
	Tell(Point)        // the point that the last step led to
}

// Stop says why a series ended.
type Stop struct {
	Code string `json:"code"`
	Text string `json:"text"` // one sentence
}

// Codes of a stop. A search has the others of findmax.go besides.
const (
	StopDone        = "done"
	StopInterrupted = "interrupted"
	StopError       = "error"
)

// fixedPlan is a plan known from the start.
type fixedPlan struct{ steps []Step }

// Ask returns the next step.
func (l *fixedPlan) Ask() (Step, bool) {
	if len(l.steps) == 0 {
		return Step{}, false
	}
	s := l.steps[0]
	l.steps = l.steps[1:]
	return s, true
}

// Tell changes nothing.
func (l *fixedPlan) Tell(Point) {}

// Repeat is a plan of n equal runs.
func Repeat(n int) LoadPlan {
	p := &fixedPlan{}
	for i := range n {
		p.steps = append(p.steps, Step{Load: Load{Same, float64(i + 1)}})
	}
	return p
}
