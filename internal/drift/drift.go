package drift

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// Better is the direction in which a figure improves.
type Better int

// Directions, with the numbers that the metric table gives them.
const (
	Neither Better = 0
	Higher  Better = 1
	Lower   Better = -1
)

// Interval is where a figure lies at 95 % confidence.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Point is a figure at an instant.
type Point struct {
	Value    float64 // NaN: none, the point enters nothing
	Interval *Interval
	Time     time.Time
	Key      string // build or commit; "": a build of its own
	Void     bool   // the measurement cannot be believed: the point enters nothing
}

func (p Point) counts() bool {
	return !p.Void && !math.IsNaN(p.Value) && !math.IsInf(p.Value, 0)
}

// Options say what a change is. The zero value is what a history should begin with.
type Options struct {
	Better  Better
	Least   float64 // the least relative change that is reported; 0: 0.02
	Level   float64 // chance of a change found in noise by E-divisive; 0: 0.01
	Persist int     // builds over which a change must persist to be confirmed; 0: 3
	Seed    uint64  // of the random orders
}

// Defaults of Options.
const (
	DefaultLeast   = 0.02
	DefaultLevel   = 0.01
	DefaultPersist = 3
)

// leastLevel is the least that random orders can show in a tolerable time: there must be one
// more than its inverse.
const leastLevel = 0.0001

// Validate names what cannot be.
func (o Options) Validate() error {
	var errs []error
	if !(o.Least >= 0) || math.IsInf(o.Least, 0) {
		errs = append(errs, fmt.Errorf("the least change is %v: give a share such as 0.02 for 2 %%", o.Least))
	}
	if o.Level != 0 && !(o.Level >= leastLevel && o.Level < 1) {
		errs = append(errs, fmt.Errorf("the level is %v: give a chance from %v up to 1, such as 0.01", o.Level, leastLevel))
	}
	if o.Persist < 0 {
		errs = append(errs, fmt.Errorf("a change cannot persist over %d builds: give 1 or more", o.Persist))
	}
	return errors.Join(errs...)
}

func (o Options) filled() Options {
	if o.Least == 0 {
		o.Least = DefaultLeast
	}
	if o.Level == 0 {
		o.Level = DefaultLevel
	}
	if o.Persist == 0 {
		o.Persist = DefaultPersist
	}
	return o
}

// Method is how a change was found.
type Method string

// Methods.
const (
	EDivisive Method = "e-divisive" // the energy statistic with random orders
	Band      Method = "median-mad" // a median outside of the rolling median ± 3 MAD
)

// Standing is how far a change can be relied on.
type Standing string

// Confirmed: it has persisted over enough builds. Suspected: it is the newest and has not
// yet. Brief: another change came before it had.
const (
	Confirmed Standing = "confirmed"
	Suspected Standing = "suspected"
	Brief     Standing = "brief"
)

// Outcome is what a change means to the user.
type Outcome string

// Outcomes; of a figure without a direction, or without a change, there is none.
const (
	Improved Outcome = "better"
	Worsened Outcome = "worse"
)

// Change is a place from which on a figure is another. Indices are those of the points given.
type Change struct {
	Index    int       `json:"index"`              // the first point after
	Previous int       `json:"previous"`           // the last point before that counts: it happened between the two
	Before   float64   `json:"before"`             // median of the segment before
	After    float64   `json:"after"`              // median of the segment after
	Relative *float64  `json:"relative,omitempty"` // median of the ratios of points after to points before, less 1
	Interval *Interval `json:"interval,omitempty"` // of Relative, 95 %
	P        *float64  `json:"p,omitempty"`        // share of random orders with as strong a cut; of E-divisive
	Method   Method    `json:"method"`
	Builds   int       `json:"builds"` // over which it has persisted
	Standing Standing  `json:"standing"`
	Outcome  Outcome   `json:"outcome,omitempty"`
	Gradual  bool      `json:"gradual,omitempty"` // a straight line fits better than this step and its neighbours
}

// Segment is a stretch between changes. The points From and To belong to it.
type Segment struct {
	From   int       `json:"from"`
	To     int       `json:"to"`
	Points int       `json:"points"` // that count
	Builds int       `json:"builds"`
	Median float64   `json:"median"`
	Band   *Interval `json:"band,omitempty"` // what a next point may be by noise: median ± 3 MAD; nil for fewer than 6 points
}

// Status is what a history says of its newest points.
type Status string

// States of a history.
const (
	TooFew   Status = "too few points"
	Steady   Status = "no change shown"
	Changing Status = "change suspected"
	Changed  Status = "changed" // at some time, and steady since
)

// State is where a figure stands now.
type State struct {
	Status  Status  `json:"status"`
	Outcome Outcome `json:"outcome,omitempty"` // of the newest change
}

