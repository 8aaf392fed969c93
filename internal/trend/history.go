package trend

import (
	"time"

	"perflab/internal/drift"
	"perflab/internal/lineage"
	"perflab/internal/result"
)

// History is one metric of a line over time, with what package drift found in it.
type History struct {
	Metric   string          `json:"metric"`
	Label    string          `json:"label"`
	Unit     string          `json:"unit,omitempty"`
	Better   result.Better   `json:"-"`
	Points   []Point         `json:"points"`
	Undated  int             `json:"undated,omitzero"` // runs that have the figure and no date
	Counted  int             `json:"counted"`          // points that enter
	Void     int             `json:"void,omitzero"`    // points that do not
	Segments []drift.Segment `json:"segments"`
	Changes  []drift.Change  `json:"changes"`
	State    drift.State     `json:"state"`
	Age      drift.Staleness `json:"age"`
}

// Point is one launch or build.
type Point struct {
	At    time.Time `json:"at"`
	Value float64   `json:"value"`
	Low   *float64  `json:"low,omitempty"` // ends of its 95 % interval
	High  *float64  `json:"high,omitempty"`
	Build string    `json:"build,omitempty"`
	Void  bool      `json:"void,omitempty"`
	Runs  []string  `json:"runs"` // IDs, in order of time
}

func historyOf(h lineage.History, f drift.Found, age drift.Staleness) History {
	out := History{
		Metric: h.Metric.Name, Label: h.Metric.Label, Unit: h.Metric.Unit, Better: h.Metric.Better, Undated: h.Undated,
		Counted: f.Points, Void: f.Void, Segments: f.Segments, Changes: f.Changes, State: f.State, Age: age, Points: []Point{},
	}
	for _, p := range h.Points {
		x := Point{At: p.Time, Value: p.Value, Build: p.Build, Void: p.Void, Runs: p.Runs}
		if p.Interval != nil {
			x.Low, x.High = &p.Interval.Low, &p.Interval.High
		}
		out.Points = append(out.Points, x)
	}
	return out
}

// Newest is the newest point that counts; nil where there is none.
func (h History) Newest() *Point {
	for i := len(h.Points) - 1; i >= 0; i-- {
		if !h.Points[i].Void {
			return &h.Points[i]
		}
	}
	return nil
}

// Last is the newest change; nil where there is none.
func (h History) Last() *drift.Change {
	if len(h.Changes) == 0 {
		return nil
	}
	return &h.Changes[len(h.Changes)-1]
}

// Standing is where a figure stands now, in a few words.
type Standing string

// Standings, the most urgent first.
const (
	SuspectedWorse  Standing = "suspected worse"
	Worse           Standing = "worse"
	Suspected       Standing = "suspected change"
	SuspectedBetter Standing = "suspected better"
	Better          Standing = "better"
	Changed         Standing = "changed"
	Steady          Standing = "steady"
	TooFew          Standing = "too few points"
)

var standings = []Standing{TooFew, Steady, Changed, Better, SuspectedBetter, Suspected, Worse, SuspectedWorse}

// Standings are all, the most urgent last.
func Standings() []Standing { return append([]Standing{}, standings...) }

func (s Standing) urgency() int {
	for i, one := range standings {
		if one == s {
			return i
		}
	}
	return -1
}

// Standing says where the figure stands: better and worse are of the newest change.
func (h History) Standing() Standing {
	by := func(worse, better, neither Standing) Standing {
		switch h.State.Outcome {
		case drift.Worsened:
			return worse
		case drift.Improved:
			return better
		}
		return neither
	}
	switch h.State.Status {
	case drift.TooFew:
		return TooFew
	case drift.Changing:
		return by(SuspectedWorse, SuspectedBetter, Suspected)
	case drift.Changed:
		return by(Worse, Better, Changed)
	}
	return Steady
}
