// Package figure holds the plots of a page as numbers with names, in the JSON that chart.js of
// package asset draws.
//
//	f := figure.Figure{
//		Name: "ttft", Title: "TTFT", Simulated: true,
//		CDF: &figure.CDF{
//			X:     figure.Axis{Label: "TTFT", Unit: "ms"},
//			Sides: []figure.Side{{Name: "baseline", Values: figure.Numbers(quantiles)}},
//			SLOs:  []figure.Mark{{At: 500, Label: "p99 <= 500 ms"}},
//		},
//	}
//	text, err := f.JSON()
//
// In a page: <figure data-chart><figcaption>TTFT</figcaption><script type="application/json">{{.}}</script></figure>;
// from a URL: <figure data-chart="/api/v1/...">. What stands in the figure besides is read where there is no JavaScript.
//
// Invariants: a number that is missing is null and never 0, and a line has a gap there. What is
// simulated says so on the plot. A figure that could not be drawn as it is meant, such as a CDF
// that falls, is an error here and not a strange picture there.
//
// Deliberately absent: runs, studies and metrics. Callers give numbers, names and sentences.
package figure

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"time"
)

// Number is a figure that may be missing.
type Number float64

// Missing is the number that nobody knows.
var Missing = Number(math.NaN())

// Missing reports whether there is no figure: NaN, and what is not finite, of which no plot can show where it is.
func (n Number) Missing() bool { return math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) }

// MarshalJSON writes a missing number as null.
func (n Number) MarshalJSON() ([]byte, error) {
	if n.Missing() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// UnmarshalJSON reads null as missing.
func (n *Number) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*n = Missing
		return nil
	}
	return json.Unmarshal(b, (*float64)(n))
}

// Numbers are the numbers of values, of which NaN is missing.
func Numbers(values []float64) []Number {
	all := make([]Number, len(values))
	for i, v := range values {
		all[i] = Number(v)
	}
	return all
}

// Known is a number that may be absent.
func Known(v *float64) Number {
	if v == nil {
		return Missing
	}
	return Number(*v)
}

// Figure is one plot: of its kinds exactly one is set.
type Figure struct {
	Name      string `json:"name"`              // of its state in the URL and of its files: lower case letters, digits and -; one of a page
	Title     string `json:"title"`             // what a reader who sees nothing is told that this is
	Caption   string `json:"caption,omitempty"` // a sentence under it: what can be seen
	Simulated bool   `json:"simulated,omitempty"`

	CDF     *CDF     `json:"cdf,omitempty"`
	Time    *Time    `json:"time,omitempty"`
	History *History `json:"history,omitempty"`
	Pareto  *Pareto  `json:"pareto,omitempty"`
}

// Axis is what an axis shows.
type Axis struct {
	Label string `json:"label"`          // "TTFT"
	Unit  string `json:"unit,omitempty"` // "ms", as in the metric table; "": none
	Log   bool   `json:"log,omitempty"`  // begins logarithmic; the reader may switch
}

// Mark is a value on an axis with its name: an SLO, or a moment.
type Mark struct {
	At    Number `json:"at"`
	Label string `json:"label"`
}

// Verdicts of what is drawn. A void figure is drawn hollow and belongs to no front.
const (
	Sound = "sound"
	Noted = "noted"
	Void  = "void"
)

var namePattern = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// JSON is the figure as its script reads it, checked, with <, > and & escaped, so that no text can end the element that holds it.
func (f Figure) JSON() ([]byte, error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	b, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("encode figure %s: %w", f.Name, err)
	}
	return b, nil
}

// Validate says what of the figure could not be drawn as it is meant.
func (f Figure) Validate() error {
	if !namePattern.MatchString(f.Name) {
		return fmt.Errorf("the figure's name %q is not of lower case letters, digits and single hyphens", f.Name)
	}
	if f.Title == "" {
		return fmt.Errorf("figure %s has no title", f.Name)
	}
	var kinds []error
	set := 0
	if f.CDF != nil {
		set, kinds = set+1, append(kinds, f.CDF.validate())
	}
	if f.Time != nil {
		set, kinds = set+1, append(kinds, f.Time.validate())
	}
	if f.History != nil {
		set, kinds = set+1, append(kinds, f.History.validate())
	}
	if f.Pareto != nil {
		set, kinds = set+1, append(kinds, f.Pareto.validate())
	}
	if set != 1 {
		return fmt.Errorf("figure %s has %d kinds of plot instead of one", f.Name, set)
	}
	if err := errors.Join(kinds...); err != nil {
		return fmt.Errorf("figure %s: %w", f.Name, err)
	}
	return nil
}

// ascending reports whether no number is missing and none is below the one before it.
func ascending(all []Number) bool {
	for i, n := range all {
		if n.Missing() || i > 0 && n < all[i-1] {
			return false
		}
	}
	return true
}

// known reports whether a moment is set.
func known(t time.Time) bool { return !t.IsZero() }