// Found is what a history tells.
type Found struct {
	Points   int       `json:"points"` // that count
	Void     int       `json:"void"`   // that do not
	Segments []Segment `json:"segments"`
	Changes  []Change  `json:"changes"` // between them, one fewer
	State    State     `json:"state"`
}

// MinPoints is how many points a history needs before anything can be found in it.
const MinPoints = fewestBefore + 1

// minSize is the least number of points on either side of a cut by E-divisive: one or two
// outliers are no segment.
const minSize = 3

// series are the points that count.
type series struct {
	x   []float64
	own []float64 // standard error by the point's own interval; NaN: none
	key []string
	at  []int // index among the points given
}

func counting(points []Point) (series, error) {
	var s series
	for i, p := range points {
		if i > 0 && p.Time.Before(points[i-1].Time) {
			return s, fmt.Errorf("point %d is older than point %d: sort the points by time", i, i-1)
		}
		if !p.counts() {
			continue
		}
		own := math.NaN()
		if v := p.Interval; v != nil {
			own = (v.High - v.Low) / 2 / normal975
		}
		s.x, s.own, s.key, s.at = append(s.x, p.Value), append(s.own, own), append(s.key, p.Key), append(s.at, i)
	}
	return s, nil
}

// builds counts the builds of some of the points. Those without a key are one each.
func (s series) builds(from, to int) int {
	seen, n := map[string]bool{}, 0
	for _, k := range s.key[from:to] {
		if k == "" || !seen[k] {
			n++
		}
		seen[k] = true
	}
	return n
}

// cut is where a segment begins, among the points that count.
type cut struct {
	at     int
	method Method
	p      float64
}

// Find finds the changes of a figure. The error names an option that cannot be, or a point
// out of order.
func Find(points []Point, o Options) (Found, error) {
	if err := o.Validate(); err != nil {
		return Found{}, err
	}
	o = o.filled()
	s, err := counting(points)
	if err != nil {
		return Found{}, err
	}
	var cuts []cut
	if len(s.x) >= MinPoints {
		cuts = relocate(s.x, split(s.x, 0, o))
		cuts = shifts(s, cuts, o)
		cuts = merge(s.x, cuts, o.Least)
	}
	f := Found{Points: len(s.x), Void: len(points) - len(s.x), Segments: segments(s, cuts)}
	f.Changes = changes(s, cuts, o)
	f.State = state(f)
	return f, nil
}

// ends are the segments' beginnings, and the end of the last.
func ends(cuts []cut, n int) []int {
	e := []int{0}
	for _, c := range cuts {
		e = append(e, c.at)
	}
	return append(e, n)
}

func segments(s series, cuts []cut) []Segment {
	if len(s.x) == 0 {
		return nil
	}
	var all []Segment
	e := ends(cuts, len(s.x))
	for i, from := range e[:len(e)-1] {
		to := e[i+1]
		g := Segment{From: s.at[from], To: s.at[to-1], Points: to - from, Builds: s.builds(from, to), Median: median(s.x[from:to])}
		if to-from >= fewestBefore {
			reach := s.reach(from, to)
			g.Band = &Interval{g.Median - reach, g.Median + reach}
		}
		all = append(all, g)
	}
	return all
}

func changes(s series, cuts []cut, o Options) []Change {
	var all []Change
	e := ends(cuts, len(s.x))
	gradual := slopes(s.x, e)
	for i, c := range cuts {
		before, after := s.x[e[i]:c.at], s.x[c.at:e[i+2]]
		h := Change{Index: s.at[c.at], Previous: s.at[c.at-1], Before: median(before), After: median(after), Method: c.method,
			Builds: s.builds(c.at, e[i+2]), Gradual: gradual[i]}
		h.Relative, h.Interval = relative(before, after)
		if c.method == EDivisive {
			h.P = &c.p
		}
		h.Standing = standing(h.Builds, o.Persist, i == len(cuts)-1)
		h.Outcome = outcome(h.After-h.Before, o.Better)
		all = append(all, h)
	}
	return all
}

func standing(builds, persist int, newest bool) Standing {
	switch {
	case builds >= persist:
		return Confirmed
	case newest:
		return Suspected
	}
	return Brief
}

func outcome(diff float64, b Better) Outcome {
	switch better := diff * float64(b); {
	case better > 0:
		return Improved
	case better < 0:
		return Worsened
	}
	return ""
}

func state(f Found) State {
	if f.Points < MinPoints {
		return State{Status: TooFew}
	}
	if len(f.Changes) == 0 {
		return State{Status: Steady}
	}
	newest := f.Changes[len(f.Changes)-1]
	if newest.Standing == Suspected {
		return State{Changing, newest.Outcome}
	}
	return State{Changed, newest.Outcome}
}

func median(x []float64) float64 {
	s := slices.Sorted(slices.Values(x))
	n := len(s)
	if n%2 == 1 {
		return s[n/2]
	}
	return s[n/2-1]/2 + s[n/2]/2
}
