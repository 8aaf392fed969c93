package figure

import (
	"fmt"
	"time"
)

// History is one figure of a configuration over days, with what counts as noise and where it changed.
type History struct {
	Y       Axis     `json:"y"`
	Better  string   `json:"better,omitempty"` // "higher" or "lower"; "": neither
	Points  []Build  `json:"points"`           // the oldest first
	Noise   []Band   `json:"noise,omitempty"`
	Changes []Change `json:"changes,omitempty"`
	Notes   []Note   `json:"notes,omitempty"`
}

// Build is what was measured at a moment, often of a commit.
type Build struct {
	At       time.Time `json:"at"`
	Value    Number    `json:"value"`
	Low      Number    `json:"low"` // of its interval
	High     Number    `json:"high"`
	Launches int       `json:"launches,omitempty"` // of which it is
	Label    string    `json:"label,omitempty"`    // the commit, or the run
	Href     string    `json:"href,omitempty"`     // to the run
	Verdict  string    `json:"verdict,omitempty"`
}

// Band is where figures lie that differ by chance alone, between two moments.
type Band struct {
	From   time.Time `json:"from"`
	To     time.Time `json:"to"`
	Low    Number    `json:"low"`
	Middle Number    `json:"middle"`
	High   Number    `json:"high"`
}

// Kinds of a change.
const (
	Gain  = "gain"
	Loss  = "loss"
	Shift = "shift"
)

// Change is a moment from which on the figure is another.
type Change struct {
	At    time.Time `json:"at"`
	Kind  string    `json:"kind"`
	Label string    `json:"label"` // "-8.1 % [-9.4, -6.8]"
	Href  string    `json:"href,omitempty"`
}

// Note is what somebody wrote at a moment.
type Note struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}

func (h *History) validate() error {
	for i, p := range h.Points {
		switch {
		case !known(p.At):
			return fmt.Errorf("point %d has no moment", i+1)
		case i > 0 && p.At.Before(h.Points[i-1].At):
			return fmt.Errorf("point %d is of before the one that it follows", i+1)
		case p.Low > p.Value || p.Value > p.High: // false where one is missing
			return fmt.Errorf("point %d is %v, outside of its interval [%v, %v]", i+1, p.Value, p.Low, p.High)
		}
	}
	for _, b := range h.Noise {
		if !known(b.From) || b.To.Before(b.From) {
			return fmt.Errorf("a band of noise ends before it begins")
		}
	}
	for _, c := range h.Changes {
		if !known(c.At) || c.Kind != Gain && c.Kind != Loss && c.Kind != Shift {
			return fmt.Errorf("change %q has no moment, or is no gain, loss or shift but %q", c.Label, c.Kind)
		}
	}
	for _, n := range h.Notes {
		if !known(n.At) {
			return fmt.Errorf("note %q has no moment", n.Text)
		}
	}
	return nil
}
