package compare

import (
	"slices"
	"time"

	"perflab/internal/result"
)

// Outcome is what a comparison of two figures shows.
type Outcome string

// Outcomes.
const (
	Better       Outcome = "better"
	Worse        Outcome = "worse"
	NoDifference Outcome = "no difference shown"
	Equal        Outcome = "equal"
	NoInterval   Outcome = "no interval" // see Cell.Why
	Differs      Outcome = "differs"     // shown, of a figure that has no better direction
)

// Cell is the figure of one side in a row.
type Cell struct {
	Value   *float64 `json:"value,omitempty"` // of several runs the mean
	Ratio   *float64 `json:"ratio,omitempty"` // to the first side; of several runs of the geometric means
	Low     *float64 `json:"low,omitempty"`   // 95 % interval of the ratio
	High    *float64 `json:"high,omitempty"`
	N       string   `json:"n,omitempty"` // what the figure rests on: "1200 calls in 40 blocks of 2.5 s", "3 runs"
	Outcome Outcome  `json:"outcome,omitempty"`
	Why     string   `json:"why,omitempty"` // there is no interval, or no figure
}

// Row is one figure, of one definition, of every side.
type Row struct {
	Metric     result.Metric     `json:"-"`
	Name       string            `json:"metric"`
	Label      string            `json:"label"`
	Unit       string            `json:"unit"`
	Better     string            `json:"better,omitempty"`
	Definition result.Definition `json:"definition,omitempty"`
	Cells      []Cell            `json:"sides"`
	Anew       []string          `json:"computed_anew,omitempty"` // sides whose figure is not by their own definition: it was computed from their calls by this one
}

// SideInfo is a side as a comparison shows it.
type SideInfo struct {
	Name  string   `json:"name"`
	Runs  []string `json:"runs"`
	Basis string   `json:"basis"` // what may be said of restarts
	Void  string   `json:"void,omitempty"`

	Started time.Time   `json:"started,omitzero"` // of its first run; zero: not recorded
	Host    result.Host `json:"host,omitzero"`    // that sent the load of its first run
}

// Comparison is several sides compared to the first.
type Comparison struct {
	Schema    string     `json:"schema"` // "perflab.comparison/1"
	Head      string     `json:"head"`   // what is compared, one sentence
	By        string     `json:"by,omitempty"`
	Simulated bool       `json:"simulated"`
	Predicted bool       `json:"predicted"`
	Sides     []SideInfo `json:"sides"`
	Rows      []Row      `json:"figures"`
	Warnings  []string   `json:"warnings,omitempty"`
	Notes     []string   `json:"notes,omitempty"`
	Facts     []Fact     `json:"facts"`
}

// Names returns the names of the sides.
func (c Comparison) Names() []string {
	var out []string
	for _, s := range c.Sides {
		out = append(out, s.Name)
	}
	return out
}

// Void reports whether a side has no run that can be believed.
func (c Comparison) Void() bool {
	return slices.ContainsFunc(c.Sides, func(s SideInfo) bool { return s.Void != "" })
}

// Shown counts the figures that differ beyond chance, and those that have an
// interval at all.
func (c Comparison) Shown() (better, worse, judged int) {
	for _, r := range c.Rows {
		for _, cell := range r.Cells {
			switch {
			case cell.Outcome == Better:
				better++
			case cell.Outcome == Worse:
				worse++
			}
			if cell.Low != nil {
				judged++
			}
		}
	}
	return better, worse, judged
}

// info describes a side.
func (s Side) info() SideInfo {
	out := SideInfo{Name: s.Name, Basis: s.basis()}
	if len(s.Runs) > 0 {
		out.Host = s.Runs[0].Header.Host
	}
	void := 0
	for _, m := range s.Runs {
		out.Runs = append(out.Runs, m.Name)
		if at := m.Header.Started; !at.IsZero() && (out.Started.IsZero() || at.Before(out.Started)) {
			out.Started = at
		}
		if m.Summary.Verdict.Status == result.Voided {
			void++
		}
	}
	if void == len(s.Runs) {
		out.Void = s.Runs[0].Summary.Verdict.Why()
	}
	return out
}
