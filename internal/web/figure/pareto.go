package figure

import (
	"fmt"
	"slices"
)

// Pareto holds what was launched against two measures at once, of which the reader chooses, with
// the front of each side as steps: between two launches nothing was measured, so nothing is drawn
// that lies above both.
type Pareto struct {
	Measures []Measure `json:"measures"`        // two or more, to choose from
	Stats    []string  `json:"stats,omitempty"` // percentiles to choose from, of measures that have some: "p50", "p99", "mean"
	X        string    `json:"x"`               // the measures and the percentile at first, by name
	Y        string    `json:"y"`
	Stat     string    `json:"stat,omitempty"`
	Fronts   []Front   `json:"fronts"`
}

// Measure is a quantity that an axis may show.
type Measure struct {
	Name   string `json:"name"` // of Launch.Figures and in the URL
	Label  string `json:"label"`
	Unit   string `json:"unit,omitempty"`
	Better string `json:"better"`            // "higher" or "lower"
	ByStat bool   `json:"by_stat,omitempty"` // has a figure per percentile
}

// Front is one side: launches that differ in what was sent to them or how they are tuned, and among which one may choose.
type Front struct {
	Name     string   `json:"name"`
	Group    string   `json:"group,omitempty"` // groups are switched as a whole, and the first is shown at first; "": a group of its own
	Launches []Launch `json:"launches"`
}

// Launch is a point.
type Launch struct {
	Label   string           `json:"label"` // what tells it from others of its side: "TP2, 64 in flight"
	Href    string           `json:"href,omitempty"`
	Verdict string           `json:"verdict,omitempty"`
	Figures map[string]Range `json:"figures"` // by Key
}

// Range is a figure with its interval, whose ends may be missing.
type Range struct {
	Value Number `json:"value"`
	Low   Number `json:"low"`
	High  Number `json:"high"`
}

// Key is where a launch has the figure of a measure; the percentile counts only for a measure that has some.
func (m Measure) Key(stat string) string {
	if m.ByStat {
		return stat + " " + m.Name
	}
	return m.Name
}

func (p *Pareto) validate() error {
	keys := map[string]bool{}
	for _, m := range p.Measures {
		if m.Better != "higher" && m.Better != "lower" {
			return fmt.Errorf("measure %s is better neither higher nor lower, so it has no front", m.Name)
		}
		if m.ByStat && len(p.Stats) == 0 {
			return fmt.Errorf("measure %s has percentiles, and there are none to choose from", m.Name)
		}
		for _, s := range append([]string{p.Stat}, p.Stats...) {
			keys[m.Key(s)] = true
		}
	}
	for _, name := range []string{p.X, p.Y} {
		if !slices.ContainsFunc(p.Measures, func(m Measure) bool { return m.Name == name }) {
			return fmt.Errorf("measure %q of an axis is not there", name)
		}
	}
	if len(p.Stats) > 0 && !slices.Contains(p.Stats, p.Stat) {
		return fmt.Errorf("the percentile at first is %q, which is not there", p.Stat)
	}
	for _, f := range p.Fronts {
		if err := f.validate(keys); err != nil {
			return err
		}
	}
	return nil
}

func (f Front) validate(keys map[string]bool) error {
	if f.Name == "" {
		return fmt.Errorf("a side has no name")
	}
	for _, l := range f.Launches {
		for key, r := range l.Figures {
			if !keys[key] {
				return fmt.Errorf("launch %s of side %s has the figure %q, which is of no measure", l.Label, f.Name, key)
			}
			if r.Low > r.Value || r.Value > r.High { // false where one is missing
				return fmt.Errorf("%s of launch %s is outside of its interval", key, l.Label)
			}
		}
	}
	return nil
}
