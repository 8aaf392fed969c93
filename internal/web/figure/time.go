package figure

import "fmt"

// Time are series over the time since a start. The plots of one page that have the same clock show
// the same moment under the pointer and zoom together.
type Time struct {
	Clock  string  `json:"clock,omitempty"` // "": its own
	Axes   []Axis  `json:"axes"`            // one, or one on each side
	Series []Line  `json:"series"`
	Spans  []Span  `json:"spans,omitempty"`  // shaded: the steady window
	Marks  []Mark  `json:"marks,omitempty"`  // moments
	Limits []Limit `json:"limits,omitempty"` // SLOs
}

// Line is a series on one of the axes.
type Line struct {
	Name    string   `json:"name"`
	Axis    int      `json:"axis,omitempty"` // of Time.Axes
	Seconds []Number `json:"seconds"`        // since the start, ascending
	Values  []Number `json:"values"`         // a missing one is a gap
	Step    bool     `json:"step,omitempty"` // holds its value until the next, as a count does
}

// Span is a part of the time.
type Span struct {
	From  Number `json:"from"`
	To    Number `json:"to"`
	Label string `json:"label"`
}

// Limit is a value of an axis that has a meaning.
type Limit struct {
	Axis  int    `json:"axis,omitempty"`
	At    Number `json:"at"`
	Label string `json:"label"`
}

func (t *Time) validate() error {
	if n := len(t.Axes); n < 1 || n > 2 {
		return fmt.Errorf("there are %d axes for values instead of one or two", n)
	}
	for _, s := range t.Series {
		switch {
		case s.Name == "":
			return fmt.Errorf("a series has no name")
		case s.Axis < 0 || s.Axis >= len(t.Axes):
			return fmt.Errorf("series %s is on axis %d, which is not there", s.Name, s.Axis)
		case len(s.Seconds) != len(s.Values):
			return fmt.Errorf("series %s has %d moments and %d values", s.Name, len(s.Seconds), len(s.Values))
		case !ascending(s.Seconds):
			return fmt.Errorf("the moments of series %s do not ascend", s.Name)
		}
	}
	for _, l := range t.Limits {
		if l.Axis < 0 || l.Axis >= len(t.Axes) {
			return fmt.Errorf("limit %s is on axis %d, which is not there", l.Label, l.Axis)
		}
	}
	return nil
}
